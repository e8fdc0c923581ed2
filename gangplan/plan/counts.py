"""Compare the ranks, workers and ranks per worker that a launcher's options give with the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangplan.model.job import Job
from gangplan.plan.launch import LauncherCall, drop_option, replace_launcher_option_value
from gangplan.plan.launchers import FoundLauncher, ParsedOption
from gangplan.plan.launchers.shell import read_shell_commands
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.plan.reach import MAPPING_PARAMETERS
from gangplan.rules.commands import COMMAND_UNREADABLE
from gangplan.rules.specs import RANKS_MISMATCH


def check_launcher_counts(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of options whose numbers of ranks, ranks per worker or workers differ from the plan."""
    job, reading = kept.job, kept.found.reading
    counts = [use for use in reading.of("count") if not use.is_short]
    numbers = [kept.number(use) for use in counts]
    parts = {use.part for use in counts}
    whole = len(parts) == max(len(reading.programs), 1) and len(parts) > 1
    if whole and all(number is not None and number.isdigit() for number in numbers):
        total = sum(int(number or 0) for number in numbers)
        if total != job.ranks:
            message = f"the parts of the command start {total} ranks in all, but the run has {kept.sums}"
            yield WordProblem(
                RANKS_MISMATCH, counts[0].value_at, message, f"Make them add up to {job.ranks}."
            )
    elif len(reading.programs) <= 1:
        for use in counts:
            yield from _check_launcher_count_option(kept, use, job.ranks)
    if (
        not counts
        and kept.found.start.launcher.kind == "horovod"
        and not reading.unknown
        and reading.programs
    ):
        edit = WordEdit(reading.at + 1, reading.at + 1, ("-np", str(job.ranks)))
        yield WordProblem(
            RANKS_MISMATCH,
            reading.at,
            "horovodrun needs the number of ranks",
            f"Add -np {job.ranks}.",
            edit,
        )
    for use in reading.of("per-host"):
        yield from _check_planned_ranks_per_worker(kept, use)
    for use in reading.of("map"):
        if use.option.name in ("map-by", "ppr") and (number := _parse_ppr_ranks(use.value)):
            yield from _check_ppr_ranks(kept, use, number)
    for use in reading.of("parameter"):
        if (
            not use.is_short
            and use.value in MAPPING_PARAMETERS
            and (number := _parse_ppr_ranks(use.values[1])) not in ("", str(job.slots))
        ):
            message = f"{use.spelled} {use.value} {use.values[1]} allows {number} ranks on each worker, but the run has {job.slots} slots"
            yield WordProblem(RANKS_MISMATCH, use.value_at, message, "Remove it.", drop_option(use))
    for use in reading.of("workers"):
        yield from _check_launcher_count_option(kept, use, job.workers)


def explain_smaller_launch(
    job: Job, launch: FoundLauncher, found: Sequence[FoundLauncher], wrong: list[WordProblem]
) -> list[WordProblem]:
    """Return the problems of a launch; no command is proposed for one with fewer ranks than another one has.

    Such a program prepares files, and several copies of it would write the same ones.
    """
    number = min(_list_counts(job, launch), default=job.ranks)
    if number >= job.ranks or all(
        max(_list_counts(job, one), default=job.ranks) < job.ranks for one in found
    ):
        return wrong
    name = launch.start.name
    help = (
        f"Write -np {job.ranks} if the program can use all ranks; if it cannot, run it as a job of its own."
    )
    if number == 1:
        help = f"Start the program without {name}: it then runs once, on the launcher."
    return [
        replace(one, hint=help, edit=None) if one.rule == RANKS_MISMATCH and one.edit else one
        for one in wrong
    ]


def _list_counts(job: Job, launch: FoundLauncher) -> list[int]:
    """Return the numbers of ranks that a launcher's options say."""
    kept = LauncherCall(job, launch)
    numbers = [kept.number(use) or "" for use in launch.reading.of("count")]
    return [int(one) for one in numbers if one.isdecimal()]


