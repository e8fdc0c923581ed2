"""Open MPI parameters that decide how its launcher reaches the workers, and on which of them ranks start."""

from __future__ import annotations

import re
from collections.abc import Collection

from gangplan.plan.reserved import find_reserved_mca_variable

# Parameters by framework of Open MPI 4.1.8 (`ompi_info --all --level 9`: plm, rmaps, orte) and PRRTE 3.0.
_AGENTS = frozenset({"plm_rsh_agent", "plm_ssh_agent", "orte_rsh_agent", "pls_rsh_agent"})
_DAEMONS = frozenset({"orte_launch_agent", "prte_launch_agent"})
_RANK_FILES = frozenset({"rmaps_rank_file_path", "orte_rankfile", "rmaps_rankfile_path"})
MAPPING_PARAMETERS = frozenset({"rmaps_base_mapping_policy", "rmaps_default_mapping_policy"})
# Options of ssh(1) that change neither the host it connects to nor how that answers.
_QUIET = re.compile(
    r"-[qvxTaCn46]+|-o\s*(?:StrictHostKeyChecking|ConnectTimeout|ConnectionAttempts|LogLevel)\S*"
)
# Variables from which Open MPI concludes that a scheduler started it, with the one that must be set, too (tried with
# 4.1.8 and 5.0.11: ras/slurm and ras/tm; SLURM_JOB_ID and PBS_JOBID alone are harmless).
_SLURM = {"SLURM_JOBID": ("Slurm", "")}
_PBS = {"PBS_ENVIRONMENT": ("PBS", "PBS_JOBID"), "PBS_JOBID": ("PBS", "PBS_ENVIRONMENT")}
_SCHEDULERS = {"OpenMPI4": _SLURM, "OpenMPI5": {**_SLURM, **_PBS}}
_BEGINNINGS = ("OMPI_MCA_", "PRTE_MCA_")


def explain_broken_mpi_launch(name: str, value: str, port: int, component: str) -> str:
    """Return how a parameter, given by its name or as a variable, breaks the launch; mostly an empty text.

    `component` is the MPI's name for its launch over SSH: Open MPI 4 ends at `plm ssh`, Open MPI 5 at `plm
    rsh`.
    """
    for beginning in _BEGINNINGS:
        name = name.removeprefix(beginning)
    if name in _AGENTS and not _is_harmless_mpi_ssh_agent(value, port):
        return "changes how the workers are reached, which accept only SSH"
    if name == "plm" and not _has_ssh(value, component):
        return "disables SSH, the only way to reach the workers"
    if name in _DAEMONS:
        return "starts a program other than the MPI's own daemon on the workers"
    if name in _RANK_FILES:
        return "names hosts, but the run's hosts are only known when it starts"
    return ""


def explain_variable_of_scheduler(family: str | None, name: str, names: Collection[str]) -> str:
    """Return how a variable breaks Open MPI's launch because it has it ask a batch scheduler for hosts.

    `names` are all variables that are set. The value is irrelevant, even an empty one counts.
    """
    scheduler, needed = _SCHEDULERS.get(family or "", {}).get(name, ("", ""))
    if not scheduler or (needed and needed not in names):
        return ""
    with_ = f" with {needed}" if needed else ""
    return f"{with_} makes Open MPI ask {scheduler} for its hosts, which a run does not have, and its launch ends"


def is_default_mca_parameter(name: str, value: str) -> bool:
    """Return whether a parameter repeats what every run sets anyway, as scripts for clouds do."""
    return find_reserved_mca_variable(name).endswith("_no_tree_spawn") and value.lower() in (
        "1",
        "true",
        "yes",
        "on",
    )


def ssh_component_of(style: str) -> str:
    """Return Open MPI's name for its launch over SSH, by the style of its launcher."""
    return "rsh" if style == "openmpi" else "ssh"


def _has_ssh(value: str, component: str) -> bool:
    return (component in value.removeprefix("^").split(",")) != value.startswith("^")


def _is_harmless_mpi_ssh_agent(value: str, port: int) -> bool:
    """Return whether an agent is ssh with only harmless options; colons separate several agents."""
    program, _, options = value.partition(":")[0].strip().partition(" ")
    if program.rpartition("/")[2] != "ssh":
        return False
    rest = re.sub(rf"-p\s*{port}(?!\d)|-o\s*Port={port}(?!\d)", "", options)
    return not _QUIET.sub("", rest).strip()
