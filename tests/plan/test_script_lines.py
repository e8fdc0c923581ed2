"""Lines of a script that never run, because exec has replaced the shell, or that only login shells know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.asking import decided
from tests.workspaces import stock

# A script | the words that never run
SCRIPTS = [
    ("exec mpirun lmp; cp -r out /data", "cp -r"),
    ("exec mpirun lmp && cp -r out /data", "cp -r"),
    ("set -e\nexec mpirun lmp\ncp -r out /data\n", "cp -r"),
    ("exec -a lmp mpirun lmp; mpirun report", "mpirun report"),
    ("cd /data && exec mpirun lmp && tar cf a.tar out", "tar cf"),
    ("if test -e a; then exec mpirun a; cp a /data; fi", "cp a"),
    ("exec mpirun a || mpirun b", "mpirun b"),
    ("exec mpirun lmp", ""),
    ("exec > /tmp/log; mpirun lmp", ""),
    ("exec 2>&1; mpirun lmp", ""),
    ("if test -e a; then exec mpirun a; fi; exec mpirun b", ""),
    ("if test -e a; then exec mpirun a; else mpirun b; fi", ""),
    ("test -e a && exec mpirun a; mpirun b", ""),
    ("(cd /data; exec mpirun a); mpirun b", ""),
    ("exec mpirun a | tee log; mpirun b", ""),
    ("yes | exec mpirun a; mpirun b", ""),
    ("exec monitor & mpirun b", ""),
    ("exec mpirun a; echo no mpirun; exit 127", ""),
    ("case $X in a) exec mpirun a ;; b) mpirun b ;; esac", ""),
    ("run() { exec mpirun $1; }; run a", ""),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace."""
    return stock(tmp_path_factory.mktemp("exec"))


@pytest.mark.parametrize(("script", "what"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_what_comes_after_exec_never_runs(script: str, what: str, root: Path) -> None:
    final = decided(root, "openmpi", ("bash", "-c", script))
    found = [one.message for one in final.problems if one.rule == "command-after-exec"]
    assert [one.partition(" never runs")[0] for one in found] == [f"'{what}'"] * bool(what)


@pytest.mark.parametrize(
    ("script", "right"),
    [
        ("exec mpirun lmp; ls", "set -e; mpirun lmp; ls"),
        ("exec -a lmp mpirun lmp; ls", ""),
        ("exec mpirun a; exec mpirun b", ""),
    ],
)
def test_the_help_goes_on_after_the_program(script: str, right: str, root: Path) -> None:
    final = decided(root, "openmpi", ("bash", "-c", script))
    (problem,) = [one for one in final.problems if one.rule == "command-after-exec"]
    wanted = f"Write command: [bash, -c, {right}]." if right else "Start the program without exec."
    assert problem.help.replace("'", "") == wanted


# A script | the modules that it loads without what defines the command
MODULES = [
    ("module load cuda/12.4 nccl; ./lmp", "module load cuda/12.4"),
    ("module purge && ./lmp", "module purge"),
    ("ml gcc openmpi; ./lmp", "ml gcc openmpi"),
    ("cd /data\nmodule use /apps\n./lmp\n", "module use /apps"),
    ("module list; ./lmp", ""),
    (". /etc/profile.d/modules.sh; module load gcc; ./lmp", ""),
    ("source /usr/share/lmod/lmod/init/bash; module load gcc; ./lmp", ""),
    ("./module load gcc", ""),
    ("python -m ml", ""),
]


@pytest.mark.parametrize(("script", "what"), MODULES, ids=[script for script, _ in MODULES])
def test_modules_are_of_login_shells(script: str, what: str, root: Path) -> None:
    for shell, told in ((("bash", "-c"), what), (("bash", "-lc"), ""), (("bash", "--login", "-c"), "")):
        final = decided(root, "openmpi", (*shell, script))
        found = [one.message for one in final.problems if one.rule == "command-module"]
        assert [one.partition(" is of an")[0] for one in found] == [f"'{told}'"] * bool(told)


@pytest.mark.parametrize(
    ("script", "is_at_once"),
    [
        ("for i in 1 2; do mpirun -np 4 a $i & done; wait", True),
        ("mpirun -np 4 a & mpirun -np 4 b & wait", True),
        ("mpirun -np 4 a; mpirun -np 4 b", False),
        ("mpirun -np 4 a", False),
    ],
)
def test_launches_at_the_same_time_share_no_ranks(script: str, is_at_once: bool, root: Path) -> None:
    final = decided(root, "openmpi", ("bash", "-c", script))
    found = [one.help for one in final.problems if one.rule == "ranks-mismatch"]
    assert found
    assert all(one.startswith("Launches at the same time") == is_at_once for one in found)
    assert not (is_at_once and any("Write command" in one for one in found))
