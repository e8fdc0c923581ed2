"""The gate runs one MPI; `make reality` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reality.families import FAMILIES

#: The family that specs get by default.
FIRST = "openmpi5"


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests of other MPIs out of the plain run: they take minutes and give the same answers."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            given = getattr(item, "callspec", None)
            names = (
                {getattr(value, "name", value) for value in given.params.values() if value.__hash__}
                if given
                else set()
            )
            if names & (FAMILIES.keys() - {FIRST}):
                item.add_marker(pytest.mark.reality)
