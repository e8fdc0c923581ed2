"""The images of this project, without building them: what they have in common, and what a build would run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.workspaces import REPOSITORY

IMAGES = REPOSITORY / "images"
BUILT = ("openmpi", "openmpi4", "mpich", "intel-mpi", "pytorch", "horovod", "deepspeed")
SERVED = ("openmpi", "openmpi4", "mpich", "intel-mpi")
BASES = {
    "UBI": "registry.example.com/ubi9@sha256:a",
    "INTEL": "registry.example.com/i@sha256:b",
    "PYTHON": "p",
}


def build(
    *words: str, env: dict[str, str] | None = None, path: str = os.defpath
) -> subprocess.CompletedProcess[str]:
    """Run build.sh with these bases."""
    own = {"PATH": path, **(env or {})}
    command = ["/bin/sh", str(IMAGES / "build.sh"), *words]
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("name", ["sshd_config", "ssh_config", "mpi-start"])
def test_images_with_ssh_have_the_same_files(name: str) -> None:
    texts = {(IMAGES / image / name).read_text() for image in SERVED}
    assert len(texts) == 1


@pytest.mark.parametrize("image", BUILT)
def test_a_containerfile_sets_no_base_and_pins_downloads(image: str) -> None:
    text = (IMAGES / image / "Containerfile").read_text()
    assert re.search(r"^ARG BASE$", text, re.M), "who builds names the base"
    assert text.rstrip().splitlines()[-1] == "USER 1000" or re.search(r"^USER 1000$", text, re.M)
    # A download is checked in the same instruction.
    for step in re.findall(r"^RUN (?:.*\\\n)*.*$", text, re.M):
        assert ("curl " in step) == ("sha256sum -c" in step) or "apt-get" in step
    if "pip install" in text:
        assert "--require-hashes" in text
        pins = (IMAGES / image / "requirements.in").read_text().splitlines()
        assert all(re.fullmatch(r"[\w-]+==[\w.]+", pin) for pin in pins if not pin.startswith("#"))


@pytest.mark.parametrize("image", SERVED)
def test_versions_of_mpi_are_those_of_the_catalog(image: str) -> None:
    text = (IMAGES / image / "Containerfile").read_text()
    stated = re.findall(r"^ARG (?:OMPI|MPICH)_VERSION=(\S+)$", text, re.M)
    catalog = (IMAGES / "catalog.yaml").read_text()
    assert all(f'version: "{version}"' in catalog for version in stated)
    assert len(stated) == (image != "intel-mpi")


def test_print_shows_what_a_build_would_run() -> None:
    outcome = build("--print", env=BASES)
    assert outcome.returncode == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert [re.findall(r"-f .*/images/([\w-]+)/", line) for line in lines] == [[name] for name in BUILT]
    assert f"--build-arg BASE={BASES['UBI']} " in lines[0]
    assert "BASE=registry.example.com/training/openmpi4:latest" in lines[-1]


def test_an_image_without_a_base_is_skipped_with_a_message() -> None:
    outcome = build("--print", "openmpi", "pytorch", env={"UBI": "u"})
    assert (outcome.returncode, len(outcome.stdout.splitlines())) == (1, 1)
    assert outcome.stderr == "build.sh: pytorch is passed over: PYTHON names no base\n"
    assert build("--print", "nothing").returncode == 2


def test_without_a_builder_nothing_is_built(tmp_path: Path) -> None:
    for name in ("dirname", "sh"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    outcome = build("openmpi", env=BASES, path=str(tmp_path))
    assert outcome.returncode == 3
    assert "neither buildah nor podman is here: nothing was built" in outcome.stderr


def test_build_calls_the_builder(tmp_path: Path) -> None:
    program = tmp_path / "buildah"
    program.write_text('#!/bin/sh\necho "$*"\n')
    program.chmod(0o755)
    outcome = build("openmpi", "horovod", env=BASES, path=f"{tmp_path}:{os.defpath}")
    assert outcome.stdout.startswith(
        f"build --build-arg BASE={BASES['UBI']} -t registry.example.com/training/openmpi:latest"
    )
    assert outcome.returncode == 1
    assert "horovod is passed over: make requirements.txt from requirements.in first" in outcome.stderr


def test_entry_points_are_executable() -> None:
    assert all(os.access(IMAGES / image / "mpi-start", os.X_OK) for image in SERVED)
