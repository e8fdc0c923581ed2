"""ResourceQuotas that one run alone exceeds: the API server refuses some of what its controllers create.

Source: Kubernetes v1.34 pkg/quota/v1/evaluator/core (pods.go: PodLimits; services.go), and
apiserver/pkg/quota/v1/generic (count/<resource>). What quotas hold of requests is compared with the queue
(agreement.py), and what they count of all runs in Git in pipeline/counts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gangplan.kueue.units import NANO
from gangplan.model.amounts import format_amount, format_for_spec
from gangplan.model.backend import MPIJOB
from gangplan.model.quantity import Quantity
from gangplan.objects import Body
from gangplan.rules.quotas import HARD_QUOTA_BELOW_RUN
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.expand import (
    ExpandedPods,
    MissingRuntimeError,
    expand_run_into_pods,
    find_holder_of_pod_templates,
    job_of,
)
from gangplan.validate.jobset import JOBSET_PATH
from gangplan.validate.kueue.requests import LimitRanges, adjust_workload_pod_spec
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, ObjectIndex, World

# What each key of a quota counts of a run, in the words of messages; other keys are not counted here.
_WORDS = {
    **dict.fromkeys(("pods", "count/pods"), "this run alone has {} pods"),
    "count/jobs.batch": "this run alone has {} Jobs",
    **dict.fromkeys(("services", "count/services"), "this run alone has {} Service"),
    "limits.cpu": "the limits of this run's pods are {} CPU cores",
    "limits.memory": "the limits of this run's pods are {} of memory",
}

_Scopes = tuple[tuple[str, str, tuple[str, ...]], ...]
_CONTAINERS = ("initContainers", "containers")


def check_namespace_quotas_of_run(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report the first ResourceQuota of the run's namespace that has no room for this run alone."""
    found = job_of(run.bodies)
    if found is None or run.unit.job.is_archived:
        return
    namespace = found[1]["metadata"].get("namespace") or None
    quotas = [
        (body["metadata"]["name"], _list_scopes(body["spec"]), key, parse_accepted_amount(hard))
        for body in world.once(ObjectIndex).of("ResourceQuota").homes.get(namespace, ())
        for key, hard in sorted((body["spec"].get("hard") or {}).items())
        if key in _WORDS
    ]
    counted: dict[_Scopes, Mapping[str, int]] = {}
    for name, scopes, key, hard in quotas:
        if scopes not in counted:
            try:
                counted[scopes] = _count_objects_of_run(world, run.bodies, namespace, scopes)
            except MissingRuntimeError:
                return  # reported by another proof
        if counted[scopes].get(key, 0) > hard.nano:
            problem = _report_quota_below_run(name, key, hard, Quantity(counted[scopes][key]), bool(scopes))
            yield found[0], problem
            return


