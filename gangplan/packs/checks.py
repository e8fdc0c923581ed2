"""Check a workspace's own packs, whichever cluster uses them: names, references and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gangplan.findings import Finding
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.kinds import explain_wrong_pack_parameter_kind, format_example_value
from gangplan.packs.model import FactParam, ParameterValue, Params
from gangplan.packs.own import OwnPolicies
from gangplan.packs.read import (
    POLICIES_FOLDER,
    PackFolder,
    PolicySource,
    list_shipped_packs,
    read_object_name,
)
from gangplan.rulebook import load_built_in_rules, load_shipped_rules
from gangplan.rules.policy import PACK_INVALID, POLICY_PARAM
from gangplan.source import Document
from gangplan.source import FieldPath as Place
from gangplan.spec.near import suggest_nearest

_POLICY = "ValidatingAdmissionPolicy"


def check_packs(policies: OwnPolicies) -> list[Finding]:
    """Check the workspace's own packs, and its policies outside packs."""
    if not policies.sources and not policies.own:
        return []
    folders: list[PackFolder] = []
    findings: list[Finding] = []
    for folder, wrong in policies.own.values():
        findings += wrong
        folders += [folder] if folder is not None else []
    findings += _check_pack_names_are_unique(folders, policies.sources)
    for folder in folders:
        findings += _check_pack_references(policies, folder, folders)
    return findings


def _check_pack_names_are_unique(
    folders: Iterable[PackFolder], own: Iterable[PolicySource]
) -> Iterator[Finding]:
    """Check that names are unique: none may be that of another policy, or of a rule, policy or binding of
    gangplan."""
    taken = dict(_list_reserved_policy_names())
    for folder in folders:
        if folder.pack.label:
            taken.update(_list_pack_binding_names(folder.name, folder.pack.uses))
    for folder in folders:
        for name in folder.pack.policies:
            if name in taken:
                where = folder.document.where((POLICIES_FOLDER, name), key=True)
                help = "Choose another name: here, for its file, and in its metadata.name."
                yield Finding(PACK_INVALID, where, f"'{name}' is {taken[name]}", help)
            else:
                taken[name] = f"already a policy of pack '{folder.name}'"
    for source in own:
        name = read_object_name(source.body)
        if source.body.get("kind") == _POLICY and source.document is not None and name in taken:
            where = source.document.where(("metadata", "name"))
            help = "Choose another name for the policy, and for policyName in its bindings."
            yield Finding(PACK_INVALID, where, f"'{name}' is {taken[name]}", help)


def _list_reserved_policy_names() -> Iterator[tuple[str, str]]:
    """Yield the names that gangplan uses itself, each with its use."""
    for name, page in load_shipped_rules().items():
        yield (
            name,
            f"already a policy of gangplan's pack '{page.pack}'"
            if page.is_policy
            else "already a rule of gangplan",
        )
    for pack, written in list_shipped_packs().items():
        if written.label:
            yield from _list_pack_binding_names(pack, written.uses)


def _list_pack_binding_names(pack: str, uses: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names under which a pack with a label binds policies of other packs."""
    for policy in uses:
        yield f"{policy}-{pack}", f"what pack '{pack}' binds policy '{policy}' as"


def _check_pack_references(
    policies: OwnPolicies, folder: PackFolder, folders: Iterable[PackFolder]
) -> Iterator[Finding]:
    """Check that the packs, policies, rules and parameters that a pack names exist."""
    document, pack = folder.document, folder.pack
    for index, name in enumerate(pack.needs):
        if name not in policies.names:
            help = suggest_nearest(name, policies.names)
            yield Finding(
                PACK_INVALID, document.where(("needs", index)), f"there is no policy pack '{name}'", help
            )
    defaults = _collect_default_pack_parameters(folders)
    for name, params in pack.uses.items():
        if name not in defaults:
            where = document.where(("uses", name), key=True)
            yield Finding(
                PACK_INVALID, where, f"no pack has a policy '{name}'", suggest_nearest(name, defaults)
            )
            continue
        yield from _check_pack_parameters(folder, ("uses", name), name, params, defaults[name])
    for name, page in pack.policies.items():
        at: Place = (POLICIES_FOLDER, name)
        yield from _check_pack_parameters(folder, (*at, "params"), name, page.params, page.params)
        for index, rule in enumerate(page.told_by):
            if rule not in load_built_in_rules():
                where = document.where((*at, "told_by", index))
                yield Finding(
                    PACK_INVALID,
                    where,
                    f"there is no rule '{rule}'",
                    suggest_nearest(rule, load_built_in_rules()),
                )
        yield from _check_pack_parameters_are_taken(folder, name, bool(page.params))


def _collect_default_pack_parameters(folders: Iterable[PackFolder]) -> dict[str, Params]:
    """Return the parameters of every policy of every pack, gangplan's own first."""
    found: dict[str, Params] = {}
    for pack in (*list_shipped_packs().values(), *(folder.pack for folder in folders)):
        for name, page in pack.policies.items():
            found.setdefault(name, page.params)
    return found


def _check_pack_parameters(
    folder: PackFolder, at: Place, policy: str, params: Params, defaults: Params
) -> Iterator[Finding]:
    for name, value in params.items():
        where = folder.document.where((*at, name), key=name not in defaults)
        if name not in defaults:
            message = f"policy '{policy}' has no parameter '{name}'"
            yield Finding(PACK_INVALID, where, message, suggest_nearest(name, defaults))
        elif isinstance(value, FactParam) and value.fact not in PACK_FACTS:
            yield Finding(
                PACK_INVALID,
                where,
                f"there is no fact '{value.fact}'",
                suggest_nearest(value.fact, PACK_FACTS),
            )
        else:
            yield from check_pack_parameter_kind(folder.document, (*at, name), policy, value, defaults[name])


def check_pack_parameter_kind(
    document: Document, at: Place, policy: str, value: ParameterValue, default: ParameterValue
) -> Iterator[Finding]:
    """Yield a finding if the value at a place of a document is not of its parameter's kind.

    The last step of the place is the parameter's name.
    """
    wanted = explain_wrong_pack_parameter_kind(value, default)
    if wanted:
        message = f"parameter '{at[-1]}' of policy '{policy}' must be {wanted}"
        help = f"For example {at[-1]}: {format_example_value(default)}."
        yield Finding(POLICY_PARAM, document.where(at), message, help)


def _check_pack_parameters_are_taken(folder: PackFolder, policy: str, has_params: bool) -> Iterator[Finding]:
    """Check that a policy takes the parameters of its pack, and takes them from a ConfigMap."""
    source = folder.policies.get(policy)
    spec = source.body.get("spec") if source is not None else None
    if source is None or source.document is None or not isinstance(spec, dict):
        return
    kind = spec.get("paramKind")
    if has_params and not kind:
        where = folder.document.where((POLICIES_FOLDER, policy, "params"), key=True)
        help = f"Add paramKind: {{apiVersion: v1, kind: ConfigMap}} to spec in {source.file}."
        yield Finding(
            PACK_INVALID, where, f"policy '{policy}' takes no parameters (it has no paramKind)", help
        )
    elif kind and kind != {"apiVersion": "v1", "kind": "ConfigMap"}:
        help = "Write {apiVersion: v1, kind: ConfigMap}, or move the policy to policies/ outside packs."
        where = source.document.where(("spec", "paramKind"))
        yield Finding(PACK_INVALID, where, "the parameters of a pack are a ConfigMap", help)
