"""The host files of runs that start with MPI, as the launcher will find them; what others use instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.local.trainer import build_host_name, format_hostfile
from gangplan.pipeline.worker import PlannedRun
from gangplan.plan.names import HOSTFILE_PATH, HYDRA_HOSTFILE_PATH
from gangplan.records import dataclass

SHAPE = 1
_OPEN_MPI = "OpenMPI"
# How the workers of other frameworks find each other; {first} is the first of them.
_INSTEAD = {
    "torch": "torchrun meets at {first}, which Trainer writes into PET_MASTER_ADDR",
    "jax": "workers meet at {first}, which Trainer writes into JAX_COORDINATOR_ADDRESS",
    "paddle": "its launchers meet at {first}, which PADDLE_MASTER names",
    "tensorflow": "every pod has the addresses of all in TF_CONFIG",
    "xgboost": "workers meet at {first}, which Trainer writes into DMLC_TRACKER_URI",
}


@dataclass(frozen=True, slots=True)
class HostFile:
    """A host file in the launcher's pod: its path, who writes it, and its lines."""

    path: str
    by: str
    lines: tuple[str, ...]


def format_hostfiles_of_run(run: PlannedRun) -> list[HostFile]:
    """Return the host files of a run: that of the controller, and that of the launch script if it differs.

    Hydra (Intel MPI, MPICH) reads the second; Open MPI reads the first. A run without MPI has none.
    """
    job, layout, name = run.unit.job, run.unit.layout, _format_run_name(run)
    if not job.uses_mpi or job.image.mpi is None:
        return []
    is_hydra = job.image.mpi.family != _OPEN_MPI
    if job.backend.by_jobset:
        found = [HostFile(HOSTFILE_PATH, "Trainer", tuple(_render_trainer_hostfile(run).splitlines()))]
        own = build_host_name(name, "launcher", 0)
    else:
        names = [f"{name}-worker-{number}" for number in range(layout.node_pods)]
        own = f"{name}-launcher"
        names = [own, *names] if job.launcher_runs_ranks else names
        found = [
            HostFile(
                HOSTFILE_PATH, "the MPI operator", tuple(_render_mpi_operator_hostfile(run, names, is_hydra))
            )
        ]
    read = tuple(_rewrite_line_for_hydra(line, own) for line in found[0].lines)
    if is_hydra and read != found[0].lines:
        found.append(HostFile(HYDRA_HOSTFILE_PATH, "the launch script, for Hydra", read))
    return found


def _format_run_name(run: PlannedRun) -> str:
    """Return the run's name, with the form of the time in those that a schedule starts."""
    job = run.unit.job
    return f"{job.name}-YYYYMMDD-HHMM" if job.is_dated else run.name


def _render_trainer_hostfile(run: PlannedRun) -> str:
    """Return the text that Trainer writes: replicated jobs in their order, in which the launcher is last."""
    job, layout, run_name = run.unit.job, run.unit.layout, _format_run_name(run)
    names = [build_host_name(run_name, "node", index) for index in range(layout.node_pods)]
    names += [build_host_name(run_name, "launcher", 0)] if job.launcher_runs_ranks else []
    return format_hostfile((f"{name}.{run_name}" for name in names), layout.slots)


def _render_mpi_operator_hostfile(run: PlannedRun, names: Sequence[str], is_hydra: bool) -> list[str]:
    """Return the lines that the MPI operator writes (v0.8.2, newConfigMap): the launcher first, by its
    family."""
    form = "{}:{}" if is_hydra else "{} slots={}"
    domain = f"{_format_run_name(run)}.{run.unit.job.namespace}.svc"
    return [form.format(f"{name}.{domain}", run.unit.layout.slots) for name in names]


def _rewrite_line_for_hydra(line: str, own: str) -> str:
    """Return a line as templates/launch/hydra.sh.j2 rewrites it: `host:N`, the launcher by its short name."""
    name, _, slots = line.replace(" slots=", ":").rpartition(":")
    return f"{own if name.partition('.')[0] == own else name}:{slots}"


def hostfile_text(runs: Sequence[PlannedRun]) -> str:
    """Return the host files of each run, with comments that say whose they are."""
    return "\n".join(_format_hostfile_block(run) for run in runs)


def _format_hostfile_block(run: PlannedRun) -> str:
    lines = [f"# {run.unit.job.source} on {run.cluster}: {run.unit.job.namespace}/{_format_run_name(run)}"]
    for file in format_hostfiles_of_run(run):
        lines += [f"# {file.path}, written by {file.by}", *file.lines]
    if instead := _format_note_without_hostfile(run):
        lines.append(f"# no host file: {instead}")
    return "".join(f"{line}\n" for line in lines)


def _format_note_without_hostfile(run: PlannedRun) -> str:
    """Return what a run without MPI uses in place of a host file; empty for MPI."""
    job = run.unit.job
    if job.uses_mpi:
        return ""
    first = f"{build_host_name(_format_run_name(run), 'node', 0)}.{_format_run_name(run)}"
    words = _INSTEAD.get(job.image.framework, "its pods start alone, and nothing tells them of each other")
    return f"{job.image.name} is {job.image.framework}, not MPI; {words.format(first=first)}"


def build_hostfile_json(runs: Sequence[PlannedRun]) -> dict[str, Any]:
    """Return the host files as data; `instead` says what a run without MPI uses."""
    return {
        "version": SHAPE,
        "runs": [
            {
                "spec": run.unit.job.source,
                "cluster": run.cluster,
                "namespace": run.unit.job.namespace,
                "name": _format_run_name(run),
                "files": [
                    {"path": file.path, "by": file.by, "lines": list(file.lines)}
                    for file in format_hostfiles_of_run(run)
                ],
                "instead": _format_note_without_hostfile(run) or None,
            }
            for run in runs
        ],
    }
