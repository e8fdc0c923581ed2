"""Prepare everything that a job's run on this machine needs, or raise an error that says what cannot run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from gangplan.errors import ToolError, UserError
from gangplan.findings import Finding
from gangplan.generators import generate_run_objects
from gangplan.generators.scripts import generate_launch_script_config_map
from gangplan.local.copies import copy_program_folder
from gangplan.local.mpis import LocalMpi, choose_local_mpi, describe_mpi
from gangplan.local.places import (
    MPI_USER_HOME,
    LocalPlaces,
    create_local_launch_paths,
    find_local_program_folder,
    map_mounts_to_local_folders,
    write_local_launch_scripts,
)
from gangplan.local.pods import LocalPods, build_local_pods, list_given_variables
from gangplan.local.scale import LocalShape, choose_local_shape, scale_down_job_to_local_shape
from gangplan.local.stage import (
    MARK_FILE,
    LocalStage,
    can_set_host_names,
    check_local_programs,
    find_local_python,
    guard_folder_against_local_run,
    has_mpi4py_module,
    has_non_loopback_interface,
)
from gangplan.local.tagged import tag_rank_programs
from gangplan.model.job import Job
from gangplan.plan import RunPlan, plan_run
from gangplan.records import dataclass
from gangplan.tools.lasting import find_free_port
from gangplan.waivers import Waivers
from gangplan.workspace import Spec

# Frameworks whose workers need addresses that one machine cannot have twice.
_REFUSED = {
    "tensorflow": "each of its workers listens on the same port of a pod of its own",
    "paddle": "its launcher keeps what ranks print in files that its workers would share here",
}
# Launcher programs that come with no MPI.
_SOURCES = {
    "torchrun": "It comes with PyTorch: pip install torch, in the environment that --python or PATH names.",
    "horovodrun": "It comes with Horovod: pip install horovod; or try only the program, without horovodrun.",
    "deepspeed": "It comes with DeepSpeed: pip install deepspeed; or try only the program, without deepspeed.",
    "accelerate": "It comes with Hugging Face Accelerate: pip install accelerate.",
}


@dataclass(frozen=True, slots=True)
class LocalRunOptions:
    """The user's options for a local run; `here` is the current folder, `workspace` that of the specs."""

    workers: int | None
    ranks: int | None
    paths: Mapping[str, Path]
    mounts: Mapping[str, Path]
    python: str | None
    here: Path
    workspace: Path


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start; `notes` say how it differs from that on the cluster."""

    unit: RunPlan
    shape: LocalShape
    cast: LocalPods
    stage: LocalStage
    secrets: tuple[str, ...]
    notes: tuple[str, ...]


def prepare_local_run(
    job: Job, spec: Spec, wish: LocalRunOptions, root: Path, waivers: Waivers = ()
) -> tuple[PreparedRun | None, list[Finding]]:
    """Prepare a run in `root`, an empty folder; return the findings of its plan if it cannot run.

    Raises UserError and ToolError for anything that this machine lacks.
    """
    _check_framework_runs_locally(job)
    given, missing = _collect_local_values_of_variables(job)
    if missing:
        shown = "; ".join(f"{name} ({list_given_variables(job)[name]})" for name in missing)
        help = f"Set {'it' if len(missing) == 1 else 'them'} in your environment: export {missing[0]}=..."
        raise UserError(f"variables come from the cluster and are not set here: {shown}", help)
    shape = choose_local_shape(job, wish.workers, wish.ranks)
    mpi = _choose_local_mpi_for_job(job, shape.workers)
    made = scale_down_job_to_local_shape(job, shape, mpi.build if mpi else None)
    unit, findings = plan_run(made, spec, waivers)
    if unit is None:
        return None, findings
    stage, notes = _create_local_stage(made, wish, root, mpi)
    programs = {name: _SOURCES[name] for name in (unit.launch.program,) if name in _SOURCES}
    check_local_programs(programs)
    words = tag_rank_programs(made, unit.launch, stage.rank_program)
    unit = replace(unit, launch=replace(unit.launch, argv=words))
    cast = build_local_pods(
        made, [*generate_run_objects(unit), generate_launch_script_config_map(made)], given, find_free_port()
    )
    stage = replace(stage, places=write_local_launch_scripts(stage.places, cast.scripts))
    if not (made.uses_mpi or made.image.framework == "torch"):
        pods = (
            # The programs of most commands have their tag by now; only some launchers' have not.
            replace(pod, argv=_tag_worker_command(pod.argv, stage.rank_program))
            if stage.rank_program not in pod.argv
            else pod
            for pod in cast.pods
        )
        cast = replace(cast, pods=tuple(pods))
    stage.write(cast)
    if mpi and _is_python_job(made) and not has_mpi4py_module(stage.python):
        notes.append(f"{stage.python} has no mpi4py: pip install mpi4py, if the program needs it")
    secrets = tuple(given[one.name] for one in job.env if one.secret)
    return PreparedRun(
        unit, shape, cast, stage, secrets, (*_describe_how_local_run_differs(job, mpi), *notes)
    ), []


def _check_framework_runs_locally(job: Job) -> None:
    reason = _REFUSED.get(job.image.framework)
    if reason:
        raise UserError(
            f"a job of framework {job.image.framework} cannot be run on one machine: {reason}",
            "Run the program by hand, alone, with a few steps.",
        )


def _choose_local_mpi_for_job(job: Job, workers: int) -> LocalMpi | None:
    """Return an MPI that works here for a job. Raises ToolError if there is none.

    Without a host name for each worker, Open MPI 5 hangs (5.0.11: PRRTE takes all nodes for one); with no
    network but the loopback, its daemons never meet.
    """
    if not job.uses_mpi or job.image.mpi is None:
        return None
    path = os.environ.get("PATH", "")
    mpi = choose_local_mpi(job.image.mpi, path)
    named = workers == 1 or can_set_host_names()
    if not _needs_hosts(mpi) or (named and has_non_loopback_interface()):
        return mpi
    try:
        return choose_local_mpi(job.image.mpi, path, lambda one: not _needs_hosts(one))
    except ToolError:
        needs = ("a network other than the loopback, and this machine has none", "Connect to one")
        if not named:
            needs = ("a host name for each worker, which this system does not allow", _NAMES)
        raise ToolError(
            f"{mpi.words} needs {needs[0]}", f"{needs[1]}, or add another MPI: pip install mpich."
        ) from None


_NAMES = "Allow user namespaces, take --workers 1"


def _needs_hosts(mpi: LocalMpi) -> bool:
    return mpi.build.family == "OpenMPI" and mpi.build.major > 4


def _collect_local_values_of_variables(job: Job) -> tuple[dict[str, str], list[str]]:
    """Return the values from the user's environment of variables that the cluster would read from secrets and
    ConfigMaps, and the names that are missing."""
    names = list_given_variables(job)
    return {name: os.environ[name] for name in names if name in os.environ}, [
        name for name in names if name not in os.environ
    ]


def _create_local_stage(
    job: Job, wish: LocalRunOptions, root: Path, mpi: LocalMpi | None
) -> tuple[LocalStage, list[str]]:
    """Set up the folder of the run, with mounts and program in place; return it with notes about them."""
    moved, notes = map_mounts_to_local_folders(job, root, wish.mounts)
    workdir = job.workdir or MPI_USER_HOME
    source, why = find_local_program_folder(job.command, workdir, wish.paths, wish.workspace, wish.here)
    folder = root / "work"
    copied = copy_program_folder(source, folder, MARK_FILE)
    if copied.has_links:
        given = [place for path, place in wish.paths.items() if path != workdir]
        guard_folder_against_local_run(root, source, [*given, *wish.mounts.values()])
    if copied.too_big:
        notes.append(_describe_links(copied.too_big))
    shown = source.relative_to(wish.workspace) if source.is_relative_to(wish.workspace) else source
    notes.insert(
        0, f"the program is that of {shown.as_posix() if source != wish.here else 'this folder'} ({why})"
    )
    moved |= {path: str(place) for path, place in wish.paths.items() if path != workdir}
    moved |= {
        workdir: str(folder),
        job.image.ssh.keys: str(root / "home/.ssh"),
        **create_local_launch_paths(root),
    }
    python = find_local_python(mpi is not None and _is_python_job(job), wish.python)
    return LocalStage(root, LocalPlaces(moved, folder), mpi, python, token_hex(4)), notes


def _describe_links(paths: Sequence[str]) -> str:
    first, rest = paths[0], len(paths) - 1
    words = f"{first} is" if not rest else f"{first} and {rest} more are"
    return f"{words} too big to copy; the program sees yours, read-only where the system allows namespaces"


def _is_python_job(job: Job) -> bool:
    return any("python" in word for word in job.command)


def _tag_worker_command(argv: Sequence[str], word: str) -> tuple[str, ...]:
    """Return a worker's words with the tag before its program, after a shell, its script and the options."""
    at = argv.index("--") + 1
    return (*argv[:at], word, *argv[at:])


def _describe_how_local_run_differs(job: Job, mpi: LocalMpi | None) -> list[str]:
    """Return how the run here differs from that on the cluster."""
    found = []
    own = job.image.mpi
    if mpi and own:
        if mpi.build.family != own.family:
            flags = ", without the flags of mpi.flags" if job.mpi_flags else ""
            found.append(
                f"{mpi.words} instead of {describe_mpi(own)}, which the image has: another MPI{flags}, launched its own way"
            )
        elif mpi.build.version != own.version:
            found.append(f"{mpi.words}; the image has {describe_mpi(own)}")
        if own.setup:
            found.append(f"{own.setup} of the image is not read")
    if job.gpus:
        found.append(f"without the {job.gpus} GPU{'s' if job.gpus > 1 else ''} of each worker")
    if job.image.preflight:
        found.append("without the preflight, which looks at the nodes of a cluster")
    if job.roles:
        found.append(f"without the pods of {', '.join(role.name for role in job.roles)}")
    if job.containers:
        found.append(
            f"without {', '.join(one.name for one in job.containers)}, which run next to the program"
        )
    return found
