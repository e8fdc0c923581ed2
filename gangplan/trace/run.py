"""Causes of the fields of a run's objects (NetworkPolicies, TrainingRuntime, TrainJob, MPIJob)."""

from __future__ import annotations

from gangplan.findings import Location
from gangplan.model.backend import MPIJOB, RUNTIME, TRAINJOB
from gangplan.spec.files import path_of
from gangplan.trace import others
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import RunContext, constant
from gangplan.trace.files import at, own
from gangplan.trace.metadata import annotation, label, over
from gangplan.trace.network import rule
from gangplan.trace.pod import POD, PodContext
from gangplan.trace.table import Row, Table, stated

JOBS: Path = ("spec", "template", "spec", "replicatedJobs")


def _job_deadline(run: RunContext, stars: Path) -> list[Cause]:
    name = (at(run.body, (*JOBS, stars[0])) or {}).get("name")
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is not None:
        return others.step_deadline(run, step)
    later = own("a minute after the run's own deadline, where monitoring reads it")
    return [*run.chosen("timeout"), run.cluster("versions", "trainer").aside(), later]


def _waits(run: RunContext, stars: Path) -> list[Cause]:
    name = at(run.body, (*JOBS, stars[0], "dependsOn", 0, "name"))
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is None:
        return stated(_TOGETHER)(run, stars)
    return [own("steps come before the workers"), *asides([*others.named(run, step), run.spec("steps")])]


def _role(run: RunContext, stars: Path) -> list[Cause]:
    found = [one for one in run.job.others if one.name == (at(run.body, (*JOBS, stars[0])) or {}).get("name")]
    return [*(cause for one in found for cause in others.named(run, one)), *stated(_ENDS)(run, stars)]


def _count(run: RunContext, stars: Path) -> list[Cause]:
    name = (at(run.body, (*JOBS, stars[0])) or {}).get("name")
    role = next((one for one in run.job.others if one.name == name), None)
    return others.count(run, role) if role else [own("one pod each")]


def _limit(run: RunContext, stars: Path) -> list[Cause]:
    if run.job.debug is None:
        return [own("a failed pod is a failed run"), run.spec("debug").aside()]
    return [own("each pod may fail once and stays"), run.spec("debug").aside(), *asides(_count(run, stars))]


def _pod(run: RunContext, stars: Path) -> list[Cause]:
    index, rest = stars[0], stars[1:]
    entry = at(run.body, (*JOBS, index))
    pod = PodContext(run, str((entry or {}).get("name")), at(entry, ("template", "spec", "template")))
    found = POD.find(rest)
    return list(found[0](pod, found[1])) if found else constant("pod.yaml.j2")


def _replica_pod(run: RunContext, stars: Path) -> list[Cause]:
    """Return the causes of a field of an MPIJob's pods, which are the same as those of a TrainJob."""
    name, rest = stars[0], stars[1:]
    template = at(run.body, ("spec", "mpiReplicaSpecs", name, "template"))
    found = POD.find(rest)
    role = {"Launcher": "launcher", "Worker": "node"}.get(str(name), str(name))
    return list(found[0](PodContext(run, role, template), found[1])) if found else constant("mpijob.yaml.j2")


def _replicas(run: RunContext, stars: Path) -> list[Cause]:
    if stars[0] == "Launcher":
        return [own("a run has one launcher")]
    return [*run.workers(), run.spec("launcher", "runsRanks").aside()]


def _selected(run: RunContext, stars: Path) -> list[Cause]:
    return [*label(run, stars), *asides(run.chosen("posture"))]


def _file(run: RunContext, stars: Path) -> list[Cause]:
    found = next((one for one in run.job.files if one.key == stars[0]), None)
    if found is None:
        return [own("a file beside the spec")]
    named = [
        name for name in run.value("spec", "files") or {} if path_of(run.job.source, name) == found.source
    ]
    because = f"the file {found.source}"
    asked = [run.spec("files", name, key=True).aside() for name in named]
    return [Cause(Location(found.source, 1, 1), because, found.source), *asked]


