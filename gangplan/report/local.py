"""A run on this machine as text: its start, each of its lines, how it ended and why."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator

from gangplan.diagnose.evidence import Evidence, RunPart
from gangplan.diagnose.read import scan_received_log_for_signs
from gangplan.diagnose.verdict import diagnose_runs
from gangplan.local.output import OutputLine
from gangplan.local.play import LocalRunResult
from gangplan.local.pods import LocalPods
from gangplan.local.prepare import PreparedRun
from gangplan.model.duration import format_duration
from gangplan.report.escape import escape_log_line

_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)
_CURES = 2
# What is shown after a time limit: the numbers of so many ranks, and of the first of them so many lines.
_MOST_LATE = 16
_LATE_TAILS = 4
_LATE_LINES = 5
_TRACEBACK = "Traceback (most recent call last):"


def format_start_of_local_run(prepared: PreparedRun) -> str:
    """Return what is run, and how it differs from what the cluster would run."""
    job, shape, stage = prepared.unit.job, prepared.shape, prepared.stage
    how = stage.mpi.words if stage.mpi else prepared.unit.launch.program or "one program on each worker"
    workers = f"{shape.workers} worker{'s' if shape.workers > 1 else ''}"
    lines = [
        f"{job.source}: {workers} x {shape.slots} = {shape.ranks} rank{'s' if shape.ranks > 1 else ''}, {how}"
    ]
    words = (word for word in prepared.unit.launch.argv if word != stage.rank_program)
    lines.append(f"  command: {shlex.join(words)}")
    lines += [f"  note: {one}" for one in prepared.notes]
    return "".join(f"{escape_log_line(line)}\n" for line in lines)


def format_output_line_for_terminal(line: OutputLine, cast: LocalPods, colour: bool) -> str:
    """Return a line with its rank or pod in front."""
    if line.rank is not None:
        head, number = f"[{line.rank}]", line.rank
    else:
        pod = next((one for one in cast.pods if one.name == line.pod), None)
        head, number = (
            ("[launcher]", -1)
            if pod is None or pod.role == "launcher"
            else (f"[worker {pod.index}]", pod.index)
        )
    text = (
        f"started{_format_worker_location(cast, line.text)}" if line.is_start else escape_log_line(line.text)
    )
    if not colour:
        return f"{head} {text}\n"
    code = 2 if number < 0 else _COLOURS[number % len(_COLOURS)]
    return f"\x1b[{code}m{head}\x1b[0m {text}\n"


def describe_local_run_end(ended: LocalRunResult, prepared: PreparedRun, limit_s: int) -> str:
    """Return how the run ended: what failed, with the last lines, and the cause if one is known."""
    return "".join(f"{line}\n" for line in _format_end_of_local_run(ended, prepared, limit_s))


def _format_end_of_local_run(ended: LocalRunResult, prepared: PreparedRun, limit_s: int) -> Iterator[str]:
    if not ended.is_clean:
        yield "some processes of the run could not be ended; they have GANGPLAN_LOCAL_RUN in their environment"
    if not ended.code:
        hosts = len(set(ended.story.ranks.values()))
        # deepspeed and scripts start ranks that do not identify themselves.
        counted = f"; {len(ended.story.ranks)} ranks on {hosts} workers" if hosts else ""
        yield f"done: exit code 0{counted}"
        return
    if ended.is_over_time:
        yield f"stopped: the time limit of {format_duration(limit_s)} is over (exit code {ended.code})"
        yield from _format_late_ranks(ended, prepared.cast)
        yield from _describe_raised_exceptions(ended, prepared)
        return
    yield ""
    failure = ended.failure
    tail = ended.story.tail(failure.rank if failure else None)
    if failure and failure.rank is not None:
        where = _format_worker_location(prepared.cast, failure.host)
        yield f"failed: rank {failure.rank}{where} ended with {_format_exit_code(failure.code)}"
    else:
        yield f"failed: {'the launch' if prepared.cast.launcher else 'the program'} ended with exit code {ended.code}"
    yield from _describe_tail("  its last lines:", tail)
    yield from _format_likely_cause(ended.story.log)


def _format_late_ranks(ended: LocalRunResult, cast: LocalPods) -> Iterator[str]:
    """Yield the ranks that had not ended at the time limit, and what the first of them last printed."""
    if not ended.late:
        yield from _describe_tail("  last lines:", ended.story.tail(None)[-_LATE_LINES:])
        return
    numbers = ", ".join(map(str, ended.late[:_MOST_LATE]))
    more = f" and {len(ended.late) - _MOST_LATE} more" if len(ended.late) > _MOST_LATE else ""
    yield f"  had not ended: rank{'s' if len(ended.late) > 1 else ''} {numbers}{more}"
    for rank in ended.late[:_LATE_TAILS]:
        where = _format_worker_location(cast, ended.story.ranks.get(rank, ""))
        tail = ended.story.tail(rank)[-_LATE_LINES:]
        yield from _describe_tail(f"  last lines of rank {rank}{where}:", tail)


def _describe_raised_exceptions(ended: LocalRunResult, prepared: PreparedRun) -> Iterator[str]:
    """Yield which ranks had raised an exception and not ended, and why: MPI_Finalize waits for all ranks."""
    raised = {rank: tail for rank in ended.late if _TRACEBACK in (tail := ended.story.tail(rank))}
    if not raised:
        return
    if prepared.stage.mpi is not None:
        rank = next(iter(raised))
        yield (
            f"  rank {rank} raised an exception and waits for the others to end, which wait for it: "
            "python -m mpi4py PROGRAM ends them all"
        )
    yield from _format_likely_cause("".join(f"{line}\n" for tail in raised.values() for line in tail))


def _describe_tail(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from (f"    {escape_log_line(line)}" for line in lines)


def _format_worker_location(cast: LocalPods, host: str) -> str:
    pod = next((one for one in cast.pods if one.name == host), None)
    if pod is None:
        return ""
    return f" on worker {pod.index}" if pod.role == "worker" else " on the launcher"


def _format_exit_code(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _format_likely_cause(text: str) -> Iterator[str]:
    """Yield the likeliest cause that `gangplan diagnose` finds in a text, with its first cures."""
    log = scan_received_log_for_signs("output", text, RunPart())
    for verdict in diagnose_runs(Evidence((), (log,))):
        if verdict.is_known and verdict.roots:
            one = verdict.roots[0]
            yield f"  cause: {one.cause.title}  [{one.cause.id}]"
            yield f"    means: {one.cause.means}"
            yield from (f"    try: {cure}" for cure in one.cause.cures[:_CURES])
            return
