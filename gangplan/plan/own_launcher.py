"""Check that a launcher in the user's command starts the planned ranks on the planned hosts."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator

from gangplan.model.version import parse_version
from gangplan.plan.counts import check_launcher_counts
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launch import LauncherCall, drop_option, replace_launcher_option_value
from gangplan.plan.launchers import MPI_LAUNCHERS, ParsedOption, read_launcher_words
from gangplan.plan.names import HOSTFILE_PATH, HYDRA_HOSTFILE_PATH
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.plan.reach import explain_broken_mpi_launch, is_default_mca_parameter, ssh_component_of
from gangplan.plan.reserved import explain_taken_variable, find_reserved_mca_variable
from gangplan.rules.commands import (
    COMMAND_HOSTS,
    COMMAND_LAUNCHER,
    COMMAND_NO_PROGRAM,
    COMMAND_OPTION,
    COMMAND_RESERVED,
    COMMAND_ROOT,
    COMMAND_UNREADABLE,
)
from gangplan.rules.recipes import LAUNCHER_DEEPSPEED
from gangplan.rules.specs import RANKS_MISMATCH

# From this version on, Open MPI 5 rejects one dash before these (tried: 5.0.8 and 5.0.9 accept it, 5.0.10 and
# 5.0.11 end).
_ONE_DASH_ENDS = "5.0.10"
_OLD_BINDING = frozenset({"bind-to-core", "bind-to-socket"})
_PADDLE_DEVICES = ("devices", "gpus", "npus", "xpus")
# The usual values of options of Paddle's launcher that start ranks in another way.
_PADDLE_USUAL = {
    "run_mode": ("collective",),
    "elastic_level": ("-1", "0"),
    **dict.fromkeys(("legacy", "sort_ip", "auto_cluster_config"), ("0", "false", "no", "off", "n", "f")),
}
# The values of --launcher of deepspeed that call an mpirun, with the families that have the options for it: those
# of Hydra for mpich and impi; mvapich asks for MVAPICH2-GDR. They refuse to start on a part of the hosts or GPUs
# (DeepSpeed 0.19.8, launcher/multinode_runner.py: get_cmd, backend_exists, validate_args).
_BY_MPIRUN = {
    "openmpi": ("OpenMPI",),
    **dict.fromkeys(("mpich", "impi"), ("MPICH", "IntelMPI")),
    "mvapich": (),
}


def check_user_launcher_options(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield the problems in the options of a launcher that may run here."""
    reading = kept.found.reading
    for use in reading.uses:
        if not use.option.name:
            yield _build_unknown_launcher_option_problem(kept, use)
        elif use.is_short:
            yield _build_option_value_count_problem(use, kept)
        else:
            yield from _find_launcher_option_problems(kept, use)
    yield from _find_repeated_launcher_options(kept)
    glued = [use for use in reading.of("parameter") if len(use.values) == 2 and "=" in use.value]
    for use in glued:
        yield _build_glued_option_value_problem(kept, use)
    is_told = glued or reading.unknown or any(reading.of("file", "nothing"))
    if len(reading.programs) < reading.parts and not is_told:
        message = f"{kept.name} has no program to run"
        yield WordProblem(COMMAND_NO_PROGRAM, reading.at, message, "Add the program and its arguments.")
    for begin, _ in () if glued else reading.programs:
        if reading.words[begin].isdigit():
            yield _build_number_as_program_problem(kept, begin)
    yield from _find_deepspeed_ssh_problem(kept)
    yield from check_launcher_counts(kept)
    if reading.uses:
        from gangplan.plan.layout_policies import check_layout_policies  # few have options

        yield from check_layout_policies(kept)


def _build_glued_option_value_problem(kept: LauncherCall, use: ParsedOption) -> WordProblem:
    """Return the problem of a parameter and its value in one word: the next word is taken for the value."""
    name, _, value = use.value.partition("=")
    taken = f", so {use.values[1]} is taken for the value" if use.values[1] else ""
    message = (
        f"{use.spelled} of {kept.found.start.launcher.label} takes a name and a value as two words{taken}"
    )
    hint = f"Write {use.spelled} {shlex.join([name, value])}."
    return WordProblem(
        COMMAND_OPTION, use.at, message, hint, WordEdit(use.value_at, use.value_at + 1, (name, value))
    )


