"""What a spec says about pods applies to every rank: rendered scripts, real MPIs, several hosts."""

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
    """Ranks that an SSH session starts are included: the session begins in the home of its user."""
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
    """Check that every rank ran where planned and has the fields of its own pod."""
    run.check()
    for rank in run.ranks():
        assert rank.env["POD"] == rank.host
        assert rank.env["NODE"] == f"node of '{rank.host}' $HOME"
        assert (rank.env["ROOM"], rank.env["SEED"]) == ("32Gi", "7")
        assert "SSH_ORIGINAL_COMMAND" not in rank.env


def test_every_rank_has_the_fields_of_its_own_pod(family: Family, tmp_path: Path) -> None:
    """A session has none of the server's environment, and Hydra would pass on the launcher's fields."""
    with running_spec(tmp_path, family, spec(family, 3, OWN), bashrc=TALK) as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


@pytest.mark.parametrize("name", OPEN)
def test_ranks_on_the_launcher_have_the_fields_of_their_own_pod(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    text = spec(family, 3, OWN, "launcher: {runsRanks: true}")
    with running_spec(tmp_path, family, text) as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


def test_ranks_of_a_users_own_mpirun_have_the_fields_of_their_own_pod(family: Family, tmp_path: Path) -> None:
    option = "-n" if family.is_hydra else "-np"
    text = spec(family, 2, OWN, "slots: 1", command=f"[mpirun, {option}, 2, python, train.py]")
    with running_spec(tmp_path, family, text, prefix="/opt/hpcx/ompi") as run:
        assert run.end() == 0, run.story()
        has_its_own(run)


FAILS = PROGRAM + '[ "$rank" != 1 ] || exit 42\nsleep 3\n'


def test_the_launcher_ends_with_the_exit_code_of_the_failed_rank(family: Family, tmp_path: Path) -> None:
    """Rules about exit codes rely on it; Intel MPI gives 255 if it killed other ranks."""
    with running_spec(tmp_path, family, spec(family, 2), program=FAILS) as run:
        assert run.end() in ({42, 255} if family.name == "intel" else {42}), run.story()
