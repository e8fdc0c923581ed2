"""The cache removes its own records and nothing else, among any other files and links.

Everything happens below the test's own folder, and whole trees are compared before and after.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gangplan.incremental.store import CACHE_FOLDER, MOST_ANSWERS, RECORD_KINDS, RecordStore
from tests import workspaces


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    """Create a cache with a record of every kind, in a folder next to precious files."""
    (tmp_path / "precious").mkdir()
    for name in ("letter", "0123abcd", "clean"):
        (tmp_path / "precious" / name).write_text("x")
    (tmp_path / "work").mkdir()
    found = RecordStore(str(tmp_path / "work"))
    for name in ("clean", "folders", *(f"{kind}/0123abcd" for kind in RECORD_KINDS if kind)):
        found.put(name, name)
    return found


def _others(folder: Path) -> dict[str, bytes]:
    return {
        name: data
        for name, data in workspaces.tree(folder).items()
        if not name.startswith(f"work/{CACHE_FOLDER}/")
    }


def test_all_records_are_removed_and_nothing_else(store: RecordStore, tmp_path: Path) -> None:
    """What someone else put into the cache stays."""
    before = _others(tmp_path)
    cache = tmp_path / "work" / CACHE_FOLDER
    (cache / "answers" / "Notes.TXT").write_text("mine")
    (cache / "answers" / "deep").mkdir()
    (cache / "answers" / "deep" / "0123abcd").write_text("mine")
    (cache / "mine").write_text("mine")
    assert store.clear() == len(RECORD_KINDS) + 1
    left = {".gitignore", "answers/Notes.TXT", "answers/deep/0123abcd", "mine"}
    assert set(workspaces.tree(cache)) == left
    assert _others(tmp_path) == before


@pytest.mark.parametrize("kind", ["/", "..", "../..", "/etc", "answers/..", "answers/", "nothing", "."])
def test_no_kind_leads_out_of_the_cache(store: RecordStore, tmp_path: Path, kind: str) -> None:
    """Not even a mistaken caller can do that."""
    before = workspaces.tree(tmp_path)
    assert list(store.files(kind)) == []
    store.keep_newest(kind, 0)
    store.put(f"{kind}/0123abcd", 1)
    assert store.get(f"{kind}/letter") is None
    assert workspaces.tree(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["answers/../../letter", "answers/..", "answers/.hidden", "", "/", "letter", "../clean"]
)
def test_no_name_leads_out_of_the_cache(store: RecordStore, tmp_path: Path, name: str) -> None:
    """The name of a record is that of a file in the folder of its kind."""
    before = workspaces.tree(tmp_path)
    store.put(name, 1)
    assert store.get(name) is None
    assert workspaces.tree(tmp_path) == before


@pytest.mark.parametrize(
    "link", [".gangplan", CACHE_FOLDER, f"{CACHE_FOLDER}/answers", f"{CACHE_FOLDER}/answers/0123abcd"]
)
def test_links_are_not_followed(tmp_path: Path, link: str) -> None:
    """A pull request may bring any link: nothing that it leads to is read, written or removed."""
    (tmp_path / "precious").mkdir()
    for name in ("letter", "0123abcd", "clean"):
        (tmp_path / "precious" / name).write_text("x")
    before = workspaces.tree(tmp_path / "precious")
    path = tmp_path / "work" / link
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "precious" / ("0123abcd" if link.endswith("abcd") else ""))
    store = RecordStore(str(tmp_path / "work"))
    store.put("clean", 1)
    for number in range(MOST_ANSWERS + 3):
        store.put(f"answers/{number:08}", number)
    store.put("answers/0123abcd", 1)
    for kind in RECORD_KINDS:
        store.keep_newest(kind, 0)
    store.clear()
    assert workspaces.tree(tmp_path / "precious") == before


def test_remains_of_a_killed_command_are_removed(store: RecordStore, tmp_path: Path) -> None:
    """They are a record that was never renamed into place."""
    aside = tmp_path / "work" / CACHE_FOLDER / "runs" / f"0123abcd.{os.getpid()}"
    aside.write_text("half")
    store.keep_newest("runs", 0)
    assert not aside.exists()
