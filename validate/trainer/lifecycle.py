"""Fields that servers accept and that harm a run later: traps of Trainer's versions, and of syncing from Git.

Sources: pkg/runtime and pkg/webhooks of Kubeflow Trainer 2.1 to 2.3, the TrainJob webhook of Kueue 0.19,
gitops-engine of Argo CD 3.5. The generator sets none of these traps; a patch of an overlay can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model import syncing
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.model.support import look_up_trainer_line
from gangplan.objects import Body
from gangplan.rules.lifecycle import (
    ENV_OVERWRITTEN,
    GANG_DEADLOCK,
    GIT_OWNED_FIELD,
    QUANTITY_DRIFT,
    SYNC_DESTROYS,
    TTL_RERUNS,
)
from gangplan.validate.apiserver.forms import FoundProblems
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.jobset import (
    JOBSET_PATH,
    REPLICATED_JOBS_PATH,
    find_trainjob_step,
    list_replicated_jobs,
)
from gangplan.validate.problems import Problem
from gangplan.validate.trainer.runtimes import find_pod_spec
from gangplan.validate.trainer.trainjobs import RESERVED_VARIABLES
from gangplan.validate.world import find_pod_templates

KUEUE_MANAGER = "kueue.x-k8s.io/manager"
# Fields of a cluster's objects whose values are quantities.
AMOUNTS = frozenset(
    {
        *("nominalQuota", "borrowingLimit", "lendingLimit", "storage", "hard", "default", "defaultRequest"),
        *("max", "min", "sizeLimit", "requests", "limits"),
    }
)
WALKED = ("ClusterQueue", "Cohort", "LimitRange", "PersistentVolumeClaim", "ResourceQuota")


def check_trainer_lifecycle_traps(
    body: Body, others: Sequence[Body], versions: SchemaVersions
) -> list[Problem]:
    """Return the traps in one object that fits its schema.

    `others` are the objects of the same run or team.
    """
    found = [*_check_argo_sync_options(body)]
    if find := TRAPS.get(body["kind"]):
        found += find(body, others, versions)
    return found


# --- syncing from Git ----------------------------------------------------------------------------------


def _check_argo_sync_options(body: Body) -> FoundProblems:
    """Report sync options and hooks that delete what runs, or create it again at every sync (Argo CD 3.5)."""
    annotations = body["metadata"].get("annotations") or {}
    at: FieldPath = ("metadata", "annotations")
    for option in syncing.read_sync_options(annotations):
        if option in syncing.REPLACE_OPTIONS:
            yield Problem(
                (*at, syncing.SYNC_OPTIONS),
                f"{option} deletes {body['kind']} {body['metadata']['name']} and recreates it when"
                " anything differs: whatever depends on it stops",
                "Remove the option; a changed run gets a new name by itself.",
                SYNC_DESTROYS,
            )
    key, hook = syncing.find_hook(annotations)
    if key:
        yield Problem(
            (*at, key),
            f"a {hook} hook is created again at every sync, keeping the sync open while it waits in a queue",
            "Remove the annotation.",
            SYNC_DESTROYS,
        )


def _check_trainjob_lifecycle(body: Body, others: Sequence[Body], versions: SchemaVersions) -> FoundProblems:
    spec = body["spec"]
    if "suspend" in spec:
        message = "Kueue sets spec.suspend; every sync restores a value from Git and stops the run"
        yield _report_git_owned_field(("spec", "suspend"), message)
    if body["metadata"].get("generateName"):
        message = "an object with generateName cannot be applied: every sync would create another run"
        yield _report_git_owned_field(("metadata", "generateName"), message)
    for index, patch in enumerate(spec.get("runtimePatches") or ()):
        if patch["manager"] == KUEUE_MANAGER:
            message = f"the runtime patch of {KUEUE_MANAGER} is Kueue's; a sync would take its placement away"
            yield _report_git_owned_field(("spec", "runtimePatches", index), message)
    trainer = spec.get("trainer") or {}
    yield from _check_resource_amounts(
        ("spec", "trainer", "resourcesPerNode"), trainer.get("resourcesPerNode")
    )
    runtime = _find_body_of_kind(RUNTIME_KIND, others)
    initialized = sorted(spec.get("initializer") or {})
    if runtime and runtime["spec"].get("podGroupPolicy") and initialized:
        yield _report_pod_group_policy_deadlock(
            ("spec", "initializer"), f"the {initialized[0]} initializer runs before the others"
        )
    if runtime:
        env = trainer.get("env") or ()
        yield from _check_variables_overwritten_by_trainer(
            ("spec", "trainer", "env"), env, runtime, versions, False
        )


def _check_mpijob_lifecycle(body: Body, _: Sequence[Body], __: SchemaVersions) -> FoundProblems:
    """Check an MPIJob, as far as these traps exist for the MPI operator's kinds."""
    if "suspend" in (body["spec"].get("runPolicy") or {}):
        message = "Kueue sets runPolicy.suspend; every sync restores a value from Git and stops the run"
        yield _report_git_owned_field(("spec", "runPolicy", "suspend"), message)
    if body["metadata"].get("generateName"):
        message = "an object with generateName cannot be applied: every sync would create another run"
        yield _report_git_owned_field(("metadata", "generateName"), message)
    for at, template in find_pod_templates(body):
        yield from _check_pod_amounts((*at, "spec"), template.get("spec") or {})


