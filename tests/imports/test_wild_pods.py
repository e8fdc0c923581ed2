"""Pods of published jobs next to those of their runs: all that differs counts, but not what operators add."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.imports.sources import MPIJOB, PYTORCHJOB, TFJOB, imported
from tests.wild.differences import Pair, compare
from tests.wild.makers import maker_of

Object = dict[str, Any]
_OF = "training.kubeflow.org/"
_OURS = "jobset.sigs.k8s.io/replicatedjob-name"


def job_of(text: str) -> Object:
    (job,) = plain.load_all(text)
    return dict(job)


def pods_of_operator(job: Object) -> list[Object]:
    """Return the pods that the MPI operator makes, with some of what it and the server add."""
    made = []
    for role, entry in job["spec"]["mpiReplicaSpecs"].items():
        for number in range(entry.get("replicas", 1)):
            pod = copy.deepcopy(entry["template"])
            pod["metadata"] = {"name": f"{role}-{number}".lower(), "labels": {f"{_OF}job-role": role.lower()}}
            if role == "Worker":
                pod["metadata"]["labels"][f"{_OF}replica-index"] = str(number)
            pod["spec"]["terminationGracePeriodSeconds"] = 30
            box = pod["spec"]["containers"][0]
            box["env"] = [*box.get("env", ()), {"name": "K_MPI_JOB_ROLE", "value": role.lower()}]
            box["volumeMounts"] = [
                *box.get("volumeMounts", ()),
                {"name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh"},
                {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
            ]
            made.append(pod)
    return made


def pods_of_run(job: Object) -> list[Object]:
    """Return pods that are as those of the source, in the words of a JobSet."""
    made = pods_of_operator(job)
    for pod in made:
        role = pod["metadata"]["labels"][f"{_OF}job-role"]
        index = pod["metadata"]["labels"].get(f"{_OF}replica-index", "0")
        pod["metadata"]["labels"] = {_OURS: "node" if role == "worker" else role}
        pod["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": index}
        box = pod["spec"]["containers"][0]
        box["env"] = [one for one in box["env"] if one["name"] != "K_MPI_JOB_ROLE"]
        if role == "worker":
            box["command"] = ["/usr/sbin/sshd", "-De"]
    return made


@pytest.mark.parametrize(("text", "count"), [(MPIJOB, 5), (PYTORCHJOB, 3), (TFJOB, 6)])
def test_an_operator_makes_as_many_pods_as_the_roles_say(text: str, count: int) -> None:
    job = job_of(text)
    assert maker_of(job["kind"]).count(job) == count


@pytest.mark.parametrize(("text", "count"), [(MPIJOB, 1), (PYTORCHJOB, 2), (TFJOB, 3)])
def test_roles_that_do_not_count_their_pods_have_the_operators_default(text: str, count: int) -> None:
    job = job_of(text)
    for roles in job["spec"].values():
        for role in roles.values() if isinstance(roles, dict) else ():
            role.pop("replicas", None) if isinstance(role, dict) else None
    assert maker_of(job["kind"]).count(job) == count


def test_the_container_that_trains_comes_first() -> None:
    job = job_of(PYTORCHJOB)
    boxes = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    boxes.insert(0, {"name": "logs", "image": "registry.example.com/optics/logs:1"})
    pod = {
        "metadata": {"labels": {f"{_OF}replica-type": "worker"}},
        "spec": {"containers": copy.deepcopy(boxes)},
    }
    plain_pod = maker_of("PyTorchJob").plain(pod, job)
    assert [box["name"] for box in plain_pod["spec"]["containers"]] == ["pytorch", "logs"]


# What is changed in a pod of the run, the number of the pod -> the fact that is silently different.
CHANGES = {
    "nothing": (lambda pod: None, 0, set()),
    "a variable of the launcher": (lambda pod: pod["spec"]["containers"][0].update(env=[]), 0, {"HEAT_CASE"}),
    "a variable of a worker": (
        lambda pod: pod["spec"]["containers"][0]["env"][0].update(value="oven-8"),
        3,
        {"HEAT_CASE"},
    ),
    "a volume of a worker": (
        lambda pod: pod["spec"]["containers"][0]["volumeMounts"].pop(0),
        3,
        {"/cases"},
    ),
    "the keys of a worker": (
        lambda pod: pod["spec"]["containers"][0]["volumeMounts"].pop(2),
        3,
        {"folder of the SSH keys"},
    ),
    "the memory of a worker": (
        lambda pod: pod["spec"]["containers"][0]["resources"]["limits"].update(memory="32Gi"),
        4,
        {"memory of a worker"},
    ),
    "the program": (
        lambda pod: pod["spec"]["containers"][0].update(args=["/opt/heat/solve", "--steps", "10"]),
        0,
        {"program"},
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_the_report_does_not_name_is_silent(case: str, tmp_path: Path) -> None:
    change, number, expected = CHANGES[case]
    job = job_of(MPIJOB)
    (one,) = imported(tmp_path, "mpijob", MPIJOB).imported
    theirs, ours = pods_of_operator(job), pods_of_run(job)
    change(ours[number])
    pair = Pair("heat", "heat.yaml")
    compare(pair, one, job, theirs, ours)
    assert set(pair.silent) == expected


def test_a_missing_worker_is_silent(tmp_path: Path) -> None:
    job = job_of(MPIJOB)
    (one,) = imported(tmp_path, "mpijob", MPIJOB).imported
    pair = Pair("heat", "heat.yaml")
    compare(pair, one, job, pods_of_operator(job), pods_of_run(job)[:-1])
    assert set(pair.silent) == {"worker"}


def test_a_launcher_of_its_own_is_named(tmp_path: Path) -> None:
    """It has another image than workers, and an init container that its image starts."""
    job = job_of(MPIJOB)
    pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    image = pod["containers"][0]["image"]
    pod["containers"][0]["image"] = "registry.example.com/optics/other:1"
    pod["initContainers"] = [{"name": "order", "image": "registry.example.com/optics/order:1"}]
    (one,) = imported(tmp_path, "mpijob", json.dumps(job)).imported
    theirs, ours = pods_of_operator(job), pods_of_run(job)
    ours[0]["spec"].pop("initContainers")
    ours[0]["spec"]["containers"][0]["image"] = image
    pair = Pair("heat", "heat.yaml")
    compare(pair, one, job, theirs, ours)
    assert pair.silent == {}
    assert set(pair.named) == {"image", "container order", "container order image"}