def _check_launcher_count_option(
    kept: LauncherCall, use: ParsedOption, expected: int
) -> Iterator[WordProblem]:
    """Yield a problem if a number differs from the plan's.

    A `$` that no shell reads has a finding of its own.
    """
    number = kept.number(use)
    if number is None:
        message = f"the value of {use.spelled} {use.value} is only known when the script runs"
        yield WordProblem(
            COMMAND_UNREADABLE,
            use.value_at,
            message,
            f"Write {use.spelled} {expected}.",
            replace_launcher_option_value(use, str(expected)),
        )
        return
    if kept.found.script is None and "$" in number:
        return
    low, colon, high = number.partition(":")
    if colon and kept.job.elastic is not None:
        return  # elastic-unusable says what to write
    if {low, high if colon else low} != {str(expected)}:
        what = kept.sums if expected == kept.job.ranks else str(expected)
        message = f"the command says {use.spelled} {number}, but the run has {what}"
        filled = {kept.job.ranks: "{ranks}"}.get(expected, "")
        hint = f"Write {use.spelled} {expected}" + (
            f", or {filled} to let gangplan fill it in." if filled else "."
        )
        if colon and low.isdecimal() and high.isdecimal() and int(low) < int(high):
            hint = (
                f"For workers that come and go, write elastic: {{min: {low}, max: {high}}} in place of workers, and"
                f" the program alone as the command. For a fixed number, write {use.spelled} {expected}."
            )
        edit: WordEdit | None = replace_launcher_option_value(use, str(expected))
        if _is_in_background(kept.found):
            hint = (
                f"Launches at the same time do not know of each other, and use the same workers: let one {kept.name} start all"
                " parts, with ':' between them, or make each a run of its own."
            )
            edit = None
        yield WordProblem(RANKS_MISMATCH, use.value_at, message, hint, edit)


def _is_in_background(found: FoundLauncher) -> bool:
    """Return whether a script goes on while a launcher runs, also if it waits for it later."""
    script = found.script
    begin = script.words[0].begin if script is not None else -1
    commands = read_shell_commands(script.text) if script is not None and script.is_direct else ()
    return any(one.after == "&" for one in commands if one.words and one.words[0].begin == begin)


def _check_planned_ranks_per_worker(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield problems of the number of ranks on each worker.

    Hydra deals out smaller portions in turn until all ranks have a place; Horovod, DeepSpeed, torch and Open
    MPI start exactly that many.
    """
    job = kept.job
    number = kept.number(use) if use.option.words else "1"
    if number in ("gpu", "auto") and kept.found.start.launcher.kind == "torch" and job.slots == job.gpus:
        return
    portion = kept.found.start.launcher.style == "hydra" and (number or "").isdigit() and int(number or 0)
    if portion and job.slots % portion == 0:
        return
    if not use.option.words:
        if job.slots != 1:
            message = f"{use.spelled} starts one rank on each worker, but the run has {job.slots} slots"
            yield WordProblem(RANKS_MISMATCH, use.at, message, "Remove it.", drop_option(use))
        return
    yield from _check_launcher_count_option(kept, use, job.slots)


def _parse_ppr_ranks(value: str) -> str:
    """Return N of ppr:N:node, the only layout that sets ranks per host; otherwise an empty text."""
    parts = value.split(":")
    parts = parts[1:] if parts[0].lower() == "ppr" else parts
    is_ppr = value.lower().startswith("ppr:") or (len(parts) == 2 and parts[0].isdigit())
    return parts[0] if is_ppr and len(parts) > 1 and parts[1].lower() == "node" else ""


def _check_ppr_ranks(kept: LauncherCall, use: ParsedOption, number: str) -> Iterator[WordProblem]:
    if number == str(kept.job.slots) or "$" in number:
        return
    right = use.value.replace(f"{number}:", f"{kept.job.slots}:", 1)
    message = f"{use.spelled} {use.value} allows {number} ranks on each worker, but the run has {kept.job.slots} slots"
    yield WordProblem(
        RANKS_MISMATCH,
        use.value_at,
        message,
        f"Write {use.spelled} {right}.",
        replace_launcher_option_value(use, right),
    )
