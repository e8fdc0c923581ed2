"""Map the options of sbatch and srun to what they request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.scripted.directives import ScriptOption
from gangplan.imports.scripted.slurm_tables import (
    NODE_CHOICE_REASON,
    SLURM_ASKED,
    SLURM_DROPPED,
    SLURM_FLAGS,
    SLURM_SHORT_OPTIONS,
    TEAM_QUEUE_REASON,
)
from gangplan.imports.scripted.wanted import (
    WHOLE_NODE_REASON,
    WantedAllocation,
    parse_batch_script_memory,
    parse_batch_script_time_limit,
    parse_job_array_limit,
    parse_job_array_numbers,
    parse_script_container_mounts,
)


def parse_slurm_options(
    words: Sequence[tuple[str, int, int]], leaf: Callable[[str, int, int, str], ScriptOption]
) -> list[ScriptOption]:
    """Return the words of an option line as options; a value may be attached to a short option."""
    found: list[ScriptOption] = []
    index = 0
    while index < len(words):
        text, begin, end = words[index]
        index += 1
        name, equals, value = text.partition("=")
        if name.startswith("--"):
            bare = expand_slurm_option_name(name[2:])
            has_value = bool(equals)
        elif name.startswith("-") and len(name) > 1:
            bare = SLURM_SHORT_OPTIONS.get(name[1], name[1])
            value, has_value = (text[2:].removeprefix("="), True) if len(text) > 2 else ("", False)
            if has_value and bare in SLURM_FLAGS:
                value = ""
        else:
            found.append(leaf(text, begin, end, text))
            continue
        if (
            not has_value
            and bare not in SLURM_FLAGS
            and index < len(words)
            and not _is_option(words[index][0])
        ):
            value, _, end = words[index]
            has_value = True
            index += 1
        found.append(leaf(bare, begin, end, value))
    return found


def _is_option(text: str) -> bool:
    return re.match(r"--?[A-Za-z]", text) is not None


def expand_slurm_option_name(text: str) -> str:
    """Return the whole name of an option that may be abbreviated, as getopt_long allows."""
    if text in _KNOWN:
        return text
    near = [one for one in _KNOWN if one.startswith(text)]
    return near[0] if len(near) == 1 else text


def apply_slurm_options(
    options: Iterable[ScriptOption], wanted: WantedAllocation, account: Account, is_step: bool = False
) -> None:
    """Record what the options request, and account for each of them."""
    for option in options:
        node = option.node(account)
        handler = _HANDLERS.get(option.name)
        is_of_all = option.name == "exclusive" or (option.name.startswith("mem") and option.value == "0")
        if is_step and is_of_all:
            node.same("a step may use all that its job has")
        elif is_step and option.name == "export":
            _map_exports_of_step(wanted, option.value, node)
        elif handler is not None:
            handler(wanted, option.value, node)
        elif option.name in SLURM_DROPPED:
            node.dropped(SLURM_DROPPED[option.name])
        elif option.name in SLURM_ASKED:
            node.asked(SLURM_ASKED[option.name])
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


def _build_slurm_number_handler(name: str, to: str) -> Callable[[WantedAllocation, str, SourceNode], None]:
    def handle(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]+))?k?", value)
        if found is None:
            node.asked(f"'{value}' is not a number")
            wanted.questions.append(
                (node, f"'{value}' is not a number", "Correct the option, or fill it in: --set NAME=VALUE.")
            )
        else:
            wanted.say(name, int(found[1]), node, to)
            if found[2] and int(found[2]) > int(found[1]):
                message = f"Slurm gives the job from {found[1]} to {found[2]} nodes, and a run has {found[1]}"
                wanted.questions.append((node, message, "Write how many workers it needs."))

    return handle


def _build_slurm_memory_handler(name: str) -> Callable[[WantedAllocation, str, SourceNode], None]:
    def handle(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
        count = parse_batch_script_memory(value, "m")
        if count == 0 or value.upper() in ("MAX_MEM_PER_NODE", "ALL"):
            wanted.place("whole memory", node)
        elif count is None:
            _ask_about_option(
                wanted, node, f"'{value}' is not an amount of memory", "Write memory: of one worker."
            )
        else:
            wanted.say(name, count, node, "memory")

    return handle


def _map_slurm_disk(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    count = parse_batch_script_memory(value, "m")
    if count is None:
        node.asked(f"'{value}' is not an amount of disk")
    elif count:
        wanted.say("scratch", count, node, "scratch")
    else:
        node.same("nothing is asked for")


def _ask_about_option(wanted: WantedAllocation, node: SourceNode, message: str, help: str) -> None:
    """Ask about an option that is not in the spec, in the account and among the findings."""
    node.asked(message)
    wanted.questions.append((node, f"{node.name}: {message}", help))


def _build_slurm_gpu_handler(name: str) -> Callable[[WantedAllocation, str, SourceNode], None]:
    """Return the handler of `N`, `TYPE:N` or `TYPE`; several with commas add up."""

    def handle(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
        total = 0
        for part in value.split(","):
            model, _, count = part.rpartition(":")
            is_open = "$" in count  # a variable that the script does not set, in place of a number
            if is_open:
                message = f"'{part}' is not a number of GPUs"
                wanted.questions.append(
                    (node, message, "Correct the option, or fill it in: --set NAME=VALUE.")
                )
                count = "1"
            elif count and not count.isdigit():
                model, count = count, "1"
            if not count.isdigit() or len(count) > 6:
                _ask_about_option(
                    wanted, node, f"'{part}' is not a number of GPUs", "Write gpus: of one worker."
                )
                return
            if model:
                wanted.models.append((model, node))
            if is_open and wanted.gpus_on_node is not None:
                node.asked(f"'{part}' is not a number of GPUs")
                return
            total += int(count)
        wanted.say(name, total, node, "gpus")

    return handle


def _map_slurm_gres(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    found: list[str] = []
    for part in re.sub(r"\(.*?\)", "", value).split(","):
        kind, _, rest = part.removeprefix("gres/").removeprefix("gres:").partition(":")
        if kind == "gpu":
            found.append(rest or "1")
        elif kind in ("none", ""):
            node.same("nothing is asked for")
        elif kind in ("mps", "shard") or kind.startswith("gpu"):
            _ask_about_option(
                wanted,
                node,
                f"{part} is not a number of whole GPUs, and the spec has none for it",
                "Write gpus: 1.",
            )
        else:
            node.asked(f"{kind} is a resource of Slurm; devices: asks for one that Kubernetes knows")
    if found:
        _build_slurm_gpu_handler("gpus_per_node")(wanted, ",".join(found), node)


def _map_slurm_resources_of_task(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    """Map `--tres-per-task=cpu=8,gres/gpu:a100=2`; a colon may be in place of the equals sign."""
    for part in value.split(","):
        kind, _, count = re.sub(r"[:=](?=[0-9]+$)", "=", part).partition("=")
        name, _, model = kind.removeprefix("gres/").partition(":")
        if name == "cpu" and count.isdigit():
            wanted.say("cpus_per_task", int(count), node, "cpu")
        elif name == "gpu":
            text = f"{model}:{count or 1}" if model else count or "1"
            _build_slurm_gpu_handler("gpus_per_task")(wanted, text, node)
        else:
            node.asked(f"{part} is a resource of Slurm; devices: asks for one that Kubernetes knows")


def _map_slurm_sockets(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.sockets_per_node = int(value) if value.isdigit() else None
    node.dropped(NODE_CHOICE_REASON)


def _map_slurm_time_limit(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    seconds = parse_batch_script_time_limit(value)
    if value.upper() in ("0", "UNLIMITED", "INFINITE", "-1"):
        node.asked("a run takes up to 7d")
    elif seconds is None:
        node.asked(f"'{value}' is not a time")
    else:
        wanted.setting("timeout", seconds, node)


def _drop_slurm_time_minimum(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    node.dropped("Slurm may cut the limit to it, so that the job starts sooner; a run has the whole limit")


def _map_slurm_job_name(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.setting("name", value, node.mapped("name"))


def _map_slurm_qos(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    if next((one for one in ("low", "normal", "high", "critical") if one in value.lower()), ""):
        wanted.setting("priority", value, node)
    else:
        node.dropped(TEAM_QUEUE_REASON)


def _map_slurm_partition(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.pools.append((value, node))


def _map_slurm_constraint(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.models.append((value, node))


def _map_slurm_exclusive(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    if value in ("user", "mcs", "no"):
        node.same(WHOLE_NODE_REASON)
    else:
        wanted.place("exclusive", node)


def _map_slurm_requeue(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    node.same(
        "Kueue puts a preempted run back into its queue; retries: says how often one that failed starts again"
    )


def _map_slurm_no_requeue(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    node.same("a run that failed does not start again without retries")


def _map_slurm_signal(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    """Map `[B:]SIGNAL[@SECONDS]`, a warning before the end: a run gets SIGTERM and its grace period."""
    found = re.fullmatch(r"(?:[RB]+:)?(\w+)(?:@([0-9]{1,6}))?", value)
    if found is None:
        node.asked(f"'{value}' is not a signal")
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


def _map_slurm_array(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    numbers = parse_job_array_numbers(value)
    if numbers is None:
        node.asked(f"'{value}' is not an array of tasks")
        return
    wanted.array, wanted.at_once = numbers, parse_job_array_limit(value, len(numbers))
    wanted.place("array", node)


def _map_slurm_chdir(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.workdir = value
    wanted.place("workdir", node)


def _map_slurm_export(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    for part in value.split(","):
        name, equals, text = part.partition("=")
        if equals:
            wanted.variable(name, text, node)
    if "=" not in value:
        node.dropped("a run has the variables of its spec, and none of the person who submits it")


def _map_exports_of_step(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    """Record variables that one launch has; values may have commas in quotes, which are gone here."""
    for part in re.split(r",(?=[A-Za-z_]\w*(?:=|,|$))", value):
        name, equals, text = part.partition("=")
        if equals:
            wanted.step_env[name] = (text, node)
    if "=" not in value:
        node.dropped("a run has the variables of its spec, and none of the person who submits it")


def _map_slurm_container_image(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.image = value
    wanted.place("image", node)


def _map_slurm_container_mounts(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    wanted.mounts += parse_script_container_mounts(value, node)


def _map_slurm_container_workdir(wanted: WantedAllocation, value: str, node: SourceNode) -> None:
    _map_slurm_chdir(wanted, value, node)


_HANDLERS: dict[str, Callable[[WantedAllocation, str, SourceNode], None]] = {
    "dependency": WantedAllocation.depend,
    "nodes": _build_slurm_number_handler("nodes", "workers"),
    "ntasks": _build_slurm_number_handler("tasks", "slots"),
    "ntasks-per-node": _build_slurm_number_handler("tasks_per_node", "slots"),
    "tasks-per-node": _build_slurm_number_handler("tasks_per_node", "slots"),
    "ntasks-per-gpu": _build_slurm_number_handler("tasks_per_gpu", "slots"),
    "cpus-per-task": _build_slurm_number_handler("cpus_per_task", "cpu"),
    "cpus-per-gpu": _build_slurm_number_handler("cpus_per_gpu", "cpu"),
    "gpus": _build_slurm_gpu_handler("gpus"),
    "gpus-per-node": _build_slurm_gpu_handler("gpus_per_node"),
    "gpus-per-task": _build_slurm_gpu_handler("gpus_per_task"),
    "gpus-per-socket": _build_slurm_gpu_handler("gpus_per_socket"),
    "sockets-per-node": _map_slurm_sockets,
    "gres": _map_slurm_gres,
    "mincpus": _build_slurm_number_handler("least_cpus", "cpu"),
    "tres-per-task": _map_slurm_resources_of_task,
    "mem": _build_slurm_memory_handler("memory"),
    "mem-per-cpu": _build_slurm_memory_handler("memory_per_cpu"),
    "mem-per-gpu": _build_slurm_memory_handler("memory_per_gpu"),
    "tmp": _map_slurm_disk,
    "time": _map_slurm_time_limit,
    "time-min": _drop_slurm_time_minimum,
    "job-name": _map_slurm_job_name,
    "qos": _map_slurm_qos,
    "partition": _map_slurm_partition,
    "constraint": _map_slurm_constraint,
    "prefer": _map_slurm_constraint,
    "exclusive": _map_slurm_exclusive,
    "requeue": _map_slurm_requeue,
    "no-requeue": _map_slurm_no_requeue,
    "signal": _map_slurm_signal,
    "array": _map_slurm_array,
    "chdir": _map_slurm_chdir,
    "export": _map_slurm_export,
    "container-image": _map_slurm_container_image,
    "image": _map_slurm_container_image,
    "container-mounts": _map_slurm_container_mounts,
    "volume": _map_slurm_container_mounts,
    "container-workdir": _map_slurm_container_workdir,
}
_KNOWN = frozenset(
    {*_HANDLERS, *SLURM_DROPPED, *SLURM_ASKED, *SLURM_FLAGS, *SLURM_SHORT_OPTIONS.values(), "hetjob"}
)
