"""Changes of one field in a file of a workspace, and what they change in what is rendered.

Every field of a file is given another value or removed, and every missing field is added with the example of
its own documentation. The differences are compared with the traces.
"""

from __future__ import annotations

import copy
import difflib
import json
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from gangplan.emit import is_run_file
from gangplan.pipeline.request import Request
from gangplan.provenance.lines import (
    RenderedFile,
    render_cluster_files_with_line_origins,
    render_run_files_with_line_origins,
)
from gangplan.trace import Trace
from gangplan.workspace import load_workspace

Path = tuple[str | int, ...]
NAMES = ("name", "mountPath", "key", "nodeLabel")
HEAD = ("apiVersion", "kind")


@dataclass(frozen=True)
class Change:
    """One field of one file, and its new value; None removes it."""

    file: str
    path: Path
    value: Any

    def __str__(self) -> str:
        return f"{self.file}:{'.'.join(map(str, self.path))}={json.dumps(self.value)[:40]}"


# Fields


def changes(file: str, document: Any, model: type[BaseModel]) -> Iterator[Change]:
    """Yield every change of one field of a file that its format allows, as far as types show it."""
    for path, value in _leaves(document):
        if path[0] in HEAD or path == ("name",):
            continue
        for other in _others(value, _annotation(model, path)):
            yield Change(file, path, other)
        if not isinstance(path[-1], int):
            yield Change(file, path, None)
    for path, example in _missing(document, model, ()):
        yield Change(file, path, example)


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    else:
        yield path, value


