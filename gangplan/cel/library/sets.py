"""`sets.contains`, `sets.equivalent`, `sets.intersects` (cel-go v0.26 `ext/sets.go`)."""

from __future__ import annotations

from gangplan.cel.library.base import LIST_OF_T, Implementation
from gangplan.cel.operators import has_equal_cel_element

List = list[object]


def contains(elements: List, wanted: List) -> bool:
    """Return whether the elements include every wanted element."""
    return all(has_equal_cel_element(elements, element) for element in wanted)


def equivalent(left: List, right: List) -> bool:
    """Return whether each list has all elements of the other."""
    return contains(left, right) and contains(right, left)


def intersects(left: List, right: List) -> bool:
    """Return whether the lists share an element."""
    return any(has_equal_cel_element(right, element) for element in left)


TABLE = (
    Implementation("list_sets_contains_list", "sets.contains", (LIST_OF_T, LIST_OF_T), contains),
    Implementation("list_sets_equivalent_list", "sets.equivalent", (LIST_OF_T, LIST_OF_T), equivalent),
    Implementation("list_sets_intersects_list", "sets.intersects", (LIST_OF_T, LIST_OF_T), intersects),
)
