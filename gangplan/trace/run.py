"""Causes of the fields of a run's objects (NetworkPolicies, TrainingRuntime, TrainJob, MPIJob)."""

from __future__ import annotations

from gangplan.findings import FieldPath, Location
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.spec.files import resolve_spec_file
from gangplan.trace import others, rails
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import RunContext, trace_template_causes
from gangplan.trace.files import build_own_cause, find_value_at
from gangplan.trace.metadata import trace_annotation_causes, trace_label_causes, trace_record_causes
from gangplan.trace.network import trace_policy_rule_causes
from gangplan.trace.pod import POD_TABLE, PodContext
from gangplan.trace.table import CauseRow, CauseTable, build_origin_rule

JOBS: FieldPath = ("spec", "template", "spec", "replicatedJobs")


def _trace_job_deadline_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    name = (find_value_at(run.body, (*JOBS, stars[0])) or {}).get("name")
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is not None:
        return others.trace_step_deadline_causes(run, step)
    later = build_own_cause("a minute after the run's own deadline, where monitoring reads it")
    return [*run.chosen("timeout"), run.cluster("versions", "trainer").aside(), later]


def _trace_job_dependency_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    name = find_value_at(run.body, (*JOBS, stars[0], "dependsOn", 0, "name"))
    step = next((one for one in run.job.steps if one.name == name), None)
    if step is None:
        return build_origin_rule(_TOGETHER)(run, stars)
    return [
        build_own_cause("steps come before the workers"),
        *mark_indirect([*others.trace_role_name_causes(run, step), run.spec("steps")]),
    ]


def _trace_job_name_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    found = [
        one
        for one in run.job.others
        if one.name == (find_value_at(run.body, (*JOBS, stars[0])) or {}).get("name")
    ]
    return [
        *(cause for one in found for cause in others.trace_role_name_causes(run, one)),
        *build_origin_rule(_ENDS)(run, stars),
    ]


def _trace_pod_count_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    name = (find_value_at(run.body, (*JOBS, stars[0])) or {}).get("name")
    role = next((one for one in run.job.others if one.name == name), None)
    return others.trace_role_count_causes(run, role) if role else [build_own_cause("one pod each")]


def _trace_backoff_limit_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    if run.job.debug is None:
        return [build_own_cause("a failed pod is a failed run"), run.spec("debug").aside()]
    return [
        build_own_cause("each pod may fail once and stays"),
        run.spec("debug").aside(),
        *mark_indirect(_trace_pod_count_causes(run, stars)),
    ]


def _trace_pod_template_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    index, rest = stars[0], stars[1:]
    entry = find_value_at(run.body, (*JOBS, index))
    pod = PodContext(
        run, str((entry or {}).get("name")), find_value_at(entry, ("template", "spec", "template"))
    )
    found = POD_TABLE.find(rest)
    return list(found[0](pod, found[1])) if found else trace_template_causes("pod.yaml.j2")


def _trace_mpi_pod_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a field of an MPIJob's pods, which are the same as those of a TrainJob."""
    name, rest = stars[0], stars[1:]
    template = find_value_at(run.body, ("spec", "mpiReplicaSpecs", name, "template"))
    found = POD_TABLE.find(rest)
    role = {"Launcher": "launcher", "Worker": "node"}.get(str(name), str(name))
    return (
        list(found[0](PodContext(run, role, template), found[1]))
        if found
        else trace_template_causes("mpijob.yaml.j2")
    )


def _trace_mpi_replica_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    if stars[0] == "Launcher":
        return [build_own_cause("a run has one launcher")]
    return [*run.workers(), run.spec("launcher", "runsRanks").aside()]


def _trace_pod_selector_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    return [*trace_label_causes(run, stars), *mark_indirect(run.chosen("posture"))]


def _trace_claim_template_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a field of a ResourceClaimTemplate, or of its name."""
    name, claims = str(run.body["metadata"]["name"]), run.job.resources.claims
    number = next((at for at, one in enumerate(claims) if name.endswith(f"-{one.name}")), len(claims))
    field = str(stars[-1]) if stars else ""
    return [*([] if field else run.run_name()), *rails.trace_device_claim_causes(run, number, field)]


def _trace_later_run_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a TrainJob that is a text in a ConfigMap until it is created."""
    shown = [*run.workers(), *run.slots(), *run.chosen("timeout"), *run.chosen("priority"), *run.queue()]
    return [build_own_cause("the run as it is created later"), *mark_indirect(shown)]


