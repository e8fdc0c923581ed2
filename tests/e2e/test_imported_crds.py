"""An imported CRD: the API server and gangplan accept the same objects and set the same defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gangplan.model.crds import CrdFiles
from gangplan.validate.apiserver.crdrules.registry import read_imported_crds, reduce_crd
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.schema import SchemaVersions, check_object_against_api_schema
from tests.lab import fixtures
from tests.lab.client import ApiError
from tests.lab.lab import Lab
from tests.policy.crd_cases import CASES, definition
from tests.policy.test_imported import DEFAULTED, FORMAT_CASES, KEYWORD_CASES, crd, fields, widget

pytestmark = pytest.mark.e2e
Body = dict[str, Any]


def _schema() -> Body:
    """Return a schema with every keyword, every format and every kind of default, each in a field of its
    own."""
    keywords = {f"k{number}": field for number, (field, _, _) in enumerate(KEYWORD_CASES)}
    texts = {f"f{format}": {"type": "string", "format": format} for format, _, _ in FORMAT_CASES}
    return {"type": "object", "properties": {"spec": fields(**keywords, **texts, filled=DEFAULTED)}}


def _bodies() -> Iterator[Body]:
    for number, (_, value, _) in enumerate(KEYWORD_CASES):
        yield widget(**{f"k{number}": value})
    for format, good, bad in FORMAT_CASES:
        for word in (*good.split(), *bad.split()):
            yield widget(**{f"f{format}": word})
    one: Body = {"items": [{}, {"level": 5}], "named": {"a": {}}, "scores": {"a": None, "b": 1}}
    for filled in ({}, one, {"mode": None}, {"mode": "Fast"}, {"gone": None, "kept": None}, {"made": None}):
        yield widget(filled=filled)


def test_objects_and_defaults_of_an_imported_crd_equal_the_servers(lab: Lab) -> None:
    minor = fixtures.chosen().kubernetes.rpartition(".")[0]
    definition = crd(_schema())
    lab.client.apply(definition)
    lab.client.wait(
        "CustomResourceDefinition",
        definition["metadata"]["name"],
        until=lambda body: any(
            one["type"] == "Established" and one["status"] == "True"
            for one in (body.get("status") or {}).get("conditions") or ()
        ),
    )
    try:
        lab.client.discover()
        resource = lab.client.resource("example.com/v1/Widget")
        versions = SchemaVersions(
            minor, crds=read_imported_crds(CrdFiles((json.dumps(reduce_crd(definition)),)))
        )
        wrong = []
        for body in _bodies():
            body["metadata"]["namespace"] = "default"
            query = {"dryRun": "All", "fieldValidation": "Strict"}
            ours = [one.message for one in check_object_against_api_schema(body, versions)]
            try:
                answer = lab.client.request("POST", resource.path("default"), body, query=query)
            except ApiError as refused:
                if not ours:
                    wrong.append(f"only the server refuses {body['spec']}: {refused.message}")
                continue
            if ours:
                wrong.append(f"only we refuse {body['spec']}: {ours}")
            elif (filled := fill_api_server_defaults(body, versions)["spec"]) != answer.object["spec"]:
                wrong.append(f"{filled} is {answer.object['spec']} on the server")
        assert not wrong, "\n".join(wrong)
    finally:
        lab.client.delete("CustomResourceDefinition", definition["metadata"]["name"])


def test_servers_accept_and_refuse_crds_as_recorded(lab: Lab) -> None:
    """The answers in `tests/policy/crds.yaml`, with which gangplan is compared, are those of every lab."""
    lab.client.wait_gone("CustomResourceDefinition", "widgets.example.com")  # of another test
    wrong = []
    for case in CASES:
        try:
            lab.client.create(definition(case), dry_run=True, strict=False)
            taken = True
        except ApiError:
            taken = False
        if taken != case["taken"]:
            wrong.append(case["name"])
    assert not wrong
