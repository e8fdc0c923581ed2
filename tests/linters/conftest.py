"""These tests run programs of several registries: `make linters` requests them, otherwise they are
skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.linters.programs import ASKED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests, with the reason, unless they are requested."""
    if os.environ.get(ASKED):
        return
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason="linters and engines of others: make linters"))
