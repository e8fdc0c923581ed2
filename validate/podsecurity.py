"""Pods that their namespace's Pod Security level refuses: the run would be admitted and never get its pods.

Source: k8s.io/pod-security-admission v0.34 (policy/check_*.go), levels baseline and restricted.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.rules.security import POD_SECURITY
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.problems import Problem
from gangplan.validate.trainer.runtimes import JOBSET, entries_of, pod_of
from gangplan.validate.world import BuiltRun, World

ENFORCED = "pod-security.kubernetes.io/enforce"
BASELINE_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
RESTRICTED_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"),
        *("projected", "secret"),
    }
)


def allowed(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Every pod of the runtime against the level that the run's namespace enforces."""
    for index, body in enumerate(run.bodies):
        if body["kind"] != "TrainingRuntime":
            continue
        namespace = body["metadata"].get("namespace", "")
        home = world.find("Namespace", namespace)
        level = ((home or {}).get("metadata", {}).get("labels") or {}).get(ENFORCED, "privileged")
        if level not in ("baseline", "restricted"):
            continue
        for place, entry in enumerate(entries_of(body)):
            at: Path = (
                *(*JOBSET, "replicatedJobs", place),
                *("template", "spec", "template", "spec"),
            )
            for where, what in _pod(at, pod_of(entry), level == "restricted"):
                yield index, _problem(where, what, namespace, level)


def _problem(at: Path, what: str, namespace: str, level: str) -> Problem:
    return Problem(
        at,
        f"{what}, which namespace '{namespace}' refuses (Pod Security level {level}): the run is admitted"
        " but never gets its pods",
        _help(at),
        POD_SECURITY,
    )


def _help(at: Path) -> str:
    if at[-2:] != ("capabilities", "add"):
        return "Remove it from the overlay's patch."
    return (
        "Remove it from the overlay's patch; no waiver changes what a namespace enforces. RDMA needs no"
        " IPC_LOCK on nodes whose memlock limit is unlimited."
    )


Said = Iterator[tuple[Path, str]]


def _pod(at: Path, spec: Body, is_restricted: bool) -> Said:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield (*at, name), f"the pod uses {name}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        kind = next((key for key in volume if key != "name"), "emptyDir")
        if kind == "hostPath" or (is_restricted and kind not in RESTRICTED_VOLUMES):
            yield (*at, "volumes", index), f"volume '{volume['name']}' is of kind {kind}"
    pod = spec.get("securityContext") or {}
    for name in ("initContainers", "containers"):
        for index, one in enumerate(spec.get(name) or ()):
            yield from _container((*at, name, index), one, is_restricted)
            if is_restricted:
                yield from _restricted((*at, name, index, "securityContext"), one, pod)
    if is_restricted and pod.get("runAsUser") == 0:
        yield (*at, "securityContext", "runAsUser"), "the pod runs as root"


def _container(at: Path, one: Body, is_restricted: bool) -> Said:
    context = one.get("securityContext") or {}
    if context.get("privileged"):
        yield (*at, "securityContext", "privileged"), f"container '{one['name']}' is privileged"
    if context.get("procMount", "Default") != "Default":
        yield (*at, "securityContext", "procMount"), f"container '{one['name']}' unmasks all of /proc"
    may_add = RESTRICTED_CAPABILITIES if is_restricted else BASELINE_CAPABILITIES
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability not in may_add:
            at_add = (*at, "securityContext", "capabilities", "add")
            yield at_add, f"container '{one['name']}' adds the capability {capability}"
    for index, port in enumerate(one.get("ports") or ()):
        if port.get("hostPort"):
            yield (
                (*at, "ports", index, "hostPort"),
                f"container '{one['name']}' takes port {port['hostPort']} of its node",
            )


def _restricted(at: Path, one: Body, pod: Body) -> Said:
    context = one.get("securityContext") or {}
    name = one["name"]
    if context.get("allowPrivilegeEscalation") is not False:
        yield (*at, "allowPrivilegeEscalation"), f"container '{name}' may gain privileges"
    if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
        yield (*at, "capabilities", "drop"), f"container '{name}' does not drop ALL capabilities"
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield (*at, "runAsNonRoot"), f"container '{name}' may run as root"
    if context.get("runAsUser") == 0:
        yield (*at, "runAsUser"), f"container '{name}' runs as root"
    profile = (context.get("seccompProfile") or pod.get("seccompProfile") or {}).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield (*at, "seccompProfile"), f"container '{name}' has no seccomp profile"
