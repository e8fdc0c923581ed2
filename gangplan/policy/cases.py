"""Run the test cases of packs and of a workspace's own policies, and report the cases that fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gangplan.findings import Finding, Location
from gangplan.model.backend import TRAINJOB
from gangplan.objects import POLICY_KIND, Body
from gangplan.packs.cases import PolicyCase, read_pack_cases
from gangplan.packs.model import FactParam
from gangplan.packs.read import POLICIES_FOLDER, PolicySource
from gangplan.policy.choose import ChosenPolicy, format_policy_parameter
from gangplan.policy.objects import (
    NAMESPACE_TEAM_LABEL,
    build_policy_bindings,
    build_policy_parameters_object,
    has_parameters,
)
from gangplan.records import dataclass
from gangplan.rules.model import Severity
from gangplan.rules.objects import SCHEMA_MISSING
from gangplan.rules.policy import POLICY_CASE, POLICY_UNTESTED
from gangplan.validate.apiserver.crdrules.registry import read_imported_crds
from gangplan.validate.apiserver.defaulting.omitted import drop_nulls
from gangplan.validate.apiserver.policy.judge import Namespaces, PolicyEvaluator
from gangplan.validate.apiserver.policy.kinds import read_extra_kinds
from gangplan.validate.apiserver.policy.matching import UndecidableError
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import PolicyReading, read_policy_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import check_object_against_api_schema as schema_problems
from gangplan.validate.problems import Problem
from gangplan.workspace import Workspace

# Cases are judged at the versions of the sample cluster of the newest profile.
VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")
# Facts that follow from these versions; others are empty until a case sets them.
FACTS = {"deadlineKind": TRAINJOB.kind}


@dataclass(frozen=True, slots=True, eq=False)
class Suite:
    """The policies whose cases are in one folder. `pack` is empty for a workspace's own policies.

    Cases are judged at `versions`, with the CRDs that the workspace imported.
    """

    pack: str
    folder: Path
    shown: str
    policies: Mapping[str, ChosenPolicy] = field(default_factory=dict)
    own: tuple[PolicySource, ...] = ()
    versions: SchemaVersions = VERSIONS


def build_policy_case_suites(workspace: Workspace) -> list[Suite]:
    """Return a suite for every pack that a workspace can name, and one for its own policies."""
    found: list[Suite] = []
    versions = replace(VERSIONS, crds=read_imported_crds(workspace.crds))
    for name in workspace.policies.names:
        folder, _ = workspace.policies.find(name)
        if folder is None:
            continue
        policies = {
            policy: ChosenPolicy(
                policy,
                policy,
                page,
                folder.policies[policy],
                "Deny",
                folder.pack.label,
                _format_default_policy_parameters(page.params),
            )
            for policy, page in folder.pack.policies.items()
            if policy in folder.policies
        }
        found.append(
            Suite(name, folder.folder / "tests", f"{POLICIES_FOLDER}/{name}/tests", policies, (), versions)
        )
    own = workspace.policies.sources
    mine = [
        str((one.body.get("metadata") or {}).get("name"))
        for one in own
        if one.body.get("kind") == POLICY_KIND
    ]
    if mine:
        empty: Mapping[str, Any] = dict.fromkeys(mine)
        found.append(
            Suite(
                "",
                workspace.root / POLICIES_FOLDER / "tests",
                f"{POLICIES_FOLDER}/tests",
                empty,
                own,
                versions,
            )
        )
    return found


def _format_default_policy_parameters(params: Mapping[str, Any]) -> dict[str, str]:
    """Return default parameters as text."""
    return {
        key: FACTS.get(value.fact, "") if isinstance(value, FactParam) else format_policy_parameter(value)
        for key, value in params.items()
    }


def judge_policy_cases(suite: Suite, wanted: Collection[str]) -> tuple[int, list[Finding]]:
    """Return the number of cases of the wanted policies, and findings for cases that fail and policies
    without any."""
    cases, findings = read_pack_cases(suite.folder, suite.shown)
    mine = [case for case in cases if case.policy in wanted]
    for case in cases:
        if case.policy not in suite.policies:
            findings.append(
                Finding(
                    POLICY_CASE,
                    case.where,
                    f"there is no policy '{case.policy}' next to it",
                    "Rename the file.",
                )
            )
    for policy in sorted(set(wanted) - {case.policy for case in mine}):
        where = _locate_policy_of_case_suite(suite, policy)
        help = f"Add {policy}.<case>.allow.yaml and {policy}.<case>.deny.yaml."
        findings.append(Finding(POLICY_UNTESTED, where, f"policy '{policy}' has no case", help))
    return len(mine), [*findings, *(one for case in mine for one in judge_policy_case(suite, case))]


def _locate_policy_of_case_suite(suite: Suite, policy: str) -> Location:
    """Return the line that names a policy."""
    chosen = suite.policies.get(policy)
    for one in suite.own if chosen is None else (chosen.source,):
        if one.document and (one.body.get("metadata") or {}).get("name") == policy:
            return one.document.where(("metadata", "name"))
    return Location(suite.shown, 1, 1)


def build_policy_case_evaluator(suite: Suite, case: PolicyCase) -> tuple[PolicyEvaluator, PolicyReading]:
    """Build the evaluator of a case: its policy alone, with the case's parameters and namespace."""
    chosen = suite.policies.get(case.policy)
    sources = list(suite.own)
    if chosen is not None:
        params = {**chosen.params, **_format_default_policy_parameters(case.params)}
        one = ChosenPolicy(
            chosen.policy, chosen.name, chosen.page, chosen.source, chosen.action, chosen.label, params
        )
        made: list[Body] = [build_policy_parameters_object(one)] if has_parameters(one.source.body) else []
        sources = [
            one.source,
            *(PolicySource(body, None, one.source.file) for body in (*made, *build_policy_bindings(one))),
        ]
    # Cases prove that a shipped policy is sound, so they check even shipped policies, and costs count.
    versions = suite.versions
    reading = read_policy_objects(
        [PlacedObject(one.body, one.document, one.file) for one in sources], versions
    )
    namespace = _build_policy_case_namespace(case, chosen.label if chosen else "")
    known = Namespaces([namespace], versions)
    policies = [one for one in reading.policies if one.policy.name == case.policy]
    evaluator = PolicyEvaluator(
        versions, policies, reading.bindings, reading.others, known, read_extra_kinds(versions)
    )
    return evaluator, reading


