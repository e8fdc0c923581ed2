"""Read and check the operations of a JSON6902 patch, and find where each is written."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath, Location
from gangplan.records import dataclass
from gangplan.source import Document

OPS = {"add", "remove", "replace", "move", "copy", "test"}
#: The annotation that distinguishes the objects of one kustomize build.
BUILD_MARK = "gangplan.dev/build-index"
_IDENTITY = ("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace")
# Whole maps on which references, queues and gangplan itself rely.
_HOLDING = ("", "/", "/metadata", "/metadata/annotations", "/metadata/labels")


@dataclass(frozen=True, slots=True)
class OperationsText:
    """A document of operations: a separate file, or the text at `at` in the kustomization `outer`."""

    document: Document
    outer: Document | None = None
    at: FieldPath = ()
    inline: str = ""

    def where(self, path: FieldPath) -> Location:
        """Return the place of a part of the operations, in the file that people edit."""
        return self.placed(self.document.where(path))

    def placed(self, inner: Location) -> Location:
        """Convert a place in the text to a place in the file."""
        if self.outer is None:
            return inner
        return locate_embedded_patch_text(self.outer, self.at, self.inline, inner)


def locate_embedded_patch_text(outer: Document, at: FieldPath, inline: str, inner: Location) -> Location:
    """Convert a place in a text that is embedded in a document to a place in the document's file."""
    lines = inline.split("\n")
    if not 0 < inner.line <= len(lines):
        return outer.where(at)
    offset = sum(len(line) + 1 for line in lines[: inner.line - 1]) + max(inner.column - 1, 0)
    return outer.inside(at, offset)


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """An operation: what it does at which JSON pointer, and its `index` in its text."""

    op: str
    path: str
    index: int
    text: OperationsText

    @property
    def written(self) -> dict[str, Any]:
        """The operation as it is written."""
        written: dict[str, Any] = self.text.document.value[self.index]
        return written

    def where(self) -> Location:
        """Return the place of the operation's path."""
        return self.text.where((self.index, "path"))

    def where_written(self, pointer: str) -> Location:
        """Return the place of what the operation writes at or below a pointer, else of its path."""
        operation = self.written
        if "value" not in operation:
            return self.where()
        steps = pointer[len(self.path.removesuffix("/-")) :].split("/")[1:]
        way: list[str | int] = [self.index, "value"]
        inside = operation["value"]
        for step in steps[1:] if self.path.endswith("/-") else steps:
            key: str | int = step.replace("~1", "/").replace("~0", "~")
            if isinstance(inside, list) and str(key).isdigit() and int(key) < len(inside):
                key = int(key)
            elif not isinstance(inside, dict) or key not in inside:
                break
            inside = inside[key]
            way.append(key)
        return self.text.where(tuple(way))


# Why patches are operations (kustomize merges lists by their keys only in kinds that it knows).
STRATEGIC_MERGE = "on custom resources it replaces whole lists"


def find_patch_operations_problem(value: Any) -> tuple[str, FieldPath]:
    """Return what is wrong with the operations of a patch, and where; the text is empty if nothing is."""
    if isinstance(value, dict):
        return f"this is a strategic merge; {STRATEGIC_MERGE}", ()
    if not isinstance(value, list) or not value:
        return "this is not a list of operations", ()
    for index, operation in enumerate(value):
        if (
            not isinstance(operation, dict)
            or operation.get("op") not in OPS
            or not isinstance(operation.get("path"), str)
        ):
            return (
                f"each operation needs an op ({', '.join(sorted(OPS))}) and a path",
                _locate_invalid_patch_operation_field(index, operation),
            )
        if found := _explain_forbidden_patch_operation(operation):
            return found[0], (index, found[1])
    return "", ()


def _locate_invalid_patch_operation_field(index: int, operation: Any) -> FieldPath:
    """Return the path of the invalid part of an operation."""
    if not isinstance(operation, dict):
        return (index,)
    if operation.get("op") not in OPS:
        return (index, "op")
    return (index, "path")


def _explain_forbidden_patch_operation(operation: dict[str, Any]) -> tuple[str, str] | None:
    """Return why an operation would break what others rely on, and the field at fault; None if it is safe."""
    op, source = operation["op"], operation.get("from")
    if op in ("copy", "move") and f"{operation['path']}/".startswith(f"{source}/"):
        return f"'{source}' cannot be put into itself", "path"
    for field, path in (("from", source), ("path", operation["path"])):
        if f"{path}/".startswith(f"/metadata/annotations/{BUILD_MARK.replace('/', '~1')}/"):
            return f"{path} is gangplan's own while it builds: no object keeps it", field
    for field, path in (("from", source), ("path", operation["path"] if op != "test" else None)):
        if op == "copy" and path == source:
            if path in _HOLDING and path != "/metadata/labels":
                return (
                    f"'{path}' cannot be copied: kustomize keeps its own files there while it builds",
                    field,
                )
            continue  # it changes nothing
        if path in _IDENTITY:
            return f"{path} is the object's identity, which references rely on", field
        if path in _HOLDING:
            held = "the object's identity or the labels that it is queued and found by"
            return f"'{path}' holds {held}; patch a key inside it", field
    return None
