"""Rendering into a folder: what is written, removed, and left alone, and what a crash leaves."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_launch_file, is_run_file, swap
from gangplan.emit.lock import lock_state_folder
from gangplan.errors import Exit
from tests import workspaces
from tests.rules.worlds import commit
from tests.workspaces import gangplan, render, rendered, tree, write

SECOND = workspaces.SPEC.replace("workers: 4", "workers: 2")
VISION = workspaces.TEAM.replace("kind: Team", "kind: Team\nnamespace: team-vision")
MARK = b"# Rendered by gangplan from "


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Create two teams with two specs each, on two clusters."""
    cluster = workspaces.CLUSTER + "  vision: {queue: training}\n"
    files = {
        **workspaces.STOCK,
        "overlays/lab/cluster.yaml": cluster,
        "overlays/far/cluster.yaml": cluster,
        "specs/vision/team.yaml": VISION.replace("[lab]", "[far, lab]"),
        "specs/nlp/second.yaml": SECOND,
        "specs/vision/first.yaml": workspaces.SPEC,
        "specs/vision/deep/down/second.yaml": SECOND,
    }
    return write(tmp_path / "wide", files)


def names(root: Path) -> list[str]:
    """Return the rendered files, without the hash in the names of runs and of launch scripts."""
    return [_bare(name) for name in rendered(root)]


def _bare(name: str) -> str:
    if is_launch_file(name):
        return name.rsplit(".", 2)[0]
    return name.rsplit("-", 1)[0] if is_run_file(name) else name


SITES = [
    f"{cluster}/platform/{file}.yaml"
    for cluster in ("far", "lab")
    for file in ("priorities", "queues", "roles")
]
TENANTS = [
    f"{cluster}/tenants/{team}/tenant.yaml" for cluster in ("far", "lab") for team in ("nlp", "vision")
]
EVERYTHING = sorted(
    [
        *SITES,
        *TENANTS,
        "far/runs/vision/first",
        "far/runs/vision/launch",
        "far/runs/vision/second",
        "lab/runs/nlp/filings",
        "lab/runs/nlp/launch",
        "lab/runs/nlp/second",
        "lab/runs/vision/first",
        "lab/runs/vision/launch",
        "lab/runs/vision/second",
    ]
)
# A run comes with the launch scripts of its team, which all of its runs there mount.
SECOND_OF_NLP = ["lab/runs/nlp/launch", "lab/runs/nlp/second"]
SECONDS = [name for name in EVERYTHING if name.endswith(("/launch", "/second"))]


# What is written


