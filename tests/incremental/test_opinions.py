"""Results that were kept before kubeconform was asked, and which of them it must see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangplan.incremental.store import RecordStore
from gangplan.pipeline.opinions import MOST_BATCHES, SecondOpinions
from gangplan.tools.kubeconform import Kubeconform
from gangplan.tools.pins import KUBECONFORM_TOOL
from tests import workspaces
from tests.incremental.edits import FILES, SPECS

pytestmark = pytest.mark.real_tool(KUBECONFORM_TOOL.name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = workspaces.write(tmp_path, FILES)
    workspaces.render(found)
    return found


@pytest.fixture
def seen(
    root: Path, monkeypatch: pytest.MonkeyPatch, real_kubeconform: Kubeconform
) -> Callable[[], set[str]]:
    """Return a function that validates the workspace and returns the files in `rendered/` that kubeconform
    sees."""
    files: set[str] = set()
    check = Kubeconform.check

    def note(self: Kubeconform, manifests: Any, *args: Any, **kwargs: Any) -> Any:
        files.update("/".join(path.parts[-4:]) for path in manifests)
        return check(self, manifests, *args, **kwargs)

    monkeypatch.setattr(Kubeconform, "check", note)

    def validated() -> set[str]:
        files.clear()
        assert workspaces.gangplan("validate", "-C", root, "--engine", "serial").code == 0
        return set(files)

    return validated


def runs(root: Path) -> list[Path]:
    return sorted((root / "rendered").rglob("runs/*/*-*.yaml"))


def test_only_telling_files_are_shown_after_a_render(root: Path, seen: Callable[[], set[str]]) -> None:
    """The others are as good as these; and what was judged once is not judged again."""
    assert len(runs(root)) == 2 * len(SPECS)
    first = [one for one in seen() if "/runs/" in one and "launch." not in one]
    assert len(first) == 1
    assert seen() == set()


def test_a_change_of_another_file_shows_only_that_file(root: Path, seen: Callable[[], set[str]]) -> None:
    """The command that changed it recorded a batch of its own."""
    [first] = [one for one in seen() if "/runs/" in one and "launch." not in one]
    path = root / "specs/vision/more.yaml"
    path.write_text(path.read_text() + "run: 2\n")
    workspaces.render(root)
    shown = {one for one in seen() if "launch." not in one}
    assert len(shown) == 1
    assert "/vision/more-" in "".join(shown)
    assert first not in shown


def test_all_are_shown_once_a_telling_file_is_gone(root: Path, seen: Callable[[], set[str]]) -> None:
    """What the others show without it is unknown."""
    before = set(runs(root))
    path = root / "specs/nlp/filings.yaml"  # the first one shows all that the others do
    path.write_text(path.read_text() + "run: 2\n")
    workspaces.render(root)
    new = {one for one in seen() if "/runs/" in one and "launch." not in one}
    assert len(before & set(runs(root))) == 2 * len(SPECS) - 2
    assert len(new) == 2 * len(SPECS) - 1  # of the edited spec, one of two shows what the other one does
    assert seen() == set()


def test_all_are_shown_once_a_batch_is_forgotten(root: Path, seen: Callable[[], set[str]]) -> None:
    """Its record was removed with an older cache, or as one of too many."""
    RecordStore(str(root)).keep_newest("batches", 0)
    assert len([one for one in seen() if "/runs/" in one and "launch." not in one]) == 2 * len(SPECS)


def test_batches_do_not_pile_up(tmp_path: Path) -> None:
    """A workspace that is never validated has a batch for every render."""
    opinions = SecondOpinions(store := RecordStore(str(tmp_path)))
    for number in range(MOST_BATCHES + 3):
        opinions.batch([("a", str(number)), ("b", "")], {"a"})
    assert len(list(store.files("batches"))) == MOST_BATCHES


def test_without_telling_files_there_is_no_batch(tmp_path: Path) -> None:
    """A command that did not ask which files are telling does not know that there are none."""
    opinions = SecondOpinions(RecordStore(str(tmp_path)), "judge")
    assert opinions.batch([("a", "1")], set()) == ""
    opinions.count([("a", "1")], "")
    assert opinions.unjudged(lambda: {"a": "1"}) == ["a"]
