"""A subshell of a batch script keeps to itself what it does: folder, variables, exports, its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.test_script_meaning import read, refusals, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
CASES = {
    "( cd x; srun ./a )\nsrun ./b": "(\ncd x\nmpirun ./a\n)\nmpirun ./b",
    "( cd /x && srun ./a ); srun ./b": "(\ncd /x && mpirun ./a\n)\nmpirun ./b",
    "( export A=1; srun ./a ); srun ./b": '(\nexport A=1\nmpirun env A="$A" ./a\n)\nmpirun ./b',
    "A=0; ( A=1; srun ./a $A ); srun ./b $A": "(\nmpirun ./a 1\n)\nmpirun ./b 0",
    "export A=1; ( unset A; srun ./a ); srun ./b": (
        'export A=1\n(\nunset A\nmpirun ./a\n)\nmpirun env A="$A" ./b'
    ),
    "( cd x; ( cd y; srun ./a ); srun ./b ); srun ./c": (
        "(\ncd x\n(\ncd y\nmpirun ./a\n)\nmpirun ./b\n)\nmpirun ./c"
    ),
    "( cd x; srun ./a; exit 0 ); srun ./b": "(\ncd x\nmpirun ./a\n)\nmpirun ./b",
    "( srun ./a && exit 3 ); srun ./b": "(\nmpirun ./a && exit 3\n)\nmpirun ./b",
    "( cd x; srun ./a ); ( cd y; srun ./b )": "(\ncd x\nmpirun ./a\n)\ncd y\nmpirun ./b",
    "A=0; ( A=1; cp x y ); srun ./b $A": "( A=1; cp x y )\nmpirun ./b 0",
    "( set -a; . x; cp x y ); A=1; srun ./b": "( set -a; . x; cp x y )\nmpirun ./b",
}


@pytest.mark.parametrize("lines", CASES)
def test_what_follows_a_subshell_does_not_see_it(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert found["command"] == ["bash", "-c", CASES[lines]]
    assert "workdir" not in found
    assert "env" not in found


def test_a_subshell_at_the_end_needs_no_parentheses(tmp_path: Path) -> None:
    script = f"{HEAD}( cd /x; export A=1; srun ./a ) > log\necho done\n"
    found = values(tmp_path, script, "openmpi")
    assert (found["command"], found["workdir"], found["env"]) == (["./a"], "/x", {"A": "1"})


def test_each_launch_of_torch_has_the_folder_of_its_subshell(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:4\n( cd x; export A=1; torchrun a.py )\ntorchrun b.py\n"
    command = values(tmp_path, script)["command"]
    assert isinstance(command, list)
    assert command[-1] == "(\ncd x\nexport A=1\ntorchrun a.py\n)\ntorchrun b.py"


def test_what_the_image_has_is_extended_in_the_subshell_alone(tmp_path: Path) -> None:
    script = f"{HEAD}( export PYTHONPATH=s:$PYTHONPATH; srun ./a )\nsrun ./b\n"
    assert values(tmp_path, script, "openmpi")["command"] == [
        "bash",
        "-c",
        '(\nexport PYTHONPATH=s:$PYTHONPATH\nmpirun env PYTHONPATH="$PYTHONPATH" ./a\n)\nmpirun ./b',
    ]


def test_subshells_at_the_same_time_are_refused(tmp_path: Path) -> None:
    for number, (first, last) in enumerate(("()", "{}")):
        end = f"; {last}" if last == "}" else last
        script = f"{HEAD}{first} cd x; srun ./a{end} &\n{first} cd y; srun ./b{end} &\nwait\n"
        batch = read(tmp_path / str(number), script, "openmpi")
        assert not batch.imported
        assert [line for line, _ in refusals(batch)] == [4]


def test_commands_that_read_together_are_refused(tmp_path: Path) -> None:
    for number, lines in enumerate(("( read X; srun ./a $X ) < n", "{ srun ./a; srun ./b; } <<< x")):
        batch = read(tmp_path / str(number), f"{HEAD}{lines}\n", "openmpi")
        assert [line for line, _ in refusals(batch)] == [3]
