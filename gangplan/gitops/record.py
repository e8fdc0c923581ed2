"""A run that is over, as a record: the same objects under the same name, which start nothing.

Kueue starts a run that it admitted again whenever it finds it suspended, so that `suspend` alone ends none
(kueue v0.19.2, pkg/controller/jobframework/reconciler.go, step 7; 0.15 to 0.18 alike). So the engine is asked
to delete the TrainJob or MPIJob and create it again (`Force=true,Replace=true` of Argo CD; flux.py):
Workload, JobSet and pods go with it, and the new one is suspended and waits in a queue that does not exist.
It names one because Kueue takes the finalizer off the old Workload only while it looks after a TrainJob of
that name. Without Kueue, `suspend` ends a run (trainer v2.3.0, pkg/runtime/framework/plugins/jobset), and the
TrainJob stays with its status.

Nothing protects a record from being pruned: once its file leaves Git, the engine deletes it. Engines read
that from the object in the cluster (gitops-engine of Argo CD 3.5.1, isPruningDisabled; Flux, ssa.Delete),
which is why a run becomes a record first and goes in a later change.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model import syncing
from gangplan.model.backend import BY_KIND
from gangplan.objects import Body

STATE = "gangplan.dev/state"
STOPPED = "stopped"
QUEUE = "kueue.x-k8s.io/queue-name"
# No LocalQueue is called so: those that gangplan renders have names without dots.
NO_QUEUE = "stopped.gangplan.dev"


def record_of(bodies: Sequence[Body]) -> list[Body]:
    """The objects of a run, as its record. They are copied as far as they differ."""
    return [_recorded(body) for body in bodies]


def _recorded(body: Body) -> Body:
    metadata = dict(body["metadata"])
    annotations = {**(metadata.get("annotations") or {}), STATE: STOPPED}
    for name in (syncing.PRUNE, syncing.COMPARE):
        annotations.pop(name, None)
    options = [option for option in syncing.options_of(annotations) if option not in syncing.GUARDS]
    annotations.pop(syncing.OPTIONS, None)
    changed = {}
    made = BY_KIND.get(body["kind"])
    if made is not None:
        labels = dict(metadata.get("labels") or {})
        if QUEUE in labels:
            labels[QUEUE] = NO_QUEUE
            options += syncing.REPLACED
        metadata["labels"] = labels
        changed["spec"] = _suspended(body["spec"], made.suspended)
    if options:
        annotations[syncing.OPTIONS] = ",".join(options)
    metadata["annotations"] = dict(sorted(annotations.items()))
    return {**body, "metadata": metadata, **changed}


def _suspended(spec: Body, path: Sequence[str]) -> Body:
    """The spec with the field at a path set."""
    name, rest = path[0], path[1:]
    return {**spec, name: _suspended(spec.get(name) or {}, rest) if rest else True}
