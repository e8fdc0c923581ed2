"""CRDs that a workspace has imported: their schemas, defaults, rules and plurals work as on a server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.model.crds import CrdFiles
from gangplan.validate.apiserver.crdrules.check import check_crd_rules as rule_problems
from gangplan.validate.apiserver.crdrules.formats import CRD_FORMATS
from gangplan.validate.apiserver.crdrules.registry import read_imported_crds, reduce_crd
from gangplan.validate.apiserver.defaulting.apply import (
    build_admission_request_objects,
    fill_api_server_defaults,
)
from gangplan.validate.apiserver.policy.kinds import read_extra_kinds
from gangplan.validate.apiserver.schema import SchemaVersions, check_object_against_api_schema
from tests import workspaces
from tests.policy.test_crd_rules import MINORS, versions
from tests.validate.crd import crds, needs_crds
from tests.workspaces import gangplan, write

Schema = dict[str, Any]
Body = dict[str, Any]


def crd(schema: Schema, kind: str = "Widget", plural: str = "widgets", scope: str = "Namespaced") -> Body:
    """Return a CustomResourceDefinition of example.com/v1."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural}
    spec = {"group": "example.com", "names": names, "scope": scope, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": spec,
    }


def taken(schema: Schema, minor: int = 34) -> SchemaVersions:
    """Return the versions of a cluster that has imported a Widget whose spec has a schema."""
    whole = {"type": "object", "properties": {"spec": schema}}
    files = CrdFiles((json.dumps(reduce_crd(crd(whole))),))
    return SchemaVersions(f"1.{minor}", "2.3", "0.19", "0.12", crds=read_imported_crds(files))


def widget(**spec: Any) -> Body:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x", "namespace": "d"},
        "spec": spec,
    }


def fields(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def said(schema: Schema, minor: int = 34, **spec: Any) -> list[str]:
    """Return the messages of the gate about a Widget."""
    return [one.message for one in check_object_against_api_schema(widget(**spec), taken(schema, minor))]


# --- the schema gate -----------------------------------------------------------------------------------

EITHER = [{"type": "integer"}, {"type": "string"}]
ALL = {
    **fields(
        mode={"type": "string", "default": "Safe", "enum": ["Safe", "Fast"]},
        size={"x-kubernetes-int-or-string": True, "anyOf": EITHER, "pattern": "^[0-9]+(Gi)?$"},
        n={"type": "integer", "not": {"enum": [3]}},
        host={"type": "string", "format": "ipv4"},
        a={"type": "string"},
        b={"type": "string"},
    ),
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
}


def test_every_keyword_of_a_schema_refuses() -> None:
    assert said(ALL, mode="Safe", size="lots", n=3, host="nowhere") == [
        "spec: exactly one of these must hold: a is set, b is set",
        "spec.host is the text 'nowhere'; expected: an IPv4 address",
        "spec.n: this must not hold: it is 3",
        "spec.size is the text 'lots'; expected: a text that matches ^[0-9]+(Gi)?$",
    ]
    assert said(ALL, a="x", size="3Gi", n=4, host="10.0.0.1") == []
    assert said(ALL, a="x", size=3) == []
    assert said(ALL, a="x", b="y") == ["spec: exactly one of these must hold: a is set, b is set"]


KEYWORD_CASES: list[tuple[Any, Any, str]] = [
    ({"x-kubernetes-int-or-string": True, "anyOf": EITHER}, True, "a whole number or a text is expected"),
    ({"x-kubernetes-int-or-string": True, "enum": [1, "50%"]}, 2, "is not one of: 1, 50%"),
    ({"x-kubernetes-int-or-string": True, "nullable": True}, None, ""),
    ({"x-kubernetes-int-or-string": True, "nullable": True, "allOf": [{"anyOf": EITHER}]}, None, ""),
    ({"type": "string", "nullable": True, "anyOf": [{"minLength": 3}]}, None, ""),
    ({"type": "string", "nullable": True, "anyOf": [{"minLength": 3}]}, "a", "at least one of these"),
    ({"type": "string", "allOf": [{"minLength": 3}]}, "a", "shorter than 3"),
    ({"type": "object", "properties": {"p": {"type": "string"}}, "not": {"required": ["p"]}}, {}, ""),
    (
        {"type": "object", "properties": {"p": {"type": "string"}}, "not": {"required": ["p"]}},
        {"p": "x"},
        "must not hold: p is set",
    ),
    # allOf restricts the fields that it names, and makes no other field unknown.
    (
        {
            **fields(p={"type": "string"}, q={"type": "string"}),
            "allOf": [{"properties": {"p": {"maxLength": 1}}}],
        },
        {"p": "xx", "q": "yy"},
        "value.p has 2 characters",
    ),
    ({"type": "integer", "format": "int32"}, 2**31, ""),
    ({"type": "integer", "format": "uint"}, 2**31, ""),
    ({"type": "string", "format": "int32"}, "x", ""),
    ({"type": "string", "format": "unheard-of"}, "x", ""),
    ({"type": "string", "format": "date-time"}, "yesterday", "expected: a time such as"),
    ({"type": "string", "format": "duration", "pattern": "^[0-9]s$"}, "1h", "a text that matches"),
    ({"type": "string", "format": "duration", "pattern": "^X"}, "X", "expected: a duration"),
    (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ["a", "a"],
        "twice",
    ),
    # Go's syntax, which other regular expression engines do not read.
    ({"type": "string", "pattern": r"^[[:alpha:]]+\z"}, "Ab1", "a text that matches"),
    ({"type": "string", "pattern": r"^[[:alpha:]]+\z"}, "Ab", ""),
    ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, 3, "is not allowed"),
]


