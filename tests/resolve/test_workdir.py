"""The folder that the program starts in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan, rendered

SPEC = "specs/nlp/filings.yaml"
GOOD = ["/workspace", "/home/mpiuser/app", "/data/job", "/rooted", "/devices", "/tmp", "/opt/x"]
# Folder -> words of the finding.
BAD = {
    "/root": "only root may enter /root, and the run is user 1000",
    "/root/app": "only root may enter /root",
    "/proc/self": "the kernel shows processes there",
    "/sys": "the kernel shows devices there",
    "/dev/shm": "shared memory",
}


def put(root: Path, lines: str, image: str = "openmpi") -> None:
    """Write the spec of the small workspace with more lines."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + lines
    workspaces.write(root, {SPEC: text})


def pods(root: Path) -> dict[str, Any]:
    """Render, and return the pod specs of the run by role."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    (runtime,) = (body for body in load_objects(text) if body["kind"] == "TrainingRuntime")
    return {
        entry["name"]: entry["template"]["spec"]["template"]["spec"]
        for entry in runtime["spec"]["template"]["spec"]["replicatedJobs"]
    }


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_every_pod_starts_in_the_folder(image: str, root: Path) -> None:
    """This includes workers of MPI: mpirun starts ranks in its own folder, which must exist there."""
    put(root, "workdir: /workspace\n", image)
    found = pods(root)
    assert found
    assert {pod["containers"][0]["workingDir"] for pod in found.values()} == {"/workspace"}


def test_without_workdir_pods_set_no_folder(root: Path) -> None:
    put(root, "")
    assert all("workingDir" not in pod["containers"][0] for pod in pods(root).values())


@pytest.mark.parametrize("path", GOOD)
def test_usable_folders_are_accepted(path: str, root: Path) -> None:
    put(root, f"workdir: {path}\n")
    assert gangplan("validate", "-C", root).findings == []


@pytest.mark.parametrize("path", BAD)
def test_folders_in_which_no_program_can_work_are_refused(path: str, root: Path) -> None:
    put(root, f"workdir: {path}\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.place, found.severity) == ("workdir-unusable", f"{SPEC}:9:10", "error")
    assert BAD[path] in found.message


@pytest.mark.parametrize(("path", "help"), [("app", "Write '/app'."), ("/a/../b", "Write '/b'.")])
def test_the_folder_must_be_a_plain_absolute_path(path: str, help: str, root: Path) -> None:
    put(root, f"workdir: {path}\n")
    outcome = gangplan("validate", "-C", root)
    assert (outcome.code, outcome.findings[0].help) == (2, help)


def test_words_of_other_tools_lead_to_workdir(root: Path) -> None:
    put(root, "workingDir: /workspace\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert "workdir" in found.help


def test_the_plan_shows_the_folder(root: Path) -> None:
    put(root, "workdir: /workspace\n")
    assert "  folder    /workspace\n" in gangplan("plan", "-C", root).out


def test_why_leads_to_the_field(root: Path) -> None:
    put(root, "workdir: /workspace\n")
    pods(root)
    ((path, text),) = ((p, t) for p, t in rendered(root).items() if is_run_file(p))
    line = next(n for n, one in enumerate(text.decode().splitlines(), 1) if "workingDir" in one)
    assert f"{SPEC}:9" in gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out
