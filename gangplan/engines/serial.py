"""Everything in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class SerialEngine:
    """Calls one after the other."""

    name = "serial"

    def map(
        self,
        call: Callable[[Task], Result],
        tasks: Sequence[Task],
        setup: Callable[..., None],
        arguments: tuple[object, ...],
    ) -> Iterator[Result]:
        """See `Engine`."""
        setup(*arguments)
        return map(call, tasks)
