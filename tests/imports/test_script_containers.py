"""What a batch script gives a container: variables, folders, options that only look like folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.test_script_meaning import read, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
IMAGE = "docker://a/b:1"
# Lines -> what is in the spec.
GIVEN: dict[str, tuple[str, dict[str, object]]] = {
    "variables of Apptainer by their prefix": (
        f"export SINGULARITYENV_A=1\nexport APPTAINERENV_B=2\nsrun apptainer exec {IMAGE} ./a",
        {"env": {"A": "1", "B": "2"}},
    ),
    "two variables in one option of Apptainer": (
        f"srun apptainer exec --env A=1,B=2 {IMAGE} ./a",
        {"env": {"A": "1", "B": "2"}},
    ),
    "a comma in a variable of Docker": ("srun docker run -e A=1,2 a/b:1 ./a", {"env": {"A": "1,2"}}),
    "options of Apptainer that name no folder of the program": (
        f"srun apptainer exec -w -c -e --workdir /tmp/x --no-mount home --pwd /code {IMAGE} ./a",
        {"workdir": "/code"},
    ),
    "a container behind mpirun": (
        f"mpirun apptainer exec --env A=1 --pwd /code {IMAGE} ./a",
        {"env": {"A": "1"}, "workdir": "/code"},
    ),
}
ASKED = {
    "a folder of a user": (
        f"srun apptainer exec -B /scratch/$USER:/q {IMAGE} ./a",
        "the container sees /scratch/$USER as /q, which only the old cluster knows",
    ),
    "the folder of the job": (
        f"srun apptainer exec -B $PWD:/q {IMAGE} ./a",
        "the container sees . as /q, which only the old cluster knows",
    ),
    "a variable of a user": (
        f"srun apptainer exec --env A=$USER {IMAGE} ./a",
        "the container has the variable A, which only the old cluster knows",
    ),
    "a program of the image": (
        "srun apptainer run img.sif --epochs 3",
        "the program that img.sif starts by itself is not known here",
    ),
    "what the program of an image from a registry gets": (
        f"srun apptainer run {IMAGE} --epochs 3",
        f"the program that {IMAGE} starts by itself is not known here",
    ),
    "a file of variables": (
        f"srun apptainer exec --env-file job.env {IMAGE} ./a",
        "the container has the variables of job.env, which only the old cluster knows",
    ),
    "a folder of a user behind mpirun": (
        f"mpirun apptainer exec -B /scratch/$USER:/q {IMAGE} ./a",
        "the container sees /scratch/$USER as /q, which only the old cluster knows",
    ),
    "a variable that is computed": (
        f"export APPTAINERENV_A=$(date)\nsrun apptainer exec {IMAGE} ./a",
        "APPTAINERENV_A: Apptainer gives it to its container by the rest of the name; write that under env:",
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_the_run_has_what_the_container_has(tmp_path: Path, case: str) -> None:
    lines, expected = GIVEN[case]
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert {key: found.get(key) for key in ("env", "workdir") if key in found} == expected
    assert found["command"] == ["./a"]


@pytest.mark.parametrize("case", ASKED)
def test_what_only_the_old_cluster_knows_is_asked_about(tmp_path: Path, case: str) -> None:
    lines, message = ASKED[case]
    batch = read(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert [one.message for one in batch.everything if one.rule == IMPORT_ASKED] == [message]


def test_a_pattern_of_files_in_a_variable_is_left_to_the_shell(tmp_path: Path) -> None:
    script = f'{HEAD}F="data/*.h5"\nmkdir q\nsrun ./a $F "$F"\n'
    found = values(tmp_path, script, "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == "mkdir q\nmpirun ./a data/*.h5 'data/*.h5'"
