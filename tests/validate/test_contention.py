"""Runs that block or preempt each other: every finding with its near misses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.errors import Exit
from gangplan.validate.collisions import find_deadlocks_between_runs, find_preempted_runs_without_checkpoints
from gangplan.validate.kueue.contention import RunDemand, sum_run_demand
from gangplan.validate.world import NodeGroup
from tests import workspaces
from tests.admission.worlds import edited, table, world_of
from tests.standing import base
from tests.workspaces import Outcome, Shown, gangplan

RULES = ("preemptible-without-checkpoint", "runs-block-runs")
CHECKPOINT = "claims:\n  checkpoints: {accessModes: [ReadWriteMany]}\n"


def judged(root: Path) -> tuple[Outcome, list[Shown]]:
    """Return the outcome of `validate`, and its findings of these rules."""
    outcome = gangplan("validate", "-C", root)
    return outcome, [one for one in outcome.findings if one.rule in RULES]


def research(root: Path, spec: str, cluster: str = base.CLUSTER, team: str = "") -> list[Shown]:
    """Return the findings about a spec of team research, whose queue owns 8 GPUs of h100 and may borrow."""
    base.workspace(root)
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    path = root / "specs/research/team.yaml"
    path.write_text(path.read_text() + team)
    (root / "specs/research/train.yaml").write_text(base.SPEC.replace("workers: 2\ngpus: 4\n", spec))
    outcome, found = judged(root)
    assert outcome.code == Exit.CLEAN, outcome.err
    return found


BORROWS = "workers: 4\ngpus: 4\ngpu: {model: h100-80gb}\n"


def test_a_run_that_borrows_and_cannot_resume_is_reported(tmp_path: Path) -> None:
    (one,) = research(tmp_path, BORROWS)
    assert (one.severity, one.rule) == ("warning", "preemptible-without-checkpoint")
    assert one.place == "specs/research/train.yaml:5:10"
    assert "borrows 8 GPUs of flavor h100" in one.message


@pytest.mark.parametrize(
    ("spec", "old", "new", "team"),
    [
        ("workers: 2\ngpus: 4\ngpu: {model: h100-80gb}\n", "", "", ""),
        (BORROWS + "checkpoint: {to: checkpoints}\n", "", "", CHECKPOINT),
        (BORROWS, "reclaimWithinCohort: Any", "reclaimWithinCohort: Never", ""),
    ],
    ids=["within its quota", "with a checkpoint", "nobody takes anything back"],
)
def test_runs_that_cannot_lose_work_are_not_reported(
    tmp_path: Path, spec: str, old: str, new: str, team: str
) -> None:
    assert research(tmp_path, spec, base.CLUSTER.replace(old, new) if old else base.CLUSTER, team) == []


def test_a_checkpoint_that_is_not_loaded_does_not_count(tmp_path: Path) -> None:
    spec = BORROWS + "checkpoint: {to: checkpoints, resume: false}\n"
    assert len(research(tmp_path, spec, team=CHECKPOINT)) == 1


@pytest.mark.parametrize(
    ("folder", "resumes"),
    [
        ("/ckpt/train", True),
        ("/ckpt", True),
        ("s3://train", True),
        ("/ckpts", False),
        ("/tmp/ckpt", False),
        ("/scratch/ckpt", False),
        ("", False),
    ],
)
def test_a_folder_of_the_specs_own_has_to_outlive_its_pod(tmp_path: Path, folder: str, resumes: bool) -> None:
    """The program may load what it saved without `checkpoint`; what is in the pod's own folders is gone."""
    spec = f"{BORROWS}data: {{checkpoints: /ckpt}}\nscratch: {{size: 1Gi, path: /scratch}}\n"
    spec += f"env: {{CHECKPOINT_DIR: '{folder}', CHECKPOINT_RESUME: 'true'}}\n"
    found = research(tmp_path, spec, team=CHECKPOINT)
    assert [one.rule for one in found] == ["preemptible-without-checkpoint"] * (not resumes)


def test_the_lowest_priority_is_reported_where_the_spec_sets_it(tmp_path: Path) -> None:
    small = "workers: 2\ngpus: 4\ngpu: {model: h100-80gb}\n"
    (one,) = research(tmp_path / "low", small + "priority: low\n")
    assert (one.severity, one.place) == ("note", "specs/research/train.yaml:8:11")
    assert research(tmp_path / "normal", small + "priority: normal\n") == []
    never = base.CLUSTER.replace("withinClusterQueue: LowerPriority", "withinClusterQueue: Never")
    assert research(tmp_path / "never", small + "priority: low\n", never) == []


def two_runs(root: Path, gang: str, workers: tuple[int, int]) -> list[Shown]:
    """Return the findings about two runs of eight GPUs per worker on eight such nodes."""
    cluster = (
        workspaces.CLUSTER.split("nodePools:")[0]
        + "nodePools:\n  a100: {count: 8, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}}\n"
        + f"  cpu: {{count: 2, cpu: 60, memory: 240Gi}}\nenvironment: dev\ngang: {gang}\n"
        + "teams:\n  nlp: {queue: training}\n"
    )
    if gang == "none":
        cluster = cluster.replace(', kueue: "0.19.2"', "")
    files = {"overlays/lab/cluster.yaml": cluster, "images/catalog.yaml": workspaces.CATALOG}
    files["specs/nlp/team.yaml"] = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
    for name, count in zip(("one", "two"), workers, strict=True):
        files[f"specs/nlp/{name}.yaml"] = base.SPEC.replace(
            "workers: 2\ngpus: 4\n", f"workers: {count}\ngpus: 8\n"
        )
    workspaces.write(root, files)
    outcome, found = judged(root)
    assert outcome.code == Exit.CLEAN, outcome.err
    return found