def _trace_run_file_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    found = next((one for one in run.job.files if one.key == stars[0]), None)
    if found is None:
        return [build_own_cause("a file next to the spec")]
    named = [
        name
        for name in run.value("spec", "files") or {}
        if resolve_spec_file(run.job.source, name) == found.source
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


def _build_constant_cause_row(template: str) -> CauseRow:
    return "**", f"= gangplan writes it for every run (templates/{template})"


_ELASTIC = "= an elastic run is complete with its first worker | ~spec.elastic"
_META: tuple[CauseRow, ...] = (
    ("metadata name", "job.run_name"),
    ("metadata labels *", trace_label_causes),
    ("metadata annotations *", trace_annotation_causes),
)
RUN_TABLES: dict[str, CauseTable] = {
    TRAINJOB.kind: CauseTable(
        *_META,
        ("spec managedBy", _MANAGED),
        ("spec suspend", trace_record_causes),
        ("spec runtimeRef name", "job.run_name"),
        ("spec activeDeadlineSeconds", "job.timeout | ~cluster.versions.trainer"),
        ("data *", _trace_later_run_causes),
        _build_constant_cause_row("trainjob.yaml.j2"),
    ),
    MPIJOB.kind: CauseTable(
        *_META,
        ("spec mpiImplementation", _FAMILY),
        ("spec launcherCreationPolicy", _CREATION),
        ("spec runPolicy cleanPodPolicy", _CLEANED),
        ("spec runPolicy managedBy", _MANAGED),
        ("spec mpiReplicaSpecs * replicas", _trace_mpi_replica_causes),
        ("spec mpiReplicaSpecs * restartPolicy", _TRIES),
        ("spec mpiReplicaSpecs * template **", _trace_mpi_pod_causes),
        _build_constant_cause_row("mpijob.yaml.j2"),
    ),
    RUNTIME_KIND: CauseTable(
        *_META,
        ("spec mlPolicy mpi *", _POLICY),
        ("spec mlPolicy torch **", _POLICY),
        ("spec podGroupPolicy **", _TOGETHER),
        ("spec template metadata labels *", trace_label_causes),
        ("spec template metadata annotations *", "cluster.teams.{team}.queue | ~cluster.gang"),
        ("spec template spec successPolicy targetReplicatedJobs *", _ENDS),
        ("spec template spec failurePolicy rules **", _FORGIVEN),
        ("spec template spec failurePolicy **", "= a run is restarted as a whole | ~job.retries"),
        ("spec template spec replicatedJobs * template spec podFailurePolicy **", _FORGIVEN),
        ("spec template spec replicatedJobs * template spec parallelism", _trace_pod_count_causes),
        ("spec template spec replicatedJobs * template spec completions", _trace_pod_count_causes),
        ("spec template spec replicatedJobs * template spec backoffLimit", _trace_backoff_limit_causes),
        ("spec template spec replicatedJobs * name", _trace_job_name_causes),
        (
            "spec template spec replicatedJobs * template spec successPolicy **",
            "= an elastic run is complete with its first worker | ~spec.elastic",
        ),
        ("spec template spec replicatedJobs * template metadata labels *", trace_label_causes),
        (
            "spec template spec replicatedJobs * template spec activeDeadlineSeconds",
            _trace_job_deadline_causes,
        ),
        ("spec template spec replicatedJobs * dependsOn **", _trace_job_dependency_causes),
        ("spec template spec replicatedJobs * template spec template **", _trace_pod_template_causes),
        ("spec template spec replicatedJobs **", _ENDS),
        _build_constant_cause_row("runtime.yaml.j2"),
    ),
    "ConfigMap": CauseTable(
        ("metadata namespace", "job.namespace"),
        *_META,
        ("data *", _trace_run_file_causes),
        ("binaryData *", _trace_run_file_causes),
        _build_constant_cause_row("runtime.yaml.j2"),
    ),
    CLAIM_TEMPLATE_KIND: CauseTable(
        ("metadata name", _trace_claim_template_causes),
        *_META[1:],
        ("spec spec devices requests 0 exactly *", _trace_claim_template_causes),
        _build_constant_cause_row("claim.yaml.j2"),
    ),
    "NetworkPolicy": CauseTable(
        ("metadata name", "job.run_name | ~job.posture"),
        *_META[1:],
        ("spec podSelector matchLabels *", _trace_pod_selector_causes),
        ("spec policyTypes **", "= what no policy opens is closed | ~job.posture"),
        ("spec * * **", trace_policy_rule_causes),
        _build_constant_cause_row("networkpolicy.yaml.j2"),
    ),
}
