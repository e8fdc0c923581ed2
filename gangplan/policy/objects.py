"""The policies of a cluster as objects: what `policy export` writes and what offline checks judge by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gangplan.objects import ADMISSION, BINDING
from gangplan.packs.read import PolicySource
from gangplan.policies import PACKS
from gangplan.policy.choose import ChosenPolicy
from gangplan.waivers import MARK

Body = dict[str, Any]

# Where they are below rendered/<cluster>/.
POLICY_FILE = "platform/policies.yaml"
NAMESPACE = "gangplan-policies"
PREFIX = "gangplan-"
TEAM_LABEL = "gangplan.dev/team"
LEVEL_LABEL = "pod-security.kubernetes.io/enforce"
LABELS = {"app.kubernetes.io/managed-by": "gangplan"}


def cluster_objects(chosen: Iterable[ChosenPolicy], file: str) -> list[PolicySource]:
    """Policies, their bindings and parameters, and the namespace of the parameters, in the order to apply.

    `file` is blamed for what gangplan makes: the cluster's file.
    """
    policies: dict[str, PolicySource] = {}
    params: list[Body] = []
    bound: list[PolicySource] = []
    for one in chosen:
        policies.setdefault(one.policy, one.source)
        if has_params(one.source.body):
            params.append(params_object(one))
        bound += [PolicySource(body, None, file, _is_shipped(one)) for body in bindings(one)]
    if params:
        params.insert(0, namespace_object())
    return [
        *(PolicySource(body, None, file) for body in params),
        *(policies[name] for name in sorted(policies)),
        *bound,
    ]


def _is_shipped(one: ChosenPolicy) -> bool:
    """Whether a workspace names nothing in a policy's bindings: policy and pack come with gangplan."""
    pack = one.name.removeprefix(one.policy).removeprefix("-")
    return one.source.is_shipped and (not pack or pack in PACKS)


def has_params(policy: Body) -> bool:
    """Whether a policy asks for parameters."""
    return bool((policy.get("spec") or {}).get("paramKind"))


def namespace_object() -> Body:
    """The namespace of the parameter objects, in which nothing runs."""
    labels = {**LABELS, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def params_object(one: ChosenPolicy) -> Body:
    """The ConfigMap of a policy's parameters."""
    metadata = {"name": f"{PREFIX}{one.name}", "namespace": NAMESPACE, "labels": dict(LABELS)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": dict(sorted(one.params.items())),
    }


def bindings(one: ChosenPolicy) -> Iterator[Body]:
    """The bindings of a policy: to the namespaces of all teams, or to what bears the pack's label.

    A label can stand on a namespace, or on single objects in a namespace without it.
    """
    # What nobody can waive has no way round it: a label that anyone could write must not be one.
    mark = {"key": f"{MARK}{one.policy}", "operator": "DoesNotExist"}
    unwaived = [mark] if one.page.waivable else []
    # Namespaces whose level admits what the policy refuses, where a fabric needs it (exempt.py).
    tight = [{"key": LEVEL_LABEL, "operator": "NotIn", "values": list(one.excused)}] if one.excused else []
    if not one.label:
        yield _binding(one, one.name, [{"key": TEAM_LABEL, "operator": "Exists"}, *tight], unwaived)
        return
    label = f"gangplan.dev/{one.label}"
    here, absent = {"key": label, "operator": "Exists"}, {"key": label, "operator": "DoesNotExist"}
    yield _binding(one, one.name, [here, *tight], unwaived)
    yield _binding(one, f"{one.name}-object", [absent, *tight], [here, *unwaived])


def _binding(one: ChosenPolicy, name: str, namespaces: list[Body], objects: list[Body]) -> Body:
    spec: Body = {"policyName": one.policy, "validationActions": [one.action]}
    if has_params(one.source.body):
        spec["paramRef"] = {
            "name": f"{PREFIX}{one.name}",
            "namespace": NAMESPACE,
            "parameterNotFoundAction": "Deny",
        }
    spec["matchResources"] = {
        "namespaceSelector": {"matchExpressions": namespaces},
        "objectSelector": {"matchExpressions": objects} if objects else {},
    }
    metadata = {"name": name, "labels": dict(LABELS)}
    return {
        "apiVersion": ADMISSION,
        "kind": BINDING,
        "metadata": metadata,
        "spec": spec,
    }
