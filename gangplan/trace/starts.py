"""Causes of a container's command: the words that start a launch script, its options, and the preflight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gangplan.plan.environment import VISIBLE_GPUS_VARIABLE
from gangplan.plan.names import HOSTFILE_PATH
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext
from gangplan.trace.files import build_own_cause
from gangplan.trace.launch import find_first_word, trace_launcher_variable, trace_own_values
from gangplan.trace.origins import trace_origins_to_causes

# /bin/sh, -c, the text that checks the scripts, and the name of the script; options follow until this word.
_SCRIPT, _LAST = 3, "--"


def trace_container_command(
    context: TraceContext, role: str, words: Sequence[str], index: int
) -> list[Cause]:
    """Return the causes of a word of a container's command (generators/launch.py)."""
    around = mark_indirect(context.framework()) if role == "worker" else []
    if index < _SCRIPT:
        says = "the mounted launch scripts are those of the run, or it ends: one of them starts next"
        return [build_own_cause(says), *around]
    if index == _SCRIPT:
        return [build_own_cause(_describe_start_script(context, role)), *around]
    end = words.index(_LAST) if _LAST in words else len(words)
    if index > end:
        return _trace_preflight_word_causes(context, words, end, index)
    if index == end:
        return [build_own_cause("what follows is what the script starts"), *around]
    found = OPTIONS.get(words[index].partition("=")[0])
    return [*(found(context) if found else [build_own_cause("an option of the launch script")]), *around]


def _describe_start_script(context: TraceContext, role: str) -> str:
    if role == "launcher":
        return f"the launcher waits until all hosts of {HOSTFILE_PATH} answer, then starts the command"
    starts = "its SSH server" if context.job.uses_mpi else "the command"
    return f"a worker starts {starts}, and passes SIGTERM on to its ranks"


# Options


def _trace_mpi_option_causes(context: TraceContext) -> list[Cause]:
    return [
        build_own_cause("how the image's MPI takes hosts and options"),
        *mark_indirect(context.mpi()),
        _trace_backend_cause(context),
    ]


def _trace_pod_hold_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of whether a failed pod waits, so that an attempt that the platform ended is
    distinguishable."""
    says = "a failed pod stays a little, so that one that was taken away is seen to fail first"
    version = context.cluster("versions", "trainer")
    around = mark_indirect(
        [*context.chosen("retries"), version, context.spec("elastic"), _trace_backend_cause(context)]
    )
    return [build_own_cause(says), *around]


def _trace_ssh_wait_causes(context: TraceContext) -> list[Cause]:
    return [context.cluster("podsReadyTimeout"), context.gang().aside(), _trace_backend_cause(context)]


def _trace_mpi_setup_causes(context: TraceContext) -> list[Cause]:
    return [context.image("mpi", "setup"), *mark_indirect(context.chosen("image"))]


def _trace_launcher_rank_causes(context: TraceContext) -> list[Cause]:
    return [context.spec("launcher", "runsRanks"), *mark_indirect(context.framework())]


def _trace_host_list_causes(context: TraceContext) -> list[Cause]:
    says = "the MPI operator would name a list of hosts that does not know the launcher"
    return [build_own_cause(says), *mark_indirect(context.mpi()), _trace_backend_cause(context)]


def _trace_unset_variable_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of the variables that the launcher keeps to itself: they hold for its own pod
    alone."""
    says = "variables that hold for the launcher's pod alone, and that ranks elsewhere must not get"
    ranks = context.spec("launcher", "runsRanks").aside()
    hidden = mark_indirect(
        [
            *trace_launcher_variable(context, VISIBLE_GPUS_VARIABLE),
            *context.pool(context.job.launcher_pool.name),
        ]
    )
    around = [
        *mark_indirect(context.mpi()),
        *mark_indirect(context.framework()),
        find_first_word(context),
        ranks,
    ]
    return [
        build_own_cause(says),
        *trace_own_values(context),
        *around,
        *hidden,
        _trace_backend_cause(context),
    ]


