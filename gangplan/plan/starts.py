"""A launcher as a whole: whether the image has it, what it starts in turn, and what goes before it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gangplan.plan.faults import Edit, Trouble, listed
from gangplan.plan.flags import family_of
from gangplan.plan.launch import Kept
from gangplan.plan.launchers import OPAQUE, Found, UnreadableError, base, find, is_python, read, start_at
from gangplan.plan.launchers.foreign import OF_TORCH
from gangplan.plan.launchers.training import TORCHRUN
from gangplan.plan.reach import broken_by, component_of
from gangplan.plan.reserved import is_needed, is_reserved
from gangplan.plan.through import through_troubles
from gangplan.plan.words import split_word

_LOCAL = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})


def start_troubles(kept: Kept) -> Iterator[Trouble]:
    """What is wrong with a launcher before its options are looked at."""
    wrong = list(_image(kept))
    if wrong:
        yield from wrong
        return
    yield from through_troubles(kept)
    yield from _nested(kept)
    yield from _before(kept)
    yield from _one_word(kept)
    if kept.found.start.launcher.kind in ("torch", "deepspeed"):
        yield from _rendezvous(kept)
    if kept.found.start.launcher.kind == "accelerate":
        yield from _accelerate(kept)


def program_of(found: Found) -> tuple[str, ...]:
    """The program that a launcher starts, as a command of its own; empty where it cannot be told."""
    reading, kind = found.reading, found.start.launcher.kind
    words = reading.program
    if kind == "foreign":
        words = _likely(found) if found.start.name not in OPAQUE else _lightning(found)
    if not words or kind in ("mpi", "horovod", "foreign"):
        return words
    if any(reading.of("module")):
        return ("python", "-m", *words)
    return words if any(reading.of("no-python")) or not words[0].endswith(".py") else ("python", *words)


def _likely(found: Found) -> tuple[str, ...]:
    """The first word behind a foreign launcher that is surely a program: the tables of these are not complete."""
    words = found.reading.words
    for index in range(found.start.at + 1, len(words)):
        word = words[index]
        if (
            is_python(word)
            or base(word) in ("bash", "sh")
            or word.startswith(("./", "/"))
            or start_at(words, index, None)
        ):
            before = words[index - 1]
            is_value = before.startswith("-") and "=" not in before and word.startswith("/")
            if not is_value:
                return words[index:]
    return found.reading.program


def _lightning(found: Found) -> tuple[str, ...]:
    """The command of torchtune without torchrun's options, or the script of Lightning's launchers: the first file of Python that is surely no option's value."""
    words = found.reading.words
    if found.start.name == "tune":
        rest = read(TORCHRUN, words, found.start.at).program
        return ("tune", "run", *rest) if rest else ()
    if found.start.name not in ("fabric", "lightning"):
        return ()
    for index in range(found.start.at + 1, len(words)):
        before = words[index - 1]
        if words[index].endswith(".py") and (not before.startswith("-") or "=" in before):
            return ("python", *words[index:])
    return ()


def _image(kept: Kept) -> Iterator[Trouble]:
    """A launcher that the image has not, or that belongs to another way of starting."""
    job, start = kept.job, kept.found.start
    kind, is_torch = start.launcher.kind, kept.job.image.framework == "torch"
    if kind == "mpi" and not is_torch and family_of(job) in start.families:
        return
    if kind in ("horovod", "deepspeed") and not is_torch:
        return
    if kind in ("torch", "accelerate") and is_torch:
        return
    program = program_of(kept.found)
    edit = Edit(start.begin, len(kept.found.reading.words), program) if program else None
    at = start.begin
    if kind == "mpi" and not is_torch:
        mpi = job.image.mpi
        has = f"{mpi.family} {mpi.version}" if mpi else "no MPI"
        mine = "mpiexec" if mpi and mpi.family != "OpenMPI" else "mpirun"
        message = f"{start.name} is not a program of {has}, which the image has"
        yield Trouble("command-launcher", at, message, f"Write {mine}.", Edit(at, start.at + 1, (mine,)))
        return
    framework = job.image.framework
    if start.name in OF_TORCH and is_torch:
        message = f"{start.name} starts the ranks of torch itself, and each of the {job.ranks} ranks would start all again"
    elif kind == "foreign":
        message = (
            f"{start.name} starts ranks through a scheduler or hosts of its own, which a run does not have"
        )
    elif is_torch:
        message = f"{start.name} starts ranks over SSH, but image '{job.image.name}' (framework torch) has neither SSH nor hosts for it"
    else:
        what = "accelerate launch" if kind == "accelerate" else start.name
        message = (
            f"{what} starts ranks for torch, but image '{job.image.name}' (framework {framework}) starts them by MPI:"
            f" each of the {job.ranks} ranks would start its own training"
        )
    yield Trouble(
        "command-launcher", at, message, "Write the program alone; gangplan starts it on every rank.", edit
    )


