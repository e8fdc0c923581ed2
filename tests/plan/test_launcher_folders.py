"""Folders that a script uses on the launcher: those that ranks alone have, and those that they do not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.findings import Problem
from gangplan.model.pods import Mount, ScratchSpace
from gangplan.model.quantity import parse_quantity
from gangplan.rules.model import Severity
from tests.plan.asking import decided
from tests.workspaces import stock

SCRATCH = Mount(
    "scratch", "/scratch", scratch=ScratchSpace(parse_quantity("50Gi"), "disk", "/scratch"), single=True
)
MOUNTS = (SCRATCH, Mount("filings", "/data", "filings"), Mount("work", "/work", "work", single=True))

# A script on an image of Open MPI | what of it needs a folder that the launcher lacks
SCRIPTS = [
    ("cd $SCRATCH_DIR && mpirun lmp -in in.lj", "cd $SCRATCH_DIR"),
    ("set -e; cd ${SCRATCH_DIR}/case; mpirun lmp", "cd ${SCRATCH_DIR}/case"),
    ('pushd "$SCRATCH_DIR" && mpirun lmp', 'pushd "$SCRATCH_DIR"'),
    ("cd /scratch && mpirun lmp", "cd /scratch"),
    ("cd /work/case/ && exec mpirun lmp", "cd /work/case/"),
    ("tar xf /data/a.tar -C $SCRATCH_DIR && mpirun lmp", "tar ... $SCRATCH_DIR"),
    ("mkdir -p $SCRATCH_DIR/out; mpirun lmp", "mkdir ... $SCRATCH_DIR/out"),
    ("mpirun lmp && cp -r $SCRATCH_DIR/out /data", "cp ... $SCRATCH_DIR/out"),
    ("mpirun lmp > $SCRATCH_DIR/log", "> $SCRATCH_DIR/log"),
    ("mpirun lmp 2>&1 | tee /scratch/log", "tee /scratch/log"),
    ("mpirun lmp -log $SCRATCH_DIR/log", ""),
    ("mpirun -wdir $SCRATCH_DIR lmp", ""),
    ("timeout 3600 mpirun lmp -log $SCRATCH_DIR/log", ""),
    ("mpirun bash -c 'cd $SCRATCH_DIR && exec lmp > $SCRATCH_DIR/log'", ""),
    ("export TMPDIR=$SCRATCH_DIR; mpirun -x TMPDIR lmp", ""),
    ("echo $SCRATCH_DIR; rm -rf $SCRATCH_DIR/*; mpirun lmp", ""),
    ("[ -d $SCRATCH_DIR ] && cd $SCRATCH_DIR; mpirun lmp", ""),
    ("if test -d /scratch; then cd /scratch; fi; mpirun lmp", ""),
    ("cd /scratchy && mpirun lmp", ""),
    ("cd $SCRATCH_DIRS && mpirun lmp", ""),
    ("cd /data/case && mpirun lmp", ""),
    ("cd $SCRATCH_DIR && ./lmp", ""),  # runs in every rank
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace, whose job has 4 workers with 2 GPUs each."""
    return stock(tmp_path_factory.mktemp("folders"))


@pytest.mark.parametrize(("script", "what"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_the_launcher_lacks_what_ranks_alone_mount(script: str, what: str, root: Path) -> None:
    found = _find(root, script)
    assert [one.message.partition(" runs on the launcher")[0] for one in found] == [f"'{what}'"] * bool(what)
    assert all(one.severity is Severity.ERROR for one in found)


def test_a_launcher_with_ranks_has_their_folders(root: Path) -> None:
    assert not _find(root, "cd $SCRATCH_DIR && mpirun lmp", launcher_runs_ranks=True)


# A script | the folder that ranks on other pods do not have
ENTERED = [
    ("mkdir -p /tmp/case && cd /tmp/case && mpirun lmp", "/tmp/case"),
    ("cp -r /data/case /tmp; cd /tmp/case/; mpirun lmp", "/tmp/case/"),
    ("cd /tmp && mpirun lmp", ""),
    ("cd /tmp/case && tar xf a.tar; cd /data && mpirun lmp", ""),
    ("mpirun lmp; cd /tmp/case && tar cf a.tar .", ""),
    ("cd $(mktemp -d /tmp/x.XXX) && mpirun lmp", ""),
    ("cd /opt/case && mpirun lmp", ""),
    ("(cd /tmp/case && tar xf a.tar); mpirun lmp", ""),
]


@pytest.mark.parametrize(("script", "folder"), ENTERED, ids=[script for script, _ in ENTERED])
def test_ranks_lack_a_folder_that_the_launcher_made(script: str, folder: str, root: Path) -> None:
    found = _find(root, script)
    assert [one.message.partition(", which only")[0] for one in found] == [
        f"mpirun starts every rank in '{folder}'"
    ] * bool(folder)
    assert all(one.severity is Severity.WARNING for one in found)


def _find(root: Path, script: str, **other: object) -> list[Problem]:
    final = decided(root, "openmpi", ("bash", "-c", script), mounts=MOUNTS, **other)
    return [one for one in final.problems if one.rule == "command-folder"]
