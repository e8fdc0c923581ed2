"""The checks of Pod Security admission: what baseline and restricted refuse, at each of their versions.

Source: k8s.io/pod-security-admission v0.34 (policy/check_*.go, registry.go), and of Kubernetes 1.35 to 1.37
check_procMount_*.go, check_runAs*.go and check_sysctls.go. `tests/validate/test_pod_security.py` compares
them with all fixtures of that module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.apiserver.pod_security_facts import (
    APPARMOR,
    BASELINE_CAPABILITIES,
    IMAGE_VOLUMES_SINCE,
    PROFILES,
    RESTRICTED_CAPABILITIES,
    RESTRICTED_VOLUMES,
    SAFE_SYSCTLS,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    SELINUX_TYPES,
    Pod,
)

Said = Iterator[tuple[Path, str]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a level, since a minor of it.

    If restricted has a check that `replaces` one of baseline, it leaves that one out.
    """

    name: str
    is_restricted: bool
    since: int
    violations: Callable[[Pod], Said]
    replaces: str = ""


def violations(body: Body, is_restricted: bool, minor: int, server: int) -> Iterator[tuple[str, Path, str]]:
    """Yield what a level refuses in a pod: the check's name, the path in the pod, and words.

    `minor` is that of the level (34 for v1.34), `server` that of the API server, which knows no newer level.
    """
    pod = Pod(body, min(minor, server), server)
    checks = [one for one in CHECKS if one.since <= pod.minor and (is_restricted or not one.is_restricted)]
    replaced = {one.replaces for one in checks}
    for check in checks:
        if check.name not in replaced:
            yield from ((check.name, at, words) for at, words in check.violations(pod))


# --- baseline ------------------------------------------------------------------------------------------


def _host_namespaces(pod: Pod) -> Said:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(name):
            yield ("spec", name), f"the pod uses {name}"


def _host_paths(pod: Pod) -> Said:
    for index, volume in enumerate(pod.volumes):
        if volume.get("hostPath") is not None:
            yield ("spec", "volumes", index), f"volume '{volume['name']}' is of kind hostPath"


def _privileged(pod: Pod) -> Said:
    for at, one, context in pod.containers():
        if context.get("privileged"):
            yield (*at, "securityContext", "privileged"), f"container '{one['name']}' is privileged"


def _proc_mount(pod: Pod) -> Said:
    for at, one, context in pod.containers():
        if (context.get("procMount") or "Default") != "Default":
            yield (*at, "securityContext", "procMount"), f"container '{one['name']}' unmasks all of /proc"


def _proc_mount_of_users(pod: Pod) -> Said:
    if not pod.is_in_user_namespace:
        yield from _proc_mount(pod)


def _added(pod: Pod, allowed: frozenset[str]) -> Said:
    for at, one, context in pod.containers():
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability not in allowed:
                at_add = (*at, "securityContext", "capabilities", "add")
                yield at_add, f"container '{one['name']}' adds the capability {capability}"


def _capabilities(pod: Pod) -> Said:
    yield from _added(pod, BASELINE_CAPABILITIES)


def _host_ports(pod: Pod) -> Said:
    for at, one, _ in pod.containers():
        for index, port in enumerate(one.get("ports") or ()):
            if port.get("hostPort"):
                taken = f"container '{one['name']}' takes port {port['hostPort']} of its node"
                yield (*at, "ports", index, "hostPort"), taken


