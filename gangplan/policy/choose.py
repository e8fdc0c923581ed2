"""Choose the policies of a cluster from its packs, with their parameters and actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from gangplan.findings import Finding
from gangplan.packs.checks import check_pack_parameter_kind
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.kinds import explain_wrong_pack_parameter_kind
from gangplan.packs.model import FactParam, PackPolicy, Params
from gangplan.packs.own import OwnPolicies
from gangplan.packs.read import PackFolder, PolicySource
from gangplan.policies import BUILTIN_PACKS
from gangplan.records import dataclass
from gangplan.rules.policy import POLICY_FACT, POLICY_UNKNOWN
from gangplan.rules.waivers import WAIVER_NOT_ALLOWED
from gangplan.spec.cluster import Cluster
from gangplan.workspace import ClusterFile, suggest_nearest

# Policies of the first packs exempt namespaces for a fabric; the second pack limits those to its needs.
STEPPING_BACK, FABRICS_PARAMETER = ("baseline", "restricted"), "fabrics"


@dataclass(frozen=True, slots=True, eq=False)
class ChosenPolicy:
    """A policy that applies. `name` is the name of its bindings and parameters: <policy>, or <policy>-<pack>.

    `label` is the label that it selects by, empty for all teams. `params` are texts, as in a ConfigMap, and
    `origins` say for some of them which field of the cluster's file sets them, or which fact they are.
    `excused` are the Pod Security levels whose namespaces are exempt (exempt.py).
    """

    policy: str
    name: str
    page: PackPolicy
    source: PolicySource
    action: str
    label: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, FactParam | tuple[str, ...]] = field(default_factory=dict)
    excused: tuple[str, ...] = ()


def choose_policies(
    policies: OwnPolicies, cluster: ClusterFile, facts: Mapping[str, str]
) -> tuple[list[ChosenPolicy], list[Finding]]:
    """Return the policies of a cluster, sorted by name, and findings about unknown names in its file."""
    folders, findings = _collect_policy_packs_of_cluster(policies, cluster)
    by_name = {folder.name: folder for folder in folders}
    choice = _Choice(policies, cluster, facts, by_name, _find_policy_levels_admitting_fabric(cluster.spec))
    found: dict[str, ChosenPolicy] = {}
    # Packs for all teams come first, and gangplan's own before others, so that no other pack replaces them.
    for folder in sorted(folders, key=lambda one: (bool(one.pack.label), one.name not in BUILTIN_PACKS)):
        for one in choice.of(folder, found):
            found[one.name] = one
    if cluster.spec.versions.mpi_operator:
        from gangplan.policy.mpijobs import extend_policy_to_mpi_jobs  # few clusters have it

        has_trainer = bool(cluster.spec.versions.trainer)
        found = {
            name: replace(one, source=extend_policy_to_mpi_jobs(one.source, has_trainer))
            for name, one in found.items()
        }
    on = {one.policy for one in found.values()}
    return [found[name] for name in sorted(found)], [*findings, *_check_unknown_policies(cluster, on, found)]


def _find_policy_levels_admitting_fabric(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    if not cluster.fabrics:
        return {}
    from gangplan.policy.exempt import find_levels_exempt_by_policy  # few clusters have a fabric

    return find_levels_exempt_by_policy(cluster)


def _collect_policy_packs_of_cluster(
    policies: OwnPolicies, cluster: ClusterFile
) -> tuple[list[PackFolder], list[Finding]]:
    """Return the packs that a cluster names and the packs that those need."""
    found: dict[str, PackFolder] = {}
    findings: list[Finding] = []
    is_raised = bool(_find_policy_levels_admitting_fabric(cluster.spec))
    todo: list[tuple[str, tuple[str | int, ...]]] = [
        (name, ("policies", "packs", index)) for index, name in enumerate(cluster.spec.policies.packs)
    ]
    while todo:
        name, path = todo.pop(0)
        if name in found:
            continue
        folder, wrong = policies.find(name)
        findings += wrong
        if folder is None:
            if path and not wrong:
                where = cluster.document.where(path)
                findings.append(
                    Finding(
                        POLICY_UNKNOWN,
                        where,
                        f"there is no policy pack '{name}'",
                        suggest_nearest(name, policies.names),
                    )
                )
            continue
        found[name] = folder
        todo += [(needed, ()) for needed in folder.pack.needs]  # packs/checks.py reports missing packs
        if name in STEPPING_BACK and is_raised:
            todo.append((FABRICS_PARAMETER, ()))
    return list(found.values()), findings


@dataclass(frozen=True, slots=True)
class _Choice:
    """What one cluster chooses its policies from."""

    policies: OwnPolicies
    cluster: ClusterFile
    facts: Mapping[str, str]
    folders: Mapping[str, PackFolder]
    excused: Mapping[str, tuple[str, ...]]

    def of(self, folder: PackFolder, before: Mapping[str, ChosenPolicy]) -> Iterator[ChosenPolicy]:
        """Yield the policies that a pack adds to those chosen before."""
        label = folder.pack.label
        for name, page in folder.pack.policies.items():
            is_known = all(_is_known(value) for value in page.params.values())
            if name in folder.policies and name not in before and is_known:
                params = {**page.params, **self._own(name)}
                yield self._chosen(name, name, page, folder.policies[name], params, label)
        for name, params in folder.pack.uses.items():
            yield from self._used(folder, name, params, before)

    def _used(
        self, folder: PackFolder, name: str, params: Params, before: Mapping[str, ChosenPolicy]
    ) -> Iterator[ChosenPolicy]:
        """Yield the policy of another pack that this one switches on, unless it applies already."""
        home = self._home(name)
        if home is None or name not in home.policies:
            return  # packs/checks.py reports it
        page, source = home.pack.policies[name], home.policies[name]
        plain = {**page.params, **self._own(name)}
        # packs/checks.py reports parameters that do not fit. Judging by them would report the mistake at
        # specs.
        params = {key: value for key, value in params.items() if _fits_policy_parameter(key, value, page)}
        wanted = {**plain, **params}
        label, base = folder.pack.label, before.get(name)
        if not label:
            if base is None or (params and not base.label):
                yield self._chosen(name, name, page, source, wanted, "")
            return
        one = self._chosen(name, f"{name}-{folder.name}", page, source, wanted, label)
        same = base is not None and dict(base.params) == dict(one.params)
        if same and base is not None and not base.label and base.action == one.action:
            return
        yield one

    def _home(self, name: str) -> PackFolder | None:
        """Return the pack that has a policy, if any does."""
        for folder in self.folders.values():
            if name in folder.policies:
                return folder
        for pack in self.policies.names:
            other, _ = self.policies.find(pack)
            if other is not None and name in other.policies:
                return other
        return None

    def _chosen(
        self,
        policy: str,
        name: str,
        page: PackPolicy,
        source: PolicySource,
        params: Mapping[str, Any],
        label: str,
    ) -> ChosenPolicy:
        action = self.cluster.spec.policies.actions.get(policy, page.action)
        texts = {key: self._text(value) for key, value in params.items()}
        origins, levels = self._origins(policy, params), self.excused.get(policy, ())
        return ChosenPolicy(policy, name, page, source, action, label, texts, origins, levels)

    def _origins(self, policy: str, params: Mapping[str, Any]) -> dict[str, FactParam | tuple[str, ...]]:
        """Return the origins of parameters that are facts or that the cluster's file sets."""
        found: dict[str, FactParam | tuple[str, ...]] = {}
        own = self._own(policy)
        for key, value in params.items():
            if isinstance(value, FactParam):
                found[key] = value
            elif key in own and own[key] == value:
                found[key] = ("policies", "params", policy, key)
        return found

    def _own(self, policy: str) -> Mapping[str, Any]:
        """Return the parameters that the cluster's file sets for a policy."""
        own: Mapping[str, Any] = self.cluster.spec.policies.params.get(policy, {})
        return own

    def _text(self, value: Any) -> str:
        """Return a parameter as text for a ConfigMap."""
        if isinstance(value, FactParam):
            return self.facts.get(value.fact, "")  # packs/checks.py reports unknown facts
        return format_policy_parameter(value)