def test_every_file_is_rendered_with_a_mark(wide: Path) -> None:
    text = render(wide).out
    assert re.fullmatch(
        f"6 runs of 4 specs, [0-9]+ objects in rendered/: {len(EVERYTHING)} new files \\(.+\\)\n", text
    )
    assert sorted(names(wide)) == EVERYTHING
    for data in rendered(wide).values():
        assert data.startswith(MARK)
    assert (wide / "rendered").stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cluster", "far"], [name for name in EVERYTHING if name.startswith("far/")]),
        (["--cluster", "far", "--cluster", "lab"], EVERYTHING),
        (["--team", "vision"], [name for name in EVERYTHING if "/vision" in name]),
        (
            ["--team", "vision", "--cluster", "lab"],
            [name for name in EVERYTHING if "lab" in name and "vis" in name],
        ),
        (["specs/nlp/second.yaml"], SECOND_OF_NLP),
        (["specs/vision"], [name for name in EVERYTHING if "runs/vision" in name]),
        (["specs/vision/deep/"], [name for name in SECONDS if "/vision" in name]),
        (["specs/*/second.yaml"], SECONDS),
        (["specs/nlp/filings.yaml", "specs/nlp/*"], ["lab/runs/nlp/filings", *SECOND_OF_NLP]),
        (["specs/*/second.yaml", "--team", "nlp"], SECOND_OF_NLP),
        (["specs/vision/team.yaml"], [name for name in EVERYTHING if "/vision" in name]),
        (
            ["specs/vision/team.yaml", "specs/vision/first.yaml"],
            [name for name in EVERYTHING if "/vision" in name],
        ),
        (
            ["specs/nlp/second.yaml", "specs/vision/team.yaml"],
            [name for name in EVERYTHING if "/vision" in name or name in SECOND_OF_NLP],
        ),
        (["overlays/far/cluster.yaml"], [name for name in EVERYTHING if name.startswith("far/")]),
        (["overlays/far/"], [name for name in EVERYTHING if name.startswith("far/")]),
        (
            ["overlays/far/cluster.yaml", "specs/nlp/second.yaml"],
            [name for name in EVERYTHING if name.startswith("far/") or name in SECOND_OF_NLP],
        ),
        (
            ["overlays/far/cluster.yaml", "--team", "vision"],
            [name for name in EVERYTHING if name.startswith("far/") and "/vision" in name],
        ),
        (
            ["specs/vision/team.yaml", "--cluster", "far"],
            [name for name in EVERYTHING if name.startswith("far/") and "/vision" in name],
        ),
        (["images/catalog.yaml"], EVERYTHING),
        (["images/catalog.yaml", "specs/nlp/second.yaml"], EVERYTHING),
        (["images/catalog.yaml", "--team", "vision"], [name for name in EVERYTHING if "/vision" in name]),
        (["."], EVERYTHING),
    ],
)
def test_a_scope_renders_only_its_files(arguments: list[str], expected: list[str], wide: Path) -> None:
    render(wide, *arguments)
    assert sorted(names(wide)) == expected
    # A full render adds the rest, and a second partial one changes nothing.
    render(wide)
    everything = rendered(wide)
    assert sorted(names(wide)) == EVERYTHING
    outcome = render(wide, *arguments)
    assert "new" not in outcome.out
    assert "removed" not in outcome.out
    assert rendered(wide) == everything


