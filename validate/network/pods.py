"""The pods of a run as the controllers will create them from its built objects: labels, ports, counts.

Sources: JobSet v0.10.1 to v0.12.0 (labelAndAnnotateObject: pod template labels, overridden by JobSet's own),
Trainer v2.1 to v2.3 (counts: plugins/mpi; pod group label: plugins/coscheduling; patched pod labels), the Job
controller of Kubernetes v1.34 (job names, completion index); for MPIJobs mpi-operator v0.8.2 (newWorker,
newLauncherPodTemplate). Kueue may add labels of its own group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.model.backend import MPIJOB, TRAINJOB, Backend, title_of
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.expand import EXPANDERS, ExpandedPods
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.network.labels import ANYTHING, PRESENT, LabelValues, PartialLabels, build_label_values
from gangplan.validate.network.policy import NamedPorts, PodGroup
from gangplan.validate.network.ranges import Spans, build_address_or_port_spans

JOBSET = "jobset.sigs.k8s.io/"
JOB = "batch.kubernetes.io/"
INDEX = f"{JOB}job-completion-index"
ADDED_BY_KUEUE = ("kueue.x-k8s.io/",)


@dataclass(frozen=True, slots=True)
class RolePods:
    """The pods of one replicated job, in parts that policies can distinguish."""

    name: str
    title: str
    parts: tuple[PodGroup, ...]
    ssh_port: int | None
    path: tuple[str | int, ...]  # of the pod template in the runtime
    template: Body


@dataclass(frozen=True, slots=True)
class PodLabels:
    """The labels of pods.

    `index` is the label by which they are numbered from `first` on, or "" if there is none.
    """

    known: dict[str, LabelValues]
    index: str = INDEX
    first: int = 0


def build_roles_seen_by_network_policies(
    made: Backend, job: Body, holder: Body, home: PartialLabels, looked_at: Mapping[str, frozenset[str]]
) -> list[RolePods]:
    """Return the roles of a run.

    `looked_at` are the pod labels that policies in the namespace select by, with values.
    """
    every = EXPANDERS[made.kind](job, holder, 0)
    names = {made.role("launcher"): LAUNCHER, made.role("worker"): WORKER}
    found = []
    for at, one in enumerate(every):
        name, spec = names.get(one.name, one.name), one.template["spec"]
        labels = LABELS[made.name](job, holder, every, at)
        pods = PodGroup(
            title_of(name),
            job["metadata"].get("namespace", ""),
            home,
            PartialLabels(labels.known, free=ADDED_BY_KUEUE),
            list_named_pod_ports(spec),
            one.each,
        )
        parts = tuple(
            _split_pods_network_policies_tell_apart(pods, looked_at, one.count, labels.index, labels.first)
        )
        found.append(
            RolePods(name, pods.title, parts, _find_listening_ssh_port(spec), one.template_at, one.template)
        )
    return found


def _split_pods_network_policies_tell_apart(
    pods: PodGroup, looked_at: Mapping[str, frozenset[str]], total: int, index: str, first: int
) -> Iterator[PodGroup]:
    """Yield one part, or several if a policy looks at the label that numbers the pods from `first` on."""
    if index not in looked_at:
        yield replace(pods, count=total)
        return
    numbers = map(str, range(first, first + pods.count))
    whole = PartialLabels(
        {**pods.labels.known, index: build_label_values(*numbers)}, pods.labels.rest, pods.labels.free
    )
    times = total // pods.count if pods.count else 1
    for labels in whole.split(index, looked_at[index]):
        listed = labels.of(index).listed
        name = f"{pods.title} {min(listed)}" if len(listed) == 1 else f"other {pods.title}"
        yield replace(pods, title=name, labels=labels, count=len(listed) * times)


def _build_mpi_operator_pod_labels(job: Body, _: Body, every: Sequence[ExpandedPods], at: int) -> PodLabels:
    """Return the labels that the MPI operator adds to pods, and the Job to the launcher's."""
    from gangplan.validate import replicas  # imported here because few runs are MPIJobs

    name, pods = job["metadata"]["name"], every[at]
    own = {
        replicas.OPERATOR_LABEL: replicas.OPERATOR_NAME,
        replicas.JOB_NAME_LABEL: name,
        replicas.ROLE_LABEL: pods.name,
    }
    labels = {key: build_label_values(value) for key, value in {**pods.labels, **own}.items()}
    first = int(replicas.runs_ranks(job))
    if pods.name != "launcher":
        labels[replicas.INDEX_LABEL] = PRESENT
        return PodLabels(labels, replicas.INDEX_LABEL, first)
    of_job = build_label_values(f"{name}-launcher")
    labels |= {f"{JOB}job-name": of_job, "job-name": of_job}
    labels |= {f"{JOB}controller-uid": PRESENT, "controller-uid": PRESENT}
    if first:
        labels[replicas.INDEX_LABEL] = build_label_values("0")
    return PodLabels(labels, "")


