"""Packages that a setup container or a step installs and the program never sees, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

# The command | whether what it installs is lost
CASES = {
    "pip install -r requirements.txt": True,
    "pip3 install wandb": True,
    "python -m pip install --no-index wandb": True,
    "uv pip install wandb": True,
    "conda install -y numpy": True,
    "cd /data && pip install .": True,
    "python fetch.py; pip install wandb": True,
    "pip install wandb && python fetch.py": False,
    "pip install --target=/data/packages wandb": False,
    "pip install -t /data/packages wandb": False,
    "conda install --prefix /data/env numpy": False,
    "pip download wandb": False,
    "pip list": False,
    "python fetch.py": False,
}
WHERE = {
    "setup": "setup: [{{command: [bash, -c, '{}']}}]\n",
    "steps": "steps: [{{command: [bash, -c, '{}']}}]\n",
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("command", CASES)
def test_what_is_installed_before_the_program_is_lost(command: str, where: str, root: Path) -> None:
    """A setup container and a step have a file system of their own."""
    text = workspaces.SPEC + WHERE[where].format(command)
    workspaces.write(root, {"specs/nlp/filings.yaml": text})
    found = [
        one for one in workspaces.gangplan("validate", "-C", root).findings if one.rule == "packages-lost"
    ]
    assert len(found) == CASES[command]
    for one in found:
        assert one.place.startswith("specs/nlp/filings.yaml:9:")
        assert ("setup container" if where == "setup" else "step") in one.message


@pytest.mark.parametrize("more", ["", "sidecars: [{command: [pip, install, wandb]}]\n"])
def test_a_run_and_a_sidecar_install_for_themselves(more: str, root: Path) -> None:
    text = workspaces.SPEC.replace("[python, train.py]", "[bash, -c, 'pip install wandb']") + more
    workspaces.write(root, {"specs/nlp/filings.yaml": text})
    found = workspaces.gangplan("validate", "-C", root).findings
    assert "packages-lost" not in [one.rule for one in found]


# The script of a command on an image of Open MPI, whose claim is at /data | whether the ranks lack what it installs
SCRIPTS = {
    "pip install -r r.txt && mpirun -np {ranks} python train.py": True,
    "cd /workspace; uv pip install wandb; exec mpirun python train.py": True,
    "pip install wandb && deepspeed train.py": True,
    "source /opt/venv/bin/activate && pip install wandb && mpirun python train.py": True,
    "pip install --target=/data/packages wandb && mpirun python train.py": False,
    "/data/venv/bin/pip install wandb && mpirun /data/venv/bin/python train.py": False,
    "source /data/venv/bin/activate && pip install wandb && mpirun python train.py": False,
    "mpirun python train.py && pip install wandb && python report.py": False,
    "pip install wandb && python train.py": False,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_installs_on_the_launcher_alone_is_lost(script: str, root: Path) -> None:
    """The script runs once, on the launcher; mpirun starts the ranks on the workers."""
    found = _find_lost_packages(script, 4, root)
    assert [one.place.partition(":")[0] for one in found] == ["specs/nlp/filings.yaml"] * SCRIPTS[script]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_single_worker_that_launches_has_what_its_script_installs(workers: int, root: Path) -> None:
    script = "pip install wandb && mpirun python train.py"
    found = _find_lost_packages(script, workers, root, "launcher: {runsRanks: true}\n")
    assert len(found) == (workers > 1)


def _find_lost_packages(script: str, workers: int, root: Path, more: str = "") -> list[workspaces.Shown]:
    text = workspaces.SPEC.replace("[python, train.py]", f"[bash, -c, '{script}']")
    text = text.replace("workers: 4", f"workers: {workers}") + more
    workspaces.write(root, {"specs/nlp/filings.yaml": f"{text}data: {{filings: /data}}\n"})
    found = workspaces.gangplan("validate", "-C", root).findings
    return [one for one in found if one.rule == "packages-lost"]
