"""Parse flags into changes of a file: `env.SEED=1` sets a field, `timeout-` removes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gangplan.errors import UserError
from gangplan.findings import FieldPath
from gangplan.records import dataclass

# A name, in which a backslash precedes a dot that is part of it, or an entry of a list.
_STEP = re.compile(r"(?P<name>(?:\\.|[^\\.\[\]])+)|\[(?P<index>[0-9]{1,6})\]")


@dataclass(frozen=True, slots=True)
class FlagChange:
    """One change: the field, the flag as typed, and the text of the new value; None removes the field."""

    path: FieldPath
    typed: str
    text: str | None


def parse_changes(sets: Iterable[str], unsets: Iterable[str]) -> list[FlagChange]:
    """Return the changes that flags ask for, those of --set first. Raises UserError."""
    found = [_parse_yaml_edit_from_set_flag(text) for text in sets]
    found += [
        FlagChange(parse_typed_path(text, f"--unset {text}"), f"--unset {text}", None) for text in unsets
    ]
    _refuse_overlapping_field_edits(found)
    return found


def _parse_yaml_edit_from_set_flag(text: str) -> FlagChange:
    name, equals, value = text.partition("=")
    typed = f"--set {text}"
    if equals:
        return FlagChange(parse_typed_path(name, typed), typed, value)
    if text.endswith("-") and len(text) > 1:
        return FlagChange(parse_typed_path(text[:-1], typed), typed, None)
    help = f"Write --set {text}=VALUE, or --set {text}- to remove the field."
    raise UserError(f"{typed} has no value", help)


def parse_typed_path(text: str, typed: str) -> FieldPath:
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


def _refuse_overlapping_field_edits(changes: Sequence[FlagChange]) -> None:
    """Refuse two changes of the same field, or of a field and a part of it: they are ambiguous.

    Raises UserError.
    """
    for index, one in enumerate(changes):
        for other in changes[:index]:
            most = min(len(one.path), len(other.path))
            if one.path[:most] == other.path[:most]:
                message = f"{other.typed} and {one.typed} change the same field"
                raise UserError(message, "Leave one of them out.")
