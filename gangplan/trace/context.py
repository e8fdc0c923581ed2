"""The context in which a run is traced: the planned run and the files that it was resolved from."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.job import Job
from gangplan.plan import RunPlan
from gangplan.records import dataclass
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import TracedFiles, build_own_cause

# The spec fields of resolved values that are not at the top level under their own name (resolve/).
IN_SPEC: dict[str, FieldPath] = {
    "posture": ("network", "posture"),
    "egress": ("network", "egress"),
    "gpuModel": ("gpu", "model"),
    "nodePool": ("placement", "nodePool"),
    "rdma": ("network", "rdma"),
}
# Fields that decide which node pool is the first that fits a worker (resolve/placement.py,
# resolve/misfit.py).
FIT: tuple[FieldPath, ...] = (
    *(("gpu", "model"), ("gpu", "mig"), ("placement", "capacity")),
    *(("disk",), ("scratch",), ("hugePages",), ("devices",), ("placement", "nodePool")),
)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A planned run and its files."""

    unit: RunPlan
    files: TracedFiles

    @property
    def job(self) -> Job:
        """The job of the run."""
        return self.unit.job

    def spec(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field of the spec as a cause."""
        return self.files.cause("spec", *path, because=because, key=key)

    def team(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field of the team's file as a cause."""
        return self.files.cause("team", *path, because=because, key=key)

    def cluster(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field of the cluster's file as a cause."""
        return self.files.cause("cluster", *path, because=because, key=key)

    def image(self, *path: str | int, because: str = "", name: str = "") -> Cause:
        """Return a field of an image's entry in the catalog as a cause; by default, of the job's image."""
        return self.files.cause("catalog", "images", name or self.job.image.name, *path, because=because)

    def threads(self) -> list[Cause]:
        """Return the causes of a rank's cores.

        If one field decides both CPU and slots, it is indirect, since their quotient may stay the same.
        """
        above, below = self.chosen("cpu"), self.slots()
        both = {one.field for one in above if one.is_direct} & {one.field for one in below if one.is_direct}
        return [one.aside() if one.field in both else one for one in (*above, *below)]

    def word(self, word: str) -> Any:
        """Return the value of a placeholder in a table."""
        if word == "client":
            return str(self.value("cluster", "schedules", "client"))
        job = self.job
        words = {"team": job.team, "pool": job.worker_pool.name, "image": job.image.name}
        return {**words, "cluster": job.platform.cluster, "source": job.source}[word]

    def chosen(self, name: str) -> list[Cause]:
        """Return the causes of a field chosen from spec, profile, team, cluster or built-in default
        (resolve/context.py)."""
        place = IN_SPEC.get(name, (name,))
        layer = self.job.origins[name].layer if name in self.job.origins else "built-in"
        says = f"{name} in the spec"
        if layer == "spec":
            return [self.spec(*place, because=says)]
        if layer.startswith("profile"):
            words = f"{name} comes with {layer}; the spec could say otherwise"
            return [self.spec("profile", because=words), self.spec(*place, because=says).aside()]
        if layer.startswith(("team ", "cluster ")):
            role, words = layer.split(" ")[0], f"default of {layer}: {name}"
            granted = ("teams", self.job.team, name)
            if name == "posture" and self.job.origins[name].where == self.cluster(*granted).where:
                return [self.cluster(*granted, because="the platform asks for it"), self.spec(*place).aside()]
            found = self.files.cause(role, "defaults", name, because=words)
            nearer = [self.spec(*place, because=f"{name} is not in the spec"), self.spec("profile")]
            return [found, *mark_indirect(nearer)]
        words = f"{name} is gangplan's default: neither spec, profile, team nor cluster says otherwise"
        others = [self.spec("profile", because="a profile would set it"), *self._defaults(name)]
        return [self.spec(*place, because=words), *mark_indirect(others)]

    def _defaults(self, name: str) -> list[Cause]:
        says = f"a default for {name} could be here"
        return [self.files.cause(role, "defaults", name, because=says) for role in ("team", "cluster")]

    def workers(self) -> list[Cause]:
        """Return the causes of the number of workers; for an elastic run, of its maximum."""
        if self.files.has("spec", "elastic"):
            return [self.spec("elastic", "max"), self.spec("workers").aside()]
        return self.chosen("workers")

    def slots(self) -> list[Cause]:
        """Return the causes of the ranks per worker: as stated, otherwise one per GPU."""
        if self.files.has("spec", "slots"):
            return [self.spec("slots")]
        return [*self.chosen("gpus"), self.spec("slots", because="slots is not in the spec").aside()]

    def ranks(self) -> list[Cause]:
        """Return the causes of workers times slots."""
        return [*self.workers(), *self.slots()]

    def framework(self) -> list[Cause]:
        """Return the causes of how a plain command is started: the spec, otherwise the image's entry."""
        by_image = [self.image("framework"), *self.chosen("image")]
        if self.files.has("spec", "framework"):
            return [self.spec("framework"), *mark_indirect(by_image)]
        return [*by_image, self.spec("framework", because="framework is not in the spec").aside()]

    def mpi(self) -> list[Cause]:
        """Return the causes of the image's MPI."""
        return [
            self.image("mpi", "implementation"),
            self.image("mpi", "version"),
            *mark_indirect(self.chosen("image")),
        ]

    def of_image(self, *path: str) -> list[Cause]:
        """Return the causes of a fact about the image, including the choice of the image."""
        return [self.image(*path), *mark_indirect(self.chosen("image"))]

    def named(self) -> list[Cause]:
        """Return the causes of the job's name: as stated, otherwise the name of its file."""
        if self.files.has("spec", "name"):
            return [self.spec("name")]
        return [self.spec("name", because=f"the job is named after its file {self.job.source}")]

    def run_name(self) -> list[Cause]:
        """Return the causes of a run's name: the job's, and a hash of everything that may not change."""
        hashed = "the last eight letters are a hash of all that must not change while the run runs"
        return [
            *self.named(),
            self.spec("run", because="another number is another run").aside(),
            build_own_cause(hashed),
        ]

    def namespace(self) -> list[Cause]:
        """Return the causes of the team's namespace."""
        return trace_namespace_causes(self.files, self.job.team)

    def team_name(self) -> list[Cause]:
        """Return the causes of the team: the folder that contains the spec."""
        words = f"the spec is in specs/{self.job.team}/"
        return [self.spec("team", because=words)]

    def queue(self) -> list[Cause]:
        """Return the causes of the queue: the LocalQueue that the spec names, otherwise the team's own (or
        Volcano's queue); for a trial, the sweep's."""
        if self.job.trial is not None:
            words = "trials wait in the queue of their sweep"
            return [self.spec("maxConcurrent", because=words), self.gang().aside()]
        chosen = self.spec("queue")
        if chosen.is_written:
            return [chosen, self.cluster("teams", self.job.team, "localQueues").aside(), self.gang().aside()]
        return [chosen.aside(), self.cluster("teams", self.job.team, "queue"), self.gang().aside()]

    def identity(self, *field: str) -> list[Cause]:
        """Return the causes of the identity of pods in the cluster's cloud; the cluster's file goes first."""
        provider = self.job.identity.provider if self.job.identity else ""
        here = self.cluster("teams", self.job.team, "identity", provider, *field)
        own, answers = (
            self.files.cause("team", "identity", provider, *field),
            self.cluster("workloadIdentity", "provider").aside(),
        )
        account = self.spec("serviceAccount").aside()  # an account other than gangplan's has no identity
        return (
            [here, own.aside(), answers, account]
            if here.is_written
            else [own, here.aside(), answers, account]
        )

    def account(self, is_token: bool) -> list[Cause]:
        """Return the causes of the pods' service account; the platform decides about its token."""
        named, listed = self.spec("serviceAccount"), ("teams", self.job.team, "serviceAccounts")
        if not named.is_written:
            return [build_own_cause("pods use the team's account training, without a token"), named.aside()]
        token = self.cluster(*listed, self.job.service_account, "token")
        return [named, token] if is_token else [named, token.aside()]

    def gang(self) -> Cause:
        """Return the setting that makes the pods of a run start together."""
        return self.cluster("gang")

    def pool(self, name: str) -> list[Cause]:
        """Return the reasons why pods go to a pool, as indirect causes."""
        role = "nodePool"
        origin = self.job.origins.get(role)
        causes = [self.cluster("nodePools", name, because=f"node pool {name}", key=True)]
        if origin and origin.layer == "spec" and name == self.job.worker_pool.name:
            causes.insert(0, self.spec("placement", "nodePool"))
        for field in ("gpus", "gpuModel", "cpu", "memory"):
            causes += self.chosen(field)
        causes += [self.spec(*path, because=f"{path[-1]} would choose among the pools") for path in FIT]
        causes.append(self.cluster("teams", self.job.team, "quota", because="pools that the team may use"))
        causes.append(self.cluster("nodePools", because="the first of these pools that fits", key=True))
        return mark_indirect(causes)

    def scratch(self, field: str) -> tuple[str, ...]:
        """Return the path of a field of scratch: if only a size is given, it is the whole field."""
        is_block = isinstance(self.value("spec", "scratch"), dict)
        return ("scratch", field) if is_block or field != "size" else ("scratch",)

    def value(self, role: str, *path: str | int) -> Any:
        """Return the value in a file."""
        return self.files.value(role, *path)


@dataclass(frozen=True, slots=True)
class RunContext(TraceContext):
    """A planned run, its files, and one of its objects as generated."""

    body: Any


def trace_namespace_causes(files: TracedFiles, team: str) -> list[Cause]:
    """Return the causes of a team's namespace: the cluster's file, its own file, or its name."""
    given = files.cause("cluster", "teams", team, "namespace", because="the platform gives the namespace")
    if given.is_written:
        return [given]
    words = "" if files.has("team", "namespace") else f"the namespace is named after team {team}"
    return [files.cause("team", "namespace", because=words), given.aside()]


def trace_template_causes(template: str, what: str = "every run") -> list[Cause]:
    """Return the cause of a value that a template always writes."""
    return [build_own_cause(f"gangplan writes it for {what} (templates/{template})")]
