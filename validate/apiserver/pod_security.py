"""The checks of Pod Security admission: what baseline and restricted refuse, at each of their versions.

Source: k8s.io/pod-security-admission v0.34 (policy/check_*.go, registry.go), and of Kubernetes 1.35 to 1.37
check_procMount_*.go, check_runAs*.go and check_sysctls.go. `tests/validate/test_pod_security.py` compares
them with all fixtures of that module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.pod_security_facts import (
    APPARMOR_PREFIX,
    IMAGE_VOLUMES_SINCE,
    POD_SECURITY_BASELINE_CAPABILITIES,
    POD_SECURITY_RESTRICTED_CAPABILITIES,
    RESTRICTED_VOLUMES,
    SAFE_SYSCTLS,
    SECCOMP_CONTAINER_PREFIX,
    SECCOMP_POD_ANNOTATION,
    SECCOMP_PROFILES,
    SELINUX_TYPES,
    SecuredPod,
)

Said = Iterator[tuple[FieldPath, str]]
# The labels of a namespace that say its level, and as of which version.
ENFORCED = "pod-security.kubernetes.io/enforce"
LEVEL_VERSION = f"{ENFORCED}-version"
_MINOR = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


def find_pod_security_level_of_namespace(labels: dict[str, str], server: int) -> tuple[str, int]:
    """Return level and minor that a namespace with these labels enforces.

    `server` is the minor of the server (34 for 1.34). As in admission, an unknown level means restricted, and
    an unknown version the newest.
    """
    level = labels.get(ENFORCED, "privileged")
    version = _MINOR.fullmatch(labels.get(LEVEL_VERSION) or "latest")
    known = level if level in ("privileged", "baseline", "restricted") else "restricted"
    return known, min(int(version[1]), server) if version else server


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a level, since a minor of it.

    If restricted has a check that `replaces` one of baseline, it leaves that one out.
    """

    name: str
    is_restricted: bool
    since: int
    violations: Callable[[SecuredPod], Said]
    replaces: str = ""


def find_pod_security_violations(
    body: Body, is_restricted: bool, minor: int, server: int
) -> Iterator[tuple[str, FieldPath, str]]:
    """Yield what a level refuses in a pod: the check's name, the path in the pod, and words.

    `minor` is that of the level (34 for v1.34), `server` that of the API server, which knows no newer level.
    """
    pod = SecuredPod(body, min(minor, server), server)
    checks = [
        one
        for one in POD_SECURITY_CHECKS
        if one.since <= pod.minor and (is_restricted or not one.is_restricted)
    ]
    replaced = {one.replaces for one in checks}
    for check in checks:
        if check.name not in replaced:
            yield from ((check.name, at, words) for at, words in check.violations(pod))


# --- baseline ------------------------------------------------------------------------------------------


def _check_host_namespaces(pod: SecuredPod) -> Said:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(name):
            yield ("spec", name), f"the pod uses {name}"


def _check_host_path_volumes(pod: SecuredPod) -> Said:
    for index, volume in enumerate(pod.volumes):
        if volume.get("hostPath") is not None:
            yield ("spec", "volumes", index), f"volume '{volume['name']}' is of kind hostPath"


def _check_privileged_containers(pod: SecuredPod) -> Said:
    for at, one, context in pod.containers():
        if context.get("privileged"):
            yield (*at, "securityContext", "privileged"), f"container '{one['name']}' is privileged"


def _check_proc_mount(pod: SecuredPod) -> Said:
    for at, one, context in pod.containers():
        if (context.get("procMount") or "Default") != "Default":
            yield (*at, "securityContext", "procMount"), f"container '{one['name']}' unmasks all of /proc"


def _check_baseline_proc_mount(pod: SecuredPod) -> Said:
    if not pod.is_in_user_namespace:
        yield from _check_proc_mount(pod)


def _check_added_capabilities(pod: SecuredPod, allowed: frozenset[str]) -> Said:
    for at, one, context in pod.containers():
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability not in allowed:
                at_add = (*at, "securityContext", "capabilities", "add")
                yield at_add, f"container '{one['name']}' adds the capability {capability}"


