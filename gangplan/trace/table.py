"""A path of a rendered object in, the first row of a table that fits out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gangplan.objects import Body, walk
from gangplan.trace.cause import Cause, Path
from gangplan.trace.files import at, own

# What a row does: the context of the trace, and the steps that its stars stand for, to causes.
Rule = Callable[[Any, Path], Sequence[Cause]]


class Table:
    """Rows of a pattern and a rule. A pattern is a path with blanks: `*` any step, a last `**` any rest."""

    def __init__(self, *rows: tuple[str, Rule]) -> None:
        self._rows = [(tuple(pattern.split(" ")), rule) for pattern, rule in rows]

    def find(self, path: Path) -> tuple[Rule, Path] | None:
        """The rule of the first row that fits, and what its stars stand for."""
        for pattern, rule in self._rows:
            stars = _fit(pattern, path)
            if stars is not None:
                return rule, stars
        return None


def _fit(pattern: tuple[str, ...], path: Path) -> Path | None:
    rest = pattern[-1] == "**"
    fixed = pattern[:-1] if rest else pattern
    if len(path) < len(fixed) or (not rest and len(path) != len(fixed)):
        return None
    stars: list[str | int] = []
    for token, step in zip(fixed, path, strict=False):
        if token == "*":
            stars.append(step)
        elif token != str(step):
            return None
    return tuple(stars) + (path[len(fixed) :] if rest else ())


def looked_up(
    table: Table | None, context: Any, body: Body, kept: Callable[[Path], list[Cause]] | None = None
) -> Callable[[Path], list[Cause]]:
    """The causes of a path: of the field itself, or of all fields of a mapping or list.

    `kept` are those that were kept beside the value, where it has some; else the table tells.
    """

    def one(path: Path) -> list[Cause]:
        if kept is not None and (causes := kept(path)):
            return causes
        found = table.find(path) if table else None
        return list(found[0](context, found[1])) if found else [own("gangplan writes it")]

    def causes(path: Path) -> list[Cause]:
        if not path:
            return [own("the object as a whole")]
        value = at(body, path)
        if isinstance(value, dict | list) and value:
            return [cause for inner, _ in walk(value) for cause in one((*path, *inner))]
        return one(path)

    return causes
