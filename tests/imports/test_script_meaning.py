"""What a batch script says about ranks, numbers of ranks, time and variables keeps its meaning in the spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SCRIPT
from tests.imports.sources import imported


def read(root: Path, text: str, image: str = "pytorch") -> Batch:
    return imported(root, "slurm", text, "job.sbatch", image=image)


def values(root: Path, text: str, image: str = "pytorch") -> dict[str, object]:
    batch = read(root, text, image)
    (one,) = batch.imported
    return one.draft.values


def command(root: Path, text: str, image: str = "pytorch") -> str:
    written = values(root, text, image)["command"]
    assert isinstance(written, list | tuple)
    return str(written[-1])


def test_the_rank_of_an_inner_shell_is_not_that_of_the_shell_around_it(tmp_path: Path) -> None:
    script = (
        "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:4\nmkdir -p $OUT\n"
        'srun bash -c "export LOCAL_RANK=\\${SLURM_LOCALID} ME=\\$SLURM_PROCID ALL=\\$SLURM_NTASKS; python train.py --out $OUT"\n'
    )
    text = command(tmp_path, script)
    assert "LOCAL_RANK=\\$LOCAL_RANK ME=\\$RANK ALL=8;" in text


def test_the_least_time_is_not_the_limit(tmp_path: Path) -> None:
    options = ("--time=10:00:00 --time-min=2:00:00", "--time-min=2:00:00 --time=10:00:00")
    for number, some in enumerate(options):
        script = f"#!/bin/bash\n#SBATCH {some}\npython train.py\n"
        assert values(tmp_path / str(number), script)["timeout"] == "10h"


def refusals(batch: Batch) -> list[tuple[int, str]]:
    return [(one.where.line, one.message) for one in batch.everything if one.rule == IMPORT_SCRIPT]


def test_launches_with_different_numbers_of_ranks_are_refused(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --exclusive\nsrun -n 1 ./flow\nsrun -n 2 ./flow\nsrun -n 4 ./flow\n"
    batch = read(tmp_path / "grows", script, "openmpi")
    assert not batch.imported
    assert refusals(batch) == [
        (
            5,
            "ranks: this launch starts 4 on 1 node, and one before it 2 on 1; all launches of a run start all of them",
        )
    ]
    back = "#!/bin/bash\n#SBATCH -N 2 -n 8\nsrun -N 1 -n 2 ./mesh\nsrun ./flow\n"
    assert [line for line, _ in refusals(read(tmp_path / "back", back, "openmpi"))] == [4]
    nodes = "#!/bin/bash\n#SBATCH -N 2\nsrun -N 1 -n 8 ./flow\nsrun -N 2 -n 8 ./flow\n"
    assert [line for line, _ in refusals(read(tmp_path / "nodes", nodes, "openmpi"))] == [4]


UNEVEN = {
    "more tasks than nodes can share": (
        "-N 2 -n 3",
        "srun ./flow",
        ["the job has 3 ranks on 2 nodes, and a run as many on each worker: 4"],
    ),
    "a limit on each node that the tasks do not reach": (
        "-n 10 --ntasks-per-node=4 --gpus=8",
        "srun ./flow",
        [
            "the job has 10 ranks on 3 nodes, and a run as many on each worker: 12",
            "the job has 8 GPUs on 3 nodes, and a run as many on each worker: 9",
        ],
    ),
    "nodes that a launch leaves out": (
        "-N 4 -n 4",
        "srun -n 2 ./flow",
        ["the job has 2 ranks on 4 nodes, and a run as many on each worker: 4"],
    ),
    "mpirun takes the scheduler's number": (
        "-N 2 -n 3",
        "mpirun ./flow",
        ["the job has 3 ranks on 2 nodes, and a run as many on each worker: 4"],
    ),
    "mpirun has its own number": ("-N 2 -n 3", "mpirun -np 4 ./flow", []),
    "an even number": ("-N 2 -n 4 --ntasks-per-node=2 --gpus=8", "srun ./flow", []),
}


@pytest.mark.parametrize("case", UNEVEN)
def test_numbers_that_workers_cannot_share_are_asked_about(tmp_path: Path, case: str) -> None:
    options, launch, expected = UNEVEN[case]
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH {options}\n{launch}\n", "openmpi")
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert asked == expected
    assert (batch.imported[0].runs["lab"].percent == 100) == (not expected)


def test_tasks_of_each_gpu_are_ranks(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --gpus-per-node=2 --ntasks-per-gpu=2\nsrun ./flow $SLURM_NTASKS\n"
    found = values(tmp_path, script, "openmpi")
    assert (found["slots"], found["gpus"], found["command"]) == (4, 2, ["./flow", "4"])


def test_a_launch_of_one_rank_leaves_all_ranks_to_the_next(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N 2 -n 8\nsrun -N 1 -n 1 ./mesh\nsrun ./flow\n"
    found = values(tmp_path, script, "openmpi")
    assert (found["workers"], found["slots"]) == (2, 4)
    assert found["command"] == ["bash", "-c", "./mesh\nmpirun ./flow"]
    # With one task, srun uses one of the job's nodes.
    for number, head in enumerate(("-N 2 --ntasks-per-node=4", "-N 2 -n 8")):
        script = f"#!/bin/bash\n#SBATCH {head}\nsrun -n 1 ./mesh\nsrun ./flow\n"
        assert values(tmp_path / str(number), script, "openmpi")["command"] == found["command"]


def test_what_one_launch_asks_for_less_of_stays_the_jobs(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N 1 -n 4 -c 4 --mem=32G\nsrun ./flow\nsrun -c 2 --mem=8G ./post\n"
    found = values(tmp_path, script, "openmpi")
    assert (found["cpu"], found["memory"]) == (16, "32Gi")


def test_the_account_tells_what_a_launch_asked_for_in_vain(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N 1 -n 4 -c 4\nsrun -c 2 --mem=8G ./pre\nsrun -c 4 ./flow\n"
    batch = read(tmp_path, script, "openmpi")
    (one,) = batch.imported
    # What the scheduler gives the second launch is not known, so the first one's memory is not the run's.
    assert one.draft.values["cpu"] == 16
    assert "memory" not in one.draft.values
    entries = one.draft.work.entries()
    dropped = [(entry.where.line, entry.value) for entry in entries if entry.state == "dropped"]
    assert dropped == [(3, "2"), (3, "8G")]


def test_an_assignment_behind_a_test_is_made_where_the_test_holds(tmp_path: Path) -> None:
    head = "#!/bin/bash\n#SBATCH -N 2\n"
    cases = {
        '[ -n "$KEY" ] && FLAG=--log': '[ -n "$KEY" ] && FLAG=--log\ntorchrun train.py $FLAG',
        "[ $SLURM_NNODES -gt 1 ] && FLAG=1 || FLAG=2": "1",
        "[ $SLURM_NNODES -gt 4 ] && FLAG=1 || FLAG=2": "2",
        "FLAG=7\n[ $SLURM_NNODES = 9 ] && FLAG=8": "7",
        "FLAG=1 || FLAG=2": "1",
        "which log || FLAG=2": "which log || FLAG=2\ntorchrun train.py $FLAG",
        "N=1 && [ $N = 1 ] && FLAG=1 || FLAG=2": "N=1 && [ $N = 1 ] && FLAG=1 || FLAG=2\ntorchrun train.py $FLAG",
    }
    for number, (line, expected) in enumerate(cases.items()):
        text = f"{head}{line}\nsrun python train.py $FLAG\n"
        assert command(tmp_path / str(number), text) == expected, line


def test_what_is_set_behind_the_last_launch_is_in_no_environment(tmp_path: Path) -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
    cases: dict[str, tuple[object, object]] = {
        "srun ./a\nexport A=1": (["./a"], None),
        "export A=1\nsrun ./a\nexport A=2 B=3\necho done": (["./a"], {"A": "1"}),
        "export A=1\nsrun ./a\nunset A": (["./a"], {"A": "1"}),
        "export A=$(date +%s)\nsrun ./a\nA=3": (
            ["bash", "-c", 'export A=$(date +%s)\nmpirun env A="$A" ./a'],
            None,
        ),
        "srun ./a\nexport A=1\ncp x $A": (["bash", "-c", "mpirun ./a\nexport A=1\ncp x $A"], None),
        "export PYTHONPATH=s\nsrun ./a\nexport PYTHONPATH=t:$PYTHONPATH": (["./a"], {"PYTHONPATH": "s"}),
        "./a\nexport A=1": (["./a"], None),
        "( export A=1; srun ./a; export B=1 )\nexport C=1": (["./a"], {"A": "1"}),
    }
    for number, (lines, expected) in enumerate(cases.items()):
        found = values(tmp_path / str(number), f"{head}{lines}\n", "openmpi")
        assert (found["command"], found.get("env")) == expected, lines


def test_a_variable_that_is_set_behind_its_use_is_asked_about(tmp_path: Path) -> None:
    batch = read(tmp_path, "#!/bin/bash\n#SBATCH -N 2 -n 8\nsrun ./a $A\nA=2\n", "openmpi")
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert asked == ["the command needs A, which the script does not set"]


OWN: dict[str, tuple[str, object]] = {
    "A=1 B='x y' srun ./a\nsrun ./b": ("mpirun env A=1 B='x y' ./a\nmpirun ./b", None),
    "A=1 srun ./a\nA=1 srun ./b": ("mpirun ./a\nmpirun ./b", {"A": "1"}),
    "A=$(date) srun ./a": ('mpirun env A="$(date)" ./a', None),
    "A=1 torchrun a.py\ntorchrun b.py": ("A=1 torchrun a.py\ntorchrun b.py", None),
    "A=1 srun bash -c 'cd x; torchrun a.py'\nsrun torchrun b.py": (
        "(\nexport A=1\ncd x; torchrun a.py\n)\ntorchrun b.py",
        None,
    ),
    "A=0 python a.py &\nA=1 python b.py &\nwait": ("A=0 python a.py &\nA=1 python b.py\nwait", None),
    "A=1 srun ./a": ("./a", {"A": "1"}),
}


@pytest.mark.parametrize("lines", OWN)
def test_a_variable_before_a_launch_is_for_this_launch(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"#!/bin/bash\n#SBATCH -N 2 -n 8\n{lines}\n", "openmpi")
    assert isinstance(found["command"], list)
    assert (found["command"][-1], found.get("env")) == OWN[lines]


def test_the_script_itself_has_the_rank_of_its_first_task(tmp_path: Path) -> None:
    lines = "if [ $SLURM_PROCID -eq 0 ]; then cp a b; fi\ncat > r.sh <<'E'\necho $SLURM_PROCID\nE\nsrun "
    head = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
    found = command(tmp_path / "mpi", f"{head}{lines}bash r.sh\n", "openmpi").splitlines()
    assert found[0] == "if [ 0 -eq 0 ]; then cp a b; fi"
    assert found[2] == "echo $OMPI_COMM_WORLD_RANK"
    found = command(tmp_path / "torch", f"{head}{lines}python r.py\n").splitlines()
    assert "if [ $PET_NODE_RANK -eq 0 ]; then cp a b; fi" in found


@pytest.mark.parametrize("shell", ["/bin/tcsh", "/bin/csh -f", "/usr/bin/env python3"])
def test_scripts_in_other_languages_are_refused(tmp_path: Path, shell: str) -> None:
    batch = read(tmp_path, f"#!{shell}\n#SBATCH -N 2 -n 8\nsetenv A 1\nsrun ./a\n")
    assert not batch.imported
    assert [line for line, _ in refusals(batch)] == [1]
