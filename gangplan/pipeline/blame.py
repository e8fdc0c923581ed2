"""Search for the patched object of a cluster that spoils its runs, to report it once instead of once per
run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial

from gangplan.component import Component, OperationStates
from gangplan.component.undo import ProblemKey
from gangplan.findings import FieldPath, Finding, Location, Waived
from gangplan.objects import Body, walk_leaves
from gangplan.records import dataclass
from gangplan.rules.model import Deduplication
from gangplan.validate.problems import Problem
from gangplan.validate.proofs import PROOFS, may_read
from gangplan.validate.world import BuiltRun, World
from gangplan.workspace import OVERLAYS


def problem_key_of(index: int, problem: Problem) -> ProblemKey:
    """Return the key of a problem: object, rule and path."""
    return (index, problem.rule), problem.path


@dataclass(slots=True)
class ProvenRun:
    """A run in which a proof found something, on a cluster whose component may patch it or the cluster's
    objects.

    `plain` makes the world as generated. Only this proof is repeated, and only as often as needed: no other
    proof reports the same rule.
    """

    proof: str
    world: World
    run: BuiltRun
    component: Component
    plain: Callable[[], World] | None = None
    _own: set[ProblemKey] | None = None
    _bare: set[ProblemKey] | None = None
    _undone: OperationStates | None = None
    _standing: OperationStates | None = None
    _near: list[int] = field(default_factory=list)

    def is_of_patch(self, key: ProblemKey) -> bool:
        """Return whether the objects of the run as generated do not have the problem."""
        if not self.component.patches or self.run.bodies == self.run.generated:
            return False
        if self._own is None:
            self._own = set(self._keys(self.world, self.run.generated))
        return key not in self._own

    def is_of_cluster(self, key: ProblemKey) -> bool:
        """Return whether the generated objects do not have the problem in an unpatched world.

        Call `is_of_patch` first.
        """
        if not self.component.patches or self.plain is None or (plain := self.plain()) is self.world:
            return False
        if self._bare is None:
            self._bare = set(self._keys(plain, self.run.generated))
        return key not in self._bare

    def culprit(self, key: ProblemKey) -> tuple[Body, FieldPath, Location] | None:
        """Return the cluster object whose patch causes the problem, the field, and the operation; None
        without one."""
        standing, plain = self.world.standing, self.plain().standing if self.plain else ()
        if self._standing is None:
            home = self.run.unit.job.namespace
            self._near = [
                index
                for index, (built, generated) in enumerate(zip(standing, plain, strict=True))
                if built != generated
                and built["metadata"].get("namespace", home) == home
                and may_read(self.proof, built, home)
            ]
            near = [plain[index] for index in self._near]
            self._standing = OperationStates(self.component, near, self._keys_of_standing)
        undone = self._standing
        if (number := undone.cause(key)) is None:
            return None
        before, after = undone.states[number : number + 2]
        index = next(at for at, body in enumerate(after) if body is not before[at])
        path = _find_first_patched_field(before[index], after[index])
        return standing[self._near[index]], path, undone.place(number, index, path)

    def patched_place(self, key: ProblemKey) -> Location:
        """Return the operation on the run's own objects without which the problem would not be there."""
        if self._undone is None:
            self._undone = OperationStates(
                self.component, self.run.generated, partial(self._keys, self.world)
            )
        return self._undone.blamed(key, self.run.bodies[key[0][0]])

    def _keys_of_standing(self, near: Sequence[Body]) -> list[ProblemKey]:
        standing = list(self.world.standing)
        for index, body in zip(self._near, near, strict=True):
            standing[index] = body
        return self._keys(replace(self.world, standing=tuple(standing)), self.run.generated)

    def _keys(self, world: World, bodies: Sequence[Body]) -> list[ProblemKey]:
        """Return the keys of what the proof finds in the objects."""
        run = BuiltRun(self.run.unit, tuple(bodies))
        return [problem_key_of(index, problem) for index, problem in PROOFS[self.proof](world, run)]


def _find_first_patched_field(before: Body, built: Body) -> FieldPath:
    """Return the first field that an operation changed, added or removed."""
    old, new = dict(walk_leaves(before)), dict(walk_leaves(built))
    for path, value in new.items():
        if path not in old or old[path] != value:
            return path
    return next((path for path in old if path not in new), ())


def drop_findings_with_repeated_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Drop findings that repeat a cause: keep one for each patched object and for each fact of a cluster's
    file.

    Findings of runs are dropped where an object is reported at the same patch for what it says itself. If
    several runs suffer from one object (named without its namespace, see checks.prove_run), the first is
    kept.
    """
    findings = list(findings)
    rules = {id(one.rule): one.rule for one in findings}.values()
    if not any(rule.is_policy or rule.echo is not Deduplication.EACH for rule in rules):
        return findings  # none of them is about a cause that others share
    every = _merge_repeated_patch_findings(_drop_policy_findings_with_repeated_cause(findings))
    blamed = {finding.where for finding in every if finding.rule.echo is Deduplication.CAUSE}
    first: dict[tuple[str, Location, str], Finding] = {}
    of_runs = (finding for finding in every if finding.rule.echo is Deduplication.RUN)
    for finding in sorted(of_runs, key=lambda one: one.sort_key):
        first.setdefault((finding.rule, finding.where, finding.object_ref), finding)
    return [
        one
        for one in every
        if one.rule.echo is not Deduplication.RUN
        or (one.where not in blamed and (not _is_of_cluster(one) or _is_first(one, first)))
    ]


def _drop_policy_findings_with_repeated_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Drop what policies report in the same words for several runs where the cluster's file is the cause."""
    found: list[Finding] = []
    told: set[tuple[str, Location, str, Waived | None]] = set()
    findings = list(findings)
    if not any(one.rule.is_policy or one.rule.echo is Deduplication.PATCH for one in findings):
        return findings  # nothing can repeat, so the order may stay
    for one in sorted(findings, key=lambda one: one.sort_key):
        if one.where.file.endswith("/cluster.yaml") and one.rule.is_policy:
            key = one.rule, one.where, one.message, one.waiver
            if key in told:
                continue
            told.add(key)
        found.append(one)
    return found


def _merge_repeated_patch_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Report what one operation of a patch does to many runs once, at the first run, with the number of
    others."""
    first: dict[tuple[str, Location, str], int] = {}
    runs: dict[int, set[str]] = {}
    found: list[Finding] = []
    for one in findings:
        if one.rule.echo is Deduplication.PATCH and one.where.file.startswith(f"{OVERLAYS}/"):
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
