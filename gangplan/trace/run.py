"""Fields of a run's objects (NetworkPolicies, TrainingRuntime, TrainJob, MPIJob): where each comes from."""

from __future__ import annotations

from gangplan.findings import Location
from gangplan.model.backend import MPIJOB, RUNTIME, TRAINJOB
from gangplan.spec.files import path_of
from gangplan.trace import others
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import RunContext, constant
from gangplan.trace.files import at, own
from gangplan.trace.metadata import annotation, group_annotation, label, name, namespace, over
from gangplan.trace.network import rule
from gangplan.trace.pod import POD, PodContext
from gangplan.trace.table import Table

JOBS: Path = ("spec", "template", "spec", "replicatedJobs")


def _slots(run: RunContext, stars: Path) -> list[Cause]:
    return run.slots()


def _workers(run: RunContext, stars: Path) -> list[Cause]:
    return run.workers()


def _deadline(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.chosen("timeout"), run.cluster("versions", "trainer").aside()]


def _timeout(run: RunContext, stars: Path) -> list[Cause]:
    return run.chosen("timeout")


def _job_deadline(run: RunContext, stars: Path) -> list[Cause]:
    name = (at(run.body, (*JOBS, stars[0])) or {}).get("name")
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is not None:
        return others.step_deadline(run, step)
    later = own("a minute after the run's own deadline, where monitoring reads it")
    return [*_deadline(run, stars), later]


def _managed_by(run: RunContext, stars: Path) -> list[Cause]:
    return [run.cluster("multiKueue").aside(), own("runs of this cluster are handed to worker clusters")]


def _keys(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.of_image("ssh", "keys"), *asides(run.framework())]


def _runs_ranks(run: RunContext, stars: Path) -> list[Cause]:
    return [run.spec("launcher", "runsRanks"), *asides(run.framework())]


def _policy(run: RunContext, stars: Path) -> list[Cause]:
    around = [*run.framework(), run.cluster("versions", "trainer")]
    return [own("what Trainer does with the pods of this framework"), *asides(around)]


def _gang(run: RunContext, stars: Path) -> list[Cause]:
    return [own("all pods of a run start together"), run.gang().aside()]


def _waits(run: RunContext, stars: Path) -> list[Cause]:
    name = at(run.body, (*JOBS, stars[0], "dependsOn", 0, "name"))
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is None:
        return _gang(run, stars)
    return [own("steps come before the workers"), *asides([*others.named(run, step), run.spec("steps")])]


def _framework(run: RunContext, stars: Path) -> list[Cause]:
    return [
        own("a run succeeds with its launcher, or with its workers where there is none"),
        *asides([*run.framework(), run.spec("roles")]),
    ]


def _role(run: RunContext, stars: Path) -> list[Cause]:
    found = [one for one in run.job.others if one.name == (at(run.body, (*JOBS, stars[0])) or {}).get("name")]
    return [*(cause for one in found for cause in others.named(run, one)), *_framework(run, stars)]


def _retries(run: RunContext, stars: Path) -> list[Cause]:
    return run.chosen("retries")


def _restart(run: RunContext, stars: Path) -> list[Cause]:
    return [own("a run is restarted as a whole"), *asides(run.chosen("retries"))]


def _forgiven(run: RunContext, stars: Path) -> list[Cause]:
    why = own("separates what the platform ends from what fails, and failures that no retry can fix")
    codes = [run.spec("exitCodes", "retry"), run.spec("exitCodes", "fail"), run.spec("elastic")]
    codes.append(run.spec("preflight"))
    return [why, *asides([*run.chosen("retries"), run.cluster("versions", "trainer"), *codes])]


def _count(run: RunContext, stars: Path) -> list[Cause]:
    name = (at(run.body, (*JOBS, stars[0])) or {}).get("name")
    role = next((one for one in run.job.others if one.name == name), None)
    return others.count(run, role) if role else [own("one pod each")]


def _limit(run: RunContext, stars: Path) -> list[Cause]:
    if run.job.debug is None:
        return [own("a failed pod is a failed run"), run.spec("debug").aside()]
    return [own("each pod may fail once and stays"), run.spec("debug").aside(), *asides(_count(run, stars))]


def _elastic(run: RunContext, stars: Path) -> list[Cause]:
    return [own("an elastic run is complete with its first worker"), run.spec("elastic").aside()]


def _pod(run: RunContext, stars: Path) -> list[Cause]:
    index, rest = stars[0], stars[1:]
    entry = at(run.body, (*JOBS, index))
    pod = PodContext(run, str((entry or {}).get("name")), at(entry, ("template", "spec", "template")))
    found = POD.find(rest)
    return list(found[0](pod, found[1])) if found else constant("pod.yaml.j2")


def _replica_pod(run: RunContext, stars: Path) -> list[Cause]:
    """A field of the pods of an MPIJob, which are the same as those of a TrainJob."""
    name, rest = stars[0], stars[1:]
    template = at(run.body, ("spec", "mpiReplicaSpecs", name, "template"))
    found = POD.find(rest)
    role = {"Launcher": "launcher", "Worker": "node"}.get(str(name), str(name))
    return list(found[0](PodContext(run, role, template), found[1])) if found else constant("mpijob.yaml.j2")