def _nested(kept: Kept) -> Iterator[Trouble]:
    """A launcher that starts another one."""
    for begin, end in kept.found.reading.programs:
        words = kept.found.reading.words[begin:end]
        try:
            inner = find(words, family_of(kept.job))
        except UnreadableError:
            continue
        for one in inner:
            message = f"{kept.name} starts {one.start.name} on every rank: each of the {kept.job.ranks} would start all ranks again"
            edit: Edit | None = None
            if one.script is None and one.start.launcher.kind != "foreign" and (program := program_of(one)):
                edit = Edit(begin + one.start.begin, end, program)
            yield Trouble("command-nested", begin, message, "Remove one of the two launchers.", edit)
            return


def _one_word(kept: Kept) -> Iterator[Trouble]:
    """A program that was written as one word with its arguments."""
    for begin, _ in kept.found.reading.programs:
        if split := split_word(kept.found.reading.words[begin]):
            message = f"'{kept.found.reading.words[begin]}' is one word with spaces: {kept.name} would look for a file of that name"
            yield Trouble(
                "command-one-word", begin, message, "Split it.", Edit(begin, begin + 1, tuple(split))
            )


def _before(kept: Kept) -> Iterator[Trouble]:
    """Prefixes and variables before a launcher that take away or overwrite what it needs."""
    found, name, peeled = kept.found, kept.name, kept.found.peeled
    if peeled.clears >= 0:
        message = f"env {found.reading.words[peeled.clears]} empties the environment that {name} finds the run's hosts by"
        edit = Edit(peeled.clears, peeled.clears + 1)
        yield Trouble("command-reserved", peeled.clears, message, "Remove it.", edit)
    for variable in peeled.unset:
        if is_needed(variable):
            yield Trouble("command-reserved", 0, f"{variable} is taken away, which {name} needs", "Keep it.")
    given: dict[str, str | None] = {**(found.script.sets if found.script else {}), **dict(peeled.sets)}
    way = component_of(found.start.launcher.style)
    for variable in sorted(given):
        what = broken_by(variable, given[variable] or "", kept.job.image.ssh.port, way)
        if what and given[variable] and variable.startswith(("OMPI_MCA_", "PRTE_MCA_")):
            yield Trouble(
                "command-reserved", 0, f"{variable} {what}", "Remove it.", _unassign(found, variable)
            )
        if is_reserved(variable):
            message = f"{variable} is set before {name}; it is set for every run, and a value of your own would break the launch"
            yield Trouble("command-reserved", 0, message, "Remove it.", _unassign(found, variable))
    if peeled.forks >= 0:
        message = f"setsid may end before {name} does, and the run with it"
        edit = Edit(peeled.forks + 1, peeled.forks + 1, ("--wait",))
        yield Trouble("command-detached", peeled.forks, message, "Let it wait.", edit)
    if found.script is not None and not found.script.is_direct and start_takes_options(kept):
        message = (
            f"{name} stands in a script inside another script, where gangplan cannot give it what it needs"
        )
        yield Trouble("command-unreadable", 0, message, "Write the script on one level.")
    if found.script is not None and found.script.after == "&":
        message = f"{name} runs in the background and nothing waits for it: the run ends when the script does"
        yield Trouble(
            "command-detached", found.start.at, message, "Remove the '&', or end the script with wait."
        )


def _unassign(found: Found, variable: str) -> Edit | None:
    """Take NAME=VALUE away from the words before a launcher."""
    before = found.reading.words[: found.start.begin]
    places = (index for index, word in enumerate(before) if word.startswith(f"{variable}="))
    return next((Edit(index, index + 1) for index in places), None)


def start_takes_options(kept: Kept) -> bool:
    """Whether gangplan has options to give to a launcher that the user starts."""
    kind, style = kept.found.start.launcher.kind, kept.found.start.launcher.style
    return kind in ("horovod", "deepspeed") or (kind == "mpi" and style != "hydra")


