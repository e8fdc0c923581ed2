"""Fields of a run's objects (NetworkPolicies, TrainingRuntime, TrainJob): where each comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import RunContext, constant
from gangplan.trace.files import at, own
from gangplan.trace.metadata import annotation, group_annotation, label, name, namespace
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


def _job_deadline(run: RunContext, stars: Path) -> list[Cause]:
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


def _framework(run: RunContext, stars: Path) -> list[Cause]:
    return [
        own("a run succeeds with its launcher, or with its workers where there is none"),
        *asides(run.framework()),
    ]


def _retries(run: RunContext, stars: Path) -> list[Cause]:
    return run.chosen("retries")


def _restart(run: RunContext, stars: Path) -> list[Cause]:
    return [own("a run is restarted as a whole"), *asides(run.chosen("retries"))]


def _forgiven(run: RunContext, stars: Path) -> list[Cause]:
    why = own("separates what the platform ends from what fails, and failures that no retry can fix")
    return [why, *asides([*run.chosen("retries"), run.cluster("versions", "trainer")])]


def _pod(run: RunContext, stars: Path) -> list[Cause]:
    index, rest = stars[0], stars[1:]
    entry = at(run.body, (*JOBS, index))
    pod = PodContext(run, str((entry or {}).get("name")), at(entry, ("template", "spec", "template")))
    found = POD.find(rest)
    return list(found[0](pod, found[1])) if found else constant("pod.yaml.j2")


def _named(run: RunContext, stars: Path) -> list[Cause]:
    return run.run_name()


def _policy_name(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.run_name(), *asides(run.chosen("posture"))]


def _selected(run: RunContext, stars: Path) -> list[Cause]:
    return [*label(run, stars), *asides(run.chosen("posture"))]


def _of_policy(run: RunContext, stars: Path) -> list[Cause]:
    return [own("what no policy opens is closed"), *asides(run.chosen("posture"))]


def _object(run: RunContext, stars: Path) -> list[Cause]:
    return constant(
        {"TrainJob": "trainjob.yaml.j2", "NetworkPolicy": "networkpolicy.yaml.j2"}.get(
            run.body["kind"], "runtime.yaml.j2"
        )
    )


_META = (
    ("metadata name", name),
    ("metadata namespace", namespace),
    ("metadata labels *", label),
    ("metadata annotations *", annotation),
)
TABLES: dict[str, Table] = {
    "TrainJob": Table(
        *_META,
        ("spec managedBy", _managed_by),
        ("spec runtimeRef name", _named),
        ("spec activeDeadlineSeconds", _deadline),
        ("spec trainer numNodes", _workers),
        ("spec trainer numProcPerNode", _slots),
        ("**", _object),
    ),
    "TrainingRuntime": Table(
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
        ("spec template spec replicatedJobs * template metadata labels *", label),
        ("spec template spec replicatedJobs * template spec activeDeadlineSeconds", _job_deadline),
        ("spec template spec replicatedJobs * dependsOn **", _gang),
        ("spec template spec replicatedJobs * template spec template **", _pod),
        ("spec template spec replicatedJobs **", _framework),
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
