"""Where and how often a broken plan is reported; a mistake of a generator is reported, too."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gangplan.emit import is_run_file
from gangplan.pipeline import checks
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.validate.promise import check_plan_conformance
from gangplan.validate.world import BuiltRun, World
from tests import workspaces
from tests.promise.patched import HEAD, OVERLAY, component, workspace

SPEC: dict[str, Any] = {"image": "openmpi", "workers": 4, "gpus": 2, "cpu": 8, "memory": "32Gi"}
NODES = [{"op": "replace", "path": "/spec/trainer/numNodes", "value": 6}]
LABEL = "    - {op: add, path: /metadata/labels/example.com~1tier, value: gold}\n"


def test_one_patch_is_reported_once_with_the_number_of_runs(tmp_path: Path) -> None:
    root = workspace(tmp_path, SPEC)
    for name in ("second", "third"):
        workspaces.write(root, {f"specs/nlp/{name}.yaml": workspaces.SPEC})
    workspaces.write(root, {OVERLAY: component("TrainJob", NODES)})
    found = [
        one for one in preview_render(Request(root, engine="serial")).findings if one.rule == "plan-broken"
    ]
    assert [(str(one.where), one.object_ref) for one in found] == [
        (f"{OVERLAY}:6:58", "TrainJob/nlp/filings")
    ]
    assert found[0].message == "the run would have 6 worker pods; the plan has 4 (and 2 more runs)"
    assert found[0].help.startswith("If you want that, write workers: 6 in the spec")


@pytest.mark.parametrize(
    ("target", "says", "place"),
    [
        ("{kind: TrainJob, name: filings}", "runs of job 'filings' are called filings-<hash>", "4:34"),
        ("{kind: TrainJob, name: filings-25c614e6}", "it cannot name a run of job 'filings' in full", "4:34"),
        ("{labelSelector: gangplan.dev/run=filings-25c614e6}", "cannot name a run of job", "4:27"),
        ("{kind: TrainJob, name: other}", "matches no object of cluster lab", "4:3"),
    ],
)
def test_targets_that_name_a_run_or_nothing_are_reported_with_a_help(
    target: str, says: str, place: str, tmp_path: Path
) -> None:
    root = workspace(tmp_path, SPEC)
    workspaces.write(root, {OVERLAY: f"{HEAD}- target: {target}\n  patch: |-\n{LABEL}"})
    (found,) = preview_render(Request(root, engine="serial")).findings
    assert (found.rule, str(found.where)) == ("overlay-no-match", f"{OVERLAY}:{place}")
    assert says in found.message
    if "filings" in target:
        assert "labelSelector: gangplan.dev/job=filings" in found.help


def test_targets_from_the_help_match_the_run(tmp_path: Path) -> None:
    root = workspace(tmp_path, SPEC)
    for target in ("labelSelector: gangplan.dev/job=filings", 'name: "filings-[0-9a-f]{8}"'):
        text = f"{HEAD}- target: {{kind: TrainJob, {target}}}\n  patch: |-\n{LABEL}"
        workspaces.write(root, {OVERLAY: text})
        result = preview_render(Request(root, engine="serial"))
        assert not result.findings
        (run,) = (text for path, text in result.texts.items() if is_run_file(path))
        assert "example.com/tier: gold" in run
        assert "c9a4e7b1" not in run


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, BuiltRun]:
    """Return a run and its world as the proofs see them."""
    root = workspace(tmp_path_factory.mktemp("run"), SPEC)
    seen: list[tuple[World, BuiltRun]] = []

    def catch(world: World, run: BuiltRun) -> dict[str, Any]:
        seen.append((world, run))
        return {}

    with mock.patch.object(checks, "run_all_proofs", catch):
        preview_render(Request(root, engine="serial"))
    return seen[0]


def _mistaken(run: BuiltRun, kind: str, path: tuple[str | int, ...], value: Any) -> BuiltRun:
    bodies = copy.deepcopy(run.bodies)
    inner: Any = next(body for body in bodies if body["kind"] == kind)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return BuiltRun(run.unit, bodies)


JOBS = ("spec", "template", "spec", "replicatedJobs")


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("TrainJob", ("spec", "trainer", "numNodes"), 3),
        ("TrainJob", ("spec", "trainer", "numProcPerNode"), 1),
        ("TrainingRuntime", ("spec", "mlPolicy", "numNodes"), 4),
        ("TrainingRuntime", ("spec", "template", "spec", "successPolicy", "targetReplicatedJobs"), ["node"]),
        ("TrainingRuntime", (*JOBS, 1, "dependsOn"), []),
        ("TrainingRuntime", (*JOBS, 0, "template", "spec", "backoffLimit"), 2),
    ],
)
def test_a_mistake_of_a_generator_breaks_the_plan(
    kind: str, path: tuple[str | int, ...], value: Any, judged: tuple[World, BuiltRun]
) -> None:
    world, run = judged
    assert not list(check_plan_conformance(world, run))
    assert {
        problem.rule for _, problem in check_plan_conformance(world, _mistaken(run, kind, path, value))
    } == {"plan-broken"}
