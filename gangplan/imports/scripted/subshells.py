"""Keep what a subshell does to folder, variables and options inside it: nothing of it reaches what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.items import ScriptItem


@contextmanager
def restore_scope_after_subshell(scope: ScriptScope) -> Iterator[None]:
    """Give the scope of a script back its variables and options when the subshell ends."""
    values, exported, present = dict(scope.values), set(scope.exported), set(scope.present)
    exports_all = scope.exports_all
    yield
    scope.set_inside |= scope.values.keys() - values.keys()
    scope.values, scope.exported, scope.present = values, exported, present
    scope.exports_all = exports_all


def unwrap_last_subshells(items: Sequence[ScriptItem]) -> None:
    """Take away the subshells after which the script does nothing: what they leave has no effect."""
    acting = (item for item in reversed(items) if item.kind not in ("set", "drop", "option", "file"))
    last = next((item.shells for item in acting), ())
    for item in items:
        if not item.shells:
            continue
        item.shells = tuple(one for one in item.shells if one not in last)
        if item.is_home and not item.shells:
            item.kind = "cd"


def write_subshell_ends(before: ScriptItem | None, after: ScriptItem | None) -> str:
    """Return the parentheses between two lines of a script that are in other subshells."""
    first, second = before.shells if before else (), after.shells if after else ()
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    closed, opened = len(first) - shared, len(second) - shared
    return "\n)" * closed + ("\n" if before and after else "") + "(\n" * opened
