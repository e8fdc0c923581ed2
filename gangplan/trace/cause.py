"""What decided a rendered field: a place in a file that somebody wrote, or gangplan itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gangplan.findings import Location
from gangplan.records import dataclass
from gangplan.validate.problems import dotted

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a rendered field comes from.

    `where` is None for what gangplan decides itself. `file` and `field` name the field of a spec, team,
    cluster or catalog file, or of a kustomization. `is_written` tells whether it stands there; where it does
    not, a default holds, and `where` is the place to write it. `is_direct` tells a field whose value shows in
    the rendered one from one that only decides whether, or which.
    """

    where: Location | None
    because: str
    file: str = ""
    field: Path = ()
    is_written: bool = True
    is_direct: bool = True

    def aside(self) -> Cause:
        """The same as a cause whose value does not show."""
        return replace(self, is_direct=False)


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a rendered field comes from: the place to change it, in words why, and the field of that file.

    `field` is written with dots; empty where no field of a file decides. `causes` are all of them, the
    deciding one first.
    """

    where: Location
    because: str
    field: str = ""
    causes: tuple[Cause, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether gangplan alone decided."""
        return not any(cause.where for cause in self.causes)


def asides(causes: Iterable[Cause]) -> list[Cause]:
    """The causes as such that do not show."""
    return [cause.aside() for cause in causes]


def trace_of(causes: Iterable[Cause], home: Location) -> Trace:
    """The trace that some causes make; `home` is the place where none of them is in a file.

    What is written and shows comes first, then what is written, then what could be.
    """
    unique: dict[tuple[str, Path, str], Cause] = {}
    for cause in causes:
        key = (cause.file, cause.field, "" if cause.where else cause.because)
        known = unique.get(key)
        if known is None or (cause.is_direct and not known.is_direct):
            unique[key] = cause
    ranked = sorted(unique.values(), key=_rank)
    first = ranked[0]
    # Where gangplan decides by itself, what somebody wrote and it looked at is the place to change it.
    placed = first if first.where else next((one for one in ranked if one.where and one.is_written), first)
    return Trace(placed.where or home, first.because, dotted(placed.field), tuple(ranked))


def _rank(cause: Cause) -> int:
    if cause.where is None:
        return 2
    return (0 if cause.is_written else 1) if cause.is_direct else (3 if cause.is_written else 4)
