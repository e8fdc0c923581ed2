"""Judge the evidence: what is wrong with each run, the likeliest cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.diagnose.cause import ASIDE, ENDING, ROOT_CAUSE, SYMPTOM, KnownCause
from gangplan.diagnose.causes import list_diagnosis_causes
from gangplan.diagnose.evidence import Evidence, Log, SavedObject, Sighting
from gangplan.diagnose.objects import find_object_sightings
from gangplan.diagnose.things import find_run_of_saved_object
from gangplan.live.states import RunState, determine_live_run_state
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.records import dataclass

_SOURCE = "gangplan.dev/source"
_TEAM = "gangplan.dev/team"


@dataclass(frozen=True, slots=True)
class FoundCause:
    """A cause and where it was seen: once per part of the run, the earliest first; `count` is the total.

    `is_minor` is a cause that only warnings and notes name, next to one that failed.
    """

    cause: KnownCause
    seen: tuple[Sighting, ...]
    count: int
    follows: bool
    is_minor: bool = False


@dataclass(frozen=True, slots=True)
class RunDiagnosis:
    """What is wrong with a run: `found` has the roots first, then their consequences.

    `name` is empty for evidence that belongs to no known run; `state` is None if the run itself was not
    saved. `has_pods` says whether pods were saved, or the run says that they started.
    """

    name: str
    team: str
    namespace: str
    spec: str
    state: RunState | None
    found: tuple[FoundCause, ...]
    logs: tuple[Log, ...]
    has_objects: bool
    has_pods: bool

    @property
    def roots(self) -> tuple[FoundCause, ...]:
        """The root causes; if none is known, the symptoms."""
        return tuple(one for one in self.found if not one.follows)

    @property
    def is_known(self) -> bool:
        """Whether more is known than that the run ended."""
        return any(one.cause.depth != ENDING for one in self.roots)

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: it runs, waits for nothing, or is complete.

        A log alone does not prove that.
        """
        word = self.state.word if self.state else ""
        return not self.found and self.has_objects and word not in ("failed", "preempted", "suspended")


def diagnose_runs(evidence: Evidence, named: str = "") -> tuple[RunDiagnosis, ...]:
    """Return the verdict of each run, by name.

    Evidence of no known run belongs to the only run; if there are several, it gets a verdict of its own. With
    `named`, only that run's verdict; none if nothing is known about it.
    """
    runs = _find_saved_runs(evidence)
    sightings = [
        *find_object_sightings(evidence.things),
        *(one for log in evidence.logs for one in log.sightings),
    ]
    names = {name for one in sightings if (name := one.who.run)} | set(runs)
    names |= {log.who.run for log in evidence.logs} | {
        find_run_of_saved_object(thing) for thing in evidence.things
    }
    names.discard("")
    only = named or (next(iter(names)) if len(names) == 1 else "")
    by_run: dict[str, list[Sighting]] = {name: [] for name in names}
    for one in sightings:
        by_run.setdefault(one.who.run if one.who.run in names else only, []).append(one)
    logs: dict[str, list[Log]] = {}
    for log in evidence.logs:
        name = log.who.run if log.who.run in names else only
        logs.setdefault(name, []).append(log)
        by_run.setdefault(name, [])
    if named and named not in names and names:
        return ()
    wanted = [named] if named else sorted(by_run)
    return tuple(
        _diagnose_run(name, runs.get(name), by_run[name], logs.get(name, ()), evidence.things)
        for name in wanted
        if name in by_run
    )


def _find_saved_runs(evidence: Evidence) -> dict[str, SavedObject]:
    found = {thing.name: thing for thing in evidence.things if thing.kind == "JobSet"}
    return found | {thing.name: thing for thing in evidence.things if thing.kind in BACKEND_BY_KIND}


