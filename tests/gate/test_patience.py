"""The lab's patience: passing errors are retried, and refusals are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import client, go
from tests.lab.client import ApiError, TooLateError
from tests.lab.go import go as run_go

# Fails as often as the file says, with the given error, then prints its arguments.
FAKE = """\
#!/bin/sh
here=$(dirname "$0")
left=$(cat "$here/left")
echo x >>"$here/asked"
[ "$left" = 0 ] && { echo "$*"; exit 0; }
echo $((left - 1)) >"$here/left"
cat "$here/words" >&2
exit 1
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a `go` that fails at first, without waiting between attempts."""
    (tmp_path / "go").write_text(FAKE)
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(go, "WAITS_S", (0, 0, 0))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "bad", "asked"),
    [
        ("dial tcp: i/o timeout", 2, 3),
        ("502 Bad Gateway", 1, 2),
        ("502 Bad Gateway", 3, None),
        ("# example.com/x\n./x.go:1:1: undefined: y", 1, None),
    ],
)
def test_downloads_are_retried_and_compiler_errors_are_not(
    words: str, bad: int, asked: int | None, fake: Path
) -> None:
    (fake / "words").write_text(words)
    (fake / "left").write_text(str(bad))
    if asked is None:
        with pytest.raises(RuntimeError, match="go build failed"):
            run_go("build", folder=fake)
        assert len((fake / "asked").read_text().split()) == (1 if words.startswith("#") else 3)
    else:
        assert run_go("build", folder=fake) == "build"
        assert len((fake / "asked").read_text().split()) == asked


@pytest.mark.parametrize(
    ("status", "message", "method", "passes"),
    [
        (429, "too many requests", "POST", True),
        (503, "the server is shutting down", "PATCH", True),
        (500, 'failed calling webhook "mtrainjob.kb.io": connection refused', "PATCH", True),
        (500, "internal error", "PATCH", False),
        (504, "timeout", "PATCH", True),
        (504, "timeout", "POST", False),  # it may have been created
        (403, 'admission webhook "x" denied the request', "PATCH", False),
        (409, "conflict", "PATCH", False),
    ],
)
def test_passing_server_errors_are_not_refusals(status: int, message: str, method: str, passes: bool) -> None:
    assert ApiError(status, {"message": message}).is_passing(method) is passes


def test_no_timeout_is_shorter_than_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that was measured on a quick machine is raised to it, and a factor makes all limits longer."""
    now = [0.0]
    monkeypatch.setattr(client.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(client.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 10))
    for patience, timeout, until in ((60, 1, 60), (60, 90, 90), (180, 1, 180), (180, 90, 270)):
        monkeypatch.setattr(client, "PATIENCE", patience)
        now[0] = 0.0
        with pytest.raises(TooLateError, match=f"after {until} s: it never came"):
            client.poll(lambda: False, timeout, lambda: "it never came")
        assert until < now[0] <= until + 10
