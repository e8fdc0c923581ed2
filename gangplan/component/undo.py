"""Undo a component operation by operation to find the one that causes a problem.

Each state is what kustomize would build without the last operations. Such a state always exists; an object
without one operation in the middle need not. Steps that do not follow RFC 6902 are left for kustomize to
refuse: here they change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from gangplan.component.operations import PatchOperation
from gangplan.component.read import Component
from gangplan.findings import FieldPath, Location
from gangplan.objects import Body

# What identifies a problem of an object: the object and the rule, and the path inside the object.
ProblemKey = tuple[tuple[Any, ...], FieldPath]


class OperationStates:
    """The states of objects from no operation of a component to all of them, and what is found in each."""

    def __init__(
        self,
        component: Component,
        generated: Sequence[Body],
        find: Callable[[Sequence[Body]], Iterable[ProblemKey]],
    ) -> None:
        """Store what states are built from; `find` returns what is wrong with objects in a state."""
        self.operations: list[PatchOperation] = []
        self.states: list[list[Body]] = [list(generated)]
        self._component = component
        self._find = find
        self._found: dict[int, Counter[ProblemKey]] = {}

    def cause(self, key: ProblemKey) -> int | None:
        """Return the number of the last operation that increases the problem; None if none does.

        Operations can move entries of a list, and with them the place of a problem.
        """
        if not self.operations:
            self._undo()
        for number in reversed(range(len(self.operations))):
            before, after = self._at(number), self._at(number + 1)
            if key not in before and _count_similar_problems(key, before) < _count_similar_problems(
                key, after
            ):
                return number
        return None

    def finds_before(self, key: ProblemKey) -> bool:
        """Return whether the objects have a problem without any operation."""
        return key in self._at(0)

    def blamed(self, key: ProblemKey, built: Body) -> Location:
        """Return the place of the operation that causes a problem, else of one that wrote its field."""
        (index, *_), path = key
        number = self.cause(key)
        return self._component.place_of(path, built) if number is None else self.place(number, index, path)

    def place(self, number: int, index: int, path: FieldPath) -> Location:
        """Return where an operation writes a path of an object, else the place of its whole value."""
        operation = self.operations[number]
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        is_hit = self.states[number][index] is not self.states[number + 1][index]
        is_around = f"{pointer}/".startswith(f"{operation.path.removesuffix('/-')}/")
        return operation.where_written(pointer if is_hit and is_around else operation.path)

    def _undo(self) -> None:
        generated = self.states[0]
        for patch in self._component.patches:
            hit = [index for index, body in enumerate(generated) if patch.target.matches(body)]
            for operation in patch.operations if hit else ():
                state = list(self.states[-1])
                for index in hit:
                    state[index] = _apply_json6902_operation(state[index], operation)
                self.operations.append(operation)
                self.states.append(state)

    def _at(self, number: int) -> Counter[ProblemKey]:
        if number not in self._found:
            self._found[number] = Counter(self._find(self.states[number]))
        return self._found[number]


def _count_similar_problems(key: ProblemKey, found: Counter[ProblemKey]) -> int:
    """Count the problems that are the same except for the indices of list entries."""
    return sum(
        count for other, count in found.items() if _strip_list_indices(other) == _strip_list_indices(key)
    )


def _strip_list_indices(key: ProblemKey) -> tuple[Any, ...]:
    return key[0], tuple(step for step in key[1] if isinstance(step, str))


def _apply_json6902_operation(body: Body, operation: PatchOperation) -> Body:
    """Return the object with one more operation applied; the same object if the operation changes nothing."""
    written = operation.written
    found = deepcopy(body)
    try:
        if operation.op in ("move", "copy"):
            value = deepcopy(_get_value_at_json_pointer(found, _split_json_pointer(written["from"])))
            if operation.op == "move":
                _delete_value_at_pointer(found, _split_json_pointer(written["from"]))
        else:
            value = deepcopy(written.get("value"))
        if operation.op in ("remove", "replace"):
            _delete_value_at_pointer(found, _split_json_pointer(operation.path))
        if operation.op in ("add", "replace", "move", "copy"):
            _insert_value_at_json_pointer(found, _split_json_pointer(operation.path), value)
    except (LookupError, TypeError, ValueError):
        return body
    return body if found == body else found


def _split_json_pointer(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _get_value_at_json_pointer(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        value = value[int(step) if isinstance(value, list) else step]
    return value


def _delete_value_at_pointer(value: Any, steps: Sequence[str]) -> None:
    inside = _get_value_at_json_pointer(value, steps[:-1])
    del inside[int(steps[-1]) if isinstance(inside, list) else steps[-1]]


def _insert_value_at_json_pointer(value: Any, steps: Sequence[str], new: Any) -> None:
    inside = _get_value_at_json_pointer(value, steps[:-1])
    if not isinstance(inside, list):
        inside[steps[-1]] = new
    else:
        inside.insert(len(inside) if steps[-1] == "-" else int(steps[-1]), new)
