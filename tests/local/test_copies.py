"""The copy of the program's folder: nothing that a run does to it reaches the user's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.local import copies
from gangplan.local.copies import copy_program_folder
from gangplan.local.stage import can_set_host_names
from tests.local.base import Done, plain_workspace, processes, run, start

DESTROYER = """\
import os, shutil
print("conf was", open("conf.json").read())
open("conf.json", "w").write("changed")
open("ckpt/model.bin", "w").write("new")
os.remove("ckpt/keepme")
shutil.rmtree("old")
"""


def read_tree(root: Path) -> dict[str, str]:
    """Return the text of each file below a folder."""
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def code(root: Path, program: str) -> Path:
    """Write a workspace whose program has files next to it and in folders."""
    plain_workspace(root, program, workers=1)
    for name in ("conf.json", "ckpt/keepme", "old/a/b"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")
    return root


def test_a_run_neither_changes_nor_deletes_files_of_the_user(tmp_path: Path) -> None:
    root = code(tmp_path, DESTROYER)
    before = read_tree(root)
    done = run(root)
    assert done.code == 0, done.err
    assert "[0] conf was mine\n" in done.out
    assert read_tree(root) == before


@pytest.mark.skipif(not can_set_host_names(), reason="this system allows no namespaces")
def test_files_that_are_too_big_to_copy_are_read_only(tmp_path: Path) -> None:
    program = "print(open('big.bin').read()[:3])\nopen('new', 'w').write('x')\n"
    program += "open('out/new', 'w').write('x')\nprint('so far')\nopen('big.bin', 'w')\n"
    root = code(tmp_path, program)
    (root / "big.bin").write_text("big" * 2000)
    (root / "out").mkdir()
    process, scratch = start(
        root, setup="import gangplan.local.copies; gangplan.local.copies.LARGEST = 5000\n"
    )
    done = Done(process, scratch, 120)
    assert processes(scratch) == []
    assert done.code == 1
    assert "[0] big\n" in done.out
    assert "[0] so far\n" in done.out
    assert "Read-only file system: 'big.bin'" in done.err
    assert "note: big.bin is too big to copy; the program sees yours, read-only where" in done.err
    assert (root / "big.bin").read_text() == "big" * 2000
    assert list((root / "out").iterdir()) == []


def test_what_is_copied_and_what_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("a.py", "data/b", ".git/HEAD", "env/pyvenv.cfg", "env/lib", "run/.mark", "elsewhere/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("text")
    (source / "big").write_text("x" * 100)
    (source / "inner").symlink_to("data/b")
    (source / "absolute").symlink_to(source / "data")
    (source / "outer").symlink_to(tmp_path / "outside")
    (source / "relative").symlink_to("../outside")
    monkeypatch.setattr(copies, "LARGEST", 50)
    copied = copy_program_folder(source, target, ".mark")
    assert (copied.too_big, copied.others) == (("big",), (".git", "env"))
    links = {
        path.relative_to(target).as_posix(): path.readlink()
        for path in target.rglob("*")
        if path.is_symlink()
    }
    assert links == {
        ".git": source / ".git",
        "env": source / "env",
        "big": source / "big",
        "inner": Path("data/b"),
        "absolute": target / "data",
        "outer": tmp_path / "outside",
        "relative": tmp_path / "outside",
    }
    assert (target / "data/b").read_text() == "text"
    assert not (target / "run").exists()


@pytest.mark.parametrize(("name", "most"), [("MOST_COPIED", 3), ("MOST_COPIED_BYTES", 8)])
def test_a_copy_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for file in ("a", "b", "c", "d"):
        (source / file).parent.mkdir(exist_ok=True)
        (source / file).write_text("text")
    monkeypatch.setattr(copies, name, most)
    assert copy_program_folder(source, target, ".mark").too_big == ("c", "d")
    assert read_tree(target) == read_tree(source)