_TOGETHER = "= all pods of a run start together | ~cluster.gang"
_ENDS = (
    "= a run succeeds with its launcher, or with its workers where there is none"
    " | ~job.framework"
    " | ~spec.roles"
)
_FORGIVEN = (
    "= separates what the platform ends from what fails, and failures that no retry can fix"
    " | ~job.retries"
    " | ~cluster.versions.trainer"
    " | ~spec.exitCodes.retry"
    " | ~spec.exitCodes.fail"
    " | ~spec.elastic"
    " | ~spec.preflight"
)
_CREATION = (
    "= the launcher's script waits for the workers; under Kueue the operator would not | ~cluster.gang"
)
_TRIES = "= the launcher's Job makes its pods again, a worker comes back in place | ~job.retries"
_CLEANED = "= workers end with the launcher, for their SSH servers never end by themselves"
_POLICY = "= what Trainer does with the pods of this framework | ~job.framework | ~cluster.versions.trainer"
_FAMILY = "catalog.images.{image}.mpi.implementation | ~job.image | ~job.framework"
_MANAGED = "~cluster.multiKueue | = runs of this cluster are handed to worker clusters"


def _constant(template: str) -> Row:
    return "**", f"= gangplan writes it for every run (templates/{template})"


_ELASTIC = "= an elastic run is complete with its first worker | ~spec.elastic"
_META: tuple[Row, ...] = (
    ("metadata name", "job.run_name"),
    ("metadata labels *", label),
    ("metadata annotations *", annotation),
)
TABLES: dict[str, Table] = {
    TRAINJOB.kind: Table(
        *_META,
        ("spec managedBy", _MANAGED),
        ("spec suspend", over),
        ("spec runtimeRef name", "job.run_name"),
        ("spec activeDeadlineSeconds", "job.timeout | ~cluster.versions.trainer"),
        _constant("trainjob.yaml.j2"),
    ),
    MPIJOB.kind: Table(
        *_META,
        ("spec mpiImplementation", _FAMILY),
        ("spec launcherCreationPolicy", _CREATION),
        ("spec runPolicy cleanPodPolicy", _CLEANED),
        ("spec runPolicy managedBy", _MANAGED),
        ("spec mpiReplicaSpecs * replicas", _replicas),
        ("spec mpiReplicaSpecs * restartPolicy", _TRIES),
        ("spec mpiReplicaSpecs * template **", _replica_pod),
        _constant("mpijob.yaml.j2"),
    ),
    RUNTIME: Table(
        *_META,
        ("spec mlPolicy mpi *", _POLICY),
        ("spec mlPolicy torch **", _POLICY),
        ("spec podGroupPolicy **", _TOGETHER),
        ("spec template metadata labels *", label),
        ("spec template metadata annotations *", "cluster.teams.{team}.queue | ~cluster.gang"),
        ("spec template spec successPolicy targetReplicatedJobs *", _ENDS),
        ("spec template spec failurePolicy rules **", _FORGIVEN),
        ("spec template spec failurePolicy **", "= a run is restarted as a whole | ~job.retries"),
        ("spec template spec replicatedJobs * template spec podFailurePolicy **", _FORGIVEN),
        ("spec template spec replicatedJobs * template spec parallelism", _count),
        ("spec template spec replicatedJobs * template spec completions", _count),
        ("spec template spec replicatedJobs * template spec backoffLimit", _limit),
        ("spec template spec replicatedJobs * name", _role),
        (
            "spec template spec replicatedJobs * template spec successPolicy **",
            "= an elastic run is complete with its first worker | ~spec.elastic",
        ),
        ("spec template spec replicatedJobs * template metadata labels *", label),
        ("spec template spec replicatedJobs * template spec activeDeadlineSeconds", _job_deadline),
        ("spec template spec replicatedJobs * dependsOn **", _waits),
        ("spec template spec replicatedJobs * template spec template **", _pod),
        ("spec template spec replicatedJobs **", _ENDS),
        _constant("runtime.yaml.j2"),
    ),
    "ConfigMap": Table(
        ("metadata namespace", "job.namespace"),
        *_META,
        ("data *", _file),
        ("binaryData *", _file),
        _constant("runtime.yaml.j2"),
    ),
    "NetworkPolicy": Table(
        ("metadata name", "job.run_name | ~job.posture"),
        *_META[1:],
        ("spec podSelector matchLabels *", _selected),
        ("spec policyTypes **", "= what no policy opens is closed | ~job.posture"),
        ("spec * * **", rule),
        _constant("networkpolicy.yaml.j2"),
    ),
}
