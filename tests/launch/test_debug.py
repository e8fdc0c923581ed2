"""A container that has failed and is started again: it waits until the day is over, or it gets SIGTERM."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests import workspaces
from tests.launch.scripts import SHELLS, Pod, container
from tests.launch.test_launch import SPECS

ENDED, LATER = "1970-01-01", "2999-12-31"
DEV = workspaces.CLUSTER.replace("region:", "environment: dev\nregion:")


def pod_of(folder: Path, shell: str, until: str, role: str = "launcher", image: str = "openmpi") -> Pod:
    """A pod with a shared memory of its own, which outlives its container."""
    spec = SPECS["openmpi"].replace("openmpi", image) + f'debug: {{until: "{until}"}}\n'
    return Pod.of(folder, shell, container(spec, role, folder, **{"overlays/lab/cluster.yaml": DEV}))


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("role", "image"), [("launcher", "openmpi"), ("launcher", "mpich"), ("node", "pytorch")]
)
def test_the_second_start_waits(shell: str, role: str, image: str, tmp_path: Path) -> None:
    pod = pod_of(tmp_path, shell, LATER, role, image)
    assert pod.start("program").returncode not in (0, None)
    assert (tmp_path / "gangplan-started").exists()
    with pod.begun("program") as process:
        time.sleep(1)
        assert process.poll() is None
        assert not [line for line in pod.log if "program" in line]  # it is not started again
        assert f"this pod is kept until {LATER} (UTC)" in (tmp_path / "stderr").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 143


@pytest.mark.parametrize("shell", SHELLS)
def test_when_the_day_is_over_it_ends(shell: str, tmp_path: Path) -> None:
    pod = pod_of(tmp_path, shell, ENDED)
    assert pod.start("program").returncode == 7
    for _ in (2, 3):
        assert pod.start("program").returncode == 1
        assert not [line for line in pod.log if "program" in line]


def test_a_program_that_succeeds_is_not_held(tmp_path: Path) -> None:
    pod = pod_of(tmp_path, SHELLS[0], LATER)
    (tmp_path / "bin" / "program").write_text("#!/bin/sh\nexit 0\n")
    assert pod.start("program").returncode == 0


def test_without_shared_memory_nothing_starts(tmp_path: Path) -> None:
    """The mark that keeps the program from being started again cannot be made."""
    pod = pod_of(tmp_path, SHELLS[0], LATER)
    pod.moved["/dev/shm/"] = f"{tmp_path}/nowhere/"
    assert pod.start("program").returncode != 0
    assert not [line for line in pod.log if "program" in line]
