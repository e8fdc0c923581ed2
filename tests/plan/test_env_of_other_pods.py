"""What other pods and containers of a run inherit of the variables of its workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods

ROLE = "roles: {loader: {command: [python, load.py]%s}}\n"
STEP = "steps: [{name: loader, command: [python, load.py]%s}]\n"
SIDE = "%s: [{name: loader, command: [python, load.py]%s}]\n"
OWN = "env: {OMP_NUM_THREADS: '3'}\n"
# What is written next to 8 CPU of a worker: the threads of the other pod or container.
THREADS = {
    "a role": (ROLE % ", cpu: 4", "4"),
    "a role with the worker's CPU": (ROLE % "", "8"),
    "a role with a part of a core": (ROLE % ", cpu: 500m", "1"),
    "a role with a value of its own": (ROLE % ", cpu: 4, env: {OMP_NUM_THREADS: '2'}", "2"),
    "a role of a job with a value": (OWN + ROLE % ", cpu: 4", "3"),
    "a step": (STEP % ", cpu: 6", "6"),
    "a step with the worker's CPU": (STEP % "", "8"),
    "a step of a job with a value": (OWN + STEP % ", cpu: 6", "3"),
    "a sidecar": (SIDE % ("sidecars", ""), "1"),
    "a sidecar with CPU": (SIDE % ("sidecars", ", cpu: 2"), "2"),
    "setup": (SIDE % ("setup", ""), "8"),
    "setup with CPU": (SIDE % ("setup", ", cpu: 3"), "3"),
}
# What is written: SCRATCH_DIR there.
SCRATCH = {
    "a role": (ROLE % "", None),
    "a role with a folder of its own": (ROLE % ", env: {SCRATCH_DIR: /x}", "/x"),
    "a step": (STEP % "", None),
    "a sidecar, which has the worker's": (SIDE % ("sidecars", ""), "/scratch"),
    "setup, which has the worker's": (SIDE % ("setup", ""), "/scratch"),
}


def env_of(root: Path, lines: str) -> dict[str, Any]:
    """Return the variables of the pod or container that is called loader."""
    text = workspaces.SPEC.replace("cpu: 8", "cpu: 8\nframework: plain")
    workspaces.write(root, {SPEC: text + lines})
    found = pods(root)
    boxes = found["loader"]["containers"] if "loader" in found else found["node"]["initContainers"]
    (box,) = (one for one in boxes if one["name"] in ("loader", "node"))
    return {one["name"]: one.get("value") for one in box["env"]}


@pytest.mark.parametrize("case", THREADS)
def test_openmp_has_the_cores_of_its_own_pod_or_container(case: str, root: Path) -> None:
    lines, threads = THREADS[case]
    assert env_of(root, lines)["OMP_NUM_THREADS"] == threads


@pytest.mark.parametrize("case", SCRATCH)
def test_only_containers_with_scratch_have_its_folder(case: str, root: Path) -> None:
    lines, folder = SCRATCH[case]
    assert env_of(root, "scratch: 9Gi\n" + lines).get("SCRATCH_DIR") == folder


@pytest.mark.parametrize("lines", [ROLE % "", STEP % ""])
def test_a_folder_of_the_job_is_that_of_all_pods(lines: str, root: Path) -> None:
    assert env_of(root, "env: {SCRATCH_DIR: /x}\n" + lines)["SCRATCH_DIR"] == "/x"


def test_ranks_share_the_cores_of_their_worker(root: Path) -> None:
    workspaces.write(root, {SPEC: workspaces.SPEC + SIDE % ("setup", "")})
    (box,) = pods(root)["node"]["initContainers"]
    assert {one["name"]: one.get("value") for one in box["env"]}["OMP_NUM_THREADS"] == "8"
    launcher = pods(root)["launcher"]["containers"][0]
    assert {one["name"]: one.get("value") for one in launcher["env"]}["OMP_NUM_THREADS"] == "4"
