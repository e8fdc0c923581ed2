"""What evaluation works on: the frame of values, failures, and the entries of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.values import go_type_of

Frame = list[Any]
EVALUATION_FAILURES = (EvalError, UnknownError)


class MissingVariable:
    """The value of a variable that the activation lacks."""

    __slots__ = ()


MISSING_VARIABLE = MissingVariable()


def iterate_cel_loop_range(values: Any, *, two: bool) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over what a loop goes through: elements or keys alone, or positions and keys with
    values."""
    if isinstance(values, Mapping):
        return iter(values.items())
    if isinstance(values, list | tuple):
        return iter(enumerate(values)) if two else ((value, None) for value in values)
    if two:
        raise EvalError(f"unsupported comprehension range type: {go_type_of(values)}")
    raise EvalError(f"got '{go_type_of(values)}', expected iterable type")


def is_member(value: Any, members: frozenset[tuple[type, object]]) -> bool:
    """Return whether a value is one of the constants, which are all simple values."""
    if isinstance(value, bytes):
        raise CrashError("runtime error: hash of unhashable type types.Bytes")
    return isinstance(value, str | int | float) and (type(value), value) in members
