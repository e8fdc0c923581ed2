"""The built-in rules of a kind at the versions of a cluster.

tests/policy/test_crd_rules.py compares each of them with the CRD's own rule on random objects.
"""

from __future__ import annotations

from functools import cache

from gangplan.cel.kept import KeptPrograms
from gangplan.model.support import parse_line_key
from gangplan.validate.apiserver.crdrules.kueue_facts import KUEUE_FACTS
from gangplan.validate.apiserver.crdrules.rule_fact import JOBSET_GROUP, KUEUE_GROUP, TRAINER_GROUP, RuleFact
from gangplan.validate.apiserver.crdrules.rules import CompiledRule, compile_crd_rule
from gangplan.validate.apiserver.crdrules.trainer_facts import TRAINER_FACTS
from gangplan.validate.apiserver.schema import SchemaVersions

FACTS: tuple[RuleFact, ...] = (*TRAINER_FACTS, *KUEUE_FACTS)
_COMPONENT = {TRAINER_GROUP: "trainer", JOBSET_GROUP: "jobset", KUEUE_GROUP: "kueue"}


def compile_built_in_crd_rules(
    api_version: str, kind: str, versions: SchemaVersions
) -> tuple[CompiledRule, ...]:
    """Return the compiled rules of a kind at the versions of a cluster; () if it has none."""
    group, _, version = api_version.rpartition("/")
    component = _COMPONENT.get(group)
    minor = versions.minor(component) if component else None
    if minor is None:
        return ()
    return _compile_crd_rules_of_kind(group, version, kind, minor, parse_line_key(versions.kubernetes)[1])


@cache
def _compile_crd_rules_of_kind(
    group: str, version: str, kind: str, minor: str, kubernetes: int
) -> tuple[CompiledRule, ...]:
    names = {(group, kind), (f"{group}/{version}", kind)}
    rules = [
        fact.rule
        for fact in FACTS
        if names & set(fact.kinds)
        and parse_line_key(fact.since) <= parse_line_key(minor) <= parse_line_key(fact.until)
    ]
    if not rules:
        return ()
    programs = KeptPrograms(f"{kind}-rules")
    compiled = tuple(compile_crd_rule(rule, kubernetes, programs=programs) for rule in rules)
    programs.save()
    return compiled
