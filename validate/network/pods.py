"""The pods of a run as the controllers will create them from its built objects: labels, ports, counts.

Sources: JobSet v0.10.1 to v0.12.0 (labelAndAnnotateObject: pod template labels, overridden by JobSet's own),
Trainer v2.1 to v2.3 (counts: plugins/mpi; pod group label: plugins/coscheduling; patched pod labels), the Job
controller of Kubernetes v1.34 (job names, completion index); of MPIJobs mpi-operator v0.8.2 (newWorker,
newLauncherPodTemplate). Kueue may add labels of its own group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.expand import ExpandedPods, expand_train_job
from gangplan.validate.jobset import LAUNCHER, WORKER, title_of
from gangplan.validate.network.labels import ANYTHING, PRESENT, Labels, Values, one_of
from gangplan.validate.network.policy import Named, PodGroup
from gangplan.validate.network.ranges import Spans, spans

JOBSET = "jobset.sigs.k8s.io/"
JOB = "batch.kubernetes.io/"
INDEX = f"{JOB}job-completion-index"
ADDED_BY_KUEUE = ("kueue.x-k8s.io/",)


@dataclass(frozen=True, slots=True)
class RolePods:
    """The pods of one replicated job, in parts that policies can tell apart."""

    name: str
    title: str
    parts: tuple[PodGroup, ...]
    ssh_port: int | None
    path: tuple[str | int, ...]  # of the pod template in the runtime
    template: Body


def run_roles(
    train_job: Body, runtime: Body, home: Labels, looked_at: Mapping[str, frozenset[str]]
) -> list[RolePods]:
    """The roles of a run. `looked_at` are the pod labels that any policy there selects by, with values."""
    every = expand_train_job(train_job, runtime)
    found = []
    for at, one in enumerate(every):
        spec = one.template["spec"]
        pods = PodGroup(
            one.title,
            train_job["metadata"].get("namespace", ""),
            home,
            Labels(_labels(train_job, runtime, every, at), free=ADDED_BY_KUEUE),
            named_ports(spec),
            one.each,
        )
        parts = tuple(_parts(pods, looked_at, one.count))
        found.append(RolePods(one.name, pods.title, parts, _ssh_port(spec), one.template_at, one.template))
    return found


def mpi_roles(job: Body, home: Labels, looked_at: Mapping[str, frozenset[str]]) -> list[RolePods]:
    """The roles of an MPIJob: labels that the operator gives to pods, and the Job to the launcher's."""
    from gangplan.validate import replicas  # few runs are MPIJobs

    metadata, found = job["metadata"], []
    for one in replicas.replicas_of(job):
        is_launcher = one.role == "launcher"
        written = (one.template.get("metadata") or {}).get("labels") or {}
        own = {
            replicas.OPERATOR_LABEL: replicas.OPERATOR,
            replicas.NAME_LABEL: metadata["name"],
            replicas.ROLE_LABEL: one.role,
        }
        labels = {key: one_of(value) for key, value in {**written, **own}.items()}
        if is_launcher:
            of_job = one_of(f"{metadata['name']}-launcher")
            labels |= {f"{JOB}job-name": of_job, "job-name": of_job}
            labels |= {f"{JOB}controller-uid": PRESENT, "controller-uid": PRESENT}
        first = int(replicas.runs_ranks(job))
        if is_launcher and first:
            labels[replicas.INDEX_LABEL] = one_of("0")
        elif not is_launcher:
            labels[replicas.INDEX_LABEL] = PRESENT
        name = LAUNCHER if is_launcher else WORKER
        spec = one.template["spec"]
        pods = PodGroup(
            title_of(name),
            metadata.get("namespace", ""),
            home,
            Labels(labels, free=ADDED_BY_KUEUE),
            named_ports(spec),
            one.count,
        )
        key = "" if is_launcher else replicas.INDEX_LABEL
        parts = tuple(_parts(pods, looked_at, one.count, key, first))
        found.append(RolePods(name, pods.title, parts, _ssh_port(spec), one.at, one.template))
    return found