def _is_known(value: Any) -> bool:
    """Return whether a value can be filled in: any value but an unknown fact."""
    return not isinstance(value, FactParam) or value.fact in PACK_FACTS


def _fits_policy_parameter(key: str, value: Any, page: PackPolicy) -> bool:
    """Return whether a policy has the parameter, and the value is of its kind."""
    return (
        key in page.params
        and _is_known(value)
        and not explain_wrong_pack_parameter_kind(value, page.params[key])
    )


def format_policy_parameter(value: Any) -> str:
    """Return a number, boolean, string or list as text: `24`, `true`, `a,b`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(format_policy_parameter, value))
    return str(value)


def _check_unknown_policies(
    cluster: ClusterFile, on: set[str], found: Mapping[str, ChosenPolicy]
) -> Iterator[Finding]:
    """Yield findings for policies and parameters of a cluster's file that no policy of its packs has."""
    settings = cluster.spec.policies
    for part, keys in (("actions", settings.actions), ("params", settings.params)):
        for name in keys:
            if name not in on:
                where = cluster.document.where(("policies", part, name), key=True)
                message = f"no pack of this cluster has a policy '{name}'"
                yield Finding(POLICY_UNKNOWN, where, message, suggest_nearest(name, on))
    for name, action in settings.actions.items():
        page = next((has.page for has in found.values() if has.policy == name), None)
        if page is not None and not page.waivable and action != page.action:
            where = cluster.document.where(("policies", "actions", name), key=True)
            message = f"policy '{name}' holds without exception; its action stays {page.action}"
            yield Finding(WAIVER_NOT_ALLOWED, where, message, f"Remove {name} from actions.")
    for name, params in settings.params.items():
        known = {
            key: one for has in found.values() if has.policy == name for key, one in has.page.params.items()
        }
        for key, value in params.items() if name in on else ():
            place = ("policies", "params", name, key)
            if key not in known:
                message = f"policy '{name}' has no parameter '{key}'"
                yield Finding(
                    POLICY_UNKNOWN,
                    cluster.document.where(place, key=True),
                    message,
                    suggest_nearest(key, known),
                )
            else:
                yield from check_pack_parameter_kind(cluster.document, place, name, value, known[key])
                if isinstance(known[key], FactParam):
                    message = f"'{key}' of policy '{name}' is a fact of the cluster; this value replaces it"
                    where = cluster.document.where(place, key=True)
                    yield Finding(POLICY_FACT, where, message, f"Remove {key}: gangplan fills it in.")
