"""The policies of a cluster as objects: what `policy export` writes and what offline checks judge by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gangplan.objects import ADMISSION, BINDING
from gangplan.packs.read import PolicySource
from gangplan.policy.choose import ChosenPolicy
from gangplan.waivers import MARK

Body = dict[str, Any]

NAMESPACE = "gangplan-policies"
PREFIX = "gangplan-"
TEAM_LABEL = "gangplan.dev/team"
LABELS = {"app.kubernetes.io/managed-by": "gangplan"}


def cluster_objects(chosen: Iterable[ChosenPolicy], file: str) -> list[PolicySource]:
    """Policies, their bindings and parameters, and the namespace of the parameters, in the order to apply.

    `file` is blamed for what gangplan makes: the cluster's file.
    """
    policies: dict[str, PolicySource] = {}
    made: list[Body] = []
    for one in chosen:
        policies.setdefault(one.policy, one.source)
        if has_params(one.source.body):
            made.append(params_object(one))
        made += bindings(one)
    if any(body["kind"] == "ConfigMap" for body in made):
        made.insert(0, namespace_object())
    first = [body for body in made if body["kind"] in ("Namespace", "ConfigMap")]
    last = [body for body in made if body["kind"] not in ("Namespace", "ConfigMap")]
    return [
        *(PolicySource(body, None, file) for body in first),
        *(policies[name] for name in sorted(policies)),
        *(PolicySource(body, None, file) for body in last),
    ]


def has_params(policy: Body) -> bool:
    """Whether a policy asks for parameters."""
    return bool((policy.get("spec") or {}).get("paramKind"))


def namespace_object() -> Body:
    """The namespace of the parameter objects."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": dict(LABELS)}}


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
    if not one.label:
        yield _binding(one, one.name, [{"key": TEAM_LABEL, "operator": "Exists"}], unwaived)
        return
    label = f"gangplan.dev/{one.label}"
    here, absent = {"key": label, "operator": "Exists"}, {"key": label, "operator": "DoesNotExist"}
    yield _binding(one, one.name, [here], unwaived)
    yield _binding(one, f"{one.name}-object", [absent], [here, *unwaived])


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
