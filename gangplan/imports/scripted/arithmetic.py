"""Evaluate a shell's arithmetic whose values are known: integers, names and the usual operators."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

_ALLOWED = re.compile(r"[0-9A-Za-z_+\-*/%() \t<>=!]*")
_LARGEST = 10**12
_LONGEST = 200
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate_shell_arithmetic(text: str, values: Mapping[str, str]) -> int | None:
    """Return the value of `$((text))`; None if a name is not known, or for more than simple arithmetic."""
    if len(text) > _LONGEST or not _ALLOWED.fullmatch(text) or "**" in text or not text.strip():
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _evaluate_shell_arithmetic_node(tree.body, values)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _evaluate_shell_arithmetic_node(node: ast.expr, values: Mapping[str, str]) -> int:
    """Return the value of a node. Raises ValueError for what is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return _check_number_bound(int(node.value))
    if isinstance(node, ast.Name):
        text = values.get(node.id, "")
        if re.fullmatch(r"[0-9]{1,12}", text):
            return int(text)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        first = _evaluate_shell_arithmetic_node(node.left, values)
        second = _evaluate_shell_arithmetic_node(node.comparators[0], values)
        compare = next((one for kind, one in _COMPARISONS.items() if isinstance(node.ops[0], kind)), None)
        if compare is not None:
            return int(compare(first, second))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _evaluate_shell_arithmetic_node(node.operand, values)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        left, right = (
            _evaluate_shell_arithmetic_node(node.left, values),
            _evaluate_shell_arithmetic_node(node.right, values),
        )
        if isinstance(node.op, ast.Add):
            return _check_number_bound(left + right)
        if isinstance(node.op, ast.Sub):
            return _check_number_bound(left - right)
        if isinstance(node.op, ast.Mult):
            return _check_number_bound(left * right)
        if isinstance(node.op, ast.Div):
            return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        if isinstance(node.op, ast.Mod):
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
    raise ValueError(ast.dump(node))


def _check_number_bound(number: int) -> int:
    if abs(number) > _LARGEST:
        raise ValueError(number)
    return number
