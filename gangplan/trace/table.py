"""Tables from paths in rendered objects to rules; the first row that matches decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.job import ValueOrigin
from gangplan.objects import Body, walk_leaves
from gangplan.trace.cause import Cause
from gangplan.trace.files import build_own_cause, find_value_at
from gangplan.trace.origins import trace_origins_to_causes

# A rule of a row: from the context of the trace and the steps that match its stars to causes.
CauseRule = Callable[[Any, FieldPath], Sequence[Cause]]
CauseRow = tuple[str, CauseRule | str]


class CauseTable:
    """Rows of a pattern and a rule. A pattern is a path with blanks: `*` is any step, a final `**` any rest.

    A rule may be a text of origins, as `build_origin_rule` reads it.
    """

    def __init__(self, *rows: CauseRow) -> None:
        self._rows = [
            (tuple(pattern.split(" ")), build_origin_rule(rule) if isinstance(rule, str) else rule)
            for pattern, rule in rows
        ]

    def find(self, path: FieldPath) -> tuple[CauseRule, FieldPath] | None:
        """Return the rule of the first row that matches, and the steps that its stars match."""
        for pattern, rule in self._rows:
            stars = _find_pattern_stars_in_traced_field(pattern, path)
            if stars is not None:
                return rule, stars
        return None


def build_origin_rule(text: str) -> Callable[[Any, FieldPath], list[Cause]]:
    """Return the rule for a text of origins, separated by `|`.

    `spec.workdir` is a field, of the file or of another role that an origin may name; `{pool}` and `{0}`
    stand for a word of the context and for a step that a star matches. `~` marks an indirect origin, a
    trailing `#` one that points to a name. `: why` adds a reason, and `= why` is what gangplan decides.
    """
    parts = [_parse_cause_table_origin(one.strip()) for one in text.split(" | ")]

    def rule(context: Any, stars: FieldPath) -> list[Cause]:
        filled = _Filling(context, stars)
        run = getattr(context, "context", context)  # the run of a pod's context
        return trace_origins_to_causes(run, (filled.in_origin(one) for one in parts))

    return rule


def _parse_cause_table_origin(text: str) -> ValueOrigin:
    if text.startswith("= "):
        return ValueOrigin("", because=text[2:])
    place, _, because = text.partition(": ")
    is_aside, is_key = place.startswith("~"), place.endswith("#")
    role, *path = place.strip("~#").split(".")
    return ValueOrigin(role, tuple(path), because, not is_aside, is_key)


class _Filling(dict[str, Any]):
    """The words of a context, and the steps that its stars match by number."""

    def __init__(self, context: Any, stars: FieldPath) -> None:
        super().__init__((str(number), step) for number, step in enumerate(stars))
        self._context = context

    def __missing__(self, word: str) -> Any:
        return self._context.word(word)

    def in_origin(self, origin: ValueOrigin) -> ValueOrigin:
        """Return an origin with all placeholders replaced."""
        path = tuple(
            step
            for token in origin.path
            for step in (
                _convert_to_field_path(self[str(token)[1:-1]]) if str(token).startswith("{") else (token,)
            )
        )
        because = origin.because.format_map(self) if "{" in origin.because else origin.because
        return replace(origin, path=path, because=because)


def _convert_to_field_path(found: Any) -> FieldPath:
    return found if isinstance(found, tuple) else (found,)


def _find_pattern_stars_in_traced_field(pattern: tuple[str, ...], path: FieldPath) -> FieldPath | None:
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


def build_cause_finder_from_table(
    table: CauseTable | None, context: Any, body: Body, kept: Callable[[FieldPath], list[Cause]] | None = None
) -> Callable[[FieldPath], list[Cause]]:
    """Return a function from a path to its causes: the field's, or those of all fields in it.

    `kept` returns the causes recorded with the value; the table is used if there are none.
    """

    def one(path: FieldPath) -> list[Cause]:
        if kept is not None and (causes := kept(path)):
            return causes
        found = table.find(path) if table else None
        return list(found[0](context, found[1])) if found else [build_own_cause("gangplan writes it")]

    def causes(path: FieldPath) -> list[Cause]:
        if not path:
            return [build_own_cause("the object as a whole")]
        value = find_value_at(body, path)
        if isinstance(value, dict | list) and value:
            return [cause for inner, _ in walk_leaves(value) for cause in one((*path, *inner))]
        return one(path)

    return causes
