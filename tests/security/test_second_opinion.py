"""A kubeconform that hangs: skipped with a note when found by chance, an error when the user named it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gangplan import errors
from gangplan.emit import tree as emitted
from gangplan.errors import Exit
from gangplan.tools import versions
from tests.tools.programs import fake
from tests.workspaces import gangplan

pytestmark = pytest.mark.real_tool("kubeconform")  # the commands look for the program as always


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(versions, "_TIMEOUT_S", 0.3)
    monkeypatch.setenv("GANGPLAN_TOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GANGPLAN_KUBECONFORM", raising=False)
    return fake("hang", "kubeconform", tmp_path / "bin")


def test_a_hanging_kubeconform_is_reported_and_skipped(
    root: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(hanging.parent), prepend=os.pathsep)
    outcome = gangplan("validate", "-C", root)
    assert f"no second opinion: {hanging} does not say its version" in outcome.out
    assert "(embedded validator)" in outcome.out
    assert outcome.code == Exit.CLEAN


def test_a_hanging_kubeconform_that_the_user_named_is_an_error(
    root: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANGPLAN_KUBECONFORM", str(hanging))
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.ENVIRONMENT
    assert "did not end within 0.3 s" in outcome.err


def test_the_time_limit_for_a_version_is_short() -> None:
    assert versions._TIMEOUT_S < 10


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.EBUSY, "It is a mount point"),
        (errno.EXDEV, "two file systems"),
        (errno.EROFS, "read-only"),
        (errno.ENOSPC, "Free some space"),
        (errno.EACCES, "owner and mode"),
        (errno.EIO, "owner and free space"),
    ],
)
def test_a_refusing_file_system_is_reported_with_advice(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, says: str
) -> None:
    """The advice depends on the error: a busy mount has nothing to do with owner and space."""

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    assert gangplan("render", "-C", root).code == Exit.CLEAN
    text = (root / "specs/nlp/filings.yaml").read_text()
    (root / "specs/nlp/second.yaml").write_text(text)
    (root / "specs/nlp/third.yaml").write_text(text)
    monkeypatch.setattr(emitted, "exchange_paths", refuse)
    outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.ENVIRONMENT
    assert f"{os.strerror(code)}; the rendered tree is as it was" in outcome.err
    assert says in outcome.err
    assert errors.find_os_error_help(OSError(code, "")) in outcome.err


def test_a_hanging_kubeconform_is_started_only_twice(
    root: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang costs its time once for the version and once for the verdict, not once per cluster or file."""
    monkeypatch.setenv("PATH", str(hanging.parent), prepend=os.pathsep)
    gangplan("validate", "-C", root)
    assert (hanging.parent / "starts").read_text().splitlines() == ["start -v"] * 2
