"""Causes of a rendered field: places in files that people write, or gangplan itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from gangplan.findings import FieldPath, Location
from gangplan.records import dataclass
from gangplan.validate.problems import format_path


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a rendered field comes from.

    `where` is None if gangplan decides by itself. `file` and `field` name the field of a spec, team, cluster
    or catalog file, or of a kustomization. `is_written` says whether the file contains it; if not, a default
    applies, and `where` is the place to write it. `is_direct` distinguishes a field whose value appears in
    the rendered one from one that only decides whether or which value appears. `through` are further fields,
    by file, that the value comes from, such as a parameter of a template.
    """

    where: Location | None
    because: str
    file: str = ""
    field: FieldPath = ()
    is_written: bool = True
    is_direct: bool = True
    through: tuple[tuple[str, FieldPath], ...] = ()

    def is_at(self, file: str, fields: Collection[FieldPath]) -> bool:
        """Return whether it is, holds, is part of or comes from one of some fields of a file."""
        places = ((self.file, self.field), *self.through)
        return any(home == file and _overlaps(field, fields) for home, field in places)

    def aside(self) -> Cause:
        """Return the same cause as an indirect one, whose value does not appear in the field."""
        return replace(self, is_direct=False)


def _overlaps(field: FieldPath, asked: Collection[FieldPath]) -> bool:
    """Return whether a field is, holds or is part of one of those `asked` for; the whole file does not
    count."""
    return bool(field) and any(field[: len(one)] == one or one[: len(field)] == field for one in asked)


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a rendered field comes from: the place to change it, the reason, and the field of that file.

    `field` is written with dots; empty if no field of a file decides. `causes` are all causes, the deciding
    one first.
    """

    where: Location
    because: str
    field: str = ""
    causes: tuple[Cause, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether gangplan alone decided."""
        return not any(cause.where for cause in self.causes)


def mark_indirect(causes: Iterable[Cause]) -> list[Cause]:
    """Return the causes as indirect ones."""
    return [cause.aside() for cause in causes]


def build_trace_from_causes(causes: Iterable[Cause], home: Location) -> Trace:
    """Return the trace for some causes; `home` is its place if none of them is in a file.

    Written direct causes come first, then direct ones that could be written, then what gangplan decides, then
    indirect ones.
    """
    unique: dict[tuple[str, FieldPath, str], Cause] = {}
    for cause in causes:
        key = (cause.file, cause.field, "" if cause.where else cause.because)
        known = unique.get(key)
        if known is None or (cause.is_direct and not known.is_direct):
            unique[key] = cause
    ranked = sorted(unique.values(), key=_rank_field_cause)
    first = ranked[0]
    # If gangplan decides by itself, the place to change it is a written field that it considered.
    placed = first if first.where else next((one for one in ranked if one.where and one.is_written), first)
    return Trace(placed.where or home, first.because, format_path(placed.field), tuple(ranked))


def _rank_field_cause(cause: Cause) -> int:
    if cause.where is None:
        return 2
    return (0 if cause.is_written else 1) if cause.is_direct else (3 if cause.is_written else 4)
