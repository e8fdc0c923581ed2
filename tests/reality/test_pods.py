"""What a spec says about pods holds in every rank: rendered scripts, real MPIs, several hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, Family
from tests.reality.running import PROGRAM, Run
from tests.reality.test_ranks import TALK


@pytest.fixture(params=ALL)
def family(request: pytest.FixtureRequest) -> Family:
    """Each MPI."""
    return FAMILIES[request.param]


@pytest.mark.parametrize("runs_ranks", [False, True])
def test_every_rank_starts_in_the_folder_of_the_spec(
    runs_ranks: bool, family: Family, tmp_path: Path
) -> None:
    """Also those that an SSH session starts, which begins in the home of its user."""
    launcher = ["launcher: {runsRanks: true}"] if runs_ranks else []
    text = spec(family, 2, "workdir: /srv/jobs/one", *launcher)
    with running_spec(tmp_path, family, text) as run:
        assert run.end() == 0, run.story()
        run.check()
        assert {rank.folder for rank in run.ranks()} == {"/srv/jobs/one"}


FIELDS = "NODE: {field: spec.nodeName}, POD: {field: metadata.name}, ROOM: {resource: limits.memory}"
OWN = f"env: {{{FIELDS}, SEED: 7}}"
OPEN = ["openmpi4", "openmpi5"]


def has_its_own(run: Run) -> None:
    """Every rank ran where planned, and has the fields of the pod that it is in."""
    run.check()
    for rank in run.ranks():
        assert rank.env["POD"] == rank.host
        assert rank.env["NODE"] == f"node of '{rank.host}' $HOME"
        assert (rank.env["ROOM"], rank.env["SEED"]) == ("32Gi", "7")
        assert "SSH_ORIGINAL_COMMAND" not in rank.env


def test_every_rank_has_the_fields_of_its_own_pod(family: Family, tmp_path: Path) -> None:
    """Not the launcher's: sessions have none of the server's environment, and Hydra would hand on its own."""
    with running_spec(tmp_path, family, spec(family, 3, OWN), bashrc=TALK) as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


@pytest.mark.parametrize("name", OPEN)
def test_so_has_a_launcher_that_runs_ranks(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    text = spec(family, 3, OWN, "launcher: {runsRanks: true}")
    with running_spec(tmp_path, family, text) as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


def test_so_has_an_mpirun_of_the_user(family: Family, tmp_path: Path) -> None:
    option = "-n" if family.is_hydra else "-np"
    text = spec(family, 2, OWN, "slots: 1", command=f"[mpirun, {option}, 2, python, train.py]")
    with running_spec(tmp_path, family, text, prefix="/opt/hpcx/ompi") as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


FAILS = PROGRAM + '[ "$rank" != 1 ] || exit 42\nsleep 3\n'


def test_the_launcher_ends_with_the_code_of_the_rank_that_failed(family: Family, tmp_path: Path) -> None:
    """So that rules about exit codes see it; Intel MPI says 255 where it killed other ranks."""
    with running_spec(tmp_path, family, spec(family, 2), program=FAILS) as run:
        assert run.end() in ({42, 255} if family.name == "intel" else {42}), run.story()
