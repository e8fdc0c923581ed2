"""What a script prepares before its own launcher: variables reach the ranks, and what cannot is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.model.pods import EnvVar
from gangplan.rules.model import Severity
from tests.plan.asking import decided, job_of

OPTIONS = re.compile(r"\bmpirun((?: -x \S+)+)")
GIVEN = ["PATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"]


def handed_on(root: Path, command: list[str], image: str = "openmpi", **other: object) -> list[str]:
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
