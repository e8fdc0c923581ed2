"""Check constants as the API server does after the types: regular expressions, times, formats, literals.

Sources: cel-go v0.26.0 cel/validator.go and ext/formatting.go, switched on by Kubernetes 1.29
(pkg/cel/environment/base.go); constant patterns of `find`, `findAll` and `matches` are compiled when the
program is made (pkg/cel/library/regex.go), on every version.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.cel.ast import AstNode, Call, ListNode, Literal, MapNode, list_cel_child_nodes
from gangplan.cel.checked import Checked
from gangplan.cel.clock import build_timestamp, parse_cel_timestamp, parse_go_duration
from gangplan.cel.errors import CompileError, EvalError, Issue, UnknownError
from gangplan.cel.formats import check_cel_format_call
from gangplan.cel.library import regex
from gangplan.cel.types import Type
from gangplan.cel.unify import cel_type_kind_of, describe_cel_type

_SINCE = 29


def check_cel_constants(checked: Checked, text: str, minor: int) -> None:
    """Check the constants of an expression.

    Raises `CompileError` if a constant does not fit its function, or a literal mixes types.
    """
    issues: list[Issue] = []
    nodes = list(_walk_cel_ast_nodes(checked.node, is_exempt=False))
    for node, is_exempt in nodes:
        if isinstance(node, ListNode | MapNode) and not (is_exempt and minor >= _SINCE):
            issues += _check_mixed_cel_element_types(node, checked)
        elif isinstance(node, Call) and minor >= _SINCE:
            issues += _check_constant_arguments(node, checked)
    if issues:
        raise CompileError(text, tuple(sorted(issues, key=lambda issue: issue.offset)))


def _check_constant_arguments(node: Call, checked: Checked) -> list[Issue]:
    """Return complaints about the constants of a call."""
    if node.function == "matches":
        return _check_cel_constant_pattern(node, 0)
    return (
        check_cel_format_call(node, checked) if node.function == "format" else _check_cel_time_constant(node)
    )


def _walk_cel_ast_nodes(node: AstNode, *, is_exempt: bool) -> Iterator[tuple[AstNode, bool]]:
    """Yield every node with whether it is inside the arguments of a `format` call."""
    yield node, is_exempt
    inside = is_exempt or (isinstance(node, Call) and node.function == "format")
    for child in list_cel_child_nodes(node):
        yield from _walk_cel_ast_nodes(child, is_exempt=inside)


def _check_cel_time_constant(node: Call) -> list[Issue]:
    """Return a complaint about a constant without a value: `duration('1hx')`, `timestamp('nope')`."""
    if node.function not in ("duration", "timestamp") or not node.arguments:
        return []
    argument = node.arguments[0]
    if isinstance(argument, Literal) and not _is_cel_time_constant(node.function, argument.value):
        return [Issue(argument.offset, f"invalid {node.function} argument")]
    return []


def _is_cel_time_constant(function: str, value: object) -> bool:
    if isinstance(value, str):
        return (parse_go_duration if function == "duration" else parse_cel_timestamp)(value) is not None
    if not isinstance(value, int):
        return True
    try:
        build_timestamp(value)
    except EvalError:
        return False
    # The server declares duration(int), but it always fails.
    return function == "timestamp"


def _check_cel_constant_pattern(node: Call, position: int) -> list[Issue]:
    """Return a complaint about a constant pattern that RE2 does not accept; the server checks the first
    argument of `matches`."""
    argument = node.arguments[position] if position < len(node.arguments) else None
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return []
    try:
        regex.compile_cel_pattern(argument.value)
    except UnknownError:
        return []
    except EvalError as error:
        message = "invalid matches argument" if node.function == "matches" else str(error)
        return [Issue(argument.offset, message)]
    return []


def _check_mixed_cel_element_types(node: ListNode | MapNode, checked: Checked) -> list[Issue]:
    """Return complaints about elements whose types differ, including `dyn` next to `string`."""
    types = checked.types
    if isinstance(node, ListNode):
        return _check_cel_entry_types_agree(
            [(e, types[e.id], at in node.optional) for at, e in enumerate(node.elements)]
        )[:1]
    keys = _check_cel_entry_types_agree([(entry.key, types[entry.key.id], False) for entry in node.entries])
    values = [(entry.value, types[entry.value.id], entry.optional) for entry in node.entries]
    return keys + _check_cel_entry_types_agree(values)


def _check_cel_entry_types_agree(entries: list[tuple[AstNode, Type, bool]]) -> list[Issue]:
    """Return a complaint for every entry whose type is not that of the first."""
    issues = []
    first: Type | None = None
    for node, type_, is_optional in entries:
        if is_optional:
            if cel_type_kind_of(type_) != "opaque":
                # cel-go v0.26.0 reads past the end here, and the API server answers 500.
                message = f"'?' needs an optional value and this is of type '{describe_cel_type(type_)}'"
                issues.append(Issue(node.offset, message))
                continue
            type_ = type_.parameters[0]
        if first is None:
            first = type_
        elif type_ != first:
            issues.append(
                Issue(
                    node.offset,
                    f"expected type '{describe_cel_type(first)}' but found '{describe_cel_type(type_)}'",
                )
            )
    return issues
