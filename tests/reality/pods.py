"""What a cluster makes of a rendered run: pods with names, labels, environment, hostfile and keys;
connections.

Trainer 2.3's MPI plugin (pkg/runtime/framework/plugins/mpi/mpi.go), JobSet 0.12's names and labels, and the
kubelet's expansion of variables, repeated here from their sources; nothing is taken from gangplan but the
rendered objects and what it shares with `gangplan run` about other programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.local.trainer import (
    build_local_jax_plugin_variables,
    build_local_mpi_plugin_variables,
    build_local_torch_plugin_variables,
    build_local_xgboost_plugin_variables,
    format_hostfile,
)
from gangplan.model.frameworks import COMPLETION_INDEX_FIELD
from tests import plain, workspaces
from tests.kubelet import expand_local_container_like_kubelet, read_config_map_for_local_mount
from tests.network import brute

Body = dict[str, Any]
HOME = "/home/mpiuser"


@dataclass(frozen=True)
class Pod:
    """A pod of a run as it is started."""

    name: str  # its host name
    role: str
    subdomain: str
    namespace: str
    address: str
    labels: dict[str, str]
    container: Body
    scripts: Mapping[str, str]  # of the launch, by the names of their files
    networks: int = 0  # that Multus attaches, as net1, net2, ...

    @property
    def names(self) -> list[str]:
        """Its names in the cluster's DNS, as other pods may write them; the full name first."""
        short = f"{self.name}.{self.subdomain}"
        whole = f"{short}.{self.namespace}.svc.cluster.local"
        return [whole, f"{short}.{self.namespace}.svc", f"{short}.{self.namespace}", short]

    @property
    def command(self) -> list[str]:
        """Its first process."""
        return [*self.container["command"], *self.container["args"]]


@dataclass(frozen=True)
class Cluster:
    """The pods of one run and the policies that apply to them."""

    pods: Sequence[Pod]
    hostfile: str
    keys: str  # where the SSH keys are mounted
    slots: int
    policies: Sequence[Body]
    starts_together: bool = False  # launcher and workers start without waiting for each other

    @property
    def launcher(self) -> Pod:
        """The pod that runs mpirun; for torch the first worker, whose end is the run's."""
        return next((pod for pod in self.pods if pod.role == "launcher"), self.pods[0])

    @property
    def workers(self) -> list[Pod]:
        """The pods that the launcher reaches by SSH."""
        return [pod for pod in self.pods if pod.role in ("node", "worker")]

    @property
    def ranked(self) -> list[Pod]:
        """The pods that the hostfile names."""
        named = {line.split(".")[0] for line in self.hostfile.splitlines()}
        return [pod for pod in self.pods if pod.name in named]


def objects(root: Path, spec: str, **files: str) -> list[Body]:
    """Return what gangplan renders for the small workspace with this spec; `files` are added or replaced."""
    workspaces.stock(root)
    workspaces.write(root, {"overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER})
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, **files})
    return load(workspaces.render(root, "-o", "-").out)


def load(text: str) -> list[Body]:
    """Return the objects of a YAML stream."""
    return [body for body in plain.load_all(text) if body]


def cluster(bodies: Iterable[Body]) -> Cluster:
    """Return the pods of the only run among the objects."""
    found = list(bodies)
    for body in found:
        if body["kind"] == "MPIJob":
            from tests.reality import operator

            return operator.cluster(found, body)
    (job,) = [body for body in found if body["kind"] == "TrainJob"]
    runtime = next(
        body
        for body in found
        if body["kind"] == "TrainingRuntime" and body["metadata"]["name"] == job["spec"]["runtimeRef"]["name"]
    )
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    mpi = runtime["spec"]["mlPolicy"].get("mpi")
    if mpi is None:
        return _without_mpi(found, job, runtime)
    total = job["spec"]["trainer"]["numNodes"]
    slots = job["spec"]["trainer"].get("numProcPerNode", mpi["numProcPerNode"])
    runs_ranks = mpi.get("runLauncherAsNode", False)
    counts = {"node": max(total - 1, 1) if runs_ranks else total, "launcher": 1}
    roles = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods: list[Pod] = []
    for role in roles:
        for index in range(counts[role["name"]]):
            number = len(pods) + 1
            address = f"10.77.{number // 250}.{number % 250 + 1}"
            pods.append(_pod(role, index, name, namespace, address, slots, found))
    ranked = [pod for pod in pods if pod.role == "node" or runs_ranks]
    return Cluster(
        pods=pods,
        hostfile=format_hostfile((f"{pod.name}.{pod.subdomain}" for pod in ranked), slots),
        keys=mpi["sshAuthMountPath"],
        slots=slots,
        policies=[body for body in found if body["kind"] == "NetworkPolicy"],
    )