def _host_probes(pod: Pod) -> Said:
    for at, one, _ in pod.containers():
        hooks = [(*at, name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        hooks += [(*at, "lifecycle", name) for name in ("postStart", "preStop")]
        for hook in hooks:
            asked = _inside(one, hook[len(at) :])
            for way in ("httpGet", "tcpSocket"):
                host = (asked.get(way) or {}).get("host")
                if host:
                    told = f"{hook[-1]} of container '{one['name']}' asks host '{host}'"
                    yield (*hook, way, "host"), f"{told} instead of the pod"


def _inside(value: Any, way: Path) -> Body:
    for step in way:
        value = value.get(step) or {}
    found: Body = value
    return found


def _apparmor(pod: Pod) -> Said:
    for at, who, context in pod.contexts():
        kind = (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault")
        if kind not in PROFILES:
            yield (*at, "appArmorProfile"), f"{who} has the AppArmor profile {kind}"
    for name, value in pod.annotations.items():
        if not name.startswith(APPARMOR) or not value or value == "runtime/default":
            continue
        if not value.startswith("localhost/"):
            told = f"container '{name.removeprefix(APPARMOR)}' has the AppArmor profile {value}"
            yield ("metadata", "annotations", name), told


def _selinux(pod: Pod) -> Said:
    for at, who, context in pod.contexts():
        options = context.get("seLinuxOptions") or {}
        kind = options.get("type") or ""
        if SELINUX_TYPES.get(kind, 99) > pod.minor:
            yield (*at, "seLinuxOptions", "type"), f"{who} has the SELinux type {kind}"
        for name in ("user", "role"):
            if options.get(name):
                yield (*at, "seLinuxOptions", name), f"{who} has an SELinux {name} of its own"


def _sysctls(pod: Pod) -> Said:
    for index, sysctl in enumerate(pod.context.get("sysctls") or ()):
        if SAFE_SYSCTLS.get(sysctl["name"], 99) > pod.minor:
            yield ("spec", "securityContext", "sysctls", index), f"the pod sets the sysctl {sysctl['name']}"


def _windows(pod: Pod) -> Said:
    for at, who, context in pod.contexts():
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield (*at, "windowsOptions", "hostProcess"), f"{who} is a process of its Windows node"


def _seccomp(pod: Pod) -> Said:
    if pod.minor < 19:
        yield from _seccomp_annotations(pod)
        return
    for at, who, context in pod.contexts():
        profile = context.get("seccompProfile")
        if profile is not None and profile.get("type") not in PROFILES:
            yield (*at, "seccompProfile"), f"{who} has the seccomp profile {profile.get('type')}"


def _seccomp_annotations(pod: Pod) -> Said:
    names = [SECCOMP_POD, *(SECCOMP_CONTAINER + one["name"] for _, one, _ in pod.containers())]
    for name in names:
        value = pod.annotations.get(name, "runtime/default")
        if value not in ("runtime/default", "docker/default") and not value.startswith("localhost/"):
            yield ("metadata", "annotations", name), f"an annotation asks for the seccomp profile {value}"


# --- restricted ----------------------------------------------------------------------------------------


def _volumes(pod: Pod) -> Said:
    allowed = RESTRICTED_VOLUMES - ({"image"} if pod.server < IMAGE_VOLUMES_SINCE else set())
    for index, volume in enumerate(pod.volumes):
        kinds = [key for key, value in volume.items() if key != "name" and value is not None]
        if kinds and allowed.isdisjoint(kinds):
            yield ("spec", "volumes", index), f"volume '{volume['name']}' is of kind {kinds[0]}"


def _escalation(pod: Pod) -> Said:
    for at, one, context in () if pod.is_windows else pod.containers():
        if context.get("allowPrivilegeEscalation") is not False:
            told = f"container '{one['name']}' may gain privileges"
            yield (*at, "securityContext", "allowPrivilegeEscalation"), told


def _capabilities_dropped(pod: Pod) -> Said:
    if pod.is_windows:
        return
    yield from _added(pod, RESTRICTED_CAPABILITIES)
    for at, one, context in pod.containers():
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            told = f"container '{one['name']}' does not drop ALL capabilities"
            yield (*at, "securityContext", "capabilities", "drop"), told


def _non_root(pod: Pod) -> Said:
    if pod.is_in_user_namespace:
        return
    of_pod = pod.context.get("runAsNonRoot")
    if of_pod is False:
        yield ("spec", "securityContext", "runAsNonRoot"), "the pod may run as root"
    for at, one, context in pod.containers():
        own = context.get("runAsNonRoot")
        if (of_pod if own is None else own) is not True:
            yield (*at, "securityContext", "runAsNonRoot"), f"container '{one['name']}' may run as root"


def _user(pod: Pod) -> Said:
    for at, who, context in () if pod.is_in_user_namespace else pod.contexts():
        if context.get("runAsUser") == 0:
            yield (*at, "runAsUser"), f"{who} runs as root"


def _seccomp_required(pod: Pod) -> Said:
    if pod.is_windows:
        return
    yield from _seccomp(pod)
    if (pod.context.get("seccompProfile") or {}).get("type") not in PROFILES:
        for at, one, context in pod.containers():
            if context.get("seccompProfile") is None:
                told = f"container '{one['name']}' has no seccomp profile"
                yield (*at, "securityContext", "seccompProfile"), told


CHECKS = (
    Check("hostNamespaces", False, 0, _host_namespaces),
    Check("hostPathVolumes", False, 0, _host_paths),
    Check("privileged", False, 0, _privileged),
    Check("procMount", False, 0, _proc_mount_of_users),
    Check("capabilities_baseline", False, 0, _capabilities),
    Check("hostPorts", False, 0, _host_ports),
    Check("hostProbesAndHostLifecycle", False, 34, _host_probes),
    Check("appArmorProfile", False, 0, _apparmor),
    Check("seLinuxOptions", False, 0, _selinux),
    Check("sysctls", False, 0, _sysctls),
    Check("windowsHostProcess", False, 0, _windows),
    Check("seccompProfile_baseline", False, 0, _seccomp),
    Check("restrictedVolumes", True, 0, _volumes, "hostPathVolumes"),
    Check("procMount_restricted", True, 35, _proc_mount, "procMount"),
    Check("allowPrivilegeEscalation", True, 8, _escalation),
    Check("capabilities_restricted", True, 22, _capabilities_dropped, "capabilities_baseline"),
    Check("runAsNonRoot", True, 0, _non_root),
    Check("runAsUser", True, 23, _user),
    Check("seccompProfile_restricted", True, 19, _seccomp_required, "seccompProfile_baseline"),
)