@pytest.mark.parametrize(
    ("field", "value", "refused"),
    KEYWORD_CASES,
)
def test_each_keyword_refuses_wrong_values(field: Schema, value: Any, refused: str) -> None:
    found = said(fields(value=field), value=value)
    assert len(found) == bool(refused), found
    assert all(refused in one for one in found), found


def test_short_names_are_checked_since_kubernetes_1_35() -> None:
    schema = fields(name={"type": "string", "format": "k8s-short-name"})
    assert said(schema, 34, name="A") == []
    assert said(schema, 35, name="A") == [
        "spec.name is the text 'A'; expected: a name of lower case letters, digits and '-'"
    ]


FORMAT_CASES = [
    ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
    ("byte", "YQ==", ""),
    ("cidr", "10.0.0.0/8 ::/64 010.0.0.0/8", "10.0.0.0/33 10.0.0.0 ::/129"),
    ("creditcard", "4220855426222389 374953669708156", "4220855426213389 30190239451016"),
    ("date", "2024-02-29", "2023-02-29 20240229"),
    ("datetime", "2014-12-15T19:30:20.000Z", "2014-12-15 2014-12-15T24:30:20Z"),
    ("duration", "1h30m 0 -1.5s 3days 22ns", "5 h 1x"),
    ("email", "a@b.example", "a a@ @b"),
    ("hexcolor", "#FFF fff000", "#ff fff0"),
    ("hostname", "a localhost a-b.example.com", "-a a_b 1.2.3.4.5"),
    ("ipv4", "10.0.0.1 010.1.1.1 ::ffff:10.0.0.1", "10.0.0.256 10.0.0 ::1"),
    ("ipv6", "::1 fe80::1", "fe80::1%eth0 10.0.0.1"),
    ("isbn", "0321751043 978-0321751041", "0321751044"),
    ("isbn10", "3836221195 1-61729-085-8", "3-423-21412-1"),
    ("isbn13", "9784873113685", "9784873113686"),
    ("k8slongname", "a.b-c", "a..b A"),
    ("k8sshortname", "a-b", "a.b -a"),
    ("mac", "3D-F2-C9-A6-B3-4F 0123.4567.89ab", "3D-F2-C9-A6-B3:4F 01:23"),
    ("password", "x", ""),
    ("rgbcolor", "rgb(0,31,255)", "rgb(1,349,275) rgba(0,1,2)"),
    ("ssn", "111-11-1111", "111111111 00-0-0000"),
    ("uri", "https://example.com /path mailto:a@b", "example.com ./x"),
    ("uuid", "a987fbc9-4bed-3078-cf07-9141ba07c9f3", "a987fbc9-4bed-3078-cf07-9141ba07c9f"),
    ("uuid3", "a987fbc9-4bed-3078-cf07-9141ba07c9f3", "57b73598-8764-4ad0-a76a-679bb6640eb1"),
    ("uuid4", "57b73598-8764-4ad0-a76a-679bb6640eb1", "a987fbc9-4bed-3078-cf07-9141ba07c9f3"),
    ("uuid5", "987fbc97-4bed-5078-af07-9141ba07c9f3", "987fbc97-4bed-5078-bf0-9141ba07c9f3"),
]


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    FORMAT_CASES,
)
def test_each_format_accepts_good_and_refuses_bad_values(format: str, good: str, bad: str) -> None:
    check = CRD_FORMATS[format][1]
    assert [word for word in good.split() if not check(word)] == []
    assert [word for word in bad.split() if check(word)] == []


