"""Fields of a run's pods: where each comes from."""

from __future__ import annotations

from typing import Any

from gangplan.model.job import Mount, TargetPool
from gangplan.trace import rails
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext, constant
from gangplan.trace.files import at, own
from gangplan.trace.launch import S3, argument, program, variable
from gangplan.trace.metadata import label, pod_annotation
from gangplan.trace.table import Table


class PodContext:
    """A pod of a run: the run's context, the role, and the pod's own body."""

    def __init__(self, context: TraceContext, name: str, body: Any) -> None:
        """Take the name of the replicated job for the role."""
        self.context = context
        self.role = "launcher" if name == "launcher" else "worker"
        self.body = body

    @property
    def pool(self) -> TargetPool:
        """The node pool of this role."""
        job = self.context.job
        return job.launcher_pool if self.role == "launcher" else job.worker_pool

    def at(self, *path: str | int) -> Any:
        """What stands in the pod's spec."""
        return at(self.body, ("spec", *path))


def _label(pod: PodContext, stars: Path) -> list[Cause]:
    return label(pod.context, stars)


def _annotation(pod: PodContext, stars: Path) -> list[Cause]:
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    return [*pod_annotation(pod.context, stars), *ranks]


def _scheduler(pod: PodContext, stars: Path) -> list[Cause]:
    return [pod.context.gang()]


def _priority(pod: PodContext, stars: Path) -> list[Cause]:
    return [*pod.context.chosen("priority"), pod.context.gang().aside()]


def _user(pod: PodContext, stars: Path) -> list[Cause]:
    return pod.context.of_image("user", "uid")


def _group(pod: PodContext, stars: Path) -> list[Cause]:
    return pod.context.of_image("user", "gid")


def _selector(pod: PodContext, stars: Path) -> list[Cause]:
    pool = pod.pool.name
    if stars[0] == "kubernetes.io/os":
        return [own("every node that gangplan uses runs Linux")]
    return [pod.context.cluster("nodePools", pool, "labels", *stars), *_pool(pod)]


def _toleration(pod: PodContext, stars: Path) -> list[Cause]:
    index, field = stars[0], str(stars[-1])
    field = "value" if field == "operator" else field
    taint = pod.context.cluster("nodePools", pod.pool.name, "taints", index, field)
    return [taint.aside() if stars[-1] == "operator" else taint, *_pool(pod)]


def _pool(pod: PodContext) -> list[Cause]:
    """Why pods of this role go to their pool."""
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    return [*pod.context.pool(pod.pool.name), *ranks]


def _spread(pod: PodContext, stars: Path) -> list[Cause]:
    spread = pod.context.spec("placement", "spread")
    if stars and stars[-1] == "jobset.sigs.k8s.io/jobset-name":
        return [*pod.context.run_name(), spread.aside()]
    return [own(f"{spread.because}: how pods are spread over nodes"), spread.aside()]


def _image(pod: PodContext, stars: Path) -> list[Cause]:
    context = pod.context
    cluster, name = context.job.platform.cluster, context.job.image.name
    entry = [context.image(field) for field in ("repository", "digest")]
    here = [context.image("clusters", cluster, field) for field in ("repository", "digest")]
    stated = [one for one in here if one.is_written]
    mirrors = context.value("cluster", "mirrors") or []
    repository = context.value("catalog", "images", name, "repository") or ""
    fitting = [
        (len(one["source"]), number)
        for number, one in enumerate(mirrors)
        if repository == one["source"] or repository.startswith(f"{one['source']}/")
    ]
    used = max(fitting)[1] if fitting else None
    others = [
        cause if number == used else cause.aside()
        for number in range(len(mirrors))
        for cause in (
            context.cluster("mirrors", number, "mirror"),
            context.cluster("mirrors", number, "source").aside(),
        )
    ]
    shadowed = {one.field[-1] for one in stated}
    entry = [one.aside() if one.field[-1] in shadowed else one for one in entry]
    if "repository" in shadowed:
        others = asides(others)
    return [*context.chosen("image"), *stated, *entry, *others, *asides(here)]


def _command(pod: PodContext, stars: Path) -> list[Cause]:
    return program(pod.context, pod.role, int(stars[0]))


def _argument(pod: PodContext, stars: Path) -> list[Cause]:
    return argument(pod.context, pod.role, int(stars[0]))


def _variable(pod: PodContext, stars: Path) -> list[Cause]:
    name = pod.at("containers", 0, "env", stars[0], "name")
    causes = variable(pod.context, str(name), pod.role)
    is_fixed = stars[1:] == ("name",) or (stars[-1] == "key" and name in S3)
    return asides(causes) if is_fixed else causes


def _port(pod: PodContext, stars: Path) -> list[Cause]:
    return [*pod.context.of_image("ssh", "port"), *asides(pod.context.framework())]


