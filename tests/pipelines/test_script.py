"""The script that waits for runs and creates the next, with a kubectl that gives prepared answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gangplan.generators.after import ENDED, render_wait_script

# Answers the n-th question about a run with the n-th line of the file of that name, and later ones with the
# last; a line `away` means that the API server does not answer.
KUBECTL = """\
#!/bin/sh
case $1 in
get)
  case $2 in configmap/*) echo "text of $2"; exit ;; esac
  file=$ANSWERS/$3
  [ -f "$file" ] || exit 0
  echo x >>"$file.asked"
  line=$(sed -n "$(wc -l <"$file.asked")p" "$file")
  [ "$line" ] || line=$(tail -n 1 "$file")
  [ "$line" != away ] || { echo "connection refused" >&2; exit 1; }
  [ "$line" = absent ] || echo "$3 $line"
  ;;
create) cat >>"$ANSWERS/created"; echo created ;;
esac
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Create a folder with kubectl and a template, to which answers can be added."""
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    (tmp_path / "run.yaml").write_text("the run\n")
    return tmp_path


def run(world: Path, *words: str, **answers: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the script with some words; `answers` are those about runs, with `_` for `-` in names."""
    for name, lines in answers.items():
        (world / name.replace("_", "-")).write_text("".join(f"{line}\n" for line in lines))
    env = {"PATH": f"{world}:{os.environ['PATH']}", "ANSWERS": str(world)}
    command = ["/bin/sh", "-c", render_wait_script(), "gangplan-after", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def created(world: Path) -> str:
    path = world / "created"
    return path.read_text() if path.exists() else ""


def job(world: Path) -> tuple[str, ...]:
    return str(world / "run.yaml"), "train-1", "leave", "0"


def test_the_run_is_created_once_all_before_it_are_complete(world: Path) -> None:
    done = run(
        world, *job(world), "a-1", "b-1",
        a_1=["absent", " Suspended", "  ", " Complete"], b_1=[" ", "away", " Complete"],
    )  # fmt: skip
    assert (done.returncode, created(world)) == (0, "the run\n")
    assert done.stdout.splitlines() == [
        "waiting for run a-1, which is not there yet",
        "waiting for run a-1",
        "waiting for run b-1",
        "waiting for the API server, to ask for run b-1",
        "created",
    ]


@pytest.mark.parametrize(
    ("state", "words"),
    [(" Failed", "run a-1 failed"), ("stopped Suspended", "run a-1 was stopped before it was complete")],
)
def test_a_run_that_failed_or_was_stopped_ends_the_chain(state: str, words: str, world: Path) -> None:
    done = run(world, *job(world), "a-1", a_1=[state])
    assert (done.returncode, created(world)) == (ENDED, "")
    assert done.stderr == f"run train-1 is not created: {words}\n"


def test_a_stopped_run_that_was_complete_is_complete(world: Path) -> None:
    assert run(world, *job(world), "a-1", a_1=["stopped Complete"]).returncode == 0


def test_an_existing_run_is_not_created_again(world: Path) -> None:
    done = run(world, *job(world), "a-1", a_1=[" Failed"], train_1=[" Complete"])
    assert (done.returncode, created(world)) == (0, "")
    assert done.stdout == "run train-1 was created before\n"


def test_an_api_server_that_is_away_at_first_leads_to_another_try(world: Path) -> None:
    assert run(world, *job(world), "a-1", train_1=["away"]).returncode not in (0, ENDED)


def test_a_step_of_a_pipeline_ends_with_its_run(world: Path) -> None:
    """An earlier run of the pipeline may have created the run: then the step only waits."""
    words = ("configmap/train-1-template", "train-1", "wait", "0")
    done = run(world, *words, train_1=["absent", " ", " Complete"])
    assert (done.returncode, created(world)) == (0, "text of configmap/train-1-template\n")
    failed = run(world, *words, train_1=[" Failed"])
    assert failed.returncode == ENDED
    assert failed.stderr == "the steps after it do not start: run train-1 failed\n"


def test_a_step_waits_for_a_run_that_an_engine_creates(world: Path) -> None:
    done = run(world, "-", "a-1", "wait", "0", a_1=["absent", "absent", " Complete"])
    assert (done.returncode, created(world)) == (0, "")
