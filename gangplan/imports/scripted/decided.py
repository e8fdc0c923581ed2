"""Decide which assignments of a list such as `[ $N -gt 1 ] && A=1 || A=2` a shell makes."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.scripted.conditions import evaluate_shell_condition
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.statements import DECLARATION_COMMANDS

_LISTED = ("&&", "||")


def find_skipped_assignments(
    parts: Sequence[ScriptCommand], text: str, scope: ScriptScope
) -> frozenset[int] | None:
    """Return the numbers of the assignments that the tests before them skip; None if only a run decides that.

    Without a test, commands are taken to succeed, unless something is assigned where one fails.
    """
    if len(parts) < 2 or not any(_assigns(part) for part in parts[1:]):
        return frozenset()
    if not any(map(_tests, parts[:-1])) and not any(part.operator == "||" for part in parts[:-1]):
        return frozenset()
    status: bool | None = True
    skipped = set[int]()
    before, has_assigned = "", False
    for number, part in enumerate(parts):
        runs = True if before not in _LISTED or number == 0 else status if before == "&&" else _negate(status)
        if runs is None and _assigns(part):
            return None
        if runs is False and _assigns(part):
            skipped.add(number)
        if _tests(part) and runs is not False:
            if has_assigned:  # it may read what the list has just set
                return None
            held = evaluate_shell_condition(_written(part, text), scope)
            status = held if runs else status if held is status else None
        elif runs:
            status = True if _assigns(part) else None
        elif runs is None:
            status = None
        has_assigned |= _assigns(part)
        before = part.operator
    return frozenset(skipped)


def _negate(status: bool | None) -> bool | None:
    return None if status is None else not status


def _assigns(part: ScriptCommand) -> bool:
    return bool(part.sets) and (not part.words or part.texts[0] in DECLARATION_COMMANDS)


def _tests(part: ScriptCommand) -> bool:
    return bool(part.arithmetic) or (
        bool(part.words) and (part.texts[0] in ("[", "[[", "test", "!") or part.texts[0].startswith("[[ "))
    )


def _written(part: ScriptCommand, text: str) -> str:
    """Return the part as it is written, without the operator behind it."""
    return text[part.begin : max((word.end for word in part.words), default=part.end)]
