"""Problems of runs that Kueue refuses before it looks at quota, with the cause and a fix."""

from __future__ import annotations

import re

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.rules.admission import NEVER_ADMITTED
from gangplan.rules.model import Severity
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.kueue.model import MISCONFIGURED, SUSPENDED_REASON, AdmissionVerdict
from gangplan.validate.kueue.podsets import list_workload_pod_sets
from gangplan.validate.kueue.refusals import PRIORITY_LABEL, QUEUE_NAME_LABEL
from gangplan.validate.kueue.requests import fill_limit_range_item_defaults
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, find_pod_templates

# The object that is the cause -> the field of the spec and the path in the TrainJob that name it.
BLAMED: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "LocalQueue": ("queue", ("metadata", "labels", QUEUE_NAME_LABEL)),
    "ClusterQueue": ("queue", ("metadata", "labels", QUEUE_NAME_LABEL)),
    "WorkloadPriorityClass": ("priority", ("metadata", "labels", PRIORITY_LABEL)),
}
# Kueue admits nothing, and with the second one evicts what it had admitted (apis/kueue/v1beta2 StopPolicy,
# v0.18.2).
HELD, DRAINED = "Hold", "HoldAndDrain"
_CONTAINERS = ("initContainers", "containers")


def describe_run_refused_by_kueue(
    world: World, run: BuiltRun, index: int, verdict: AdmissionVerdict
) -> tuple[int, Problem] | None:
    """Return the problem of a refused run whose TrainJob or MPIJob is at `index`.

    None for a stopped run whose queue is held or drained: somebody empties or pauses the queue.
    """
    field, path = BLAMED.get(
        verdict.about, (_find_spec_field_for_kueue_refusal(world, run, verdict.cause_message), ())
    )
    job = run.bodies[index]
    who = f"the run of {run.unit.job.name} in namespace {run.unit.job.namespace}"
    queue, policy = _find_stopped_queue(world, job, verdict)
    if policy in (HELD, DRAINED):
        return (
            None
            if run.unit.job.is_stopped
            else (index, _report_run_in_stopped_queue(who, queue, policy, path))
        )
    why, help = verdict.cause_message, _suggest_help_for_kueue_refusal(verdict)
    if (
        verdict.cause == MISCONFIGURED
        and not verdict.about
        and (found := _find_limit_range_breach(world, run))
    ):
        container, why, help = found
        help = f"{help} Kueue would say: {verdict.cause_message}."
        index, path = _find_container_place_for_kueue_refusal(run, container) or (index, path)
    return index, Problem(path, f"{who} is never admitted: {why}", help, NEVER_ADMITTED, field=field)


def _find_stopped_queue(world: World, job: Body, verdict: AdmissionVerdict) -> tuple[str, str]:
    """Return the stopped queue and its stopPolicy; empty if Kueue refuses the job for other reasons."""
    if verdict.cause != SUSPENDED_REASON:
        return "", ""
    name, namespace = verdict.queue, ""
    if verdict.about == "LocalQueue":
        name, namespace = job["metadata"]["labels"][QUEUE_NAME_LABEL], job["metadata"]["namespace"]
    body = read_kueue_world(world).find(verdict.about, name, namespace) or {}
    return f"{verdict.about} {name}", str((body.get("spec") or {}).get("stopPolicy"))


def _report_run_in_stopped_queue(who: str, queue: str, policy: str, path: FieldPath) -> Problem:
    message = f"{who} waits until {queue} is no longer held (stopPolicy: {policy}); if it trains, it goes on"
    help = "Remove the patch that holds the queue when the maintenance is over."
    if policy == DRAINED:
        message = f"{who} is not admitted, and Kueue stops it if it trains: {queue} is drained"
        message += f" (stopPolicy: {policy})"
        help = "Write state: stopped in its spec, or remove the patch that drains the queue."
    return Problem(path, message, help, NEVER_ADMITTED, field="queue", level=Severity.WARNING)


def _find_limit_range_breach(world: World, run: BuiltRun) -> tuple[Body, str, str] | None:
    """Return the first container that breaks a LimitRange, with what is wrong and how to fix it."""
    containers = [
        one
        for pods in list_workload_pod_sets(run.bodies, world)
        for kind in _CONTAINERS
        for one in pods.spec.get(kind) or ()
    ]
    ranges = _list_container_limit_ranges(world, run.unit.job.namespace)
    for judge in (_explain_limit_range_default_breach, _explain_limit_range_bound_breach):  # in Kueue's order
        for container in containers:
            for one in ranges:
                if said := judge(container, *one):
                    return container, *said
    return None


