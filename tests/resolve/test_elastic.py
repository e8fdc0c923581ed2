"""Elastic runs of torch: torchrun gets the fewest workers, and the Job creates lost ones again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods
from tests.workspaces import gangplan, rendered

ELASTIC = "elastic: {min: 2, max: 4}\ncheckpoint: {to: filings}\n"


def put(root: Path, lines: str, image: str = "pytorch", command: str = "[python, train.py]") -> None:
    text = workspaces.SPEC.replace("workers: 4\n", "").replace("image: openmpi", f"image: {image}")
    workspaces.write(root, {SPEC: text.replace("[python, train.py]", command) + lines})


def told(root: Path, lines: str, **more: str) -> list[Any]:
    put(root, lines, **more)
    return list(gangplan("validate", "-C", root).findings)


def job(root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Render, and return the TrainJob and the replicated job of the workers."""
    assert gangplan("render", "-C", root).code == 0
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    bodies = {body["kind"]: body for body in load_objects(text)}
    (entry,) = bodies["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    return bodies["TrainJob"], entry


def test_torchrun_gets_the_range_and_the_rendezvous(root: Path) -> None:
    assert told(root, ELASTIC) == []
    run, _ = job(root)
    assert run["spec"]["trainer"]["numNodes"] == 4
    name = run["metadata"]["name"]
    (box,) = pods(root)["node"]["containers"]
    assert box["args"] == ["torchrun", "--nnodes=2:4", "--max-restarts=3", "train.py"]
    env = {one["name"]: one.get("value") for one in box["env"]}
    assert env["PET_RDZV_BACKEND"] == "c10d"
    assert env["PET_RDZV_ENDPOINT"] == f"{name}-node-0-0.{name}:29400"
    assert env["PET_RDZV_ID"] == name
    assert env["PET_RDZV_CONF"] == "join_timeout=1800,read_timeout=1800"


@pytest.mark.parametrize("retries", ["", "retries: 2\n"])
def test_lost_workers_are_created_again(retries: str, root: Path) -> None:
    """The run is complete with its first worker, which keeps the list of the others."""
    assert told(root, ELASTIC + retries) == []
    spec = job(root)[1]["template"]["spec"]
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert spec["podFailurePolicy"]["rules"] == [lost]
    assert spec["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert spec["backoffLimit"] == 0


def test_without_elastic_the_rendered_run_is_unchanged(root: Path) -> None:
    workspaces.write(root, {SPEC: workspaces.SPEC.replace("openmpi", "pytorch")})
    spec = job(root)[1]["template"]["spec"]
    assert "successPolicy" not in spec
    assert "podFailurePolicy" not in spec
    (box,) = pods(root)["node"]["containers"]
    assert box["args"] == ["torchrun", "train.py"]


def test_quota_and_plan_count_the_maximum(root: Path) -> None:
    put(root, ELASTIC)
    (run,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    assert (run["workers"], run["totals"]["cpu"], run["elastic"]) == (4, "32", {"min": 2, "max": 4})
    assert "goes on with 2 to 4 workers" in gangplan("plan", "-C", root).out


@pytest.mark.parametrize("command", ["[sh, -c, 'python a.py']", "[python, -m, pkg.train]", "[./train]"])
def test_other_programs_start_through_torchrun(command: str, root: Path) -> None:
    assert told(root, ELASTIC, command=command) == []
    (box,) = pods(root)["node"]["containers"]
    assert box["args"][:3] == ["torchrun", "--nnodes=2:4", "--max-restarts=3"]
    assert ("--no-python" in box["args"]) == ("python, -m" not in command)


KUBERNETES = {'"1.34.4"': '"1.30.14"'}
# Lines, what else the spec or the cluster says, the broken rules, and words of the message.
CASES: dict[str, tuple[str, dict[str, str], list[str], str]] = {
    "as few as many": ("elastic: {min: 4, max: 4}\ncheckpoint: {to: filings}\n", {}, [], ""),
    "more than there are": (
        "elastic: {min: 5, max: 4}\ncheckpoint: {to: filings}\n",
        {},
        ["elastic-unusable"],
        "min is 5",
    ),
    "without a checkpoint": ("elastic: {min: 2, max: 4}\n", {}, ["elastic-checkpoint"], "start again"),
    "with as many workers": (f"{ELASTIC}workers: 4\n", {}, [], ""),
    "with other workers": (f"{ELASTIC}workers: 3\n", {}, ["elastic-unusable"], "workers is 3"),
    "with MPI": (ELASTIC, {"image": "openmpi"}, ["elastic-unusable"], "framework mpi starts a fixed"),
    "with a count": (
        ELASTIC,
        {"command": "[python, train.py, --world, '{ranks}']"},
        ["elastic-unusable"],
        "{ranks} changes",
    ),
    "with slots in the command": (ELASTIC, {"command": "[python, train.py, '{slots}']"}, [], ""),
    "with its own torchrun": (
        ELASTIC,
        {"command": "[torchrun, --nnodes=2:4, train.py]"},
        ["elastic-unusable"],
        "does not know that the run is elastic",
    ),
    "with its own number": (
        ELASTIC,
        {"command": "[torchrun, --nnodes=2, train.py]"},
        ["elastic-unusable", "ranks-mismatch"],
        "does not know that the run is elastic",
    ),
    "with its own meeting point": (
        f"{ELASTIC}env: {{PET_RDZV_ID: x}}\n",
        {},
        ["env-reserved"],
        "PET_RDZV_ID",
    ),
    "on an older Kubernetes": (ELASTIC, KUBERNETES, ["elastic-unusable"], "has Kubernetes 1.30.14"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_range_breaks_its_rules(name: str, root: Path) -> None:
    lines, more, rules, words = CASES[name]
    if more is KUBERNETES:
        text = workspaces.CLUSTER
        for old, new in more.items():
            text = text.replace(old, new)
        workspaces.write(root, {"overlays/lab/cluster.yaml": text})
        more = {}
    found = told(root, lines, **more)
    assert sorted({one.rule for one in found} - {"version-old"}) == sorted(rules)
    if rules:
        one = next(one for one in found if one.rule == rules[0])
        assert words in one.message
        assert one.help


def test_why_leads_to_the_fields(root: Path) -> None:
    put(root, ELASTIC)
    assert gangplan("render", "-C", root).code == 0
    (path,) = (one for one in rendered(root) if is_run_file(one))
    lines = rendered(root)[path].decode().splitlines()
    for words in ("--nnodes=2:4", "--max-restarts=3", "succeededIndexes", "numNodes: 4", "PET_RDZV_CONF"):
        line = next(n for n, one in enumerate(lines, 1) if words in one)
        out = gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out
        assert "elastic" in out, words


def test_a_new_job_takes_elastic_from_its_flags(root: Path) -> None:
    words = ("--image", "pytorch", "--command", "python train.py", "--elastic-min", "2", "--elastic-max", "4")
    outcome = gangplan("new", "job", "growing", "-C", root, *words, "-n")
    assert outcome.code == 0, outcome.err
    assert "elastic: {min: 2, max: 4}" in outcome.out
