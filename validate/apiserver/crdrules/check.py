"""The rules of CRDs as problems of objects: of one object, and of a change from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.model.support import minor_key
from gangplan.rules.policy import CRD_RULE
from gangplan.validate.apiserver.crdrules.builtin import rules_of
from gangplan.validate.apiserver.crdrules.registry import Imported
from gangplan.validate.apiserver.crdrules.rules import Breach, CompiledRule, breaches
from gangplan.validate.apiserver.defaulting.apply import with_defaults
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.problems import Problem, place

Body = dict[str, Any]


def _rules(body: Body, versions: SchemaVersions) -> Sequence[CompiledRule]:
    """Return the rules of an object's kind: those of the imported CRD if there is one, or built-in ones."""
    api_version, kind = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
    if isinstance(versions.crds, Imported):
        found = versions.crds.rules(api_version, kind, minor_key(versions.kubernetes)[1])
        if found is not None:
            return found
    return rules_of(api_version, kind, versions)


def problems(body: Body, versions: SchemaVersions) -> list[Problem]:
    """Return what the CRD's rules refuse in an object that fits its schema."""
    rules = _rules(body, versions)
    if not rules:
        return []
    return [_problem(one) for one in breaches(rules, with_defaults(body, versions))]


def changed(old: Body, new: Body, versions: SchemaVersions) -> list[Problem]:
    """Return what the CRD's rules refuse in the change from one state of an object to the next."""
    rules = _rules(new, versions)
    if not rules:
        return []
    before, after = with_defaults(old, versions), with_defaults(new, versions)
    return [_problem(one) for one in breaches(rules, after, before, only_transitions=True)]


def _problem(breach: Breach) -> Problem:
    help = f"The cluster's CRD asks for: {breach.rule.text.strip()}"
    return Problem(breach.path, f"{place(breach.path)}: {breach.message}", help, CRD_RULE)
