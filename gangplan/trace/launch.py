"""Causes of the words of the final command and of environment variables."""

from __future__ import annotations

from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext
from gangplan.trace.files import build_own_cause
from gangplan.trace.origins import trace_origins_to_causes

# Options of torchrun, and the fields of `elastic` that they contain.
_ELASTIC = {"--nnodes": ("min", "max"), "--max-restarts": ("restarts",)}
PLACEHOLDERS = ("{ranks}", "{workers}", "{slots}")


def trace_command_word_causes(context: TraceContext, index: int) -> list[Cause]:
    """Return the causes of a word of the final command (plan/command.py)."""
    launch = context.unit.launch
    place = launch.places[index]
    if place[:1] == ("command",):
        return _trace_spec_word_causes(context, int(place[1]))
    around = [*mark_indirect(context.framework()), *mark_indirect(context.mpi()), find_first_word(context)]
    if place:
        return [context.spec(*place), *around]
    if context.job.elastic and index and (fields := _ELASTIC.get(launch.argv[index].partition("=")[0])):
        return [*(context.spec("elastic", field) for field in fields), *around]
    if index == 0 or not context.job.uses_mpi:
        return [
            build_own_cause("gangplan starts the command on every rank"),
            *mark_indirect(context.framework()),
            find_first_word(context),
        ]
    return _trace_mpi_option_causes(context, launch.argv[index - 1], launch.argv[index], index)


def find_first_word(context: TraceContext) -> Cause:
    """Return the first word of the command as an indirect cause: it decides which launcher starts ranks."""
    is_list = isinstance(context.value("spec", "command"), list)
    return context.spec(*(("command", 0) if is_list else ("command",))).aside()


def _trace_spec_word_causes(context: TraceContext, index: int) -> list[Cause]:
    """Return the causes of a word from the spec, including the counts that are filled in."""
    written = context.value("spec", "command")
    path = ("command", index) if isinstance(written, list) else ("command",)
    causes = [context.spec(*path)]
    for mark, of in zip(PLACEHOLDERS, (context.ranks, context.workers, context.slots), strict=True):
        if mark in context.job.command[index]:
            causes += of()
    return causes


def _trace_mpi_option_causes(context: TraceContext, before: str, here: str, index: int) -> list[Cause]:
    """Return the causes of a word that gangplan adds to an MPI launcher."""
    around = [*mark_indirect(context.framework()), *mark_indirect(context.mpi()), find_first_word(context)]
    if before in ("-np", "-n"):
        return [*context.ranks(), *around]
    if before == "-ppn":
        return [*context.slots(), *around]
    if before in ("--bind-to", "-bind-to"):
        return [context.spec("mpi", "bindTo"), *around]
    if before == "--map-by":
        return [context.spec("mpi", "mapBy"), *around]
    if before == "--ssh-port":
        return [*context.of_image("ssh", "port"), *around]
    if before == "-x":
        return [*_trace_forwarded_variable_causes(context, here), *around]
    if here == "-x":
        following = mark_indirect(
            _trace_forwarded_variable_causes(context, context.unit.launch.argv[index + 1])
        )
        return [build_own_cause("what follows is a variable for all ranks"), *following, *around]
    if here == "-bind-to":
        around.append(context.spec("mpi", "bindTo").aside())
    return [build_own_cause("gangplan adds it, so that every rank starts where it belongs"), *around]


def _trace_forwarded_variable_causes(context: TraceContext, name: str) -> list[Cause]:
    words = f"Open MPI hands {name} to the workers only on request"
    if name in ("PATH", "LD_LIBRARY_PATH"):
        return [build_own_cause(words)]
    return [build_own_cause(words), *mark_indirect(trace_launcher_variable(context, name))]


def trace_launcher_variable(context: TraceContext, name: str) -> list[Cause]:
    """Return the causes of a variable of the launcher, by name; a missing one could be set in the spec."""
    found = next((one for one in context.unit.launch.launcher_env if one.name == name), None)
    if found is not None:
        return trace_origins_to_causes(context, found.origins)
    return [context.spec("env", name, because=f"env in the spec could set {name}")]


def trace_container_argument_causes(context: TraceContext, role: str, index: int) -> list[Cause]:
    """Return the causes of a word of a container's args: the command, or an MPI worker's SSH server."""
    if role == "launcher" or not context.job.uses_mpi:
        return trace_command_word_causes(context, index)
    if index == 0:
        return [*context.of_image("ssh", "server"), *mark_indirect(context.framework())]
    if index == 3:
        return [*context.of_image("ssh", "config"), *mark_indirect(context.framework())]
    if index > 3:
        return [
            build_own_cause("its sessions begin with what this pod alone knows"),
            *trace_own_values(context),
        ]
    return [
        build_own_cause("workers run an SSH server, which the launcher starts ranks through"),
        *mark_indirect(context.framework()),
    ]


def trace_own_values(context: TraceContext) -> list[Cause]:
    """Return the causes of variables with a value per pod, and those of an identity in a cloud."""
    found = [
        cause
        for one in context.job.env
        if one.is_own
        for cause in trace_origins_to_causes(context, one.origins)
    ]
    return mark_indirect([*found, context.spec("serviceAccount"), context.cluster("workloadIdentity")])
