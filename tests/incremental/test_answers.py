"""A question that was answered is answered again only while everything that the answer depends on is the
same."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import pytest

import gangplan
from gangplan.incremental import answers
from gangplan.incremental.answers import FOLDERS, VARIABLES
from gangplan.incremental.look import look_at_folders, read_memory
from gangplan.incremental.store import RecordStore
from gangplan.workspace import READ_FOLDERS, RENDERED
from tests import workspaces

FILES = {**workspaces.STOCK, "specs/nlp/filings.yaml": workspaces.SPEC}
SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create a rendered workspace."""
    found = workspaces.write(tmp_path / "work", FILES)
    workspaces.render(found)
    return found


def gangplan_(*words: str, root: Path, **variables: str) -> tuple[int, str, str, bool]:
    """Return exit code, output and errors of a command, and whether it was answered without the program."""
    script = "import sys; from gangplan.entry import main; code = main();"
    script += " open(sys.argv[0], 'w').write(str('gangplan.cli' not in sys.modules)); sys.exit(code)"
    note = root.parent / "note"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[:] = [{str(note)!r}, *sys.argv[1:]]; {script}", *words],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr, note.read_text() == "True"


def settled(*words: str, root: Path, **variables: str) -> tuple[int, str, str]:
    """Repeat a command until it is answered at once, and return what it says, which must be the same each
    time."""
    *first, was_kept = gangplan_(*words, root=root, **variables)
    assert not was_kept
    for _ in range(40):
        *again, was_kept = gangplan_(*words, root=root, **variables)
        assert again == first
        if was_kept:
            return first[0], first[1], first[2]
        time.sleep(0.05)
    raise AssertionError("the answer was never kept")


@pytest.mark.parametrize(
    "words", [["validate"], ["render"], ["render", "--check"], ["plan"], ["validate", "--format", "json"]]
)
def test_the_same_question_is_answered_at_once(root: Path, words: list[str]) -> None:
    """Output, errors and exit code are those of the first time."""
    code, _, _ = settled(*words, root=root)
    assert code == 0


def test_findings_and_bad_input_are_answered_as_well(root: Path) -> None:
    """Errors are reported again in the same words."""
    (root / SPEC).write_text(workspaces.SPEC.replace("workers: 4", "workers: four"))
    code, _, errors = settled("validate", root=root)
    assert code == 2
    assert SPEC in errors
    code, _, errors = settled("validate", "--cluster", "nowhere", root=root)
    assert code == 2
    assert "nowhere" in errors


