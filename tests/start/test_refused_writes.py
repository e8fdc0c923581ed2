"""Refused writes: each command reports the system's error with the help that fits its cause."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.pipeline import render as rendering
from tests.workspaces import CATALOG, SPEC, gangplan, stock, tree, write

CODES = {
    errno.EROFS: "mounted read-only",
    errno.EACCES: "You may not write there",
    errno.EPERM: "You may not write there",
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "the quota of the file system",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOENT: "No file or folder can be made there",
    errno.EIO: "owner and free space",
}
DIGEST = "sha256:" + "1" * 64
COMMANDS = {
    "init": ("init", "{root}/inner", "--team", "nlp", "--cluster", "lab"),
    "new job": ("new", "job", "one", "--team", "nlp", "--image", "openmpi", "--command", "a", "-C", "{root}/w"),
    "new image": ("new", "image", "mine", "--repository", "a.example.com/b", "--digest", DIGEST,
                  "--framework", "torch", "-C", "{root}/w"),
    "clone": ("clone", "specs/nlp/filings.yaml", "next", "-C", "{root}/w"),
    "edit": ("edit", "specs/nlp/filings.yaml", "--set", "workers=2", "-C", "{root}/w"),
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    write(stock(tmp_path / "w"), {})
    return tmp_path


@pytest.fixture
def refusing(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Refuse to create or remove anything below the folder, with the given error."""

    def start(code: int) -> None:
        real_open, real_unlink, real_temp = Path.open, Path.unlink, tempfile.mkstemp

        def refused(path: object) -> OSError:
            return OSError(code, os.strerror(code), str(path))

        def opened(self: Path, mode: str = "r", *rest: object, **named: object) -> object:
            if self.is_relative_to(root) and set(mode) & set("wxa"):
                raise refused(self)
            return real_open(self, mode, *rest, **named)  # type: ignore[call-overload]

        def unlinked(self: Path, missing_ok: bool = False) -> None:
            if self.is_relative_to(root):
                raise refused(self)
            real_unlink(self, missing_ok)

        def made(*rest: object, **named: object) -> object:
            if str(named.get("dir", "")).startswith(str(root)):
                raise refused(named["dir"])
            return real_temp(*rest, **named)  # type: ignore[call-overload]

        monkeypatch.setattr(Path, "open", opened)
        monkeypatch.setattr(Path, "unlink", unlinked)
        monkeypatch.setattr(tempfile, "mkstemp", made)

    return start


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_fits_the_cause(
    root: Path, refusing: Callable[[int], None], command: str, code: int
) -> None:
    before = tree(root)
    refusing(code)
    outcome = gangplan(*(word.format(root=root) for word in COMMANDS[command]))
    assert os.strerror(code) in outcome.err, outcome.err
    assert CODES[code] in outcome.err
    assert "bug" not in outcome.err
    wanted = Exit.INPUT if code == errno.ENAMETOOLONG and command != "edit" else Exit.ENVIRONMENT
    assert outcome.code == wanted
    assert {name: data for name, data in tree(root).items() if ".gangplan" not in name} == before
    assert (root / "w/images/catalog.yaml").read_text() == CATALOG


def test_render_check_works_on_a_read_only_workspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only mount, access(2) refuses root as well."""
    folder = root / "w"
    assert gangplan("render", "-C", folder).code == Exit.CLEAN
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (mode & os.W_OK and str(path).startswith(str(folder))) and real(path, mode)
    )  # fmt: skip

    def locked(state: Path) -> None:
        raise AssertionError(f"nothing can be locked in {state}")

    monkeypatch.setattr(rendering, "lock_state_folder", locked)
    outcome = gangplan("render", "--check", "-C", folder)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    write(folder, {"specs/nlp/second.yaml": SPEC})
    outcome = gangplan("render", "--check", "-C", folder)
    assert outcome.code == Exit.FINDINGS
    assert "rendered-stale" in outcome.err
    assert not (folder / ".gangplan/stage").exists()


def test_a_name_that_is_too_long_is_bad_input(root: Path) -> None:
    name = "d" * 300
    for words in (
        ("init", root / name, "--team", "a", "--cluster", "b"),
        ("init", root / name / "inner", "--team", "a", "--cluster", "b"),
        ("edit", name, "--set", "a=1", "-C", root / "w"),
        ("clone", name, "b", "-C", root / "w"),
        ("validate", name, "-C", root / "w"),
        ("validate", "-C", root / name),
    ):
        outcome = gangplan(*words)
        assert (outcome.code, words) == (Exit.INPUT, words), outcome.err
        assert "bug" not in outcome.err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_init_explains_where_no_folder_can_be_created(root: Path) -> None:
    outcome = gangplan("init", "/proc/x", "--team", "a", "--cluster", "b")
    assert outcome.code == Exit.ENVIRONMENT
    assert "/proc/x: No such file or directory\n  help: No file or folder can be made there" in outcome.err
    (root / "file").write_text("")
    outcome = gangplan("init", root / "file/x", "--team", "a", "--cluster", "b")
    assert "A file stands where a folder is needed" in outcome.err
