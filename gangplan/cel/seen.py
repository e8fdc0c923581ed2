"""Values of an evaluation that depend on the object, and how another object's are made the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.program import Program
from gangplan.cel.questions import EXACT, UnforeseenError, Values
from gangplan.cel.values import Optional

Reader = Callable[[Values], Any]


class StopError(Exception):
    """The way cannot be put down from here on."""


class Seen:
    """A value that depends on the object: what it is now, the numbers it is made from, and how.

    `number` is that of a value which was given, taken or spread, -1 of one that a function made. `fixed`:
    fields that are the same for every object.
    """

    __slots__ = ("fixed", "number", "read", "sources", "value")

    def __init__(
        self,
        value: Any,
        sources: tuple[int, ...],
        read: Reader,
        number: int = -1,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        self.value = value
        self.sources = sources
        self.read = read
        self.number = number
        self.fixed = fixed or {}


class Made(list[Any]):
    """A list that an expression wrote; seen values may be in it."""


class Named:
    """`variables`: programs by name, each asked once."""

    def __init__(self, programs: Mapping[str, Program], run: Callable[[Program], Any]) -> None:
        self.programs = programs
        self.run = run
        self.known: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """The value of a variable."""
        if name not in self.known:
            if name not in self.programs:
                raise StopError
            self.known[name] = self.run(self.programs[name])
        return self.known[name]


def lifted(value: Any) -> Seen:
    """A value with how it is read from the values of an object."""
    if isinstance(value, Seen):
        return value
    if type(value) is Made:
        parts = [lifted(part) for part in value]
        readers = [part.read for part in parts]
        return Seen(
            [part.value for part in parts],
            union(*parts),
            lambda values: [read(values) for read in readers],
        )
    if isinstance(value, Named | Optional):
        raise StopError
    return Seen(value, (), lambda values: value)


def entry_of(read: Reader, place: int) -> Reader:
    """The entry of a list, or key of a mapping, at a place."""
    return lambda values: list(read(values))[place]


def applied(call: Callable[..., Any], readers: list[Reader]) -> Reader:
    """A function of what the readers read."""
    if len(readers) == 1:
        (only,) = readers
        return lambda values: call(only(values))
    if len(readers) == 2:
        one, two = readers
        return lambda values: call(one(values), two(values))
    return lambda values: call(*[read(values) for read in readers])


def union(*parts: Seen) -> tuple[int, ...]:
    """The numbers that parts are made from."""
    return tuple(sorted({number for part in parts for number in part.sources}))


def is_mixed(value: Any) -> bool:
    """Whether an object may be in it: a function cannot be called with it as it is."""
    return isinstance(value, Seen | Made | Named | Optional)


def bool_of(value: Any) -> bool:
    """A truth. UnforeseenError."""
    if type(value) is not bool:
        raise UnforeseenError
    return value


def count_of(value: Any) -> tuple[type, int]:
    """What a loop goes through, and how many. UnforeseenError."""
    if type(value) is not list and type(value) is not dict:
        raise UnforeseenError
    return type(value), len(value)


def named(value: Any) -> tuple[type, Any]:
    """Which value this is, as an answer. UnforeseenError for one that Python could take for another."""
    if type(value) not in EXACT:
        raise UnforeseenError
    return type(value), value
