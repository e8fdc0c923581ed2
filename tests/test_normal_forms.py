"""No server rewrites what we emit: every default is written out, every amount is canonical.

A GitOps engine sees everything that a server adds or respells as drift, forever. Each emitted object is
compared with the known rules: defaults of the real CRDs, defaults of built-in kinds, and quantities as Go
writes them. `make e2e` asks the API server the same about the sample workspace.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gangplan.model.quantity import parse_quantity
from gangplan.policy.objects import POLICIES_NAMESPACE
from tests.test_crds import every_workspace, files, minors, objects
from tests.validate import crd

Body = dict[str, Any]

# Where quantities are: the key of a mapping of amounts, or of one amount.
MAPS = {"requests", "limits", "hard", "max", "min", "default", "defaultRequest"}
AMOUNTS = {"nominalQuota", "borrowingLimit", "lendingLimit", "weight", "sizeLimit", "storage"}


@every_workspace
def test_quantities_are_canonical_texts(workspace: Path) -> None:
    for body in (body for path in files(workspace) for body in objects(path)):
        if body["kind"] == "ConfigMap":
            continue
        for where, amount in amounts(body.get("spec", {}), "spec"):
            assert isinstance(amount, str), f"{body['kind']} {where}: {amount!r} is not text"
            assert parse_quantity(amount).canonical() == amount, f"{body['kind']} {where}"


def amounts(value: Any, path: str, inside: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield every quantity of an object, with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from amounts(item, f"{path}.{key}", inside=key in MAPS and isinstance(item, dict))
            elif inside or (key in AMOUNTS and "affinity" not in path.lower()):
                yield f"{path}.{key}", item
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from amounts(item, f"{path}[{index}]")


def test_amounts_are_found() -> None:
    body = {"resources": {"limits": {"cpu": 1}}, "hard": {"pods": "3"}, "a": [{"nominalQuota": 9}]}
    found = dict(amounts(body, ""))
    assert found == {".resources.limits.cpu": 1, ".hard.pods": "3", ".a[0].nominalQuota": 9}


@crd.needs_crds
@every_workspace
def test_defaults_of_the_crds_are_written_out(workspace: Path) -> None:
    for lines, body in (
        (minors(workspace, path), body) for path in files(workspace) for body in objects(path)
    ):
        component = crd.GROUPS.get(body["apiVersion"].rpartition("/")[0])
        if component is None:
            continue
        for line in crd.at_hand(component, lines[component]):
            schema = crd.crd_for(body, {**lines, component: line})
            assert schema is not None
            filled = copy.deepcopy(body)
            fill(filled, schema)
            let_go(filled, body)
            assert filled == body, f"{body['kind']} {body['metadata']['name']} at {line}"


# Kueue and the operators own these fields; in Git they would conflict with their owners (docs/gitops.md).
OWNED = {"TrainJob": [("suspend",), ("managedBy",)], "MPIJob": [("runPolicy", "suspend")]}


def let_go(filled: Body, body: Body) -> None:
    """Remove the defaults of fields that others own; Git has them only to stop a run or hand it over."""
    for *folders, name in OWNED.get(body["kind"], []):
        theirs, ours = filled["spec"], body["spec"]
        for folder in folders:
            theirs, ours = theirs.get(folder, {}), ours.get(folder, {})
        if name not in ours:
            theirs.pop(name, None)
        elif name == "suspend":
            assert ours[name] is True
            assert body["metadata"]["annotations"]["gangplan.dev/state"] == "stopped"
        else:
            # Where runs go to other clusters, the field must be there from the start.
            assert ours[name] == "kueue.x-k8s.io/multikueue"


def fill(value: Any, schema: Body) -> None:
    """Fill in structural defaults as the API server does."""
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in value and "default" in inner and name != "status":
                value[name] = copy.deepcopy(inner["default"])
            if name in value and name != "status":
                fill(value[name], inner)
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict):
            for name, item in value.items():
                if name not in (schema.get("properties") or {}):
                    fill(item, rest)
    elif isinstance(value, list):
        for item in value:
            fill(item, schema.get("items") or {})


def test_filling_adds_nested_defaults() -> None:
    schema = {"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}
    body: Body = {}
    fill(body, schema)
    assert body == {"a": {"b": 1}}


@every_workspace
def test_defaults_of_built_in_kinds_are_written_out(workspace: Path) -> None:
    """The API server persists these defaults (Kubernetes v1.34: pkg/apis/*/v1/defaults.go)."""
    for body in (body for path in files(workspace) for body in objects(path)):
        spec = body.get("spec") or {}
        match body["kind"]:
            case "NetworkPolicy":
                rules = [*spec.get("ingress", ()), *spec.get("egress", ())]
                assert all("protocol" in port for rule in rules for port in rule.get("ports", ()))
                assert spec["policyTypes"]
                assert "podSelector" in spec
            case "RoleBinding":
                wanted = {"ServiceAccount": None, "User": RBAC, "Group": RBAC}
                assert all(one.get("apiGroup") == wanted[one["kind"]] for one in body["subjects"])
                assert all("namespace" in one for one in body["subjects"] if one["kind"] == "ServiceAccount")
                assert body["roleRef"]["apiGroup"] == RBAC
            case "PersistentVolumeClaim":
                assert spec["volumeMode"] == "Filesystem"
            case "PriorityClass":
                assert body["preemptionPolicy"] in ("Never", "PreemptLowerPriority")
                assert "globalDefault" not in body  # false is left out when it is stored
            case "LimitRange":
                for limit in spec["limits"]:
                    # A missing default is taken from max, a missing request from the default.
                    assert set(limit["max"]) == set(limit["default"]) == set(limit["defaultRequest"])
            case "Namespace":
                assert not spec


RBAC = "rbac.authorization.k8s.io"


# Empty values that are kept, by kind ("" for every kind).
EMPTY = {
    *(("", path) for path in ("spec.podSelector", "spec.namespaceSelector", "spec")),
    *(
        ("", path)
        for path in (
            "spec.mlPolicy.torch",
            "spec.mlPolicy.jax",
            "spec.mlPolicy.xgboost",
            "spec.podGroupPolicy.volcano",
        )
    ),
    # A pointer: without it, the default class would be filled in (DefaultStorageClass).
    ("PersistentVolumeClaim", "spec.storageClassName"),
    ("ClusterRole", "rules.apiGroups"),  # the core group has an empty name
    ("ValidatingAdmissionPolicy", "spec.matchConstraints.resourceRules.apiGroups"),
    # Selectors of everything: the API server fills them in (admissionregistration/v1/defaults.go, v1.34).
    ("ValidatingAdmissionPolicy", "spec.matchConstraints.namespaceSelector"),
    ("ValidatingAdmissionPolicy", "spec.matchConstraints.objectSelector"),
    ("ValidatingAdmissionPolicyBinding", "spec.matchResources.namespaceSelector"),
    ("ValidatingAdmissionPolicyBinding", "spec.matchResources.objectSelector"),
}


@every_workspace
def test_only_known_fields_are_empty(workspace: Path) -> None:
    """Kueue's webhooks write objects again from their types, which leaves out empty values (omitempty)."""
    for body in (body for path in files(workspace) for body in objects(path)):
        for where in empties(body, ""):
            kept = {("", where), (body["kind"], where)} & EMPTY or is_parameter(body, where)
            assert kept, f"{body['kind']} {body['metadata']['name']}: {where} is empty"


def is_parameter(body: Body, where: str) -> bool:
    """Return whether an empty text is a policy's parameter.

    `params.data.x` of a parameter that is left out is an error.
    """
    folder, _, name = where.partition(".")
    is_home = body["metadata"].get("namespace") == POLICIES_NAMESPACE
    return body["kind"] == "ConfigMap" and is_home and folder == "data" and body["data"].get(name) == ""


def empties(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of empty texts, lists, mappings and nulls."""
    if value is None or (isinstance(value, str | list | dict) and not value):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from empties(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from empties(item, path)
