"""What nodes a batch script needs: whole ones, memory of the job and of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.sources import imported

# Options of Slurm, image -> cpu and memory of a worker; pool cpu has nodes of 60 and 240Gi, a100 of 124 and 1900Gi.
WHOLE: dict[str, tuple[str, str, object, object]] = {
    "all memory": ("-n 8 --mem=0", "openmpi", 4, "240Gi"),
    "nodes of its own": ("--ntasks-per-node=4 --exclusive", "openmpi", 60, "240Gi"),
    "nodes of its own, and what it needs": ("-n 8 -c 2 --mem=8G --exclusive", "openmpi", 8, "8Gi"),
    "nodes of one user": ("-n 8 --exclusive=user", "openmpi", 4, None),
    "all GPUs": ("--gpus-per-node=8 --exclusive --mem=0", "pytorch", 124, "1900Gi"),
    "a named pool": ("-n 8 --mem=0 -p a100", "openmpi", 4, "1900Gi"),
}
# Options of PBS -> memory of a worker.
MEMORY = {
    "nodes=4:ppn=8,mem=64gb": "16Gi",
    "mem=64gb,nodes=3:ppn=8": "21846Mi",
    "nodes=4:ppn=8,pmem=3gb": "24Gi",
    "nodes=4:ppn=8,vmem=40gb": "10Gi",
    "nodes=4:ppn=8,pvmem=1gb": "8Gi",
    "nodes=4:ppn=8,vmem=40gb,pmem=3gb": "24Gi",
    "nodes=4:ppn=8,vmem=100gb,mem=64gb": "16Gi",
    "ncpus=8,mem=64gb": "64Gi",
    "select=4:ncpus=8:mem=64gb": "64Gi",
    "select=4:ncpus=8:vmem=70gb:mem=64gb": "64Gi",
    "select=4:ncpus=8:vmem=70gb": "70Gi",
    "select=4:ncpus=8 -l place=scatter:excl": "240Gi",
}


def slurm(root: Path, options: str, image: str) -> Batch:
    return imported(
        root, "slurm", f"#!/bin/bash\n#SBATCH -N 2 {options}\nsrun ./a\n", "job.sbatch", image=image
    )


@pytest.mark.parametrize("case", WHOLE)
def test_whole_nodes_are_those_of_a_pool(tmp_path: Path, case: str) -> None:
    options, image, cpu, memory = WHOLE[case]
    (one,) = slurm(tmp_path, options, image).imported
    assert (one.draft.values.get("cpu"), one.draft.values.get("memory")) == (cpu, memory)
    assert not [found for found in one.findings if found.rule == IMPORT_ASKED]
    assert {entry.state for entry in one.source.account.entries()} <= {"mapped", "defaulted"}


def test_less_than_a_node_is_asked_about_and_differs(tmp_path: Path) -> None:
    (one,) = slurm(tmp_path, "--gpus-per-node=2 --exclusive", "pytorch").imported
    assert (one.draft.values["cpu"], one.draft.values["memory"]) == (31, "475Gi")
    asked = [(found.message, found.help) for found in one.findings if found.rule == IMPORT_ASKED]
    assert asked == [
        (
            "the job has all cores of its nodes (124 in a100, 124 in a100-spot), and a worker 31, the share of its GPUs",
            "Write what each worker needs, cpu: 124 for all of it.",
        ),
        (
            "the job has all memory of its nodes (1900Gi in a100, 1900Gi in a100-spot), and a worker 475Gi, the share of its GPUs",
            "Write what each worker needs, memory: 1900Gi for all of it.",
        ),
    ]
    assert one.runs["lab"].percent < 100


def test_nodes_that_no_pool_has_are_asked_about(tmp_path: Path) -> None:
    (one,) = slurm(tmp_path, "--ntasks-per-node=1 -c 200 --mem=0", "openmpi").imported
    assert "memory" not in one.draft.values
    assert any("no pool has nodes for its workers" in found.message for found in one.findings)
    assert one.runs["lab"].percent < 100


def test_steps_of_a_job_ask_for_no_nodes(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=8 --mem=8G\nsrun --exclusive --mem=0 ./a\n"
    (one,) = imported(tmp_path, "slurm", text, "job.sbatch", image="openmpi").imported
    assert (one.draft.values["cpu"], one.draft.values["memory"]) == (8, "8Gi")


@pytest.mark.parametrize("options", MEMORY)
def test_memory_of_pbs_is_that_of_a_worker(tmp_path: Path, options: str) -> None:
    text = f"#!/bin/bash\n#PBS -l {options}\nmpirun ./a\n"
    (one,) = imported(tmp_path, "pbs", text, "job.pbs", image="openmpi").imported
    assert one.draft.values["memory"] == MEMORY[options]
    assert {entry.state for entry in one.source.account.entries()} <= {"mapped", "dropped"}