def _report_git_owned_field(at: FieldPath, message: str) -> Problem:
    return Problem(at, message, "Remove it from the patch.", GIT_OWNED_FIELD)


# --- the runtime ---------------------------------------------------------------------------------------


def _check_training_runtime_lifecycle(
    body: Body, others: Sequence[Body], versions: SchemaVersions
) -> FoundProblems:
    entries, spec = list_replicated_jobs(body), (body["spec"].get("template") or {}).get("spec") or {}
    yield from _check_trainjob_ttl_reruns((*JOBSET_PATH, "ttlSecondsAfterFinished"), spec, versions)
    for index, entry in enumerate(entries):
        at: FieldPath = (*REPLICATED_JOBS_PATH, index)
        if body["spec"].get("podGroupPolicy"):
            if entry.get("dependsOn"):
                waits = f"'{entry['name']}' is created only after '{entry['dependsOn'][0]['name']}'"
                yield _report_pod_group_policy_deadlock((*at, "dependsOn"), waits)
            elif find_trainjob_step(entry).endswith("-initializer") and not _find_body_of_kind(
                TRAINJOB.kind, others
            ):
                yield _report_pod_group_policy_deadlock(
                    (*at, "name"), f"'{entry['name']}' runs before the others"
                )
        yield from _check_trainjob_ttl_reruns(
            (*at, "template", "spec", "ttlSecondsAfterFinished"), entry["template"]["spec"], versions
        )
        pod: FieldPath = (*at, "template", "spec", "template", "spec")
        yield from _check_training_runtime_pod(pod, entry, body, versions)


def _check_training_runtime_pod(
    at: FieldPath, entry: Body, runtime: Body, versions: SchemaVersions
) -> FoundProblems:
    """Check the amounts of a pod, and the variables of the container that Trainer writes into."""
    spec = find_pod_spec(entry)
    yield from _check_pod_amounts(at, spec)
    for name in ("containers", "initContainers"):
        for index, one in enumerate(spec.get(name) or ()):
            if one["name"] == "node" and find_trainjob_step(entry) == "trainer":
                env = one.get("env") or ()
                yield from _check_variables_overwritten_by_trainer(
                    (*at, name, index, "env"), env, runtime, versions, True
                )


