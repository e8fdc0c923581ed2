"""From one state of a cluster to the next: what a sync would refuse, and what it would leave behind.

Sources: CRDs and webhooks of Kubeflow Trainer 2.1 to 2.3 and Kueue 0.15 to 0.19 (`self == oldSelf`),
core/validation and rbac/validation of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.backend import BACKEND_BY_KIND, MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND, FIXED_FIELDS_BY_KIND
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.model.support import look_up_kueue_line, look_up_trainer_line
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.lifecycle import (
    IMMUTABLE_CHANGED,
    QUEUE_REMOVED,
    RUNTIME_EDITED,
)
from gangplan.validate.apiserver.crdrules.check import check_crd_transition_rules as crd_changed
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.enforcement import compare_policies_between_commits
from gangplan.validate.problems import Problem, format_path
from gangplan.validate.run_hours import ObjectKey
from gangplan.validate.runs import compare_run_states_between_commits, is_applied, is_record_object, meta_of
from gangplan.validate.sweep_runs import SWEEP_ENDING_HELP, read_sweep_label

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

# Since Trainer 2.2 (trainer#3157); before, Trainer accepted a change and the JobSet refused it.
FIXED_RUN: tuple[FieldPath, ...] = tuple(
    ("spec", name) for name in ("runtimeRef", "initializer", "trainer", "activeDeadlineSeconds", "managedBy")
)
# Kinds that hold the pods of a run and may still be changed: what users call them, and what the change leads
# to.
EDITED = {
    RUNTIME_KIND: (
        "runtime",
        "Trainer reads the runtime of a waiting or restarted run again, and refuses or mixes it",
    ),
    MPIJOB.kind: (
        MPIJOB.kind,
        "existing pods do not change, and Kueue stops a run whose pods are not those that it admitted",
    ),
}
FIXED_BY_TOPOLOGY: tuple[FieldPath, ...] = (
    ("spec", "nodeLabels"),
    ("spec", "tolerations"),
    ("spec", "topologyName"),
)


@dataclass(frozen=True, slots=True)
class TransitionStep:
    """A problem of the step from one state to the next: the object's key, and what is wrong with it."""

    key: ObjectKey
    problem: Problem


def check_transition_between_commits(
    before: Sequence[Body], after: Sequence[Body], versions: SchemaVersions
) -> list[TransitionStep]:
    """Return the problems that a sync from one state of a cluster to the next would meet.

    Objects must be unique by key. `versions` are those of the cluster after the step. Neither state needs to
    be valid.
    """
    old, new = _index_bodies_by_key(before), _index_bodies_by_key(after)
    found = [
        TransitionStep(key, problem)
        for key, body in new.items()
        if key in old
        for problem in _check_changed_object(old[key], body, versions)
    ]
    found += [TransitionStep(key, problem) for key, problem in compare_run_states_between_commits(old, new)]
    found += [TransitionStep(key, problem) for key, problem in compare_policies_between_commits(old, new)]
    return [*found, *_check_removed_queues(old, new)]


def _index_bodies_by_key(bodies: Sequence[Body]) -> dict[ObjectKey, Body]:
    return {
        (body.get("kind", ""), meta_of(body).get("namespace") or "", meta_of(body).get("name") or ""): body
        for body in bodies
    }


# --- changed in place ----------------------------------------------------------------------------------


def _check_changed_object(old: Body, new: Body, versions: SchemaVersions) -> Iterator[Problem]:
    kind = new["kind"]
    if kind in EDITED:
        if is_record_object(new):
            return  # the run that read it is over
        if old.get("spec") != new.get("spec"):
            at = _find_deepest_changed_path(old.get("spec"), new.get("spec"), ("spec",))
            what, becomes = EDITED[kind]
            yield Problem(
                at,
                f"{format_path(at)} of the {what} changed under its old name: {becomes}",
                "Give it a new name: change the spec or raise run:, then render.",
                RUNTIME_EDITED,
            )
        if kind in BACKEND_BY_KIND and is_applied(old) and is_applied(new):
            yield from _check_queue_label_change(old, new)
        return
    for path in _list_immutable_fields(old, kind, versions):
        if _read_nested_field(old, path) != _read_nested_field(new, path):
            yield Problem(
                path,
                f"{format_path(path)} cannot change under one name: the sync fails with 'field is immutable'",
                _describe_immutable_field_help(kind),
                IMMUTABLE_CHANGED,
            )
    if kind == "PersistentVolumeClaim":
        yield from _check_claim_size_change(old, new)
    told = _list_immutable_fields(old, kind, versions)
    for problem in crd_changed(old, new, versions):
        if not any(problem.path[: len(path)] == path for path in told):
            yield replace(problem, help=problem.help or _describe_immutable_field_help(kind))
    if kind in BACKEND_BY_KIND and is_applied(old) and is_applied(new):
        yield from _check_queue_label_change(old, new)


