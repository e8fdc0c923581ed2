"""Map the options of qsub in PBS Professional 2022.1 (OpenPBS 23.06) and Torque 6.1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.scripted.directives import ScriptOption
from gangplan.imports.scripted.wanted import (
    WantedAllocation,
    parse_batch_script_memory,
    parse_batch_script_time_limit,
    parse_job_array_limit,
    parse_job_array_numbers,
)

# Options of qsub(1B) without a value.
FLAGS = frozenset("VhIXzfGkx")
_QUEUE = "the team's queue and quota take the place of projects and queues"
_LOG = "the log of a run is what its pods print (gangplan logs)"
_MAIL = "alerts are the platform's (docs/observability.md)"
_SHELL = "the run starts the program, not a login shell"
_MACHINES = "it describes machines of the old cluster; pools and placement choose nodes"
DROPPED = {
    **dict.fromkeys("AP", _QUEUE),
    **dict.fromkeys("oejkRK", _LOG),
    **dict.fromkeys("mM", _MAIL),
    **dict.fromkeys("SVuXIzCfG", _SHELL),
    "c": "checkpoint: says where a run saves its state",
    "h": "a run waits for its queue alone",
    "r": "retries: says how often a run that failed starts again",
}
_ASKED = {
    "a": "a run starts when its queue admits it",
    "p": "choose priority: low, normal, high or critical",
    "x": "gangplan does not know this option of PBS",
}
# Resources of a node for the layout of its parts, or specific to a site.
_LAYOUT = frozenset(["ompthreads", "place", "host", "vnode", "arch", "mpiprocs_per_socket", "aoe", "eoe", "hwt", "system", "filesystems", "cputype", "cput", "pvmem", "vmem", "pmem", "nice", "naccesspolicy", "gpu_mode", "ngpus_mode", "model", "bigmem", "os", "cluster", "interconnect", "switch", "chunk_type", "cpu_type", "preempt_targets", "scratch_shm", "centos", "spec"])  # fmt: skip

# Memory outside of chunks is that of the whole job, or of each process (pbs_resources(7B), PBS 2022.1; Torque 6.1).
_MEMORY = {
    "mem": "memory_of_job",
    "memory": "memory_of_job",
    "pmem": "memory_per_task",
    "vmem": "addresses_of_job",
    "pvmem": "addresses_per_task",
}


def parse_pbs_options(
    words: Sequence[tuple[str, int, int]], leaf: Callable[[str, int, int, str], ScriptOption]
) -> list[ScriptOption]:
    """Return the words of an option line as options; a value may be attached to its option.

    Each resource becomes an option: `-l select=2:ncpus=8` is `-l select`.
    """
    found: list[ScriptOption] = []
    index = 0
    while index < len(words):
        text, begin, end = words[index]
        index += 1
        if not re.match(r"-[A-Za-z]", text):
            found.append(leaf(text, begin, end, text))
            continue
        name, value = text[1], text[2:]
        if not value and name not in FLAGS and index < len(words) and not words[index][0].startswith("-"):
            value, begin, end = words[index]
            index += 1
        elif value:
            begin += 2
        if name == "l":
            found += _split_pbs_resources(value, begin, leaf)
        else:
            found.append(leaf(name, begin, end, value))
    return found


def _split_pbs_resources(
    text: str, begin: int, leaf: Callable[[str, int, int, str], ScriptOption]
) -> list[ScriptOption]:
    """Return the resources of one `-l`, separated by commas."""
    found, at = [], begin
    for part in text.split(","):
        name, _, value = part.partition("=")
        found.append(leaf(f"l {name}", at, at + len(part), value))
        at += len(part) + 1
    return found


def apply_pbs_options(options: Iterable[ScriptOption], wanted: WantedAllocation, account: Account) -> None:
    """Record what the options request, and account for each of them."""
    for option in options:
        node = option.node(account)
        name = option.name
        if name.startswith("l "):
            _record_pbs_resource(name[2:], option.value, wanted, node)
        elif name == "N":
            wanted.setting("name", option.value, node.mapped("name"))
        elif name == "q":
            wanted.pools.append((option.value, node))
        elif name in ("J", "t"):
            _record_pbs_array(option.value, wanted, node)
        elif name in ("d", "w"):
            wanted.workdir = option.value
            wanted.place("workdir", node)
        elif name == "v":
            _record_pbs_variables(option.value, wanted, node)
        elif name == "W":
            _account_for_pbs_attribute(option.value, wanted, node)
        elif name in DROPPED:
            node.dropped(DROPPED[name])
        else:
            node.asked(_ASKED.get(name, "gangplan does not know this option of PBS"))


# Attributes of -W (PBS Professional 2022.1, qsub(1B)) that a run replaces by something else.
_W_DROPPED = {
    "group_list": "files belong to the group that the image and its claims say",
    "umask": "the image and its claims say what files may be read",
    "sandbox": "the log of a run is what its pods print (gangplan logs)",
    "block": "`gangplan status` shows what becomes of a run",
}


def _account_for_pbs_attribute(value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    """Account for -W NAME=VALUE: dependencies, files, and the account."""
    name, _, told = (part.strip() for part in value.partition("="))
    if name in _W_DROPPED:
        node.dropped(_W_DROPPED[name])
    elif name == "depend":
        wanted.depend(told, node)
    elif name in ("stagein", "stageout"):
        node.asked("files come from claims: data: mounts one")
    else:
        node.asked("gangplan does not know this attribute of PBS")


def _record_pbs_array(value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    numbers = parse_job_array_numbers(value)
    if numbers is None:
        node.asked(f"'{value}' is not an array of tasks")
    else:
        wanted.array, wanted.at_once = numbers, parse_job_array_limit(value, len(numbers))
        wanted.place("array", node)


def _record_pbs_variables(value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    for part in value.split(","):
        name, equals, text = part.partition("=")
        if equals:
            wanted.variable(name, text.strip("'\""), node)
    if "=" not in value:
        node.dropped("a run has the variables of its spec, and none of the person who submits it")


def _record_pbs_resource(name: str, value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    """Record a resource of the job: its nodes, its time, or an amount for all of it."""
    if name in ("select", "nodes"):
        _record_pbs_chunks(value, wanted, node, is_torque=name == "nodes")
    elif name == "walltime":
        seconds = parse_batch_script_time_limit(value, starts_with_minutes=False) or _parse_torque_walltime(
            value
        )
        if seconds is None:
            node.asked(f"'{value}' is not a time")
        else:
            wanted.setting("timeout", seconds, node)
    elif name in _MEMORY:
        _record_pbs_memory(_MEMORY[name], value, wanted, node)
    elif name in (
        "ncpus",
        "ngpus",
        "gpus",
        "ppn",
        "mpiprocs",
        "gpu_type",
        "gpu_model",
        "scratch",
        "procs",
        "size",
    ):
        _record_pbs_chunk_resource(name, value, wanted, node)
    elif name == "place":
        if "excl" in value:
            wanted.place("exclusive", node)
        else:
            node.dropped(_MACHINES)
    elif name in _LAYOUT or name.split("_")[0] in ("scratch", "cl", "place"):
        node.dropped(_MACHINES)
    else:
        node.asked(f"{name} is a resource of the old cluster")


def _record_pbs_memory(name: str, value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    """Record an amount of memory; that of addresses counts where no other is stated."""
    count = parse_batch_script_memory(value, "")
    if not count:
        node.asked(f"'{value}' is not an amount of memory")
    elif name.startswith("addresses"):
        setattr(wanted, name, count)
        wanted.place(name, node)
    else:
        wanted.say(name, count, node, "memory")


def _parse_torque_walltime(value: str) -> int | None:
    """Parse DD:HH:MM:SS, which Torque accepts."""
    parts = value.split(":")
    if len(parts) != 4 or not all(one.isdigit() for one in parts):
        return None
    days, hours, minutes, seconds = map(int, parts)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _record_pbs_chunks(value: str, wanted: WantedAllocation, node: SourceNode, is_torque: bool) -> None:
    """Record chunks such as `2:ncpus=8:ngpus=1+1:ncpus=4`; chunks of different shapes are refused."""
    chunks = value.split("+")
    if len({chunk.partition(":")[2] for chunk in chunks}) > 1:
        wanted.refusals.append(
            (node, "the chunks of the job have different shapes", "Import each shape as a job of its own.")
        )
    total = 0
    for chunk in chunks:
        head, *parts = chunk.split(":")
        if head.isdigit():
            total += int(head)
        else:
            total += 1
            parts = [head, *parts] if "=" in head else parts
    wanted.say("nodes", min(total, 10**6), node, "workers")
    for part in chunks[0].split(":"):
        name, equals, amount = part.partition("=")
        if equals:
            _record_pbs_chunk_resource(name, amount, wanted, node)
        elif part and not part.isdigit():
            wanted.models.append((part, node))
    if not is_torque and wanted.tasks_per_node is None and wanted.cpus_per_node:
        wanted.at.setdefault("tasks_per_node", node)


def _record_pbs_chunk_resource(name: str, value: str, wanted: WantedAllocation, node: SourceNode) -> None:
    """Record a resource of a chunk, or of the whole job in the older form."""
    numbers = {
        "ncpus": "cpus_per_node",
        "ngpus": "gpus_per_node",
        "gpus": "gpus_per_node",
        "mpiprocs": "tasks_per_node",
    }
    if name == "ppn" and value.isdigit():
        wanted.say("tasks_per_node", int(value), node, "slots")
        wanted.say("cpus_per_node", int(value), node, "cpu")
    elif name in numbers and value.isdigit() and len(value) < 7:
        wanted.say(
            numbers[name],
            int(value),
            node,
            "slots" if name == "mpiprocs" else "gpus" if "gpus" in name else "cpu",
        )
    elif name == "procs" and value.isdigit() and len(value) < 7:
        wanted.say("tasks", int(value), node, "slots")
    elif name in ("mem", "memory") or (name == "vmem" and wanted.memory is None):
        _record_pbs_memory("memory", value, wanted, node)
    elif name in ("pmem", "pvmem"):
        _record_pbs_memory(_MEMORY[name], value, wanted, node)
    elif name.startswith("scratch") and parse_batch_script_memory(value, "") is not None:
        wanted.say("scratch", parse_batch_script_memory(value, ""), node, "scratch")
    elif name in (
        "gpu_type",
        "gpu_model",
        "accelerator_model",
        "accelerator_type",
        "gpu_id",
        "model_gpu",
        "gputype",
    ):
        wanted.models.append((value, node))
    elif name not in _LAYOUT:
        wanted.questions.append((node, f"{name}={value} is a resource of the old cluster", ""))
