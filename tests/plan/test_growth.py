"""What a script costs does not grow faster than the script. Calls are counted, not time."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.plan.asking import decided
from tests.workspaces import stock

SCRIPTS = [
    ("openmpi", "mpirun a; "),
    ("openmpi", "if a; then exec mpirun a; exit; fi; "),
    ("openmpi", "cd /tmp/x; ls > /tmp/x/y; "),
    ("openmpi", "a; if [ $? -ne 0 ]; then echo x; fi; "),
    ("mpich", "mpirun a | tee b; "),
    ("pytorch", "torchrun a.py; "),
    ("pytorch", "aws s3 cp s3://a/b c; "),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace."""
    return stock(tmp_path_factory.mktemp("growth"))


@pytest.mark.parametrize(("image", "line"), SCRIPTS, ids=[line for _, line in SCRIPTS])
def test_a_script_of_four_times_the_length_needs_four_times_the_calls(
    image: str, line: str, root: Path
) -> None:
    decided(root, image, ("bash", "-c", "mpirun b"))
    few, many = (_count_calls(root, image, line * number) for number in (60, 240))
    assert many < 4.8 * few


def _count_calls(root: Path, image: str, script: str) -> int:
    count = 0

    def see(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        decided(root, image, ("bash", "-c", f"{script}mpirun b"))
    finally:
        sys.setprofile(before)
    return count
