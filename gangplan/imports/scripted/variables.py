"""Variables of schedulers, and their replacements in a run."""

from __future__ import annotations

from gangplan.imports.scripted.idioms import ALL_HOSTS, AllocationCounts
from gangplan.imports.scripted.pieces import ShellValue, find_variable_names
from gangplan.records import dataclass

# Variables that differ from rank to rank, by what starts the ranks: torchrun 2.9, a worker that starts
# torchrun itself (Trainer 2.3), Open MPI 5, Hydra (MPICH, Intel MPI), and a program alone on each worker. An
# empty text: there is no such variable.
_OF_RANK = {
    "rank": ("RANK", "PET_NODE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "NODE_RANK"),
    "local": ("LOCAL_RANK", "", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", ""),
    "node": ("GROUP_RANK", "PET_NODE_RANK", "", "", "NODE_RANK"),
}
_STARTS = ("torch", "torchrun", "mpi", "hydra", "plain")
RANKED = {
    "SLURM_PROCID": "rank",
    "PMI_RANK": "rank",
    "PMIX_RANK": "rank",
    "PALS_RANKID": "rank",
    "OMPI_COMM_WORLD_RANK": "rank",
    "SLURM_LOCALID": "local",
    "PALS_LOCAL_RANKID": "local",
    "SLURM_NODEID": "node",
    "SLURM_RELATIVE_NODEID": "node",
    "PALS_NODEID": "node",
}
# Variables that identify the run; runs use the label that all of their pods have.
JOB_ID_VARIABLES = frozenset(
    {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "SLURM_ARRAY_JOB_ID", "SLURM_STEP_ID", "SLURM_STEPID"}
)
# An old name of it, which a run may not have: Open MPI concludes from it that Slurm started it.
_SAME = {"SLURM_JOBID": "$SLURM_JOB_ID"}
RUN_LABEL_FIELD = "metadata.labels['gangplan.dev/run']"
# Variables that a script has under its scheduler, and that are known only then (sbatch(1) of Slurm 25.05, Torque too).
_PRESENT = {
    "SBATCH": "SLURM_JOB_ID SLURM_JOBID SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURMD_NODENAME SLURM_CLUSTER_NAME "
    "SLURM_SUBMIT_HOST SLURM_JOB_PARTITION SLURM_JOB_USER SLURM_JOB_UID",
    "PBS": "PBS_JOBID PBS_NODEFILE PBS_QUEUE PBS_O_QUEUE PBS_O_HOST PBS_O_LOGNAME PBS_ENVIRONMENT",
}
# Where the ranks of a run meet: known on its pods, to those of torch.
MEETING_POINT = frozenset({"MASTER_ADDR", "MASTER_PORT"})
HERE = frozenset({"SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "PBS_O_HOME", "SLURM_JOB_WORK_DIR"})
TEMPORARY_FOLDER_VARIABLES = frozenset(
    {"SLURM_TMPDIR", "SLURM_SCRATCH", "PBS_JOBDIR", "SLURM_TMP", "JOB_SCRATCH"}
)


@dataclass(frozen=True, slots=True)
class JobVariableFacts:
    """What the variables of a job contain besides counts."""

    name: str
    task: int | None = None
    tasks_of_array: int | None = None


def find_slurm_and_pbs_variables(counts: AllocationCounts, about: JobVariableFacts) -> dict[str, ShellValue]:
    """Return the variables of Slurm 25.05 and PBS 2022.1 whose values the allocation decides."""
    found: dict[str, int | None] = {
        "SLURM_NNODES": counts.nodes,
        "SLURM_JOB_NUM_NODES": counts.nodes,
        "SLURM_NTASKS": counts.tasks
        or (counts.nodes * counts.tasks_per_node if counts.tasks_per_node else None),
        "SLURM_NTASKS_PER_NODE": counts.tasks_per_node,
        "SLURM_CPUS_PER_TASK": counts.cpus_per_task,
        "SLURM_GPUS_PER_NODE": counts.gpus_per_node,
        "SLURM_GPUS_ON_NODE": counts.gpus_per_node,
        "SLURM_GPUS": counts.gpus_per_node * counts.nodes if counts.gpus_per_node else None,
        "SLURM_CPUS_ON_NODE": counts.cpus_per_task * (counts.tasks_per_node or 1)
        if counts.cpus_per_task
        else None,
        "PBS_NUM_NODES": counts.nodes,
        "PBS_NNODES": counts.nodes,
        "PBS_NP": counts.nodes * counts.tasks_per_node if counts.tasks_per_node else None,
        "PBS_NUM_PPN": counts.tasks_per_node,
        "NCPUS": counts.cpus_per_task,
        "OMP_THREADS": counts.cpus_per_task,
    }
    usual = {"SLURM_NTASKS": counts.nodes, "SLURM_CPUS_PER_TASK": 1, "SLURM_NTASKS_PER_NODE": 1}
    found |= {name: number for name, number in usual.items() if found[name] is None}
    found["SLURM_NPROCS"] = found["SLURM_NTASKS"]
    found["SLURM_TASKS_PER_NODE"] = found["SLURM_NTASKS_PER_NODE"]
    values: dict[str, ShellValue] = {
        name: str(number) for name, number in found.items() if number is not None
    }
    values |= {"SLURM_JOB_NAME": about.name, "PBS_JOBNAME": about.name}
    values |= dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST"), ALL_HOSTS)
    values |= {"SLURM_RESTART_COUNT": "0"}
    if about.task is not None:
        values |= dict.fromkeys(("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID"), str(about.task))
        values["SLURM_ARRAY_TASK_COUNT"] = str(about.tasks_of_array or 1)
    values |= dict.fromkeys(HERE, ".")
    values |= dict.fromkeys(TEMPORARY_FOLDER_VARIABLES, "/scratch")
    return values


def list_present_variables(mark: str, is_array: bool) -> set[str]:
    """Return the names that the scheduler of these option lines gives a value that only it knows."""
    return {*_PRESENT[mark].split(), *({"SLURM_ARRAY_JOB_ID"} if is_array and mark == "SBATCH" else ())}


def build_rank_variables(start: str) -> dict[str, str]:
    """Return the variables of a rank that replace the scheduler's, as a shell writes them."""
    place = _STARTS.index(start)
    found = {name: f"${_OF_RANK[role][place]}" for name, role in RANKED.items() if _OF_RANK[role][place]}
    return {**found, "SLURMD_NODENAME": "$HOSTNAME", **_SAME}


def list_names_of_source(name: str, script: str) -> list[str]:
    """Return the names under which a script reads a variable that a run has."""
    names = (name, *(old for old, new in _SAME.items() if new == f"${name}"))
    return sorted(find_variable_names([script]).intersection(names))


def build_batch_variables(start: str) -> dict[str, str]:
    """Return what these variables are where the script itself reads them, which the first of its tasks does.

    A worker that runs the script by itself has its own number instead.
    """
    own = {name: one for name, one in build_rank_variables("torchrun").items() if name in RANKED}
    return dict.fromkeys(RANKED, "0") if start in ("mpi", "hydra") else {**dict.fromkeys(RANKED, "0"), **own}


RANK_VARIABLES = tuple(map(build_rank_variables, _STARTS))
