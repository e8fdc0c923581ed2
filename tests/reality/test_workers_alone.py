"""Runs without MPI or torchrun, each with the real package of its framework on CPU.

GANGPLAN_JAX, GANGPLAN_TENSORFLOW, GANGPLAN_PADDLE and GANGPLAN_XGBOOST name Pythons with these packages
(jax 0.10.2, tensorflow-cpu 2.21.0, paddlepaddle 3.3.1, xgboost-cpu 3.2.0).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import packages, pods, running
from tests.reality.families import UnavailableError

WORKERS = 2
#: Writes the rank's number and how many there are, as the collective itself counts them.
REPORT = """\
import os, socket
name = f"/reports/{socket.gethostname()}.{os.getpid()}"
with open(f"{name}.new", "w") as file:
    print(f"RANK={rank}", f"SIZE={size}", "CPUS=", "ARGS=", sep="\\n", file=file)
os.rename(f"{name}.new", name)
"""
#: As docs/job-commands.md has it.
JAX = f"""\
import os
import jax, numpy
from jax.experimental import multihost_utils
jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
    cluster_detection_method="deactivate",
)
rank, size = jax.process_index(), int(multihost_utils.process_allgather(numpy.ones(1)).sum())
{REPORT}"""
TENSORFLOW = f"""\
import os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
total = tf.function(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.ones([])), axis=None))
rank, size = strategy.cluster_resolver.task_id, int(total())
assert rank == int(os.environ["NODE_RANK"])
{REPORT}"""
PADDLE = f"""\
import paddle, paddle.distributed as dist
dist.init_parallel_env()
total, ranks = paddle.ones([1]), []
dist.all_reduce(total)
dist.all_gather_object(ranks, dist.get_rank())
rank, size = dist.get_rank(), int(total[0])
assert ranks == list(range(size)), ranks
{REPORT}"""
#: As docs/job-commands.md has it.
XGBOOST = f"""\
import os
import numpy, xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker
task, workers = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
where, port = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])
if task == 0:
    tracker = RabitTracker(workers, host_ip="0.0.0.0", port=port, sortby="task")
    tracker.start()
with collective.CommunicatorContext(
    dmlc_tracker_uri=where, dmlc_tracker_port=port, dmlc_task_id=str(task)
):
    rank, size = collective.get_rank(), int(collective.allreduce(numpy.ones(1), collective.Op.SUM)[0])
    assert rank == task
    data = numpy.random.RandomState(rank).rand(100, 3)
    xgboost.train({{"nthread": 1}}, xgboost.DMatrix(data, label=data[:, 0]), 2)
if task == 0:
    tracker.wait_for(60)
{REPORT}"""


def run_to_the_end(
    folder: Path, framework: str, program: str, slots: int, command: str, more: str = ""
) -> None:
    """Assert that all ranks of a small run come together, on hosts of their own."""
    python = packages.python_with(framework)
    text = workspaces.SPEC.replace("gpus: 2\n", "gpus: 0\n").replace("workers: 4", f"workers: {WORKERS}")
    text = text.replace("[python, train.py]", command) + f"framework: {framework}\nslots: {slots}\n{more}"
    made = pods.cluster(pods.objects(folder / "workspace", text))
    image = packages.image(python, {f"{pods.HOME}/train.py": program})
    try:
        with running.started(folder, made, image) as run:
            assert [worker.wait(400) for worker in run.workers] == [0] * WORKERS, run.story()
            run.check()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "command",
    [
        "[python, train.py]",
        "[bash, -c, 'python -m paddle.distributed.launch --log_dir /tmp/own train.py']",
    ],
)
def test_paddle_starts_every_rank_once(command: str, tmp_path: Path) -> None:
    run_to_the_end(tmp_path, "paddle", PADDLE, 2, command, "network: {posture: isolated}\n")


@pytest.mark.parametrize(("framework", "program"), [("jax", JAX), ("tensorflow", TENSORFLOW)])
def test_workers_find_each_other(framework: str, program: str, tmp_path: Path) -> None:
    run_to_the_end(tmp_path, framework, program, 1, "[python, train.py]", "network: {posture: isolated}\n")


def test_xgboost_trains_with_the_tracker_of_the_first_worker(tmp_path: Path) -> None:
    run_to_the_end(tmp_path, "xgboost", XGBOOST, 1, "[python, train.py]", "network: {posture: isolated}\n")
