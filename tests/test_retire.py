"""`gangplan retire`: which runs are over, and the two changes that remove each of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.fixes.states import set_state_fields
from gangplan.source import load_objects
from tests import workspaces
from tests.incremental.edits import FILES
from tests.rules.worlds import commit
from tests.workspaces import gangplan, render, write

SPEC = "specs/nlp/filings.yaml"
RUNS = "rendered/lab/runs/nlp"


@pytest.fixture
def committed(root: Path) -> Path:
    """Render and commit the small workspace."""
    render(root)
    commit(root)
    return root


def merge(root: Path, day: str = "2026-11-01") -> None:
    """Render, and commit all of the workspace on a day."""
    render(root)
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "add", "-A"], check=True)
    when = f"{day}T12:00:00+00:00"
    environment = {
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
        "PATH": "/usr/bin:/bin:/usr/local/bin",
    }
    subprocess.run([*git, "commit", "-q", "-m", "change"], check=True, env=environment)


def runs(root: Path) -> list[str]:
    """Return the names of the runs in rendered/."""
    return sorted(path.stem for path in (root / RUNS).glob("*-*.yaml"))


def statuses(root: Path, ends: dict[str, str], records: tuple[str, ...] = ()) -> Path:
    """Write what kubectl saves: the condition that is true of each run, empty for a run that trains."""
    items = []
    for name, end in ends.items():
        labels = {
            "gangplan.dev/job": name.rpartition("-")[0],
            "gangplan.dev/team": "nlp",
            "gangplan.dev/run": name,
        }
        annotations = {"gangplan.dev/state": "stopped"} if name in records else {}
        metadata = {"name": name, "namespace": "nlp", "labels": labels, "annotations": annotations}
        conditions = [{"type": end or "Suspended", "status": "True" if end else "False"}]
        items.append({"kind": "TrainJob", "metadata": metadata, "status": {"conditions": conditions}})
    path = root.parent / "statuses.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def retire(root: Path, *flags: Any) -> Any:
    """Run the command on a workspace."""
    return gangplan("retire", "-C", root, *flags)


def plan(root: Path, *flags: Any) -> list[tuple[str, str]]:
    """Return action and run of each step."""
    outcome = retire(root, "--format", "json", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    return [(step["action"], step["run"]) for step in json.loads(outcome.out)["steps"]]


def test_a_superseded_run_is_removed_in_two_changes(committed: Path) -> None:
    (old,) = runs(committed)
    assert plan(committed) == []
    write(committed, {SPEC: workspaces.SPEC + "run: 2\n"})
    merge(committed)
    (new,) = runs(committed)
    assert plan(committed) == [("record", old)]

    outcome = retire(committed, "--write")
    assert "1 spec written" in outcome.err
    assert (committed / SPEC).read_text() == workspaces.SPEC + f"run: 2\nretired: [{old}]\n"
    assert plan(committed) == []  # not committed yet, so there is nothing more to do
    merge(committed)
    assert runs(committed) == sorted([old, new])

    assert plan(committed) == [("remove", old)]
    retire(committed, "--write")
    assert (committed / SPEC).read_text() == workspaces.SPEC + "run: 2\n"
    merge(committed)
    assert runs(committed) == [new]
    assert plan(committed) == []  # it became a record before it was removed, so it is over and gone


def fixed(root: Path, name: str) -> Any:
    """Return the fields of a run in rendered/ that no update may change."""
    bodies = load_objects((root / RUNS / f"{name}.yaml").read_text())
    specs = {body["kind"]: body["spec"] for body in bodies if body["kind"] in ("TrainJob", "TrainingRuntime")}
    return {**specs, "TrainJob": {key: one for key, one in specs["TrainJob"].items() if key != "suspend"}}


@pytest.mark.parametrize("state", ["", "state: stopped\n"], ids=["active", "stopped"])
def test_a_record_has_the_fields_of_its_run(committed: Path, state: str) -> None:
    """Not today's fields: the server refuses to compare runs that differ in immutable fields."""
    (old,) = runs(committed)
    before = fixed(committed, old)
    write(committed, {SPEC: workspaces.SPEC.replace("workers: 4", "workers: 3")})
    merge(committed)
    (new,) = runs(committed)
    assert fixed(committed, new) != before
    if state:
        write(committed, {SPEC: (committed / SPEC).read_text() + state})
        merge(committed)
    assert plan(committed) == [("record", old)]
    retire(committed, "--write")
    merge(committed)
    assert runs(committed) == sorted([old, new])
    assert fixed(committed, old) == before
    text = (committed / RUNS / f"{old}.yaml").read_text()
    assert "gangplan.dev/state: stopped" in text
    assert "suspend: true" in text
    # Rendered again from what is there, with a cache and without one: the same, and no finding.
    for flags in ((), ("--no-cache",)):
        outcome = gangplan("validate", "-C", committed, *flags)
        assert (outcome.code, outcome.findings) == (Exit.CLEAN, []), outcome.err
    if state:
        return
    # A changed image renames today's run, but not the record.
    catalog = committed / "images/catalog.yaml"
    catalog.write_text(catalog.read_text().replace("332211ffee", "332211ffed"))
    merge(committed)
    assert fixed(committed, old) == before
    assert gangplan("render", "-C", committed, "--check").code == Exit.CLEAN


