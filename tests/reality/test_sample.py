"""The sample workspace: its programs exist and run under their image's MPI; its findings are intended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import plain, workspaces
from tests.reality import pods
from tests.reality.base import running_spec
from tests.reality.families import FAMILIES, Family, UnavailableError, installed

PROGRAMS = workspaces.REPOSITORY / "images/programs"
SPECS = sorted(
    path for path in (workspaces.REPOSITORY / "specs").glob("*/*.yaml") if path.name != "team.yaml"
)
RANKS = 3
# A setting for what would take minutes in plain Python.
SMALL = {"SIMULATION_STEPS": "6000"}


def named(path: Path) -> str:
    """Return a spec's name for pytest."""
    return path.stem


def words(path: Path) -> list[str]:
    """Return the command of a spec."""
    command = plain.load(path.read_text())["command"]
    return command.split() if isinstance(command, str) else [str(word) for word in command]


def family(path: Path) -> Family | None:
    """Return the MPI in the image of a spec."""
    catalog = plain.load((workspaces.REPOSITORY / "images/catalog.yaml").read_text())["images"]
    mpi: dict[str, Any] | None = catalog[plain.load(path.read_text())["image"]].get("mpi")
    if mpi is None:
        return None
    name = {"IntelMPI": "intel", "MPICH": "mpich", "OpenMPI": f"openmpi{mpi['version'][0]}"}
    return FAMILIES[name[mpi["implementation"]]]


@pytest.mark.parametrize("path", SPECS, ids=named)
def test_the_files_of_each_command_exist(path: Path) -> None:
    found = [word for word in words(path) if re.search(r"\.(py|json|cfg)$", word)]
    assert found, words(path)
    assert [name for name in found if not (PROGRAMS / name).is_file()] == []


@pytest.mark.parametrize("path", SPECS, ids=named)
def test_each_program_of_the_sample_runs(path: Path, tmp_path: Path) -> None:
    """MPI programs run with three ranks on this machine, programs for torchrun with one, because torch is
    missing."""
    command = words(path)
    program = [sys.executable, "-B", *command[command.index("python") + 1 :]]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CHECKPOINT_DIR": str(tmp_path), **SMALL}
    mpi = family(path)
    if mpi is not None:
        try:
            prefix = installed(mpi.name) / "usr/local"
        except UnavailableError as error:
            pytest.skip(str(error))
        many = [] if mpi.is_hydra else ["--allow-run-as-root", "--oversubscribe"]
        program = [str(prefix / "bin/mpirun"), *many, "-n", str(RANKS), *program]
        env |= {"PATH": f"{prefix}/bin:{env['PATH']}", "I_MPI_ROOT": str(prefix)}
        env |= {"MPI4PY_LIBMPI": str(prefix / "lib" / mpi.library), "LD_LIBRARY_PATH": str(prefix / "lib")}
    done = subprocess.run(
        program, cwd=PROGRAMS, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{RANKS if mpi else 1} ranks" in done.stdout


def test_a_training_continues_from_its_checkpoint(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "CHECKPOINT_DIR": str(tmp_path)}
    shown = [
        subprocess.run(
            [sys.executable, "-B", "retrain.py", "--epochs", epochs],
            cwd=PROGRAMS,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for epochs in ("1", "3")
    ]
    assert [re.findall(r"epoch (\d)", text) for text in shown] == [["0"], ["1", "2"]]


def test_the_quickstart_runs_as_rendered(tmp_path: Path) -> None:
    """The run in rendered/ is started on two hosts, with the program of the sample."""
    folder = workspaces.REPOSITORY / "rendered/us-cloud/runs/research"
    texts = [
        path.read_text() for name in ("quickstart-cpu-*", "launch.*") for path in folder.glob(f"{name}.yaml")
    ]
    files = {"allreduce.py": (PROGRAMS / "allreduce.py").read_text()}
    with running_spec(
        tmp_path, FAMILIES["openmpi5"], "", bodies=pods.load("---\n".join(texts)), with_python=files
    ) as run:
        assert run.end() == 0, run.story()
        assert "2 ranks,  800000 bytes" in run.launcher.out


def test_every_finding_of_the_sample_is_explained(sample: Path) -> None:
    """A comment in the file names the rule."""
    outcome = workspaces.gangplan("validate", "-C", sample)
    assert outcome.errors() == []
    unsaid = [
        (shown.place, shown.rule)
        for shown in outcome.findings
        if shown.severity != "note"
        and shown.rule not in _on_purpose((sample / shown.place.split(":")[0]).read_text())
    ]
    assert unsaid == []


def _on_purpose(text: str) -> str:
    """Return the comments of a file that contain "On purpose:"."""
    found = re.findall(r"(?:^ *# .*\n)+", text, re.MULTILINE)
    return "".join(comment for comment in found if "On purpose:" in comment)
