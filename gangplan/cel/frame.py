"""What evaluation has in hand: the frame of values, what failed, what loops go through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.values import go_name

Frame = list[Any]
FAILED = (EvalError, UnknownError)


class MissingVariable:
    """The value of a variable that the activation does not have."""

    __slots__ = ()


MISSING = MissingVariable()


def entries(values: Any, *, two: bool) -> Iterator[tuple[Any, Any]]:
    """What a loop goes through: elements or keys alone, or positions and keys with what is there."""
    if isinstance(values, Mapping):
        return iter(values.items())
    if isinstance(values, list | tuple):
        return iter(enumerate(values)) if two else ((value, None) for value in values)
    if two:
        raise EvalError(f"unsupported comprehension range type: {go_name(values)}")
    raise EvalError(f"got '{go_name(values)}', expected iterable type")


def is_member(value: Any, members: frozenset[tuple[type, object]]) -> bool:
    """Whether a value is one of the constants; nothing but simple values can be."""
    if isinstance(value, bytes):
        raise CrashError("runtime error: hash of unhashable type types.Bytes")
    return isinstance(value, str | int | float) and (type(value), value) in members
