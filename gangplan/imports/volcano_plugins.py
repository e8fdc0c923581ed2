"""What the plugins of a Job of Volcano do for its pods, and their arguments.

Sources: Volcano v1.8 to v1.14, pkg/controllers/job/plugins; the flags are those of Go's package flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.groups import Grouped, SourcePodGroup
from gangplan.imports.workload import PodRole, SourceError, SourceJob

_BY_THE_RUN = "gangplan and Trainer set up what the pods of a run need of each other"
_SWITCHES = frozenset(
    ("publish-not-ready-addresses", "disable-network-policy", "inject-hosts-env", "wait-master-enabled")
)
_KNOWN = ("env", "svc", "ssh", "mpi", "pytorch", "tensorflow")
# Flags of the plugins (pkg/controllers/job/plugins, Volcano v1.8 to v1.14), and why a run needs none of them.
_PORT = "gangplan and Trainer choose the port at which the pods meet, and tell it to each of them"
_TASK = "the roles of a run are those of its pods, whatever the tasks were called"
_NETWORK = "the team's network policies decide who reaches the pods of a run"
_SSH = "runs of MPI have keys and a port of their own, which Trainer makes"
_FLAGS: dict[str, dict[str, str]] = {
    "svc": {
        "publish-not-ready-addresses": "the workers of a run have their names before they are ready",
        "disable-network-policy": _NETWORK,
        "inject-hosts-env": "torchrun or MPI gets the hosts of a run, and no list of them is in the environment",
    },
    "ssh": {
        "no-root": "runs are never root",
        "ssh-key-file-path": _SSH,
        "ssh-private-key": _SSH,
        "ssh-public-key": _SSH,
    },
    "mpi": {"master": _TASK, "worker": _TASK, "port": _SSH},
    "pytorch": {
        "master": _TASK,
        "worker": _TASK,
        "port": _PORT,
        **dict.fromkeys(
            ("wait-master-enabled", "wait-master-timeout", "wait-master-image"),
            "torchrun waits for all workers by itself",
        ),
    },
    "tensorflow": {**dict.fromkeys(("ps", "worker", "chief", "evaluator"), _TASK), "port": _PORT},
}
_TENSORFLOW = ("worker", "chief", "ps", "evaluator")

PluginFlags = Mapping[str, Mapping[str, str]]


def read_plugin_flags(words: Sequence[str]) -> dict[str, str]:
    """Return the flags of a plugin by name, as Go reads them: up to the first word that is not a flag."""
    return {name: value for _, _, name, value in _split_flags(words) if name}


def _split_flags(words: Sequence[str]) -> Iterator[tuple[int, int, str, str]]:
    """Yield each flag: where its words begin and end, its name and value; at the end without a name what no flag is."""
    at = 0
    while at < len(words):
        begin, word = at, words[at]
        is_flag = len(word) > 1 and word.startswith("-") and word != "--"
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        at += 1
        if is_flag and not equals and name in _SWITCHES:
            value = "true"
        elif is_flag and not equals and at < len(words):
            value = words[at]
            at += 1
        elif not is_flag or not equals:
            yield begin, len(words), "", word
            return
        yield begin, at, name, value


def read_volcano_plugins(plugins: SourceNode) -> PluginFlags:
    """Return the flags of each plugin. Raises SourceError for one whose pods cannot be those of a run."""
    if isinstance(plugins.value, dict) and "ray" in plugins.value:
        raise SourceError(
            "the plugin ray starts a Ray cluster in its pods, and a run has none",
            "Import what the program of the cluster starts as a spec of your own.",
        )
    return {name: read_plugin_flags(node.texts()) for name, node in plugins.fields()}


def account_for_volcano_plugins(plugins: SourceNode, work: SourceJob) -> None:
    """Account for the plugins; ask about those whose part nothing in a run has."""
    for name, node in plugins.fields():
        message = help = ""
        if name == "ssh" and work.start != "mpi":
            message = (
                "the plugin ssh lets the pods log in to each other; those of this run have no keys for that"
            )
            help = "Check that nothing in the program needs it: only runs of MPI have SSH."
        elif name == "hcclrank":
            message = "the plugin hcclrank numbers the pods for HCCL (annotation hccl/rankIndex); nothing numbers those of a run so"
            help = "Let the program read its rank."
        elif name not in _KNOWN:
            message = f"gangplan does not know the plugin {name} of Volcano"
            help = "Check what it does for the pods, and do it in the command."
        if message:
            node.asked(message)
            work.questions.append((node, message, help))
        else:
            _account_for_plugin_flags(name, node, work)
        node.dropped(_BY_THE_RUN)


def _account_for_plugin_flags(plugin: str, node: SourceNode, work: SourceJob) -> None:
    """Account for each flag of a plugin by itself; ask about one that the plugin does not have."""
    if plugin not in _FLAGS:
        return
    words = list(node.items()) or [node] * bool(node.text())
    for begin, end, flag, value in _split_flags(node.texts()):
        nodes = words[begin:end]
        why = _FLAGS[plugin].get(flag, "")
        help = "Correct it, or leave it out."
        if not flag:
            why = f"the plugin {plugin} reads no more flags from {value} on"
        elif not why:
            why = f"the plugin {plugin} has no flag {flag}"
        elif flag == "port" and plugin == "pytorch" and value != "23456":
            why = f"{why}; a program that names {value} itself finds nothing there"
            help = "Let it read MASTER_PORT."
        else:
            help = ""
        for one in nodes:
            one.dropped(f"--{flag}: {why}" if flag else why) if not help else one.asked(why)
        if help:
            work.questions.append((nodes[0], f"{plugin} --{flag}: {why}" if flag else why, help))


def group_tensorflow_tasks(
    groups: Sequence[SourcePodGroup], flags: Mapping[str, str], found: Grouped
) -> Grouped:
    """Return the tasks by the names that the plugin gives them; without workers or chief, what was found."""
    kinds = {flags.get(kind, kind): kind for kind in _TENSORFLOW}
    roles = {kinds.get(one.name, one.name): one for one in groups}
    main = roles.pop("worker", None) or roles.pop("chief", None)
    if main is None:
        return found
    aside = (PodRole(name, one.count, one.pod, whole=one.node) for name, one in roles.items())
    return Grouped(
        "plain",
        "tensorflow",
        (PodRole("worker", main.count, main.pod, whole=main.node),),
        tuple(aside),
    )
