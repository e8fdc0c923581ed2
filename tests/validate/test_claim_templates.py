"""ResourceClaimTemplates that a patch changed.

A real API server says the same of each (tests/e2e/test_dra.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.rules.objects import SCHEMA_MISSING
from gangplan.validate.apiserver.schema import SchemaVersions, list_kinds_with_api_schema, write_schemas
from gangplan.validate.gate import find_object_problems

VERSIONS = SchemaVersions("1.34", "2.3", "0.19")
EXACT: dict[str, Any] = {"deviceClassName": "nic.example.com", "allocationMode": "ExactCount", "count": 2}
FIRST = [{"name": "x", "deviceClassName": "nic.example.com"}]


def template(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "nlp"},
        "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
    }


def exact(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "exactly": {**EXACT, **fields}}


def selected(*expressions: str) -> dict[str, Any]:
    return template(exact(selectors=[{"cel": {"expression": one}} for one in expressions]))


def constrained(**constraint: Any) -> dict[str, Any]:
    return template(exact(), constraints=[constraint])


ACCEPTED = {
    "a count": template(exact()),
    "no count": template({"name": "a", "exactly": {"deviceClassName": "nic.example.com"}}),
    "no request": template(),
    "alternatives": template({"name": "a", "firstAvailable": FIRST}),
    "a constraint": constrained(matchAttribute="a.example.com/root"),
    "a constraint of an alternative": template(
        {"name": "a", "firstAvailable": FIRST},
        constraints=[{"requests": ["a/x"], "matchAttribute": "a.example.com/root"}],
    ),
    "parameters": template(
        exact(),
        config=[{"requests": ["a"], "opaque": {"driver": "d.example.com", "parameters": {"kind": "X"}}}],
    ),
    "selectors": selected(
        "true",
        "device.driver == 'a.example.com'",
        "device.attributes['a.example.com'].model == 'x'",
        "device.attributes['a.example.com'].fast",
        "device.capacity['a.example.com'].memory.compareTo(quantity('1Gi')) >= 0",
        "cel.bind(dra, device.attributes['a.example.com'], dra.fast && dra.near)",
    ),
    "a toleration": template(exact(tolerations=[{"key": "a.example.com/x", "operator": "Exists"}])),
}
# The template, and words about it.
REFUSED = {
    "neither": (template({"name": "a"}), "exactly one of exactly, firstAvailable"),
    "both": (template({**exact(), "firstAvailable": FIRST}), "exactly one of exactly, firstAvailable"),
    "no alternative": (template({"name": "a", "firstAvailable": []}), "firstAvailable"),
    "a name twice": (template(exact(), exact()), "holds name 'a' twice"),
    "a count of all": (template(exact(allocationMode="All")), "no count together with allocationMode All"),
    "an unknown mode": (template(exact(allocationMode="Some")), "allocationMode"),
    "a constraint of nothing": (constrained(), "matchAttribute"),
    "an attribute without domain": (constrained(matchAttribute="root"), "a name with its domain"),
    "a constraint of a request that is not there": (
        constrained(matchAttribute="a.example.com/root", requests=["b"]),
        "no request is called 'b'",
    ),
    "parameters of a request that is not there": (
        template(
            exact(), config=[{"requests": ["b"], "opaque": {"driver": "d", "parameters": {"kind": "X"}}}]
        ),
        "no request is called 'b'",
    ),
    "parameters of nothing": (template(exact(), config=[{}]), "opaque"),
    "no CEL": (selected("this is ( not"), "does not compile"),
    "a number": (selected("1"), "it must be a bool"),
    "an unknown variable": (selected("node.name == 'a'"), "undeclared reference to 'node'"),
    "an unknown field": (selected("device.model == 'a'"), "undefined field 'model'"),
    "a selector of nothing": (template(exact(selectors=[{}])), "cel"),
    "an unknown operator": (template(exact(tolerations=[{"key": "a", "operator": "Sometimes"}])), "operator"),
    "a class in capitals": (template(exact(deviceClassName="NIC")), "deviceClassName"),
}


def test_a_kubernetes_without_claims_is_named(tmp_path: Path) -> None:
    old = SchemaVersions("1.33", "2.3", "0.19")
    ((found,),) = find_object_problems([template(exact())], old)
    assert found.rule == SCHEMA_MISSING
    assert found.help == "known kubernetes versions: 1.34, 1.35, 1.36, 1.37"
    names = {kind for _, kind in list_kinds_with_api_schema(old)}
    assert "ResourceClaimTemplate" not in names
    assert "TrainJob" in names
    assert write_schemas(old, tmp_path, only={"TrainJob", "ResourceClaimTemplate"})


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_api_server_accepts_passes(name: str) -> None:
    assert find_object_problems([ACCEPTED[name]], VERSIONS) == [[]]


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_server_refuses_is_reported(name: str) -> None:
    body, words = REFUSED[name]
    (found,) = find_object_problems([body], VERSIONS)
    assert len(found) == 1, found
    assert words in found[0].message, found
