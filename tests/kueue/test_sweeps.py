"""The guarantee of a sweep on built objects: Kueue never admits more of its trials than maxConcurrent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.kueue.model import KueueWorkload
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.standing import build_previewed_world
from gangplan.simulate import read_workload, simulate_runs
from gangplan.source import load_objects
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from tests.sweeps.files import SWEEP, us_05, workspace
from tests.workspaces import CATALOG, CLUSTER, SPEC, gangplan, write

OVERLAY = "overlays/lab/kustomization.yaml"
PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: {kind}, name: {name}}}
  patch: |-
    - {{op: replace, path: {path}, value: {value}}}
"""


def most_at_once(result: Result, root: Path, cluster: str = "lab") -> dict[str, int]:
    """Return the most runs of each sweep that hold quota at once, by the port of Kueue's scheduler."""
    request = Request(root)
    world = build_previewed_world(request, cluster, result)
    runs: list[KueueWorkload] = []
    for one in result.runs:
        job = one.unit.job
        name = job.trial.sweep if job.trial else job.name
        run = read_workload(
            world, list(load_objects(result.texts[one.path])), one.name, duration=3600.0, team=name
        )
        assert run is not None
        runs.append(run)
    teams = {run.name: run.team for run in runs}
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    ended: dict[str, int] = {}
    for event in simulate_runs(read_quota_setup_of_cluster(world), runs).events:
        team = teams[event.run]
        if event.what == "admitted":
            now[team] = now.get(team, 0) + 1
        elif event.what in ("finished", "preempted"):
            now[team] -= 1
            ended[team] = ended.get(team, 0) + (event.what == "finished")
        most[team] = max(most.get(team, 0), now[team])
    assert sum(ended.values()) == len(runs), "all of them end"
    return most


def previewed(root: Path) -> Result:
    """Render the workspace in memory, without errors."""
    result = preview_render(Request(root))
    assert not [one for one in result.findings if one.is_error], result.findings
    return result


def test_48_trials_are_admitted_ten_at_once(tmp_path: Path) -> None:
    root = us_05(tmp_path)
    assert most_at_once(previewed(root), root) == {"rates": 10}


def test_two_sweeps_of_a_team_do_not_lend_each_other_quota(tmp_path: Path) -> None:
    root = workspace(tmp_path, SWEEP, **{"specs/nlp/other.yaml": SWEEP.replace("[64, 128]", "[64]")})
    assert most_at_once(previewed(root), root) == {"rates": 2, "other": 2}


@pytest.mark.parametrize(("gpus", "most", "words"), [(6, 3, "3 trials run"), (2, 1, "1 trial runs")])
def test_a_team_and_its_sweep_together_stay_within_the_team_quota(
    tmp_path: Path, gpus: int, most: int, words: str
) -> None:
    """A second team reserves what the first one does not have, and the sweep cannot take it."""
    teams = f"nlp: {{queue: training, quota: {{a100: {{gpus: {gpus}}}, cpu: {{cpu: 60}}}}, borrow: {{}}}}\n"
    teams += "  vision: {queue: training, quota: {a100: {gpus: 26}, cpu: {cpu: 60}}}"
    team = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
    root = workspace(
        tmp_path,
        SWEEP.replace("maxConcurrent: 2", "maxConcurrent: 6"),
        **{
            "overlays/lab/cluster.yaml": CLUSTER.replace("nlp: {queue: training}", teams),
            "specs/vision/team.yaml": team,
        },
    )
    result = preview_render(Request(root))
    (slower,) = [one for one in result.findings if one.rule == "sweep-slower"]
    assert slower.message.startswith(f"{words} at once, not 6")
    assert most_at_once(result, root) == {"rates": most}


QUOTA = "/spec/resourceGroups/0/flavors/1/resources/3/nominalQuota"
LABEL = "/metadata/labels/kueue.x-k8s.io~1queue-name"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (("ClusterQueue", "nlp.sweep-rates", QUOTA, '"40"'), "lets as many as 14 trials run at once"),
        (("LocalQueue", "sweep-rates", "/spec/clusterQueue", "nlp"), "trials run at once"),
        (("TrainJob", "rates-.*", LABEL, "training"), "trials run at once"),
    ],
)
def test_a_patch_that_admits_more_trials_is_an_error(
    patch: tuple[str, str, str, str], words: str, tmp_path: Path
) -> None:
    kind, name, path, value = patch
    root = workspace(tmp_path, **{OVERLAY: PATCH.format(kind=kind, name=name, path=path, value=value)})
    outcome = gangplan("validate", "-C", root)
    found = [one for one in outcome.findings if one.rule == "sweep-uncapped"]
    assert found, outcome.err
    assert f"{words}, and maxConcurrent is 2" in found[0].message
    assert found[0].severity == "error"


