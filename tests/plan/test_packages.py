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