def test_every_format_has_a_case() -> None:
    assert {format for format, _, _ in FORMAT_CASES} == set(CRD_FORMATS)


# --- defaults ------------------------------------------------------------------------------------------


_INNER = fields(level={"type": "integer", "default": 1})
DEFAULTED = {
    **fields(
        mode={"type": "string", "default": "Safe"},
        made={**_INNER, "default": {}},
        there=_INNER,
        items={"type": "array", "items": _INNER},
        named={"type": "object", "additionalProperties": _INNER},
        scores={"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        gone={"type": "string"},
        kept={"type": "string", "nullable": True, "default": "x"},
    ),
    "required": ["mode"],
}


def test_defaults_of_an_imported_crd_are_filled_in() -> None:
    schema = {**DEFAULTED, "x-kubernetes-validations": [{"rule": "self.mode == 'Safe'", "message": "mode"}]}
    known = taken(schema)
    body = widget(items=[{}, {"level": 5}], named={"a": {}}, scores={"a": None, "b": 1}, gone=None, kept=None)
    assert (
        check_object_against_api_schema(body, known) == []
    )  # a required field with a default is not missing
    assert rule_problems(body, known) == []
    assert fill_api_server_defaults(body, known)["spec"] == {
        "items": [{"level": 1}, {"level": 5}],
        "named": {"a": {"level": 1}},
        "scores": {"a": 7, "b": 1},
        "kept": None,
        "mode": "Safe",
        "made": {"level": 1},
    }
    assert "mode" not in body["spec"]
    assert fill_api_server_defaults(widget(mode=None), known)["spec"]["mode"] == "Safe"
    assert fill_api_server_defaults({**widget(), "spec": "text"}, known)["spec"] == "text"


def test_values_in_a_schema_are_kept_and_descriptions_left_out() -> None:
    default = {"description": "kept", "example": 1}
    schema = fields(
        free={
            "type": "object",
            "default": default,
            "description": "left out",
            "x-kubernetes-preserve-unknown-fields": True,
        }
    )
    assert fill_api_server_defaults(widget(), taken(schema))["spec"]["free"] == default
    named = fields(default={"type": "string", "description": "left out"})  # a field of that name
    assert "left out" not in json.dumps(reduce_crd(crd(named)))


@needs_crds
@pytest.mark.parametrize(("component", "minor"), MINORS)
def test_the_schema_walk_and_the_tables_fill_in_the_same_defaults(component: str, minor: str) -> None:
    plain = versions(component, minor)
    for (api_version, kind), schema in crds(component, minor).items():
        if kind in ("Workload", "MultiKueueCluster"):
            continue  # as in test_defaults
        group, _, version = api_version.rpartition("/")
        file = {
            "group": group,
            "kind": kind,
            "plural": "x",
            "scope": "Namespaced",
            "versions": {version: schema},
        }
        known = replace(plain, crds=read_imported_crds(CrdFiles((json.dumps(file),))))
        head = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
        for body in (
            head,
            {**head, "spec": {}},
            {**head, "spec": _skeleton(schema["properties"].get("spec", {}))},
        ):
            assert fill_api_server_defaults(body, known) == fill_api_server_defaults(body, plain), (
                kind,
                minor,
            )


def _skeleton(schema: Schema) -> Any:
    """Return a value with every mapping and one entry in every list, and no scalar."""
    if schema.get("type") == "array":
        inner = _skeleton(schema["items"])
        return [] if inner is None else [inner]
    if schema.get("type") != "object":
        return None
    found = {name: _skeleton(field) for name, field in (schema.get("properties") or {}).items()}
    return {name: value for name, value in found.items() if value is not None}


def test_an_external_secret_gets_its_defaults() -> None:
    reference = {"key": "a", "property": "b"}
    spec = {
        "data": [{"secretKey": "a", "remoteRef": reference}],
        "dataFrom": [{"extract": {"key": "a"}}],
        "target": {"name": "x"},
    }
    body = {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": "x"},
        "spec": spec,
    }
    more = {"conversionStrategy": "Default", "decodingStrategy": "None", "metadataPolicy": "None"}
    filled = fill_api_server_defaults(body, SchemaVersions("1.34"))["spec"]
    assert filled["data"] == [{"secretKey": "a", "remoteRef": {**reference, **more}}]
    assert filled["dataFrom"] == [{"extract": {"key": "a", **more}}]
    assert filled["target"] == {"name": "x", "creationPolicy": "Owner", "deletionPolicy": "Retain"}
    assert filled["refreshInterval"] == "1h0m0s"


# --- in a workspace ------------------------------------------------------------------------------------

FLAVOUR = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"flavour": {"type": "string", "default": "plain"}},
    "x-kubernetes-validations": [{"rule": "self.flavour in ['plain', 'rich']", "message": "no flavour"}],
}
GATEWAY = crd(
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "Gateway", "gatewayz", "Cluster"
)
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-gateway}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gatewayz]}
  validations:
  - {expression: "false", message: no gateways}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-gateway}