def _list_container_limit_ranges(world: World, namespace: str) -> list[tuple[str, Body]]:
    """Return the container items of a namespace's LimitRanges, with only the first default per resource."""
    bodies = sorted(
        read_kueue_world(world).within("LimitRange", namespace), key=lambda one: str(one["metadata"]["name"])
    )
    found: list[tuple[str, Body]] = []
    for body in bodies:
        for item in map(fill_limit_range_item_defaults, body["spec"].get("limits") or ()):
            if item["type"] == "Container":
                known = {resource for _, other in found for resource in other["default"]}
                default = {name: value for name, value in item["default"].items() if name not in known}
                found.append((f"LimitRange {body['metadata']['name']}", {**item, "default": default}))
    return found


def _explain_limit_range_default_breach(container: Body, name: str, item: Body) -> tuple[str, str] | None:
    """Check for a request above the default limit of a container that states no limit."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    short = {
        resource: value
        for resource, value in requests.items()
        if resource not in limits
        and resource in item["default"]
        and parse_accepted_amount(item["default"][resource]).nano < parse_accepted_amount(value).nano
    }
    if not short:
        return None
    resource, value = next(iter(short.items()))
    words = (
        f"container '{container['name']}' requests {value} of {resource} without a limit, and {name} gives"
        f" it a limit of {item['default'][resource]}"
    )
    pasted = ", ".join(f"{each}: {most}" for each, most in short.items())
    return words, f"Write limits: {{{pasted}}} next to its requests."


def _explain_limit_range_bound_breach(container: Body, name: str, item: Body) -> tuple[str, str] | None:
    """Check for a request or limit beyond the bounds of a LimitRange."""
    for field, values in (container.get("resources") or {}).items():
        for resource, value in values.items() if field in ("requests", "limits") else ():
            for bound, words, sign in (("max", "at most", 1), ("min", "at least", -1)):
                allowed = (item.get(bound) or {}).get(resource)
                if (
                    allowed is not None
                    and sign * (parse_accepted_amount(value).nano - parse_accepted_amount(allowed).nano) > 0
                ):
                    asks = f"{'requests' if field == 'requests' else 'has a limit of'} {value} of {resource}"
                    said = f"container '{container['name']}' {asks}, and {name} allows {words} {allowed}"
                    return said, f"Write {words} {resource}: {allowed}."
    return None


def _find_container_place_for_kueue_refusal(run: BuiltRun, container: Body) -> tuple[int, FieldPath] | None:
    """Return the place of a container's resources in the run's objects; None if Trainer sets them."""
    for index, body in enumerate(run.bodies):
        for at, template in find_pod_templates(body):
            for kind in _CONTAINERS:
                for number, one in enumerate((template.get("spec") or {}).get(kind) or ()):
                    if one == container:
                        return index, (*at, "spec", kind, number, "resources")
    return None


def _find_spec_field_for_kueue_refusal(world: World, run: BuiltRun, message: str) -> str:
    """Return the field of the spec for the pods and resource in Kueue's message, or ""."""
    match = re.search(r'podSets\[([0-9]+)\].*\["?(cpu|memory)"?\]', message)
    sets = list_workload_pod_sets(run.bodies, world)
    if match is None or int(match[1]) >= len(sets):
        return ""
    other = next((role for role in run.unit.job.others if role.name == sets[int(match[1])].name), None)
    if other is not None:
        return str(other.place[0])
    is_launcher = sets[int(match[1])].name == "launcher" and not run.unit.job.launcher_runs_ranks
    return f"launcher.{match[2]}" if is_launcher else match[2]


def _suggest_help_for_kueue_refusal(verdict: AdmissionVerdict) -> str:
    if verdict.about in ("LocalQueue", "ClusterQueue"):
        return "Ask the platform team: overlays/<cluster>/ and the team's file define the queue."
    if verdict.about:
        return f"Create the {verdict.about} on the cluster before the run, or name another."
    return "Correct what the message names in the spec, or the patch of the overlay that put it there."
