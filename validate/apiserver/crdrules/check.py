"""The rules of CRDs as problems of objects: of one object, and of a change from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.support import parse_line_key
from gangplan.objects import Body
from gangplan.rules.policy import CRD_RULE
from gangplan.validate.apiserver.crdrules.builtin import compile_built_in_crd_rules
from gangplan.validate.apiserver.crdrules.registry import ImportedCrds
from gangplan.validate.apiserver.crdrules.rules import Breach, CompiledRule, find_crd_rule_breaches
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.problems import Problem, describe_path


def _find_crd_rules(body: Body, versions: SchemaVersions) -> Sequence[CompiledRule]:
    """Return the rules of an object's kind: those of the imported CRD if there is one, or built-in ones."""
    api_version, kind = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
    if isinstance(versions.crds, ImportedCrds):
        found = versions.crds.rules(api_version, kind, parse_line_key(versions.kubernetes)[1])
        if found is not None:
            return found
    return compile_built_in_crd_rules(api_version, kind, versions)


def check_crd_rules(body: Body, versions: SchemaVersions) -> list[Problem]:
    """Return what the CRD's rules refuse in an object that fits its schema."""
    rules = _find_crd_rules(body, versions)
    if not rules:
        return []
    return [
        _describe_crd_breach(one)
        for one in find_crd_rule_breaches(rules, fill_api_server_defaults(body, versions))
    ]


def check_crd_transition_rules(old: Body, new: Body, versions: SchemaVersions) -> list[Problem]:
    """Return what the CRD's rules refuse in the change from one state of an object to the next."""
    rules = _find_crd_rules(new, versions)
    if not rules:
        return []
    before, after = fill_api_server_defaults(old, versions), fill_api_server_defaults(new, versions)
    return [
        _describe_crd_breach(one)
        for one in find_crd_rule_breaches(rules, after, before, only_transitions=True)
    ]


def _describe_crd_breach(breach: Breach) -> Problem:
    help = f"The cluster's CRD asks for: {breach.rule.text.strip()}"
    return Problem(breach.path, f"{describe_path(breach.path)}: {breach.message}", help, CRD_RULE)
