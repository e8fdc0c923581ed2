"""A run that is over, as a record: the same objects under the same names, which start nothing.

Whenever Kueue finds an admitted run suspended, it starts it again, so `suspend` alone does not end one (kueue
v0.19.2, pkg/controller/jobframework/reconciler.go, step 7; 0.15 to 0.18 alike). So the engine is asked to
delete the TrainJob or MPIJob and create it again (`Force=true,Replace=true` of Argo CD; flux.py): its
Workload, JobSet and pods are deleted with it, and the new one is suspended and waits in a queue that does not
exist. It names a queue because Kueue removes the finalizer from the old Workload only while it manages a
TrainJob of that name. Without Kueue, `suspend` ends a run (trainer v2.3.0,
pkg/runtime/framework/plugins/jobset), and the TrainJob stays with its status.

Nothing protects a record from being pruned: once its file leaves Git, the engine deletes it. Engines read
that from the object in the cluster (gitops-engine of Argo CD 3.5.1, isPruningDisabled; Flux, ssa.Delete),
which is why a run becomes a record first and is removed in a later change.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model import syncing
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.objects import Body

STATE_ANNOTATION = "gangplan.dev/state"
STOPPED_STATE = "stopped"
KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# No LocalQueue has this name: those that gangplan renders have names without dots.
NO_QUEUE = "stopped.gangplan.dev"


def build_run_record(bodies: Sequence[Body]) -> list[Body]:
    """Turn the objects of a run into its record; only what changes is copied."""
    return [_convert_object_to_run_record(body) for body in bodies]


def _convert_object_to_run_record(body: Body) -> Body:
    metadata = dict(body["metadata"])
    annotations = {**(metadata.get("annotations") or {}), STATE_ANNOTATION: STOPPED_STATE}
    for name in (syncing.FLUX_PRUNE, syncing.COMPARE_OPTIONS):
        annotations.pop(name, None)
    options = [
        option for option in syncing.read_sync_options(annotations) if option not in syncing.GUARD_OPTIONS
    ]
    annotations.pop(syncing.SYNC_OPTIONS, None)
    changed = {}
    made = BACKEND_BY_KIND.get(body["kind"])
    if made is not None:
        labels = dict(metadata.get("labels") or {})
        if KUEUE_QUEUE_LABEL in labels:
            labels[KUEUE_QUEUE_LABEL] = NO_QUEUE
            options += syncing.REPLACE_OPTIONS
        metadata["labels"] = labels
        changed["spec"] = _set_suspend_field(body["spec"], made.suspended)
    if options:
        annotations[syncing.SYNC_OPTIONS] = ",".join(options)
    metadata["annotations"] = dict(sorted(annotations.items()))
    return {**body, "metadata": metadata, **changed}


def _set_suspend_field(spec: Body, path: Sequence[str]) -> Body:
    """Return the spec with the field at a path set to true."""
    name, rest = path[0], path[1:]
    return {**spec, name: _set_suspend_field(spec.get(name) or {}, rest) if rest else True}
