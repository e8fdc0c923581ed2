"""Parse flags into changes of a file: `env.SEED=1` sets a field, `timeout-` removes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.source import Path

# A name, in which a backslash precedes a dot that is part of it, or an entry of a list.
_STEP = re.compile(r"(?P<name>(?:\\.|[^\\.\[\]])+)|\[(?P<index>[0-9]{1,6})\]")


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the field, the flag as typed, and the text of the new value; None removes the field."""

    path: Path
    typed: str
    text: str | None


def changes_of(sets: Iterable[str], unsets: Iterable[str]) -> list[Change]:
    """Return the changes that flags ask for, those of --set first. Raises UserError."""
    found = [_set(text) for text in sets]
    found += [Change(path_of(text, f"--unset {text}"), f"--unset {text}", None) for text in unsets]
    _check_apart(found)
    return found


def _set(text: str) -> Change:
    name, equals, value = text.partition("=")
    typed = f"--set {text}"
    if equals:
        return Change(path_of(name, typed), typed, value)
    if text.endswith("-") and len(text) > 1:
        return Change(path_of(text[:-1], typed), typed, None)
    help = f"Write --set {text}=VALUE, or --set {text}- to remove the field."
    raise UserError(f"{typed} has no value", help)


def path_of(text: str, typed: str) -> Path:
    r"""Parse `env.SEED`, `command[1]` or `labels.example\.com/team` into a path. Raises UserError."""
    path: list[str | int] = []
    at, is_next = 0, True
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["name"] is not None) != is_next:
            break
        path.append(int(match["index"]) if match["name"] is None else re.sub(r"\\(.)", r"\1", match["name"]))
        at, is_next = match.end(), False
        if text[at : at + 1] == "." and at + 1 < len(text):
            at, is_next = at + 1, True
    if at < len(text) or not path or isinstance(path[0], int):
        raise UserError(
            f"{typed}: '{text}' does not name a field",
            r"Write workers, checkpoint.to, command[1], or labels.example\.com/team for a name with a dot.",
        )
    return tuple(path)


def _check_apart(changes: Sequence[Change]) -> None:
    """Refuse two changes of the same field, or of a field and a part of it: they are ambiguous.

    Raises UserError.
    """
    for index, one in enumerate(changes):
        for other in changes[:index]:
            most = min(len(one.path), len(other.path))
            if one.path[:most] == other.path[:most]:
                message = f"{other.typed} and {one.typed} change the same field"
                raise UserError(message, "Leave one of them out.")
