"""Runs without a launcher on a real control plane: their workers know of each other."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/frameworks"
WORKERS = {"boost": 3, "jax": 2, "simulate": 2, "tensorflow": 2}
TOLD = {
    "boost": {"DMLC_NUM_WORKER": "3", "DMLC_TRACKER_PORT": "29500"},
    "jax": {"JAX_NUM_PROCESSES": "2"},
    "simulate": {"NNODES": "2", "MASTER_PORT": "29500"},
    "tensorflow": {},
}
NUMBER = {
    "boost": "DMLC_TASK_ID",
    "jax": "JAX_PROCESS_ID",
    "simulate": "NODE_RANK",
    "tensorflow": "NODE_RANK",
}
INDEX = "batch.kubernetes.io/job-completion-index"


def test_workers_get_the_variables_to_find_each_other() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    tree = render_example(EXAMPLE.name) / "lab"
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.FINISH, after=15, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((tree / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

        def pods() -> dict[str, list[dict[str, Any]]]:
            found: dict[str, list[dict[str, Any]]] = {}
            for pod in lab.client.list("Pod", "research"):
                found.setdefault(pod["metadata"]["labels"]["gangplan.dev/job"], []).append(pod)
            return found

        seen: dict[str, list[dict[str, Any]]] = {}

        def all_there() -> bool:
            seen.update({job: some for job, some in pods().items() if len(some) == WORKERS[job]})
            return seen.keys() == WORKERS.keys()

        poll(all_there, 90, lambda: f"{ {job: len(some) for job, some in pods().items()} }")
        for job, some in seen.items():
            for pod in some:
                (container,) = pod["spec"]["containers"]
                variables = {one["name"]: one for one in container["env"]}
                assert {name: variables[name].get("value") for name in TOLD[job]} == TOLD[job]
                field = variables[NUMBER[job]]["valueFrom"]["fieldRef"]["fieldPath"]
                assert field == f"metadata.annotations['{INDEX}']"
            numbers = sorted(pod["metadata"]["annotations"][INDEX] for pod in some)
            assert numbers == [str(number) for number in range(WORKERS[job])]
            assert {pod["spec"]["hostname"] for pod in some} == {
                f"{pod['metadata']['labels']['gangplan.dev/run']}-node-0-{number}"
                for number in range(WORKERS[job])
                for pod in some[:1]
            }

        def complete() -> bool:
            runs = lab.client.list("TrainJob", "research")
            return len(runs) == 4 and all(condition(one, "Complete") == "True" for one in runs)

        poll(complete, 90, lambda: "not all runs complete")
