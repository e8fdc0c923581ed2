"""Which patched object of a cluster spoils its runs: told once, at the patch, instead of once per run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gangplan.component import Component
from gangplan.findings import Finding, Location, Waived
from gangplan.objects import Body, Path, walk
from gangplan.plan import Unit
from gangplan.rules.model import Echo
from gangplan.validate.problems import Problem
from gangplan.validate.proofs import prove
from gangplan.validate.world import BuiltRun, World
from gangplan.workspace import OVERLAYS

Key = tuple[str, Path]


def keys(world: World, unit: Unit, bodies: Sequence[Body]) -> set[Key]:
    """What the proofs find, by rule and path."""
    return {key_of(problem) for _, problem in prove(world, BuiltRun(unit, tuple(bodies)))}


def key_of(problem: Problem) -> Key:
    """A problem by rule and path."""
    return problem.rule, problem.path


def culprit(
    world: World, plain: World, unit: Unit, before: Sequence[Body], wanted: Key, component: Component
) -> tuple[Body, Path, Location] | None:
    """The standing object without whose patch a run's problem would not be there, its field, and the patch.

    `plain` is the world as generated, in which the problem is not found.
    """
    pairs = list(zip(world.standing, plain.standing, strict=True))
    home = unit.job.namespace
    for index, (built, generated) in enumerate(pairs):
        near = built["metadata"].get("namespace", home) == home
        if built == generated or not near:
            continue
        restored = (*world.standing[:index], generated, *world.standing[index + 1 :])
        if wanted not in keys(replace(world, standing=restored), unit, before):
            path = _changed(generated, built)
            return built, path, component.place_of(path, generated)
    return None


def patched_place(
    world: World, unit: Unit, built: Sequence[Body], before: Sequence[Body], wanted: Key, component: Component
) -> Location:
    """The patch of the run's own objects without which a problem would not be there; else the file."""
    for index, generated in enumerate(before):
        if built[index] != generated:
            restored = [*built[:index], generated, *built[index + 1 :]]
            if wanted not in keys(world, unit, restored):
                return component.place_of(_changed(generated, built[index]), generated)
    return Location(component.file, 1, 1)


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
    for finding in sorted(every, key=lambda one: one.sort_key):
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
