"""Map the options of sbatch and srun to what they request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gangplan.imports.account import Account, Node
from gangplan.imports.scripted.directives import Option
from gangplan.imports.scripted.slurm_tables import ASKED, DROPPED, FLAGS, QUEUE, SHORT
from gangplan.imports.scripted.wanted import Wanted, array_of, at_once_of, bytes_of, mounts_of, seconds_of


def options_of(
    words: Sequence[tuple[str, int, int]], leaf: Callable[[str, int, int, str], Option]
) -> list[Option]:
    """Return the words of an option line as options; a value may be attached to a short option."""
    found: list[Option] = []
    index = 0
    while index < len(words):
        text, begin, end = words[index]
        index += 1
        name, equals, value = text.partition("=")
        if name.startswith("--"):
            bare = full_name(name[2:])
            has_value = bool(equals)
        elif name.startswith("-") and len(name) > 1:
            bare = SHORT.get(name[1], name[1])
            value, has_value = (text[2:].removeprefix("="), True) if len(text) > 2 else ("", False)
            if has_value and bare in FLAGS:
                value = ""
        else:
            found.append(leaf(text, begin, end, text))
            continue
        if not has_value and bare not in FLAGS and index < len(words) and not _is_option(words[index][0]):
            value, _, end = words[index]
            has_value = True
            index += 1
        found.append(leaf(bare, begin, end, value))
    return found


def _is_option(text: str) -> bool:
    return re.match(r"--?[A-Za-z]", text) is not None


def full_name(text: str) -> str:
    """Return the whole name of an option that may be abbreviated, as getopt_long allows."""
    if text in _KNOWN:
        return text
    near = [one for one in _KNOWN if one.startswith(text)]
    return near[0] if len(near) == 1 else text


def apply(options: Iterable[Option], wanted: Wanted, account: Account, is_step: bool = False) -> None:
    """Record what the options request, and account for each of them."""
    for option in options:
        node = option.node(account)
        handler = _HANDLERS.get(option.name)
        if handler is not None:
            handler(wanted, option.value, node)
        elif option.name in DROPPED:
            node.dropped(DROPPED[option.name])
        elif option.name in ASKED:
            node.asked(ASKED[option.name])
        elif option.name == "hetjob":
            wanted.refusals.append(
                (
                    node,
                    "a heterogeneous job has groups of nodes of different shape",
                    "Import each group as a job of its own.",
                )
            )
        else:
            node.asked("gangplan does not know this option of Slurm")


def _number(name: str, to: str) -> Callable[[Wanted, str, Node], None]:
    def handle(wanted: Wanted, value: str, node: Node) -> None:
        found = re.fullmatch(r"([0-9]{1,9})(?:-[0-9]+)?k?", value)
        if found is None:
            node.asked(f"'{value}' is no number")
            wanted.questions.append(
                (node, f"'{value}' is no number", "Correct the option, or fill it in: --set NAME=VALUE.")
            )
        else:
            wanted.say(name, int(found[1]), node, to)

    return handle


def _memory(name: str) -> Callable[[Wanted, str, Node], None]:
    def handle(wanted: Wanted, value: str, node: Node) -> None:
        count = bytes_of(value, "m")
        if count == 0 or value.upper() in ("MAX_MEM_PER_NODE", "ALL"):
            node.same("without memory a worker gets its share of the node")
        elif count is None:
            node.asked(f"'{value}' is no amount of memory")
        else:
            wanted.say(name, count, node, "scratch" if name == "scratch" else "memory")

    return handle


def _gpus(name: str) -> Callable[[Wanted, str, Node], None]:
    """Return the handler of `N`, `TYPE:N` or `TYPE`."""

    def handle(wanted: Wanted, value: str, node: Node) -> None:
        model, _, count = value.rpartition(":")
        if count and not count.isdigit():
            model, count = count, "1"
        if not count.isdigit() or len(count) > 6:
            node.asked(f"'{value}' is no number of GPUs")
            return
        wanted.say(name, int(count), node, "gpus")
        if model:
            wanted.models.append((model, node))

    return handle


def _gres(wanted: Wanted, value: str, node: Node) -> None:
    for part in value.split(","):
        kind, _, rest = part.removeprefix("gres/").removeprefix("gres:").partition(":")
        if kind == "gpu":
            _gpus("gpus_per_node")(wanted, re.sub(r"\(.*\)", "", rest) or "1", node)
        elif kind in ("none", ""):
            node.same("nothing is asked for")
        else:
            node.asked(f"{kind} is a resource of Slurm; devices: asks for one that Kubernetes knows")


def _time(wanted: Wanted, value: str, node: Node) -> None:
    seconds = seconds_of(value)
    if value.upper() in ("0", "UNLIMITED", "INFINITE", "-1"):
        node.asked("a run takes up to 7d")
    elif seconds is None:
        node.asked(f"'{value}' is no time")
    else:
        wanted.setting("timeout", seconds, node)


def _name(wanted: Wanted, value: str, node: Node) -> None:
    wanted.setting("name", value, node.mapped("name"))


def _qos(wanted: Wanted, value: str, node: Node) -> None:
    if next((one for one in ("low", "normal", "high", "critical") if one in value.lower()), ""):
        wanted.setting("priority", value, node)
    else:
        node.dropped(QUEUE)


def _partition(wanted: Wanted, value: str, node: Node) -> None:
    wanted.pools.append((value, node))


def _constraint(wanted: Wanted, value: str, node: Node) -> None:
    wanted.models.append((value, node))


def _exclusive(wanted: Wanted, value: str, node: Node) -> None:
    wanted.is_exclusive = value not in ("user", "mcs", "no")
    node.same("a worker with all GPUs of a node has the node to itself")


def _requeue(wanted: Wanted, value: str, node: Node) -> None:
    node.same(
        "Kueue puts a preempted run back into its queue; retries: says how often one that failed starts again"
    )


def _no_requeue(wanted: Wanted, value: str, node: Node) -> None:
    node.same("a run that failed does not start again without retries")


def _signal(wanted: Wanted, value: str, node: Node) -> None:
    """Map `[B:]SIGNAL[@SECONDS]`, a warning before the end: a run gets SIGTERM and its grace period."""
    found = re.fullmatch(r"(?:[RB]+:)?(\w+)(?:@([0-9]{1,6}))?", value)
    if found is None:
        node.asked(f"'{value}' is no signal")
        return
    seconds = int(found[2] or 60)
    wanted.setting("grace", seconds, node)
    if found[1].upper().removeprefix("SIG") not in ("TERM", "15"):
        wanted.questions.append(
            (
                node,
                f"the program is warned by {found[1]}, and a run by SIGTERM",
                "Let the program handle SIGTERM.",
            )
        )


def _array(wanted: Wanted, value: str, node: Node) -> None:
    numbers = array_of(value)
    if numbers is None:
        node.asked(f"'{value}' is no array of tasks")
        return
    wanted.array, wanted.at_once = numbers, at_once_of(value, len(numbers))
    wanted.place("array", node)


def _chdir(wanted: Wanted, value: str, node: Node) -> None:
    wanted.workdir = value
    wanted.place("workdir", node)


def _export(wanted: Wanted, value: str, node: Node) -> None:
    for part in value.split(","):
        name, equals, text = part.partition("=")
        if equals:
            wanted.variable(name, text, node)
    if "=" not in value:
        node.dropped("a run has the variables of its spec, and none of the person who submits it")


def _image(wanted: Wanted, value: str, node: Node) -> None:
    wanted.image = value
    wanted.place("image", node)


def _mounts(wanted: Wanted, value: str, node: Node) -> None:
    wanted.mounts += mounts_of(value, node)


def _container_workdir(wanted: Wanted, value: str, node: Node) -> None:
    _chdir(wanted, value, node)


_HANDLERS: dict[str, Callable[[Wanted, str, Node], None]] = {
    "nodes": _number("nodes", "workers"),
    "ntasks": _number("tasks", "slots"),
    "ntasks-per-node": _number("tasks_per_node", "slots"),
    "tasks-per-node": _number("tasks_per_node", "slots"),
    "cpus-per-task": _number("cpus_per_task", "cpu"),
    "cpus-per-gpu": _number("cpus_per_gpu", "cpu"),
    "gpus": _gpus("gpus"),
    "gpus-per-node": _gpus("gpus_per_node"),
    "gpus-per-task": _gpus("gpus_per_task"),
    "gres": _gres,
    "mem": _memory("memory"),
    "mem-per-cpu": _memory("memory_per_cpu"),
    "mem-per-gpu": _memory("memory_per_gpu"),
    "tmp": _memory("scratch"),
    "time": _time,
    "time-min": _time,
    "job-name": _name,
    "qos": _qos,
    "partition": _partition,
    "constraint": _constraint,
    "prefer": _constraint,
    "exclusive": _exclusive,
    "requeue": _requeue,
    "no-requeue": _no_requeue,
    "signal": _signal,
    "array": _array,
    "chdir": _chdir,
    "export": _export,
    "container-image": _image,
    "image": _image,
    "container-mounts": _mounts,
    "volume": _mounts,
    "container-workdir": _container_workdir,
}
_KNOWN = frozenset({*_HANDLERS, *DROPPED, *ASKED, *FLAGS, *SHORT.values(), "hetjob"})
