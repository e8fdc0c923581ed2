"""The project's own workflow and hooks call what people call, and pin what recipes pin."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

import yaml

from gangplan.gitops.ci import ACTIONS
from tests.workspaces import REPOSITORY

WORKFLOW = REPOSITORY / ".github/workflows/ci.yml"


def gate() -> dict[str, Any]:
    """Return the only job of the workflow."""
    (job,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return dict(job)


def test_the_workflow_runs_the_gate_and_may_only_read() -> None:
    job = gate()
    (command,) = [step["run"] for step in job["steps"] if "run" in step]
    assert os.access(REPOSITORY / command, os.X_OK)
    assert job["permissions"] == {"contents": "read"}
    assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["permissions"] == {}


def test_the_workflow_pins_the_actions_of_recipes() -> None:
    lines = re.findall(r"uses: ([\w/-]+)@(\w+) # (\S+)", WORKFLOW.read_text(encoding="utf-8"))
    assert len(lines) == WORKFLOW.read_text(encoding="utf-8").count("uses:")
    assert {name: ACTIONS[name] for name, *_ in lines} == {name: (commit, tag) for name, commit, tag in lines}


def test_the_workflow_has_every_supported_python() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    ((oldest, newest),) = re.findall(r"Python 3\.(\d+) to 3\.(\d+)", readme)
    named = [f"3.{minor}" for minor in range(int(oldest), int(newest) + 1)]
    assert gate()["strategy"]["matrix"]["python-version"] == named


def test_hooks_are_targets_of_make() -> None:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    for hook in config["repos"][0]["hooks"]:
        make, silent, target = hook["entry"].split()
        assert (make, silent, hook["language"], hook["pass_filenames"]) == (
            "make",
            "--silent",
            "system",
            False,
        )
        done = subprocess.run(["make", "-n", target], cwd=REPOSITORY, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_hooks_start_for_each_source_of_rendered_files() -> None:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    files = next(hook["files"] for hook in config["repos"][0]["hooks"] if hook["id"] == "rendered")
    for path in (
        "specs/a/b.yaml",
        "generators/runtime.py",
        "templates/pod.yaml.j2",
        "gangplan/cli.py",
        "images/catalog.yaml",
    ):
        assert re.search(files, path), path
    assert not re.search(files, "docs/spec.md")
