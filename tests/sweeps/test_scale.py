"""A sweep costs only work per trial; calls are counted, because times differ between machines."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
import tracemalloc
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gangplan.commands.cost import print_costs
from gangplan.commands.plan import plan
from gangplan.commands.retire import run_retire_command
from gangplan.commands.simulate import SimulateOptions, run_simulate_command
from gangplan.errors import Exit
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from gangplan.spec.listing import find_possible_sweeps
from gangplan.spec.sweep_files import build_sweep_trial_jobs, find_sweeps_among_spec_files
from tests.rules.worlds import commit
from tests.sweeps.files import FILE, SWEEP, workspace
from tests.test_retire import statuses
from tests.workspaces import SPEC, TEAM, WIDE_CLUSTER, gangplan, write

# Per trial: what commands keep of its run until they end. Its text has 22 kB, its objects 40 kB.
MOST_BYTES = {"render": 7500, "plan": 6500, "cost": 6500, "simulate": 9000}


def sweep_of(root: Path, trials: int) -> Path:
    """Write a workspace with a sweep of this many trials."""
    text = SWEEP.replace("lr: [1e-4, 3e-4, 1e-3]", "lr: [1e-4]")
    text = text.replace("[64, 128]", str(list(range(trials))))
    limits = "limits: {trials: 20000, objects: {runs: 20000, pods: 100000}}\nteams:\n"
    cluster = WIDE_CLUSTER.replace("teams:\n", limits)
    return workspace(root, text, **{"overlays/lab/cluster.yaml": cluster})


def rendered(root: Path) -> None:
    """Render the workspace in this process."""
    result = render_tree(Request(root, engine="serial"))
    assert not result.has_errors, result.findings


def calls(root: Path) -> int:
    """Return the number of Python calls that a render makes."""
    return calls_of(lambda: rendered(root))


def calls_of(work: Callable[[], object]) -> int:
    """Return the number of Python calls that the work makes."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_calls_of_a_render_grow_linearly_with_trials(again: bool, tmp_path: Path) -> None:
    """Twice the trials are twice the work, also when rendered/ has them already."""
    rendered(sweep_of(tmp_path / "warm", 8))
    found = []
    for trials in (32, 64, 96):
        root = sweep_of(tmp_path / str(trials), trials)
        if again:
            rendered(root)
        found.append(calls(root))
    first, second = found[1] - found[0], found[2] - found[1]
    assert second == pytest.approx(first, rel=0.02)


def shown(command: Callable[[Request], object], root: Path) -> None:
    """Run a command that must succeed, and discard what it prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert command(Request(root, engine="serial")) in (None, Exit.CLEAN)


COMMANDS: dict[str, Callable[[Request], object]] = {
    "render": lambda request: rendered(request.root),
    "plan": lambda request: plan(request, "text"),
    "cost": lambda request: print_costs(request, "team", None, "table"),
    "simulate": lambda request: run_simulate_command(request, SimulateOptions(None, None, 0, "text")),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_memory_does_not_grow_with_objects(name: str, tmp_path: Path) -> None:
    """A command keeps only what differs between trials: the text of a trial has 22 kB, its objects 40 kB."""
    peaks = []
    shown(COMMANDS[name], sweep_of(tmp_path / "warm", 8))
    for trials in (48, 96):
        root = sweep_of(tmp_path / str(trials), trials)
        gc.collect()
        gc.freeze()  # the moment of collection must not depend on what other tests left
        tracemalloc.start()
        try:
            shown(COMMANDS[name], root)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
            gc.unfreeze()
    assert (peaks[1] - peaks[0]) / 48 < MOST_BYTES[name]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "render"])
def test_calls_of_commands_grow_linearly_with_trials(name: str, tmp_path: Path) -> None:
    shown(COMMANDS[name], sweep_of(tmp_path / "warm", 8))
    roots = [sweep_of(tmp_path / str(trials), trials) for trials in (32, 64, 96)]
    found = [calls_of(partial(shown, COMMANDS[name], root)) for root in roots]
    assert found[2] - found[1] == pytest.approx(found[1] - found[0], rel=0.05)


def test_lines_of_retire_grow_linearly_with_trials(tmp_path: Path) -> None:
    """Each trial has a status, and finding it does not search those of all others."""
    found = []
    for trials in (16, 32, 48):
        root = sweep_of(tmp_path / f"of-{trials}" / "root", trials)
        rendered(root)
        commit(root)
        names = [path.stem for path in (root / "rendered/lab/runs/nlp").glob("rates-*.yaml")]
        ended = statuses(root, dict.fromkeys(names, "Complete"))
        found.append(lines_of(partial(shown, partial(_retired, ended), root), "retire"))
    assert found[2] - found[1] == pytest.approx(found[1] - found[0], rel=0.05)


def _retired(ended: Path, request: Request) -> object:
    return run_retire_command(request, False, ended, None, None, "text", False)


def lines_of(work: Callable[[], object], part: str) -> int:
    """Return how many lines the work runs in modules of gangplan/pipeline whose names begin with `part`."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    sys.settrace(
        lambda frame, event, argument: line if f"pipeline/{part}" in frame.f_code.co_filename else None
    )
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def test_ten_thousand_trials_get_distinct_short_names(tmp_path: Path) -> None:
    """Trials are generated one by one, and their names have eight characters."""
    values = ", ".join(map(str, range(100)))
    text = SWEEP.replace("[1e-4, 3e-4, 1e-3]", f"[{values}]").replace("[64, 128]", f"[{values}]")
    write(tmp_path, {FILE: text})
    trials = build_sweep_trial_jobs(find_sweeps_among_spec_files(tmp_path, [(FILE, "nlp")])[FILE])
    first = next(trials)
    names = {first.trial.name, *(one.trial.name for one in trials)}
    assert len(names) == 10_000
    assert all(len(name) == 8 for name in names)


def test_folders_without_a_sweep_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later commands search only changed files and folders with sweeps for the word that marks a sweep."""
    root = workspace(tmp_path)
    write(root, {f"specs/nlp/more/job-{number}.yaml": SPEC for number in range(5)})
    looked: list[int] = []

    def counted(root: Path, files: list[tuple[str, str]], without: Collection[str] = ()) -> Any:
        looked.append(sum(file.rpartition("/")[0] not in without for file, _ in files))
        return find_possible_sweeps(root, files, without)

    monkeypatch.setattr("gangplan.spec.sorts.find_possible_sweeps", counted)
    for _ in range(2):
        assert gangplan("render", "-C", root).code == 0
        write(root, {"specs/nlp/team.yaml": TEAM + f"# {len(looked)}\n"})
    write(root, {"specs/nlp/more/late.yaml": SWEEP})
    assert gangplan("render", "-C", root).code == 0
    assert looked == [6, 1, 7]
    assert list((root / "rendered").glob("*/runs/*/late-*.yaml"))