def _check_claim_size_change(old: Body, new: Body) -> Iterator[Problem]:
    """Report a size that no claim can change to.

    A claim never gets smaller (ValidatePersistentVolumeClaimUpdate), and only one that its storage class
    made gets larger (plugin/pkg/admission/storage/persistentvolume/resize, both Kubernetes v1.34).
    """
    path = ("spec", "resources", "requests", "storage")
    try:
        was, now = (parse_quantity(str(_read_nested_field(body, path))) for body in (old, new))
    except QuantityError:
        return  # the schema's check reports it
    if was == now:
        return
    if now < was:
        message, help = (
            "a claim cannot become smaller",
            "Keep its size, or declare another claim, and copy the data.",
        )
    elif _read_nested_field(new, ("spec", "storageClassName")) == "":
        message = "a claim for a volume that exists cannot become larger: the API server refuses it"
        help = "Keep its size; what the server behind the volume gives does not depend on it."
    else:
        return
    yield Problem(
        path, f"{message}: the API server refuses the claim, and the sync fails", help, IMMUTABLE_CHANGED
    )


def _list_immutable_fields(old: Body, kind: str, versions: SchemaVersions) -> tuple[FieldPath, ...]:
    if kind == TRAINJOB.kind:
        return (
            FIXED_RUN if look_up_trainer_line(versions.trainer).is_run_immutable else (("spec", "managedBy"),)
        )
    if kind == "ResourceFlavor" and (old.get("spec") or {}).get("topologyName"):
        return (("spec",),) if look_up_kueue_line(versions.kueue).is_flavor_frozen else FIXED_BY_TOPOLOGY
    return FIXED_FIELDS_BY_KIND.get(kind, ())


def _describe_immutable_field_help(kind: str) -> str:
    if kind == TRAINJOB.kind:
        return "Raise run: in the spec, so that the run gets a new name, and render."
    if kind == CLAIM_TEMPLATE_KIND:
        return "Raise run: in the spec, so that the run and its claims get new names, and render."
    if kind == "PersistentVolume":
        return "State it under another name in persistentVolumes, and in the team's file."
    if kind == "PersistentVolumeClaim":
        return "Declare another claim, and copy the data."
    if kind == "Job":
        return "Raise run: in the spec, so that the run and its Job get new names, and render."
    return "Give it a new name, move what uses it, and remove the old one in a later commit."


def _check_queue_label_change(old: Body, new: Body) -> Iterator[Problem]:
    """Report another queue for a run that is not suspended, which Kueue's webhook refuses."""
    was, now = ((meta_of(body).get("labels") or {}).get(QUEUE_LABEL) for body in (old, new))
    if was != now:
        yield Problem(
            ("metadata", "labels", QUEUE_LABEL),
            f"the run moves from queue '{was}' to '{now}', which Kueue refuses once it is admitted",
            "Keep the queue's name, or wait until the run is over, or raise run: in the spec and render.",
            IMMUTABLE_CHANGED,
        )


def _read_nested_field(body: Any, path: FieldPath) -> Any:
    for step in path:
        body = (body or {}).get(step)
    return body


def _find_deepest_changed_path(old: Any, new: Any, path: FieldPath) -> FieldPath:
    """Return the deepest path that contains every difference."""
    while isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        if len(keys) != 1:
            break
        old, new, path = old.get(keys[0]), new.get(keys[0]), (*path, keys[0])
    return path


# --- removed -------------------------------------------------------------------------------------------


def _check_removed_queues(
    old: Mapping[ObjectKey, Body], new: Mapping[ObjectKey, Body]
) -> Iterator[TransitionStep]:
    """Yield queues and flavors that are removed while runs may hold quota of them.

    The deletion of a ClusterQueue then blocks (kueue 5.5), that of a flavor while a queue lists it (v0.19,
    pkg/controller/core/resourceflavor_controller.go).
    """
    kinds = ("ClusterQueue", "LocalQueue", "ResourceFlavor")
    gone = {key: body for key, body in old.items() if key not in new and key[0] in kinds}
    users = _map_applied_runs_to_queues(old) if gone else {}
    for key, body in gone.items():
        runs = sorted("/".join(run[1:]) for run, queues in users.items() if key in queues)
        if runs and not (key[0] == "ClusterQueue" and _is_drained(body)):
            shown = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
            message = f"{key[0]} {body['metadata']['name']} is removed while runs use it ({shown}): "
            message += _describe_queue_loss(key, new)
            if _is_drained(body):
                help = "Write state: stopped in their specs."
            elif key[0] != "ResourceFlavor" and all(
                read_sweep_label(old[run]) for run, queues in users.items() if key in queues
            ):  # the queue of a sweep, which leaves with it
                help = SWEEP_ENDING_HELP
            else:
                help = _describe_queue_draining(key, old)
            yield TransitionStep(key, Problem((), message, help, QUEUE_REMOVED))


