"""`&&`, `||` and options of the shell decide what a batch script does next; the run's script keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.test_script_meaning import read, refusals, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
CASES = {
    "set -euo pipefail\ncp a b\nsrun ./flow": "set -euo pipefail\ncp a b\nmpirun ./flow",
    "set -e\nsrun ./mesh\nset +e\nset -x\nsrun ./flow": "set -e\nmpirun ./mesh\nset +e\nmpirun ./flow",
    "set -e\nset -o pipefail\nsrun ./flow": "./flow",  # the state of the only command is the run's
    "set -ex\nsrun ./mesh || true\nsrun ./flow": "set -ex\nmpirun ./mesh || true\nmpirun ./flow",
    "shopt -s nullglob\ncp *.h x\nsrun ./flow": "shopt -s nullglob\ncp *.h x\nmpirun ./flow",
    "cp a b || cp c b\nsrun ./flow": "cp a b || cp c b\nmpirun ./flow",
    "[ -d x ] && rm -r x\nsrun ./flow": "[ -d x ] && rm -r x\nmpirun ./flow",
    "! [ -d x ] && mkdir x\nsrun ./flow": "! [ -d x ] && mkdir x\nmpirun ./flow",
    "cd case && make\nsrun ./flow": "cd case && make\nmpirun ./flow",
    "module load gcc && make\nsrun ./flow": "make\nmpirun ./flow",
    "module load gcc || make\nsrun ./flow": "./flow",
    "cp a b || { echo no; exit 1; }\nsrun ./flow": "cp a b || { echo no; exit 1; }\nmpirun ./flow",
    "[ $SLURM_NNODES -gt 1 ] && cp a b\nsrun ./flow": "cp a b\nmpirun ./flow",
    "[ $SLURM_NNODES -gt 4 ] && cp a b || cp c d\nsrun ./flow": "cp c d\nmpirun ./flow",
    "[ $SLURM_NNODES -gt 4 ] && srun ./mesh\nsrun ./flow": "./flow",
    "[ -f restart ] && srun ./mesh\nsrun ./flow": "[ -f restart ] && mpirun ./mesh\nmpirun ./flow",
    "srun ./mesh && srun ./flow": "mpirun ./mesh && mpirun ./flow",
    "srun ./mesh && exit 0\nsrun ./flow": "mpirun ./mesh && exit 0\nmpirun ./flow",
    "srun ./mesh && echo done || exit 1\nsrun ./flow": "mpirun ./mesh || exit 1\nmpirun ./flow",
    "srun ./mesh || { echo no; exit 1; }\nsrun ./flow": "mpirun ./mesh || { echo no; exit 1; }\nmpirun ./flow",
    "srun ./flow || exit 1": "./flow",
    "[ -d x ] && A=$(date +%s) && cp $A q\nsrun ./flow": "[ -d x ] && A=$(date +%s) && cp $A q\nmpirun ./flow",
    "{ srun ./mesh; srun ./flow; } 2>&1 | tee log": "mpirun ./mesh\nmpirun ./flow",
}


@pytest.mark.parametrize("lines", CASES)
def test_the_run_does_what_the_list_does(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == CASES[lines]


def test_options_of_the_first_line_are_those_of_the_script(tmp_path: Path) -> None:
    script = "#!/usr/bin/env -S bash -l -eu\n#SBATCH -N 2 -n 8\ncp a b\nsrun ./flow\n"
    assert values(tmp_path, script, "openmpi")["command"] == [
        "bash",
        "-c",
        "set -e -u\ncp a b\nmpirun ./flow",
    ]


def test_an_assignment_is_exported_where_all_are(tmp_path: Path) -> None:
    script = f"{HEAD}set -a\nA=1\nset +a\nB=2\nsrun ./flow\n"
    assert values(tmp_path, script, "openmpi")["env"] == {"A": "1"}


def test_launches_in_blocks_that_a_list_decides_are_refused(tmp_path: Path) -> None:
    cases = (
        "[ -d x ] && { srun ./mesh; srun ./flow; }",
        "for i in 1; do srun ./mesh; done || srun ./flow",
        "( set -u; srun ./mesh )\nsrun ./flow",
        "cat > x <<END && srun ./flow\ntext\nEND",
    )
    for number, lines in enumerate(cases):
        batch = read(tmp_path / str(number), f"{HEAD}{lines}\n", "openmpi")
        assert not batch.imported, lines
        assert refusals(batch), lines


def test_substitutions_are_kept_whole(tmp_path: Path) -> None:
    lines = "mapfile -t X < <(python3 - <<'PY'\nprint('a) don')  # it's\nPY\n)\nA=$(cat <<-END\n\tit's ) here\n\tEND\n)"
    text = f'{HEAD}{lines}\ncp $A x\nsrun ./flow "${{X[@]}}"\n'
    found = values(tmp_path, text, "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == f'{lines}\ncp $A x\nmpirun ./flow "${{X[@]}}"'


def test_launches_whose_output_is_read_as_a_file_are_refused(tmp_path: Path) -> None:
    script = f"{HEAD}mapfile -t X < <(srun hostname; srun ./mesh)\nsrun ./flow\n"
    batch = read(tmp_path, script, "openmpi")
    assert not batch.imported
    assert [line for line, _ in refusals(batch)] == [3]


def test_variables_behind_a_launch_are_not_those_of_the_launch(tmp_path: Path) -> None:
    lines = "export Z=0\nexport A=1\nsrun ./mesh\nexport A=2 B=3\nsrun ./flow\nunset A\nsrun ./post"
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert isinstance(found["command"], list)
    assert found["env"] == {"Z": "0"}
    assert found["command"][-1].splitlines() == [
        "export A=1",
        'mpirun env A="$A" ./mesh',
        "export A=2 B=3",
        'mpirun env A="$A" B="$B" ./flow',
        "unset A",
        'mpirun env B="$B" ./post',
    ]


def test_a_variable_that_extends_itself_stays_in_the_command(tmp_path: Path) -> None:
    script = f"{HEAD}export PYTHONPATH=/app:$PYTHONPATH\nexport Q=1\nunset Q\nsrun python flow.py\n"
    found = values(tmp_path / "one", script, "openmpi")
    assert "env" not in found
    assert found["command"] == [
        "bash",
        "-c",
        'export PYTHONPATH=/app:$PYTHONPATH\nmpirun env PYTHONPATH="$PYTHONPATH" python flow.py',
    ]
    script = f"{HEAD}export PYTHONPATH=$REPO/src:$PYTHONPATH\nsrun python flow.py\n"
    batch = read(tmp_path / "two", script, "openmpi")
    assert any("REPO comes from the old cluster" in one.message for one in batch.everything)


BRACES = {
    "mkdir -p out/{a,b}\nsrun ./flow '{1..3}' x{y} a{1,2}": (
        "mkdir -p out/{a,b}\nmpirun ./flow '{1..3}' 'x{y}' a{1,2}"
    ),
    "for i in {1..3}; do ./flow $i; done": "for i in {1..3}; do ./flow $i; done",
    "if [ -f x ]; then R=x; fi\nmkdir q\nsrun ./flow ${R:+--resume $R}": (
        "if [ -f x ]; then R=x; fi\nmkdir q\nmpirun ./flow ${R:+--resume $R}"
    ),
}
PROGRAMS = {
    "a loop over braces": "for i in {1..3}; do srun ./flow $i; done",
    "several programs of mpirun": "mpirun -np 2 ./air : -np 6 ./sea",
    "several programs of srun": "srun --multi-prog conf",
}


@pytest.mark.parametrize("lines", BRACES)
def test_what_only_the_shell_expands_is_left_to_it(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == BRACES[lines]


@pytest.mark.parametrize("case", PROGRAMS)
def test_several_launches_in_one_are_refused(tmp_path: Path, case: str) -> None:
    batch = read(tmp_path, f"{HEAD}{PROGRAMS[case]}\n", "openmpi")
    assert not batch.imported
    assert [line for line, _ in refusals(batch)] == [3]


EXPORTS: dict[str, tuple[object, str]] = {
    "srun --export=A=1 ./a": ({"A": "1"}, "./a"),
    "srun --export=ALL,A=1,B=2 ./a": ({"A": "1", "B": "2"}, "./a"),
    "srun --export=ALL,A=1 ./a\nsrun ./b": (None, "mpirun env A=1 ./a\nmpirun ./b"),
    "srun --export=A=$HOME/x ./a": (None, 'mpirun env A="$HOME/x" ./a'),
    "mkdir q\nsrun --export=A='x y' ./a\nsrun --export=A=2 ./a": (
        None,
        "mkdir q\nmpirun env A='x y' ./a\nmpirun env A=2 ./a",
    ),
}


@pytest.mark.parametrize("lines", EXPORTS)
def test_variables_of_a_launchers_option_are_of_this_launch(tmp_path: Path, lines: str) -> None:
    env, text = EXPORTS[lines]
    found = values(tmp_path, f"#!/bin/bash\n#SBATCH -N 2 -n 8\n{lines}\n", "openmpi")
    assert found.get("env") == env
    assert isinstance(found["command"], list)
    assert found["command"][-1] == text


def test_exports_that_go_say_why_and_those_that_are_asked_about_how_to_answer(tmp_path: Path) -> None:
    lines = "export PATH=/x:$PATH LD_LIBRARY_PATH=/y:$LD_LIBRARY_PATH\nexport API_TOKEN=s1\nexport X=$SITE/$AREA\n"
    (one,) = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2 -n 8\n{lines}srun ./a\n", "openmpi").imported
    why = {entry.name: entry.why for entry in one.source.account.entries()}
    assert why["export PATH"] == "the image brings its software"
    assert [found.help for found in one.findings] == [
        "Revoke it, put a new one into a Secret, and name that: secrets: {env: {API_TOKEN: SECRET/KEY}}.",
        "Give its value: --set SITE=VALUE --set AREA=VALUE.",
    ]
