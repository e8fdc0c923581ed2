"""Queues, checks and counting of the examples in a real Kueue: runs that it admits, and runs that wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.source import load_objects
from gangplan.validate.kueue import AdmissionVerdict
from gangplan.validate.kueue.proof import with_workers
from gangplan.validate.kueue.solver import judge_admission
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.validate.world import build_world_of_cluster
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
EXAMPLES = story.ROOT / "tests/examples"
QUEUE = "kueue.x-k8s.io/queue-name"


def lab_of(example: Path) -> Iterator[Lab]:
    """Run a lab with the nodes of an example, its platform and tenants, and the printed configuration."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the examples are for the versions of profile new")
    told = gangplan("cluster", "kueue-config", "-C", example / "input", "--cluster", "lab")
    assert told.code == 0, told.err
    spec = load_workspace(example / "input").clusters["lab"].spec
    with Lab(profile, settings={"kueue": plain.load(told.out)}) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants"):
            for body in bodies(example, folder):
                answer = lab.client.apply_patiently(body)
                assert [*answer.warnings, *drift(body, answer.object)] == []
        yield lab


def bodies(example: Path, folder: str) -> list[dict[str, Any]]:
    """Return the rendered objects of a folder, file by file."""
    paths = sorted((render_example(example.name) / "lab" / folder).rglob("*.yaml"))
    return [body for path in paths for body in load_objects(path.read_text())]


@pytest.fixture(scope="module")
def queues() -> Iterator[Lab]:
    """Run the example of several queues, with active controllers for its checks."""
    for lab in lab_of(EXAMPLES / "queues"):
        version = lab.client.resource("AdmissionCheck").api_version
        spec = {"controllerName": "licences.example.com/check"}
        lab.client.apply(
            {"apiVersion": version, "kind": "AdmissionCheck", "metadata": {"name": "licences"}, "spec": spec}
        )
        for name in ("licences", "budget"):
            is_active(lab, "AdmissionCheck", name)
        yield lab


@pytest.fixture(scope="module")
def counting() -> Iterator[Lab]:
    """Run the example that counts credits."""
    yield from lab_of(EXAMPLES / "counting")


def start(lab: Lab, example: str, team: str, name: str, **changes: Any) -> None:
    """Apply the run of a team under another name, in another queue or with more workers."""
    for body in changes.get("run") or bodies(EXAMPLES / example, f"runs/{team}"):
        body = deepcopy(body)
        if body["kind"] == "NetworkPolicy":
            continue
        if body["kind"] != "ConfigMap":  # launch scripts, which its runtime names
            body["metadata"]["name"] = name
        if body["kind"] == "TrainJob":
            body["spec"]["runtimeRef"]["name"] = name
            body["spec"]["trainer"]["numNodes"] = changes.get("workers", 2)
            if "queue" in changes:
                body["metadata"]["labels"][QUEUE] = changes["queue"]
        lab.client.apply_patiently(body)


def workloads(lab: Lab, team: str, kind: str, name: str) -> list[dict[str, Any]]:
    """Return the Workloads that belong to an object."""
    return [
        one
        for one in lab.client.list("Workload", team)
        for owner in one["metadata"].get("ownerReferences") or ()
        if (owner["kind"], owner["name"]) == (kind, name)
    ]


def workload(lab: Lab, team: str, name: str) -> dict[str, Any]:
    """Return the Workload of a run."""
    return next(iter(workloads(lab, team, "TrainJob", name)), {})


def is_active(lab: Lab, kind: str, name: str) -> None:
    """Report a check as active, as its controller would."""
    now = "2026-01-01T00:00:00Z"
    said = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "here",
        "lastTransitionTime": now,
    }
    lab.client.patch(kind, name, {"status": {"conditions": [said]}}, part="status")


def wait(lab: Lab, team: str, name: str, what: str, status: str = "True") -> dict[str, Any]:
    """Return the Workload once a condition has this status."""
    poll(
        lambda: condition(workload(lab, team, name), what) == status,
        60,
        lambda: f"{name}: {workload(lab, team, name).get('status')}",
    )
    return workload(lab, team, name)


