"""`gangplan import pbs`: qsub's options, in the forms of PBS Professional and of Torque.

The scripts have the shape of those of NCAR, ALCF and university clusters, written for these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_SCRIPT
from tests.imports.sources import PBS, imported


def read(root: Path, text: str, **answers: object) -> Batch:
    return imported(root, "pbs", text, "job.pbs", **answers)


def test_a_job_of_pbs_becomes_a_spec(tmp_path: Path) -> None:
    (one,) = read(tmp_path, PBS, image="openmpi").imported
    assert one.draft.values == {
        "description": "Imported from PBS ocean (job.pbs)",
        "labels": {"migrated-from": "pbs"},
        "image": "openmpi",
        "command": ["./ocean", "--nodes", "2"],
        "workers": 2,
        "slots": 8,
        "gpus": 4,
        "cpu": 16,
        "memory": "128Gi",
        "env": {"OMP_NUM_THREADS": "2"},
        "timeout": "12h",
    }
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences
    assert one.is_right, one.findings


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-l nodes=3:ppn=8", "workers", 3),
        ("-l nodes=3:ppn=8", "slots", 8),
        ("-l nodes=1:ppn=8:gpus=2,mem=64gb,walltime=01:00:00", "gpus", 2),
        ("-l nodes=1:ppn=8:gpus=2,mem=64gb,walltime=01:00:00", "memory", "64Gi"),
        ("-l select=1:ncpus=8:mem=2gw", "memory", "16Gi"),
        ("-l select=1:ncpus=8:mem=2097152KW", "memory", "16Gi"),
        ("-l select=1:ncpus=8:mem=2147483648w", "memory", "16Gi"),
        ("-l select=1:ncpus=8:mem=17179869184b", "memory", "16Gi"),
        ("-lselect=2:ncpus=4", "workers", 2),
        ("-l select=1:ncpus=8:mem=16gb -l walltime=30:00", "timeout", "30m"),
        ("-l walltime=60", "timeout", "1m"),
        ("-l select=1:ncpus=8:ngpus=1:gpu_type=A100", "gpu", {"model": "a100-80gb"}),
        ("-l select=1:ncpus=8:scratch_ssd=420gb", "scratch", "420Gi"),
        ("-v CASE=7,MODE=fast", "env", {"CASE": "7", "MODE": "fast"}),
    ],
)  # fmt: skip
def test_options_become_fields_of_the_spec(tmp_path: Path, line: str, field: str, value: object) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#PBS {line}\nmpirun ./x\n", image="openmpi")
    assert batch.imported[0].draft.values[field] == value


@pytest.mark.parametrize(
    "option",
    [
        "-A",
        "-P x",
        "-q main",
        "-o out",
        "-e err",
        "-j oe",
        "-k eod",
        "-m abe",
        "-M me",
        "-S /bin/bash",
        "-V",
        "-r n",
        "-W depend=afterok:1",
        "-a 1200",
        "-p 3",
        "-l place=scatter",
        "-l filesystems=home",
        "-l job_priority=economy",
        "-l select=1:ncpus=1:model=ivy",
        "-c n",
        "-z",
        "-l walltime=x",
    ],
)
def test_every_option_has_a_reason(tmp_path: Path, option: str) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#PBS {option}\nmpirun ./x\n", image="openmpi")
    found = [one for one in batch.imported[0].draft.work.entries() if one.where.line == 2]
    assert found
    for entry in found:
        assert entry.why != "gangplan has no place for it"


def test_aprun_is_replaced_by_the_run_s_own_launcher(tmp_path: Path) -> None:
    batch = read(
        tmp_path, "#!/bin/bash\n#PBS -l select=2:ncpus=8\naprun -n 16 -N 8 -d 2 ./x --y\n", image="mpich"
    )
    values = batch.imported[0].draft.values
    assert (values["workers"], values["slots"], values["command"]) == (2, 8, ["./x", "--y"])


def test_each_task_of_an_array_becomes_a_spec(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#PBS -N grid\n#PBS -J 1-3\nmpirun ./x $PBS_ARRAY_INDEX\n"
    batch = read(tmp_path, text, image="openmpi")
    assert [one.draft.name for one in batch.imported] == [
        "migrated-grid-1",
        "migrated-grid-2",
        "migrated-grid-3",
    ]


def test_chunks_of_different_shape_are_refused(tmp_path: Path) -> None:
    batch = read(tmp_path, "#!/bin/bash\n#PBS -l select=1:ncpus=8+2:ncpus=4:ngpus=1\nmpirun ./x\n")
    (found,) = [one for one in batch.everything if one.rule == IMPORT_SCRIPT]
    assert (found.where.line, found.where.column) == (2, 9)


@pytest.mark.parametrize("folder", ["oneN", "/data/run"])
@pytest.mark.parametrize("pwd", ["", "--pwd /app "])
def test_a_folder_always_has_a_reason(tmp_path: Path, folder: str, pwd: str) -> None:
    text = f"#!/bin/bash\n#PBS -d {folder}\nmpirun apptainer exec {pwd}docker://ghcr.io/acme/t:1 ./x\n"
    batch = read(tmp_path, text)
    found = [one for one in batch.imported[0].draft.work.entries() if one.where.line == 2]
    assert found
    assert not [one for one in found if one.why == "gangplan has no place for it"]


BESIDE = """\
#!/bin/bash
#PBS -N half
#PBS -l select=1:ncpus=8
#PBS -l walltime=1:00:00
mpiexec -n 4 --ppn 4 --cpu-bind list:0:1:2:3 ./solve %s &
mpiexec -n 4 --ppn 4 --cpu-bind list:4:5:6:7 ./solve %s &
wait
"""


def test_parallel_steps_of_the_same_program_become_specs(tmp_path: Path) -> None:
    both = read(tmp_path, BESIDE % ("--fast", "--fast"), image="mpich").imported
    assert [one.draft.name for one in both] == ["migrated-half-1", "migrated-half-2"]
    assert all(one.draft.values["command"] == ["./solve", "--fast"] and one.is_right for one in both)
    for one in both:  # the other step's line has an entry, too
        told = [entry.why for entry in one.draft.work.entries() if "another step" in entry.why]
        assert told


@pytest.mark.parametrize(
    "text",
    [
        BESIDE % ("--serve", "--train"),
        (BESIDE % ("", "")).replace("--cpu-bind", "--hosts a,b --cpu-bind"),
        (BESIDE % ("", "")).replace("./solve", "torchrun train.py"),
    ],
)
def test_parallel_steps_that_belong_together_are_refused(tmp_path: Path, text: str) -> None:
    (finding,) = [one for one in read(tmp_path, text, image="mpich").everything if one.is_error]
    assert "several steps run at the same time" in finding.message


@pytest.mark.parametrize(
    ("select", "is_asked"),
    [
        ("select=1:ncpus=4", False),
        ("select=1:ncpus=4:mpiprocs=1", False),
        ("select=1:ncpus=4:mpiprocs=4", True),
        ("select=2:ncpus=4", True),
    ],
)
def test_a_job_of_one_rank_needs_no_launcher(select: str, is_asked: bool, tmp_path: Path) -> None:
    """A serial program runs once, in the source and in the run."""
    text = f"#!/bin/bash\n#PBS -l {select}\n#PBS -l walltime=1:00:00\npython x.py\n"
    batch = imported(tmp_path, "pbs", text, "job.pbs", image="openmpi")
    messages = [one.message for one in batch.everything]
    assert any("nothing in the command starts ranks" in message for message in messages) is is_asked
    assert batch.imported[0].draft.values["command"] == ["python", "x.py"]
