"""Fields that servers accept and then drop: reported for objects that are valid otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.rules.lifecycle import OWNER_REFERENCE, STATUS_IGNORED
from gangplan.rules.model import Severity
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.gate import find_object_problems, judge_built

VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")


def quota(**more: Any) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "nlp"}}
    return {**head, "spec": {"hard": {"pods": "5"}}, **more}


def test_an_owner_reference_is_accepted_but_reported() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "made-up"}
    body = quota(metadata={"name": "q", "namespace": "nlp", "ownerReferences": [owner]})
    assert find_object_problems([body], VERSIONS) == [[]]
    ((found,),) = judge_built([body], VERSIONS)
    assert (found.rule, found.severity) == (OWNER_REFERENCE, Severity.ERROR)
    assert found.path == ("metadata", "ownerReferences")
    body["metadata"]["ownerReferences"] = []
    assert judge_built([body], VERSIONS) == [[]]


def test_a_status_is_reported_as_a_note() -> None:
    body = quota(status={"used": {"pods": "3"}})
    assert find_object_problems([body], VERSIONS) == [[]]
    ((found,),) = judge_built([body], VERSIONS)
    assert (found.rule, found.severity, found.path) == (STATUS_IGNORED, Severity.NOTE, ("status",))
    assert judge_built([quota(status={})], VERSIONS) == [[]]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {}}),
        ("v1", "LimitRange", {"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}),
        ("kueue.x-k8s.io/v1beta2", "ResourceFlavor", {"nodeLabels": {"a": "b"}}),
    ],
)
def test_a_status_is_unknown_for_kinds_without_one(api_version: str, kind: str, spec: dict[str, Any]) -> None:
    body = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": "nlp"},
        "spec": spec,
    }
    if kind == "ResourceFlavor":
        del body["metadata"]["namespace"]  # type: ignore[attr-defined]
    assert find_object_problems([body], VERSIONS) == [[]]
    ((found,),) = find_object_problems([{**body, "status": {}}], VERSIONS)
    assert found.message == f"unknown field 'status': a {kind} has none"
