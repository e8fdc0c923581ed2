"""Policies see objects of built-in kinds as the API server stores them: defaults, amounts, no nulls."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.policy.cases import list_policy_refusals
from gangplan.validate.apiserver.defaulting.apply import (
    build_admission_request_objects,
    fill_api_server_defaults,
)
from gangplan.validate.apiserver.defaulting.builtin import BUILTIN_DEFAULTS, fill_builtin_defaults
from gangplan.validate.apiserver.defaulting.omitted import ALWAYS, format_quantity_like_api_server
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.e2e.policies import answers
from tests.sources import go_module

API = "k8s.io/api", "0.34.4"
GROUPS = (
    *("admissionregistration/v1", "apps/v1", "autoscaling/v2", "batch/v1", "coordination/v1", "core/v1"),
    *("discovery/v1", "networking/v1", "node/v1", "policy/v1", "rbac/v1", "resource/v1", "scheduling/v1"),
    "storage/v1",
)
_FIELD = re.compile(r'\t\w+\s+(\S+)\s+`json:"(\w+)(,omitempty)?')


@pytest.mark.parametrize("minor", ["1.33", "1.34"])
def test_defaults_are_those_of_a_server(minor: str) -> None:
    assert not answers.drift(SchemaVersions(minor, "2.3", "0.19", "0.12"), answers.kept(minor))


def test_every_kind_with_defaults_has_a_kept_answer() -> None:
    asked = {(body["apiVersion"], body["kind"]) for body, _ in answers.kept("1.34")}
    # The server refuses Endpoints of a missing Service; PodTemplates are not used in practice.
    assert BUILTIN_DEFAULTS.keys() - asked == {("v1", "Endpoints"), ("v1", "PodTemplate")}


def fields_of(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield each field or entry of a value, as its holder and its key."""
    for key, one in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from fields_of(one)


@pytest.mark.parametrize("kind", sorted(BUILTIN_DEFAULTS))
def test_objects_that_no_server_accepts_are_filled_in_too(kind: tuple[str, str]) -> None:
    """Patches may give any field any value; it is the schema's part to report that."""
    for body, _ in answers.kept("1.34"):
        if (body["apiVersion"], body["kind"]) != kind:
            continue
        body = copy.deepcopy(body)
        for holder, key in list(fields_of(body)):
            before = holder[key]
            for odd in ("x", 1, ["x"], [1], {"a": 1}, {"a": "x"}, None):
                holder[key] = odd
                fill_builtin_defaults(body)
            holder[key] = before


@pytest.mark.e2e
def test_fields_that_vanish_when_empty_match_the_go_types() -> None:
    tags: dict[str, set[str]] = defaultdict(set)
    for file in _types():
        text = re.sub(r"type \w*List struct \{.*?\n\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in text.splitlines():
            found = _FIELD.match(line)
            if found:
                kind, name, omits = found.groups()
                tags[name].add("pointer" if kind.startswith("*") else "omitted" if omits else "kept")
    assert {name: tags[name] for name in ALWAYS if tags[name] != {"omitted"}} == {}


def _types() -> list[Path]:
    meta = go_module("k8s.io/apimachinery", API[1]) / "pkg/apis/meta/v1/types.go"
    return [meta, *(go_module(*API) / group / "types.go" for group in GROUPS)]


@pytest.mark.parametrize(
    ("written", "held"),
    [
        (1, "1"),
        (0.5, "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1e3", "1e3"),
        (None, "0"),
        ("much", "much"),
        (True, True),
    ],
)
def test_amounts_have_one_canonical_form(written: object, held: object) -> None:
    assert format_quantity_like_api_server(written) == held
    assert type(format_quantity_like_api_server(written)) is type(held)


def test_a_token_is_mounted_unless_the_pod_disables_it() -> None:
    def volumes(**spec: object) -> list[str]:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        containers = [{"name": "a", "image": "example.com/a:1"}]
        held = fill_api_server_defaults(
            {**body, "spec": {"containers": containers, **spec}}, SchemaVersions("1.34")
        )
        return [one["name"] for one in held["spec"].get("volumes", [])]

    assert volumes() == ["kube-api-access-xxxxx"]
    assert volumes(automountServiceAccountToken=False) == []
    assert volumes(automountServiceAccountToken=None) == ["kube-api-access-xxxxx"]


def test_policies_do_not_see_a_status_from_git() -> None:
    versions = SchemaVersions("1.34", "2.3", "0.19", "0.12")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": {}}}
    done, run = {"succeeded": 1}, {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    for body, none in ((job, {}), ({**run, "metadata": {"name": "a"}, "spec": {}}, None)):
        new, _ = build_admission_request_objects({**body, "status": done}, None, versions)
        assert new.get("status") == none
        changed, old = build_admission_request_objects(
            {**body, "status": {"failed": 1}}, {**body, "status": done}, versions
        )
        assert changed["status"] == done
        assert old is not None
        assert old["status"] == done


def test_a_null_is_accepted_unless_the_field_is_required() -> None:
    """A server drops nulls; a required field is then missing."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": None}}
    assert list_policy_refusals({**config, "immutable": None}, SchemaVersions("1.34")) == []
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"}}
    (missing,) = list_policy_refusals(
        {**policy, "spec": {"egress": [{"to": [{"ipBlock": {"cidr": None}}]}]}}, SchemaVersions("1.34")
    )
    assert "cidr" in missing.message