def test_an_unknown_run_cannot_become_a_record(committed: Path) -> None:
    """Its fields would be invented."""
    write(committed, {SPEC: workspaces.SPEC + "retired: [filings-0a1b2c3d]\n"})
    outcome = gangplan("render", "-C", committed)
    assert outcome.code == Exit.FINDINGS
    assert [one.rule for one in outcome.findings] == ["retired-lost"]


def test_a_changed_record_is_refused(committed: Path) -> None:
    """The name's hash no longer matches it."""
    (old,) = runs(committed)
    write(committed, {SPEC: workspaces.SPEC.replace("workers: 4", "workers: 3")})
    merge(committed)
    retire(committed, "--write")
    render(committed)
    path = committed / RUNS / f"{old}.yaml"
    path.write_text(path.read_text().replace("numNodes: 4", "numNodes: 5"))
    outcome = gangplan("render", "-C", committed)
    assert [one.rule for one in outcome.findings] == ["run-forged"]


def test_a_run_of_one_cluster_is_not_a_record_on_another(tmp_path: Path) -> None:
    """Names differ between clusters where images or pools do."""
    root = workspaces.write(tmp_path, FILES)
    catalog = root / "images/catalog.yaml"
    render(root)
    commit(root)
    before = {path.parts[-4]: path.stem for path in (root / "rendered").rglob("runs/nlp/filings-*.yaml")}
    cluster = root / "overlays/hall/cluster.yaml"
    cluster.write_text(cluster.read_text() + "defaults: {gracePeriod: 5m}\n")
    assert catalog.exists()
    render(root)
    commit(root)
    assert plan(root, "--cluster", "hall")
    retire(root, "--write", "--cluster", "hall")
    render(root)
    names = {path.stem for path in (root / "rendered/hall/runs/nlp").glob("filings-*.yaml")}
    assert len(names) == 2
    assert {path.stem for path in (root / "rendered/lab/runs/nlp").glob("filings-*.yaml")} == {before["lab"]}


def test_records_are_not_read_through_a_link(committed: Path, tmp_path: Path) -> None:
    write(committed, {SPEC: workspaces.SPEC.replace("workers: 4", "workers: 3")})
    merge(committed)
    elsewhere = tmp_path / "elsewhere"
    (committed / RUNS).rename(elsewhere)
    (committed / RUNS).symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    outcome = retire(committed, "--write")
    assert outcome.code == Exit.INPUT
    assert sorted(elsewhere.iterdir()) == before


