"""Check a launcher as a whole: whether the image contains it, what it starts, and what precedes it."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.frameworks import ONE_RANK_FRAMEWORKS
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import FoundLauncher, UnreadableError, find_launchers
from gangplan.plan.launchers.foreign import OPENFOAM_STARTERS, TORCH_STARTERS
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.plan.program import extract_launched_program, find_meaningful_option
from gangplan.plan.rendezvous import (
    check_accelerate_launch,
    check_launcher_rendezvous_options,
    check_meeting_port,
    check_unknown_launcher_options,
    check_unset_launcher_option_values,
)
from gangplan.plan.started_by import check_programs_starting_launcher
from gangplan.plan.words import split_command_word
from gangplan.rules.commands import (
    COMMAND_DETACHED,
    COMMAND_LAUNCHER,
    COMMAND_ONE_WORD,
    COMMAND_UNREADABLE,
)
from gangplan.rules.specs import COMMAND_NESTED

# Programs that queue a batch script; an importer or a person reads its options and launchers.
_QUEUES = {"sbatch": ("Slurm", "slurm"), "qsub": ("PBS", "pbs"), "bsub": ("LSF", "")}


def needs_hosts(found: FoundLauncher, workers: int) -> bool:
    """Return whether a launcher starts processes on other hosts than its own.

    DeepSpeed starts them without SSH if it has one host or --no_ssh (0.19.8, launcher/runner.py, multi_node_exec).
    """
    kind = found.start.launcher.kind
    is_local = workers == 1 or any(use.option.name == "no_ssh" for use in found.reading.of("rendezvous"))
    return kind in ("mpi", "horovod") or (kind == "deepspeed" and not is_local)


def check_launcher_start(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield the problems of a launcher apart from those of its options."""
    wrong = list(_find_image_launcher_problem(kept))
    if wrong:
        yield from wrong
        return
    yield from check_programs_starting_launcher(kept)
    yield from _find_elastic_launch_problem(kept)
    yield from _find_nested_launch_problem(kept)
    yield from _find_launcher_prefix_problems(kept)
    yield from _find_unsplit_programs(kept)
    if kept.found.start.launcher.kind in ("torch", "deepspeed", "accelerate"):
        from gangplan.plan.started_program import check_program_started_by_python  # few start one themselves

        yield from check_program_started_by_python(kept)
    if kept.found.start.launcher.kind in ("torch", "deepspeed", "paddle"):
        yield from check_launcher_rendezvous_options(kept)
        yield from check_meeting_port(kept)
    if kept.found.start.launcher.kind == "accelerate":
        yield from check_accelerate_launch(kept)
        yield from check_meeting_port(kept)
        from gangplan.plan.accelerate_config import check_accelerate_config_file  # few runs use it

        yield from check_accelerate_config_file(kept)
    yield from check_unset_launcher_option_values(kept)
    yield from check_unknown_launcher_options(kept)
    if kept.found.start.launcher.kind in ("mpi", "horovod", "deepspeed"):
        from gangplan.plan.lost import check_lost_environment  # few commands start one

        yield from check_lost_environment(kept)


