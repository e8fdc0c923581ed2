"""Evidence in; for each run what is wrong with it, the likeliest cause first, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.diagnose.cause import ENDING, ROOT, Cause
from gangplan.diagnose.causes import causes
from gangplan.diagnose.evidence import Evidence, Log, Sighting, Thing
from gangplan.diagnose.objects import sightings_of
from gangplan.diagnose.things import run_of
from gangplan.live.states import State, state
from gangplan.model.backend import BY_KIND
from gangplan.records import dataclass

_SOURCE = "gangplan.dev/source"
_TEAM = "gangplan.dev/team"


@dataclass(frozen=True, slots=True)
class Found:
    """A cause, and where it was seen: each part of the run once, the earliest first; `count` is how often in all."""

    cause: Cause
    seen: tuple[Sighting, ...]
    count: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a run: `found` has the roots first, then what follows from them.

    `name` is empty for what belongs to no run that is known; `state` is None where the run itself was not saved.
    """

    name: str
    team: str
    namespace: str
    spec: str
    state: State | None
    found: tuple[Found, ...]
    logs: tuple[Log, ...]
    has_objects: bool

    @property
    def roots(self) -> tuple[Found, ...]:
        """What stands for itself; else, where no root is known, the symptoms."""
        return tuple(one for one in self.found if not one.follows)

    @property
    def is_known(self) -> bool:
        """Whether anything more is known than that it ended."""
        return any(one.cause.depth != ENDING for one in self.found)

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: it runs, waits for nothing, or is complete. A log alone does not say so."""
        word = self.state.word if self.state else ""
        return not self.found and self.has_objects and word not in ("failed", "preempted", "suspended")


def verdicts(evidence: Evidence, named: str = "") -> tuple[Verdict, ...]:
    """The verdict of each run, by name; what belongs to none is of the only run, else of its own.

    With `named`, that run alone; none where nothing is known of it.
    """
    runs = _runs(evidence)
    sightings = [*sightings_of(evidence.things), *(one for log in evidence.logs for one in log.sightings)]
    names = {name for one in sightings if (name := one.who.run)} | set(runs)
    names |= {log.who.run for log in evidence.logs} | {run_of(thing) for thing in evidence.things}
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
        _verdict(name, runs.get(name), by_run[name], logs.get(name, ()), evidence.things)
        for name in wanted
        if name in by_run
    )


def _runs(evidence: Evidence) -> dict[str, Thing]:
    found = {thing.name: thing for thing in evidence.things if thing.kind == "JobSet"}
    return found | {thing.name: thing for thing in evidence.things if thing.kind in BY_KIND}


def _verdict(
    name: str, run: Thing | None, sightings: Sequence[Sighting], logs: Sequence[Log], things: Sequence[Thing]
) -> Verdict:
    kin = [thing for thing in things if name and run_of(thing) == name]
    at = None
    if run is not None and run.kind in BY_KIND:
        workload = next((thing.body for thing in kin if thing.kind == "Workload"), None)
        at = state(_whole(run.body), _whole(workload) if workload is not None else None)
    metadata = (run.body.get("metadata") or {}) if run else {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    team = str((metadata.get("labels") or {}).get(_TEAM) or "")
    spec = str(annotations.get(_SOURCE) or "")
    namespace = run.namespace if run else next((thing.namespace for thing in kin if thing.namespace), "")
    return Verdict(
        name,
        team,
        namespace,
        spec,
        at,
        _found(_standing(sightings, at)),
        tuple(logs),
        bool(kin or run) or (not name and bool(things)),
    )


def _whole(body: dict[str, object]) -> dict[str, object]:
    """The object with the conditions that are whole: saved files may be cut by hand."""
    status = body.get("status")
    if not isinstance(status, dict):
        return {**body, "status": {}}
    conditions = status.get("conditions")
    whole = (
        [one for one in conditions or () if isinstance(one, dict) and {"type", "status"} <= one.keys()]
        if isinstance(conditions, list)
        else []
    )
    return {**body, "status": {**status, "conditions": whole}}


def _standing(sightings: Sequence[Sighting], at: State | None) -> Sequence[Sighting]:
    """What still counts. Of a run that is complete nothing does; of one that runs, what held it up before does not."""
    if at is None:
        return sightings
    if at.word in ("complete", "stopped"):
        return ()
    if at.word in ("running", "new"):
        return [one for one in sightings if one.cause not in _PASSED]
    return sightings


# The cause of any traceback, and how many characters of two lines must be the same to be one.
_EXCEPTION, _LIKE = "exception", 120
_TORCHRUN = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
# What a run that is running has behind it.
_PASSED = frozenset(
    {
        "quota-wait", "quota-never", "queue-inactive", "topology-full", "admission-check", "preempted", "not-ready-in-time",
        "object-quota", "no-gpu", "no-room", "no-matching-node", "volume-pending", "mount-failed", "image-pull",
    }
)  # fmt: skip


def _found(sightings: Sequence[Sighting]) -> tuple[Found, ...]:
    known = causes()
    groups: dict[str, list[Sighting]] = {}
    for one in _once(sightings, known):
        groups.setdefault(one.cause, []).append(one)
    ranked = sorted(groups, key=lambda name: _rank(known[name], groups[name]))
    least = min((known[name].depth for name in ranked), default=ROOT)
    found = []
    for name in ranked:
        cause = known[name]
        seen = sorted(groups[name], key=lambda one: (one.at or "9", one.file, one.line))
        found.append(Found(cause, _each(seen), len(seen), cause.depth > least))
    return tuple(found)


def _once(sightings: Sequence[Sighting], known: Mapping[str, Cause]) -> Sequence[Sighting]:
    """Without the exceptions whose last line is itself another symptom, which says more.

    torchrun's own exception says that a rank ended; how it did stands below.
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


def _rank(cause: Cause, seen: Sequence[Sighting]) -> tuple[int, int, str, int, str]:
    """Roots before symptoms, what has a time by that, then what stands earlier in logs; objects before logs."""
    times = [one.at for one in seen if one.at]
    lines = min((one.line for one in seen), default=0)
    return cause.depth, 0 if times else 1, min(times, default=""), lines, cause.id


def _each(seen: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """One sighting of each part of the run, the most telling one: with facts before without."""
    parts: dict[tuple[str, int | None, int | None], Sighting] = {}
    for one in seen:
        key = one.who.role, one.who.worker, one.who.rank
        there = parts.get(key)
        if there is None or (len(one.facts) > len(there.facts) and not one.at):
            parts[key] = one
    return tuple(parts.values())