def _diagnose_run(
    name: str,
    run: SavedObject | None,
    sightings: Sequence[Sighting],
    logs: Sequence[Log],
    things: Sequence[SavedObject],
) -> RunDiagnosis:
    kin = [thing for thing in things if name and find_run_of_saved_object(thing) == name]
    at = None
    if run is not None and run.kind in BACKEND_BY_KIND:
        workload = next((thing.body for thing in kin if thing.kind == "Workload"), None)
        at = determine_live_run_state(run.body, workload)
    metadata = (run.body.get("metadata") or {}) if run else {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    team = str((metadata.get("labels") or {}).get(_TEAM) or "")
    spec = str(annotations.get(_SOURCE) or "")
    namespace = run.namespace if run else next((thing.namespace for thing in kin if thing.namespace), "")
    return RunDiagnosis(
        name,
        team,
        namespace,
        spec,
        at,
        _rank_found_causes(_drop_outdated_sightings(sightings, at)),
        tuple(logs),
        bool(kin or run) or (not name and bool(things)),
        any(thing.kind == "Pod" for thing in (kin if name else things))
        or (at is not None and at.word in ("running", "complete")),
    )


def _drop_outdated_sightings(sightings: Sequence[Sighting], at: RunState | None) -> Sequence[Sighting]:
    """Return the sightings that still count: none for a complete run, no past delays for a running one."""
    if at is None:
        return sightings
    if at.word in ("complete", "stopped"):
        return ()
    if at.word in ("running", "new"):
        return [one for one in sightings if one.cause not in _PASSED]
    return sightings


# The cause of any traceback, and the number of characters that must match for two lines to count as one.
_EXCEPTION, _LIKE = "exception", 120
_TORCHRUN = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
# Causes that a running run has overcome.
_PASSED = frozenset(
    {
        "quota-wait", "quota-never", "queue-inactive", "topology-full", "admission-check", "preempted", "not-ready-in-time",
        "object-quota", "no-gpu", "no-room", "no-matching-node", "volume-pending", "mount-failed", "image-pull",
        "launch-scripts-missing",
    }
)  # fmt: skip


def _rank_found_causes(sightings: Sequence[Sighting]) -> tuple[FoundCause, ...]:
    known = list_diagnosis_causes()
    groups: dict[str, list[Sighting]] = {}
    for one in _drop_repeated_exception_sightings(sightings, known):
        groups.setdefault(one.cause, []).append(one)
    weights = {name: _weigh_cause(known[name], groups[name]) for name in groups}
    for name in [name for name in groups if weights[name] == ROOT_CAUSE]:
        weights |= {end: SYMPTOM for end in known[name].ends_in if weights.get(end) == ROOT_CAUSE}
    ranked = sorted(
        groups, key=lambda name: _compute_cause_sort_key(known[name], groups[name], weights[name])
    )
    least = min(weights.values(), default=0)
    found = []
    for name in ranked:
        cause = known[name]
        seen = sorted(groups[name], key=lambda one: (one.is_warning, one.at or "9", one.file, one.line))
        follows = weights[name] > least
        minor = follows and weights[name] in (_WARNED, _NOTED)
        found.append(FoundCause(cause, _keep_one_sighting_per_part(seen), len(seen), follows, minor))
    return tuple(found)


def _drop_repeated_exception_sightings(
    sightings: Sequence[Sighting], known: Mapping[str, KnownCause]
) -> Sequence[Sighting]:
    """Drop exceptions whose last line is itself another symptom, which says more.

    torchrun's own exception says that a rank ended; the text below it says how.
    """
    depth = known[_EXCEPTION].depth
    said = {
        one.text[:_LIKE] for one in sightings if one.cause != _EXCEPTION and known[one.cause].depth == depth
    }
    return [
        one
        for one in sightings
        if one.cause != _EXCEPTION
        or not (one.facts.get("what", "")[:_LIKE] in said or one.facts.get("what", "").startswith(_TORCHRUN))
    ]


# Weights of causes: roots and symptoms have their depths; then those of which there were only warnings, endings, notes.
_WARNED, _ENDED, _NOTED = 2, 3, 4


def _weigh_cause(cause: KnownCause, seen: Sequence[Sighting]) -> int:
    """Return the weight of a cause: the less, the likelier it ended the run."""
    if cause.depth in (ENDING, ASIDE):
        return _ENDED if cause.depth == ENDING else _NOTED
    return _WARNED if all(one.is_warning for one in seen) else cause.depth


def _compute_cause_sort_key(
    cause: KnownCause, seen: Sequence[Sighting], weight: int
) -> tuple[int, bool, int, str, int, str]:
    """Return the sort key: roots before symptoms before warnings, then by time, objects before logs, by line."""
    proofs = [one for one in seen if not one.is_warning] or seen
    times = [one.at for one in proofs if one.at]
    lines = min((one.line for one in proofs), default=0)
    # An exception of which only the last line was saved says more than what the program went on after.
    is_later = weight == _WARNED and cause.id != _EXCEPTION
    return weight, is_later, 0 if times else 1, min(times, default=""), lines, cause.id


def _keep_one_sighting_per_part(seen: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Return one sighting per part of the run, preferably one with facts."""
    parts: dict[tuple[str, int | None, int | None], Sighting] = {}
    for one in seen:
        key = one.who.role, one.who.worker, one.who.rank
        there = parts.get(key)
        if there is None or (len(one.facts) > len(there.facts) and not one.at):
            parts[key] = one
    return tuple(parts.values())
