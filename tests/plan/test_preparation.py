"""What a script prepares before its own launcher: variables reach the ranks, and what cannot is reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.pods import EnvVar
from gangplan.plan import preparation
from gangplan.plan.launchers.shell import SimpleCommand, read_shell_commands
from gangplan.plan.problems import format_flow_list
from gangplan.rules.commands import ENVIRONMENT_LOST
from gangplan.rules.model import Severity
from tests.plan.asking import decided, job_of

OPTIONS = re.compile(r"\bmpirun((?: -x \S+)+)")
GIVEN = ["PATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"]


def handed_on(root: Path, command: list[str], image: str = "openmpi", **other: Any) -> list[str]:
    """Return the variables that mpirun gets -x for, beyond those of every run."""
    final = decided(root, image, command, **other)
    assert [one.message for one in final.problems if one.severity is Severity.ERROR] == []
    found = [name for options in OPTIONS.findall(" ".join(final.argv)) for name in options.split()[1::2]]
    assert found[: len(GIVEN)] == GIVEN
    return found[len(GIVEN) :]


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("export A=/data B=cores; mpirun ./a", ["A", "B"]),
        ("export B=1; export A=$(nproc); mpirun ./a", ["B", "A"]),
        ("A=1; export A; mpirun ./a", ["A"]),
        ("A=1; mpirun ./a", []),
        ("A=1 B=2 mpirun ./a", ["A", "B"]),
        ("A=1 ./prepare; mpirun ./a", []),
        ("export A=1; B=2 env C=3 A=4 mpirun ./a", ["A", "B", "C"]),
        ("declare -x A=1; typeset -rx B; declare C=1; mpirun ./a", ["A", "B"]),
        ("set -a; A=1; set +a; B=2; mpirun ./a", ["A"]),
        ("set -eo allexport; A=1; mpirun ./a", ["A"]),
        ("export A=1 B=2; unset A; export -n B; mpirun ./a", []),
        ("f() { :; }; export -f f; mpirun ./a", []),
        ("export -p; export A=1; mpirun ./a", ["A"]),
        ("if [ -d /x ]; then\n  export A=1\nfi\nmpirun ./a", ["A"]),
        ("mpirun ./a; export A=1", []),
        ("export PATH=/x:$PATH OMP_NUM_THREADS=4 HOSTNAME=$(hostname); mpirun ./a", []),
        ("export A=1; mpirun -x A -x B=2 ./a", ["A", "B=2"]),
        ("(cd /x; export A=1; exec mpirun ./a) | tee /tmp/log; set -o pipefail", ["A"]),
    ],
)  # fmt: skip
def test_mpirun_hands_on_what_its_script_exports(script: str, names: list[str], root: Path) -> None:
    assert handed_on(root, ["bash", "-o", "pipefail", "-c", script]) == names
    assert handed_on(root, ["bash", "-o", "pipefail", "-c", script], "openmpi4") == names


def test_each_launcher_of_a_script_hands_on_what_comes_before_it(root: Path) -> None:
    script = "export A=1; mpirun ./a; export B=2; mpirun ./b"
    assert handed_on(root, ["bash", "-c", script]) == ["A", *GIVEN, "A", "B"]


def test_variables_before_the_shell_of_a_script_are_handed_on(root: Path) -> None:
    assert handed_on(root, ["env", "A=1", "bash", "-c", "export B=1; mpirun ./a"]) == ["A", "B"]


def test_variables_with_a_value_per_pod_are_not_handed_on(root: Path) -> None:
    env = (*job_of(root, "openmpi").env, EnvVar("NODE", field="spec.nodeName"))
    assert handed_on(root, ["bash", "-c", "export NODE A=1; mpirun ./a"], env=env) == ["A"]


@pytest.mark.parametrize("image", ["mpich", "intel", "horovod"])
def test_launchers_that_hand_on_everything_get_no_names(image: str, root: Path) -> None:
    launcher = "horovodrun -np 8" if image == "horovod" else "mpirun"
    final = decided(root, image, ["bash", "-c", f"export A=1; {launcher} ./a"])
    assert "-x" not in " ".join(final.argv)


@pytest.mark.parametrize(
    ("image", "words", "expected"),
    [
        ("openmpi4", "mpirun -np 2 ./a : -np 6 ./b", "mpirun GIVEN -np 2 ./a : GIVEN -np 6 ./b"),
        ("openmpi4", "mpirun -x OMP_NUM_THREADS=4 -np 2 ./a : -x A=1 -np 6 ./b",
         "mpirun SOME -x OMP_NUM_THREADS=4 -np 2 ./a : GIVEN -x A=1 -np 6 ./b"),
        ("openmpi4", "mpirun -np 2 ./a : -np 3 ./b : -np 3 ./c",
         "mpirun GIVEN -np 2 ./a : GIVEN -np 3 ./b : GIVEN -np 3 ./c"),
        ("openmpi", "mpirun -np 2 ./a : -np 6 ./b", "mpirun GIVEN -np 2 ./a : -np 6 ./b"),
        ("openmpi", "mpirun -np 2 ./a : -x PATH=/x ./b", "mpirun GIVEN -np 2 ./a : -x PATH=/x ./b"),
    ],
)  # fmt: skip
def test_each_program_of_open_mpi_4_gets_its_own_variables(
    image: str, words: str, expected: str, root: Path
) -> None:
    options = [f"-x {name}" for name in GIVEN]
    expected = expected.replace("GIVEN", " ".join(options)).replace("SOME", " ".join(options[:2]))
    assert " ".join(decided(root, image, words.split()).argv) == expected
    script = f"cd /x && {words} | tee /tmp/log"
    final = decided(root, image, ["bash", "-o", "pipefail", "-c", script])
    assert final.argv[-1] == f"cd /x && {expected} | tee /tmp/log"


def warned(root: Path, image: str, script: str, **other: Any) -> list[tuple[str, str]]:
    """Return the messages and helps about what a script sets up for its launcher alone."""
    found = decided(root, image, ["bash", "-c", script], **other).problems
    assert [one.message for one in found if one.severity is Severity.ERROR] == []
    return [(one.message, one.help) for one in found if one.rule == ENVIRONMENT_LOST]


LOADS, LIMITS = "sets variables for", "sets a limit for"


@pytest.mark.parametrize(
    ("image", "script", "said"),
    [
        ("openmpi", "source /opt/foam/bashrc && mpirun ./a", [LOADS]),
        ("openmpi4", "set -a; . /etc/job.env; set +a; mpirun ./a", [LOADS]),
        ("openmpi", "eval \"$(spack env activate --sh x)\"; mpirun ./a", [LOADS]),
        ("openmpi", "module load foam; mpirun ./a", [LOADS]),
        ("openmpi", "export $(grep -v '^#' .env); mpirun ./a", [LOADS]),
        ("openmpi", "source $HOME/env.sh; mpirun ./a", [LOADS]),
        ("openmpi", "source env.sh; mpirun -np 2 ./a : -np 6 ./b", [LOADS]),
        ("openmpi", ". env.sh; ulimit -s unlimited; mpirun ./a", [LIMITS, LOADS]),
        ("mpich", "ulimit -s unlimited; mpiexec ./a", [LIMITS]),
        ("intel", "ulimit -l unlimited; mpirun ./a", [LIMITS]),
        ("horovod", "ulimit -n 65536; horovodrun -np 8 python a.py", [LIMITS]),
        ("deepspeed", "ulimit -n 65536; . env.sh; deepspeed a.py", [LIMITS, LOADS]),
        # What ranks get or do themselves, and what needs no rank.
        ("mpich", "source /opt/foam/bashrc; mpirun ./a", []),
        ("horovod", "source env.sh; horovodrun -np 8 python a.py", []),
        ("openmpi", "source /opt/venv/bin/activate; mpirun python a.py", []),
        ("openmpi", "eval \"$(conda shell.bash hook)\"; conda activate x; mpirun ./a", []),
        ("openmpi", ". /opt/conda/etc/profile.d/conda.sh; conda activate x; mpirun ./a", []),
        ("mpich", "ulimit ''; mpirun ./a", [LIMITS]),
        ("openmpi", "source env.sh; mpirun -x FOAM_ETC ./a", []),
        ("openmpi", "source env.sh; mpirun bash -c '. env.sh; exec ./a'", []),
        ("openmpi", "source env.sh; ulimit -s unlimited; mpirun ./rank.sh", []),
        ("openmpi", "source env.sh; mpirun bash rank.sh", []),
        ("openmpi", "mpirun ./a; source env.sh; ulimit -s 10", []),
        ("openmpi", "ulimit -a; ulimit -s; ulimit; mpirun ./a", []),
        ("openmpi", "source env.sh; ulimit -s unlimited; ./a", []),
        ("pytorch", "source env.sh; ulimit -s unlimited; torchrun a.py", []),
    ],
)  # fmt: skip
def test_what_is_set_up_for_a_launcher_alone_is_reported(
    image: str, script: str, said: list[str], root: Path
) -> None:
    messages = [message for message, _ in warned(root, image, script)]
    assert len(messages) == len(said)
    assert all(words in message for words, message in zip(said, messages, strict=True))


@pytest.mark.parametrize(
    ("image", "script", "right"),
    [
        ("openmpi", "source /x/rc && mpirun -np 8 foam -p | tee log",
         "source /x/rc && mpirun -np 8 bash -c 'source /x/rc; exec foam -p' | tee log"),
        ("openmpi", "set -a; . env; set +a; ulimit -s 9; mpirun ./a 'x y'",
         """set -a; . env; set +a; ulimit -s 9; mpirun bash -c 'set -a; . env; set +a; ulimit -s 9; exec ./a '"'"'x y'"'"''"""),
        ("mpich", "source env.sh; ulimit -s unlimited; mpirun ./a",
         "source env.sh; ulimit -s unlimited; mpirun bash -c 'source env.sh; ulimit -s unlimited; exec ./a'"),
    ],
)  # fmt: skip
def test_the_proposed_command_sets_up_every_rank(image: str, script: str, right: str, root: Path) -> None:
    found = warned(root, image, script)
    assert {help for _, help in found} == {f"Write command: {format_flow_list(['bash', '-c', right])}."}
    assert warned(root, image, right) == []


@pytest.mark.parametrize("script", [". $DIR/env.sh; mpirun ./a", "ulimit -s 10; mpirun ./a $MORE"])
def test_a_script_with_variables_gets_no_proposal(script: str, root: Path) -> None:
    ((_, help),) = warned(root, "openmpi", script)
    assert "bash -c '" in help
    assert not help.startswith("Write command")


FILE = "Run env | grep -E '^({})=' >>~/.deepspeed_env before deepspeed."


@pytest.mark.parametrize(
    ("words", "helps"),
    [
        (["bash", "-c", "export A=/x B=2 NCCL_DEBUG=INFO; deepspeed a.py"], ["Write env: {A: /x, B: \"2\"} instead."]),
        (["bash", "-c", "export A=$HOME/x B=2; deepspeed a.py"], [FILE.format("A|B")]),
        (["bash", "-c", "export A=~/x; deepspeed a.py"], [FILE.format("A")]),
        (["bash", "-c", "OMP_NUM_THREADS=77 deepspeed a.py"], ["Write env: {OMP_NUM_THREADS: \"77\"} instead."]),
        (["env", "A=/x", "deepspeed", "a.py"], ["Write env: {A: /x} instead."]),
        (["bash", "-c", "export A=$X; env | grep -E '^(A)=' >>~/.deepspeed_env; deepspeed a.py"], []),
        (["bash", "-c", "export A=1; deepspeed --launcher impi a.py"], []),
        (["bash", "-c", "A=1; PYTHONPATH=/x PDSH_SSH_ARGS=-v deepspeed a.py"], []),
    ],
)  # fmt: skip
def test_variables_that_deepspeed_keeps_are_reported(words: list[str], helps: list[str], root: Path) -> None:
    found = [one for one in decided(root, "deepspeed", words).problems if one.rule == ENVIRONMENT_LOST]
    assert [one.help for one in found] == helps


def test_a_variable_that_the_spec_has_as_well_reaches_the_ranks_of_deepspeed(root: Path) -> None:
    env = (*job_of(root, "deepspeed").env, EnvVar("A", "/x"), EnvVar("B", field="spec.nodeName"))
    assert warned(root, "deepspeed", "export A=/x B; deepspeed a.py", env=env) == []
    assert len(warned(root, "deepspeed", "export A=/y; deepspeed a.py", env=env)) == 1


def test_a_script_is_read_once_for_what_all_its_launchers_get(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []

    def read(text: str) -> list[SimpleCommand]:
        texts.append(text)
        return read_shell_commands(text)

    monkeypatch.setattr(preparation, "read_shell_commands", read)
    script = "set -e; export A=1; unset B; " + "torchrun a.py; " * 20
    decided(root, "pytorch", ("bash", "-c", script))
    assert texts == [script]
