"""Causes of the fields of a run's pods."""

from __future__ import annotations

from typing import Any

from gangplan.generators.scripts import SCRIPTS_VOLUME
from gangplan.model.job import Mount, TargetPool
from gangplan.spec.nodes import field_of
from gangplan.trace import fabric, others, rails
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext, constant
from gangplan.trace.files import at, own
from gangplan.trace.launch import argument
from gangplan.trace.metadata import label, pod_annotation
from gangplan.trace.origins import causes_of
from gangplan.trace.starts import program
from gangplan.trace.table import Table


class PodContext:
    """A pod of a run: the run's context, the role, and the pod's own body."""

    def __init__(self, context: TraceContext, name: str, body: Any) -> None:
        """Derive the role from the name of the replicated job."""
        self.context = context
        self.other = next((one for one in context.job.others if one.name == name), None)
        self.role = self.other.name if self.other else "launcher" if name == "launcher" else "worker"
        self.body = body

    @property
    def pool(self) -> TargetPool:
        """The node pool of this role."""
        job = self.context.job
        if self.other:
            return self.other.pool
        return job.launcher_pool if self.role == "launcher" else job.worker_pool

    def word(self, word: str) -> Any:
        """Return the value of a placeholder in a table."""
        return self.pool.name if word == "pool" else self.context.word(word)

    def at(self, *path: str | int) -> Any:
        """Return the value at a path in the pod's spec."""
        return at(self.body, ("spec", *path))


def _label(pod: PodContext, stars: Path) -> list[Cause]:
    found = label(pod.context, stars)
    if pod.other and pod.other.step and str(stars[-1]).endswith("role"):
        found = [*found, *asides(others.named(pod.context, pod.other))]
    return found


def _annotation(pod: PodContext, stars: Path) -> list[Cause]:
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    return [*pod_annotation(pod.context, stars), *ranks]


def _selector(pod: PodContext, stars: Path) -> list[Cause]:
    pool = pod.pool.name
    if stars[0] == "kubernetes.io/os":
        return [own("every node that gangplan uses runs Linux")]
    if stars[0] == "kubernetes.io/arch":
        return [pod.context.cluster("nodePools", pool, "arch"), *_pool(pod)]
    return [pod.context.cluster("nodePools", pool, "labels", *stars), *_pool(pod)]


def _toleration(pod: PodContext, stars: Path) -> list[Cause]:
    index, field = stars[0], str(stars[-1])
    field = "value" if field == "operator" else field
    taint = pod.context.cluster("nodePools", pod.pool.name, "taints", index, field)
    return [taint.aside() if stars[-1] == "operator" else taint, *_pool(pod)]


def _pool(pod: PodContext) -> list[Cause]:
    """Return the reasons why pods of this role go to their pool."""
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    gpus = [others.asked(pod.context, pod.other, "gpus").aside()] if pod.other else []
    return [*pod.context.pool(pod.pool.name), *ranks, *gpus]


def _near(pod: PodContext, stars: Path) -> list[Cause]:
    return near(pod.context, pod.role, stars)


def _image(pod: PodContext, stars: Path) -> list[Cause]:
    return others.image(pod.context, pod.other) if pod.other else others.of_job(pod.context)


def _command(pod: PodContext, stars: Path) -> list[Cause]:
    if pod.other and pod.other.step:
        return [own("a shell passes SIGTERM on to what the step runs")]
    words = pod.at("containers", 0, "command") or ()
    return program(pod.context, "worker" if pod.other else pod.role, words, int(stars[0]))


def _argument(pod: PodContext, stars: Path) -> list[Cause]:
    if pod.other:
        return others.argument(pod.context, pod.other, int(stars[0]))
    return argument(pod.context, pod.role, int(stars[0]))


