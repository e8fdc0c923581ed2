"""The page of one policy for `gangplan explain`: pack, scope, parameters, cases, and an example."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from gangplan.errors import UserError
from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.packs.cases import PolicyCase, read_pack_cases
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.kinds import format_example_value
from gangplan.packs.model import FactParam, Pack, ParameterValue
from gangplan.packs.own import OwnPolicies
from gangplan.packs.read import POLICIES_FOLDER, PolicySource, read_object_name
from gangplan.policy.objects import POLICY_FILE, POLICY_PREFIX
from gangplan.rules.model import Rule
from gangplan.workspace import find_workspace_root_above


def find_workspace_to_explain(given: Path | None) -> Path | None:
    """Return the root of the given workspace, or of the current one; None outside any.

    Raises UserError if the given path is not in a workspace.
    """
    if given is not None:
        return find_workspace_root_above(given.absolute())
    try:
        return find_workspace_root_above(Path.cwd())
    except UserError:
        return None


def explain_pack_policy(rule: Rule, policies: OwnPolicies) -> Iterator[str]:
    """Yield the lines about a policy of a pack, with the object of a case that it refuses."""
    name = rule.pack
    folder, _ = policies.find(name)
    if folder is None:
        return
    page, home = folder.pack.policies[rule], f"{POLICIES_FOLDER}/{name}"
    yield f"Pack: {name} ({'this workspace' if rule.is_own else 'comes with gangplan'}); {_describe_pack_scope(folder.pack)}."
    for key, value in page.params.items():
        yield f"Parameter {key}: {format_parameter_default(value)}"
    if page.told_by:
        yield f"In a pull request {', '.join(page.told_by)} reports the same; then only that is reported."
    if page.ci_only:
        yield f"CI only: {page.ci_only}"
    else:
        yield f"In the cluster: ValidatingAdmissionPolicy {POLICY_PREFIX}{rule}, in {POLICY_FILE} of each cluster that has it."
    tests = folder.folder / "tests"
    yield from _explain_policy_cases(
        [case for case in read_pack_cases(tests, f"{home}/tests")[0] if case.policy == rule], tests
    )


def _describe_pack_scope(pack: Pack) -> str:
    """Return what a pack applies to."""
    return f"holds for what bears gangplan.dev/{pack.label}" if pack.label else "holds for every team"


def format_parameter_default(value: ParameterValue) -> str:
    """Return a parameter's default for readers."""
    if isinstance(value, FactParam):
        meaning = PACK_FACTS[value.fact].meaning if value.fact in PACK_FACTS else ""
        return f"filled in from the cluster. {meaning}".replace("`", "").strip()
    return format_example_value(value)


def _explain_policy_cases(cases: list[PolicyCase], folder: Path) -> Iterator[str]:
    if not cases:
        yield "Cases: none."
        return
    yield f"Cases: {', '.join(f'{one.name} ({_describe_case_verdict(one)})' for one in cases)}."
    refused = next((case for case in cases if case.denies), None)
    if refused is not None:
        file = refused.document.file
        text = (folder / Path(file).name).read_text(encoding="utf-8")
        yield from ("", f"Refused, in {file}:", "", textwrap.indent(text.rstrip("\n"), "    "))


def explain_own_policy(name: str, policies: OwnPolicies) -> list[str]:
    """Return the lines about a policy of policies/*.yaml, which has no page: its place, expressions and
    bindings."""
    sources = policies.sources
    mine = [
        one for one in sources if one.body.get("kind") == POLICY_KIND and read_object_name(one.body) == name
    ]
    return [line for source in mine[:1] for line in _render_own_policy_lines(name, source, sources)]


def list_own_policies(policies: OwnPolicies) -> list[str]:
    """Return the names of the policies of policies/*.yaml."""
    return [read_object_name(one.body) for one in policies.sources if one.body.get("kind") == POLICY_KIND]


def _describe_case_verdict(case: PolicyCase) -> str:
    return "refused" if case.denies else "passes"


def _render_own_policy_lines(
    name: str, source: PolicySource, sources: Sequence[PolicySource]
) -> Iterator[str]:
    where = source.document.where(("metadata", "name")) if source.document else source.file
    yield from (f"{name} (a policy of this workspace)", "", f"It is in {where} and applies to every cluster.")
    spec = source.body.get("spec")
    for one in (spec.get("validations") or ()) if isinstance(spec, dict) else ():
        yield from ("", f"Required: {one.get('expression')}")
        yield f"Says else: {one.get('message') or one.get('messageExpression') or 'what the expression is'}"
    bound = [one.body for one in sources if one.body.get("kind") == BINDING_KIND]
    mine = [body["spec"] for body in bound if (body.get("spec") or {}).get("policyName") == name]
    actions = [action for binding in mine for action in binding.get("validationActions") or ()]
    yield from (
        "",
        f"A breach leads to: {', '.join(map(str, actions)) or 'nothing, for no binding names it'}.",
    )
    yield f"In the cluster: ValidatingAdmissionPolicy {POLICY_PREFIX}{name}, in {POLICY_FILE} of every cluster."
    yield "Waiver: a waiver may excuse it; its bindings must heed gangplan.dev/waived-" + name + "."