def _list_scopes(spec: Body) -> _Scopes:
    """Return what a pod must be for a quota to count it: scope, operator and values of each condition."""
    plain = [(scope, "Exists", ()) for scope in spec.get("scopes") or ()]
    chosen = [
        (one["scopeName"], one["operator"], tuple(one.get("values") or ()))
        for one in (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    ]
    return (*plain, *chosen)


def _is_counted_pod(pod: Body, scopes: _Scopes) -> bool:
    """Return whether a quota counts a pod (podMatchesScopeFunc); pods of runs stay in their namespace."""
    return all(_is_in_scope(pod, *one) for one in scopes)


def _is_in_scope(pod: Body, scope: str, operator: str, values: tuple[str, ...]) -> bool:
    if scope in ("Terminating", "NotTerminating"):
        return ("activeDeadlineSeconds" in pod) is (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        asks = any(one.get("resources") for name in _CONTAINERS for one in pod.get(name) or ())
        return asks is (scope == "NotBestEffort")
    if scope != "PriorityClass":
        return False
    name = pod.get("priorityClassName")
    return {
        "In": name in values,
        "NotIn": name not in values,
        "Exists": bool(name),
        "DoesNotExist": not name,
    }[operator]


def _report_quota_below_run(
    name: str, key: str, hard: Quantity, needed: Quantity, has_scope: bool
) -> Problem:
    resource = key.removeprefix("limits.")
    most, own = format_amount(resource, hard), _WORDS[key].format(format_amount(resource, needed))
    said = f"quota '{name}' allows {most} for {key}, but {own}: the API server refuses the rest"
    help = f'Write {key}: "{format_for_spec(resource, needed)}" or more, or remove {key} from the quota.'
    if key == "pods" and has_scope:
        help = "Raise pods, or narrow the scope of the quota to pods that no run has."
    elif key == "pods" and not hard.nano:
        help = "Keep the scope of the quota (scopeSelector), or raise pods."
    elif key == "pods":
        help += " For all teams, write limits: {objects: {pods: ...}} in cluster.yaml."
    return Problem(("spec",), f"{said}, and the run never starts", help, HARD_QUOTA_BELOW_RUN, "workers")


def _count_objects_of_run(
    world: World, bodies: Sequence[Body], namespace: str | None, scopes: _Scopes
) -> Mapping[str, int]:
    """Return what a quota counts of one run at the same time, at least, in billionths and by key.

    With scopes, a quota counts pods alone, and only those in all of them.

    Pods of an earlier phase have ended when those of a later one start, and plain init containers before the
    others: both are left out where that makes the sum smaller.
    """
    pods = expand_run_into_pods(world, bodies)
    found = job_of(bodies)
    assert found is not None  # the caller looked
    at, job = found
    _, holder = find_holder_of_pod_templates(world, bodies, at)
    ranges = LimitRanges(world.once(ObjectIndex).of("LimitRange").homes.get(namespace, ()))
    phases: dict[int, list[ExpandedPods]] = {}
    for one in pods:
        if _is_counted_pod(one.template["spec"], scopes):
            phases.setdefault(one.phase, []).append(one)
    needed: dict[str, int] = {}
    for group in phases.values():
        sums = {"pods": sum(one.count for one in group) * NANO}
        for one in group:
            for key, nano in _sum_limits_of_pod(one.template["spec"], ranges).items():
                sums[key] = sums.get(key, 0) + nano * one.count
        needed = {key: max(sums.get(key, 0), needed.get(key, 0)) for key in {*sums, *needed}}
    if scopes:
        return needed
    jobs = 1 if job["kind"] in (MPIJOB.kind, "Job") else sum(one.replicas for one in pods)
    services = _count_services_of_run(job, holder)
    counts = {"count/jobs.batch": jobs, "services": services, "count/services": services}
    return {**needed, "count/pods": needed.get("pods", 0), **{key: one * NANO for key, one in counts.items()}}


def _count_services_of_run(job: Body, holder: Body) -> int:
    """Return the headless Services of a run: the MPI operator creates one; JobSet does unless told not to."""
    if job["kind"] in (MPIJOB.kind, "Job"):
        return int(job["kind"] == MPIJOB.kind)
    spec: Body = holder
    for step in ("spec",) if holder["kind"] == "JobSet" else JOBSET_PATH:
        spec = spec.get(str(step)) or {}
    return int((spec.get("network") or {}).get("enableDNSHostnames") is not False)


def _sum_limits_of_pod(spec: Body, ranges: LimitRanges) -> dict[str, int]:
    """Return the limits of a pod's containers and sidecars, by the key of a quota."""
    filled = adjust_workload_pod_spec(spec, ranges, {})
    sidecars = (one for one in filled["initContainers"] if one.get("restartPolicy") == "Always")
    found: dict[str, int] = {}
    for container in (*filled["containers"], *sidecars):
        for name, amount in container["resources"]["limits"].items():
            key = f"limits.{name}"
            if key in _WORDS:
                nano = amount if isinstance(amount, int) else parse_accepted_amount(amount).nano
                found[key] = found.get(key, 0) + nano
    return found