def _without_mpi(found: list[Body], job: Body, runtime: Body) -> Cluster:
    """Return workers only, with what Trainer 2.3 sets for torchrun, JAX and XGBoost (plugins/)."""
    name, namespace, trainer = job["metadata"]["name"], job["metadata"]["namespace"], job["spec"]["trainer"]
    (role,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = [
        _pod(role, index, name, namespace, f"10.77.0.{index + 1}", 0, found)
        for index in range(trainer["numNodes"])
    ]
    policy, first = runtime["spec"]["mlPolicy"], f"{name}-node-0-0.{name}"
    slots = trainer.get("numProcPerNode") or int(pods[0].container["env"].get("PADDLE_NPROC_PER_NODE", 1))
    for index, pod in enumerate(pods):
        env = pod.container["env"]
        if "torch" in policy:
            env |= build_local_torch_plugin_variables(len(pods), slots, index, first)
        elif "jax" in policy:
            env |= build_local_jax_plugin_variables(len(pods), index, first)
        elif "xgboost" in policy:
            env |= build_local_xgboost_plugin_variables(len(pods), index, first)
    policies = [body for body in found if body["kind"] == "NetworkPolicy"]
    return Cluster(pods, "".join(f"{pod.name}\n" for pod in pods), "", slots, policies)


def _pod(
    role: Body, index: int, run: str, namespace: str, address: str, slots: int, found: Iterable[Body]
) -> Pod:
    template = role["template"]["spec"]["template"]
    source, name = template["spec"]["containers"][0], f"{run}-{role['name']}-0-{index}"
    read = {one["name"]: "" for one in source.get("env", ()) if "valueFrom" in one}
    fill(source, read, name, address, index)
    container = expand_local_container_like_kubelet(source, read)
    if role["name"] == "launcher":
        container["env"] |= build_local_mpi_plugin_variables(slots)
    labels = {
        **template["metadata"].get("labels", {}),
        "jobset.sigs.k8s.io/jobset-name": run,
        "jobset.sigs.k8s.io/replicatedjob-name": role["name"],
        "batch.kubernetes.io/job-name": f"{run}-{role['name']}-0",
    }
    annotation = template["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks", "")
    networks = annotation.count(",") + 1 if annotation else 0
    _, scripts = read_config_map_for_local_mount(template["spec"], SCRIPTS_FOLDER, found)
    return Pod(name, role["name"], run, namespace, address, labels, container, scripts, networks)


def fill(container: Body, env: dict[str, str], name: str, address: str, index: int = 0) -> None:
    """Set variables that are read from the pod. Each pod is on a node of its own, with a name that tempts
    shells."""
    fields = {"metadata.name": name, "status.podIP": address, "spec.nodeName": f"node of '{name}' $HOME"}
    fields[COMPLETION_INDEX_FIELD] = str(index)
    for one in container.get("env", ()):
        source = one.get("valueFrom", {})
        if "fieldRef" in source:
            env[one["name"]] = fields[source["fieldRef"]["fieldPath"]]
        elif "resourceFieldRef" in source:
            side, _, resource = source["resourceFieldRef"]["resource"].partition(".")
            env[one["name"]] = str(container["resources"][side][resource])


# Names and filters


def hosts_file(cluster: Cluster, own: Pod) -> str:
    """Return a pod's /etc/hosts, with DNS's answers for the others. Its own line is the kubelet's."""
    whole = own.names[0]
    lines = ["127.0.0.1 localhost", f"{own.address} {whole} {own.name}"]
    lines += [f"{pod.address} {' '.join(pod.names)}" for pod in cluster.pods if pod is not own]
    lines.append(f"{own.address} {' '.join(own.names)}")
    return "".join(f"{line}\n" for line in lines)


def filters(cluster: Cluster, own: Pod) -> str:
    """Return a packet filter for what the policies let a pod send to the others; '' without policies."""
    if not cluster.policies:
        return ""
    rules = ["oif lo accept", "ct state established,related accept"]
    for pod in cluster.pods:
        for protocol in ("tcp", "udp"):
            ranges = open_ports(cluster, own, pod, protocol.upper())
            if ranges and pod is not own:
                shown = ", ".join(f"{low}-{high}" for low, high in ranges)
                rules.append(f"ip daddr {pod.address} {protocol} dport {{ {shown} }} accept")
    rules += ["meta l4proto tcp reject with tcp reset", "reject with icmpx admin-prohibited"]
    head = "table inet pod { chain out { type filter hook output priority 0; policy drop;"
    return "\n".join([head, *rules, "}", "}", ""])


def open_ports(cluster: Cluster, source: Pod, target: Pod, protocol: str = "TCP") -> list[tuple[int, int]]:
    """Return the ranges of ports on which policies let one pod connect to another."""
    starts = sorted({1, *_edges(cluster.policies)})
    ends = [start - 1 for start in starts[1:]] + [65535]
    home = {"kubernetes.io/metadata.name": source.namespace}
    one, other = (
        brute.Pod(pod.namespace, home, pod.labels, _ports(pod.container)) for pod in (source, target)
    )
    return [
        (low, high)
        for low, high in zip(starts, ends, strict=True)
        if brute.allowed(list(cluster.policies), one, other, protocol, low)
    ]


def _ports(container: Body) -> list[tuple[str, str, int]]:
    return [
        (port["protocol"], port["name"], port["containerPort"])
        for port in container.get("ports", ())
        if "name" in port
    ]


def _edges(policies: Sequence[Body]) -> Iterable[int]:
    """Yield where an answer may change: the first port of each range, and the port after it.

    Named ports are SSH's.
    """
    for body in policies:
        for rule in [*(body["spec"].get("ingress") or []), *(body["spec"].get("egress") or [])]:
            for entry in rule.get("ports") or []:
                port = entry.get("port")
                if isinstance(port, str):
                    port = 2222
                if port is not None:
                    yield port
                    yield min(65535, entry.get("endPort", port) + 1)