def _parts(
    pods: PodGroup, looked_at: Mapping[str, frozenset[str]], total: int, index: str = INDEX, first: int = 0
) -> Iterator[PodGroup]:
    """One part unless a policy looks at the label by which the pods are numbered, from `first` on."""
    if index not in looked_at:
        yield replace(pods, count=total)
        return
    numbers = map(str, range(first, first + pods.count))
    whole = Labels({**pods.labels.known, index: one_of(*numbers)}, pods.labels.rest, pods.labels.free)
    times = total // pods.count if pods.count else 1
    for labels in whole.split(index, looked_at[index]):
        listed = labels.of(index).listed
        name = f"{pods.title} {min(listed)}" if len(listed) == 1 else f"other {pods.title}"
        yield replace(pods, title=name, labels=labels, count=len(listed) * times)


def _labels(train_job: Body, runtime: Body, every: Sequence[ExpandedPods], at: int) -> dict[str, Values]:
    """Labels of the pods of one replicated job; what only the cluster knows is there with any value."""
    name, pods = train_job["metadata"]["name"], every[at]
    spec = runtime["spec"]["template"]["spec"]
    labels = {key: one_of(value) for key, value in pods.labels.items()}
    group = _group(pods)
    numbers = [str(index) for index in range(pods.replicas)]
    before = sum(one.replicas for one in every[:at])
    own = {
        "jobset-name": one_of(name),
        "jobset-uid": PRESENT,
        "replicatedjob-name": one_of(pods.name),
        "restart-attempt": PRESENT,
        "job-restart-attempt": ANYTHING,
        "priority": ANYTHING,
        "replicatedjob-replicas": one_of(str(pods.replicas)),
        "global-replicas": one_of(str(sum(one.replicas for one in every))),
        "job-index": one_of(*numbers),
        "job-key": PRESENT,
        "job-global-index": one_of(*(str(before + int(number)) for number in numbers)),
        "job-group-index": PRESENT,
        "group-name": one_of(group),
        "group-replicas": one_of(str(sum(one.replicas for one in every if _group(one) == group))),
    }
    labels |= {f"{JOBSET}{key}": values for key, values in own.items()}
    if spec.get("coordinator"):
        labels[f"{JOBSET}coordinator"] = PRESENT
    job_names = one_of(*(f"{name}-{pods.name}-{number}" for number in numbers))
    labels |= {f"{JOB}job-name": job_names, "job-name": job_names}
    labels |= {f"{JOB}controller-uid": PRESENT, "controller-uid": PRESENT, INDEX: PRESENT}
    if "coscheduling" in (runtime["spec"].get("podGroupPolicy") or {}):
        labels["scheduling.x-k8s.io/pod-group"] = one_of(name)
    return labels


def _group(pods: ExpandedPods) -> str:
    return pods.entry.get("groupName") or "default"


def _containers(spec: Body) -> list[Body]:
    """Containers that run with the pod, sidecars included."""
    started = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return [*spec["containers"], *started]


def named_ports(spec: Body) -> Named:
    """The named ports of a pod."""
    found: dict[tuple[str, str], Spans] = {}
    for container in _containers(spec):
        for port in container.get("ports") or ():
            if port.get("name"):
                key = (port.get("protocol") or "TCP", port["name"])
                number = port["containerPort"]
                found[key] = spans([*found.get(key, ()), (number, number)])
    return found


def _ssh_port(spec: Body) -> int | None:
    """Where a worker's sshd listens: the readiness probe's port, else the one named ssh, else the first."""
    named = named_ports(spec)
    containers: Sequence[Body] = spec["containers"]
    for container in containers:
        port = ((container.get("readinessProbe") or {}).get("tcpSocket") or {}).get("port")
        if isinstance(port, str):
            port = next((first for first, _ in named.get(("TCP", port), ())), None)
        if port is not None:
            return int(port)
    ports = [port for container in containers for port in container.get("ports") or ()]
    ports.sort(key=lambda port: port.get("name") != "ssh")
    return int(ports[0]["containerPort"]) if ports else None
