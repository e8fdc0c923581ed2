"""The mpirun that deepspeed --launcher calls: one of the image's MPI, for all hosts and GPUs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gangplan.rules.commands import COMMAND_HOSTS, COMMAND_LAUNCHER, COMMAND_OPTION, COMMAND_RESERVED
from gangplan.rules.model import Rule
from tests.plan.asking import problems
from tests.workspaces import stock


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace, whose job has 4 workers with 2 GPUs each."""
    return stock(tmp_path_factory.mktemp("deepspeed"))


@pytest.mark.parametrize(
    ("image", "options", "rules"),
    [
        ("deepspeed", "--launcher openmpi", []),
        ("deepspeed", "--launcher OpenMPI --master_port 29501", []),
        ("deepspeed", "--launcher pdsh --num_gpus 2 --num_nodes 4", []),
        ("deepspeed", "--num_gpus 2", []),
        ("deepspeed", "--launcher openmpi --num_gpus 2", [COMMAND_OPTION]),
        ("deepspeed", "--launcher=openmpi --num_nodes=4 --num_gpus=2", [COMMAND_OPTION, COMMAND_OPTION]),
        ("deepspeed", "--launcher mpich", [COMMAND_LAUNCHER]),
        ("deepspeed", "--launcher impi --num_gpus 2", [COMMAND_LAUNCHER]),
        ("deepspeed", "--launcher MVAPICH", [COMMAND_LAUNCHER]),
        ("deepspeed", "--launcher slurm", [COMMAND_RESERVED]),
        ("deepspeed", "--launcher ssh", [COMMAND_RESERVED]),
        ("mpich", "--launcher openmpi", [COMMAND_LAUNCHER]),
        ("mpich", "--launcher mpich", []),
        ("mpich", "--launcher impi", []),
        ("mpich", "--launcher impi --num_nodes 4", [COMMAND_OPTION]),
        ("deepspeed", "--launcher openmpi --launcher_args '--hostfile /job/hosts'", [COMMAND_HOSTS]),
        ("deepspeed", "--launcher openmpi --launcher_args=--report-bindings", []),
        ("deepspeed", "--launcher pdsh --launcher_args '--hostfile /job/hosts'", []),
    ],
)
def test_deepspeed_calls_the_mpirun_of_the_image(
    image: str, options: str, rules: list[Rule], root: Path
) -> None:
    found = problems(root, image, ["deepspeed", *shlex.split(options), "train.py"])
    assert [one.rule for one in found] == rules


def test_one_host_needs_no_mpirun(root: Path) -> None:
    words = ["deepspeed", "--launcher", "mpich", "--num_gpus", "2", "train.py"]
    assert problems(root, "deepspeed", words, workers=1) == ()


def test_the_help_drops_the_launcher(root: Path) -> None:
    (one,) = problems(root, "deepspeed", ["deepspeed", "--launcher", "mpich", "train.py"])
    assert one.path == ("command", 1)
    assert one.help == "Remove it. Write command: [deepspeed, train.py]."
