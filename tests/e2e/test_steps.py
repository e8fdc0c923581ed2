"""Steps on a real control plane: Kueue counts them, each waits for the one before, and workers for all."""

from __future__ import annotations

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.e2e.test_roles import succeed
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/steps"
TEAM = "research"
# The pods of each run that exist, one stage after another.
ORDER = {
    "finetune": [{"step-1": 1}, {"scans": 1}, {"tokenize": 1}, {"worker": 2}],
    "solve": [{"mesh": 1}, {"worker": 2, "launcher": 1}],
}
CPU = {"step-1": "2", "scans": "2", "tokenize": "8", "mesh": "1", "node": "8", "launcher": "1"}


def test_each_step_is_complete_before_the_next_starts() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    workspace = load_workspace(EXAMPLE / "input")
    spec, teams = workspace.clusters["lab"].spec, [(TEAM, workspace.teams[TEAM].spec)]
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            if folder == "runs":
                lab.client.apply_all(world.claims(spec, teams))
            for path in sorted((render_example(EXAMPLE.name) / "lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

        def there(job: str) -> dict[str, int]:
            """Return the pods of a job that have not ended, by role."""
            found: dict[str, int] = {}
            for pod in lab.client.list("Pod", TEAM):
                labels = pod["metadata"]["labels"]
                if labels["gangplan.dev/job"] == job and pod["status"].get("phase") == "Running":
                    role = labels["gangplan.dev/role"]
                    found[role] = found.get(role, 0) + 1
            return found

        for job, stages in ORDER.items():
            for index, stage in enumerate(stages):
                poll(lambda job=job, stage=stage: there(job) == stage, 90, lambda job=job: f"{there(job)}")  # type: ignore[misc]
                if index + 1 < len(stages):
                    (pod,) = (
                        one
                        for one in lab.client.list("Pod", TEAM)
                        if one["metadata"]["labels"]["gangplan.dev/role"] == next(iter(stage))
                    )
                    succeed(lab, pod)

        workloads = lab.client.list("Workload", TEAM)
        assert len(workloads) == len(ORDER)
        for workload in workloads:
            assert condition(workload, "Admitted") == "True"
            for one in workload["status"]["admission"]["podSetAssignments"]:
                assert one["resourceUsage"]["cpu"] == CPU[one["name"]]
        # All pods are ready or have succeeded; Kueue counts steps like that.
        ready = [condition(one, "PodsReady") for one in lab.client.list("Workload", TEAM)]
        poll(
            lambda: all(condition(one, "PodsReady") == "True" for one in lab.client.list("Workload", TEAM)),
            60,
            lambda: f"{ready}",
        )
        ends = {"finetune": "worker", "solve": "launcher"}
        for pod in lab.client.list("Pod", TEAM):
            labels = pod["metadata"]["labels"]
            if ends[labels["gangplan.dev/job"]] == labels["gangplan.dev/role"]:
                succeed(lab, pod)

        def complete() -> bool:
            runs = lab.client.list("TrainJob", TEAM)
            return len(runs) == len(ORDER) and all(condition(one, "Complete") == "True" for one in runs)

        poll(complete, 60, lambda: "not all runs are complete")