def usage(found: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what is counted for each pod set."""
    sets = found["status"]["admission"]["podSetAssignments"]
    return {one["name"]: one["resourceUsage"] for one in sets}


def verdict(example: str, run: list[dict[str, Any]]) -> AdmissionVerdict:
    """Return gangplan's verdict on a run among the objects of an example."""
    file = load_workspace(EXAMPLES / example / "input").clusters["lab"]
    standing = [body for folder in ("platform", "tenants") for body in bodies(EXAMPLES / example, folder)]
    return judge_admission(
        build_world_of_cluster(
            "lab", file.spec, choose_schema_versions_of(resolve_platform_of_cluster_file(file)), standing
        ),
        run,
    )


def asked(example: str, team: str, workers: int) -> list[dict[str, Any]]:
    """Return the objects of the run of a team, with another number of workers."""
    return with_workers(bodies(EXAMPLES / example, f"runs/{team}"), workers)


def test_a_strict_queue_waits_for_a_run_that_never_fits(queues: Lab) -> None:
    start(queues, "queues", "research", "much", workers=30, queue="training")
    wait(queues, "research", "much", "QuotaReserved", "False")
    assert verdict("queues", asked("queues", "research", 30)).outcome == "never"
    time.sleep(1.5)  # times of creation are whole seconds, and of two in one second either may be the head
    start(queues, "queues", "research", "small", queue="training")
    time.sleep(3)
    assert condition(workload(queues, "research", "small"), "QuotaReserved") != "True"
    assert verdict("queues", asked("queues", "research", 2)).outcome == "admit"
    queues.client.delete("TrainJob", "much", "research", foreground=True)
    wait(queues, "research", "small", "Admitted")
    queues.client.delete("TrainJob", "small", "research", foreground=True)


def test_the_queue_that_used_less_goes_first(queues: Lab) -> None:
    """The older run waits, although it came first: its queue has used more."""
    start(queues, "queues", "research", "first", workers=15, queue="training")
    wait(queues, "research", "first", "Admitted")
    start(queues, "queues", "research", "older", workers=12, queue="training")
    poll(lambda: workload(queues, "research", "older"), 30, lambda: "no workload")
    time.sleep(1.5)  # times of creation are whole seconds
    start(queues, "queues", "research", "newer", workers=12, queue="night")
    wait(queues, "research", "newer", "QuotaReserved", "False")
    queues.client.delete("TrainJob", "first", "research", foreground=True)
    wait(queues, "research", "newer", "Admitted")
    assert condition(workload(queues, "research", "older"), "QuotaReserved") != "True"


def test_quota_is_requested_from_each_pool_separately(queues: Lab) -> None:
    """The run has a check of another controller: it has quota in one pool, and starts once the check is
    ready."""
    start(queues, "queues", "vision", "scan")
    poll(lambda: workload(queues, "vision", "scan"), 30, lambda: "no workload")
    parent = workload(queues, "vision", "scan")["metadata"]["name"]
    poll(
        lambda: len(workloads(queues, "vision", "Workload", parent)) == 2,
        30,
        lambda: "no workload for each pool",
    )

    def by_pool() -> dict[str, dict[str, Any]]:
        own = workloads(queues, "vision", "Workload", parent)
        note = "kueue.x-k8s.io/workload-allowed-resource-flavors"
        return {one["metadata"]["annotations"][note]: one for one in own}

    assert set(by_pool()) == {"cpu", "big"}
    poll(lambda: condition(by_pool()["cpu"], "QuotaReserved") == "True", 30, lambda: f"{by_pool()}")
    time.sleep(2)
    assert condition(by_pool()["big"], "QuotaReserved") != "True"
    assert condition(by_pool()["cpu"], "Admitted") != "True"
    ready = {
        "name": "licences",
        "state": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    name = by_pool()["cpu"]["metadata"]["name"]
    queues.client.patch("Workload", name, {"status": {"admissionChecks": [ready]}}, "vision", part="status")
    poll(
        lambda: condition(by_pool()["cpu"], "Admitted") == "True", 30, lambda: f"{by_pool()['cpu']['status']}"
    )
    wait(queues, "vision", "scan", "Admitted")


def test_pods_of_two_pools_are_never_admitted(queues: Lab) -> None:
    run = deepcopy(bodies(EXAMPLES / "queues", "runs/vision"))
    (runtime,) = (one for one in run if one["kind"] == "TrainingRuntime")
    jobs = {one["name"]: one for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    jobs["launcher"]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "big"}
    assert verdict("queues", run).outcome == "never"
    start(queues, "queues", "vision", "split", run=run)
    poll(lambda: workload(queues, "vision", "split"), 30, lambda: "no workload")
    parent = workload(queues, "vision", "split")["metadata"]["name"]

    def all_wait() -> bool:
        own = workloads(queues, "vision", "Workload", parent)
        return len(own) == 2 and all(condition(one, "QuotaReserved") == "False" for one in own)

    poll(all_wait, 60, lambda: "they do not all wait")


@pytest.mark.parametrize(("workers", "outcome"), [(8, "admit"), (9, "never")])
def test_credits_are_counted_as_gangplan_counts_them(counting: Lab, workers: int, outcome: str) -> None:
    """Each worker has four GPUs and an FPGA: 41 credits of 328."""
    said = verdict("counting", asked("counting", "research", workers))
    assert said.outcome == outcome
    name = f"run-{workers}"
    start(counting, "counting", "research", name, workers=workers)
    if outcome == "admit":
        found = usage(wait(counting, "research", name, "QuotaReserved"))["node"]
        assert found["example.com/credits"] == str(41 * workers)
        assert found["example.com/fpga"] == str(workers)
        assert not {"nvidia.com/gpu", "networking.example.com/card"} & set(found)
    else:
        found = wait(counting, "research", name, "QuotaReserved", "False")
        (told,) = (one for one in found["status"]["conditions"] if one["type"] == "QuotaReserved")
        assert told["message"].rstrip(".") == said.message.rstrip(".")
    counting.client.delete("TrainJob", name, "research", foreground=True)