def _check_pod_amounts(at: FieldPath, spec: Body) -> FoundProblems:
    """Check the amounts of a pod."""
    for index, volume in enumerate(spec.get("volumes") or ()):
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        yield from _check_quantity_drift((*at, "volumes", index, "emptyDir", "sizeLimit"), limit, True)
    for name in ("containers", "initContainers"):
        for index, one in enumerate(spec.get(name) or ()):
            yield from _check_resource_amounts((*at, name, index, "resources"), one.get("resources"))


def _check_trainjob_ttl_reruns(at: FieldPath, spec: Body, versions: SchemaVersions) -> FoundProblems:
    which = look_up_trainer_line(versions.trainer).reruns_after_ttl
    if "ttlSecondsAfterFinished" in spec and which:
        yield Problem(
            at,
            f"with Trainer {versions.trainer}, {which} run is created again when its JobSet is deleted after"
            f" {spec['ttlSecondsAfterFinished']} s: it trains over and over (trainer#2981, trainer#3737)",
            "Remove ttlSecondsAfterFinished; set state: stopped in the spec of a finished run.",
            TTL_RERUNS,
        )


def _report_pod_group_policy_deadlock(at: FieldPath, why: str) -> Problem:
    return Problem(
        at,
        f"{why}, but the pod group starts no pod until all of them exist: the run waits forever",
        "Remove podGroupPolicy, or let all pods start at once.",
        GANG_DEADLOCK,
    )


def _check_variables_overwritten_by_trainer(
    at: FieldPath, env: Sequence[Body], runtime: Body, versions: SchemaVersions, is_runtime: bool
) -> FoundProblems:
    """Report variables that Trainer overwrites in the pods.

    It overwrites a runtime's own in every version (mpi.go, torch.go).
    """
    policy = runtime["spec"].get("mlPolicy") or {}
    for index, variable in enumerate(env):
        owner = next(
            (
                key
                for key in RESERVED_VARIABLES
                if key in policy and variable["name"] in RESERVED_VARIABLES[key]
            ),
            "",
        )
        is_refused = owner != "mpi" or look_up_trainer_line(versions.trainer).refuses_mpi_variables
        if owner and (is_runtime or not is_refused):
            yield Problem(
                (*at, index),
                f"Trainer {versions.trainer} silently overwrites {variable['name']}",
                "Remove it; use the mlPolicy of the runtime or a flag of the command.",
                ENV_OVERWRITTEN,
            )


# --- amounts -------------------------------------------------------------------------------------------


def _check_resource_amounts(at: FieldPath, resources: Body | None) -> FoundProblems:
    for part in ("requests", "limits"):
        yield from _check_quantity_drift((*at, part), (resources or {}).get(part), True)


def _check_quantity_drift(at: FieldPath, value: Any, is_amount: bool) -> Iterator[Problem]:
    """Report quantities that the API server would write back in another form."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _check_quantity_drift((*at, key), item, is_amount or key in AMOUNTS)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_quantity_drift((*at, index), item, False)
    elif is_amount and value is not None and (right := format_canonical_quantity(str(value))) != value:
        yield Problem(
            at,
            f"the cluster stores {value!r} as '{right}': the object differs from Git forever",
            f'Write "{right}".',
            QUANTITY_DRIFT,
        )


@lru_cache(maxsize=4096)
def format_canonical_quantity(text: str) -> str:
    """Return a quantity as Kubernetes writes it back (resource.Quantity of apimachinery v0.34)."""
    try:
        return parse_quantity(text).canonical()
    except QuantityError:
        return text


def _find_body_of_kind(kind: str, bodies: Sequence[Body]) -> Body | None:
    return next((body for body in bodies if body["kind"] == kind), None)


Trap = Callable[[Body, Sequence[Body], SchemaVersions], FoundProblems]
TRAPS: Mapping[str, Trap] = {
    TRAINJOB.kind: _check_trainjob_lifecycle,
    RUNTIME_KIND: _check_training_runtime_lifecycle,
    MPIJOB.kind: _check_mpijob_lifecycle,
    **dict.fromkeys(WALKED, lambda body, _, __: _check_quantity_drift(("spec",), body.get("spec"), False)),
}