def _replicas(run: RunContext, stars: Path) -> list[Cause]:
    if stars[0] == "Launcher":
        return [own("a run has one launcher")]
    return [*run.workers(), run.spec("launcher", "runsRanks").aside()]


def _tries(run: RunContext, stars: Path) -> list[Cause]:
    return [
        own("the launcher's Job makes its pods again, a worker comes back in place"),
        *asides(_retries(run, stars)),
    ]


def _creation(run: RunContext, stars: Path) -> list[Cause]:
    why = own("the launcher's script waits for the workers; under Kueue the operator would not")
    return [why, run.gang().aside()]


def _cleaned(run: RunContext, stars: Path) -> list[Cause]:
    return [own("workers end with the launcher, for their SSH servers never end by themselves")]


def _family(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.of_image("mpi", "implementation"), *asides(run.framework())]


def _named(run: RunContext, stars: Path) -> list[Cause]:
    return run.run_name()


def _policy_name(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.run_name(), *asides(run.chosen("posture"))]


def _selected(run: RunContext, stars: Path) -> list[Cause]:
    return [*label(run, stars), *asides(run.chosen("posture"))]


def _of_policy(run: RunContext, stars: Path) -> list[Cause]:
    return [own("what no policy opens is closed"), *asides(run.chosen("posture"))]


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


def _object(run: RunContext, stars: Path) -> list[Cause]:
    return constant(
        {
            TRAINJOB.kind: "trainjob.yaml.j2",
            MPIJOB.kind: "mpijob.yaml.j2",
            "NetworkPolicy": "networkpolicy.yaml.j2",
        }.get(run.body["kind"], "runtime.yaml.j2")
    )


_META = (
    ("metadata name", name),
    ("metadata namespace", namespace),
    ("metadata labels *", label),
    ("metadata annotations *", annotation),
)
TABLES: dict[str, Table] = {
    TRAINJOB.kind: Table(
        *_META,
        ("spec managedBy", _managed_by),
        ("spec suspend", over),
        ("spec runtimeRef name", _named),
        ("spec activeDeadlineSeconds", _deadline),
        ("spec trainer numNodes", _workers),
        ("spec trainer numProcPerNode", _slots),
        ("**", _object),
    ),
    MPIJOB.kind: Table(
        *_META,
        ("spec mpiImplementation", _family),
        ("spec slotsPerWorker", _slots),
        ("spec sshAuthMountPath", _keys),
        ("spec runLauncherAsWorker", _runs_ranks),
        ("spec launcherCreationPolicy", _creation),
        ("spec runPolicy activeDeadlineSeconds", _timeout),
        ("spec runPolicy backoffLimit", _retries),
        ("spec runPolicy cleanPodPolicy", _cleaned),
        ("spec runPolicy managedBy", _managed_by),
        ("spec runPolicy suspend", over),
        ("spec mpiReplicaSpecs * replicas", _replicas),
        ("spec mpiReplicaSpecs * restartPolicy", _tries),
        ("spec mpiReplicaSpecs * template **", _replica_pod),
        ("**", _object),
    ),
    RUNTIME: Table(
        *_META,
        ("spec mlPolicy mpi numProcPerNode", _slots),
        ("spec mlPolicy mpi sshAuthMountPath", _keys),
        ("spec mlPolicy mpi runLauncherAsNode", _runs_ranks),
        ("spec mlPolicy mpi *", _policy),
        ("spec mlPolicy torch **", _policy),
        ("spec podGroupPolicy **", _gang),
        ("spec template metadata labels *", label),
        ("spec template metadata annotations *", group_annotation),
        ("spec template spec successPolicy targetReplicatedJobs *", _framework),
        ("spec template spec failurePolicy maxRestarts", _retries),
        ("spec template spec failurePolicy rules **", _forgiven),
        ("spec template spec failurePolicy **", _restart),
        ("spec template spec replicatedJobs * template spec podFailurePolicy **", _forgiven),
        ("spec template spec replicatedJobs * template spec parallelism", _count),
        ("spec template spec replicatedJobs * template spec completions", _count),
        ("spec template spec replicatedJobs * template spec backoffLimit", _limit),
        ("spec template spec replicatedJobs * name", _role),
        ("spec template spec replicatedJobs * template spec successPolicy **", _elastic),
        ("spec template spec replicatedJobs * template metadata labels *", label),
        ("spec template spec replicatedJobs * template spec activeDeadlineSeconds", _job_deadline),
        ("spec template spec replicatedJobs * dependsOn **", _waits),
        ("spec template spec replicatedJobs * template spec template **", _pod),
        ("spec template spec replicatedJobs **", _framework),
        ("**", _object),
    ),
    "ConfigMap": Table(
        *_META,
        ("data *", _file),
        ("binaryData *", _file),
        ("**", _object),
    ),
    "NetworkPolicy": Table(
        ("metadata name", _policy_name),
        *_META[1:],
        ("spec podSelector matchLabels *", _selected),
        ("spec policyTypes **", _of_policy),
        ("spec * * **", rule),
        ("**", _object),
    ),
}