def _edit(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def _edit_unseen(root: Path) -> None:
    """Edit one byte, and keep the file's size, inode and modification time."""
    path = next((root / "rendered").rglob("runs/**/*-*.yaml"))
    own = path.stat()
    with path.open("r+b") as file:
        file.write(b"%")
    os.utime(path, ns=(own.st_atime_ns, own.st_mtime_ns))


def _swap(root: Path) -> None:
    """Replace the spec by another file with the same times."""
    path = root / SPEC
    other = path.with_name("other")
    other.write_text(path.read_text().replace("workers: 4", "workers: 2"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a spec is edited": _edit(SPEC, "workers: 4", "workers: 2"),
    "a cluster is edited": _edit(CLUSTER, "count: 4, cpu: 60", "count: 5, cpu: 60"),
    "a comment": _edit(SPEC, "image: openmpi", "image: openmpi  # ours"),
    "a spec goes": lambda root: (root / SPEC).unlink(),
    "a spec comes": lambda root: shutil.copy(root / SPEC, root / "specs/nlp/more.yaml"),
    "a spec gets another name": lambda root: (root / SPEC).rename(root / "specs/nlp/more.yaml"),
    "a spec becomes a link": lambda root: (
        (root / SPEC).rename(root / "x"),
        (root / SPEC).symlink_to(root / "x"),
    ),
    "an old file takes its place": _swap,
    "a rendered file is edited": _edit_unseen,
    "a rendered file comes": lambda root: (root / "rendered/lab/more.yaml").write_text("kind: Pod\n"),
    "rendered/ goes": lambda root: shutil.rmtree(root / "rendered"),
    "a waiver comes": lambda root: (
        (root / "policies/waivers").mkdir(parents=True, exist_ok=True),
        (root / "policies/waivers/w.yaml").write_text("kind: Waiver\n"),
    ),
    "a repository comes": lambda root: (root / ".git").mkdir(),
}


# Changes that are noticed in different ways, each with a command that must notice it.
WHOLE = {
    "a spec is edited": ["validate"],
    "a rendered file is edited": ["render", "--check"],
    "a repository comes": ["validate"],
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_changed_workspace_gets_a_new_answer(root: Path, name: str) -> None:
    """The new answer is that of a command without a cache."""
    settled(*WHOLE[name], root=root)
    CHANGES[name](root)
    *found, was_kept = gangplan_(*WHOLE[name], root=root)
    assert not was_kept
    *fresh, _ = gangplan_(*WHOLE[name], "--no-cache", root=root)
    assert found == fresh


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "a repository comes"])
def test_an_answer_does_not_count_after_a_change(root: Path, name: str) -> None:
    """After every kind of change, the earlier answer is not used."""
    time.sleep(0.12)
    question = _asked(root)
    question.write(1, b"said")
    question.keep(0)
    assert _asked(root).answer() == ([(1, "said")], 0)
    CHANGES[name](root)
    assert _asked(root).answer() is None


def test_other_questions_have_other_answers(root: Path) -> None:
    """The day, colours, programs and flags count."""
    settled("validate", root=root)
    assert not gangplan_("validate", "--today", "2031-01-01", root=root)[3]
    assert not gangplan_("validate", root=root, FORCE_COLOR="1")[3]
    assert not gangplan_("validate", root=root, PATH=f"{root}{os.pathsep}{os.environ['PATH']}")[3]
    assert not gangplan_("validate", "--team", "nlp", root=root)[3]
    assert gangplan_("validate", root=root)[3]


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "--no-cache"],
        ["validate", "--fix", "--dry-run"],
        ["validate", "--format", "json=out.json"],
        ["render", "--output", "out"],
        ["render", "--output", "-"],
        ["render", "-vo", "out"],
        ["render", "-qoout"],
        ["validate", "-qC../work"],
        ["validate", "-vC", "."],
        ["explain", "workers"],
        ["validate", "../elsewhere.yaml"],
        ["validate", "specs-of-old"],
        ["validate", "-C", "specs-of-old", "specs-of-old"],
    ],
    ids=" ".join,
)
def test_commands_that_do_or_read_something_else_are_not_questions(
    root: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """These commands write files, or look outside the workspace."""
    (root.parent / "elsewhere.yaml").write_text("a: b\n")
    (root / "specs-of-old").mkdir()
    monkeypatch.chdir(root)
    assert answers.build_question_for_cached_answer(["validate"]) is not None
    assert answers.build_question_for_cached_answer(words) is None


def test_commands_that_are_not_questions_are_never_kept(root: Path) -> None:
    for _ in range(3):
        assert not gangplan_("render", "--output", "out", root=root)[3]
        time.sleep(0.12)


def test_no_cache_leaves_no_cache(root: Path) -> None:
    """Not even its folder is created."""
    shutil.rmtree(root / ".gangplan")
    gangplan_("validate", "--no-cache", root=root)
    assert not (root / ".gangplan" / "cache").exists()


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other", "folder"])
def test_a_damaged_record_is_ignored(root: Path, damage: str) -> None:
    """An incomplete record is worked out again, and replaced."""
    code, output, errors = settled("validate", root=root)
    for path in [path for path in (root / ".gangplan/cache").rglob("*") if path.is_file()]:
        data = path.read_bytes()
        if damage == "folder":
            path.unlink()
            path.mkdir()
        else:
            middle = len(data) // 2
            bit = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
            path.write_bytes({"cut": data[:-9], "bit": bit, "empty": b"", "other": b'{"code": 0}'}[damage])
    assert gangplan_("validate", root=root) == (code, output, errors, False)


def test_a_record_of_someone_else_is_ignored(root: Path, tmp_path: Path) -> None:
    """A pull request may bring any file: without the key, its contents are not believed."""
    settled("validate", root=root)
    assert gangplan_("validate", root=root)[3]
    assert not gangplan_("validate", root=root, GANGPLAN_CACHE_KEY="of another machine")[3]
    assert not gangplan_("validate", root=root, XDG_CACHE_HOME=str(tmp_path / "elsewhere"))[3]
    assert (tmp_path / "elsewhere/gangplan/cache.key").stat().st_mode & 0o777 == 0o600


def test_without_a_place_for_a_key_there_is_no_cache(root: Path) -> None:
    """Commands work without a cache."""
    shutil.rmtree(root / ".gangplan")
    for _ in range(2):
        *found, was_kept = gangplan_("validate", root=root, XDG_CACHE_HOME="/dev/null", HOME="/dev/null")
        assert found[0] == 0
        assert not was_kept
    assert not (root / ".gangplan" / "cache").exists()


def test_a_cache_that_is_a_link_is_not_used(root: Path) -> None:
    """The link could lead anywhere."""
    settled("validate", root=root)
    (root / ".gangplan/cache").rename(root.parent / "cache")
    (root / ".gangplan/cache").symlink_to(root.parent / "cache")
    assert not gangplan_("validate", root=root)[3]


def test_a_workspace_that_cannot_have_a_cache_works(root: Path) -> None:
    """The place of the cache is taken by a file: commands work without one."""
    shutil.rmtree(root / ".gangplan")
    (root / ".gangplan").write_text("")
    assert gangplan_("validate", root=root)[0] == 0


def test_concurrent_commands_say_the_same(root: Path) -> None:
    """The commands share one cache."""
    expected = gangplan_("validate", "--no-cache", root=root)[:3]
    said: list[tuple[int, str, str]] = []

    def ask() -> None:
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-m", "gangplan", "validate"],
                cwd=root,
                capture_output=True,
                text=True,
                check=False,
            )
            said.append((done.returncode, done.stdout, done.stderr))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [expected] * 12
    assert not list((root / ".gangplan/cache").rglob("*.[0-9]*"))


