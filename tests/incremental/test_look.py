"""A look at folders shows every change, and reads only what changed."""

from __future__ import annotations

import marshal
import os
import shutil
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.incremental.look import look_at_folders
from tests import workspaces
from tests.incremental.edits import FILES

NAMES = st.sampled_from(["a", "b", "sub/a", "sub/b", "other/deep/a"])
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=3)),
    st.tuples(st.just("append"), NAMES, st.binary(min_size=1, max_size=2)),
    st.tuples(st.just("remove"), NAMES, st.just(b"")),
    st.tuples(st.just("link"), NAMES, st.just(b"a")),
    st.tuples(st.just("rename"), NAMES, st.just(b"")),
    st.tuples(st.just("touch"), NAMES, st.just(b"")),
    st.tuples(st.just("nothing"), NAMES, st.just(b"")),
)


def _do(top: Path, what: str, name: str, data: bytes) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    there = os.path.lexists(path)
    if what == "write":
        path.unlink(missing_ok=True)
        path.write_bytes(data)
    elif what == "append" and there and not path.is_symlink():
        with path.open("ab") as file:
            file.write(data)
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "link" and not there:
        path.symlink_to(data.decode())
    elif what == "rename" and there:
        path.rename(path.with_name("c"))
    elif what == "touch" and there and not path.is_symlink():
        os.utime(path, ns=(1, 1))


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_a_look_with_memory_equals_one_without(steps: list[tuple[str, str, bytes]]) -> None:
    """After every step, the memory leads to the same digests as reading everything."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "specs").mkdir()
        memory: dict[str, tuple[str, str]] = {}
        for step in steps:
            _do(Path(folder) / "specs", *step)
            seen = look_at_folders(folder, ["specs", "missing"], memory)
            assert seen.contents == look_at_folders(folder, ["specs", "missing"], {}).contents
            memory = {**memory, **seen.memory}


def test_only_a_changed_folder_is_read(tmp_path: Path) -> None:
    """Of a thousand files in ten folders, only those of one folder are read after a change."""
    for number in range(10):
        (tmp_path / f"specs/t{number}").mkdir(parents=True)
        for file in range(100):
            (tmp_path / f"specs/t{number}/{file}").write_text("x")
    time.sleep(0.15)
    first = look_at_folders(str(tmp_path), ["specs"], {})
    assert first.read == 1000
    assert len(first.memory) == 11
    assert look_at_folders(str(tmp_path), ["specs"], first.memory).read == 0
    (tmp_path / "specs/t3/7").write_text("y")
    second = look_at_folders(str(tmp_path), ["specs"], first.memory)
    assert second.read == 100
    assert second.digest != first.digest
    assert {path for path in first.contents if first.contents[path] != second.contents[path]} == {"specs/t3"}


def test_a_very_recent_change_is_not_remembered(tmp_path: Path) -> None:
    """The system cannot distinguish two changes within a tick of the clock."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/a").write_text("x")
    assert "specs" not in look_at_folders(str(tmp_path), ["specs"], {}).memory


def test_a_copy_is_known_by_its_bytes(tmp_path: Path) -> None:
    """A fresh clone has other times and inodes, and the same digest."""
    for text, name in (("x", "a/1"), ("y", "a/b/2")):
        (tmp_path / "one/specs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "one/specs" / name).write_text(text)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = (look_at_folders(str(tmp_path / name), ["specs"], {}) for name in ("one", "two"))
    assert one.digest == two.digest


def test_two_processes_see_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        folder = tmp_path / "specs" / f"team-{number % 7}" / f"sub-{number}"
        folder.mkdir(parents=True)
        (folder / "a.yaml").write_text(f"{number}")
    (tmp_path / "specs" / "link").symlink_to("team-1")
    alone = look_at_folders(str(tmp_path), ["specs", "missing"], {})
    monkeypatch.setattr("gangplan.incremental.look.MANY", 10)
    forks: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    shared = look_at_folders(str(tmp_path), ["specs", "missing"], {}, workers=2)
    assert forks == [1]
    assert (shared.contents, shared.said, shared.read) == (alone.contents, alone.said, alone.read)
    assert (shared.files, shared.plain) == (alone.files, alone.plain)
    assert "specs" not in shared.plain


def test_a_second_process_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        folder = tmp_path / "specs" / f"team-{number}"
        folder.mkdir(parents=True)
        (folder / "a.yaml").write_text(f"{number}")
    alone = look_at_folders(str(tmp_path), ["specs"], {})
    monkeypatch.setattr("gangplan.incremental.look.MANY", 3)
    parent, dump = os.getpid(), marshal.dump
    monkeypatch.setattr(
        marshal, "dump", lambda *given: os.kill(os.getpid(), 9) if os.getpid() != parent else dump(*given)
    )
    assert look_at_folders(str(tmp_path), ["specs"], {}, workers=2).contents == alone.contents


def test_a_folder_of_specs_is_listed_once(tmp_path: Path) -> None:
    """A command asks the system about the files of a team once, for all that needs their names."""
    root = workspaces.write(tmp_path, FILES)
    workspaces.gangplan("render", "-C", root)
    listed: list[str] = []
    scandir, opened = os.scandir, os.open

    def note(path: int | str | Path) -> Any:
        if not isinstance(path, int):
            listed.append(str(path))
        return scandir(path)

    def note_open(path: str | Path, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_DIRECTORY:
            listed.append(str(path))
        return opened(path, flags, *more, **named)

    with mock.patch.object(os, "scandir", note), mock.patch.object(os, "open", note_open):
        workspaces.gangplan("render", "-C", root)
    assert Counter(listed)[str(root / "specs/nlp")] == 1


def test_the_digests_of_a_changed_folder_are_those_of_its_files(tmp_path: Path) -> None:
    """Only of a folder that was known before: in a new workspace they would be those of all files."""
    (tmp_path / "specs/nlp").mkdir(parents=True)
    for name in "ab":
        (tmp_path / f"specs/nlp/{name}.yaml").write_text(name)
    time.sleep(0.12)
    first = look_at_folders(str(tmp_path), ["specs"], {})
    assert first.digests == {}
    (tmp_path / "specs/nlp/b.yaml").write_text("c")
    second = look_at_folders(str(tmp_path), ["specs"], first.memory)
    assert second.digests == {
        "specs/nlp": {"a.yaml": sha256(b"a").hexdigest(), "b.yaml": sha256(b"c").hexdigest()}
    }
