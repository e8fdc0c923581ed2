"""Convert a strategic merge of kustomize to JSON6902 operations with the same effect on one object.

gangplan renders custom resources and kinds whose lists kustomize replaces as a whole, so a strategic merge is
a merge of mappings (RFC 7386) with kustomize's directives (kyaml v0.20, yaml/merge2 and yaml/walk). The lists
that merge by a key are in `KEYED`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DIRECTIVE = "$patch"
# Lists of rendered kinds that kustomize merges by a key (OpenAPI of Kubernetes, x-kubernetes-patch-merge-key).
KEYED = {("ServiceAccount", "secrets"): "name", ("ServiceAccount", "imagePullSecrets"): None}
_OPEN = ("$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys")
_OBJECT = ("apiVersion", "kind")
JsonPatchOperation = dict[str, Any]


class UnclearMergeError(ValueError):
    """A merge that is not a plain merge of mappings; `path` is the field inside the patch."""

    def __init__(self, message: str, path: tuple[str, ...]) -> None:
        super().__init__(message)
        self.path = path


def convert_strategic_merge_to_json6902(
    base: Mapping[str, Any], patch: Mapping[str, Any]
) -> list[JsonPatchOperation]:
    """Return the operations that have the effect of the merge on the object. Raises UnclearMergeError."""
    kind = str(base.get("kind", ""))
    meta = {
        key: value for key, value in patch.get("metadata", {}).items() if key not in ("name", "namespace")
    }
    rest = {key: value for key, value in patch.items() if key not in (*_OBJECT, "metadata")}
    if rest.get(DIRECTIVE) == "delete":
        raise UnclearMergeError("it takes the whole object away", (DIRECTIVE,))
    return list(
        _convert_strategic_merge_of_mapping(base, {**({"metadata": meta} if meta else {}), **rest}, (), kind)
    )


def _convert_strategic_merge_of_mapping(
    base: Any, patch: Mapping[str, Any], path: tuple[str, ...], kind: str
) -> Iterator[JsonPatchOperation]:
    for key, value in patch.items():
        here = (*path, key)
        if key == DIRECTIVE or key.startswith(_OPEN):
            if key != DIRECTIVE or value != "merge":
                raise UnclearMergeError(f"gangplan does not read {key}: {value} here", here)
            continue
        if (kind, key) in KEYED and isinstance(value, list):
            raise UnclearMergeError(f"the list {key} of a {kind} is merged by a key", here)
        yield from _convert_strategic_merge_of_field(base, here, value, kind)


def _convert_strategic_merge_of_field(
    base: Any, path: tuple[str, ...], value: Any, kind: str
) -> Iterator[JsonPatchOperation]:
    """Yield the operations for one field of an existing mapping."""
    key = path[-1]
    has = key in base
    directive = value.get(DIRECTIVE) if isinstance(value, dict) else None
    if has and value is not None and isinstance(base[key], dict) != isinstance(value, dict):
        raise UnclearMergeError("the object has another kind of value there", path)
    if has and isinstance(base[key], str) and isinstance(value, bool | int | float):
        # kyaml keeps the style of the old text: a number becomes a string if that was quoted
        raise UnclearMergeError("the object has a text there, so quote this one", path)
    if value is None or directive == "delete":
        if has:
            yield {"op": "remove", "path": pointer(path)}
    elif directive == "replace" or not (isinstance(value, dict) and has and isinstance(base[key], dict)):
        fresh = _strip_strategic_merge_directives(value, path)
        if not has or base[key] != fresh:
            yield {"op": "replace" if has else "add", "path": pointer(path), "value": fresh}
    else:
        yield from _convert_strategic_merge_of_mapping(base[key], value, path, kind)


def _strip_strategic_merge_directives(value: Any, path: tuple[str, ...]) -> Any:
    """Return a value that is not merged with another, without directives and null fields."""
    if isinstance(value, dict):
        for key in value:
            if key.startswith(_OPEN):
                raise UnclearMergeError(f"gangplan does not read {key} here", (*path, key))
        return {
            key: _strip_strategic_merge_directives(one, (*path, key))
            for key, one in value.items()
            if key != DIRECTIVE and one is not None and not _is_delete_directive(one)
        }
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict) and DIRECTIVE in one:
                raise UnclearMergeError("the list has a directive, and is replaced as a whole", path)
        return value
    return value


def _is_delete_directive(value: Any) -> bool:
    return isinstance(value, dict) and value.get(DIRECTIVE) == "delete"


def pointer(path: tuple[str, ...]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in path)
