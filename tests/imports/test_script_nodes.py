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
# Options of Slurm -> workers, GPUs, cores and memory of a worker, and what is asked about them.
ALLOCATIONS: dict[str, tuple[tuple[object, object, object, object], str]] = {
    "-N4 --gres=gpu:8": ((4, 8, None, None), ""),
    "-N4 --gres=gpu:a100:8(S:0-1)": ((4, 8, None, None), ""),
    "-N4 --gres=gpu": ((4, 1, None, None), ""),
    "-N4 --gpus=32": ((4, 8, None, None), ""),
    "--gpus=32 --gpus-per-node=8": ((4, 8, None, None), ""),
    "--gpus=32": ((4, 8, None, None), "the scheduler chooses the number of nodes; the run has 4 with 8 GPUs each"),
    "-n 4 --gpus-per-task=8 -c 16": ((4, 8, 16, None), "the scheduler chooses the number of nodes"),
    "-n 32 --gpus-per-task=1": ((4, 8, None, None), "the scheduler chooses the number of nodes"),
    "-n 32 --ntasks-per-gpu=1": ((4, 8, None, None), "the scheduler chooses the number of nodes"),
    "-n 8 --gpus-per-task=1": ((1, 8, None, None), ""),
    "-n 4 --gres=gpu:8": ((1, 8, None, None), "the scheduler chooses the number of nodes; the run has 1 with 8 GPUs each"),
    "-n 4 --ntasks-per-node=1 --gres=gpu:8": ((4, 8, None, None), ""),
    "-N4 --tres-per-task=cpu=64,gres/gpu=8": ((4, 8, 64, None), ""),
    "-N4 --tres-per-task=gres/gpu:a100:8": ((4, 8, None, None), ""),
    "-N4 --gpus-per-socket=4 --sockets-per-node=2": ((4, 8, None, None), ""),
    "-N4 --gpus-per-socket=4": ((4, None, None, None), "without --sockets-per-node it says no number of GPUs"),
    "-N4 --gres=gpu:a100:4,gpu:a100:4": ((4, 8, None, None), ""),
    "-N4 --gres=shard:4": ((4, None, None, None), "--gres: shard:4 is not a number of whole GPUs"),
    "-N4 --gpus-per-node=8 --mincpus=64": ((4, 8, 64, None), ""),
    "-N4 --gpus-per-node=8 --cpus-per-gpu=8 --mem-per-cpu=4G": ((4, 8, 64, "256Gi"), ""),
    "-N4 --gpus-per-node=8 --ntasks-per-node=1 -c 64 --mem-per-cpu=4G": ((4, 8, 64, "256Gi"), ""),
    "-N4 --gpus-per-node=8 --mem-per-gpu=60G": ((4, 8, None, "480Gi"), ""),
    "-N4 --gpus-per-node=8 --mem-per-cpu=4G": ((4, 8, None, None), "only the old cluster knows how many cores the job has on a node"),
    "-N4 --exclusive --mem-per-cpu=4G": ((4, None, 60, "240Gi"), "only the old cluster knows how many cores"),
    "-N4 --mem=64Gi": ((4, None, None, None), "--mem: '64Gi' is not an amount of memory"),
    "-N2-4 --gpus-per-node=8": ((2, 8, None, None), "Slurm gives the job from 2 to 4 nodes, and a run has 2"),
}  # fmt: skip
# The launch -> ranks of a worker with 8 GPUs, of scripts whose scheduler starts one task on each of four nodes.
RANKS: dict[str, tuple[str, int]] = {
    "srun deepspeed train.py": ("deepspeed", 8),
    "deepspeed --num_gpus 8 train.py": ("deepspeed", 8),
    "deepspeed --num_nodes 4 --hostfile hosts train.py": ("deepspeed", 8),
    "deepspeed --hostfile hosts --launcher slurm train.py": ("deepspeed", 8),
    "python -m deepspeed.launcher.runner train.py": ("deepspeed", 8),
    "scontrol show hostnames | sed 's/$/ slots=4/' > hosts\ndeepspeed -H hosts train.py": ("deepspeed", 4),
    "deepspeed --include a:0,1@b:2,3 train.py": ("deepspeed", 2),
    "srun torchrun --nproc_per_node=8 train.py": ("pytorch", 8),
    "srun torchrun --nproc-per-node=gpu train.py": ("pytorch", 8),
    "srun torchrun --nproc_per_node=4 train.py": ("pytorch", 4),
    "srun torchrun train.py": ("pytorch", 1),
    "srun bash -c 'torchrun --nproc_per_node=8 train.py'": ("pytorch", 8),
    "srun accelerate launch --num_processes 32 --num_machines 4 train.py": ("pytorch", 8),
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


@pytest.mark.parametrize("options", ALLOCATIONS)
def test_a_worker_has_what_slurm_gives_a_node(tmp_path: Path, options: str) -> None:
    wanted, question = ALLOCATIONS[options]
    (one,) = imported(
        tmp_path, "slurm", f"#!/bin/bash\n#SBATCH {options}\nsrun ./a\n", "job.sbatch", image="openmpi"
    ).imported
    assert tuple(one.draft.values.get(name) for name in ("workers", "gpus", "cpu", "memory")) == wanted
    asked = [found.message for found in one.findings if found.rule == IMPORT_ASKED]
    assert [question in message for message in asked] == [True] * bool(question), asked


@pytest.mark.parametrize("body", RANKS)
def test_a_launcher_starts_its_own_ranks_on_a_node(tmp_path: Path, body: str) -> None:
    image, ranks = RANKS[body]
    text = f"#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=1 --gpus-per-node=8\n{body}\n"
    (one,) = imported(tmp_path, "slurm", text, "job.sbatch", image=image).imported
    assert (one.draft.values["workers"], one.draft.values.get("slots", 8)) == (4, ranks)
    assert not [found for found in one.findings if found.is_error], one.findings


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("-N 4 --exclusive\nexport NCCL_DEBUG=INFO\nsrun torchrun --nproc_per_node=4 train.py", True),
        ("-N 4 -p rtx\nnvidia-smi\nsrun torchrun --nproc_per_node=4 train.py", True),
        ("-N 4 --gres=gpu:4\nnvidia-smi\nsrun torchrun --nproc_per_node=4 train.py", False),
        ("-N 4\n# unset CUDA_VISIBLE_DEVICES\nsrun ./a", False),
    ],
)
def test_gpus_that_no_option_asks_for_are_asked_about(tmp_path: Path, text: str, asks: bool) -> None:
    batch = imported(tmp_path, "slurm", f"#!/bin/bash\n#SBATCH {text}\n", "job.sbatch", image="pytorch")
    assert any("asks for no GPUs" in one.message for one in batch.everything) is asks