def _describe_queue_loss(key: ObjectKey, new: Mapping[ObjectKey, Body]) -> str:
    if key[0] == "LocalQueue":
        return "waiting runs are never admitted"
    if key[0] == "ClusterQueue" or any(
        one[0] == "ClusterQueue" and key in _list_flavors_of_queue(one, new) for one in new
    ):
        return "its deletion blocks"
    return "Kueue then counts its nodes as free, and admits other runs onto them, whose pods wait"


def _is_drained(queue: Body) -> bool:
    """Return whether no run holds quota in a queue, because Kueue evicted those that it had admitted."""
    return bool(_read_nested_field(queue, ("spec", "stopPolicy")) == "HoldAndDrain")


def _describe_queue_draining(key: ObjectKey, bodies: Mapping[ObjectKey, Body]) -> str:
    """Return how to drain a queue before it is removed.

    A flavor has no stopPolicy, so the patch is for its queues: a target's name is a regular expression.
    """
    kind, name = key[0], key[2]
    if kind == "ResourceFlavor":
        kind = "ClusterQueue"
        name = "|".join(
            sorted(one[2] for one in bodies if one[0] == kind and key in _list_flavors_of_queue(one, bodies))
        )
    # What begins like JSON must be JSON (kustomize v5.7, PatchTransformer.go, jsonPatchFromBytes).
    change = '[{"op": "add", "path": "/spec/stopPolicy", "value": "HoldAndDrain"}]'
    # Teams may call their LocalQueues alike: without a namespace, the patch drains those of all.
    place = f"namespace: {key[1]}, " if key[1] else ""
    patch = f"{{target: {{kind: {kind}, {place}name: {name}}}, patch: '{change}'}}"
    return (
        "Drain it in an earlier commit, in which it stays: stop its runs (state: stopped), or add"
        f" - {patch} to patches: in overlays/<cluster>/kustomization.yaml."
    )


def _map_applied_runs_to_queues(bodies: Mapping[ObjectKey, Body]) -> dict[ObjectKey, set[ObjectKey]]:
    """Return each applied run with its LocalQueue, ClusterQueue and flavors."""
    found: dict[ObjectKey, set[ObjectKey]] = {}
    for key, body in bodies.items():
        queue = (meta_of(body).get("labels") or {}).get(QUEUE_LABEL)
        if key[0] not in BACKEND_BY_KIND or not queue or not is_applied(body):
            continue
        local: ObjectKey = ("LocalQueue", key[1], str(queue))
        target: ObjectKey = (
            "ClusterQueue",
            "",
            str(_read_nested_field(bodies.get(local), ("spec", "clusterQueue")) or ""),
        )
        runtime = bodies.get((RUNTIME_KIND, key[1], _read_runtime_name(body)))
        pods = _list_node_selectors([body, runtime]) or [{}]
        flavors = {
            flavor
            for flavor in _list_flavors_of_queue(target, bodies)
            if any(_may_run_on_flavor(selector, bodies.get(flavor)) for selector in pods)
        }
        found[key] = {local, target, *flavors}
    return found


def _list_flavors_of_queue(queue: ObjectKey, bodies: Mapping[ObjectKey, Body]) -> set[ObjectKey]:
    groups = _read_nested_field(bodies.get(queue), ("spec", "resourceGroups")) or ()
    return {("ResourceFlavor", "", str(flavor["name"])) for group in groups for flavor in group["flavors"]}


def _read_runtime_name(run: Body) -> str:
    return str(_read_nested_field(run, ("spec", "runtimeRef", "name")) or "")


def _list_node_selectors(value: Any) -> list[dict[str, Any]]:
    """Return the selectors of all pod templates in objects; an empty one for a template without any."""
    if isinstance(value, list):
        return [found for item in value for found in _list_node_selectors(item)]
    if not isinstance(value, dict):
        return []
    own = [value.get("nodeSelector") or {}] if "containers" in value else []
    return own + [found for item in value.values() for found in _list_node_selectors(item)]


def _may_run_on_flavor(selector: Mapping[str, Any], flavor: Body | None) -> bool:
    """Return whether pods with this selector may get quota of a flavor: no label of it says otherwise."""
    labels = _read_nested_field(flavor, ("spec", "nodeLabels")) or {}
    return all(labels.get(name, value) == value for name, value in selector.items())
