"""Reading manifests that programs wrote into dictionaries, as fast as possible and without positions."""

from __future__ import annotations

from typing import Any

import yaml

from gangplan.source.parser import (
    DepthError,
    MappingNode,
    Node,
    ScalarNode,
    compose_nodes,
    count_expanded_nodes,
    is_plain_scalar,
)
from gangplan.source.scalars import parse_plain_yaml_scalar, parse_tagged_yaml_scalar

# Ten times the largest CRD in use; nodes are counted only if the text has aliases.
_MAX_NODES = 1_000_000


class ManifestError(ValueError):
    """The text is not a stream of Kubernetes objects; `line` starts at 1, and is 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line


def load_objects(text: str | bytes) -> list[dict[str, Any]]:
    """Return the objects of a stream of documents, in order; empty documents are skipped. Raises
    `ManifestError`."""
    objects: list[dict[str, Any]] = []
    try:
        decoded = text if isinstance(text, str) else text.decode()
        may_repeat = "&" in decoded and "*" in decoded
        for root in compose_nodes(decoded):
            if may_repeat and count_expanded_nodes(root) > _MAX_NODES:
                raise ManifestError("aliases repeat too much", root.start_mark.line + 1)
            body = _build_manifest_value(root)
            if isinstance(body, dict):
                objects.append(body)
            elif body is not None:
                raise ManifestError("the document is not a mapping", root.start_mark.line + 1)
    except ManifestError:
        raise
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        raise ManifestError(str(problem), mark.line + 1 if mark else 0) from problem
    except (RecursionError, DepthError) as problem:
        raise ManifestError("nested too deep, or an alias contains itself") from problem
    except UnicodeError as problem:
        raise ManifestError(str(problem)) from problem
    return objects


# A cache of keys that are text: the same few hundred make up nearly all manifests.
_KNOWN_KEYS: set[str] = set()
_MOST_KNOWN = 10_000


def _build_manifest_value(node: Node) -> Any:
    kind = type(node)
    if kind is ScalarNode:
        return _parse_manifest_scalar(node)
    if kind is not MappingNode:
        return [_build_manifest_value(entry) for entry in node.value]
    body: dict[str, Any] = {}
    for name, value in node.value:
        key = name.value
        if type(name) is not ScalarNode or name.style or key not in _KNOWN_KEYS:
            key = _convert_manifest_key(name)
        if key in body:
            raise ManifestError(f"{key!r} is set twice", name.start_mark.line + 1)
        body[key] = _build_manifest_value(value)
    return body


def _parse_manifest_scalar(node: Any) -> Any:
    tag = node.tag
    try:
        if type(tag) is str:
            return parse_tagged_yaml_scalar(tag, node.value)
        return node.value if node.style else parse_plain_yaml_scalar(node.value)
    except ValueError as problem:
        raise ManifestError(str(problem), node.start_mark.line + 1) from problem


def _convert_manifest_key(name: Any) -> str:
    """Return a key as text: Kubernetes converts numbers and booleans that are keys."""
    key = _parse_manifest_scalar(name) if type(name) is ScalarNode else None
    if isinstance(key, str) and not (key == "<<" and is_plain_scalar(name)):
        if is_plain_scalar(name) and len(_KNOWN_KEYS) < _MOST_KNOWN:
            _KNOWN_KEYS.add(key)
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    raise ManifestError(f"the key {name.value!r} is not text", name.start_mark.line + 1)
