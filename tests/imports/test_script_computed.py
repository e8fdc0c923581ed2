"""What a batch script computes when it runs, it computes once in a run too, for all ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.test_script_meaning import read, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
CASES = {
    "W=$(mktemp -d)\ncp a $W/\nsrun ./a --dir $W\nrm -r $W": (
        "W=$(mktemp -d)\ncp a $W/\nmpirun ./a --dir $W\nrm -r $W"
    ),
    "R=r_$(date +%s)\nO=out/$R\nsrun ./a $O --seed $RANDOM": (
        "R=r_$(date +%s)\nmpirun ./a out/$R --seed $RANDOM"
    ),
    "P=$((RANDOM % 9))\nsrun ./a $P": "P=$((RANDOM % 9))\nmpirun ./a $P",
    "if [ -f x ]; then A=$(cat x); fi\nsrun ./a $A": "if [ -f x ]; then A=$(cat x); fi\nmpirun ./a $A",
    "export O=x/$(date +%s)\nsrun ./a $O": 'export O=x/$(date +%s)\nmpirun env O="$O" ./a $O',
    "srun bash -c './a $RANDOM'": "./a $RANDOM",  # each rank computes it there
    "N=$(wc -l < list)\nM=$((N * 2))\nsrun ./a $M $(( N / 4 ))": (
        "N=$(wc -l < list)\nmpirun ./a $((N * 2)) $(( N / 4 ))"
    ),
    "S=$(date +%s)\nsrun ./a\nE=$(date +%s)\necho $((E-S)) > t": (
        "S=$(date +%s)\nmpirun ./a\nE=$(date +%s)\necho $((E-S)) > t"
    ),
}
TORCH = {
    "a date": ("R=r_$(date +%s)\nsrun python train.py $R", "R"),
    "a random port": ("P=$((RANDOM % 9))\nsrun python train.py $P", "P"),
    "a file of the job": ("P=$(cat list)\nsrun python train.py $P", ""),
}


@pytest.mark.parametrize("lines", CASES)
def test_the_script_of_the_run_computes_it_once(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == CASES[lines]


@pytest.mark.parametrize("case", TORCH)
def test_what_each_worker_computes_by_itself_is_asked_about(tmp_path: Path, case: str) -> None:
    lines, name = TORCH[case]
    batch = read(tmp_path, f"{HEAD}{lines}\n")
    asked = [(one.message, one.help) for one in batch.everything if one.rule == IMPORT_ASKED]
    message = f"each worker of a run computes {name} by itself, and may get another value"
    assert asked == ([(message, f"Give it a value: --set {name}=VALUE.")] if name else [])


def test_hosts_that_an_mpi_run_does_not_name_are_asked_about(tmp_path: Path) -> None:
    lines = "export MASTER_ADDR=$(hostname -s).x.org\nexport MASTER_PORT=$(echo 1 | bc)\nmkdir q"
    script = f"{HEAD}{lines}\nsrun ./a --at $MASTER_ADDR:$MASTER_PORT\n"
    batch = read(tmp_path, script, "openmpi")
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert "the command needs MASTER_ADDR and MASTER_PORT, which an MPI run does not set" in asked


def test_a_launcher_that_meets_by_itself_needs_no_host(tmp_path: Path) -> None:
    lines = "export MASTER_ADDR=$(hostname -s).x.org\ndeepspeed --master_addr $MASTER_ADDR a.py\ncp a b"
    batch = read(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert not any("MASTER_ADDR" in one for one in asked), asked
