"""A pod as Pod Security admission sees it, and the values that its levels allow, each since a minor.

Source: k8s.io/pod-security-admission v0.34 (policy/check_*.go, visitor.go), check_sysctls.go of Kubernetes
1.37 and check_procMount_baseline.go of 1.35.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.objects import Body

# It depends on the version of the module, whichever version of a level a namespace names.
IMAGE_VOLUMES_SINCE = 33
POD_SECURITY_BASELINE_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
POD_SECURITY_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
RESTRICTED_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"),
        *("projected", "secret"),
    }
)
SAFE_SYSCTLS: dict[str, int] = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_notsent_lowat": 37,
}
SELINUX_TYPES: dict[str, int] = {
    "": 0,
    "container_t": 0,
    "container_init_t": 0,
    "container_kvm_t": 0,
    "container_engine_t": 31,
}
APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
SECCOMP_PROFILES = ("RuntimeDefault", "Localhost")


class SecuredPod:
    """A pod or a pod template; nulls count as absent. Paths begin with `spec` or `metadata`."""

    __slots__ = ("annotations", "context", "minor", "server", "spec", "volumes")

    def __init__(self, body: Body, minor: int, server: int) -> None:
        self.spec: Body = body.get("spec") or {}
        self.annotations: Body = (body.get("metadata") or {}).get("annotations") or {}
        self.context: Body = self.spec.get("securityContext") or {}
        self.volumes: list[Body] = self.spec.get("volumes") or []
        self.minor = minor
        self.server = server

    @property
    def is_windows(self) -> bool:
        """Whether the pod states that it runs on Windows, which levels consider since 1.25."""
        return self.minor >= 25 and (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def is_in_user_namespace(self) -> bool:
        """Whether the pod has users of its own, not the node's; levels consider this since 1.35."""
        return self.minor >= 35 and self.spec.get("hostUsers") is False

    def containers(self) -> Iterator[tuple[FieldPath, Body, Body]]:
        """Yield path, container and its security context; sidecars are init containers."""
        for name in ("initContainers", "containers", "ephemeralContainers"):
            for index, one in enumerate(self.spec.get(name) or ()):
                yield ("spec", name, index), one, one.get("securityContext") or {}

    def contexts(self) -> Iterator[tuple[FieldPath, str, Body]]:
        """Yield path, words and content of each security context, the pod's first."""
        yield ("spec", "securityContext"), "the pod", self.context
        for at, one, context in self.containers():
            yield (*at, "securityContext"), f"container '{one['name']}'", context