def test_a_finished_run_is_stopped_and_then_removed(committed: Path) -> None:
    (name,) = runs(committed)
    going = statuses(committed, {name: ""})
    assert plan(committed, "--finished", going) == []
    ended = statuses(committed, {name: "Complete"})
    assert plan(committed, "--finished", ended) == [("record", name)]
    retire(committed, "--finished", ended, "--write")
    assert (committed / SPEC).read_text() == workspaces.SPEC + "state: stopped\n"
    merge(committed)
    # The cluster has not synced it yet: the engine would not delete an object that is still protected.
    assert plan(committed, "--finished", ended) == []
    synced = statuses(committed, {name: ""}, records=(name,))
    assert plan(committed, "--finished", synced) == [("remove", name)]
    assert f"--write deletes {SPEC}" in retire(committed, "--finished", synced).err
    outcome = retire(committed, "--finished", synced, "--write")
    assert f"0 runs to end, 1 record to remove: {SPEC} deleted." in outcome.err
    assert not (committed / SPEC).exists()


def test_an_archived_run_is_retired_only_with_finished(committed: Path) -> None:
    (name,) = runs(committed)
    write(committed, {SPEC: workspaces.SPEC + "state: archived\n"})
    merge(committed)
    assert plan(committed) == []
    assert plan(committed, "--finished", statuses(committed, {name: "Complete"})) == [("record", name)]
    retire(committed, "--finished", statuses(committed, {name: "Complete"}), "--write")
    assert (committed / SPEC).read_text() == workspaces.SPEC + "state: stopped\n"


def test_a_run_that_the_cluster_no_longer_has_is_not_retired(committed: Path) -> None:
    (old,) = runs(committed)
    write(committed, {SPEC: workspaces.SPEC + "run: 2\n"})
    merge(committed)
    (new,) = runs(committed)
    assert plan(committed, "--superseded", "--finished", statuses(committed, {new: ""})) == []
    assert plan(committed, "--superseded", "--finished", statuses(committed, {old: "", new: ""})) == [
        ("record", old)
    ]
    assert plan(committed, "--finished", statuses(committed, {old: "Failed", new: ""})) == [("record", old)]
    assert plan(committed, "--finished", statuses(committed, {old: "", new: ""})) == []


def test_the_age_in_git_selects_runs(root: Path) -> None:
    render(root)
    commit(root)
    write(root, {"specs/nlp/second.yaml": workspaces.SPEC.replace("workers: 4", "workers: 2")})
    merge(root, "2026-10-01")
    (second,) = (name for name in runs(root) if name.startswith("second"))
    old = ("--older-than", "30d", "--today", "2026-11-05")
    assert ("record", second) in plan(root, *old)
    young = ("--older-than", "60d", "--today", "2026-11-05")
    assert ("record", second) not in plan(root, *young)
    # In addition to another selection, age narrows it.
    ended = statuses(root, {second: "Complete"})
    assert plan(root, *young, "--finished", ended) == []
    assert plan(root, *old, "--finished", ended) == [("record", second)]


