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
from gangplan.validate.network.labels import ANYTHING, PRESENT, Labels, Values, one_of
from gangplan.validate.network.policy import Named, PodGroup
from gangplan.validate.network.ranges import Spans, spans

JOBSET = "jobset.sigs.k8s.io/"
JOB = "batch.kubernetes.io/"
INDEX = f"{JOB}job-completion-index"
ADDED_BY_KUEUE = ("kueue.x-k8s.io/",)
LAUNCHER, WORKER = "launcher", "node"
TITLES = {LAUNCHER: "launcher", WORKER: "workers"}


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
    spec = runtime["spec"]["template"]["spec"]
    jobs = spec["replicatedJobs"]
    found = []
    for at, job in enumerate(jobs):
        template = job["template"]["spec"]["template"]
        labels = Labels(_labels(train_job, runtime, at), free=ADDED_BY_KUEUE)
        count = count_of(train_job, runtime, job)
        pods = PodGroup(
            TITLES.get(job["name"], f"pods of '{job['name']}'"),
            train_job["metadata"].get("namespace", ""),
            home,
            labels,
            named_ports(template["spec"]),
            count,
        )
        path = ("spec", "template", "spec", "replicatedJobs", at, "template", "spec", "template")
        parts = tuple(_parts(pods, looked_at, count * job.get("replicas", 1)))
        found.append(RolePods(job["name"], pods.title, parts, _ssh_port(template["spec"]), path, template))
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
            TITLES[name],
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


def _labels(train_job: Body, runtime: Body, at: int) -> dict[str, Values]:
    """Labels of the pods of one replicated job; what only the cluster knows is there with any value."""
    name = train_job["metadata"]["name"]
    spec = runtime["spec"]["template"]["spec"]
    jobs = spec["replicatedJobs"]
    job = jobs[at]
    metadata = job["template"]["spec"]["template"].get("metadata") or {}
    written = {**(metadata.get("labels") or {}), **patched_labels(train_job, job["name"])}
    labels = {key: one_of(value) for key, value in written.items()}
    before = [_replicas(one) for one in jobs[:at]]
    group = job.get("groupName") or "default"
    in_group = [_replicas(one) for one in jobs if (one.get("groupName") or "default") == group]
    numbers = [str(index) for index in range(_replicas(job))]
    own = {
        "jobset-name": one_of(name),
        "jobset-uid": PRESENT,
        "replicatedjob-name": one_of(job["name"]),
        "restart-attempt": PRESENT,
        "job-restart-attempt": ANYTHING,
        "priority": ANYTHING,
        "replicatedjob-replicas": one_of(str(_replicas(job))),
        "global-replicas": one_of(str(sum(map(_replicas, jobs)))),
        "job-index": one_of(*numbers),
        "job-key": PRESENT,
        "job-global-index": one_of(*(str(sum(before) + int(number)) for number in numbers)),
        "job-group-index": PRESENT,
        "group-name": one_of(group),
        "group-replicas": one_of(str(sum(in_group))),
    }
    labels |= {f"{JOBSET}{key}": values for key, values in own.items()}
    if spec.get("coordinator"):
        labels[f"{JOBSET}coordinator"] = PRESENT
    job_names = one_of(*(f"{name}-{job['name']}-{number}" for number in numbers))
    labels |= {f"{JOB}job-name": job_names, "job-name": job_names}
    labels |= {f"{JOB}controller-uid": PRESENT, "controller-uid": PRESENT, INDEX: PRESENT}
    if "coscheduling" in (runtime["spec"].get("podGroupPolicy") or {}):
        labels["scheduling.x-k8s.io/pod-group"] = one_of(name)
    return labels


def _replicas(job: Body) -> int:
    return int(job.get("replicas", 1))


def patched_labels(train_job: Body, role: str) -> dict[str, str]:
    """Pod labels that the TrainJob itself adds: runtimePatches (Trainer 2.3), podTemplateOverrides before."""
    labels: dict[str, str] = {}
    spec = train_job["spec"]
    for override in spec.get("podTemplateOverrides") or ():
        if role in [target.get("name") for target in override.get("targetJobs") or ()]:
            labels |= (override.get("metadata") or {}).get("labels") or {}
    for patch in spec.get("runtimePatches") or ():
        inner = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for job in inner.get("replicatedJobs") or ():
            if job.get("name") == role:
                template = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
                labels |= (template.get("metadata") or {}).get("labels") or {}
    return labels


def count_of(train_job: Body, runtime: Body, job: Body) -> int:
    """Pods of one job of a replicated job (Trainer, plugins/mpi and plugins/torch)."""
    policy = runtime["spec"].get("mlPolicy") or {}
    asked = (train_job["spec"].get("trainer") or {}).get("numNodes")
    parallelism = int(job["template"]["spec"].get("parallelism", 1))
    if "mpi" not in policy:
        return int(asked or policy.get("numNodes") or parallelism) if job["name"] == WORKER else parallelism
    if job["name"] == LAUNCHER:
        return 1
    if job["name"] != WORKER or asked is None:
        return parallelism
    return max(asked - 1, 1) if (policy["mpi"] or {}).get("runLauncherAsNode") else int(asked)


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