def _build_number_as_program_problem(kept: LauncherCall, begin: int) -> WordProblem:
    """Return the problem of a number in place of the program, because an option takes fewer words."""
    message = f"{kept.name} would take {kept.found.reading.words[begin]} for the program"
    return WordProblem(
        COMMAND_NO_PROGRAM, begin, message, "Check the option before it: it takes fewer words."
    )


def _find_deepspeed_ssh_problem(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a launcher that uses SSH to its own host, which has no server if it runs ranks."""
    start = kept.found.start
    if start.launcher.kind != "deepspeed" or not kept.job.launcher_runs_ranks:
        return
    # deepspeed asks the first host, its own, for its address over SSH, regardless of --launcher, and pdsh
    # then starts all hosts over SSH (deepspeed/launcher/{runner,multinode_runner}.py, 0.17).
    message = f"{start.name} reaches all workers over SSH, but with launcher.runsRanks one of them is the launcher, which runs no SSH server"
    hint = "Remove launcher.runsRanks; or write only the program, and gangplan starts it on every rank."
    yield WordProblem(LAUNCHER_DEEPSPEED, start.begin, message, hint)


def _find_agent_problems(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield problems of how a launcher reaches the workers: not by SSH, or by an mpirun that cannot start them.

    For a single host, deepspeed calls no mpirun.
    """
    name, mpi = use.value.lower(), kept.job.image.mpi
    is_deepspeed = kept.found.start.launcher.kind == "deepspeed"
    if not is_deepspeed or name not in _BY_MPIRUN:
        if name != "pdsh" and (is_deepspeed or name != "ssh"):
            message = f"{use.spelled} changes how {kept.name} reaches the workers, which accept only SSH"
            yield WordProblem(COMMAND_RESERVED, use.at, message, "Remove it.", drop_option(use))
    elif kept.job.workers > 1 and mpi is not None and mpi.family not in _BY_MPIRUN[name]:
        message = f"{use.spelled} {use.value} needs another MPI than {mpi.family} {mpi.version}, which the image contains"
        yield WordProblem(COMMAND_LAUNCHER, use.at, message, "Remove it.", drop_option(use))
    elif kept.job.workers > 1:
        for one in kept.found.reading.of("workers", "per-host"):
            message = f"deepspeed refuses {one.spelled} with {use.spelled} {use.value}"
            yield WordProblem(COMMAND_OPTION, one.at, message, "Remove it.", drop_option(one))
        for one in kept.found.reading.uses:
            if one.option.name == "launcher_args":
                yield from _find_mpi_args_problems(kept, one)


def _find_repeated_launcher_options(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of options that the launcher accepts only once or not together."""
    launcher = kept.found.start.launcher
    for only in launcher.once:
        first: dict[int, ParsedOption] = {}
        for use in kept.found.reading.uses:
            if use.option.name not in only:
                continue
            before = first.setdefault(use.part, use)
            if before is not use:
                message = f"{use.spelled} cannot be combined with {before.spelled}: {launcher.label} takes one of them, once"
                yield WordProblem(COMMAND_OPTION, use.at, message, "Keep one of them.", drop_option(use))


def _build_option_value_count_problem(use: ParsedOption, kept: LauncherCall) -> WordProblem:
    what = "two values" if use.option.words == 2 else "a value" if use.option.words else "no value"
    return WordProblem(
        rule=COMMAND_OPTION,
        at=use.at,
        message=f"{use.spelled} of {kept.found.start.launcher.label} takes {what}",
        hint="Complete it, or remove it." if use.option.words else "Remove the value.",
    )


def _build_unknown_launcher_option_problem(kept: LauncherCall, use: ParsedOption) -> WordProblem:
    """Return the problem of an option that the launcher lacks: one of another family, or a typo."""
    launcher, name = kept.found.start.launcher, use.spelled.lstrip("-")
    if launcher.kind == "mpi":
        other = next((one for one in MPI_LAUNCHERS.values() if name in one.options), None)
        if other is not None:
            message = f"{use.spelled} is an option of {other.label}, but the image has {launcher.label}"
            return WordProblem(
                rule=COMMAND_OPTION,
                at=use.at,
                message=message,
                hint=_suggest_equivalent_mpi_option(kept, name),
                edit=None,
            )
    near = difflib.get_close_matches(name, launcher.options, 1, 0.7)
    dashes = "-" if launcher.style == "hydra" or len(near and near[0]) == 1 else "--"
    hint = f"Did you mean {dashes}{near[0]}?" if near else "Remove it."
    return WordProblem(
        rule=COMMAND_OPTION,
        at=use.at,
        message=f"{launcher.label} has no option {use.spelled}",
        hint=hint,
        edit=WordEdit(use.at, use.at + 1, (dashes + near[0],)) if near else None,
    )


def _suggest_equivalent_mpi_option(kept: LauncherCall, name: str) -> str:
    """Return a help with the equivalent option of the image's MPI."""
    is_hydra = kept.found.start.launcher.style == "hydra"
    slots = kept.job.slots
    to_hydra = {
        **dict.fromkeys(("N", "npernode", "pernode"), f"Write -ppn {slots}."),
        "x": "Remove it and its value: Hydra passes on all variables. To set one, write -genv NAME VALUE.",
        **dict.fromkeys(("mca", "gmca"), "Remove it and its two values: they mean nothing to Hydra."),
    }
    to_open = {
        **dict.fromkeys(("ppn", "perhost"), f"Write --map-by ppr:{slots}:node."),
        **dict.fromkeys(("genv", "env"), "Write -x NAME=VALUE."),
        **dict.fromkeys(("genvlist", "envlist"), "Write -x NAME for each variable."),
        **dict.fromkeys(
            ("f", "hosts", "hostlist"), "Remove it and its value: gangplan passes the run's hosts."
        ),
    }
    return (to_hydra if is_hydra else to_open).get(name, "Remove it.")


def _find_launcher_option_problems(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield the problems of one option, by what it decides."""
    role = use.option.role
    is_rank_file = role == "map" and use.value.lower().startswith("rankfile")
    if role == "hosts" or is_rank_file or (role == "hostfile" and not _is_ours(kept, use)):
        yield _build_launcher_named_hosts_problem(kept, use)
    elif role in ("parameter", "env"):
        yield from _find_reserved_name_in_launcher_option(kept, use)
    elif role == "root":
        message = f"{use.spelled} has no effect: ranks never run as root here"
        yield WordProblem(COMMAND_ROOT, use.at, message, "Remove it.", drop_option(use))
    elif role == "agent":
        yield from _find_agent_problems(kept, use)
    elif role == "away" and kept.job.launcher_runs_ranks:
        message = (
            f"{use.spelled} keeps ranks off the launcher, but launcher.runsRanks makes it one of the workers"
        )
        yield WordProblem(
            RANKS_MISMATCH, use.at, message, "Remove it, or launcher.runsRanks.", drop_option(use)
        )
    elif use.option.name in _OLD_BINDING and kept.found.start.launcher.style == "openmpi":
        yield _build_old_mpi_binding_option_problem(kept, use)
    elif role == "extra":
        yield from _find_mpi_args_problems(kept, use)
    elif role == "file":
        message = (
            f"{use.spelled} {use.value} hides options that gangplan must know to prove that the run starts"
        )
        yield WordProblem(COMMAND_UNREADABLE, use.at, message, "Write its options in the command.")
    elif role == "nothing":
        message = f"{use.spelled} makes {kept.name} start nothing"
        yield WordProblem(COMMAND_NO_PROGRAM, use.at, message, "Remove it.", drop_option(use))
    elif role == "elastic":
        message = (
            f"{use.spelled} lets the number of ranks change, but a run has {kept.sums} from start to end"
        )
        yield WordProblem(RANKS_MISMATCH, use.at, message, "Remove it.", drop_option(use))
    elif role == "mode" and not _is_planned_mode(kept, use):
        message = f"{use.spelled} {use.value} makes {kept.name} start ranks in another way than the plan's {kept.sums}"
        yield WordProblem(RANKS_MISMATCH, use.at, message, "Remove it.", drop_option(use))
    elif role == "port" and use.value != str(port := kept.job.image.ssh.port):
        message = f"{use.spelled} is {use.value}, but the image's SSH server listens on port {port}"
        yield WordProblem(
            COMMAND_RESERVED,
            use.at,
            message,
            f"Write {use.spelled} {port}.",
            replace_launcher_option_value(use, str(port)),
        )
    if len(use.option.name) > 1 and not use.spelled.startswith("--"):
        yield from _find_one_dash_option_problem(kept, use)


def _is_planned_mode(kept: LauncherCall, use: ParsedOption) -> bool:
    """Return whether an option of Paddle's launcher says what it does anyway: one rank on each GPU of a worker."""
    job, name = kept.job, use.option.name
    if name in _PADDLE_DEVICES:
        every = [str(number) for number in range(job.gpus)]
        return job.slots == job.gpus and sorted(use.value.split(",")) == sorted(every)
    return use.value.lower() in _PADDLE_USUAL.get(name, ())


def _build_old_mpi_binding_option_problem(kept: LauncherCall, use: ParsedOption) -> WordProblem:
    """Return the problem of an old binding option.

    Open MPI 4 ends if one meets a policy from the environment, which every run has.
    """
    right = f"--bind-to {use.option.name.rpartition('-')[2]}"
    message = f"{use.spelled} is an old name that {kept.found.start.launcher.label} may end on"
    return WordProblem(
        COMMAND_OPTION, use.at, message, f"Write {right}.", WordEdit(use.at, use.end, tuple(right.split()))
    )


def _find_mpi_args_problems(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield problems of options that horovodrun or deepspeed passes to mpirun in one word: hosts and reserved
    names break the launch there too."""
    family = mpi_family_of(kept.job)
    try:
        words = ("mpirun", *shlex.split(use.value), "")
    except ValueError:
        words = ("mpirun", "")
    inner = read_launcher_words(MPI_LAUNCHERS[family or "OpenMPI4"], words, 0)
    for one in inner.of("hosts", "hostfile", "parameter", "env", "agent"):
        for problem in _find_launcher_option_problems(kept, one):
            yield WordProblem(problem.rule, use.value_at, problem.message, "Remove it.", drop_option(use))


def _find_one_dash_option_problem(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield a problem of a long name that needs two dashes.

    Some names do from Open MPI 5.0.10 on; for prterun, all but -np do.
    """
    mpi, name = kept.job.image.mpi, use.option.name
    launcher = kept.found.start.launcher
    lost = (
        name in launcher.double_only and mpi is not None and _is_version_at_least(mpi.version, _ONE_DASH_ENDS)
    )
    if not lost and (kept.name != "prterun" or launcher.style != "prrte" or name == "np"):
        return
    who = "prterun" if kept.name == "prterun" or mpi is None else f"Open MPI {mpi.version}"
    message = f"{who} does not know {use.spelled} with one dash"
    edit = WordEdit(use.at, use.at + 1, (f"-{kept.found.reading.words[use.at]}",))
    yield WordProblem(COMMAND_OPTION, use.at, message, f"Write -{use.spelled}.", edit)


def _is_version_at_least(version: str, first: str) -> bool:
    try:
        return parse_version(version) >= parse_version(first)
    except ValueError:
        return False


def _is_ours(kept: LauncherCall, use: ParsedOption) -> bool:
    """Return whether a host file is the one for this launcher: Trainer's, or its translation for Hydra."""
    ours = HYDRA_HOSTFILE_PATH if kept.found.start.launcher.style == "hydra" else HOSTFILE_PATH
    return use.value == ours


def _build_launcher_named_hosts_problem(kept: LauncherCall, use: ParsedOption) -> WordProblem:
    message = (
        f"{use.spelled} {use.value} names hosts, but the run's hosts are only known when it starts;"
        f" gangplan hands them to {kept.name}"
    )
    return WordProblem(COMMAND_HOSTS, use.at, message, "Remove it.", drop_option(use))


def _find_reserved_name_in_launcher_option(kept: LauncherCall, use: ParsedOption) -> Iterator[WordProblem]:
    """Yield a problem of an option that sets a reserved name of the launch."""
    name, _, value = use.value.partition("=")
    value = use.values[1] if len(use.values) > 1 else value
    what = explain_broken_mpi_launch(
        name, value, kept.job.image.ssh.port, ssh_component_of(kept.found.start.launcher.style)
    )
    if what:
        message = f"{use.spelled} {name} {value} {what}"
        yield WordProblem(COMMAND_RESERVED, use.at, message, "Remove it.", drop_option(use))
        return
    if use.option.role == "parameter" and is_default_mca_parameter(name, value):
        return
    if use.option.role == "env" and len(use.values) < 2 and "=" not in use.value:
        return  # `-x NAME` hands on the value that the run gives
    variable = find_reserved_mca_variable(name) if use.option.role == "parameter" else name
    if why := explain_taken_variable(kept.job, variable):
        message = f"{use.spelled} {name} sets {variable}; {why}"
        yield WordProblem(COMMAND_RESERVED, use.at, message, "Remove it.", drop_option(use))
