"""Runs whose pods are not simply those that the TrainJob states. A real Trainer makes them in tests/e2e."""

from __future__ import annotations

import copy
from collections.abc import Callable

from gangplan.model.backend import ANCESTOR_LABEL
from gangplan.validate.jobset import list_replicated_jobs
from tests.lab import samples
from tests.lab.client import Object

Change = Callable[[Object, Object], None]


def _step(runtime: Object, role: str, step: str | None) -> None:
    for entry in list_replicated_jobs(runtime):
        if entry["name"] == role:
            labels = entry["template"].setdefault("metadata", {}).setdefault("labels", {})
            labels.pop(ANCESTOR_LABEL, None)
            if step:
                labels[ANCESTOR_LABEL] = step


def _of_all_launchers(runtime: Object, job: Object) -> None:
    """Give the nodes of the policy to the step of the trainer, not to the workers."""
    runtime["spec"]["mlPolicy"]["numNodes"] = 4


def _without_nodes(runtime: Object, job: Object) -> None:
    runtime["spec"]["mlPolicy"]["numNodes"] = 3
    del job["spec"]["trainer"]["numNodes"]


def _workers_alone(runtime: Object, job: Object) -> None:
    runtime["spec"]["mlPolicy"]["mpi"]["runLauncherAsNode"] = False


def _written(runtime: Object, job: Object) -> None:
    """Set numbers on a replicated job itself, and add one more replicated job."""
    for entry in list_replicated_jobs(runtime):
        if entry["name"] == "node":
            entry["template"]["spec"] |= {"parallelism": 5, "completions": 5}
    more = copy.deepcopy(list_replicated_jobs(runtime)[0])
    more |= {"name": "more", "replicas": 2}
    more["template"]["spec"] |= {"parallelism": 2, "completions": 2}
    list_replicated_jobs(runtime).append(more)
    del job["spec"]["trainer"]["numNodes"]


def _torch(runtime: Object, job: Object) -> None:
    spec = runtime["spec"]
    spec["mlPolicy"] = {"numNodes": 1, "torch": {}}
    del spec["template"]["spec"]["successPolicy"]
    spec["template"]["spec"]["replicatedJobs"] = [
        one for one in list_replicated_jobs(runtime) if one["name"] == "node"
    ]
    job["spec"]["trainer"] = {"numNodes": 3}
    _step(runtime, "node", "trainer")


def _torch_without_step(runtime: Object, job: Object) -> None:
    _torch(runtime, job)
    _step(runtime, "node", None)


def _torch_by_policy(runtime: Object, job: Object) -> None:
    _torch(runtime, job)
    runtime["spec"]["mlPolicy"]["numNodes"] = 3
    job["spec"]["trainer"] = {}


def _patched(runtime: Object, job: Object) -> None:
    pod = {"metadata": {"labels": {"cost": "x"}}, "spec": {"nodeSelector": {"pool": "a"}}}
    entry = {"name": "node", "template": {"spec": {"template": pod}}}
    inner = {"template": {"spec": {"replicatedJobs": [entry]}}}
    job["spec"]["runtimePatches"] = [{"manager": "example.com/tests", "trainingRuntimeSpec": inner}]


LAYOUTS: dict[str, tuple[Change, dict[str, int]]] = {
    "plain": (lambda runtime, job: None, {"node": 2, "launcher": 1}),
    "policy": (_of_all_launchers, {"node": 2, "launcher": 4}),
    "no-nodes": (_without_nodes, {"node": 1, "launcher": 3}),
    "workers": (_workers_alone, {"node": 3, "launcher": 1}),
    "written": (_written, {"node": 5, "launcher": 1, "more": 4}),
    "torch": (_torch, {"node": 3}),
    "no-step": (_torch_without_step, {"node": 1}),
    "by-policy": (_torch_by_policy, {"node": 3}),
    "patched": (_patched, {"node": 2, "launcher": 1}),
}


def layout(name: str) -> tuple[Object, Object, dict[str, int]]:
    """Return a runtime, its run, both in a namespace named as the layout, and its pods by replicated job."""
    change, pods = LAYOUTS[name]
    runtime, job = samples.runtime(name, name), samples.run(name, "pi")
    change(runtime, job)
    return runtime, job, pods