def _is_from_trainer(kept: Kept, use_at: int) -> bool:
    """Whether a script's word is made of variables that Trainer or the script sets."""
    script = kept.found.script
    if script is None or use_at >= len(script.words) or not script.words[use_at].is_open:
        return False
    known = {variable.name for variable in kept.job.env} | set(script.sets)
    names = script.words[use_at].names
    return bool(names) and all(name.startswith("PET_") or name in known for name in names)


def _rendezvous(kept: Kept) -> Iterator[Trouble]:
    """Where the workers meet is handed over by Trainer, as each worker's number is; deepspeed finds it out."""
    job, reading = kept.job, kept.found.reading
    single = job.workers == 1
    tells = (
        "Trainer tells torchrun" if kept.found.start.launcher.kind == "torch" else "deepspeed finds it out"
    )
    for use in reading.of("standalone"):
        if not single:
            message = f"{use.spelled} lets every worker train alone, but the run has {job.workers} workers"
            yield Trouble("command-rendezvous", use.at, message, "Remove it.", Edit(use.at, use.end))
    has_endpoint = any(use.option.name == "rdzv-endpoint" for use in reading.of("rendezvous"))
    for use in reading.of("rendezvous"):
        name, value = use.option.name, use.value
        if _is_from_trainer(kept, use.value_at) or (
            name == "rdzv-backend" and (value == "static" or single or has_endpoint)
        ):
            continue
        host = value.rpartition(":")[0] or value
        if single and (host in _LOCAL or (name == "node-rank" and value == "0")):
            continue
        if name == "rdzv-backend":
            message = f"{use.spelled} {value} needs --rdzv-endpoint, and the run's hosts are only known when it starts"
        elif name == "no_ssh":
            message = f"{use.spelled} starts ranks on the launcher alone"
        elif name in ("node-rank", "node_rank"):
            message = f"{use.spelled} {value} gives all {job.workers} workers the same number"
        else:
            message = f"{use.spelled} {value} names a host, but the run's own are only known when it starts"
        edit = Edit(use.at, use.end)
        yield Trouble("command-rendezvous", use.at, f"{message}; {tells}", "Remove it.", edit)


_MACHINES = ("--machine_rank", "--main_process_ip", "--main_process_port")


def _accelerate(kept: Kept) -> Iterator[Trouble]:
    """Accelerate reads none of Trainer's variables: with several workers it must be told by a script."""
    job, reading = kept.job, kept.found.reading
    if job.workers == 1:
        return
    told = {use.option.name for use in reading.uses if _is_from_trainer(kept, use.value_at)}
    if (
        {"machine-rank", "main-process-ip"} <= told
        and any(reading.of("workers"))
        and any(reading.of("count"))
    ):
        return
    message = f"accelerate does not learn of the run's {job.workers} workers: each would train alone"
    program = program_of(kept.found)
    edit = (
        Edit(kept.found.start.begin, len(reading.words), program) if program and not _settings(kept) else None
    )
    hint = (
        "Write the program alone; gangplan starts it with torchrun, whose variables accelerate's library reads."
        if edit
        else "Write command: " + _script(kept)
    )
    yield Trouble("command-rendezvous", kept.found.start.begin, message, hint, edit)


def _settings(kept: Kept) -> bool:
    """Whether accelerate launch sets more than hosts and counts, which torchrun would not."""
    plain = ("", "count", "workers", "rendezvous", "module", "no-python")
    return any(
        use.option.role not in plain or (not use.option.role and use.option.name not in _PLAIN)
        for use in kept.found.reading.uses
    )


_PLAIN = frozenset(
    {"multi-gpu", "same-network", "main-process-port", "quiet", "q", "cpu", "debug", "role", "t", "tee"}
)


def _script(kept: Kept) -> str:
    """accelerate launch in a shell that fills in what Trainer tells each worker."""
    reading, job = kept.found.reading, kept.job
    own = [
        use
        for use in reading.uses
        if use.option.role in ("count", "workers", "rendezvous") or use.option.name == "main-process-port"
    ]
    skipped = {index for use in own for index in range(use.at, use.end)}
    words = [word for index, word in enumerate(reading.words) if index > reading.at and index not in skipped]
    told = (
        f'accelerate launch --num_machines {job.workers} --num_processes {job.ranks} --machine_rank "$PET_NODE_RANK"'
        ' --main_process_ip "$PET_MASTER_ADDR" --main_process_port "$PET_MASTER_PORT"'
    )
    return listed(("bash", "-c", f"{told} {shlex.join(words)}")) + "."
