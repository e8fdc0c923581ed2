"""Arguments that a batch script sets itself, or that `--set 1=VALUE` gives it, are followed to their use."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.sources import imported
from tests.imports.test_script_meaning import read, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
ALONE = {
    'set -- a "b c"\nsrun ./p "$@" -n $# $1 "$2" ${3:-none} ${3-x}': "./p a|b c|-n|2|a|b c|none|x",
    "set -- a b c\nshift\nsrun ./p $1 $#": "./p b|2",
    "set -- a b c\nshift 2\nsrun ./p $10 ${10} ${@:1} $*": "./p c0|c|c",
    'set -- a "b c"\nsrun ./p x"$@"y "$*" ${#} ${@:2}': "./p xa|b cy|a b c|2|b|c",
    'set -- a\nA=("$@" b)\nX="$@ c"\nsrun ./p "${A[@]}" "$X"': "./p a|b|a c",
    'set -euo pipefail\nsrun ./p "$@"': "./p",
    "if [ $# -eq 0 ]; then set -- d e; fi\nsrun ./p $2": "./p e",
    'set -- a\nset --\nsrun ./p "$@" $1': "./p",
    'N="a b"\nset -- $N\nsrun ./p "$2"': "./p b",
}
SCRIPTS = {
    'set -- a b\ncp $1 x\nsrun ./p "$2"': "set -- a b\ncp $1 x\nmpirun ./p b",
    'set -- $(cat x)\nsrun ./p "$1"': 'set -- $(cat x)\nmpirun ./p "$1"',
    "set -- m\n[ -f x ] && set -- z\nsrun ./p $1": "set -- m\n[ -f x ] && set -- z\nmpirun ./p $1",
    "set -- a b\nfor x; do cp $x y; done\nsrun ./p": "set -- a b\nfor x; do cp $x y; done\nmpirun ./p",
    'f() { cp "$@" x; }\nf a\nsrun ./p "$@" end': 'f() { cp "$@" x; }\nf a\nmpirun ./p end',
    'eval set -- "$(getopt -o a -- "$@")"\nsrun ./p $1': (
        'eval set -- "$(getopt -o a -- "$@")"\nmpirun ./p $1'
    ),
    "set -e -- a b\nsrun ./p $2": "set -e -- a b\nmpirun ./p $2",
    "set -- a b\nwhile [ $# -gt 1 ]; do shift; done\ncp x y\nsrun ./p $1": (
        "set -- a b\nwhile [ $# -gt 1 ]; do shift; done\ncp x y\nmpirun ./p $1"
    ),
}


@pytest.mark.parametrize("lines", ALONE)
def test_the_program_gets_the_arguments(tmp_path: Path, lines: str) -> None:
    first, _, rest = ALONE[lines].partition(" ")
    expected = [first, *(rest.split("|") if rest else ())]
    assert values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"] == expected


@pytest.mark.parametrize("lines", SCRIPTS)
def test_what_only_a_shell_can_tell_stays_in_the_script(tmp_path: Path, lines: str) -> None:
    batch = read(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    (one,) = batch.imported
    assert one.draft.values["command"] == ["bash", "-c", SCRIPTS[lines]]
    assert [found.message for found in batch.everything if found.rule == IMPORT_ASKED] == []


def test_what_a_user_gives_reaches_every_line(tmp_path: Path) -> None:
    script = f'{HEAD}cp "$1" x\nsrun ./p "$@"\n'
    batch = imported(tmp_path, "slurm", script, "job.sbatch", image="openmpi", filled={"1": "a b", "2": "c"})
    (one,) = batch.imported
    assert one.draft.values["command"] == ["bash", "-c", "set -- 'a b' c\ncp \"$1\" x\nmpirun ./p 'a b' c"]


def test_an_inner_shell_has_arguments_of_its_own(tmp_path: Path) -> None:
    script = f"{HEAD}set -- a b\nsrun bash -c './p \"$@\"' x y\n"
    assert values(tmp_path, script, "openmpi")["command"] == ["bash", "-c", './p "$@"', "x", "y"]


def test_an_argument_behind_one_that_is_not_given_counts(tmp_path: Path) -> None:
    script = f'{HEAD}srun ./p "$1" ${{2:-b}} $#\n'
    batch = imported(tmp_path, "slurm", script, "job.sbatch", image="openmpi", filled={"2": "c"})
    (one,) = batch.imported
    assert one.draft.values["command"] == ["bash", "-c", './p "$1" c 2']
    assert [(found.message, found.help) for found in one.findings if found.rule == IMPORT_ASKED] == [
        ("the script takes an argument, $1", "Give its value: --set 1=VALUE.")
    ]
