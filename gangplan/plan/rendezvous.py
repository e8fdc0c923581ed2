"""Check the rendezvous of torchrun, deepspeed and accelerate: only Trainer knows where workers meet."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from gangplan.plan.environment import list_meeting_names
from gangplan.plan.launch import LauncherCall, list_assigned_texts, replace_launcher_option_value
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.plan.program import extract_launched_program
from gangplan.rules.commands import COMMAND_OPTIONS_UNKNOWN, COMMAND_RENDEZVOUS, COMMAND_UNSET

# What is the worker's own name or address, or that of a batch system's node.
_OF_THIS_HOST = re.compile(
    r"(?i)\bhostname\b|\bifconfig\b|\bip\s+(?:-\w+\s+)*a|\bscontrol\b|NODELIST|NODEFILE|HOSTFILE"
)
_LOCAL = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})


_TELLS = {
    "torch": "Trainer tells torchrun",
    "deepspeed": "deepspeed finds it out",
    "paddle": "the launcher reads it from PADDLE_MASTER and PADDLE_RANK",
}


def is_word_made_of_run_variables(kept: LauncherCall, use_at: int) -> bool:
    """Return whether a script's word consists of variables that Trainer, the job or the script sets."""
    script = kept.found.script
    if script is None or use_at >= len(script.words) or not script.words[use_at].is_open:
        return False
    known = {variable.name for variable in kept.job.env} | set(script.sets) | list_meeting_names(kept.job)
    names = script.words[use_at].names
    made_of = [text for name in names for text in list_assigned_texts(name, script.text)]
    if any(_OF_THIS_HOST.search(text) and "PET_" not in text for text in made_of):
        return False
    if kept.job.workers > 1 and made_of and all(text.strip(" \t\"'") in _LOCAL for text in made_of):
        return False
    return bool(names) and all(name.startswith("PET_") or name in known for name in names)


