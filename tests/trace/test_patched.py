"""Parts of a patched object, found again in the generated one."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.trace.patched import generated_path

A, B = {"name": "a", "value": "1"}, {"name": "b", "value": "2"}


@pytest.mark.parametrize(
    ("before", "built", "path", "found"),
    [
        (["x", "x"], ["x", "x"], (1,), (1,)),  # equal entries are told apart by their places
        ([A, A], [A, A], (1, "value"), (1, "value")),
        ([A, B], [B, A], (0, "value"), (1, "value")),  # those of another order by their names
        ([A, B], [B], (0, "value"), (1, "value")),
        ([A], [A, B], (1, "value"), None),  # what a patch added is nowhere
        ([A], [{**A, "value": "9"}], (0, "value"), None),  # what it changed is its own
    ],
)
def test_generated_path(
    before: Any, built: Any, path: tuple[Any, ...], found: tuple[Any, ...] | None
) -> None:
    assert generated_path(before, built, path) == found