def test_pods_that_end_before_their_trial_admit_no_other_one(tmp_path: Path) -> None:
    """Kueue releases the quota of a step once it has ended (reclaimablePods). Up to four trials, each of a
    worker and a step, get five pods, because with more, three workers and another whole trial would fit."""
    text = SWEEP.replace("image: openmpi", "image: pytorch").replace("  gpus: 1\n", "")
    text = text.replace("workers: 2", "workers: 1").replace("maxConcurrent: 2", "maxConcurrent: 4")
    root = workspace(tmp_path, text + "  steps: [{command: [python, fetch.py]}]\n")
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    platform = (root / "rendered/lab/platform/queues.yaml").read_text()
    assert '- {name: pods, nominalQuota: "5",' in platform
    (told,) = [one for one in outcome.findings if one.rule == "sweep-slower"]
    assert told.severity == "note"
    assert "2 trials run at once until the first steps have ended, not 4" in told.message


def test_trials_of_several_sizes_are_fewer_without_any_steps(tmp_path: Path) -> None:
    """The queue has pods for two of the smaller trials, and no step will free any."""
    text = SWEEP.replace("batch: [64, 128]", "size: [2, 4]").replace(
        "workers: 2", "workers: ${{ parameters.size }}"
    )
    text = text.replace(', "--batch", "${{ parameters.batch }}"', "")
    root = workspace(tmp_path, text)
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (told,) = [one for one in outcome.findings if one.rule == "sweep-slower"]
    assert told.severity == "note"
    assert "1 trial runs at once with these values, not 2: trials of several sizes" in told.message
    assert "Write a sweep for each size" in told.help
    plan = gangplan("plan", "specs/nlp/rates.yaml", "-C", root).out
    assert "at once   1 trial: 4 GPUs; maxConcurrent is 2, but quota holds no more" in plan


OWN = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py]
workers: 2
gpus: 2
"""
EIGHT = "nlp: {queue: training, quota: {a100: {gpus: 8}, cpu: {cpu: 60}}, borrow: {}}"


@pytest.mark.parametrize(("own_comes", "trials_come"), [(600.0, 0.0), (0.0, 600.0)])
def test_a_run_of_the_team_goes_before_its_trials(
    own_comes: float, trials_come: float, tmp_path: Path
) -> None:
    """It preempts trials to reclaim quota, and no trial takes anything from it."""
    root = workspace(
        tmp_path,
        SWEEP.replace("gpus: 1", "gpus: 2"),
        **{
            "overlays/lab/cluster.yaml": CLUSTER.replace("nlp: {queue: training}", EIGHT),
            "specs/nlp/own.yaml": OWN,
        },
    )
    result = previewed(root)
    world = build_previewed_world(Request(root), "lab", result)
    runs: list[KueueWorkload] = []
    for one in result.runs:
        run = read_workload(world, list(load_objects(result.texts[one.path])), one.name, duration=7200.0)
        assert run is not None
        is_own = one.unit.job.trial is None
        name = "own" if is_own else one.name
        runs.append(replace(run, name=name, arrival=own_comes if is_own else trials_come))
    events = simulate_runs(read_quota_setup_of_cluster(world), runs).events
    own = [event for event in events if event.run == "own"]
    assert [event.what for event in own if event.what in ("admitted", "preempted", "finished")] == [
        "admitted",
        "finished",
    ]
    assert next(event.time for event in own if event.what == "admitted") == own_comes
    lost = [event.run for event in events if event.what == "preempted"]
    assert len(lost) == (1 if own_comes else 0)


def test_trials_can_be_mpijobs(tmp_path: Path) -> None:
    cluster = CLUSTER.replace('trainer: "2.3.0"', 'trainer: "2.3.0", mpiOperator: "0.7.0"')
    root = workspace(tmp_path, SWEEP + "  backend: mpijob\n", **{"overlays/lab/cluster.yaml": cluster})
    assert most_at_once(previewed(root), root) == {"rates": 2}


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 6), SIZES, st.sampled_from(["openmpi", "pytorch"]), st.booleans())
def test_no_sweep_ever_holds_more_than_maxconcurrent(
    tmp_path_factory: pytest.TempPathFactory, at_once: int, sizes: Sequence[int], image: str, runs_ranks: bool
) -> None:
    """Whatever the sizes of trials, at most maxConcurrent run, or there is an error."""
    text = SWEEP.replace("[64, 128]", str(list(sizes))).replace(
        "workers: 2", "workers: ${{ parameters.batch }}"
    )
    text = text.replace("image: openmpi", f"image: {image}")
    text = text.replace("maxConcurrent: 2", f"maxConcurrent: {at_once}")
    root = workspace(tmp_path_factory.mktemp("law"), text, **{"images/catalog.yaml": CATALOG})
    write(root, {"specs/nlp/job.yaml": SPEC})
    result = preview_render(Request(root))
    told = {one.rule for one in result.findings if one.is_error}
    if told:
        assert told == {"sweep-uncapped"}
        assert min(sizes) * at_once < max(sizes) + 1
        return
    assert most_at_once(result, root)["rates"] <= at_once
