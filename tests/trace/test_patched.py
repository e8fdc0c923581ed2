"""Parts of a patched object, and where they are in the generated one."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.trace.patched import trace_path_back_through_patch

A, B = {"name": "a", "value": "1"}, {"name": "b", "value": "2"}


@pytest.mark.parametrize(
    ("before", "built", "path", "found"),
    [
        (["x", "x"], ["x", "x"], (1,), (1,)),  # equal entries are distinguished by their places
        ([A, A], [A, A], (1, "value"), (1, "value")),
        ([A, B], [B, A], (0, "value"), (1, "value")),  # reordered entries are found by their names
        ([A, B], [B], (0, "value"), (1, "value")),
        ([A], [A, B], (1, "value"), None),  # an entry that a patch added was not generated
        ([A], [{**A, "value": "9"}], (0, "value"), None),  # neither was a value that it changed
    ],
)
def test_a_part_of_a_patched_object_is_found_in_the_generated_one(
    before: Any, built: Any, path: tuple[Any, ...], found: tuple[Any, ...] | None
) -> None:
    assert trace_path_back_through_patch(before, built, path) == found
