"""What a trace of a run works on: the unit and the files that it was resolved from."""

from __future__ import annotations

from typing import Any

from gangplan.model.job import Job
from gangplan.plan import Unit
from gangplan.records import dataclass
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.files import Files, own

# Where a resolved value is written in a spec, when not at the top under its own name (resolve/).
IN_SPEC: dict[str, Path] = {
    "posture": ("network", "posture"),
    "egress": ("network", "egress"),
    "gpuModel": ("gpu", "model"),
    "nodePool": ("placement", "nodePool"),
    "rdma": ("network", "rdma"),
}
# What decides which node pool is the first where a worker fits (resolve/placement.py,
# resolve/misfit.py).
FIT: tuple[Path, ...] = (
    *(("gpu", "model"), ("gpu", "mig"), ("placement", "capacity")),
    *(("disk",), ("scratch",), ("hugePages",), ("devices",), ("placement", "nodePool")),
)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A unit and its files."""

    unit: Unit
    files: Files

    @property
    def job(self) -> Job:
        """The unit's job."""
        return self.unit.job

    def spec(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """A field of the spec."""
        return self.files.cause("spec", *path, because=because, key=key)

    def team(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """A field of the team's file."""
        return self.files.cause("team", *path, because=because, key=key)

    def cluster(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """A field of the cluster's file."""
        return self.files.cause("cluster", *path, because=because, key=key)

    def image(self, *path: str | int, because: str = "", name: str = "") -> Cause:
        """A field of an image's entry in the catalog; of the job's where no other is named."""
        return self.files.cause("catalog", "images", name or self.job.image.name, *path, because=because)

    def threads(self) -> list[Cause]:
        """The cores of a rank; where one field decides both numbers, their quotient may stay as it is."""
        above, below = self.chosen("cpu"), self.slots()
        both = {one.field for one in above if one.is_direct} & {one.field for one in below if one.is_direct}
        return [one.aside() if one.field in both else one for one in (*above, *below)]

    def word(self, word: str) -> Any:
        """What a word of a table stands for."""
        if word == "client":
            return str(self.value("cluster", "schedules", "client"))
        job = self.job
        words = {"team": job.team, "pool": job.worker_pool.name, "image": job.image.name}
        return {**words, "cluster": job.platform.cluster, "source": job.source}[word]

    def chosen(self, name: str) -> list[Cause]:
        """The value of a field by the chain spec, profile, team, cluster, built-in (resolve/context.py)."""
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
            return [found, *asides(nearer)]
        words = f"{name} is gangplan's default: neither spec, profile, team nor cluster says otherwise"
        others = [self.spec("profile", because="a profile would set it"), *self._defaults(name)]
        return [self.spec(*place, because=words), *asides(others)]

    def _defaults(self, name: str) -> list[Cause]:
        says = f"a default for {name} could be here"
        return [self.files.cause(role, "defaults", name, because=says) for role in ("team", "cluster")]

    def workers(self) -> list[Cause]:
        """The number of workers; for an elastic run the most that it may have."""
        if self.files.has("spec", "elastic"):
            return [self.spec("elastic", "max"), self.spec("workers").aside()]
        return self.chosen("workers")

    def slots(self) -> list[Cause]:
        """Ranks per worker: stated, else one per GPU."""
        if self.files.has("spec", "slots"):
            return [self.spec("slots")]
        return [*self.chosen("gpus"), self.spec("slots", because="slots is not in the spec").aside()]

    def ranks(self) -> list[Cause]:
        """Workers times slots."""
        return [*self.workers(), *self.slots()]

    def framework(self) -> list[Cause]:
        """How a plain command is started: by the spec, else as the image's entry says."""
        by_image = [self.image("framework"), *self.chosen("image")]
        if self.files.has("spec", "framework"):
            return [self.spec("framework"), *asides(by_image)]
        return [*by_image, self.spec("framework", because="framework is not in the spec").aside()]

    def mpi(self) -> list[Cause]:
        """Which MPI the image holds."""
        return [
            self.image("mpi", "implementation"),
            self.image("mpi", "version"),
            *asides(self.chosen("image")),
        ]

    def of_image(self, *path: str) -> list[Cause]:
        """A fact of the image, and the choice of the image."""
        return [self.image(*path), *asides(self.chosen("image"))]

    def named(self) -> list[Cause]:
        """The job's name: stated, else that of its file."""
        if self.files.has("spec", "name"):
            return [self.spec("name")]
        return [self.spec("name", because=f"the job is named after its file {self.job.source}")]

    def run_name(self) -> list[Cause]:
        """A run's name: the job's, and a hash of everything that must not change while it runs."""
        hashed = "the last eight letters are a hash of all that must not change while the run runs"
        return [*self.named(), self.spec("run", because="another number is another run").aside(), own(hashed)]

    def namespace(self) -> list[Cause]:
        """The team's namespace."""
        return namespace_causes(self.files, self.job.team)

    def team_name(self) -> list[Cause]:
        """The team: the folder that the spec stands in."""
        words = f"the spec is in specs/{self.job.team}/"
        return [self.spec("team", because=words)]

    def queue(self) -> list[Cause]:
        """The LocalQueue that the spec names, else the team's own (or Volcano's queue); a sweep's."""
        if self.job.trial is not None:
            words = "trials wait in the queue of their sweep"
            return [self.spec("maxConcurrent", because=words), self.gang().aside()]
        chosen = self.spec("queue")
        if chosen.is_written:
            return [chosen, self.cluster("teams", self.job.team, "localQueues").aside(), self.gang().aside()]
        return [chosen.aside(), self.cluster("teams", self.job.team, "queue"), self.gang().aside()]

    def identity(self, *field: str) -> list[Cause]:
        """Whom pods are in the cluster's cloud: the cluster's file goes first."""
        provider = self.job.identity.provider if self.job.identity else ""
        here = self.cluster("teams", self.job.team, "identity", provider, *field)
        own, answers = (
            self.files.cause("team", "identity", provider, *field),
            self.cluster("workloadIdentity", "provider").aside(),
        )
        account = self.spec("serviceAccount").aside()  # another than gangplan's has no identity
        return (
            [here, own.aside(), answers, account]
            if here.is_written
            else [own, here.aside(), answers, account]
        )

    def account(self, is_token: bool) -> list[Cause]:
        """The service account of pods; whether they mount its token is the platform's to say."""
        named, listed = self.spec("serviceAccount"), ("teams", self.job.team, "serviceAccounts")
        if not named.is_written:
            return [own("pods use the team's account training, without a token"), named.aside()]
        token = self.cluster(*listed, self.job.service_account, "token")
        return [named, token] if is_token else [named, token.aside()]

    def gang(self) -> Cause:
        """What starts the pods of a run together."""
        return self.cluster("gang")

    def pool(self, name: str) -> list[Cause]:
        """Why pods go to a pool, as causes that do not show."""
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
        return asides(causes)

    def scratch(self, field: str) -> tuple[str, ...]:
        """Where a field of scratch stands: a size alone is the whole field."""
        is_block = isinstance(self.value("spec", "scratch"), dict)
        return ("scratch", field) if is_block or field != "size" else ("scratch",)

    def value(self, role: str, *path: str | int) -> Any:
        """What a file says."""
        return self.files.value(role, *path)


@dataclass(frozen=True, slots=True)
class RunContext(TraceContext):
    """A unit, its files, and one of its objects as generated."""

    body: Any


def namespace_causes(files: Files, team: str) -> list[Cause]:
    """The namespace of a team: given by the cluster's file, else chosen by its own, else the team's name."""
    given = files.cause("cluster", "teams", team, "namespace", because="the platform gives the namespace")
    if given.is_written:
        return [given]
    words = "" if files.has("team", "namespace") else f"the namespace is named after team {team}"
    return [files.cause("team", "namespace", because=words), given.aside()]


def constant(template: str, what: str = "every run") -> list[Cause]:
    """What a template says, whatever the files say."""
    return [own(f"gangplan writes it for {what} (templates/{template})")]
