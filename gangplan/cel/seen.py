"""Values of an evaluation that depend on the object, with how to compute them for another object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.program import CelProgram
from gangplan.cel.questions import EXACT_TYPES, PathValues, UnforeseenPathError
from gangplan.cel.values import Optional

ValueReader = Callable[[PathValues], Any]


class StopError(Exception):
    """The path cannot be recorded from here on."""


class SeenValue:
    """A value that depends on the object: its current value, the numbers of its sources, and how to read it.

    `number` is the number of a value that was given, taken or spread, and -1 for the result of a function.
    `fixed` are fields that are the same for every object.
    """

    __slots__ = ("fixed", "number", "read", "sources", "value")

    def __init__(
        self,
        value: Any,
        sources: tuple[int, ...],
        read: ValueReader,
        number: int = -1,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        self.value = value
        self.sources = sources
        self.read = read
        self.number = number
        self.fixed = fixed or {}


class BuiltList(list[Any]):
    """A list that an expression built, which may contain seen values."""


class EvaluatedVariables:
    """The `variables` of a policy: programs by name, each evaluated once."""

    def __init__(self, programs: Mapping[str, CelProgram], run: Callable[[CelProgram], Any]) -> None:
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


def lift_cel_value(value: Any) -> SeenValue:
    """Return a value as a `SeenValue` one, with how to read it. Raises `StopError` for a kind that cannot
    be read."""
    if isinstance(value, SeenValue):
        return value
    if type(value) is BuiltList:
        parts = [lift_cel_value(part) for part in value]
        readers = [part.read for part in parts]
        return SeenValue(
            [part.value for part in parts],
            merge_sources(*parts),
            lambda values: [read(values) for read in readers],
        )
    if isinstance(value, EvaluatedVariables | Optional):
        raise StopError
    return SeenValue(value, (), lambda values: value)


def build_entry_reader(read: ValueReader, place: int) -> ValueReader:
    """Return a reader of a list's entry, or a mapping's key, at a position."""
    return lambda values: list(read(values))[place]


def build_cel_call_reader(call: Callable[..., Any], readers: list[ValueReader]) -> ValueReader:
    """Return a reader that applies a function to what the readers return."""
    if len(readers) == 1:
        (only,) = readers
        return lambda values: call(only(values))
    if len(readers) == 2:
        one, two = readers
        return lambda values: call(one(values), two(values))
    return lambda values: call(*[read(values) for read in readers])


def merge_sources(*parts: SeenValue) -> tuple[int, ...]:
    """Return the numbers of all sources of the parts."""
    return tuple(sorted({number for part in parts for number in part.sources}))


def is_mixed(value: Any) -> bool:
    """Return whether a value may depend on the object, so that a function cannot be called with it
    directly."""
    return isinstance(value, SeenValue | BuiltList | EvaluatedVariables | Optional)


def expect_bool(value: Any) -> bool:
    """Return a boolean. Raises `UnforeseenPathError` for any other value."""
    if type(value) is not bool:
        raise UnforeseenPathError
    return value


def measure_cel_loop_range(value: Any) -> tuple[type, int]:
    """Return the type of what a loop goes through, and its size. Raises `UnforeseenPathError` for any other
    value."""
    if type(value) is not list and type(value) is not dict:
        raise UnforeseenPathError
    return type(value), len(value)


def tag_cel_value_with_type(value: Any) -> tuple[type, Any]:
    """Return a value with its type, as an answer. Raises `UnforeseenPathError` for a value that Python may
    equate to another."""
    if type(value) not in EXACT_TYPES:
        raise UnforeseenPathError
    return type(value), value