def test_two_runs_that_can_block_each_other_are_reported(tmp_path: Path) -> None:
    (one,) = two_runs(tmp_path, "none", (5, 5))
    assert (one.severity, one.rule) == ("warning", "runs-block-runs")
    assert one.place == "specs/nlp/two.yaml:5:10"
    assert "together they want 80 of 64 GPUs" in one.message
    assert "nlp/one with 4 of 5 pods, nlp/two with 4 of 5 pods" in one.message


@pytest.mark.parametrize(
    ("gang", "workers"),
    [("none", (5, 4)), ("none", (4, 4)), ("kueue", (5, 5)), ("coscheduling", (5, 5))],
    ids=["one of them ends", "both fit", "kueue starts them whole", "so does a gang scheduler"],
)
def test_runs_that_cannot_block_each_other_are_not_reported(
    tmp_path: Path, gang: str, workers: tuple[int, int]
) -> None:
    assert two_runs(tmp_path, gang, workers) == []


def node_group(count: int, gpus: int) -> NodeGroup:
    """Return nodes that have only GPUs."""
    return NodeGroup("pool", count, {}, (), {"gpu": Fraction(gpus)})


def demand(count: int, gpus: int) -> RunDemand:
    """Return a run that is not started as a whole."""
    return RunDemand(count, {"gpu": Fraction(gpus)}, ("pool",), is_gang=False)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_two_equal_shapes_block_exactly_when_both_can_lack_one(nodes: int, one: int, two: int) -> None:
    """With one pod per node, both runs fit alone, and all but one pod of each fill the nodes."""
    found = find_deadlocks_between_runs(
        [node_group(nodes, 1)], {"one": demand(one, 1), "two": demand(two, 1)}
    )
    fits_alone = one <= nodes and two <= nodes
    assert bool(found) == (fits_alone and min(one, two) > 1 and one - 1 + two - 1 >= nodes)


@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(2, 6), st.integers(1, 4)), min_size=2, max_size=4),
)
def test_every_reported_deadlock_can_happen(nodes: int, gpus: int, sizes: list[tuple[int, int]]) -> None:
    """Every deadlock is a placement on the nodes where all runs lack a pod and no node has room for one."""
    runs = {f"run{number}": demand(count, size) for number, (count, size) in enumerate(sizes)}
    for one in find_deadlocks_between_runs([node_group(nodes, gpus)], runs):
        chosen = [(have, need, int(runs[name].each["gpu"])) for name, (have, need) in one.placed.items()]
        assert all(have < need for have, need, _ in chosen)
        assert _can_be_stuck(nodes, gpus, [(have, size) for have, _, size in chosen])


def _can_be_stuck(nodes: int, gpus: int, pods: list[tuple[int, int]]) -> bool:
    """Try every placement: all pods are on nodes, and no node has room for one more of any run."""
    least = min(size for _, size in pods)
    sizes = [size for have, size in pods for _ in range(have)]
    seen: set[tuple[int, tuple[int, ...]]] = set()

    def place(at: int, free: tuple[int, ...]) -> bool:
        if (at, free) in seen:
            return False
        seen.add((at, free))
        if at == len(sizes):
            return max(free) < least
        return any(
            place(at + 1, tuple(sorted((*free[:node], free[node] - sizes[at], *free[node + 1 :]))))
            for node in range(nodes)
            if free[node] >= sizes[at]
        )

    return place(0, (gpus,) * nodes)


def queued(priority: int, gpus: int, **change: bool) -> RunDemand:
    """Return a run in a queue that gives ten GPUs at most."""
    key = ("pool", "gpu")
    return RunDemand(
        1,
        {"gpu": Fraction(gpus)},
        ("pool",),
        True,
        "team",
        priority,
        change.get("resumes", False),
        change.get("gives_way", True),
        change.get("borrows", False),
        {key: Fraction(gpus)},
        {key: Fraction(10)},
    )


def test_a_committed_run_of_higher_priority_preempts() -> None:
    (one,) = find_preempted_runs_without_checkpoints({"low": queued(1, 6), "high": queued(2, 6)})
    assert (one.run, one.by, one.wanted, one.most) == ("low", "high", 12, 10)
    assert not list(
        find_preempted_runs_without_checkpoints({"low": queued(1, 4), "high": queued(2, 6)})
    )  # both fit
    assert not list(
        find_preempted_runs_without_checkpoints({"low": queued(2, 6), "high": queued(2, 6)})
    )  # equals
    assert not list(
        find_preempted_runs_without_checkpoints({"low": queued(1, 6, resumes=True), "high": queued(2, 6)})
    )
    assert not list(
        find_preempted_runs_without_checkpoints({"low": queued(1, 6, gives_way=False), "high": queued(2, 6)})
    )


def test_a_queue_may_count_pods() -> None:
    """Kueue assigns a flavor to `pods` like to any resource, though no container requests them."""
    base = table()["base"]
    (queue,) = (
        body
        for body in base["standing"]
        if body["kind"] == "ClusterQueue" and body["metadata"]["name"] == "a"
    )
    (group,) = queue["spec"]["resourceGroups"]
    group["coveredResources"].append("pods")
    for flavor in group["flavors"]:
        flavor["resources"].append({"name": "pods", "nominalQuota": "20"})
    scene = edited(base, [])
    demand = sum_run_demand(world_of(scene), scene["run"])
    assert demand is not None
    pods = {key: amount for key, amount in (demand.usage or {}).items() if key[1] == "pods"}
    assert sorted(pods.values()) == [1, 8]  # the launcher and eight workers
    assert {key: (demand.most or {})[key] for key in pods} == dict.fromkeys(pods, Fraction(20))
