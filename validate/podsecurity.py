"""Pods that their namespace's Pod Security level refuses: an admitted run would never get its pods.

If the cluster's file raises the level, what the pods use of it is reported too.

Sources: k8s.io/pod-security-admission v0.34, api/helpers.go (labels of namespaces); what a level refuses is
in `apiserver/pod_security.py`. OpenShift, 2026-11: nonroot-v2 (cluster-kube-apiserver-operator,
scc-manifests), and what it refuses (apiserver-library-go, securitycontextconstraints: seccomp, selinux).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gangplan.findings import FieldPath
from gangplan.model.backend import BACKEND_BY_HOLDER
from gangplan.objects import Body
from gangplan.rules.model import NOTE
from gangplan.rules.security import HOST_ACCESS, POD_SECURITY
from gangplan.validate.apiserver.pod_security import (
    find_pod_security_level_of_namespace,
    find_pod_security_violations,
)
from gangplan.validate.apiserver.pod_security_facts import SecuredPod
from gangplan.validate.expand import merge_train_jobs_into_runtimes
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, find_pod_templates

# An annotation of namespaces whose level the cluster's file states.
STATED = "gangplan.dev/pod-security-until"
# The annotation by which pods ask for SecurityContextConstraints, and those that runs ask for.
REQUIRED_SCC, SCC = "openshift.io/required-scc", "nonroot-v2"
# How many violations one finding names.
MOST = 5
_NEVER = "the run is admitted but never gets its pods"
Said = tuple[FieldPath, str]


def check_pod_security_of_run(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Check every pod of the run against the level that the run's namespace enforces."""
    server = int(world.versions.kubernetes.split(".")[1])
    for index, body in enumerate(merge_train_jobs_into_runtimes(run.bodies)):
        if body["kind"] not in BACKEND_BY_HOLDER:
            continue
        namespace = body["metadata"].get("namespace", "")
        metadata = (world.find("Namespace", namespace) or {}).get("metadata", {})
        level, minor = find_pod_security_level_of_namespace(metadata.get("labels") or {}, server)
        refused = (
            []
            if level == "privileged"
            else list(_find_pod_security_breaches(body, level == "restricted", minor, server))
        )
        for where, what in refused:
            yield index, _report_pod_security_breach(where, what, namespace, f"{level} of v1.{minor}")
        if run.unit.job.platform.openshift is not None:
            yield from ((index, one) for one in _check_security_context_constraints(body, run))
        if level != "restricted" and STATED in (metadata.get("annotations") or {}):
            used = [
                one for one in _find_pod_security_breaches(body, True, minor, server) if one not in refused
            ]
            generated = next((one for one in run.generated if one["kind"] == body["kind"]), body)
            planned = (
                {what for _, what in _find_pod_security_breaches(generated, True, minor, server)}
                if used
                else ()
            )
            yield from ((index, one) for one in _report_host_access_uses(used, planned, namespace, level))


def _check_security_context_constraints(body: Body, run: BuiltRun) -> Iterator[Problem]:
    """Report what OpenShift refuses beyond the level restricted in pods that ask for nonroot-v2."""
    before = next((one for one in run.generated if one["kind"] == body["kind"]), body)
    planned = {_read_required_scc(pod) for _, pod in find_pod_templates(before)}
    for at, pod in find_pod_templates(body):
        asked = _read_required_scc(pod)
        if asked and asked not in planned:
            path = (*at, "metadata", "annotations", REQUIRED_SCC)
            said = f"the pods ask for SecurityContextConstraints '{asked}', and the plan for {SCC}"
            yield Problem(path, f"{said}: {_NEVER}", "Remove it from the overlay's patch.", POD_SECURITY)
        for where, name, context in SecuredPod(pod, 0, 0).contexts() if asked == SCC else ():
            profile = (context.get("seccompProfile") or {}).get("type", "RuntimeDefault")
            refused = "" if profile == "RuntimeDefault" else f"seccompProfile of type {profile}"
            field = "seccompProfile" if refused else "seLinuxOptions"
            if refused or any((context.get(field) or {}).values()):
                said = f"{name} has {refused or field}, which {SCC} of OpenShift refuses"
                help = "Remove it from the overlay's patch; a fabric of the cluster's file may state scc."
                yield Problem((*at, *where, field), f"{said}: {_NEVER}", help, POD_SECURITY)


def _read_required_scc(pod: Body) -> str:
    return str(((pod.get("metadata") or {}).get("annotations") or {}).get(REQUIRED_SCC, ""))


def _find_pod_security_breaches(body: Body, is_restricted: bool, minor: int, server: int) -> Iterator[Said]:
    """Yield what a level refuses in the pods of a runtime or an MPIJob."""
    for at, pod in find_pod_templates(body):
        for _, where, what in find_pod_security_violations(pod, is_restricted, minor, server):
            yield (*at, *where), what


def _report_host_access_uses(
    used: Sequence[Said], planned: Collection[str], namespace: str, level: str
) -> Iterator[Problem]:
    """Report what pods use of a raised level.

    All that a fabric declares is one finding; each use that a patch adds is one of its own.
    """
    declared = [one for one in used if one[1] in planned]
    admits = f"namespace '{namespace}' admits it (Pod Security level {level})"
    if declared:
        shown = list(dict.fromkeys(what for _, what in declared))
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        message = f"{'; '.join(shown[:MOST])}{more}: the pool's fabric declares it, and {admits}"
        help = 'Write rdma: "off" where TCP is enough.'
        yield Problem(declared[0][0], message, help, HOST_ACCESS, "rdma", NOTE)
    for where, what in used:
        if what not in planned:
            help = "Remove it from the overlay's patch, or declare it in a fabric of the cluster's file."
            yield Problem(where, f"{what}, which no fabric declares; {admits}", help, HOST_ACCESS)


def _report_pod_security_breach(at: FieldPath, what: str, namespace: str, level: str) -> Problem:
    return Problem(
        at,
        f"{what}, which namespace '{namespace}' refuses (Pod Security level {level}): {_NEVER}",
        _suggest_pod_security_fix(at),
        POD_SECURITY,
    )


# What containers and pods must state, by the last step of its path.
_STATED_FIELDS = {
    "allowPrivilegeEscalation": "allowPrivilegeEscalation: false",
    "drop": "capabilities: {drop: [ALL]}",
    "runAsNonRoot": "runAsNonRoot: true",
    "seccompProfile": "seccompProfile: {type: RuntimeDefault}",
}


def _suggest_pod_security_fix(at: FieldPath) -> str:
    if stated := _STATED_FIELDS.get(str(at[-1])):
        return f"Write {stated} in its securityContext, in the overlay's patch."
    if at[-2:] != ("capabilities", "add"):
        return "Remove it from the overlay's patch."
    return (
        "Remove it from the overlay's patch; no waiver changes what a namespace enforces. RDMA needs no"
        " IPC_LOCK on nodes whose memlock limit is unlimited."
    )