def _build_policy_case_namespace(case: PolicyCase, label: str) -> Body:
    """Return the namespace of a case's object."""
    name = (case.file.object.get("metadata") or {}).get("namespace") or "default"
    labels = {NAMESPACE_TEAM_LABEL: "test", **({f"gangplan.dev/{label}": "true"} if label else {})}
    given = case.file.namespace or {"metadata": {"labels": labels}}
    metadata = {"name": name, **(given.get("metadata") or {})}
    return {**given, "apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def judge_policy_case(suite: Suite, case: PolicyCase) -> list[Finding]:
    """Return the finding of a case that fails, or nothing."""
    unsound = _check_policy_case_soundness(suite, case)
    if unsound:
        return [unsound]
    evaluator, reading = build_policy_case_evaluator(suite, case)
    for problem in reading.problems:
        if problem.severity is Severity.ERROR:
            return [problem]
    old = case.file.old_object
    try:
        matched = evaluator.matched(case.file.object, old)
    except UndecidableError as unknown:
        message = (
            f"gangplan cannot decide here whether policy '{case.policy}' applies to this object: {unknown}"
        )
        help = "Write the object in the version that the policy names, or matchPolicy: Exact in the policy."
        return [Finding(POLICY_CASE, case.where, message, help)]
    if case.policy not in matched:
        if not case.file.matches:
            return []
        message = f"policy '{case.policy}' does not apply to this object: nothing was checked"
        return [Finding(POLICY_CASE, case.where, message, "Correct the object, or write matches: false.")]
    found = evaluator.judge([case.file.object], [old] if old else ())
    said = [violation.message for violation in found]
    if case.denies:
        return _check_expected_policy_refusal(case, said)
    if said:
        message = f"policy '{case.policy}' must let this through, but says: {said[0]}"
        return [Finding(POLICY_CASE, case.where, message, "Correct the policy or the case.")]
    return []


def _check_policy_case_soundness(suite: Suite, case: PolicyCase) -> Finding | None:
    """Return a finding for a case that proves nothing, such as an object that the schema refuses before any
    policy."""
    parts = {"object": case.file.object, "oldObject": case.file.old_object}
    for name, body in parts.items():
        for problem in list_policy_refusals(body, suite.versions)[:1] if body is not None else ():
            if problem.rule != SCHEMA_MISSING:
                message = f"an API server refuses the object before any policy: {problem.message}"
                return Finding(POLICY_CASE, case.document.where((name, *problem.path)), message, problem.help)
    given = case.file.namespace or {}
    metadata = given.get("metadata") or {}
    if not isinstance(metadata, dict) or not isinstance(metadata.get("labels") or {}, dict):
        help = "Write namespace: {metadata: {labels: {...}}}."
        return Finding(POLICY_CASE, case.document.where(("namespace",)), "this is not a Namespace", help)
    if case.denies and not case.file.matches:
        help = "Remove matches: false, or make it an allow case."
        where = case.document.where(("matches",))
        return Finding(POLICY_CASE, where, "a policy never refuses an object that it does not apply to", help)
    return None


def list_policy_refusals(body: Body, versions: SchemaVersions) -> list[Problem]:
    """Return what the API server refuses in an object.

    The server ignores a null in a field that may not be null.
    """
    return schema_problems(body, versions) and schema_problems(drop_nulls(body), versions)


def _check_expected_policy_refusal(case: PolicyCase, said: list[str]) -> list[Finding]:
    where = case.document.where(("message",))
    if not said:
        message = f"policy '{case.policy}' must refuse this, but lets it through"
        return [Finding(POLICY_CASE, case.where, message, "Correct the policy or the case.")]
    if not any(case.file.message in one for one in said):
        message = f"policy '{case.policy}' refuses this with another message: {said[0]}"
        return [Finding(POLICY_CASE, where, message, "Correct message: in the case, or the policy.")]
    return []
