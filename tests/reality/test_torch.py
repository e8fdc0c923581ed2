"""Runs of torch: a real torchrun on several hosts, configured by Trainer's variables.

torch is too large to fetch for a test: GANGPLAN_TORCH names a Python that has it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import packages, pods, running
from tests.reality.families import UnavailableError

WORKERS, SLOTS = 3, 2
#: Joins all ranks, as a training does, and writes the rank's number.
JOIN = """\
import os, signal, socket, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
assert int(total) == dist.get_world_size()
rank, host = dist.get_rank(), socket.gethostname()
name = f"/reports/{host}.{os.getpid()}"
with open(f"{name}.new", "w") as file:
    print(f"RANK={rank}", f"SIZE={dist.get_world_size()}", "CPUS=", "ARGS=", sep="\\n", file=file)
os.rename(f"{name}.new", name)
"""
#: Ranks that take their time to save after SIGTERM; with ALONE only rank 0 does, and others end at once.
SAVE = (
    JOIN
    + """\
def save(*_):
    for step in range(int(os.environ["SECONDS_TO_SAVE"])):
        with open(f"/reports/saved-{rank}", "a") as file:
            print("saved", step, file=file)
        time.sleep(1)
    raise SystemExit(0)
if rank == 0 or not os.environ.get("ALONE"):
    signal.signal(signal.SIGTERM, save)
while True:
    time.sleep(0.1)
"""
)


@pytest.fixture(scope="module")
def python() -> Path:
    """Return a Python with torch."""
    return packages.python_with("torch")


def spec(*lines: str, command: str = "[python, train.py]", slots: int = SLOTS) -> str:
    """Return a spec of the small workspace for torch."""
    text = workspaces.SPEC.replace("image: openmpi", "image: pytorch").replace("gpus: 2\n", "gpus: 0\n")
    text = text.replace("workers: 4", f"workers: {WORKERS}").replace("[python, train.py]", command)
    return text + f"slots: {slots}\n" + "".join(f"{line}\n" for line in lines)


@contextmanager
def running_torch(folder: Path, python: Path, text: str, program: str = JOIN) -> Iterator[running.Run]:
    """Yield a run of torch with all its workers started; skip where hosts cannot run."""
    made = pods.cluster(pods.objects(folder / "workspace", text))
    files = {f"{pods.HOME}/train.py": program, f"{pods.HOME}/program/train.py": program}
    try:
        with running.started(folder, made, packages.image(python, files, "torchrun")) as run:
            yield run
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("posture", ["default", "restricted", "isolated"])
def test_every_rank_starts_once(posture: str, python: Path, tmp_path: Path) -> None:
    with running_torch(tmp_path, python, spec(f"network: {{posture: {posture}}}")) as run:
        assert [worker.wait(120) for worker in run.workers] == [0] * WORKERS, run.story()
        run.check()


@pytest.mark.parametrize(
    "command",
    [
        "[torchrun, train.py]",
        "[torchrun, --nnodes, 3, --nproc-per-node, 2, train.py]",
        "[python, -m, torch.distributed.run, --max-restarts, 2, train.py]",
        "[torchrun, -m, program.train]",
        "[bash, -c, 'torchrun --nproc-per-node 2 train.py']",
        "[env, A=b, timeout, 600, torchrun, train.py]",
    ],
)
def test_a_users_own_command_starts_the_planned_ranks(command: str, python: Path, tmp_path: Path) -> None:
    with running_torch(tmp_path, python, spec(command=command)) as run:
        assert [worker.wait(120) for worker in run.workers] == [0] * WORKERS, run.story()
        run.check()


@pytest.mark.parametrize(
    "command", ["[python, train.py]", "[bash, -c, 'torchrun train.py']", "[timeout, 600, torchrun, train.py]"]
)
@pytest.mark.parametrize("alone", [False, True], ids=["all save", "rank 0 saves"])
def test_ranks_may_save_for_longer_than_torchrun_waits(
    alone: bool, command: str, python: Path, tmp_path: Path
) -> None:
    """The 30 s of torchrun itself would cut off a checkpoint of 34 s; the grace period is two minutes."""
    seconds = 34
    env = f"env: {{SECONDS_TO_SAVE: '{seconds}'{', ALONE: yes please' if alone else ''}}}"
    with running_torch(tmp_path, python, spec(env, command=command), SAVE) as run:
        deadline = time.monotonic() + 90
        while len(run.ranks()) < WORKERS * SLOTS:
            assert time.monotonic() < deadline, run.story()
            time.sleep(0.1)
        for worker in run.workers:
            worker.terminate()
        assert [worker.wait(100) for worker in run.workers] == [143] * WORKERS, run.story()
        for rank in [0] if alone else range(WORKERS * SLOTS):
            saved = (run.reports / f"saved-{rank}").read_text().splitlines()
            assert len(saved) == seconds, f"rank {rank} was killed: {run.story()}"
