"""The options that gangplan gives mpirun, and the user's (mpi.flags) that replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gangplan.model.job import Job
from gangplan.plan.launchers import (
    MPI_LAUNCHERS,
    FoundLauncher,
    LauncherReading,
    MpiGeneration,
    ParsedOption,
    UnreadableError,
    find_launchers,
    read_launcher_words,
)
from gangplan.plan.reach import MAPPING_PARAMETERS
from gangplan.plan.traffic import list_exported_variables

# Open MPI options that bind ranks to named cores, which rules out any other binding (PRRTE 3.0: "the
# PE=<list> mapping directive cannot be combined with a binding directive other than core or hwt").
_PINNING = frozenset({"cpu-set", "cpu-list", "cpus-per-proc", "cpus-per-rank", "rankfile", "rf"})
_INTEL_PINS = frozenset({"I_MPI_PIN_DOMAIN", "I_MPI_PIN_PROCESSOR_LIST"})
# Intel MPI's names of the things that ranks are bound to; it has no options for that (-bind-to is ignored).
_INTEL_DOMAIN = {"core": "core", "socket": "socket", "numa": "numa"}


def mpi_family_of(job: Job) -> MpiGeneration | None:
    """Return the family and generation of the image's MPI, which decide its options; None without MPI."""
    if job.image.mpi is None:
        return None
    if job.image.mpi.family == "OpenMPI":
        return "OpenMPI4" if job.image.mpi.major < 5 else "OpenMPI5"
    return "MPICH" if job.image.mpi.family == "MPICH" else "IntelMPI"


def read_mpi_flags(job: Job) -> LauncherReading:
    """Return mpi.flags as the image's launcher reads them, before a program named ''."""
    return read_launcher_words(
        MPI_LAUNCHERS[mpi_family_of(job) or "OpenMPI5"], ("mpirun", *job.mpi_flags, ""), 0
    )


def is_binding_option(use: ParsedOption) -> bool:
    """Return whether an option binds ranks by itself."""
    name, value = use.option.name, use.value.lower()
    if use.option.role == "parameter" and use.value in MAPPING_PARAMETERS:
        name, value = "map-by", use.values[-1].lower()
    return name in _PINNING or (name == "map-by" and ("pe=" in value or "pe-list=" in value))


def find_launchers_of_job(job: Job) -> list[FoundLauncher]:
    """Return the launchers that a job's command starts. Raises UnreadableError for a script that no shell could read."""
    given = {one.name: one.value for one in job.env if one.is_plain}
    return find_launchers(job.command, mpi_family_of(job), given)


def is_pinned_by_user(job: Job) -> bool:
    """Return whether the user pins ranks in a way that the run's own policy, not to bind, would switch off.

    Open MPI ignores PE=N under that policy, and ends at pe-list (4.1.8 and 5.0.11); an option --bind-to wins
    over it. I_MPI_PIN=off wins over all other settings of Intel MPI (2021.18).
    """
    family = mpi_family_of(job)
    try:
        found = find_launchers_of_job(job)
    except UnreadableError:
        found = []
    readings = [read_mpi_flags(job), *(one.reading for one in found if one.start.launcher.kind == "mpi")]
    if family != "IntelMPI":
        return any(is_binding_option(use) for one in readings for use in one.uses)
    names = {one.name for one in job.env} | {name for one in found for name, _ in one.peeled.sets}
    names |= {name for one in found if one.script for name in one.script.sets}
    names |= {use.value.partition("=")[0] for one in readings for use in one.of("env")}
    return bool(names & _INTEL_PINS) or any(use.value != "none" for one in readings for use in one.of("bind"))


def build_unbinding_options(
    job: Job, reading: LauncherReading, is_pinned: Callable[[], bool]
) -> Iterator[str]:
    """Yield what keeps an mpirun of the user's from binding, where no variable does because another one pins."""
    binds = any(use.option.role == "bind" or is_binding_option(use) for use in reading.uses)
    if reading.launcher.style != "hydra" and not binds and is_pinned():
        yield from ("--bind-to", job.bind_to)


def list_open_mpi_forwarded_variables(job: Job, exported: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the variables that Open MPI must pass on, because sshd passes on none of the container's.

    `exported` are those that the command adds to the launcher's. MPICH and Intel MPI carry the launcher's
    environment by themselves. Variables with a value per pod come from the sessions of that pod's SSH server
    (generators/runtime.py).
    """
    shared = (variable.name for variable in job.env if not variable.is_own)
    own = {"HOSTNAME", *(variable.name for variable in job.env if variable.is_own)}
    added = (name for name in exported if name not in own)
    return ("PATH", "LD_LIBRARY_PATH", *shared, *list_exported_variables(job), *added)


def build_open_mpi_export_options(
    job: Job, reading: LauncherReading, names: tuple[str, ...], part: int = 0
) -> Iterator[str]:
    """Yield -x for each of the names that the options of a part do not carry yet (Open MPI only)."""
    if job.image.mpi is None or job.image.mpi.family != "OpenMPI":
        return
    uses = (use for use in reading.of("env") if use.part == part)
    has = {value.partition("=")[0] for use in uses for value in use.values}
    for name in dict.fromkeys(names):
        if name not in has:
            yield from ("-x", name)


def build_own_mpirun_options(job: Job) -> tuple[str, ...]:
    """Return gangplan's mpirun options before the user's flags: ranks, binding, layout and variables.

    An option that the flags contain is left out: Open MPI 5 and Hydra end a run whose option appears twice,
    Open MPI 4 takes one of them (tried with 5.0.11, MPICH 5.0.2, Intel MPI 2021.18.1, 4.1.8).
    """
    flags = read_mpi_flags(job)
    has: set[str] = {use.option.role for use in flags.uses}
    binds = "bind" in has or any(is_binding_option(use) for use in flags.uses)
    if flags.launcher.style == "hydra":
        return tuple(_build_hydra_options(job, has, binds))
    count = () if "count" in has else ("-np", str(job.ranks))
    # Pods of one node see the same cores, so binding would put their ranks on top of each other.
    binding = () if binds else ("--bind-to", job.bind_to)
    mapping = () if has & {"map", "per-host"} else ("--map-by", job.map_by)
    return (
        *count,
        *binding,
        *mapping,
        *build_open_mpi_export_options(job, flags, list_open_mpi_forwarded_variables(job)),
    )


def _build_hydra_options(job: Job, has: set[str], binds: bool) -> Iterator[str]:
    """Yield Hydra's options.

    Hydra fills each host with -ppn ranks, so a value of 1 deals ranks out in turn.
    """
    if "count" not in has:
        yield from ("-n", str(job.ranks))
    if "per-host" not in has:
        yield from ("-ppn", "1" if job.map_by == "node" else str(job.slots))
    if job.bind_to == "none" or binds:
        return
    if mpi_family_of(job) == "IntelMPI":
        yield from ("-genv", "I_MPI_PIN_DOMAIN", _INTEL_DOMAIN[job.bind_to])
        return
    yield from ("-bind-to", job.bind_to)
    if job.map_by not in ("slot", "node") and "map" not in has:
        yield from ("-map-by", job.map_by)
