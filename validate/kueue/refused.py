"""Problems of runs that Kueue refuses before it looks at quota, with the cause and a fix."""

from __future__ import annotations

import re

from gangplan.rules.admission import NEVER_ADMITTED
from gangplan.validate.apiserver.forms import Body, Path, amount
from gangplan.validate.kueue.model import MISCONFIGURED, Verdict
from gangplan.validate.kueue.podsets import pod_sets
from gangplan.validate.kueue.refusals import PRIORITY, QUEUE
from gangplan.validate.kueue.requests import defaulted
from gangplan.validate.kueue.standing import read
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, templates_of

# The object that is the cause -> the field of the spec and the path in the TrainJob that name it.
BLAMED: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "LocalQueue": ("queue", ("metadata", "labels", QUEUE)),
    "ClusterQueue": ("queue", ("metadata", "labels", QUEUE)),
    "WorkloadPriorityClass": ("priority", ("metadata", "labels", PRIORITY)),
}
_CONTAINERS = ("initContainers", "containers")


def refused(world: World, run: BuiltRun, index: int, verdict: Verdict) -> tuple[int, Problem]:
    """Return the problem of a refused run whose TrainJob or MPIJob is at `index`."""
    field, path = BLAMED.get(verdict.about, (_named(world, run, verdict.cause_message), ()))
    why, help = verdict.cause_message, _help_of(verdict)
    if verdict.cause == MISCONFIGURED and not verdict.about and (found := _out_of_range(world, run)):
        container, why, help = found
        help = f"{help} Kueue would say: {verdict.cause_message}."
        index, path = _place_of(run, container) or (index, path)
    return index, Problem(path, f"the run is never admitted: {why}", help, NEVER_ADMITTED, field=field)


def _out_of_range(world: World, run: BuiltRun) -> tuple[Body, str, str] | None:
    """Return the first container that breaks a LimitRange, with what is wrong and how to fix it."""
    containers = [
        one
        for pods in pod_sets(run.bodies, world)
        for kind in _CONTAINERS
        for one in pods.spec.get(kind) or ()
    ]
    ranges = _ranges(world, run.unit.job.namespace)
    for judge in (_without_limit, _beyond):  # in Kueue's order
        for container in containers:
            for one in ranges:
                if said := judge(container, *one):
                    return container, *said
    return None


def _ranges(world: World, namespace: str) -> list[tuple[str, Body]]:
    """Return the container items of a namespace's LimitRanges, with only the first default per resource."""
    bodies = sorted(read(world).within("LimitRange", namespace), key=lambda one: str(one["metadata"]["name"]))
    found: list[tuple[str, Body]] = []
    for body in bodies:
        for item in map(defaulted, body["spec"].get("limits") or ()):
            if item["type"] == "Container":
                known = {resource for _, other in found for resource in other["default"]}
                default = {name: value for name, value in item["default"].items() if name not in known}
                found.append((f"LimitRange {body['metadata']['name']}", {**item, "default": default}))
    return found


def _without_limit(container: Body, name: str, item: Body) -> tuple[str, str] | None:
    """Check for a request above the default limit of a container that states no limit."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    short = {
        resource: value
        for resource, value in requests.items()
        if resource not in limits
        and resource in item["default"]
        and amount(item["default"][resource]).nano < amount(value).nano
    }
    if not short:
        return None
    resource, value = next(iter(short.items()))
    words = (
        f"container '{container['name']}' requests {value} of {resource} without a limit, and {name} gives"
        f" it a limit of {item['default'][resource]}"
    )
    pasted = ", ".join(f"{each}: {most}" for each, most in short.items())
    return words, f"Write limits: {{{pasted}}} beside its requests."


def _beyond(container: Body, name: str, item: Body) -> tuple[str, str] | None:
    """Check for a request or limit beyond the bounds of a LimitRange."""
    for field, values in (container.get("resources") or {}).items():
        for resource, value in values.items() if field in ("requests", "limits") else ():
            for bound, words, sign in (("max", "at most", 1), ("min", "at least", -1)):
                allowed = (item.get(bound) or {}).get(resource)
                if allowed is not None and sign * (amount(value).nano - amount(allowed).nano) > 0:
                    asks = f"{'requests' if field == 'requests' else 'has a limit of'} {value} of {resource}"
                    said = f"container '{container['name']}' {asks}, and {name} allows {words} {allowed}"
                    return said, f"Write {words} {resource}: {allowed}."
    return None


def _place_of(run: BuiltRun, container: Body) -> tuple[int, Path] | None:
    """Return the place of a container's resources in the run's objects; None if Trainer sets them."""
    for index, body in enumerate(run.bodies):
        for at, template in templates_of(body):
            for kind in _CONTAINERS:
                for number, one in enumerate((template.get("spec") or {}).get(kind) or ()):
                    if one == container:
                        return index, (*at, "spec", kind, number, "resources")
    return None


def _named(world: World, run: BuiltRun, message: str) -> str:
    """Return the field of the spec for the pods and resource in Kueue's message, or ""."""
    match = re.search(r'podSets\[([0-9]+)\].*\["?(cpu|memory)"?\]', message)
    sets = pod_sets(run.bodies, world)
    if match is None or int(match[1]) >= len(sets):
        return ""
    other = next((role for role in run.unit.job.others if role.name == sets[int(match[1])].name), None)
    if other is not None:
        return str(other.place[0])
    is_launcher = sets[int(match[1])].name == "launcher" and not run.unit.job.launcher_runs_ranks
    return f"launcher.{match[2]}" if is_launcher else match[2]


def _help_of(verdict: Verdict) -> str:
    if verdict.about in ("LocalQueue", "ClusterQueue"):
        return "Ask the platform team: overlays/<cluster>/ and the team's file define the queue."
    if verdict.about:
        return f"Create the {verdict.about} on the cluster before the run, or name another."
    return "Correct what the message names in the spec, or the patch of the overlay that put it there."
