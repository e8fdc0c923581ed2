"""A trial as if it had a file of its own, whose every place is one in the sweep's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.findings import Fix, Location
from gangplan.source import Document, Path
from gangplan.spec.placeholders import Given, written

TEMPLATE = "template"


class TrialDocument(Document):
    """The document of a trial: the template with its values filled in.

    Fields that the sweep gives to its trials (`name`, `state`) stand where the sweep says them.
    """

    __slots__ = ("_base", "_given", "_own")

    def __init__(
        self, base: Document, value: Mapping[str, Any], given: Mapping[str, Given], own: frozenset[str]
    ) -> None:
        """`value` is the whole job; `own` are its fields that are not the template's."""
        super().__init__(base.file, value, "")
        self._base, self._given, self._own = base, given, own

    def _there(self, path: Path) -> Path:
        inside = self._base.value[TEMPLATE]
        if path[:1] == ("parameters",) and "parameters" in inside and (path[1:] or TEMPLATE not in inside):
            return (TEMPLATE, *path)  # those of the template that the job is made from
        return path[:1] if not path or path[0] in self._own else (TEMPLATE, *path)

    def where(self, path: Path, key: bool = False) -> Location:
        """The place in the sweep's file."""
        return self._base.where(self._there(path) if path else (TEMPLATE,), key=key)

    def text(self, path: Path) -> str | None:
        """The scalar as it would be written in a file of the trial's own."""
        found = self._base.text(self._there(path))
        if found is None:
            return None
        filled = written(found, self._given)
        return found if filled is None else filled

    def is_quoted(self, path: Path) -> bool:
        """Whether the value there is text and nothing else."""
        return self._base.is_quoted(self._there(path))

    def inside(self, path: Path, offset: int) -> Location:
        """The place of a character; of the whole value where it is filled in."""
        found = self._base.text(self._there(path)) or ""
        if written(found, self._given) is not None:
            return self.where(path)
        return self._base.inside(self._there(path), offset)

    def fix(self, path: Path, replacement: str, why: str, key: bool = False) -> Fix | None:
        """The fix of the sweep's file; none of what is filled in, which other trials have otherwise."""
        found = self._base.text(self._there(path)) or ""
        if not key and written(found, self._given) is not None:
            return None
        return self._base.fix(self._there(path), replacement, why, key=key)

    def like(self, path: Path, text: str) -> str | None:
        """How to write another value there."""
        return self._base.like(self._there(path), text)

    def __getstate__(self) -> Any:
        return self._base, self.value, self._given, self._own

    def __setstate__(self, state: Any) -> None:
        base, value, given, own = state
        self.__init__(base, value, given, own)  # type: ignore[misc]