def _trace_deepspeed_option_causes(context: TraceContext) -> list[Cause]:
    says = "variables for all ranks, which DeepSpeed reads from a file"
    return [
        build_own_cause(says),
        *mark_indirect(_trace_job_env_causes(context)),
        *mark_indirect(context.framework()),
        find_first_word(context),
    ]


def _trace_pod_variable_causes(context: TraceContext) -> list[Cause]:
    return [
        build_own_cause("variables with a value of their own in each pod, for ranks that start by SSH"),
        *_trace_ssh_variable_causes(context),
    ]


def _trace_cloud_variable_causes(context: TraceContext) -> list[Cause]:
    return [
        build_own_cause("variables that the cloud gives to pods, for ranks that start by SSH"),
        *_trace_ssh_variable_causes(context),
    ]


def _trace_ssh_variable_causes(context: TraceContext) -> list[Cause]:
    return [*trace_own_values(context), *mark_indirect(context.framework())]


def _trace_backend_cause(context: TraceContext) -> Cause:
    return context.spec("backend").aside()


def _trace_job_env_causes(context: TraceContext) -> list[Cause]:
    return [cause for one in context.job.env for cause in trace_origins_to_causes(context, one.origins)]


OPTIONS: Mapping[str, Callable[[TraceContext], list[Cause]]] = {
    "--mpi": _trace_mpi_option_causes,
    "--workers": TraceContext.workers,
    "--grace": lambda context: context.chosen("gracePeriod"),
    "--hold": _trace_pod_hold_causes,
    "--ssh-wait": _trace_ssh_wait_causes,
    "--setup": _trace_mpi_setup_causes,
    "--ranks": _trace_launcher_rank_causes,
    "--hosts-in": _trace_host_list_causes,
    "--unset": _trace_unset_variable_causes,
    "--deepspeed": _trace_deepspeed_option_causes,
    "--preflight": lambda context: _trace_preflight_causes(context),
    "--own": _trace_pod_variable_causes,
    "--given": _trace_cloud_variable_causes,
    "--keep-until": lambda context: [context.spec("debug", "until")],
}


# The preflight


def _trace_preflight_word_causes(
    context: TraceContext, words: Sequence[str], end: int, index: int
) -> list[Cause]:
    """Return the causes of a word of the preflight (plan/preflight.py)."""
    around = mark_indirect(_trace_preflight_causes(context))
    asked = context.image("preflight")
    if words[index] == context.job.image.preflight:
        return [asked, *around]
    if words[index - 1] not in _PLANNED or context.job.image.preflight not in words[end:index]:
        return [build_own_cause("how the preflight reaches the workers, and what it looks at"), *around]
    return [*_PLANNED[words[index - 1]](context), *around]


def _trace_storage_check_causes(context: TraceContext) -> list[Cause]:
    return [build_own_cause("a folder that every worker must be able to write to")]


_PLANNED: Mapping[str, Callable[[TraceContext], list[Cause]]] = {
    "--workers": TraceContext.workers,
    "--slots": TraceContext.slots,
    "--gpus": lambda context: context.chosen("gpus"),
    "--storage": _trace_storage_check_causes,
}


def _trace_preflight_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of the preflight and of the planned values that it checks."""
    told = [*context.slots(), *context.ranks(), *context.chosen("gpus"), *context.chosen("image")]
    told += _trace_job_env_causes(context)
    told += [context.spec(field) for field in ("mpi", "data", "checkpoint", "volumes")]
    told += [context.spec("network", field) for field in ("rdma", "transport")]
    told.append(context.cluster("nodePools", context.job.worker_pool.name, "rdma"))
    told += [context.team("claims"), context.team("connections")]
    return [context.spec("preflight"), context.image("preflight"), *mark_indirect([*told, *context.mpi()])]
