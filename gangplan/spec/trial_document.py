"""A trial as if it had a file of its own; every place is one in the sweep's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.findings import FieldPath, Fix, Location
from gangplan.source import Document
from gangplan.spec.placeholders import GivenValue, fill_scalar, list_parameters_at

TEMPLATE = "template"


class TrialDocument(Document):
    """The document of a trial: the template with its values filled in.

    Fields that the sweep sets for its trials (`name`, `state`) have their place in the sweep.
    """

    __slots__ = ("_base", "_given", "_own")

    def __init__(
        self, base: Document, value: Mapping[str, Any], given: Mapping[str, GivenValue], own: frozenset[str]
    ) -> None:
        """Store the whole job as `value`; `own` are its fields that do not come from the template."""
        super().__init__(base.file, value, "")
        self._base, self._given, self._own = base, given, own

    def _there(self, path: FieldPath) -> FieldPath:
        inside = self._base.value[TEMPLATE]
        if path[:1] == ("parameters",) and "parameters" in inside and (path[1:] or TEMPLATE not in inside):
            return (TEMPLATE, *path)  # parameters of the template that the job is made from
        return path[:1] if not path or path[0] in self._own else (TEMPLATE, *path)

    def where(self, path: FieldPath, key: bool = False) -> Location:
        """Return the place in the sweep's file."""
        return self._base.where(self._there(path) if path else (TEMPLATE,), key=key)

    def home(self, path: FieldPath) -> tuple[str, FieldPath]:
        """Return the sweep's file, and the path in it."""
        return self._base.home(self._there(path))

    def through(self, path: FieldPath) -> tuple[tuple[str, FieldPath], ...]:
        """Return where the sweep has values for the parameters in the value at a path."""
        names = list_parameters_at(self._base.value, self._there(path))
        tried: Mapping[str, Any] = self._base.value["parameters"]
        of = (tried.get("random") or {}).get("of") or {}
        places: list[FieldPath] = [("grid", name) for name in tried.get("grid") or () if name in names]
        for index, entry in enumerate(tried.get("list") or ()):
            places += [("list", index, name) for name in entry if name in names]
        places += [("random", "of", name) for name in of if name in names]
        return tuple((self.file, ("parameters", *place)) for place in places)

    def text(self, path: FieldPath) -> str | None:
        """Return the scalar as it would be written in the trial's own file."""
        found = self._base.text(self._there(path))
        if found is None:
            return None
        filled = fill_scalar(found, self._given)
        return found if filled is None else filled

    def is_quoted(self, path: FieldPath) -> bool:
        """Return whether the value at a path can only be text."""
        return self._base.is_quoted(self._there(path))

    def inside(self, path: FieldPath, offset: int) -> Location:
        """Return the place of a character; if the value is filled in, that of the whole value."""
        found = self._base.text(self._there(path)) or ""
        if fill_scalar(found, self._given) is not None:
            return self.where(path)
        return self._base.inside(self._there(path), offset)

    def fix(self, path: FieldPath, replacement: str, why: str, key: bool = False) -> Fix | None:
        """Return the fix of the sweep's file; None for a filled-in value, which differs in other trials."""
        found = self._base.text(self._there(path)) or ""
        if not key and fill_scalar(found, self._given) is not None:
            return None
        return self._base.fix(self._there(path), replacement, why, key=key)

    def like(self, path: FieldPath, text: str) -> str | None:
        """Return another value for the path in the style of the current one."""
        return self._base.like(self._there(path), text)

    def __getstate__(self) -> Any:
        return self._base, self.value, self._given, self._own

    def __setstate__(self, state: Any) -> None:
        base, value, given, own = state
        self.__init__(base, value, given, own)  # type: ignore[misc]