def check_launcher_rendezvous_options(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield options that set the rendezvous or a worker's number.

    Trainer passes both; deepspeed finds them out.
    """
    job, reading = kept.job, kept.found.reading
    single = job.workers == 1
    tells = _TELLS[kept.found.start.launcher.kind]
    for use in reading.of("standalone"):
        if not single:
            message = f"{use.spelled} lets every worker train alone, but the run has {job.workers} workers"
            yield WordProblem(COMMAND_RENDEZVOUS, use.at, message, "Remove it.", WordEdit(use.at, use.end))
    has_endpoint = any(use.option.name == "rdzv-endpoint" for use in reading.of("rendezvous"))
    for use in reading.of("rendezvous"):
        name, value = use.option.name, use.value
        if is_word_made_of_run_variables(kept, use.value_at) or (
            name == "rdzv-backend" and (value == "static" or single or has_endpoint)
        ):
            continue
        host = value.rpartition(":")[0] or value
        if single and (host in _LOCAL or (name in ("node-rank", "rank") and value == "0")):
            continue
        if name == "rdzv-backend":
            message = f"{use.spelled} {value} needs --rdzv-endpoint, and the run's hosts are only known when it starts"
        elif name == "no_ssh":
            message = f"{use.spelled} starts ranks only on the launcher"
        elif name in ("node-rank", "node_rank", "rank"):
            message = f"{use.spelled} {value} gives all {job.workers} workers the same number"
        else:
            message = f"{use.spelled} {value} names a host, but the run's hosts are only known when it starts"
        edit = WordEdit(use.at, use.end)
        yield WordProblem(COMMAND_RENDEZVOUS, use.at, f"{message}; {tells}", "Remove it.", edit)


# The lowest port that the postures restricted and isolated open between workers (docs/network.md).
_LOWEST_PORT = 1024
# What finds a port by chance, or the next free one; what a file or a number says is the same on each worker.
_DRAWN = re.compile(r"\$\$|\bS?RANDOM\b|(?:\$\(|`)\s*(?:date|jot|od|openssl|shuf)\b|free_?port|getsockname")


# What is another text on each worker.
_OWN = re.compile(r"\bHOSTNAME\b|\bhostname\b|\b(?:PET_|GROUP_)?(?:NODE_)?RANK\b|JOB_COMPLETION_INDEX|uuid")


def check_meeting_port(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a port or an id at which workers cannot meet: closed between them, or another one on each."""
    job, script = kept.job, kept.found.script
    is_per_worker = kept.found.start.launcher.kind in ("torch", "accelerate")
    for use in kept.found.reading.uses if job.workers > 1 else ():
        option = use.option.name.replace("_", "-")
        if option not in ("master-port", "main-process-port", "rdzv-id"):
            continue
        port, is_id = kept.number(use), option == "rdzv-id"
        sources = [use.value]
        if script is not None and use.value_at < len(script.words):
            for name in script.words[use.value_at].names:
                sources += list_assigned_texts(name, script.text)
        is_drawn = any(_DRAWN.search(one) or (is_id and _OWN.search(one)) for one in sources)
        if is_per_worker and ((port == "0" and not is_id) or is_drawn):
            what = "id" if is_id else "port"
            message = f"{use.spelled} {use.value} is another {what} on each of the {job.workers} workers: they never meet"
        elif is_id:
            continue
        elif port and port.isdecimal() and int(port) < _LOWEST_PORT and job.posture != "default":
            message = (
                f"port {port} is closed between workers: posture {job.posture} opens {_LOWEST_PORT} to 65535"
            )
        else:
            continue
        yield WordProblem(COMMAND_RENDEZVOUS, use.at, message, "Remove it.", WordEdit(use.at, use.end))


# Variables that other systems set in each pod or task: Kubeflow's v1 operators, Slurm, SageMaker, Azure ML,
# Volcano.
_ELSEWHERE = re.compile(
    r"MASTER_(?:ADDR|PORT)|(?:NODE_|GROUP_)?RANK|WORLD_SIZE|NNODES|NPROC_PER_NODE|GPUS_PER_NODE"
    r"|(?:SLURM|PBS|LSB|SM|AZ|VC|PADDLE|PHILLY)_\w+"
)


# Roles of options whose open values no other check reports.
_PLAIN_ROLES = frozenset({"", "port"})


def check_unset_launcher_option_values(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield options of a launcher in a script whose value is another system's variable, empty here."""
    script = kept.found.script
    known = {variable.name for variable in kept.job.env} | set(script.sets if script else ())
    known |= list_meeting_names(kept.job)
    for use in kept.found.reading.uses if script else ():
        if use.option.role not in _PLAIN_ROLES or script is None or use.value_at >= len(script.words):
            continue
        names = script.words[use.value_at].names if use.values else ()
        missing = [name for name in names if _ELSEWHERE.fullmatch(name) and name not in known]
        if missing and f"{{{missing[0]}:" not in use.value:  # ${NAME:-default}
            message = f"{use.spelled} takes its value from ${missing[0]}, which nothing sets in this run"
            yield WordProblem(COMMAND_UNSET, use.at, message, "Remove it.", WordEdit(use.at, use.end))


def check_unknown_launcher_options(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a variable in the place of a program, if its value may be options and is only known at run time."""
    script, reading = kept.found.script, kept.found.reading
    if script is None:
        return
    from gangplan.plan.launchers.values import UNQUOTED_VARIABLE  # few launchers are in a script

    for begin, end in reading.programs:
        if begin >= len(script.words) or begin + 1 == end:
            continue
        word = script.words[begin]
        found = UNQUOTED_VARIABLE.fullmatch(script.text[word.begin : word.end])
        if found is None or not word.is_open or not script.is_direct:
            continue
        name = next(filter(None, found.groups()))
        given = {one.name: one.value for one in kept.job.env if one.is_plain} | script.sets
        value = given.get(name) or ""
        if not value or value.startswith("-") or len(value.split()) != 1:
            message = (
                f"what {word.text} holds is only known when the script runs: options in it are not compared"
            )
            help = f"Write the options behind {kept.name}, or set {name} once, outside of branches."
            yield WordProblem(COMMAND_OPTIONS_UNKNOWN, begin, message, help)


def check_accelerate_launch(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of accelerate, which ignores Trainer's variables: a script must pass them."""
    job, reading = kept.job, kept.found.reading
    if job.workers == 1:
        return
    told = {use.option.name for use in reading.uses if is_word_made_of_run_variables(kept, use.value_at)}
    if (
        {"machine-rank", "main-process-ip"} <= told
        and any(reading.of("workers"))
        and any(reading.of("count"))
    ):
        yield from _find_deepspeed_launcher_of_accelerate(kept)
        return
    message = f"accelerate does not know about the run's {job.workers} workers: each would train alone"
    program = extract_launched_program(kept.found)
    edit = (
        WordEdit(kept.found.start.begin, len(reading.words), program)
        if program and not _has_other_accelerate_options(kept)
        else None
    )
    hint = (
        "Write only the program; gangplan starts it with torchrun, whose variables accelerate's library reads."
        if edit
        else "Start it in a shell script that passes on what Trainer tells each worker (PET_NODE_RANK and PET_MASTER_ADDR)."
    )
    whole = () if edit else _build_accelerate_script(kept)
    yield WordProblem(COMMAND_RENDEZVOUS, kept.found.start.begin, message, hint, edit, whole)


# Ways in which accelerate starts DeepSpeed on several hosts that use what Trainer tells each worker; by default it
# calls `deepspeed`, which reaches the others by pdsh and a host file (Accelerate 1.15.0, utils/launch.py).
_OWN_HOST, _MULTINODE = ("standard",), "deepspeed-multinode-launcher"


def _find_deepspeed_launcher_of_accelerate(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem if accelerate would start DeepSpeed's own launcher on each of several workers."""
    uses = {use.option.name: use for use in kept.found.reading.uses}
    chosen = uses.get(_MULTINODE)
    if chosen is not None and chosen.value not in _OWN_HOST:
        message = f"{chosen.spelled} {chosen.value} starts the ranks of all hosts from each worker, which reach none"
        hint = f"Write {chosen.spelled} {_OWN_HOST[0]}."
        edit = replace_launcher_option_value(chosen, _OWN_HOST[0])
        yield WordProblem(COMMAND_RENDEZVOUS, chosen.at, message, hint, edit)
    elif chosen is None and (asked := uses.get("use-deepspeed")) is not None:
        message = (
            "accelerate would start DeepSpeed by pdsh from each worker, which reaches none of the others"
        )
        added = ("--deepspeed_multinode_launcher", *_OWN_HOST)
        edit = WordEdit(asked.end, asked.end, added)
        yield WordProblem(COMMAND_RENDEZVOUS, asked.at, message, f"Add {' '.join(added)}.", edit)


def _has_other_accelerate_options(kept: LauncherCall) -> bool:
    """Return whether accelerate launch sets more than hosts and counts, which torchrun would not set."""
    plain = ("", "count", "workers", "rendezvous", "module", "no-python")
    return any(
        use.option.role not in plain or (not use.option.role and use.option.name not in _PLAIN)
        for use in kept.found.reading.uses
    )


_PLAIN = frozenset(
    {"multi-gpu", "same-network", "main-process-port", "quiet", "q", "cpu", "debug", "role", "t", "tee"}
)


def _build_accelerate_script(kept: LauncherCall) -> tuple[str, ...]:
    """Return accelerate launch in a shell script that fills in the values that Trainer gives each worker."""
    reading, job = kept.found.reading, kept.job
    own = [
        use
        for use in reading.uses
        if use.option.role in ("count", "workers", "rendezvous")
        or use.option.name in ("main-process-port", _MULTINODE)
    ]
    skipped = {index for use in own for index in range(use.at, use.end)}
    words = [word for index, word in enumerate(reading.words) if index > reading.at and index not in skipped]
    if {"use-deepspeed", _MULTINODE} & {use.option.name for use in reading.uses}:
        words = ["--deepspeed_multinode_launcher", *_OWN_HOST, *words]
    told = (
        f'accelerate launch --num_machines {job.workers} --num_processes {job.ranks} --machine_rank "$PET_NODE_RANK"'
        ' --main_process_ip "$PET_MASTER_ADDR" --main_process_port "$PET_MASTER_PORT"'
    )
    return "bash", "-c", f"{told} {shlex.join(words)}"