def _amount(pod: PodContext, stars: Path) -> list[Cause]:
    """CPU, memory or devices of a role (resolve/job.py, resolve/placement.py)."""
    context, resource = pod.context, str(stars[-1])
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
    return [*context.chosen("gpus"), device, *context.pool(pool), *around]


def _shm(pod: PodContext, stars: Path) -> list[Cause]:
    half = own("half of the memory: NCCL and data loaders need more than the 64 MiB that containers get")
    return [*_amount(pod, ("memory",)), half]


def _mount(pod: PodContext, stars: Path) -> list[Cause]:
    index, field = int(stars[0]), str(stars[-1])
    if index == 0:
        return constant("pod.yaml.j2")
    return mounted(pod.context, pod.context.job.mounts_of(pod.role)[index - 1], field)


def _volume(pod: PodContext, stars: Path) -> list[Cause]:
    name = pod.at("volumes", stars[0], "name")
    mounts = [mount for mount in pod.context.job.mounts if mount.volume == name]
    if not mounts:
        return constant("pod.yaml.j2")
    field = {"claimName": "claim", "secretName": "secret"}.get(str(stars[-1]), str(stars[-1]))
    return [cause for mount in mounts for cause in mounted(pod.context, mount, field)]


def mounted(context: TraceContext, mount: Mount, field: str) -> list[Cause]:
    """What decides about a mount: the entry of `data` or `secrets.files`, or the checkpoint; the claim."""
    if mount.secret:
        return _secret(context, mount, field)
    for name, target in (context.value("spec", "data") or {}).items():
        claim = context.value("team", "connections", name, "claim") or name
        if target == mount.path and _is_claim(context, claim, mount):
            asked = context.spec("data", name, because=f"data in the spec: {name}")
            return _claim(context, mount, field, claim, asked)
    to = context.value("spec", "checkpoint", "to")
    if field == "mountPath":
        return [context.spec("checkpoint", "path"), context.spec("checkpoint", "to").aside()]
    asked = context.spec("checkpoint", "to")
    return _claim(context, mount, field, str(to), asked)


def _is_claim(context: TraceContext, claim: str, mount: Mount) -> bool:
    return (context.value("team", "claims", claim, "claimName") or claim) == mount.claim


def _claim(context: TraceContext, mount: Mount, field: str, claim: str, asked: Cause) -> list[Cause]:
    around = [asked.aside()]
    if asked.field[:1] == ("data",) and (
        via := context.value("team", "connections", asked.field[-1], "claim")
    ):
        around.append(context.team("connections", str(asked.field[-1]), "claim").aside())
        assert via == claim
    if field == "mountPath":
        return [asked, *around[1:]]
    if field == "readOnly":
        facts = [context.team("claims", claim, part) for part in ("readOnly", "accessModes")]
        return [*asides(facts), own("a claim that is read-only is mounted so"), *around]
    if field == "claim":
        return [context.team("claims", claim, "claimName"), *around]
    return [asked.aside(), own("a volume is named after its claim"), *around[1:]]


def _secret(context: TraceContext, mount: Mount, field: str) -> list[Cause]:
    if field == "mountPath":
        return [context.spec("secrets", "files", mount.secret)]
    asked = context.spec("secrets", "files", mount.secret, because=f"secret {mount.secret}", key=True)
    return [asked.aside(), own("secrets are mounted for reading, by their declared names")]


def _probe(pod: PodContext, stars: Path) -> list[Cause]:
    return [own("the launcher starts when the workers' SSH servers answer"), *asides(pod.context.framework())]


def _grace(pod: PodContext, stars: Path) -> list[Cause]:
    return pod.context.chosen("gracePeriod")


def _rest(pod: PodContext, stars: Path) -> list[Cause]:
    return constant("pod.yaml.j2")


POD = Table(
    ("metadata labels *", _label),
    ("metadata annotations *", _annotation),
    ("spec schedulerName", _scheduler),
    ("spec priorityClassName", _priority),
    ("spec terminationGracePeriodSeconds", _grace),
    ("spec securityContext runAsUser", _user),
    ("spec securityContext runAsGroup", _group),
    ("spec securityContext fsGroup", _group),
    ("spec nodeSelector *", _selector),
    ("spec tolerations * *", _toleration),
    ("spec affinity **", _spread),
    ("spec topologySpreadConstraints **", _spread),
    ("spec containers 0 image", _image),
    ("spec containers 0 command *", _command),
    ("spec containers 0 args *", _argument),
    ("spec containers 0 env * **", _variable),
    ("spec containers 0 ports * containerPort", _port),
    ("spec containers 0 ports **", _probe),
    ("spec containers 0 startupProbe tcpSocket port", _port),
    ("spec containers 0 startupProbe **", _probe),
    ("spec containers 0 readinessProbe tcpSocket port", _port),
    ("spec containers 0 readinessProbe **", _probe),
    ("spec containers 0 resources * *", _amount),
    ("spec containers 0 volumeMounts * *", _mount),
    ("spec volumes 0 emptyDir sizeLimit", _shm),
    ("spec volumes * **", _volume),
)
