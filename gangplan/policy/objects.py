"""The objects of a cluster's policies, for `policy export` and for checks in Git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gangplan.objects import ADMISSION_API, BINDING_KIND, Body
from gangplan.packs.read import PolicySource
from gangplan.policies import BUILTIN_PACKS
from gangplan.policy.choose import ChosenPolicy
from gangplan.waivers import WAIVED_PREFIX

# The file below rendered/<cluster>/.
POLICY_FILE = "platform/policies.yaml"
POLICIES_NAMESPACE = "gangplan-policies"
POLICY_PREFIX = "gangplan-"
NAMESPACE_TEAM_LABEL = "gangplan.dev/team"
LEVEL_LABEL = "pod-security.kubernetes.io/enforce"
POLICY_OBJECT_LABELS = {"app.kubernetes.io/managed-by": "gangplan"}


def build_policy_objects(chosen: Iterable[ChosenPolicy], file: str) -> list[PolicySource]:
    """Return policies, bindings, parameters and the parameters' namespace, in the order to apply them.

    Findings about objects that gangplan generates are reported at `file`, the cluster's file.
    """
    policies: dict[str, PolicySource] = {}
    params: list[Body] = []
    bound: list[PolicySource] = []
    for one in chosen:
        policies.setdefault(one.policy, one.source)
        if has_parameters(one.source.body):
            params.append(build_policy_parameters_object(one))
        bound += [PolicySource(body, None, file, _is_shipped(one)) for body in build_policy_bindings(one)]
    if params:
        params.insert(0, build_policies_namespace())
    return [
        *(PolicySource(body, None, file) for body in params),
        *(policies[name] for name in sorted(policies)),
        *bound,
    ]


def _is_shipped(one: ChosenPolicy) -> bool:
    """Return whether both the policy and the pack that binds it come with gangplan."""
    pack = one.name.removeprefix(one.policy).removeprefix("-")
    return one.source.is_shipped and (not pack or pack in BUILTIN_PACKS)


def has_parameters(policy: Body) -> bool:
    """Return whether a policy takes parameters."""
    return bool((policy.get("spec") or {}).get("paramKind"))


def build_policies_namespace() -> Body:
    """Return the namespace of the parameter objects, in which nothing runs."""
    labels = {**POLICY_OBJECT_LABELS, "pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": POLICIES_NAMESPACE, "labels": labels},
    }


def build_policy_parameters_object(one: ChosenPolicy) -> Body:
    """Return the ConfigMap of a policy's parameters."""
    metadata = {
        "name": f"{POLICY_PREFIX}{one.name}",
        "namespace": POLICIES_NAMESPACE,
        "labels": dict(POLICY_OBJECT_LABELS),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": dict(sorted(one.params.items())),
    }


def build_policy_bindings(one: ChosenPolicy) -> Iterator[Body]:
    """Yield the bindings of a policy: to the namespaces of all teams, or to what has the pack's label.

    The label can be on a namespace, or on single objects in a namespace without it.
    """
    # The bindings of a policy that allows no waivers ignore the mark, a label that anyone could set.
    mark = {"key": f"{WAIVED_PREFIX}{one.policy}", "operator": "DoesNotExist"}
    unwaived = [mark] if one.page.waivable else []
    # Exempt the namespaces whose level admits what the policy refuses, where a fabric needs it (exempt.py).
    tight = [{"key": LEVEL_LABEL, "operator": "NotIn", "values": list(one.excused)}] if one.excused else []
    if not one.label:
        yield _build_policy_binding(
            one, one.name, [{"key": NAMESPACE_TEAM_LABEL, "operator": "Exists"}, *tight], unwaived
        )
        return
    label = f"gangplan.dev/{one.label}"
    here, absent = {"key": label, "operator": "Exists"}, {"key": label, "operator": "DoesNotExist"}
    yield _build_policy_binding(one, one.name, [here, *tight], unwaived)
    yield _build_policy_binding(one, f"{one.name}-object", [absent, *tight], [here, *unwaived])


def _build_policy_binding(one: ChosenPolicy, name: str, namespaces: list[Body], objects: list[Body]) -> Body:
    spec: Body = {"policyName": one.policy, "validationActions": [one.action]}
    if has_parameters(one.source.body):
        spec["paramRef"] = {
            "name": f"{POLICY_PREFIX}{one.name}",
            "namespace": POLICIES_NAMESPACE,
            "parameterNotFoundAction": "Deny",
        }
    spec["matchResources"] = {
        "namespaceSelector": {"matchExpressions": namespaces},
        "objectSelector": {"matchExpressions": objects} if objects else {},
    }
    metadata = {"name": name, "labels": dict(POLICY_OBJECT_LABELS)}
    return {
        "apiVersion": ADMISSION_API,
        "kind": BINDING_KIND,
        "metadata": metadata,
        "spec": spec,
    }
