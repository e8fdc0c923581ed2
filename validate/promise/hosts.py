"""Checks of the host names by which the pods of a run find each other, and of their SSH keys and ports.

Names are `<run>-<job>-0-<i>.<run>`, resolved through the search domains of the namespace (JobSet v0.10 to
v0.12, pkg/controllers; Trainer's hostfile). Keys are mounted by Trainer at sshAuthMountPath.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.validate.jobset import JOBSET_PATH
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_host_names(laid: ExpandedRun) -> Found:
    """Check that every pod has the name in the hostfile or master address, and can resolve the others."""
    network = laid.jobset.get("network") or {}
    if network.get("enableDNSHostnames") is False:
        message = (
            "no pod would have a host name: neither the hostfile nor the master's address could be found"
        )
        yield (
            laid.runtime,
            report_broken_promise(
                (*JOBSET_PATH, "network", "enableDNSHostnames"), message, "Keep enableDNSHostnames: true."
            ),
        )
    if network.get("publishNotReadyAddresses") is False:
        message = "a worker's name would vanish while its probe fails"
        at = (*JOBSET_PATH, "network", "publishNotReadyAddresses")
        yield laid.runtime, report_weakened_plan(at, message, "Keep publishNotReadyAddresses: true.")
    if network.get("subdomain"):
        why = (
            "all runs would share one Service, which finds only the pods of the first one"
            if laid.uses_mpi
            else "the master's address that Trainer gives to the workers does not have it"
        )
        message = f"the pods would be found below '{network['subdomain']}': {why}"
        yield (
            laid.runtime,
            report_broken_promise((*JOBSET_PATH, "network", "subdomain"), message, "Remove subdomain."),
        )
    for role in laid.present:
        yield from _check_promised_pod_name_lookup(laid, role)


def _check_promised_pod_name_lookup(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that pods of a role can resolve the names of the others."""
    spec, policy = role.spec, role.spec.get("dnsPolicy", "ClusterFirst")
    searches = (spec.get("dnsConfig") or {}).get("searches") or ()
    is_lost = policy == "Default" or (policy == "ClusterFirst" and spec.get("hostNetwork"))
    if policy == "None":
        is_lost = not any(".svc" in domain for domain in searches)
    if is_lost:
        how = f"dnsPolicy {policy}" + (" on the host's network" if spec.get("hostNetwork") else "")
        message = f"{role.title} would ask the node's DNS ({how}), which does not know the names of the pods"
        right = "ClusterFirstWithHostNet" if spec.get("hostNetwork") else "ClusterFirst"
        at = (*role.pod, "dnsPolicy" if "dnsPolicy" in spec else "hostNetwork")
        yield laid.runtime, report_broken_promise(at, message, f"Write dnsPolicy: {right}.")
    if spec.get("setHostnameAsFQDN"):
        message = (
            f"the host names of {role.title} would be full domain names: more than 64 characters keep a pod"
            " from starting, and MPI no longer knows its own host"
        )
        yield (
            laid.runtime,
            report_broken_promise((*role.pod, "setHostnameAsFQDN"), message, "Remove setHostnameAsFQDN."),
        )


def check_promised_ssh_keys(laid: ExpandedRun) -> Found:
    """Check that the SSH keys are where the image's server and client look for them."""
    mpi = laid.policy.get("mpi")
    if not laid.uses_mpi or mpi is None:
        return
    planned, built = laid.unit.job.image.ssh.keys, mpi.get("sshAuthMountPath", "/root/.ssh")
    if built.rstrip("/") != planned.rstrip("/"):
        message = f"the SSH keys would be at {built}; the image looks for them at {planned}"
        help = f"Write ssh: {{keys: {built}}} for '{laid.unit.job.image.name}' in images/catalog.yaml."
        yield (
            laid.runtime,
            report_broken_promise(("spec", "mlPolicy", "mpi", "sshAuthMountPath"), message, help),
        )
    yield from check_promised_ssh_port(laid)


def check_promised_ssh_port(laid: ExpandedRun) -> Found:
    """Check that the container port `ssh` is the one that the SSH server listens on."""
    port = laid.unit.job.image.ssh.port
    for role in laid.present:
        for index, one in enumerate((role.container or {}).get("ports") or ()):
            if one.get("name") == "ssh" and one.get("containerPort") != port:
                message = f"port ssh would be {one.get('containerPort')}; the SSH server listens on {port}"
                help = f"Write ssh: {{port: ...}} for '{laid.unit.job.image.name}' in images/catalog.yaml."
                yield (
                    laid.runtime,
                    report_broken_promise((*role.box, "ports", index, "containerPort"), message, help),
                )
