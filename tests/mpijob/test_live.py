"""`gangplan status` and `gangplan logs` of runs that are MPIJobs, with answers as API servers give them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.answers import KUEUE
from tests.live.server import Server, serving
from tests.live.test_runs import EVENTS, PODS, TIME, WORKLOADS, ask, trainjob
from tests.mpijob.base import run, spec, workspace

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/nlp/mpijobs"


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve a cluster that has the MPI operator alone."""
    with serving({JOBS: [], WORKLOADS: [], PODS: [], EVENTS: []}) as found:
        yield found


def job(name: str, **conditions: str) -> dict[str, Any]:
    """Return a run with these conditions."""
    said = [{"type": key, "status": value, "lastTransitionTime": TIME} for key, value in conditions.items()]
    return {**trainjob(name), "status": {"conditions": said}}


def pod(name: str, role: str, number: int) -> dict[str, Any]:
    made = f"{name}-worker-{number}" if role == "worker" else f"{name}-launcher-x1y2z"
    labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": role}
    return {
        "metadata": {"name": made, "namespace": "nlp", "labels": labels, "creationTimestamp": TIME},
        "spec": {"containers": [{"name": "node"}]},
        "status": {"phase": "Running"},
    }


def test_status_and_logs_of_an_mpijob(tmp_path: Path, server: Server) -> None:
    root = workspace(tmp_path / "workspace", spec())
    name = run(root)[-1]["metadata"]["name"]

    def state() -> str:
        out = ask(root, server, "status", "--team", "nlp", "--format", "json").out
        (row,) = [row for row in json.loads(out)["runs"] if row["run"] == name]
        return str(row["state"])

    assert KUEUE in WORKLOADS
    assert state() == "missing"
    server.answers[JOBS] = [job(name, Created="True", Suspended="True")]
    assert state() == "queued"
    server.answers[JOBS] = [job(name, Created="True", Suspended="False", Running="True")]
    assert state() == "running"
    server.answers[JOBS] = [job(name, Created="True", Running="False", Succeeded="True")]
    assert state() == "complete"
    server.answers[JOBS] = [job(name, Created="True", Failed="True")]
    assert state() == "failed"
    pods = [pod(name, "launcher", 0), *(pod(name, "worker", number) for number in range(12))]
    server.answers[PODS] = pods
    for one in pods:
        server.answers[f"{PODS}/{one['metadata']['name']}/log"] = f"{one['metadata']['name']}\n"
    assert "launcher-x1y2z" in ask(root, server, "logs", name).out
    assert f"{name}-worker-11" in ask(root, server, "logs", name, "--worker", "11").out