def _build_jobset_pod_labels(
    train_job: Body, runtime: Body, every: Sequence[ExpandedPods], at: int
) -> PodLabels:
    """Return the labels of one replicated job's pods; labels that only the cluster knows have any value."""
    name, pods = train_job["metadata"]["name"], every[at]
    spec = runtime["spec"]["template"]["spec"]
    labels = {key: build_label_values(value) for key, value in pods.labels.items()}
    group = _read_jobset_group_name(pods)
    numbers = [str(index) for index in range(pods.replicas)]
    before = sum(one.replicas for one in every[:at])
    own = {
        "jobset-name": build_label_values(name),
        "jobset-uid": PRESENT,
        "replicatedjob-name": build_label_values(pods.name),
        "restart-attempt": PRESENT,
        "job-restart-attempt": ANYTHING,
        "priority": ANYTHING,
        "replicatedjob-replicas": build_label_values(str(pods.replicas)),
        "global-replicas": build_label_values(str(sum(one.replicas for one in every))),
        "job-index": build_label_values(*numbers),
        "job-key": PRESENT,
        "job-global-index": build_label_values(*(str(before + int(number)) for number in numbers)),
        "job-group-index": PRESENT,
        "group-name": build_label_values(group),
        "group-replicas": build_label_values(
            str(sum(one.replicas for one in every if _read_jobset_group_name(one) == group))
        ),
    }
    labels |= {f"{JOBSET}{key}": values for key, values in own.items()}
    if spec.get("coordinator"):
        labels[f"{JOBSET}coordinator"] = PRESENT
    job_names = build_label_values(*(f"{name}-{pods.name}-{number}" for number in numbers))
    labels |= {f"{JOB}job-name": job_names, "job-name": job_names}
    labels |= {f"{JOB}controller-uid": PRESENT, "controller-uid": PRESENT, INDEX: PRESENT}
    if "coscheduling" in (runtime["spec"].get("podGroupPolicy") or {}):
        labels["scheduling.x-k8s.io/pod-group"] = build_label_values(name)
    return PodLabels(labels)


LABELS: Mapping[str, Callable[[Body, Body, Sequence[ExpandedPods], int], PodLabels]] = {
    TRAINJOB.name: _build_jobset_pod_labels,
    MPIJOB.name: _build_mpi_operator_pod_labels,
}


def _read_jobset_group_name(pods: ExpandedPods) -> str:
    return pods.entry.get("groupName") or "default"


def _list_lasting_containers(spec: Body) -> list[Body]:
    """Return the containers that run as long as the pod, sidecars included."""
    started = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return [*spec["containers"], *started]


def list_named_pod_ports(spec: Body) -> NamedPorts:
    """Return the named ports of a pod."""
    found: dict[tuple[str, str], Spans] = {}
    for container in _list_lasting_containers(spec):
        for port in container.get("ports") or ():
            if port.get("name"):
                key = (port.get("protocol") or "TCP", port["name"])
                number = port["containerPort"]
                found[key] = build_address_or_port_spans([*found.get(key, ()), (number, number)])
    return found


def _find_listening_ssh_port(spec: Body) -> int | None:
    """Return the port of a worker's sshd: the readiness probe's, else the one named ssh, else the first."""
    named = list_named_pod_ports(spec)
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