def test_the_age_of_a_superseded_run_counts_from_when_it_came_to_git(root: Path) -> None:
    """Not from when another run took its place."""
    render(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    merge(root, "2026-09-01")
    (old,) = runs(root)
    for number, day in ((2, "2026-11-01"), (3, "2026-11-04")):
        write(root, {SPEC: workspaces.SPEC + f"run: {number}\n"})
        merge(root, day)
    assert len(plan(root, "--superseded")) == 2
    aged = ("--superseded", "--today", "2026-11-05", "--older-than")
    assert plan(root, *aged, "30d") == [("record", old)]
    assert plan(root, *aged, "90d") == []


@pytest.mark.parametrize("state", ["state: stopped\n", "run: 2\n"], ids=["stopped", "superseded"])
def test_the_record_of_a_young_run_stays(root: Path, state: str) -> None:
    """A record has the age of its run, also if its file left Git and came back."""
    render(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    merge(root, "2026-10-20")
    (name,) = runs(root)
    write(root, {SPEC: workspaces.SPEC + state})
    merge(root, "2026-10-25")
    if state == "run: 2\n":
        retire(root, "--write")
        merge(root, "2026-11-04")
    aged = ("--superseded", "--today", "2026-11-05", "--older-than")
    assert plan(root, *aged, "30d") == []
    assert plan(root, *aged, "10d") == [("remove", name)]


def test_a_run_that_may_continue_on_another_cluster_is_not_retired(root: Path) -> None:
    """A spec on two clusters has one state for both."""
    team = workspaces.TEAM.replace("[lab]", "[lab, far]")
    write(root, {"overlays/far/cluster.yaml": workspaces.CLUSTER, "specs/nlp/team.yaml": team})
    render(root)
    commit(root)
    (name,) = runs(root)
    outcome = retire(root, "--finished", statuses(root, {name: "Complete"}), "--cluster", "lab", "--write")
    assert outcome.code == Exit.CLEAN
    assert "Complete, but not known to be over on far; nothing is done" in outcome.out
    assert (root / SPEC).read_text() == workspaces.SPEC


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--finished", "missing.json"], "cannot be read"),
        (["--older-than", "soon"], "is not a duration"),
        (["--format", "yaml"], "there is no format"),
    ],
)
def test_unusable_flags_are_refused(flags: list[str], told: str, committed: Path) -> None:
    outcome = retire(committed, *flags)
    assert outcome.code == Exit.INPUT
    assert told in outcome.err


def test_invalid_statuses_are_refused(committed: Path) -> None:
    path = committed.parent / "statuses.json"
    for text in ("nothing", "[]", '{"items": [{"kind": "TrainJob"}]}', '{"items": 3}'):
        path.write_text(text)
        outcome = retire(committed, "--finished", path)
        assert outcome.code == Exit.INPUT, text
        assert "kubectl get trainjobs -A -o json" in outcome.err


def test_a_folder_outside_of_git_is_reported(root: Path) -> None:
    render(root)
    outcome = retire(root)
    assert outcome.code == Exit.ENVIRONMENT
    assert "fatal: this reads Git, but the workspace is in no repository\n" in outcome.err
    assert "git init" in outcome.err


def test_a_shallow_clone_is_refused(committed: Path, tmp_path: Path) -> None:
    write(committed, {SPEC: workspaces.SPEC + "run: 2\n"})
    merge(committed)
    clone = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{committed}", clone], check=True)
    outcome = retire(clone)
    assert outcome.code == Exit.INPUT
    assert "git fetch --unshallow" in outcome.err


# The text of a spec


@pytest.mark.parametrize(
    ("text", "state", "retired", "after"),
    [
        ("a: 1\n", "stopped", [], "a: 1\nstate: stopped\n"),
        ("a: 1", "stopped", [], "a: 1\nstate: stopped\n"),
        ("state: active # now\na: 1\n", "stopped", [], "state: stopped\na: 1\n"),
        ("a: 1 # why\n", None, ["x-1", "x-2"], "a: 1 # why\nretired: [x-1, x-2]\n"),
        ("retired: [x-1]\na: 1\n", None, [], "a: 1\n"),
        ("retired:\n- x-1\n- x-2\na: 1\n", None, ["x-2"], "retired: [x-2]\na: 1\n"),
        ("retired:\n  - x-1\na: 1\n", None, ["x-2"], "retired: [x-2]\na: 1\n"),
        ("a: |\n  state: active\n", "stopped", [], "a: |\n  state: active\nstate: stopped\n"),
        ("{a: 1}\n", "stopped", [], None),
        ("a: 1\n---\nb: 2\n", "stopped", [], None),
        ("a: 1\n...\n", "stopped", [], None),
    ],
)
def test_only_state_and_retired_change(
    text: str, state: str | None, retired: list[str], after: str | None
) -> None:
    assert set_state_fields(text, state, retired) == after
