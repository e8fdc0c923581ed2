"""A few changes of a large tree: if they are interrupted, the next command finishes them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from gangplan.emit import journal
from gangplan.incremental.seal import seal_text
from tests import workspaces
from tests.test_render import _render_and_die, _restore
from tests.workspaces import gangplan, render, rendered, write

SECOND = workspaces.SPEC.replace("workers: 4", "workers: 2")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a workspace whose tree counts as large."""
    monkeypatch.setattr(journal, "JOURNAL_MIN_FILES", 1)
    monkeypatch.setattr(journal, "JOURNAL_FRACTION", 0)
    found = write(tmp_path / "work", workspaces.STOCK)
    for name in ("second", "third"):
        write(found, {f"specs/nlp/{name}.yaml": SECOND})
    render(found)
    return found


@pytest.mark.parametrize("command", ["render", "validate"])
def test_a_render_killed_at_any_call_is_finished_later(command: str, root: Path) -> None:
    """Every file is complete at all times; the next command, render or validate, leaves the new tree."""
    old = rendered(root)
    write(root, {"specs/nlp/second.yaml": SECOND.replace("gpus: 2", "gpus: 1")})
    (root / "specs/nlp/third.yaml").unlink()
    render(root)
    new = rendered(root)
    number, seen = 1, set()
    while True:
        _restore(root, old)
        status = _render_and_die(root, number)
        now = rendered(root)
        if status != -signal.SIGKILL:
            assert (status, now) == (0, new)
            break
        assert now.items() <= {**old, **new}.items(), "a file that is neither old nor new"
        unfinished = (root / ".gangplan/journal").exists()
        assert unfinished or now in (old, new)
        state = (unfinished, now == old, now == new, len(now))
        if state not in seen:
            seen.add(state)
            gangplan(command, "-C", root)
            assert rendered(root) == (new if unfinished or command == "render" else now)
            assert not (root / ".gangplan/journal").exists()
        number += 1
    assert {unfinished for unfinished, *_ in seen} == {True, False}


def test_a_journal_of_someone_else_is_discarded(root: Path, tmp_path: Path) -> None:
    """A pull request may bring any file: what it asks for is not done."""
    precious = tmp_path / "precious"
    precious.write_text("x")
    before = rendered(root)
    for secret in (b"", b"guessed"):
        text = json.dumps({"staged": [], "gone": ["../../precious", next(iter(before))]}).encode()
        (root / ".gangplan/journal").write_bytes(seal_text(text, secret))
        assert gangplan("validate", "-C", root).code == 0
        assert precious.exists()
        assert rendered(root) == before
        assert not (root / ".gangplan/journal").exists()


def test_a_folder_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    """Neither many changes nor a single one follow it: what it leads to stays as it is."""
    runs = root / "rendered/lab/runs"
    elsewhere = tmp_path / "elsewhere"
    runs.rename(elsewhere)
    runs.symlink_to(elsewhere)
    before = workspaces.tree(elsewhere)
    for change in ("gpus: 1", "gpus: 4"):
        write(root, {"specs/nlp/second.yaml": SECOND.replace("gpus: 2", change)})
        (root / "specs/nlp/third.yaml").unlink(missing_ok=True)
        gangplan("render", "-C", root)
        assert workspaces.tree(elsewhere) == before
    assert not journal.is_inside_rendered_tree(root / "rendered", "../specs/nlp/team.yaml")


def test_changes_of_a_large_part_of_the_tree_have_no_journal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree is exchanged as a whole instead."""
    made: list[object] = []
    monkeypatch.setattr(journal, "commit_staged_files", lambda *arguments: made.append(arguments))
    monkeypatch.setattr(journal, "JOURNAL_FRACTION", 10)
    write(root, {"specs/nlp/second.yaml": SECOND.replace("gpus: 2", "gpus: 1")})
    render(root)
    assert not made
