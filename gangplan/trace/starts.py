"""Causes of a container's command: the words that start a launch script, its options, and the preflight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gangplan.plan.environment import GPUS_SHOWN
from gangplan.plan.names import HOSTFILE
from gangplan.trace.cause import Cause, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import own
from gangplan.trace.launch import first_word, own_values, variable
from gangplan.trace.origins import causes_of

# /bin/sh, -c, the text that checks the scripts, and the name of the script; options follow until this word.
_SCRIPT, _LAST = 3, "--"


def program(context: TraceContext, role: str, words: Sequence[str], index: int) -> list[Cause]:
    """Return the causes of a word of a container's command (generators/launch.py)."""
    around = asides(context.framework()) if role == "worker" else []
    if index < _SCRIPT:
        says = "the mounted launch scripts are those of the run, or it ends: one of them starts next"
        return [own(says), *around]
    if index == _SCRIPT:
        return [own(_purpose(context, role)), *around]
    end = words.index(_LAST) if _LAST in words else len(words)
    if index > end:
        return _look(context, words, end, index)
    if index == end:
        return [own("what follows is what the script starts"), *around]
    found = OPTIONS.get(words[index].partition("=")[0])
    return [*(found(context) if found else [own("an option of the launch script")]), *around]


def _purpose(context: TraceContext, role: str) -> str:
    if role == "launcher":
        return f"the launcher waits until all hosts of {HOSTFILE} answer, then starts the command"
    starts = "its SSH server" if context.job.uses_mpi else "the command"
    return f"a worker starts {starts}, and passes SIGTERM on to its ranks"


# Options


def _mpi(context: TraceContext) -> list[Cause]:
    return [own("how the image's MPI takes hosts and options"), *asides(context.mpi()), _made(context)]


def _held(context: TraceContext) -> list[Cause]:
    """Return the causes of whether a failed pod waits, so that an attempt that the platform ended is
    distinguishable."""
    says = "a failed pod stays a little, so that one that was taken away is seen to fail first"
    version = context.cluster("versions", "trainer")
    around = asides([*context.chosen("retries"), version, context.spec("elastic"), _made(context)])
    return [own(says), *around]


def _waits(context: TraceContext) -> list[Cause]:
    return [context.cluster("podsReadyTimeout"), context.gang().aside(), _made(context)]


def _setup(context: TraceContext) -> list[Cause]:
    return [context.image("mpi", "setup"), *asides(context.chosen("image"))]


def _ranks(context: TraceContext) -> list[Cause]:
    return [context.spec("launcher", "runsRanks"), *asides(context.framework())]


def _hosts(context: TraceContext) -> list[Cause]:
    says = "the MPI operator would name a list of hosts that does not know the launcher"
    return [own(says), *asides(context.mpi()), _made(context)]


def _unset(context: TraceContext) -> list[Cause]:
    """Return the causes of the variables that the launcher keeps to itself: they hold for its own pod
    alone."""
    says = "variables that hold for the launcher's pod alone, and that ranks elsewhere must not get"
    ranks = context.spec("launcher", "runsRanks").aside()
    hidden = asides([*variable(context, GPUS_SHOWN), *context.pool(context.job.launcher_pool.name)])
    around = [*asides(context.mpi()), *asides(context.framework()), first_word(context), ranks]
    return [own(says), *own_values(context), *around, *hidden, _made(context)]


def _deepspeed(context: TraceContext) -> list[Cause]:
    says = "variables for all ranks, which DeepSpeed reads from a file"
    return [own(says), *asides(_variables(context)), *asides(context.framework()), first_word(context)]


def _own(context: TraceContext) -> list[Cause]:
    return [
        own("variables with a value of their own in each pod, for ranks that start by SSH"),
        *_pods(context),
    ]


def _given(context: TraceContext) -> list[Cause]:
    return [own("variables that the cloud gives to pods, for ranks that start by SSH"), *_pods(context)]


def _pods(context: TraceContext) -> list[Cause]:
    return [*own_values(context), *asides(context.framework())]


def _made(context: TraceContext) -> Cause:
    return context.spec("backend").aside()


def _variables(context: TraceContext) -> list[Cause]:
    return [cause for one in context.job.env for cause in causes_of(context, one.origins)]


OPTIONS: Mapping[str, Callable[[TraceContext], list[Cause]]] = {
    "--mpi": _mpi,
    "--workers": TraceContext.workers,
    "--grace": lambda context: context.chosen("gracePeriod"),
    "--hold": _held,
    "--ssh-wait": _waits,
    "--setup": _setup,
    "--ranks": _ranks,
    "--hosts-in": _hosts,
    "--unset": _unset,
    "--deepspeed": _deepspeed,
    "--preflight": lambda context: _looked(context),
    "--own": _own,
    "--given": _given,
    "--keep-until": lambda context: [context.spec("debug", "until")],
}


# The preflight


def _look(context: TraceContext, words: Sequence[str], end: int, index: int) -> list[Cause]:
    """Return the causes of a word of the preflight (plan/preflight.py)."""
    around = asides(_looked(context))
    asked = context.image("preflight")
    if words[index] == context.job.image.preflight:
        return [asked, *around]
    if words[index - 1] not in _PLANNED or context.job.image.preflight not in words[end:index]:
        return [own("how the preflight reaches the workers, and what it looks at"), *around]
    return [*_PLANNED[words[index - 1]](context), *around]


def _stored(context: TraceContext) -> list[Cause]:
    return [own("a folder that every worker must be able to write to")]


_PLANNED: Mapping[str, Callable[[TraceContext], list[Cause]]] = {
    "--workers": TraceContext.workers,
    "--slots": TraceContext.slots,
    "--gpus": lambda context: context.chosen("gpus"),
    "--storage": _stored,
}


def _looked(context: TraceContext) -> list[Cause]:
    """Return the causes of the preflight and of the planned values that it checks."""
    told = [*context.slots(), *context.ranks(), *context.chosen("gpus"), *context.chosen("image")]
    told += _variables(context)
    told += [context.spec(field) for field in ("mpi", "data", "checkpoint", "volumes")]
    told += [context.spec("network", field) for field in ("rdma", "transport")]
    told.append(context.cluster("nodePools", context.job.worker_pool.name, "rdma"))
    told += [context.team("claims"), context.team("connections")]
    return [context.spec("preflight"), context.image("preflight"), *asides([*told, *context.mpi()])]
