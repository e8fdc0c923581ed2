"""The program files that a command names, which `gangplan run` looks for on this machine."""

from __future__ import annotations

import pytest

from gangplan.local.places import list_local_program_files_in_command


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["python", "train.py", "--config", "a.yaml"], ["train.py"]),
        (["python", "-u", "train.py"], ["train.py"]),
        (["./train", "x"], ["./train"]),
        (["env", "A=1", "./train"], ["./train"]),
        (["mpirun", "-n", "2", "python", "train.py"], ["train.py"]),
        (["bash", "-e", "run.sh"], ["run.sh"]),
        (["bash", "-c", "python train.py"], ["train.py"]),
        (["bash", "-lc", "set -e; exec mpirun -n 2 python -u train.py | tee log.txt"], ["train.py"]),
        (["bash", "-c", "torchrun --nnodes=2 train.py && ./done.sh"], ["train.py", "./done.sh"]),
        (["mpirun", "-n", "2", "bash", "-c", "A=1 python 'my train.py' > out.py"], ["my train.py"]),
        (["bash", "-c", "source env.sh && python train.py"], ["env.sh", "train.py"]),
        (["bash", "-c", "[ -f setup.sh ] && cp a.py b.py && echo x.sh > y.sh"], []),
        (["bash", "-c", "python train.py; cd src && python more.py"], ["train.py"]),
        (["bash", "-c", "cd src && ./train.sh"], []),
        (["bash", "-c", "bash -c 'python inner.py'"], ["inner.py"]),
        (["bash", "-c", "python $CODE/train.py"], []),
        (["bash", "-c", "python 'train.py"], []),
        (["bash", "-c"], []),
        (["bash", "-c", "./train.sh", "x.py"], ["./train.sh"]),
    ],
)
def test_the_program_files_of_a_command_are_found(words: list[str], files: list[str]) -> None:
    assert list_local_program_files_in_command(words) == files
