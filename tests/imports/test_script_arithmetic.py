"""Arithmetic of a batch script is calculated before it runs as far as it can be, and else stays in the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.test_script_meaning import values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
KNOWN = {
    "let N=SLURM_NTASKS*2\n((K = N + 1))\nsrun ./a $N $K": ["16", "17"],
    'let "N = 4" "N += 2"\n((N++))\n((--N))\nsrun ./a $N': ["6"],
    "declare -i P=5\nP+=3\nQ=5\nQ+=3\nsrun ./a $P $Q": ["8", "53"],
    "declare -i P\nP=2*SLURM_NNODES\nsrun ./a $P": ["4"],
    "N=1\n(( N > 2 )) && A=1 || A=2\nif (( N == 1 )); then B=3; fi\nsrun ./a $A $B": ["2", "3"],
}
OPEN = {
    'N=$(wc -l < q)\nlet "K = N * 2" J=N+1\n((K++))\nsrun ./a $K $J': (
        "N=$(wc -l < q)\n((K = N * 2, J=N+1))\n((K++))\nmpirun ./a $K $J"
    ),
    "N=$(wc -l < q)\ndeclare -i Q=N/2\nsrun ./a $Q": "N=$(wc -l < q)\ndeclare -i Q=N/2\nmpirun ./a $Q",
    "N=$(wc -l < q)\n(( N > 2 )) && A=1\nsrun ./a $A": ("N=$(wc -l < q)\n(( N > 2 )) && A=1\nmpirun ./a $A"),
    "N=$(wc -l < q)\n(( N > 2 )) && cp a b\nsrun ./a": "N=$(wc -l < q)\n(( N > 2 )) && cp a b\nmpirun ./a",
    "[ -f x ] && ((N=3))\nsrun ./a $N": "[ -f x ] && ((N=3))\nmpirun ./a $N",
    "for ((i=0; i<3; i++)); do cp a$i b; done\nsrun ./a $i": (
        "for ((i=0; i<3; i++)); do cp a$i b; done\nmpirun ./a $i"
    ),
}


@pytest.mark.parametrize("lines", KNOWN)
def test_known_numbers_are_calculated(tmp_path: Path, lines: str) -> None:
    assert values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"] == ["./a", *KNOWN[lines]]


@pytest.mark.parametrize("lines", OPEN)
def test_other_arithmetic_stays_in_the_script(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == OPEN[lines]
