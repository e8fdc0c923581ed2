"""Values of an evaluation that depend on the object, with how to compute them for another object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.program import Program
from gangplan.cel.questions import EXACT, UnforeseenError, Values
from gangplan.cel.values import Optional

Reader = Callable[[Values], Any]


class StopError(Exception):
    """The path cannot be recorded from here on."""


class Seen:
    """A value that depends on the object: its current value, the numbers of its sources, and how to read it.

    `number` is the number of a value that was given, taken or spread, and -1 for the result of a function.
    `fixed` are fields that are the same for every object.
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
    """A list that an expression built, which may contain seen values."""


class Named:
    """The `variables` of a policy: programs by name, each evaluated once."""

    def __init__(self, programs: Mapping[str, Program], run: Callable[[Program], Any]) -> None:
        self.programs = programs
        self.run = run
        self.known: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return the value of a variable. Raises `StopError` for an unknown one."""
        if name not in self.known:
            if name not in self.programs:
                raise StopError
            self.known[name] = self.run(self.programs[name])
        return self.known[name]


def lifted(value: Any) -> Seen:
    """Return a value as a `Seen` one, with how to read it. Raises `StopError` for a kind that cannot
    be read."""
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
    """Return a reader of a list's entry, or a mapping's key, at a position."""
    return lambda values: list(read(values))[place]


def applied(call: Callable[..., Any], readers: list[Reader]) -> Reader:
    """Return a reader that applies a function to what the readers return."""
    if len(readers) == 1:
        (only,) = readers
        return lambda values: call(only(values))
    if len(readers) == 2:
        one, two = readers
        return lambda values: call(one(values), two(values))
    return lambda values: call(*[read(values) for read in readers])


def union(*parts: Seen) -> tuple[int, ...]:
    """Return the numbers of all sources of the parts."""
    return tuple(sorted({number for part in parts for number in part.sources}))


def is_mixed(value: Any) -> bool:
    """Return whether a value may depend on the object, so that a function cannot be called with it
    directly."""
    return isinstance(value, Seen | Made | Named | Optional)


def bool_of(value: Any) -> bool:
    """Return a boolean. Raises `UnforeseenError` for any other value."""
    if type(value) is not bool:
        raise UnforeseenError
    return value


def count_of(value: Any) -> tuple[type, int]:
    """Return the type of what a loop goes through, and its size. Raises `UnforeseenError` for any other
    value."""
    if type(value) is not list and type(value) is not dict:
        raise UnforeseenError
    return type(value), len(value)


def named(value: Any) -> tuple[type, Any]:
    """Return a value with its type, as an answer. Raises `UnforeseenError` for a value that Python may equate
    to another."""
    if type(value) not in EXACT:
        raise UnforeseenError
    return type(value), value
