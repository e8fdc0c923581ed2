"""What tests fetch is fetched once, and so is a failure: sixty tests must not wait one after another."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.reality import families
from tests.reality.families import REMEMBERED_S, UnavailableError, fetched


class Maker:
    """Makes a folder, or raises its reason; counts how often it was called."""

    def __init__(self, reason: str = "") -> None:
        """Store the reason for failing, '' to succeed."""
        self.reason, self.asked = reason, 0

    def __call__(self, target: Path) -> None:
        self.asked += 1
        if self.reason:
            raise UnavailableError(self.reason)
        target.mkdir()


def another_process() -> None:
    """Forget what this process remembers, as another process would."""
    families._made.cache_clear()


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    another_process()


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    make = Maker()
    for _ in range(3):
        assert fetched(tmp_path / "mpich-1", make) == tmp_path / "mpich-1"
    assert make.asked == 1


def test_a_failure_is_remembered_by_this_process_and_others(tmp_path: Path) -> None:
    make = Maker("the index says no")
    for _ in range(3):
        with pytest.raises(UnavailableError, match="the index says no"):
            fetched(tmp_path / "mpich-1", make)
    another_process()
    with pytest.raises(UnavailableError, match="the index says no"):
        fetched(tmp_path / "mpich-1", make)
    assert make.asked == 1


@pytest.mark.parametrize("how", ["later", "told"])
def test_a_failure_is_forgotten_later_or_on_request(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnavailableError):
        fetched(tmp_path / "mpich-1", Maker("no"))
    another_process()
    if how == "told":
        monkeypatch.setattr(families, "folder", lambda: tmp_path)
        families.forget()
    else:
        before = time.time() - REMEMBERED_S - 1
        os.utime(tmp_path / "mpich-1.failed", (before, before))
    assert fetched(tmp_path / "mpich-1", Maker()).is_dir()
    assert not (tmp_path / "mpich-1.failed").exists()


def test_a_cache_that_is_not_writable_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="mpich-1: "):
        fetched(tmp_path / "file/mpich-1", Maker())