def _find_elastic_launch_problem(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a launcher in an elastic run, for which gangplan must start torchrun itself."""
    if kept.job.elastic is None:
        return
    from gangplan.rules.elastic import ELASTIC_UNUSABLE  # few runs are elastic

    program, start = extract_launched_program(kept.found), kept.found.start
    edit = WordEdit(start.begin, len(kept.found.reading.words), program) if program else None
    message = f"{start.name} of the command does not know that the run is elastic"
    hint = "Write only the program; gangplan starts it with torchrun."
    yield WordProblem(ELASTIC_UNUSABLE, start.begin, message, hint, edit)


def _find_image_launcher_problem(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a launcher that the image lacks, or that starts ranks in another way."""
    job, start = kept.job, kept.found.start
    kind, is_torch = start.launcher.kind, kept.job.image.framework == "torch"
    by_mpi = job.uses_mpi
    if kind == "mpi" and by_mpi and mpi_family_of(job) in start.families:
        return
    if kind in ("horovod", "deepspeed") and by_mpi:
        return
    if kind in ("torch", "accelerate") and is_torch:
        return
    if kind == "paddle" and kept.job.image.framework == "paddle":
        return
    program = extract_launched_program(kept.found)
    edit = WordEdit(start.begin, len(kept.found.reading.words), program) if program else None
    at = start.begin
    if kind == "mpi" and by_mpi:
        mpi = job.image.mpi
        has = f"{mpi.family} {mpi.version}" if mpi else "no MPI"
        mine = "mpiexec" if mpi and mpi.family != "OpenMPI" else "mpirun"
        message = f"{start.name} is not a program of {has}, which the image contains"
        yield WordProblem(
            COMMAND_LAUNCHER, at, message, f"Write {mine}.", WordEdit(at, start.at + 1, (mine,))
        )
        return
    if start.name in _QUEUES:
        yield _build_submitted_batch_script_problem(kept, edit)
        return
    message = _explain_launcher_of_other_framework(kept)
    lost = find_meaningful_option(kept.found)
    hint = _suggest_start(kept, by_mpi, lost)
    is_alone = job.image.framework == "plain" and job.gpus != 1  # one process would have all GPUs
    yield WordProblem(COMMAND_LAUNCHER, at, message, hint, None if lost or is_alone else edit)


def _suggest_start(kept: LauncherCall, by_mpi: bool, lost: str) -> str:
    """Return what to write in place of a launcher; `lost` is its option that a field has to say."""
    name, job = kept.found.start.name, kept.job
    if name in OPENFOAM_STARTERS and by_mpi:
        return f"Write mpirun -np {job.ranks}, the program and its option -parallel."
    if name in TORCH_STARTERS:
        others = "; its options have to name the other workers: " if job.workers > 1 else "; "
        return f"Write framework: plain, with which each worker starts {name} once{others}NNODES, NODE_RANK, MASTER_ADDR and MASTER_PORT are set."
    if job.image.framework == "plain" and job.gpus != 1:
        return "Use an image whose framework starts ranks, such as torch, deepspeed or mpi."
    if lost in (":", "--multi-prog"):
        return (
            "gangplan starts one program on every rank; for several, write an mpirun with ':' between them."
        )
    rank = "once on every worker" if job.image.framework in ONE_RANK_FRAMEWORKS else "on every rank"
    help = f"Write only the program; gangplan starts it {rank}."
    if lost:
        help += f" What {lost.partition('=')[0]} sets belongs in fields of the spec, such as env, workdir or image."
    return help


def _explain_launcher_of_other_framework(kept: LauncherCall) -> str:
    """Return why a launcher does not start the ranks of the image's framework."""
    job, start = kept.job, kept.found.start
    kind, framework = start.launcher.kind, job.image.framework
    has = f"image '{job.image.name}' (framework {framework})"
    if framework in ONE_RANK_FRAMEWORKS:
        return f"{has} starts the command once on every worker, and {start.name} would start ranks of its own there"
    if start.name in TORCH_STARTERS and framework == "torch":
        return f"{start.name} starts the ranks of torch itself, so each of the {job.ranks} ranks would start them all again"
    if start.name in OPENFOAM_STARTERS:
        return f"{start.name} calls mpirun itself, without the ranks and the hosts of the run"
    if kind == "foreign":
        return f"{start.name} starts ranks through a scheduler or hosts of its own, which a run does not have"
    by = {"torch": "torchrun", "paddle": "Paddle's launcher"}.get(framework, "MPI")
    if by != "MPI" and kind not in ("torch", "accelerate", "paddle"):
        return f"{start.name} starts ranks over SSH, but {has} has neither SSH nor hosts for it"
    what = "accelerate launch" if kind == "accelerate" else start.name
    whose = "Paddle" if kind == "paddle" else "torch"
    return (
        f"{what} starts ranks for {whose}, but {has} starts them by {by}:"
        f" each of the {job.ranks} ranks would start its own training"
    )


def _build_submitted_batch_script_problem(kept: LauncherCall, edit: WordEdit | None) -> WordProblem:
    """Return the problem of a command that hands a batch script to a scheduler.

    The script is not a program for a rank: it has the options of a job at its head, and starts the ranks
    itself. With --wrap it is a program.
    """
    start, words = kept.found.start, kept.found.reading.words
    scheduler, importer = _QUEUES[start.name]
    message = (
        f"{start.name} hands a script to {scheduler}, which a run does not have; this spec takes its place"
    )
    help = "Write the program of the script, as one rank runs it; its options are fields here."
    if importer:
        is_script = edit is not None and edit.words and not any(word.startswith("--wrap") for word in words)
        script = edit.words[0] if edit is not None and is_script else "FILE"
        help += f" gangplan import {importer} {script} turns a script into a spec."
    return WordProblem(COMMAND_LAUNCHER, start.begin, message, help)


def _find_nested_launch_problem(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a launcher that starts another one."""
    for begin, end in kept.found.reading.programs:
        words = kept.found.reading.words[begin:end]
        try:
            inner = find_launchers(words, mpi_family_of(kept.job))
        except UnreadableError:
            continue
        for one in inner:
            message = f"{kept.name} starts {one.start.name} on every rank: each of the {kept.job.ranks} would start all ranks again"
            edit: WordEdit | None = None
            if (
                one.script is None
                and one.start.launcher.kind != "foreign"
                and (program := extract_launched_program(one))
            ):
                edit = WordEdit(begin + one.start.begin, end, program)
            yield WordProblem(COMMAND_NESTED, begin, message, "Remove one of the two launchers.", edit)
            return


def _find_unsplit_programs(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of programs written as one word with their arguments."""
    for begin, _ in kept.found.reading.programs:
        if split := split_command_word(kept.found.reading.words[begin]):
            message = f"'{kept.found.reading.words[begin]}' is one word with spaces: {kept.name} would look for a file of that name"
            yield WordProblem(
                COMMAND_ONE_WORD, begin, message, "Split it.", WordEdit(begin, begin + 1, tuple(split))
            )


def _find_launcher_prefix_problems(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of prefixes and variables before a launcher that remove or override what it needs."""
    from gangplan.plan.launch_variables import check_variables_before_launcher  # few commands start launchers

    found, name, peeled = kept.found, kept.name, kept.found.peeled
    yield from check_variables_before_launcher(kept)
    if peeled.forks >= 0:
        message = f"setsid may exit before {name} does, which ends the run"
        edit = WordEdit(peeled.forks + 1, peeled.forks + 1, ("--wait",))
        yield WordProblem(COMMAND_DETACHED, peeled.forks, message, "Make it wait.", edit)
    if found.script is not None and not found.script.is_direct and start_takes_options(kept):
        message = f"{name} is in a script or substitution inside another script, where gangplan cannot give it what it needs"
        yield WordProblem(COMMAND_UNREADABLE, 0, message, "Do not nest scripts.")
    if _is_program_in_variable_of_launcher(found) and start_takes_options(kept):
        message = f"one variable has {name} and its program, so gangplan cannot give {name} what it needs"
        yield WordProblem(COMMAND_UNREADABLE, 0, message, "Write the program behind the variable.")
    if found.script is not None and found.script.after == "&":
        message = f"{name} runs in the background and nothing waits for it: the run ends when the script does"
        yield WordProblem(
            COMMAND_DETACHED, found.start.at, message, "Remove the '&', or end the script with wait."
        )


def _is_program_in_variable_of_launcher(found: FoundLauncher) -> bool:
    """Return whether a script has a launcher and what it starts in the value of one variable."""
    words, begins = found.script.words if found.script else (), [begin for begin, _ in found.reading.programs]
    if not begins or begins[0] >= len(words) or not words[found.start.at].is_part:
        return False
    return words[found.start.at].begin == words[begins[0]].begin


def start_takes_options(kept: LauncherCall) -> bool:
    """Return whether gangplan adds options to a launcher that the user starts."""
    kind, style = kept.found.start.launcher.kind, kept.found.start.launcher.style
    return kind in ("horovod", "deepspeed", "paddle") or (kind == "mpi" and style != "hydra")
