"""The script of a CronJob's pod in the shells that images have; a fake kubectl gives canned answers."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from tests.schedules import worlds

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
KUBECTL = """\
#!/bin/sh
echo "$1" >>"$TOLD/calls"
case $1 in
get) cat "$TOLD/runs"; exit "$(cat "$TOLD/code")" ;;
create) cat >"$TOLD/created"; echo "trainjob.trainer.kubeflow.org/it created" ;;
esac
"""


class Start:
    """The parts of one start: the pod of the rendered CronJob, and a folder with kubectl and its answers."""

    def __init__(self, root: Path) -> None:
        worlds.stock(root)
        bodies = worlds.rendered(root)
        pod = worlds.one(bodies, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (self.container,) = pod["containers"]
        self.folder = root / "there"
        self.folder.mkdir()
        (config_map,) = (body for body in bodies if "run.yaml" in body.get("data", {}))
        (self.folder / "run.yaml").write_text(config_map["data"]["run.yaml"])
        (self.folder / "kubectl").write_text(KUBECTL)
        (self.folder / "kubectl").chmod(0o755)
        self.says()

    def says(self, runs: str = "", code: int = 0) -> None:
        """Set what kubectl prints about the runs of the schedule."""
        (self.folder / "runs").write_text(runs)
        (self.folder / "code").write_text(str(code))

    def run(self, shell: str, job: str) -> subprocess.CompletedProcess[str]:
        """Run the script as the kubelet starts it, with nothing but kubectl on its path."""
        for name in ("created", "calls"):
            (self.folder / name).unlink(missing_ok=True)
        return worlds.started(self.container, self.folder, shell, job)

    @property
    def created(self) -> dict[str, Any] | None:
        """The object that was created, or None."""
        return worlds.created(self.folder)


@pytest.fixture
def start(root: Path) -> Start:
    return Start(root)


# Leap years, ends of years and months, and the first minute of a day.
TIMES = (
    *("2026-01-15 21:00", "2024-02-29 23:59", "2024-03-01 00:00", "2026-12-31 23:59", "2027-01-01 00:00"),
    *("2100-02-28 12:00", "2100-03-01 00:01", "2000-02-29 08:09", "2026-08-09 08:09", "1999-12-31 23:00"),
)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_run_is_named_after_its_start(shell: str, start: Start) -> None:
    for text in TIMES:
        at = datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        done = start.run(shell, f"filings-{int(at.timestamp()) // 60}")
        assert done.returncode == 0, done.stderr
        assert start.created is not None
        assert start.created["metadata"]["name"] == f"filings-{at:%Y%m%d-%H%M}"


@pytest.mark.parametrize("shell", SHELLS)
def test_everything_but_the_name_is_as_rendered(shell: str, start: Start) -> None:
    start.run(shell, "filings-29467980")
    (template,) = load_objects((start.folder / "run.yaml").read_text())
    assert start.created is not None
    template["metadata"]["name"] = start.created["metadata"]["name"]
    assert start.created == template


# Existing runs, the exit code, whether a run is created, what is printed.
RUNS = {
    "nothing": ("\n", 0, True, "created"),
    "one that is complete": ("filings-20260114-0400 Complete\n", 0, True, "created"),
    "one that failed": ("filings-20260114-0400 Suspended Failed\n", 0, True, "created"),
    "one that trains": ("filings-20260114-0400 \n", 75, False, "filings-20260114-0400"),
    "one that waits": ("filings-20260114-0400 Suspended\n", 75, False, "still waits or trains"),
    "one between others": ("a Complete\nb Suspended\nc Failed\n", 75, False, "run b of schedule filings"),
    "the same start": ("filings-20260111-1500 Suspended\n", 0, False, "was created before"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", RUNS)
def test_forbid_holds_across_runs(name: str, shell: str, start: Start) -> None:
    runs, code, is_created, said = RUNS[name]
    start.says(runs)
    done = start.run(shell, "filings-29469060")
    assert done.returncode == code
    assert (start.created is not None) == is_created
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_without_an_answer_nothing_is_created(shell: str, start: Start) -> None:
    start.says("", 1)
    assert start.run(shell, "filings-29469060").returncode not in (0, 75)
    assert start.created is None
    for job in ("by-hand", "filings-", "filings-0123", "filings"):
        done = start.run(shell, job)
        assert (done.returncode, start.created) == (2, None)
        assert "not named after a start" in done.stderr


def test_the_script_needs_only_a_shell_and_kubectl(start: Start) -> None:
    start.run("dash", "filings-29467980")
    calls = (start.folder / "calls").read_text().splitlines()
    assert calls == ["get", "create"]
    for name in ("date", "sed", "cat", "cut", "awk", "grep", "jq"):
        assert f"{name} " not in start.container["command"][2]