def _check_baseline_capabilities(pod: SecuredPod) -> Said:
    yield from _check_added_capabilities(pod, POD_SECURITY_BASELINE_CAPABILITIES)


def _check_baseline_host_ports(pod: SecuredPod) -> Said:
    for at, one, _ in pod.containers():
        for index, port in enumerate(one.get("ports") or ()):
            if port.get("hostPort"):
                taken = f"container '{one['name']}' takes port {port['hostPort']} of its node"
                yield (*at, "ports", index, "hostPort"), taken


def _check_baseline_probe_hosts(pod: SecuredPod) -> Said:
    for at, one, _ in pod.containers():
        hooks = [(*at, name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        hooks += [(*at, "lifecycle", name) for name in ("postStart", "preStop")]
        for hook in hooks:
            asked = _find_nested_mapping(one, hook[len(at) :])
            for way in ("httpGet", "tcpSocket"):
                host = (asked.get(way) or {}).get("host")
                if host:
                    told = f"{hook[-1]} of container '{one['name']}' asks host '{host}'"
                    yield (*hook, way, "host"), f"{told} instead of the pod"


def _find_nested_mapping(value: Any, way: FieldPath) -> Body:
    for step in way:
        value = value.get(step) or {}
    found: Body = value
    return found


def _check_baseline_apparmor_profiles(pod: SecuredPod) -> Said:
    for at, who, context in pod.contexts():
        kind = (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault")
        if kind not in SECCOMP_PROFILES:
            yield (*at, "appArmorProfile"), f"{who} has the AppArmor profile {kind}"
    for name, value in pod.annotations.items():
        if not name.startswith(APPARMOR_PREFIX) or not value or value == "runtime/default":
            continue
        if not value.startswith("localhost/"):
            told = f"container '{name.removeprefix(APPARMOR_PREFIX)}' has the AppArmor profile {value}"
            yield ("metadata", "annotations", name), told


def _check_baseline_selinux_options(pod: SecuredPod) -> Said:
    for at, who, context in pod.contexts():
        options = context.get("seLinuxOptions") or {}
        kind = options.get("type") or ""
        if SELINUX_TYPES.get(kind, 99) > pod.minor:
            yield (*at, "seLinuxOptions", "type"), f"{who} has the SELinux type {kind}"
        for name in ("user", "role"):
            if options.get(name):
                yield (*at, "seLinuxOptions", name), f"{who} has an SELinux {name} of its own"


def _check_unsafe_sysctls(pod: SecuredPod) -> Said:
    for index, sysctl in enumerate(pod.context.get("sysctls") or ()):
        if SAFE_SYSCTLS.get(sysctl["name"], 99) > pod.minor:
            yield ("spec", "securityContext", "sysctls", index), f"the pod sets the sysctl {sysctl['name']}"


def _check_windows_host_process(pod: SecuredPod) -> Said:
    for at, who, context in pod.contexts():
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield (*at, "windowsOptions", "hostProcess"), f"{who} is a process of its Windows node"


def _check_baseline_seccomp(pod: SecuredPod) -> Said:
    if pod.minor < 19:
        yield from _check_baseline_seccomp_annotations(pod)
        return
    for at, who, context in pod.contexts():
        profile = context.get("seccompProfile")
        if profile is not None and profile.get("type") not in SECCOMP_PROFILES:
            yield (*at, "seccompProfile"), f"{who} has the seccomp profile {profile.get('type')}"


def _check_baseline_seccomp_annotations(pod: SecuredPod) -> Said:
    names = [
        SECCOMP_POD_ANNOTATION,
        *(SECCOMP_CONTAINER_PREFIX + one["name"] for _, one, _ in pod.containers()),
    ]
    for name in names:
        value = pod.annotations.get(name, "runtime/default")
        if value not in ("runtime/default", "docker/default") and not value.startswith("localhost/"):
            yield ("metadata", "annotations", name), f"an annotation asks for the seccomp profile {value}"


# --- restricted ----------------------------------------------------------------------------------------


def _check_restricted_volumes(pod: SecuredPod) -> Said:
    allowed = RESTRICTED_VOLUMES - ({"image"} if pod.server < IMAGE_VOLUMES_SINCE else set())
    for index, volume in enumerate(pod.volumes):
        kinds = [key for key, value in volume.items() if key != "name" and value is not None]
        if kinds and allowed.isdisjoint(kinds):
            yield ("spec", "volumes", index), f"volume '{volume['name']}' is of kind {kinds[0]}"


def _check_privilege_escalation(pod: SecuredPod) -> Said:
    for at, one, context in () if pod.is_windows else pod.containers():
        if context.get("allowPrivilegeEscalation") is not False:
            told = f"container '{one['name']}' may gain privileges"
            yield (*at, "securityContext", "allowPrivilegeEscalation"), told


def _check_restricted_capabilities(pod: SecuredPod) -> Said:
    if pod.is_windows:
        return
    yield from _check_added_capabilities(pod, POD_SECURITY_RESTRICTED_CAPABILITIES)
    for at, one, context in pod.containers():
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            told = f"container '{one['name']}' does not drop ALL capabilities"
            yield (*at, "securityContext", "capabilities", "drop"), told


def _check_restricted_run_as_non_root(pod: SecuredPod) -> Said:
    if pod.is_in_user_namespace:
        return
    of_pod = pod.context.get("runAsNonRoot")
    if of_pod is False:
        yield ("spec", "securityContext", "runAsNonRoot"), "the pod may run as root"
    for at, one, context in pod.containers():
        own = context.get("runAsNonRoot")
        if (of_pod if own is None else own) is not True:
            yield (*at, "securityContext", "runAsNonRoot"), f"container '{one['name']}' may run as root"


def _check_run_as_user(pod: SecuredPod) -> Said:
    for at, who, context in () if pod.is_in_user_namespace else pod.contexts():
        if context.get("runAsUser") == 0:
            yield (*at, "runAsUser"), f"{who} runs as root"


def _check_restricted_seccomp(pod: SecuredPod) -> Said:
    if pod.is_windows:
        return
    yield from _check_baseline_seccomp(pod)
    if (pod.context.get("seccompProfile") or {}).get("type") not in SECCOMP_PROFILES:
        for at, one, context in pod.containers():
            if context.get("seccompProfile") is None:
                told = f"container '{one['name']}' has no seccomp profile"
                yield (*at, "securityContext", "seccompProfile"), told


POD_SECURITY_CHECKS = (
    Check("hostNamespaces", False, 0, _check_host_namespaces),
    Check("hostPathVolumes", False, 0, _check_host_path_volumes),
    Check("privileged", False, 0, _check_privileged_containers),
    Check("procMount", False, 0, _check_baseline_proc_mount),
    Check("capabilities_baseline", False, 0, _check_baseline_capabilities),
    Check("hostPorts", False, 0, _check_baseline_host_ports),
    Check("hostProbesAndHostLifecycle", False, 34, _check_baseline_probe_hosts),
    Check("appArmorProfile", False, 0, _check_baseline_apparmor_profiles),
    Check("seLinuxOptions", False, 0, _check_baseline_selinux_options),
    Check("sysctls", False, 0, _check_unsafe_sysctls),
    Check("windowsHostProcess", False, 0, _check_windows_host_process),
    Check("seccompProfile_baseline", False, 0, _check_baseline_seccomp),
    Check("restrictedVolumes", True, 0, _check_restricted_volumes, "hostPathVolumes"),
    Check("procMount_restricted", True, 35, _check_proc_mount, "procMount"),
    Check("allowPrivilegeEscalation", True, 8, _check_privilege_escalation),
    Check("capabilities_restricted", True, 22, _check_restricted_capabilities, "capabilities_baseline"),
    Check("runAsNonRoot", True, 0, _check_restricted_run_as_non_root),
    Check("runAsUser", True, 23, _check_run_as_user),
    Check("seccompProfile_restricted", True, 19, _check_restricted_seccomp, "seccompProfile_baseline"),
)
