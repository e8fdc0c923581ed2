"""What ends a batch script early, decides its status, is done at its end, or goes through a pipe, is in the run too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.test_script_meaning import read, refusals, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
CASES = {
    "srun ./a\nif [ $? -ne 0 ]; then exit 1; fi\nsrun ./b": (
        "mpirun ./a\nif [ $? -ne 0 ]; then exit 1; fi\nmpirun ./b"
    ),
    "srun ./a\ns=$?\nif [ $s -ne 0 ]; then\n  exit $s\nfi\nsrun ./b": (
        "mpirun ./a\ns=$?\nif [ $s -ne 0 ]; then\n  exit $s\nfi\nmpirun ./b"
    ),
    "srun ./a\n[[ $? == 0 ]] || exit 5\nsrun ./b\nexit 0": "mpirun ./a\n[[ $? == 0 ]] || exit 5\nmpirun ./b",
    "srun ./a\nrc=$?\ncp x y\nexit $rc": "mpirun ./a\nrc=$?\ncp x y\nexit $rc",
    "srun ./a\nrc=$?\necho done\nexit $rc": "./a",  # the program's own status
    "[ -e done ] && exit 0\nsrun ./a": "[ -e done ] && exit 0\nmpirun ./a",
    "if [ ! -f x ]; then echo no; exit 2; fi\nsrun ./a": (
        "if [ ! -f x ]; then echo no; exit 2; fi\nmpirun ./a"
    ),
    'if [ -z "$1" ]; then echo usage; exit 1; fi\nsrun ./a': "./a",  # a run has no arguments
    "if ! module load x; then exit 1; fi\nsrun ./a": "./a",
    "srun ./a\nif [ -e x ]; then exit 3; fi": "./a",
    "N=$(cat q)\n(( N < 1 )) && exit 2\nsrun ./a": "N=$(cat q)\n(( N < 1 )) && exit 2\nmpirun ./a",
    "trap 'cp -r q r' EXIT\nsrun ./a 2>&1 | tee log\nexit ${PIPESTATUS[0]}": (
        "trap 'cp -r q r' EXIT\nmpirun ./a"
    ),
    "end() { cp $T x; }\ntrap end EXIT\nT=/tmp/q\nsrun ./a": (
        "end() { cp $T x; }\ntrap end EXIT\nT=/tmp/q\nmpirun ./a"
    ),
    "trap 'echo ended' EXIT\ntrap 'kill $P' TERM\nsrun ./a": "./a",
    "grep -v x a | sort -u > b\nsrun ./a": "grep -v x a | sort -u > b\nmpirun ./a",
    "cat urls | xargs wget\nls q | tee r\nsrun ./a": "cat urls | xargs wget\nls q | tee r\nmpirun ./a",
    "echo x | python -m json.tool > c\nsrun ./a": "echo x | python -m json.tool > c\nmpirun ./a",
    "echo x | mail me\nnvidia-smi | tee r\ncat a | sort | uniq -c\nsrun ./a": "./a",
    "cat q | ./a": "cat q | ./a",
    "./a | ./b | tee log": "./a | ./b | tee log",
    "srun ./a 2>&1 | grep -v x | tee log": "./a",
}
ASKED = {
    "a handler of a signal": (
        "trap 'cp x y' USR1\nsrun ./a",
        "what the script does on USR1 is not done in a run, whose programs get SIGTERM before they end",
    ),
    "a job that queues itself again": (
        "trap 'scontrol requeue $SLURM_JOB_ID' TERM\nsrun ./a",
        "what the script does on TERM is not done in a run, whose programs get SIGTERM before they end",
    ),
    "input of a launch": ("cat q | srun ./a", "what is piped into the program is not there in a run"),
}


@pytest.mark.parametrize("lines", CASES)
def test_the_run_ends_and_writes_as_the_script_does(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == CASES[lines]


@pytest.mark.parametrize("case", ASKED)
def test_what_a_run_does_not_do_is_asked_about(tmp_path: Path, case: str) -> None:
    lines, message = ASKED[case]
    batch = read(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert [one.message for one in batch.everything if one.rule == IMPORT_ASKED] == [message]


def test_a_program_that_reads_what_a_launch_prints_is_refused(tmp_path: Path) -> None:
    batch = read(tmp_path, f"{HEAD}srun ./a | ./b > x\n", "openmpi")
    assert not batch.imported
    assert [line for line, _ in refusals(batch)] == [3]


OUTPUT = {
    "srun ./a > q.log\ngrep x q.log > y": "mpirun ./a > q.log\ngrep x q.log > y",
    "L=q.log\nsrun ./a 2>&1 | tee -a $L\ncp $L z": "L=q.log\nmpirun ./a 2>&1 | tee -a $L\ncp $L z",
    "srun ./a > q.log\nsrun ./b q.log": "mpirun ./a > q.log\nmpirun ./b q.log",
    "srun ./a > q.log\ntail q.log": "./a",
    "cat > p.py <<'E'\nprint(a['SLURM_NTASKS'])\nE\nsrun ./a": (
        "cat > p.py <<'E'\nprint(a['SLURM_NTASKS'])\nE\nmpirun ./a"
    ),
}


@pytest.mark.parametrize("lines", OUTPUT)
def test_files_that_later_commands_read_are_written(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == OUTPUT[lines]


def test_what_a_here_document_reads_of_the_scheduler_is_asked_about(tmp_path: Path) -> None:
    script = f"{HEAD}cat > p.py <<'E'\nprint(os.environ[\"SLURM_NTASKS\"])\nE\nsrun ./a\n"
    batch = read(tmp_path, script, "openmpi")
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert asked == ["a program in the script reads SLURM_NTASKS, which a run does not set"]


def test_the_host_of_a_kept_command_is_a_variable(tmp_path: Path) -> None:
    script = f"{HEAD}srun -n1 -N1 mkdir q/$(hostname)\nsrun python a.py\n"
    found = values(tmp_path, script)["command"]
    assert isinstance(found, list)
    assert found[-1] == 'export MASTER_ADDR="$PET_MASTER_ADDR"\nmkdir q/$MASTER_ADDR\ntorchrun a.py'