def _amount(pod: PodContext, stars: Path) -> list[Cause]:
    """Return the causes of CPU, memory or devices of a role (resolve/job.py, resolve/placement.py)."""
    context, resource = pod.context, str(stars[-1])
    if pod.other:
        return others.amount(context, pod.other, resource)
    ranks = context.job.launcher_runs_ranks
    if pod.role == "launcher" and not ranks:
        runs = context.spec("launcher", "runsRanks").aside()
        asked = context.spec("launcher", resource)
        if asked.is_written:
            return [asked, runs]
        ladder = "a launcher grows with the number of workers (gangplan.model.profiles)"
        return [own(ladder), *asides(context.workers()), asked.aside(), runs]
    around = [context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    if resource in ("cpu", "memory"):
        return [*context.chosen(resource), *around]
    pool = context.job.worker_pool.name
    if rail := rails.rail_of(context.files, pool, resource):
        return [*rails.amount(context, rail), *context.pool(pool), *around]
    device = context.cluster("nodePools", pool, "gpu", "resource").aside()
    if resource in dict(context.job.resources.others):
        return [*_other(context, resource), *context.pool(pool), *around]
    return [*context.chosen("gpus"), device, *context.pool(pool), *around]


def _other(context: TraceContext, resource: str) -> list[Cause]:
    """Return the causes of disk, huge pages and other devices.

    Scratch on disk is a part of the worker's ephemeral storage.
    """
    asked = context.spec(*field_of(resource))
    if resource != "ephemeral-storage":
        pages = field_of(resource)[0] == "hugePages" and not asked.is_written
        return [asked.aside(), *fabric.stated(context, *field_of(resource))] if pages else [asked]
    size = [context.spec(*context.scratch("size"))] if context.files.has("spec", "scratch") else []
    return [*([asked] if asked.is_written else []), *size, asked.aside(), context.spec("scratch").aside()]


def _shm(pod: PodContext, stars: Path) -> list[Cause]:
    half = own("half of the memory: NCCL and data loaders need more than the 64 MiB that containers get")
    return [*_amount(pod, ("memory",)), half]


# The same for all runs of a team, however their options differ.
_SCRIPTS = [
    own("gangplan's launch scripts: a ConfigMap next to the runs, whose name ends in the scripts' hash")
]


def _mount(pod: PodContext, stars: Path) -> list[Cause]:
    index, field = int(stars[0]), str(stars[-1])
    return _mount_at(pod, index, field)


def _mount_at(pod: PodContext, index: int, field: str) -> list[Cause]:
    if index == 0:
        return constant("pod.yaml.j2")
    if index > len(pod.context.job.mounts_of(pod.role)):
        name = pod.at("containers", 0, "volumeMounts", index, "name")
        return _SCRIPTS if name == SCRIPTS_VOLUME else fabric.volume(pod.context, str(name), field)
    mount = pod.context.job.mounts_of(pod.role)[index - 1]
    return _mounted(pod, mount, field)


def _volume(pod: PodContext, stars: Path) -> list[Cause]:
    name = pod.at("volumes", stars[0], "name")
    if str(name).startswith(fabric.PREFIX):
        return fabric.volume(pod.context, str(name), str(stars[-1]))
    if name == SCRIPTS_VOLUME:
        return _SCRIPTS
    mounts = [mount for mount in pod.context.job.mounts if mount.volume == name]
    if not mounts:
        return constant("pod.yaml.j2")
    return [cause for mount in mounts for cause in _mounted(pod, mount, str(stars[-1]))]


def _mounted(pod: PodContext, mount: Mount, field: str) -> list[Cause]:
    """Return the causes recorded with a mount.

    A launcher has the mounts of pods with ranks only if it runs some.
    """
    is_asked = mount.single and pod.role == "launcher"
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if is_asked else []
    return [*causes_of(pod.context, mount.origins.get(field) or mount.origins[""]), *ranks]


def _restart(pod: PodContext, stars: Path) -> list[Cause]:
    asked = pod.context.spec("debug")
    return [asked] if pod.at("restartPolicy") == "OnFailure" else [*constant("pod.yaml.j2"), asked.aside()]


def _beside(pod: PodContext, stars: Path) -> list[Cause]:
    first = len(fabric.access(pod.context, pod.role).containers)
    index = int(stars[0]) - first
    if not 0 <= index < len(pod.context.job.containers_of(pod.role)):
        return fabric.container(pod.context, pod.role, stars)
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    if stars[1] == "volumeMounts":
        mounted = _mount_at(pod, int(stars[2]), str(stars[-1]))
        return [*mounted, *others.around(pod.context, index), *ranks]
    found = pod.context.job.containers[index]
    return [*others.container(pod.context, found, stars[1:]), *ranks]


def _privileges(pod: PodContext, stars: Path) -> list[Cause]:
    """Return the causes of what the program's container may do: little, unless its fabric allows more."""
    if stars[:2] == ("capabilities", "add"):
        return fabric.capability(pod.context, stars)
    if stars[0] in ("privileged", "allowPrivilegeEscalation"):
        tight = [] if stars[0] == "privileged" else constant("pod.yaml.j2")
        return [*tight, *asides(fabric.privilege(pod.context))] if tight else fabric.privilege(pod.context)
    return constant("pod.yaml.j2")


_PROBE = "= the launcher starts when the workers' SSH servers answer | ~job.framework"
POD = Table(
    ("metadata labels *", _label),
    ("metadata annotations *", _annotation),
    ("spec schedulerName", "cluster.gang"),
    ("spec restartPolicy", _restart),
    ("spec terminationGracePeriodSeconds", "job.gracePeriod"),
    ("spec nodeSelector *", _selector),
    ("spec tolerations * *", _toleration),
    ("spec affinity podAffinity **", _near),
    ("spec affinity podAntiAffinity **", lambda pod, stars: apart(pod.context, stars)),
    ("spec topologySpreadConstraints **", lambda pod, stars: spread(pod.context, stars)),
    ("spec hostNetwork", "fabric.hostNetwork"),
    ("spec dnsPolicy", "fabric.hostNetwork"),
    ("spec initContainers * **", _beside),
    ("spec containers 0 securityContext **", _privileges),
    ("spec containers 0 image", _image),
    ("spec containers 0 command *", _command),
    ("spec containers 0 args *", _argument),
    ("spec containers 0 ports **", _PROBE),
    ("spec containers 0 startupProbe **", _PROBE),
    ("spec containers 0 readinessProbe **", _PROBE),
    ("spec containers 0 resources * *", _amount),
    ("spec containers 0 volumeMounts * *", _mount),
    ("spec volumes 0 emptyDir sizeLimit", _shm),
    ("spec volumes * **", _volume),
)


def spread(context: TraceContext, stars: Path) -> list[Cause]:
    """Return the causes of how the run's workers are spread over nodes."""
    asked = context.spec("placement", "spread")
    if stars and stars[-1] == "jobset.sigs.k8s.io/jobset-name":
        return [*context.run_name(), asked.aside()]
    return [own(f"{asked.because}: how pods are spread over nodes"), asked.aside()]


def near(context: TraceContext, role: str, stars: Path) -> list[Cause]:
    """Return the causes of a preferred neighbour: first the run's own pods (spread: pack), then others."""
    index = int(stars[1]) - (context.job.spread == "pack" and role == "worker")
    if index < 0:
        return spread(context, stars)
    asked = context.spec("placement", "near").aside()
    ranks = context.spec("launcher", "runsRanks").aside()
    levels_of = context.cluster("topology").aside()  # each job has a term per level
    found = context.job.near[index] if index < len(context.job.near) else None
    if found is not None and stars[-1] == "gangplan.dev/job":
        written = list(context.value("spec", "placement", "near") or ())
        return [context.spec("placement", "near", written.index(found.job)), ranks, levels_of]
    if found is not None and stars[-1] == "topologyKey":
        levels = context.value("cluster", "topology") or ()
        label = [
            context.cluster("topology", n, "label")
            for n, one in enumerate(levels)
            if one.get("label") == found.key
        ]
        return [*label, own("as close as the cluster can tell"), asked, ranks, levels_of]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked, ranks, levels_of]
    return [own("the closer, the better"), asked, ranks, levels_of]


def apart(context: TraceContext, stars: Path) -> list[Cause]:
    """Return the causes of the jobs that share no node with the workers."""
    asked = context.spec("placement", "apart")
    ranks = context.spec("launcher", "runsRanks").aside()
    if stars[-1] == "gangplan.dev/job":
        return [context.spec("placement", "apart", int(stars[1])), ranks]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked.aside(), ranks]
    return [own("pods of these jobs share no node"), asked.aside(), ranks]
