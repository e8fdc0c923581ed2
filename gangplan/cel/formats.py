"""Check that the clauses of a constant `'...'.format([...])` fit its arguments.

Source: cel-go v0.26.0, ext/formatting.go, the validator of strings version 2.
"""

from __future__ import annotations

import re

from gangplan.cel.ast import AstNode, Call, ListNode, Literal, MapNode
from gangplan.cel.checked import Checked
from gangplan.cel.errors import Issue
from gangplan.cel.types import DYN
from gangplan.cel.unify import cel_type_kind_of

_DURATION, _TIMESTAMP = "google.protobuf.Duration", "google.protobuf.Timestamp"
_TEXT = frozenset(
    (
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        _TIMESTAMP,
        "bytes",
        _DURATION,
        "type",
        "null_type",
    )
)
_FLOATS = frozenset(("double", "string"))
# The kinds that each clause accepts, and the API server's complaint about others.
_CLAUSES = {
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers"),
    "f": (_FLOATS, "fixed-point clause can only be used on doubles"),
    "e": (_FLOATS, "scientific clause can only be used on doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers"),
    "s": (
        _TEXT,
        (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
            "durations, and timestamps"
        ),
    ),
}
_PRECISION = re.compile(r"\.([0-9]*)")
_PARSING, _FORMATTING = "could not parse formatting clause", "error during formatting"


class _WrongError(Exception):
    """An invalid clause, or one that does not fit its argument (`node`)."""

    def __init__(self, message: str, node: AstNode | None = None) -> None:
        super().__init__(message)
        self.node = node


def check_cel_format_call(call: Call, checked: Checked) -> list[Issue]:
    """Return the issues of a call of `format` whose text and list of arguments are both written out."""
    target = call.target
    if not isinstance(target, Literal) or not isinstance(target.value, str) or len(call.arguments) != 1:
        return []
    arguments = call.arguments[0]
    if not isinstance(arguments, ListNode):
        return []
    given = arguments.elements
    try:
        used = _check_format_clauses(target.value, given, checked)
    except _WrongError as error:
        return [Issue((error.node or call).offset, str(error))]
    if len(given) > used:
        counts = f"(expected {used}, got {len(given)})"
        return [Issue(call.offset, f"too many arguments supplied to string.format {counts}")]
    return []


def _check_format_clauses(text: str, given: tuple[AstNode, ...], checked: Checked) -> int:
    """Return how many arguments the clauses of the text use."""
    used = at = 0
    while (at := text.find("%", at)) >= 0:
        if text.startswith("%%", at):
            at += 2
            continue
        if at + 1 >= len(text):
            raise _WrongError("unexpected end of string")
        if used >= len(given):
            raise _WrongError(f"index {used} out of range")
        letter, at = _parse_format_clause(text, at + 1)
        _check_format_clause_argument(letter, given[used], checked)
        used += 1
    return used


def _parse_format_clause(text: str, at: int) -> tuple[str, int]:
    """Return the letter of the clause that begins here, and the position after it."""
    precision = _PRECISION.match(text, at)
    if precision is not None:
        at = precision.end()
        prefix = f"{_PARSING}: error while parsing precision:"
        if at >= len(text):
            raise _WrongError(f"{prefix} could not find end of precision specifier")
        digits = precision.group(1)
        problem = "invalid syntax" if not digits else "value out of range" if int(digits) >= 2**63 else ""
        if problem:
            complaint = f'strconv.Atoi: parsing "{digits}": {problem}'
            raise _WrongError(f"{prefix} error while converting precision to integer: {complaint}")
    letter = text[at]
    if letter not in _CLAUSES and letter != "X":
        raise _WrongError(f'{_PARSING}: unrecognized formatting clause "{letter}"')
    return letter, at + 1


def _check_format_clause_argument(letter: str, node: AstNode, checked: Checked) -> None:
    kinds, complaint = _CLAUSES[letter.lower()] if letter == "X" else _CLAUSES[letter]
    bad = _find_wrongly_typed_cel_node(node, kinds, checked, is_deep=letter == "s")
    if bad is not None:
        name = checked.types[bad.id].name
        raise _WrongError(f"{_FORMATTING}: {complaint}, was given {name}", bad)


def _find_wrongly_typed_cel_node(
    node: AstNode, kinds: frozenset[str], checked: Checked, *, is_deep: bool
) -> AstNode | None:
    """Return the node whose type the clause does not accept; `%s` also looks into written lists and maps."""
    type_ = checked.types[node.id]
    if type_ != DYN and cel_type_kind_of(type_) not in kinds:
        return node
    parts: tuple[AstNode, ...] = ()
    if is_deep and isinstance(node, ListNode):
        parts = node.elements
    elif is_deep and isinstance(node, MapNode):
        parts = tuple(part for entry in node.entries for part in (entry.key, entry.value))
    found = (_find_wrongly_typed_cel_node(part, kinds, checked, is_deep=True) for part in parts)
    return next((bad for bad in found if bad is not None), None)
