"""What patches change in how a sync engine treats objects: whether it applies them, in which order, and
whether it deletes those that left Git.

The generator states all of it; a patch can undo it without changing what the objects themselves say.
Sources: those of gangplan.model.syncing; Argo CD v3.5.1, sync_tasks.go (a namespace comes before what is in
it, whatever its wave); Trainer 2.3, pkg/runtime/core/trainingruntime.go (a run needs its runtime).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.model.backend import RUNTIME_KIND, RUNTIME_KINDS, TRAINJOB
from gangplan.model.syncing import ARGO_SYNC_WAVE, PRUNE_CONFIRMED, SYNC_ENGINES, SyncEngine, read_sync_wave
from gangplan.objects import Body
from gangplan.rules.lifecycle import SYNC_DESTROYS, SYNC_ORDER, SYNC_SKIPS
from gangplan.rules.patches import PLAN_BROKEN
from gangplan.validate.apiserver.forms import FoundProblems
from gangplan.validate.problems import Problem

# What goes with an object that a sync deletes.
_LOST = {"Namespace": ", and everything in it", "PersistentVolumeClaim": ", and its data"}


def find_changes_of_syncing(
    built: Sequence[Body], before: Sequence[Body], engines: Sequence[str]
) -> list[list[Problem]]:
    """Return, for each built object of a file, what one of the cluster's engines would do otherwise than with
    the object before any patch.

    The objects fit their schemas.
    """
    found = [
        [] if body is was else list(_check_engine_marks(body, was, engines))
        for body, was in zip(built, before, strict=True)
    ]
    if "argocd" in engines:
        for place, problem in _check_waves_of_runs(built):
            found[place].append(problem)
    return found


def _check_engine_marks(body: Body, generated: Body, engines: Sequence[str]) -> FoundProblems:
    own, planned, kind = body["metadata"], generated["metadata"], body["kind"]
    for name in engines:
        engine = SYNC_ENGINES[name]
        mark, was = engine.find_skipping_mark(own), engine.find_skipping_mark(planned)
        if mark and not was:
            said = (
                f"{engine.title} would not apply this {kind}: the cluster would have none, or an outdated one"
            )
            yield Problem(mark, said, "Remove it from the patch.", SYNC_SKIPS)
        elif was and not mark:
            key, value = engine.archived[0]
            said = f"the run is archived, but {engine.title} would apply it again"
            yield Problem(("metadata", "annotations", key), said, f"Keep {key}: {value}.", PLAN_BROKEN)
        elif engine.measure_guard(own) < engine.measure_guard(planned):
            yield _report_lost_guard(body, generated, engine)


def _report_lost_guard(body: Body, generated: Body, engine: SyncEngine) -> Problem:
    kind, strength = body["kind"], engine.measure_guard(generated["metadata"])
    key, value = engine.guards[len(engine.guards) - strength]
    lost = _LOST.get(kind, ", and end the run with it")
    if value == PRUNE_CONFIRMED:
        lost = f"{_LOST.get(kind, '')}, without asking"
    said = f"{engine.title} would delete this {kind} when it leaves Git{lost}"
    help = f"Keep {key}: {value}." if engine.is_loose else f"Keep {value} among the options."
    return Problem(("metadata", "annotations", key), said, help, SYNC_DESTROYS)


def _check_waves_of_runs(bodies: Sequence[Body]) -> Iterator[tuple[int, Problem]]:
    """Report runs that are applied before their runtime: Trainer's webhook refuses them, and no later wave
    begins."""
    waves = {
        (body["kind"], body["metadata"]["name"]): read_sync_wave(body["metadata"].get("annotations") or {})
        for body in bodies
        if body["kind"] in (*RUNTIME_KINDS, TRAINJOB.kind)
    }
    for place, body in enumerate(bodies):
        if body["kind"] != TRAINJOB.kind:
            continue
        reference = body["spec"]["runtimeRef"]
        runtime = reference.get("kind", RUNTIME_KIND), reference["name"]
        own = waves[TRAINJOB.kind, body["metadata"]["name"]]
        if own < (last := waves.get(runtime, own)):
            said = (
                f"Argo CD would apply the run in wave {own}, before its {runtime[0]} in wave {last}: Trainer"
                " refuses it, and the sync never gets to the runtime"
            )
            help = f"Give the run a later wave, or leave {ARGO_SYNC_WAVE} as rendered."
            yield place, Problem(("metadata", "annotations", ARGO_SYNC_WAVE), said, help, SYNC_ORDER)
