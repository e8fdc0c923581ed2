"""What the plugins of a Job of Volcano do for its pods, and their arguments.

Sources: Volcano v1.8 to v1.14, pkg/controllers/job/plugins; the flags are those of Go's package flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.groups import Grouped, SourcePodGroup
from gangplan.imports.workload import PodRole, SourceError, SourceJob

_BY_THE_RUN = "gangplan and Trainer set up what the pods of a run need of each other"
_SWITCHES = frozenset(
    ("publish-not-ready-addresses", "disable-network-policy", "inject-hosts-env", "wait-master-enabled")
)
_KNOWN = ("env", "svc", "ssh", "mpi", "pytorch", "tensorflow")
_TENSORFLOW = ("worker", "chief", "ps", "evaluator")

PluginFlags = Mapping[str, Mapping[str, str]]


def read_plugin_flags(words: Sequence[str]) -> dict[str, str]:
    """Return the flags of a plugin by name, as Go reads them: up to the first word that is none."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and len(rest[0]) > 1 and rest[0].startswith("-") and rest[0] != "--":
        name, equals, value = rest.pop(0).removeprefix("-").removeprefix("-").partition("=")
        if not equals and name in _SWITCHES:
            value = "true"
        elif not equals and not rest:
            break
        elif not equals:
            value = rest.pop(0)
        found[name] = value
    return found


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
            node.dropped(_BY_THE_RUN)


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