def test_specs_are_found_from_the_current_folder(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(wide / "specs/vision")
    assert gangplan("render", "deep/down/second.yaml").code == Exit.CLEAN
    assert gangplan("render", wide / "specs/nlp/second.yaml").code == Exit.CLEAN
    assert sorted(names(wide)) == SECONDS


@pytest.mark.parametrize(
    ("arguments", "says", "helps"),
    [
        (["--cluster", "labs"], "there is no cluster 'labs'", "Did you mean 'lab'?"),
        (["--team", "visoin"], "there is no team 'visoin'", "Did you mean 'vision'?"),
        (["specs/nlp/secnd.yaml"], "there is no file 'specs/nlp/secnd.yaml'", "specs/nlp/second.yaml"),
        (["overlays/lab/gone.yaml"], "there is no file 'overlays/lab/gone.yaml'", "A deleted file"),
        (["specs/vision/*.yml"], "no spec matches", ""),
        (["../elsewhere.yaml"], "../elsewhere.yaml is outside the workspace wide/", ""),
        (["specs/vision/first.yaml", "--team", "nlp"], "belongs to another team than nlp", "--team"),
        (["specs/vision/team.yaml", "--team", "nlp"], "belongs to another team than nlp", "--team"),
        (
            ["overlays/lab/cluster.yaml", "--cluster", "far"],
            "belongs to another cluster than far",
            "--cluster",
        ),
        (["specs/nlp/filings.yaml", "README.md"], "README.md is not a file that gangplan reads", "policies/"),
        (["specs/nlp/notes.txt"], "specs/nlp/notes.txt is not a .yaml file", "Specs end in .yaml."),
        (["overlays/notes.txt"], "overlays/notes.txt is not a file that gangplan reads", "overlays/"),
        (["--engine", "slurm"], "there is no engine 'slurm'", "auto, serial, process, mpi"),
        (["--check", "--output", "x"], "--check compares with rendered/", ""),
        (["--jobs", "-1"], "'--jobs'", "--help"),
        (["--no-such-flag"], "--no-such-flag", "--help"),
    ],
)
def test_wrong_arguments_are_refused_with_help(
    arguments: list[str], says: str, helps: str, wide: Path
) -> None:
    write(wide, {"README.md": "", "specs/nlp/notes.txt": "", "overlays/notes.txt": ""})
    outcome = gangplan("render", "-C", wide, *arguments)
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith("fatal: ")
    assert says in outcome.err
    assert helps in outcome.err
    assert not (wide / "rendered").exists()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (".", "holds the workspace"),
        ("..", "holds the workspace"),
        ("specs", "specs/ holds what is checked"),
        ("overlays/lab", "overlays/ holds what is checked"),
        ("rendered/lab", "rendered/ holds what is applied"),
        (".git", "part of Git's own folder"),
        (".git/x", "part of Git's own folder"),
        ("../other", "is a checkout or a workspace"),
        ("../checkout", "is a checkout or a workspace"),
        ("../here", "is the current folder"),
        ("../link", "holds the workspace"),
    ],
)
def test_an_output_folder_that_holds_something_else_is_refused(
    place: str, says: str, wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(wide)
    workspaces.write(tmp_path / "other", workspaces.STOCK)
    render(tmp_path / "other")
    for folder in (wide / ".git", tmp_path / "checkout/.git", tmp_path / "here/deeper"):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(wide, target_is_directory=True)
    monkeypatch.chdir(tmp_path / "here/deeper")
    before = workspaces.tree(tmp_path)
    outcome = gangplan("render", "-C", wide, "-o", wide / place)
    assert outcome.code == Exit.INPUT
    assert says in outcome.err
    assert "Name a folder of its own, such as --output build/manifests." in outcome.err
    assert workspaces.tree(tmp_path) == before


def test_what_is_deeper_below_an_output_folder_stays(wide: Path, tmp_path: Path) -> None:
    """A folder above other outputs and workspaces is an output folder, too: only its own clusters are its."""
    out = tmp_path / "artifacts"
    render(wide, "--output", out / "v1")
    workspaces.write(out / "mono/a", workspaces.STOCK)
    render(out / "mono/a")
    before = workspaces.tree(out)
    render(wide, "--output", out)
    assert before.items() <= workspaces.tree(out).items()
    (wide / "specs/nlp/second.yaml").unlink()
    outcome = render(wide, "--output", out)
    assert "removed" in outcome.out
    assert before.items() <= workspaces.tree(out).items()
    assert not list((out / "lab/runs/nlp").glob("second-*"))


def test_output_writes_to_another_folder_only(wide: Path, tmp_path: Path) -> None:
    render(wide)
    before = workspaces.tree(wide)
    out = tmp_path / "deep/er/out"
    outcome = render(wide, "--output", out)
    assert tree(out) == rendered(wide)
    assert str(out) in outcome.out
    assert workspaces.tree(wide) == before
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_output_to_standard_output_writes_no_file(wide: Path) -> None:
    outcome = render(wide, "--output", "-", "--team", "nlp", "--cluster", "lab")
    assert not (wide / "rendered").exists()
    render(wide, "--team", "nlp", "--cluster", "lab")
    files = rendered(wide)
    # `kubectl apply -f -` creates the launch scripts before the runs that mount them.
    order = sorted(files, key=lambda name: (not is_launch_file(name), name))
    assert outcome.out == "---\n".join(files[name].decode() for name in order)


# --check


def test_check_passes_when_fresh(wide: Path) -> None:
    render(wide)
    outcome = gangplan("render", "-C", wide, "--check")
    assert (outcome.code, outcome.out, outcome.err) == (
        0,
        f"rendered/ is fresh: {len(EVERYTHING)} files of 4 specs\n",
        "",
    )


def test_check_fails_when_nothing_was_rendered(wide: Path) -> None:
    outcome = gangplan("render", "-C", wide, "--check")
    assert outcome.code == Exit.FINDINGS
    assert outcome.out.count("new: rendered/") == len(EVERYTHING)
    assert not (wide / "rendered").exists()


def test_check_shows_the_difference(root: Path) -> None:
    render(root)
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "labels: {project: filings}\n"})
    (run,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    tenant = root / "rendered/lab/tenants/nlp/tenant.yaml"
    tenant.write_bytes(tenant.read_bytes().replace(b'stopPolicy: "None"', b"stopPolicy: Hold"))
    (root / "rendered/lab/tenants/nlp/old.yaml").write_bytes(MARK + b"specs/nlp/team.yaml\n")
    before = rendered(root)
    outcome = gangplan("render", "-C", root, "--check")
    assert outcome.code == Exit.FINDINGS
    assert f"removed: rendered/lab/runs/nlp/{run.name}\n" in outcome.out
    assert "new: rendered/lab/runs/nlp/filings-" in outcome.out
    assert "removed: rendered/lab/tenants/nlp/old.yaml\n" in outcome.out
    assert '-  stopPolicy: Hold\n+  stopPolicy: "None"\n' in outcome.out
    assert outcome.out.endswith("rendered/ is stale: 4 files differ; run `gangplan render` and commit\n")
    assert rendered(root) == before


def test_check_of_a_part_ignores_the_rest(wide: Path) -> None:
    render(wide)
    write(wide, {"specs/vision/first.yaml": workspaces.SPEC + "run: 2\n"})
    assert gangplan("render", "-C", wide, "--check", "--team", "nlp").code == Exit.CLEAN
    assert gangplan("render", "-C", wide, "--check", "specs/nlp").code == Exit.CLEAN
    assert gangplan("render", "-C", wide, "--check", "--team", "vision").code == Exit.FINDINGS
    assert gangplan("render", "-C", wide, "--check", "specs/vision/first.yaml").code == Exit.FINDINGS


# Pruning


def test_removing_a_spec_removes_its_runs(wide: Path) -> None:
    render(wide)
    (wide / "specs/vision/first.yaml").unlink()
    outcome = render(wide)
    assert "2 removed" in outcome.out
    assert sorted(names(wide)) == [name for name in EVERYTHING if not name.endswith("vision/first")]


def test_launch_scripts_go_with_the_last_run_that_mounts_them(wide: Path) -> None:
    render(wide)
    (wide / "specs/nlp/second.yaml").unlink()
    assert "1 removed" in render(wide).out
    assert sorted(names(wide)) == [name for name in EVERYTHING if name != "lab/runs/nlp/second"]
    (wide / "specs/nlp/filings.yaml").unlink()
    assert "2 removed" in render(wide).out
    assert sorted(names(wide)) == [name for name in EVERYTHING if "/runs/nlp/" not in name]


def test_removing_a_cluster_removes_its_folder(wide: Path) -> None:
    render(wide)
    for path in (wide / "overlays/far").iterdir():
        path.unlink()
    (wide / "overlays/far").rmdir()
    write(wide, {"specs/vision/team.yaml": VISION})
    render(wide)
    assert sorted(names(wide)) == [name for name in EVERYTHING if name.startswith("lab/")]
    assert not (wide / "rendered/far").exists()


def test_a_part_prunes_only_its_own_files(wide: Path) -> None:
    render(wide)
    (wide / "specs/vision/first.yaml").unlink()
    (wide / "specs/nlp/second.yaml").unlink()
    before = rendered(wide)
    render(wide, "specs/vision/deep/down/second.yaml")
    assert rendered(wide) == before
    render(wide, "--team", "nlp")
    assert sorted(names(wide)) == [name for name in EVERYTHING if name != "lab/runs/nlp/second"]
    render(wide, "--cluster", "far")
    gone = ("lab/runs/nlp/second", "far/runs/vision/first")
    assert sorted(names(wide)) == [name for name in EVERYTHING if name not in gone]


@pytest.mark.parametrize(
    ("named", "gone"),
    [
        (["specs/nlp/filings.yaml"], []),
        (["specs/nlp/team.yaml"], ["lab/runs/nlp/second"]),
        (["overlays/far/cluster.yaml"], ["far/runs/vision/first"]),
        (["overlays/far/cluster.yaml", "specs/nlp/filings.yaml"], ["far/runs/vision/first"]),
        (
            ["overlays/far/cluster.yaml", "specs/nlp/team.yaml"],
            ["far/runs/vision/first", "lab/runs/nlp/second"],
        ),
        (["images/catalog.yaml"], ["far/runs/vision/first", "lab/runs/nlp/second", "lab/runs/vision/first"]),
    ],
)
def test_named_files_prune_only_their_own_files(named: list[str], gone: list[str], wide: Path) -> None:
    render(wide)
    (wide / "specs/vision/first.yaml").unlink()
    (wide / "specs/nlp/second.yaml").unlink()
    render(wide, *named)
    assert sorted(names(wide)) == [name for name in EVERYTHING if name not in gone]


def test_a_changed_spec_replaces_its_run(root: Path) -> None:
    render(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    render(root, "specs/nlp/filings.yaml")
    (new,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    assert new.name != old.name


# Unmanaged files


FOREIGN = {
    "rendered/README.md": "Do not edit.\n",
    "rendered/lab/.argocd-source.yaml": "x: 1\n",
    "rendered/lab/runs/nlp/by-hand.yaml": "kind: TrainJob\n",
    "rendered/lab/runs/nlp/mentions.yaml": f"kind: TrainJob\n{MARK.decode()}specs/nlp/filings.yaml\n",
    "rendered/empty.yaml": "",
    "rendered/binary": "\x00\x01",
}


def test_unmanaged_files_are_kept(root: Path) -> None:
    write(root, FOREIGN)
    (root / "rendered/shared").mkdir()
    (root / "rendered/lab/link.yaml").symlink_to("../README.md")
    (root / "rendered/lab/dangling.yaml").symlink_to("nowhere")
    (root / "rendered/lab/folder").symlink_to("../shared")
    render(root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("filings-*")
    (root / "rendered/lab/latest.yaml").symlink_to(f"runs/nlp/{run.name}")
    (root / "specs/nlp/second.yaml").write_text(SECOND)
    (root / "specs/nlp/third.yaml").write_text(SECOND)
    render(root)
    (root / "specs/nlp/second.yaml").unlink()
    render(root)
    for name, text in FOREIGN.items():
        assert (root / name).read_text() == text
    for name in ("link.yaml", "dangling.yaml", "folder", "latest.yaml"):
        assert (root / "rendered/lab" / name).is_symlink(), name


def test_an_unmanaged_file_is_never_overwritten(root: Path) -> None:
    render(root)
    for path in sorted((root / "rendered").rglob("*.yaml")):
        mine = path.read_bytes()
        path.write_bytes(b"kind: TrainJob # by hand\n")
        before = rendered(root)
        outcome = gangplan("render", "-C", root)
        assert outcome.code == Exit.INPUT
        assert f"{path} would be overwritten, but gangplan did not write it" in outcome.err
        assert "help: Move it away." in outcome.err
        assert rendered(root) == before
        path.write_bytes(mine)


def test_a_folder_in_place_of_a_file_is_refused(root: Path) -> None:
    (root / "rendered/lab/tenants/nlp/tenant.yaml").mkdir(parents=True)
    outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.INPUT
    assert "Is a directory" in outcome.err


def test_a_file_in_place_of_a_folder_is_refused(root: Path) -> None:
    write(root, {"rendered/lab": "a file\n"})
    outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.INPUT
    assert "Traceback" not in outcome.err
    assert rendered(root) == {"lab": b"a file\n"}


def test_rendered_may_not_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "rendered").symlink_to(tmp_path / "elsewhere")
    for _ in range(2):
        outcome = gangplan("render", "-C", root)
        assert outcome.code == Exit.INPUT
        assert "is a link" in outcome.err
    assert (root / "rendered").is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


# Crashes


COUNTED = ("rename", "replace", "link", "unlink", "mkdir", "rmdir")


def _die_at(number: int, with_cache: bool = True) -> None:
    """Make this child die just before the given call of a function that changes the file system.

    How often the cache is written depends on clocks; without it, each run makes the same calls.
    """
    left = [number]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            left[0] -= with_cache or not any("/.gangplan/cache" in str(one) for one in arguments[:2])
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in COUNTED:
        setattr(os, name, counted(getattr(os, name)))
    Path.write_bytes = counted(Path.write_bytes)  # type: ignore[method-assign]
    swap.exchange_paths.__globals__["_exchange_at_once"] = counted(swap._exchange_at_once)


def _render_and_die(root: Path, number: int, with_cache: bool = True) -> int:
    """Render in a child that is killed at a call, and return its exit status."""
    child = os.fork()
    if child == 0:
        try:
            _die_at(number, with_cache)
            os._exit(gangplan("render", "-C", root).code)
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# A kernel without an exchange differs only in how the old tree is removed, so two changes cover it.
KILLS = [
    ("everything", False),
    ("first", False),
    *((change, True) for change in ("everything", "one file", "removal", "first")),
]


@pytest.mark.parametrize(("change", "at_once"), KILLS)
def test_a_kill_at_any_call_leaves_the_old_tree_or_the_new_one(
    at_once: bool, change: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill, there is the old tree or the new one, and the next render finishes the work."""
    if not at_once:
        monkeypatch.setattr(swap, "_exchange_at_once", lambda first, second: False)
    write(root, {"specs/nlp/second.yaml": SECOND})
    write(root, {"rendered/README.md": "by hand\n"} if change != "first" else {})
    if change != "first":
        render(root)
    old = rendered(root) if change != "first" else {}
    if change == "everything":
        text = workspaces.CATALOG.replace("332211ffee", "332211ffef")
        write(root, {"images/catalog.yaml": text})
    if change == "one file":
        write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "contact: nlp@example.com\n"})
    if change == "removal":
        (root / "specs/nlp/second.yaml").unlink()
    render(root, "--output", tmp_path / "new")
    new = tree(tmp_path / "new") | ({"README.md": b"by hand\n"} if change != "first" else {})
    assert new != old
    seen: set[tuple[str, ...]] = set()
    number = 1
    while True:
        _restore(root, old)
        status = _render_and_die(root, number, at_once)
        now = rendered(root)
        if status != -signal.SIGKILL:
            assert (status, now) == (0, new)
            break
        absent = not (root / "rendered").exists()
        assert now in (old, new) or (absent and not at_once), f"call {number}: neither old nor new"
        # The next render sees only the tree and the files next to it, so each such state is tried once.
        state = ("new" if now == new else "old" if now == old else "aside", *_beside(root))
        if state not in seen:
            seen.add(state)
            _recover(root, new)
        number += 1
    _restore(root, old)
    _render_and_die(root, number - 1, at_once)
    _recover(root, new)
    assert number > 5
    assert "old" in {state[0] for state in seen}
    if not at_once and change == "everything":
        assert "aside" in {state[0] for state in seen}


def _beside(root: Path) -> list[str]:
    """Return what a killed render leaves next to the tree: the lock, a stage, and whether it has files."""
    state = root / ".gangplan"
    return sorted(path.relative_to(state).as_posix() for depth in ("*", "*/*") for path in state.glob(depth))


def _recover(root: Path, new: dict[str, bytes]) -> None:
    """Check that the next render finishes the work and leaves nothing next to the tree."""
    render(root)
    assert rendered(root) == new
    assert sorted(path.name for path in (root / ".gangplan").iterdir()) == ["cache", "lock"]


def _restore(root: Path, files: dict[str, bytes]) -> None:
    """Restore the rendered tree."""
    shutil.rmtree(root / "rendered", ignore_errors=True)
    shutil.rmtree(root / ".gangplan", ignore_errors=True)
    write(root / "rendered", files)


def test_a_kill_at_any_moment_leaves_the_old_tree_or_the_new_one(wide: Path, tmp_path: Path) -> None:
    """A real program is killed from outside; the test above has every moment that matters."""
    render(wide)
    old = rendered(wide)
    write(wide, {"images/catalog.yaml": workspaces.CATALOG.replace("5544332211ffee", "5544332211ffef")})
    render(wide, "--output", tmp_path / "new")
    new = tree(tmp_path / "new")
    assert old != new
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "gangplan", "render", "-C", wide, "--check"], capture_output=True, check=False
    )
    lasts = time.monotonic() - started
    for share in (0.65, 0.8, 0.95):
        _restore(wide, old)
        with subprocess.Popen(
            [sys.executable, "-m", "gangplan", "render", "-C", wide],
            stdout=-3,
            stderr=-3,
            start_new_session=True,
        ) as program:
            time.sleep(lasts * share)
            program.kill()
        assert rendered(wide) in (old, new)
        render(wide)
        assert rendered(wide) == new


def test_a_second_render_at_the_same_time_is_refused(root: Path) -> None:
    with lock_state_folder(root / ".gangplan"):
        outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.ENVIRONMENT
    assert outcome.err.startswith("fatal: another render of this workspace is running\n  help: ")
    assert not (root / "rendered").exists()
    render(root)


def test_several_renders_at_once_leave_a_complete_tree(wide: Path) -> None:
    arguments = [sys.executable, "-m", "gangplan", "render", "-C", str(wide)]
    programs = [subprocess.Popen(arguments, stdout=-3, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [(program.communicate()[1], program.returncode) for program in programs]
    assert {code for _, code in ends} <= {0, 3}
    assert 0 in {code for _, code in ends}
    for text, code in ends:
        assert ("another render of this workspace is running" in text) == (code == Exit.ENVIRONMENT)
    assert sorted(names(wide)) == EVERYTHING


# A file system that refuses changes


def _refusing(real: Callable[..., Any], number: int, at: str = "") -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if at in str(arguments[0]):
            raise OSError(number, os.strerror(number), str(arguments[0]))
        return real(*arguments, **options)

    return call


@pytest.mark.parametrize(
    ("owner", "name", "number", "is_first"),
    [
        (Path, "write_bytes", errno.ENOSPC, True),
        (Path, "write_bytes", errno.ENOSPC, False),
        (Path, "mkdir", errno.EROFS, True),
        (Path, "mkdir", errno.EROFS, False),
        (os, "mkdir", errno.ENOSPC, True),
        (os, "mkdir", errno.ENOSPC, False),
        (os, "rename", errno.EACCES, True),
        (os, "replace", errno.EACCES, False),
        (os, "open", errno.EROFS, True),
        (os, "open", errno.EROFS, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_refused_change_leaves_the_tree_as_it_was(
    owner: Any, name: str, number: int, is_first: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_first:
        render(root)
        write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "contact: nlp@example.com\n"})
    before = rendered(root)
    with monkeypatch.context() as patch:
        # Only changes on the way into the tree are refused, not reading or temporary files.
        at = "lock" if name == "open" else str(root)
        patch.setattr(owner, name, _refusing(getattr(owner, name), number, at))
        outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.ENVIRONMENT, outcome.err
    assert os.strerror(number) in outcome.err
    assert "a bug in gangplan" not in outcome.err
    assert rendered(root) == before
    render(root)


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_refused_rename_leaves_a_complete_tree(
    refused: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(root)
    old = rendered(root)
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    monkeypatch.setattr(swap, "_exchange_at_once", lambda first, second: False)
    calls: list[str] = []

    def rename(source: str, target: str, real: Callable[..., None] = os.rename) -> None:
        calls.append(str(source))
        if len(calls) == refused:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        outcome = gangplan("render", "-C", root)
    if refused < 3:
        assert outcome.code == Exit.ENVIRONMENT
        assert "Device or resource busy" in outcome.err
        assert rendered(root) == old
    else:
        assert outcome.code == Exit.CLEAN
        assert rendered(root) != old
    render(root)
    assert sorted(path.name for path in (root / ".gangplan").iterdir()) == ["cache", "lock"]


def test_a_full_disk_leaves_no_file(wide: Path, tmp_path: Path) -> None:
    """Mount a small file system, where this is allowed, and fill it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", disk],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted: {mounted.stderr.strip()}")
    try:
        outcome = gangplan("render", "-C", wide, "--output", disk / "out")
        assert outcome.code == Exit.ENVIRONMENT
        assert "No space left on device" in outcome.err
        assert tree(disk) == {}
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_reported(root: Path) -> None:
    root.chmod(0o555)
    outcome = gangplan("render", "-C", root)
    root.chmod(0o755)
    assert outcome.code == Exit.ENVIRONMENT
    assert "Permission denied" in outcome.err


# Programs that are missing


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a machine without kustomize, kubectl, kubeconform and network."""
    (tmp_path / "nothing").mkdir()
    for name in ("GANGPLAN_KUSTOMIZE", "GANGPLAN_KUBECONFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("GANGPLAN_TOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GANGPLAN_OFFLINE", "1")


@pytest.mark.usefixtures("bare")
def test_without_programs_a_workspace_without_patches_renders(root: Path) -> None:
    render(root)
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.CLEAN
    assert outcome.out.startswith("checked 1 spec, 1 run, ")
    assert outcome.out.endswith(" objects (embedded validator): no findings\n")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("command", ["render", "validate", "plan"])
def test_without_programs_patches_cannot_be_applied(command: str, root: Path) -> None:
    write(root, {"overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION})
    outcome = gangplan(command, "-C", root)
    if command == "plan" and outcome.code == Exit.CLEAN:
        pytest.fail("a plan without its overlay would name other runs")
    assert outcome.code == Exit.ENVIRONMENT
    assert "kustomize" in outcome.err
    assert "there is no kubectl either" in outcome.err
    assert "help: Run `gangplan tools install kustomize`" in outcome.err
    assert not (root / "rendered").exists()


# Runs that a change of the platform would rename


def test_a_new_image_renames_runs_and_is_reported(root: Path) -> None:
    render(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    outcome = gangplan("render", "-C", root, "--check")
    assert outcome.code == Exit.FINDINGS
    stale, renamed = outcome.findings
    assert (stale.severity, stale.rule) == ("error", "rendered-stale")
    assert (renamed.severity, renamed.rule) == ("warning", "run-renamed")
    assert old.stem in renamed.message
    kept = render(root, "--keep-runs")
    assert [(shown.severity, shown.rule) for shown in kept.findings] == [("note", "run-kept")]
    assert list((root / "rendered/lab/runs/nlp").glob("*-*.yaml")) == [old]
    for check in (("validate",), ("render", "--check")):
        again = gangplan(*check, "-C", root, "--keep-runs")
        assert again.code == Exit.CLEAN
        assert [(shown.severity, shown.rule) for shown in again.findings] == [("note", "run-kept")]
    render(root)
    (new,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    assert new.name != old.name


def test_a_cluster_keeps_its_runs_in_every_command(root: Path) -> None:
    """What CI runs has no flag: the file of the cluster says it."""
    render(root)
    commit(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + "keepRuns: true\n"})
    assert [one.rule for one in render(root).findings] == ["run-kept"]
    assert list((root / "rendered/lab/runs/nlp").glob("*-*.yaml")) == [old]
    for command in (("validate",), ("render", "--check"), ("validate", "--base", "HEAD")):
        for flags in ((), ("--no-cache",)):
            outcome = gangplan(*command, *flags, "-C", root)
            assert outcome.code == Exit.CLEAN, outcome.err
            assert [one.rule for one in outcome.findings] == ["run-kept"]
    plan = gangplan("plan", "--base", "HEAD", "-C", root)
    assert "trains again" not in plan.out
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER})
    assert "run-renamed" in [one.rule for one in gangplan("validate", "-C", root).findings]


def test_a_run_that_todays_versions_refuse_cannot_be_kept(root: Path) -> None:
    """Trainer 2.3 has no numProcPerNode of torch: the API server would refuse objects for 2.1."""
    new = 'kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"'
    old = 'kubernetes: "1.33.4", trainer: "2.1.0", kueue: "0.16.1"'
    spec = workspaces.SPEC.replace("image: openmpi", "image: pytorch")
    cluster = workspaces.CLUSTER.replace(new, old)
    write(root, {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster})
    render(root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(
        root,
        {"overlays/lab/cluster.yaml": workspaces.CLUSTER, "specs/nlp/filings.yaml": spec + "keep: true\n"},
    )
    outcome = gangplan("render", "-C", root)
    (found,) = [one for one in outcome.findings if one.severity == "error"]
    assert (found.rule, found.place) == ("schema", "specs/nlp/filings.yaml:1:1")
    assert (
        f"run {run.stem} cannot be kept as it was rendered: unknown field 'numProcPerNode'" in found.message
    )
    assert found.help.startswith("Write state: archived until that run is over")
    write(root, {"specs/nlp/filings.yaml": spec + "state: archived\n"})
    assert not render(root).errors()
    assert not run.exists()


def test_a_changed_spec_is_a_new_run_even_when_runs_are_kept(root: Path) -> None:
    render(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "run: 2\n"})
    outcome = render(root, "--keep-runs")
    assert outcome.findings == []
    (new,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    assert new.name != old.name
