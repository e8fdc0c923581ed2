"""Where a batch script runs: the rank of its shell, its own path, the folder from which it was submitted, its mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SCRIPT
from tests.imports.sources import imported
from tests.imports.test_script_meaning import command, read, refusals

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
# Lines -> the command: the shell of the script expands what no inner shell does, and its rank is 0.
RANKS = {
    "mkdir -p out\nsrun ./a --id $SLURM_PROCID --at ${SLURM_LOCALID}": "mkdir -p out\nmpirun ./a --id 0 --at 0",
    "R=$SLURM_PROCID\nmkdir -p out\nsrun ./a --id r$R": "mkdir -p out\nmpirun ./a --id r0",
    "mkdir -p out\nA=$SLURM_PROCID srun ./a\nsrun ./b": 'mkdir -p out\nmpirun env A="0" ./a\nmpirun ./b',
    'mkdir -p out\nsrun bash -c "./a $SLURM_PROCID \\$SLURM_PROCID"': (
        "mkdir -p out\nmpirun bash -c './a 0 $OMPI_COMM_WORLD_RANK'"
    ),
    "mkdir -p out\nmpirun ./a $SLURM_NODEID": "mkdir -p out\nmpirun ./a 0",
    "srun bash -c './a $SLURM_PROCID'": "./a $OMPI_COMM_WORLD_RANK",
    "srun ./a --id $SLURM_PROCID": "0",
}
OWN = {
    "cp $(dirname $0)/c.yaml .\nsrun ./a": "$0",
    'srun ./a --conf "$(dirname "${BASH_SOURCE[0]}")/c.yaml"': "$BASH_SOURCE",
    "awk '{print $0}' x > y\nsrun ./a": "",
}
FOLDERS = {
    "srun ./a --out $(basename $PWD)": '$(basename "$PWD")',
    'srun ./a --out $(basename "$SLURM_SUBMIT_DIR")': '$(basename "$PWD")',
    "srun ./a --out $(dirname $(pwd))": '$(dirname "$PWD")',
    "srun ./a --out ${PWD##*/}": "${PWD##*/}",
    "D=$SLURM_SUBMIT_DIR\nsrun ./a --out ${D%/*}": "${PWD%/*}",
}
MOUNTS = {
    "/lustre/data:/lustre/data": "/lustre/database, /other/x",
    "/home/me:/lustre/data/deep": "/lustre/database, /other/x",
    "/home/me:/lustre,/other:/other": "",
}
# Lines -> the folder of the old cluster that a run lacks.
OLD_FOLDERS = {
    "srun ./a /scratch/me/x": "/scratch/me",
    "cd /scratch/me/case\nsrun ./a": "/scratch/me",
    "cd /home/me/case\nsrun ./a": "/home/me",
    "srun ./a $TMPDIR/x": "",
    "cd $SLURM_SUBMIT_DIR\nsrun ./a": "",
    "cd /opt/case\nsrun ./a": "",
}
# Files that a script reads -> whether an image brings what they set.
SOURCED = {
    "source ~/.bashrc": True,
    "source $HOME/.bash_profile": True,
    ". /etc/profile.d/modules.sh": True,
    ". /etc/bashrc": True,
    "source /opt/intel/oneapi/setvars.sh": True,
    ". /opt/openfoam11/etc/bashrc": False,
    "source /apps/gromacs/profile": False,
    ". ./env.sh": False,
}


def asked(root: Path, text: str, image: str = "openmpi") -> list[str]:
    return [one.message for one in read(root, text, image).everything if one.rule == IMPORT_ASKED]


@pytest.mark.parametrize("lines", RANKS)
def test_the_shell_of_the_script_is_the_first_rank(tmp_path: Path, lines: str) -> None:
    assert command(tmp_path, f"{HEAD}{lines}\n", "openmpi") == RANKS[lines]


def test_ranks_of_torch_have_what_the_shell_of_the_script_had(tmp_path: Path) -> None:
    text = command(tmp_path, f"{HEAD}mkdir -p out\nsrun ./a --id $SLURM_PROCID\n")
    assert text == "mkdir -p out\ntorchrun --no-python ./a --id 0"


@pytest.mark.parametrize("lines", OWN)
def test_a_script_that_reads_its_own_path_is_asked_about(tmp_path: Path, lines: str) -> None:
    found = [one for one in asked(tmp_path, f"{HEAD}{lines}\n") if "the path of the batch script" in one]
    assert [one.partition("reads ")[2].partition(",")[0] for one in found] == [OWN[lines]] * bool(OWN[lines])


@pytest.mark.parametrize("lines", FOLDERS)
def test_the_name_of_the_folder_of_submission_is_asked_about(tmp_path: Path, lines: str) -> None:
    assert command(tmp_path, f"{HEAD}{lines}\n", "openmpi").endswith(f"./a --out {FOLDERS[lines]}")
    message = "the command needs the path of the folder from which the job was submitted"
    assert asked(tmp_path, f"{HEAD}{lines}\n") == [message]


def test_the_folder_of_submission_can_be_given(tmp_path: Path) -> None:
    for name in ("PWD", "SLURM_SUBMIT_DIR"):
        text = f"{HEAD}srun ./a $(basename ${name}) ${{{name}%/*}}\n"
        batch = imported(tmp_path, "slurm", text, "job.sbatch", {name: "/base/run7"}, image="openmpi")
        assert batch.imported[0].draft.values["command"] == ["./a", "run7", "/base"]


@pytest.mark.parametrize("mounts", MOUNTS)
def test_folders_that_the_container_mounts_are_not_asked_about(tmp_path: Path, mounts: str) -> None:
    options = f"#SBATCH --container-image=nvcr.io/a/b:1 --container-mounts={mounts}\n"
    text = f"{HEAD}{options}srun ./a /lustre/data/deep/x /lustre/database/x /other/x\n"
    message = f"the program uses folders of the old cluster: {MOUNTS[mounts]}"
    assert [one for one in asked(tmp_path, text) if "folders" in one] == [message] * bool(MOUNTS[mounts])


@pytest.mark.parametrize("lines", OLD_FOLDERS)
def test_folders_of_the_old_cluster_are_asked_about(tmp_path: Path, lines: str) -> None:
    folder = OLD_FOLDERS[lines]
    message = f"the program uses folders of the old cluster: {folder}"
    found = [one for one in asked(tmp_path, f"{HEAD}{lines}\n") if "folders" in one]
    assert found == [message] * bool(folder)


@pytest.mark.parametrize("line", SOURCED)
def test_files_of_an_application_are_asked_about(tmp_path: Path, line: str) -> None:
    found = [one for one in asked(tmp_path, f"{HEAD}{line}\nsrun ./a\n") if "is not read here" in one]
    assert len(found) == (not SOURCED[line])


@pytest.mark.parametrize("shell", ["/bin/zsh", "/usr/bin/env -S zsh -f", "/bin/tcsh", "/usr/bin/env python3"])
def test_scripts_of_other_languages_are_refused(tmp_path: Path, shell: str) -> None:
    batch = read(tmp_path, f"#!{shell}\n#SBATCH -N 2 -n 8\nsrun ./a\n", "openmpi")
    assert [(line, message.partition(",")[2]) for line, message in refusals(batch)] == [
        (1, " and scripts for sh, bash and ksh are read here")
    ]
    assert {one.rule for one in batch.everything} == {IMPORT_SCRIPT}