def _others(value: Any, annotation: Any) -> list[Any]:
    """Return other values that may be valid."""
    choices = [one for one in get_args(annotation) if isinstance(one, str)] if annotation is not None else []
    if choices:
        return [one for one in choices if one != value][:2]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 2, max(value // 2, 1)]
    if isinstance(value, float):
        return [value * 2]
    if isinstance(value, str):
        return _texts(value)
    return []


def _texts(value: str) -> list[str]:
    number = value.rstrip("GiMTkhdm")
    if number and number.isdigit() and number != value:
        return [
            f"{int(number) * 2}{value[len(number) :]}",
            f"{max(int(number) // 2, 1)}{value[len(number) :]}",
        ]
    if value.startswith("sha256:"):
        return [value[:-1] + ("0" if value[-1] != "0" else "1")]
    if value[:1].isdigit():
        return [value[:-1] + ("1" if value[-1:] != "1" else "2")]
    return [f"{value}-x", f"{value}x"]


def _missing(document: Any, model: type[BaseModel], path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield missing fields, each with its example."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in HEAD or (path == () and key in ("name", "team")):
            continue
        inner = document.get(key) if isinstance(document, dict) else None
        if inner is None:
            if field.examples:
                yield (*path, key), field.examples[0]
            continue
        for step, below, kind in _models_in(inner, field.annotation):
            yield from _missing(below, kind, (*path, key, *step))


def _models_in(value: Any, annotation: Any) -> Iterator[tuple[Path, Any, type[BaseModel]]]:
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        yield (), value, bare
    elif get_origin(bare) is dict and isinstance(value, dict):
        for key, inner in value.items():
            for step, below, kind in _models_in(inner, get_args(bare)[1]):
                yield (key, *step), below, kind
    elif get_origin(bare) in (tuple, list) and isinstance(value, list):
        for index, inner in enumerate(value):
            for step, below, kind in _models_in(inner, get_args(bare)[0]):
                yield (index, *step), below, kind


def _annotation(model: Any, path: Path) -> Any:
    found: Any = model
    for step in path:
        found = _bare(found)
        if isinstance(found, type) and issubclass(found, BaseModel):
            fields = {field.alias or name: field.annotation for name, field in found.model_fields.items()}
            found = fields.get(str(step))
        elif get_origin(found) is dict:
            found = get_args(found)[1]
        elif get_origin(found) in (tuple, list):
            found = get_args(found)[0]
        else:
            return None
    return _bare(found)


def _bare(annotation: Any) -> Any:
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            rest = [one for one in get_args(annotation) if one is not type(None)]
            if len(rest) == 1:
                annotation = rest[0]
                continue
        return annotation


def changed(document: Any, change: Change) -> Any:
    """Return the document with the change."""
    whole = copy.deepcopy(document)
    node = whole
    for step in change.path[:-1]:
        node = node[step]
    if change.value is None:
        del node[change.path[-1]]
    else:
        node[change.path[-1]] = copy.deepcopy(change.value)
    return whole


# Rendering


# File, kind (with the name, for objects of a cluster), number among objects of the kind.
Place = tuple[str, str, int]


def rendered(
    root: FilePath, change: Change | None, clusters: tuple[str, ...], team: str
) -> list[RenderedFile] | None:
    """Render what can change with a file: the runs of a spec or team, and the objects of the clusters.

    Returns None if the workspace has errors.
    """
    found: list[RenderedFile] = []
    request = Request(root, clusters=clusters)
    file = change.file if change else ""
    if file.startswith("specs/") and not file.endswith("/team.yaml"):
        runs, findings = render_run_files_with_line_origins(
            load_workspace(root), Request(root, specs=(str(root / file),))
        )
        return None if _has_errors(findings) else runs
    runs, findings = render_run_files_with_line_origins(
        load_workspace(root), Request(root, clusters=clusters, teams=(team,) if team else ())
    )
    if _has_errors(findings):
        return None
    found += runs
    if not file.startswith("images/"):
        for cluster in clusters:
            standing, findings = render_cluster_files_with_line_origins(
                load_workspace(root), request, cluster
            )
            if _has_errors(findings):
                return None
            found += standing
    return found


def _has_errors(findings: Any) -> bool:
    return any(finding.severity.word == "error" for finding in findings)


def by_place(files: list[RenderedFile]) -> dict[Place, tuple[RenderedFile, int]]:
    """Map objects by file (without the hash of a run), kind and number among objects of the kind."""
    found: dict[Place, tuple[RenderedFile, int]] = {}
    for file in files:
        counts: dict[str, int] = {}
        path = file.path.rpartition("-")[0] if is_run_file(file.path) else file.path
        for index, body in enumerate(file.bodies):
            kind = f"{body['kind']}" if is_run_file(path) else f"{body['kind']} {body['metadata']['name']}"
            number = counts.get(kind, 0)
            counts[kind] = number + 1
            found[path, kind, number] = (file, index)
    return found


def differences(
    before: Any, after: Any, old: Path = (), new: Path = ()
) -> Iterator[tuple[Path | None, Path | None]]:
    """Yield the leaves that differ: their path before (None: added) and after (None: removed)."""
    if isinstance(before, dict) and isinstance(after, dict) and before and after:
        for key in {**before, **after}:
            if key not in after:
                yield from ((path, None) for path, _ in _leaves(before[key], (*old, key)))
            elif key not in before:
                yield from ((None, path) for path, _ in _leaves(after[key], (*new, key)))
            else:
                yield from differences(before[key], after[key], (*old, key), (*new, key))
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        yield from _list_differences(before, after, old, new)
    elif before != after:
        yield from (
            ((path, None) for path, _ in _leaves(before, old)) if isinstance(before, dict | list) else ()
        )
        yield from ((None, path) for path, _ in _leaves(after, new)) if isinstance(after, dict | list) else ()
        if not isinstance(before, dict | list) and not isinstance(after, dict | list):
            yield old, new


def _list_differences(
    before: list[Any], after: list[Any], old: Path, new: Path
) -> Iterator[tuple[Path | None, Path | None]]:
    ones, others = ([_identity(many, at) for at in range(len(many))] for many in (before, after))
    for tag, a, b, c, d in difflib.SequenceMatcher(None, ones, others, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and b - a == d - c):
            for one, other in zip(range(a, b), range(c, d), strict=True):
                yield from differences(before[one], after[other], (*old, one), (*new, other))
            continue
        for one in range(a, b):
            yield from ((path, None) for path, _ in _leaves(before[one], (*old, one)))
        for other in range(c, d):
            yield from ((None, path) for path, _ in _leaves(after[other], (*new, other)))


def _identity(entries: list[Any], at: int) -> str:
    """Return what identifies an entry of a list; for an option of a command, the option with its value."""
    entry = entries[at]
    if entry == "-x" and at + 1 < len(entries):
        return f"-x {entries[at + 1]}"
    if isinstance(entry, dict):
        for name in NAMES:
            if isinstance(entry.get(name), str):
                return str(entry[name])
    return json.dumps(entry, sort_keys=True)


def names(trace: Trace, change: Change) -> bool:
    """Return whether the trace names the field that was changed."""
    return any(
        cause.file == change.file
        and (change.path[: len(cause.field)] == cause.field or cause.field[: len(change.path)] == change.path)
        for cause in trace.causes
    )


def write(root: FilePath, file: str, document: Any) -> None:
    """Write a file of the workspace."""
    (root / file).write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
