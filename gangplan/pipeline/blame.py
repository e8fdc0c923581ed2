"""Which patched object of a cluster spoils its runs: told once, at the patch, instead of once per run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gangplan.component import Component
from gangplan.findings import Finding, Location, Waived
from gangplan.objects import Body, Path, walk
from gangplan.records import dataclass
from gangplan.rules.model import Echo
from gangplan.validate.problems import Problem
from gangplan.validate.proofs import PROOFS, may_read
from gangplan.validate.world import BuiltRun, World
from gangplan.workspace import OVERLAYS

Key = tuple[str, Path]


def key_of(problem: Problem) -> Key:
    """A problem by rule and path."""
    return problem.rule, problem.path


@dataclass(slots=True)
class Trial:
    """A run of which a proof found something, on a cluster whose component may patch it or what stands there.

    `plain` makes the world as generated. The same proof is asked again, and only as far as needed: no other
    proof tells the same rule.
    """

    proof: str
    world: World
    run: BuiltRun
    component: Component
    plain: Callable[[], World] | None = None
    _own: set[Key] | None = None
    _bare: set[Key] | None = None

    def is_of_patch(self, problem: Problem) -> bool:
        """Whether the objects of the run as generated do not have the problem."""
        if not self.component.patches or self.run.bodies == self.run.generated:
            return False
        if self._own is None:
            self._own = self._keys(self.world, self.run.generated)
        return key_of(problem) not in self._own

    def is_of_cluster(self, problem: Problem) -> bool:
        """Whether they do not have it where nothing is patched; ask `is_of_patch` first."""
        if not self.component.patches or self.plain is None or (plain := self.plain()) is self.world:
            return False
        if self._bare is None:
            self._bare = self._keys(plain, self.run.generated)
        return key_of(problem) not in self._bare

    def culprit(self, problem: Problem) -> tuple[Body, Path, Location] | None:
        """The standing object without whose patch it would not be there, the field, and the patch."""
        standing = self.world.standing
        pairs = zip(standing, self.plain().standing if self.plain else (), strict=True)
        home = self.run.unit.job.namespace
        for index, (built, generated) in enumerate(pairs):
            near = built["metadata"].get("namespace", home) == home
            if not near or not may_read(self.proof, built, home) or built == generated:
                continue
            restored = replace(self.world, standing=(*standing[:index], generated, *standing[index + 1 :]))
            if key_of(problem) not in self._keys(restored, self.run.generated):
                path = _changed(generated, built)
                return built, path, self.component.place_of(path, generated)
        return None

    def patched_place(self, problem: Problem) -> Location:
        """The patch of the run's own objects without which the problem would not be there; else the file."""
        built = self.run.bodies
        for index, generated in enumerate(self.run.generated):
            if built[index] != generated:
                restored = (*built[:index], generated, *built[index + 1 :])
                if key_of(problem) not in self._keys(self.world, restored):
                    return self.component.place_of(_changed(generated, built[index]), generated)
        return Location(self.component.file, 1, 1)

    def _keys(self, world: World, bodies: Sequence[Body]) -> set[Key]:
        """What the proof finds of objects, by rule and path."""
        run = BuiltRun(self.run.unit, tuple(bodies))
        return {key_of(problem) for _, problem in PROOFS[self.proof](world, run)}


def _changed(before: Body, built: Body) -> Path:
    """The first field that a patch changed, added or took away."""
    old, new = dict(walk(before)), dict(walk(built))
    for path, value in new.items():
        if path not in old or old[path] != value:
            return path
    return next((path for path in old if path not in new), ())


def without_echoes(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, a patched object of the cluster told once, and what its file says too.

    Those of runs go where an object is blamed for the same patch by what it says itself, and of several runs
    that suffer from one object (told without its namespace, see gates.prove_run) the first one speaks.
    """
    every = _promises_once(_facts_once(findings))
    blamed = {finding.where for finding in every if finding.rule.echo is Echo.CAUSE}
    first: dict[tuple[str, Location, str], Finding] = {}
    of_runs = (finding for finding in every if finding.rule.echo is Echo.RUN)
    for finding in sorted(of_runs, key=lambda one: one.sort_key):
        first.setdefault((finding.rule, finding.where, finding.object_ref), finding)
    return [
        one
        for one in every
        if one.rule.echo is not Echo.RUN
        or (one.where not in blamed and (not _is_of_cluster(one) or _is_first(one, first)))
    ]


def _facts_once(findings: Iterable[Finding]) -> list[Finding]:
    """Without what policies say in the same words of several runs, where the cluster's file is to blame."""
    found: list[Finding] = []
    told: set[tuple[str, Location, str, Waived | None]] = set()
    findings = list(findings)
    if not any(one.rule.is_policy or one.rule.echo is Echo.PATCH for one in findings):
        return findings  # then their order matters to nobody
    for one in sorted(findings, key=lambda one: one.sort_key):
        if one.where.file.endswith("/cluster.yaml") and one.rule.is_policy:
            key = one.rule, one.where, one.message, one.waiver
            if key in told:
                continue
            told.add(key)
        found.append(one)
    return found


def _promises_once(findings: Sequence[Finding]) -> list[Finding]:
    """What one operation of a patch makes of many runs: told of the first one, with how many more."""
    first: dict[tuple[str, Location, str], int] = {}
    runs: dict[int, set[str]] = {}
    found: list[Finding] = []
    for one in findings:
        if one.rule.echo is Echo.PATCH and one.where.file.startswith(f"{OVERLAYS}/"):
            at = first.setdefault((one.rule, one.where, one.path), len(found))
            runs.setdefault(at, set()).add(one.object_ref)
            if at < len(found):
                continue
        found.append(one)
    for at, objects in runs.items():
        if len(objects) > 1:
            more = f"{len(objects) - 1} more {'run' if len(objects) == 2 else 'runs'}"
            found[at] = replace(found[at], message=f"{found[at].message} (and {more})")
    return found


def _is_of_cluster(finding: Finding) -> bool:
    return finding.object_ref.count("/") == 1


def _is_first(finding: Finding, first: dict[tuple[str, Location, str], Finding]) -> bool:
    return first[finding.rule, finding.where, finding.object_ref] == finding
