"""Results of specs and clusters as JSON, for the cache, and back.

Only what reads back as the same value is kept: a finding of a rule that the workspace cannot name is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

from gangplan.emit import FileOutcome, TreeChange
from gangplan.findings import NO_CLUE, Clue, Finding, Fix, Location, Waived
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.worker import TaskResult
from gangplan.rules.model import Rule, Severity
from gangplan.validate.kueue.contention import RunDemand

Json = Any
RuleFinder = Callable[[str], Rule | None]


# Indexes of the list that `dump_expanded_task_result` returns.
_DEMANDS, _POLICIES, _FACTS = 4, 7, 8
# How many fields of a run's facts are its own, with that of its spec; the rest is shared.
_OWN = 6
_NAMES = [one.name for one in fields(RunFacts)]
# The shared fields that say whether a schedule starts runs.
SCHEDULE_FIELDS = slice(_NAMES.index("schedule") - _OWN, _NAMES.index("repeats") + 1 - _OWN)


class SharedValues:
    """The values that many results of a record have in common, each once, by its kind and number."""

    __slots__ = ("_numbers", "values")

    def __init__(self, values: Mapping[str, list[Json]]) -> None:
        self.values = {kind: list(own) for kind, own in values.items()}
        self._numbers: dict[tuple[str, str], int] | None = None  # most records are only read

    def number(self, kind: str, value: Json) -> int:
        """Return the number of a value among those of a kind, and add it if it is new."""
        if self._numbers is None:
            every = (
                (kind, number, one) for kind, own in self.values.items() for number, one in enumerate(own)
            )
            self._numbers = {(kind, json.dumps(one)): number for kind, number, one in every}
        key = kind, json.dumps(value)
        if key not in self._numbers:
            own = self.values.setdefault(kind, [])
            self._numbers[key] = len(own)
            own.append(value)
        return self._numbers[key]


def dump_stored_finding(finding: Finding, rules: RuleFinder) -> Json:
    """Return a finding as JSON. Raises ValueError if `rules` finds another rule by its name, or none."""
    known = rules(finding.rule)
    if known is None or vars(known) != vars(finding.rule):
        raise ValueError(f"no rule {finding.rule}")
    waiver, fix = finding.waiver, finding.fix
    return [
        str(finding.rule),
        place_json(finding.where),
        finding.message,
        finding.help,
        finding.object_ref,
        finding.path,
        None
        if waiver is None
        else [place_json(waiver.where), waiver.until, waiver.reason, waiver.approver, waiver.is_over],
        None if fix is None else [getattr(fix, one.name) for one in fields(Fix)],
        list(finding.clusters),
        None if finding.level is None else int(finding.level),
        finding.clue.until,
    ]


def load_stored_finding_rule(name: str, rules: RuleFinder) -> Rule:
    """Return the rule of a name. Raises ValueError if there is none."""
    rule = rules(name)
    if rule is None:
        raise ValueError(f"no rule {name}")
    return rule


def load_stored_finding(held: Json, rules: RuleFinder) -> Finding:
    """Read a finding. Raises ValueError if there is no such rule."""
    name, where, message, help, ref, path, waiver, fix, clusters, level, until = held
    return Finding(
        load_stored_finding_rule(name, rules),
        load_location(where),
        message,
        help,
        ref,
        path,
        None if waiver is None else Waived(load_location(waiver[0]), *waiver[1:]),
        None if fix is None else Fix(*fix),
        tuple(clusters),
        None if level is None else Severity(level),
        Clue(until=until) if until else NO_CLUE,
    )


def place_json(where: Location) -> Json:
    """Return a place as JSON."""
    return [where.file, where.line, where.column, where.end]


def load_location(held: Json) -> Location:
    """Read a place."""
    return Location(*held)


def dump_run_demand(demand: RunDemand) -> Json:
    """Return what a run asks for as JSON: amounts are exact fractions, as text."""
    return [
        demand.count,
        {name: str(amount) for name, amount in demand.each.items()},
        demand.groups,
        demand.is_gang,
        demand.queue,
        demand.priority,
        demand.resumes,
        demand.gives_way,
        demand.borrows,
        *(
            None if own is None else [[*key, str(amount)] for key, amount in own.items()]
            for own in (demand.usage, demand.most)
        ),
    ]


def load_run_demand(held: Json) -> RunDemand:
    """Read what a run asks for."""
    count, each, groups, *plain, usage, most = held
    return RunDemand(
        count,
        {name: _parse_fraction(amount) for name, amount in each.items()},
        tuple(groups),
        *plain,
        *(
            None if own is None else {(flavor, name): _parse_fraction(amount) for flavor, name, amount in own}
            for own in (usage, most)
        ),
    )


@lru_cache(4096)
def _parse_fraction(text: str) -> Fraction:
    return Fraction(text)


def dump_expanded_task_result(result: TaskResult, rules: RuleFinder, shared: SharedValues) -> Json:
    """Return the result of a spec as JSON. Values that many have in common are in `shared`, by their numbers.

    Raises ValueError if it would not read back the same.
    """
    demands = [
        [cluster, job, place_json(place), shared.number("demands", dump_run_demand(demand))]
        for cluster, job, place, demand in result.demands
    ]
    return [
        [dump_stored_finding(one, rules) for one in result.findings],
        [[change.path, change.digest] for change in result.changes],
        [[cluster, namespace, job, place_json(place)] for cluster, namespace, job, place in result.jobs],
        {cluster: sorted(numbers) for cluster, numbers in result.matched.items()},
        demands,
        result.objects,
        result.active,
        shared.number("policies", sorted(result.policies)),
        [_dump_run_facts(one, shared) for one in result.facts],
    ]


def _dump_run_facts(facts: RunFacts, shared: SharedValues) -> Json:
    """Return the facts of a run: its own, and the number of those that many runs have in common."""
    every = [getattr(facts, one.name) for one in fields(RunFacts)]
    return [*every[1:_OWN], list(facts.retired), shared.number("facts", every[_OWN:-1])]


def load_run_facts(file: str, held: Json, common: Sequence[Any]) -> RunFacts:
    """Read the facts of a run, with those that it has in common with others."""
    *own, retired, _ = held
    return RunFacts(*[file, *own, *common, tuple(retired)])


def load_expanded(file: str, held: Json, rules: RuleFinder, shared: Mapping[str, list[Any]]) -> TaskResult:
    """Read the result of a spec; `shared` has its demands and sets of policies as values. Raises
    ValueError."""
    findings, changes, jobs, matched, demands, objects, active, policies, facts = held
    return TaskResult(
        file,
        findings=[load_stored_finding(one, rules) for one in findings],
        changes=[TreeChange(path, FileOutcome.SAME, digest) for path, digest in changes],
        jobs=[(cluster, namespace, job, Location(*place)) for cluster, namespace, job, place in jobs],
        matched={cluster: set(numbers) for cluster, numbers in matched.items()},
        demands=[
            (cluster, job, Location(*place), shared["demands"][number])
            for cluster, job, place, number in demands
        ],
        objects=objects,
        active=active,
        policies=shared["policies"][policies],
        facts=[load_run_facts(file, one, shared["facts"][one[-1]]) for one in facts],
    )


def load_shared_result_values(held: Mapping[str, list[Json]]) -> dict[str, list[Any]]:
    """Read the values that the results of a record have in common."""
    return {
        "demands": [load_run_demand(one) for one in held.get("demands", ())],
        "policies": [set(one) for one in held.get("policies", ())],
        "facts": list(held.get("facts", ())),
    }


def compact_shared_result_values(
    results: Sequence[Json], shared: Mapping[str, list[Json]]
) -> dict[str, list[Json]]:
    """Return the part of `shared` that these results still use; their numbers are changed in place."""
    kept = SharedValues({})
    for told in results:
        for demand in told[_DEMANDS]:
            demand[-1] = kept.number("demands", shared["demands"][demand[-1]])
        told[_POLICIES] = kept.number("policies", shared["policies"][told[_POLICIES]])
        for facts in told[_FACTS]:
            facts[-1] = kept.number("facts", shared["facts"][facts[-1]])
    return kept.values