spec: {policyName: no-gateway, validationActions: [Deny]}
"""
CASE = "object: {apiVersion: example.com/v1, kind: Gateway, metadata: {name: x}}\nmessage: no gateways\n"


def take(root: Path, body: Body) -> None:
    """Run `gangplan schema import`."""
    write(root, {"crd.yaml": json.dumps(body)})
    assert gangplan("schema", "import", "-C", str(root), str(root / "crd.yaml")).code == Exit.CLEAN


def test_a_field_with_a_default_in_the_crd_is_not_missing(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "ws")
    assert gangplan("validate", "-C", str(root)).code == Exit.CLEAN
    body = crd({"type": "object", "properties": {"spec": FLAVOUR}}, "TrainJob", "trainjobs")
    body["spec"] |= {"group": "trainer.kubeflow.org"}
    body["metadata"]["name"] = "trainjobs.trainer.kubeflow.org"
    body["spec"]["versions"][0]["name"] = "v1alpha1"
    take(root, body)
    outcome = gangplan("validate", "-C", str(root))
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")


def test_policy_test_knows_imported_kinds(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "ws")
    take(root, GATEWAY)
    write(root, {"policies/own.yaml": POLICY, "policies/tests/no-gateway.plain.deny.yaml": CASE})
    outcome = gangplan("policy", "test", "no-gateway", "-C", str(root))
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")


def test_an_import_does_not_affect_another_workspace(tmp_path: Path) -> None:
    roots = [workspaces.stock(tmp_path / name) for name in ("one", "two")]
    take(roots[0], GATEWAY)
    case = {"policies/own.yaml": POLICY, "policies/tests/no-gateway.plain.deny.yaml": CASE}
    for root, code in zip([*roots, *roots], [Exit.CLEAN, Exit.FINDINGS] * 2, strict=True):
        write(root, case)
        assert gangplan("policy", "test", "no-gateway", "-C", str(root)).code == code


def test_the_same_files_are_read_once() -> None:
    texts = (json.dumps(reduce_crd(GATEWAY)),)
    assert read_imported_crds(CrdFiles(texts)) is read_imported_crds(CrdFiles(tuple(texts)))
    assert read_imported_crds(CrdFiles()) is None
    resource = read_extra_kinds(SchemaVersions("1.34", crds=read_imported_crds(CrdFiles(texts)))).find(
        "example.com/v1", "Gateway"
    )
    assert (resource.plural, resource.namespaced) == ("gatewayz", False)


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"group": 1}', "null", "\x00"])
def test_a_file_without_a_crd_is_reported_once(tmp_path: Path, text: str) -> None:
    root = workspaces.stock(tmp_path / "ws")
    write(root, {"schemas/example.com/widgets.json": text})
    for command in (("validate",), ("policy", "list")):
        outcome = gangplan(*command, "-C", str(root))
        assert outcome.err.count("[crd-unreadable]") == 1, outcome.err
        assert outcome.code != Exit.CLEAN


def test_a_status_is_separate_only_where_the_crd_says_so() -> None:
    body = {**widget(), "status": {"seen": True}}
    status = {"type": "object", "properties": {"seen": {"type": "integer"}}}
    both = {"spec": {"type": "object"}, "status": status}
    for subresources, expected in (({}, {"seen": True}), ({"status": {}}, None)):
        definition = crd({"type": "object", "properties": both})
        definition["spec"]["versions"][0]["subresources"] = subresources
        versions = SchemaVersions(
            "1.34", crds=read_imported_crds(CrdFiles((json.dumps(reduce_crd(definition)),)))
        )
        new, _ = build_admission_request_objects(body, None, versions)
        assert new.get("status") == expected
        assert [one.path for one in check_object_against_api_schema(body, versions)] == (
            [("status", "seen")] if expected else []
        )
        assert check_object_against_api_schema({**widget(), "status": {"other": 1}}, versions)


@pytest.mark.parametrize(
    ("metadata", "spec", "said"),
    [
        ({}, {"count": 2**63 - 1}, ""),
        ({}, {"count": 2**63}, "9223372036854775807"),
        ({}, {"either": -(2**63) - 1}, "-9223372036854775808"),
        ({"annotations": {"a": 5}}, {}, "text"),
        ({"labels": {"a": True}}, {}, "text"),
        ({"labels": None, "annotations": {"a": None}}, {}, ""),
    ],
)
def test_numbers_and_texts_that_a_server_cannot_read_are_refused(metadata: Any, spec: Any, said: str) -> None:
    """As in answers of Kubernetes 1.34: beyond 64 bits a number is not an integer; annotations are texts."""
    schema = fields(count={"type": "integer"}, either={"x-kubernetes-int-or-string": True})
    definition = crd({"type": "object", "properties": {"spec": schema}})
    versions = SchemaVersions(
        "1.34", crds=read_imported_crds(CrdFiles((json.dumps(reduce_crd(definition)),)))
    )
    body = widget(**spec)
    body["metadata"] |= metadata
    found = [one.message for one in check_object_against_api_schema(body, versions)]
    assert (said in found[0]) if said else found == []


def test_a_number_beyond_64_bits_is_a_double_to_policies() -> None:
    definition = crd({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    versions = SchemaVersions(
        "1.34", crds=read_imported_crds(CrdFiles((json.dumps(reduce_crd(definition)),)))
    )
    new, _ = build_admission_request_objects(
        {**widget(), "spec": {"a": 2**63, "b": 2**63 - 1, "c": True}}, None, versions
    )
    assert [type(one) for one in new["spec"].values()] == [float, int, bool]