def test_info_shows_and_clear_removes_the_records(root: Path) -> None:
    settled("validate", root=root)
    assert "1 record" in gangplan_("cache", "info", root=root)[1]
    assert "removed" in gangplan_("cache", "clear", root=root)[1]
    assert gangplan_("cache", "info", root=root)[1] == ".gangplan/cache/ is empty\n"
    assert not gangplan_("validate", root=root)[3]


def test_all_folders_of_a_workspace_count() -> None:
    """An answer depends on what the workspace reads and writes."""
    assert set(FOLDERS) == {*READ_FOLDERS, RENDERED}


def test_all_variables_that_the_program_reads_count() -> None:
    """They belong to the question; the ones listed here are not part of an answer."""
    other = {"GITHUB_STEP_SUMMARY"}  # never answered from the cache
    other |= {"COMP_WORDS", "_TYPER_COMPLETE_ARGS"}  # what a shell asks TAB for
    read: set[str] = set()
    package = Path(gangplan.__file__).parent
    for path in package.rglob("*.py"):
        if {"launchers", "local"} & set(path.parts):  # a run on this machine is never answered
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "environ" in source else ():
            if re.search(r"os\.environ(\.get)?[\[(]", text := ast.unparse(node)) and isinstance(
                node, ast.Call | ast.Subscript
            ):
                read |= set(re.findall(r"os\.environ(?:\.get\(|\[)'([A-Z_]+)'", text))
    assert {"NO_COLOR", "PATH"} <= read
    assert read - other <= set(VARIABLES)
    assert {f"GANGPLAN_{name.upper()}" for name in ("kustomize", "kubeconform")} <= set(VARIABLES)


def test_only_the_newest_answers_are_kept(tmp_path: Path) -> None:
    """The cache does not grow without limit."""
    store = answers.RecordStore(str(tmp_path))
    for number in range(answers.MOST_ANSWERS + 9):
        store.put(f"answers/{number:032}", number)
        os.utime(Path(str(store.folder), f"answers/{number:032}"), ns=(number, number))
    store.keep_newest("answers", answers.MOST_ANSWERS)
    assert len(list(store.files("answers"))) == answers.MOST_ANSWERS
    assert store.get(f"answers/{8:032}") is None
    assert store.get(f"answers/{9:032}") == 9


@pytest.mark.parametrize("place", ["none/site-packages", "file/site-packages"])
def test_a_place_for_packages_that_does_not_exist_is_passed_over(root: Path, place: str) -> None:
    (root.parent / "file").write_text("")
    path = str(root.parent / place)
    for words in (["validate"], ["render"], ["validate", "--no-cache", "--shard", "1/2", "--format", "json"]):
        code, _, errors, _ = gangplan_(*words, root=root, PYTHONPATH=path)
        assert (code, errors.count("fatal")) == (0, 0), errors


def _asked(root: Path) -> answers.Question:
    """Return a question about a workspace as it is, asked long after its last change."""
    store = RecordStore(str(root))
    memory = read_memory(store.get("folders"))
    return answers.Question(str(root), "0123", store, memory, look_at_folders(str(root), FOLDERS, memory))


@pytest.mark.parametrize("is_touched", [False, True])
def test_a_large_workspace_is_looked_at_once(
    root: Path, is_touched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer counts only if no file is touched: contents that changed for a while may have been read
    then."""
    monkeypatch.setattr(answers, "MANY_FILES", 0)
    time.sleep(0.12)
    first = _asked(root)
    first.write(1, b"said")
    seen: list[Sequence[str]] = []
    monkeypatch.setattr(
        answers, "look_at_folders", lambda *given, **_: seen.append(given) or look_at_folders(*given)
    )
    if is_touched:
        text = (root / SPEC).read_text()
        (root / SPEC).write_text(text + "run: 2\n")
        (root / SPEC).write_text(text)
        time.sleep(0.12)
    first.keep(0)
    assert not seen
    assert _asked(root).answer() == (None if is_touched else ([(1, "said")], 0))


def test_an_answer_about_other_files_is_not_read(root: Path) -> None:
    """It may be large. The new answer replaces it."""
    settled("validate", root=root)
    folder = root / ".gangplan/cache/answers"
    (old,) = folder.iterdir()
    store = RecordStore(str(root))
    (root / SPEC).write_text((root / SPEC).read_text() + "run: 2\n")
    memory = read_memory(store.get("folders"))
    look = look_at_folders(str(root), FOLDERS, memory)
    asked = answers.Question(str(root), old.name.partition("-")[0], store, memory, look)
    with mock.patch.object(RecordStore, "get", wraps=store.get) as get:
        assert asked.answer() is None
    assert [call.args for call in get.call_args_list] != [(f"answers/{old.name}",)]
    settled("validate", root=root)
    assert [one.name.partition("-")[0] for one in folder.iterdir()] == [old.name.partition("-")[0]]
    assert not old.exists()
