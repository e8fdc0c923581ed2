"""The schema gate: valid objects pass, invalid ones are reported, and both engines agree."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.validate.apiserver.schema import (
    SchemaVersions,
    build_kind_schema,
    check_object_against_api_schema,
    judge_object_by_reference_json_schema,
    list_kinds_with_api_schema,
)
from tests.validate.cases import CLUSTERS, EVERY_KUBERNETES, EVERY_KUEUE, broken, broken_object, nodes, valid

GOOD = [
    pytest.param(good, at, id=f"{good.name}-{at.trainer}")
    for good in valid().values()
    for at in good.clusters()
]
BROKEN = [
    pytest.param(case, at, id=f"{case['case']}-{at.trainer}-{at.kueue}")
    for case in broken()
    for at in valid()[case["object"]].clusters(case.get("versions"))
]


@pytest.mark.parametrize(("good", "at"), GOOD)
def test_a_valid_object_passes(good: Any, at: SchemaVersions) -> None:
    assert check_object_against_api_schema(good.body, at) == []
    assert judge_object_by_reference_json_schema(good.body, at) == []


@pytest.mark.parametrize("minor", EVERY_KUBERNETES)
def test_a_valid_object_passes_on_every_kubernetes(minor: str) -> None:
    for good in valid().values():
        for at in good.clusters() if minor in good.only.get("kubernetes", [minor]) else ():
            assert (
                check_object_against_api_schema(
                    good.body, SchemaVersions(minor, at.trainer, at.kueue, at.jobset)
                )
                == []
            )


@pytest.mark.parametrize(("case", "at"), BROKEN)
def test_a_broken_object_is_reported_once(case: dict[str, Any], at: SchemaVersions) -> None:
    body = broken_object(case)
    found = check_object_against_api_schema(body, at)
    assert [one.rule for one in found] == ["schema"] * len(found)
    assert any(case["says"] in f"{one.message} {one.help}" for one in found), found
    wanted = tuple(case.get("path", case["at"]))
    assert any(one.path == wanted for one in found), found
    assert len(found) == 1, "one cause, one problem"
    assert judge_object_by_reference_json_schema(body, at), "the reference engine accepts it"


def test_all_problems_are_reported_in_order_of_their_paths() -> None:
    body = deepcopy(valid()["train-job"].body)
    body["spec"]["trainer"] |= {"numNodes": "four", "numNode": 1, "imag": "x"}
    body["spec"]["managedBy"] = 5
    body["metadata"]["labels"]["a b"] = "c d"
    found = [one.message for one in check_object_against_api_schema(body, CLUSTERS[-1])]
    a_key = "a key such as app or example.com/app (the part after '/' has at most 63 characters)"
    a_value = "at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
    assert found == [
        "metadata.labels has the key 'a b'; expected: " + a_key,
        "metadata.labels['a b'] is the text 'c d'; expected: " + a_value,
        "spec.managedBy is the number 5; a text is expected",
        "unknown field 'imag' in spec.trainer; did you mean 'image'?",
        "unknown field 'numNode' in spec.trainer; did you mean 'numNodes'?",
        "spec.trainer.numNodes is the text 'four'; a whole number is expected",
    ]


@pytest.mark.parametrize(
    ("body", "at", "says"),
    [
        ({"apiVersion": "v1", "kind": "Namespaces"}, CLUSTERS[0], "did you mean 'Namespace'?"),
        (
            {"apiVersion": "v2", "kind": "Namespace"},
            CLUSTERS[0],
            "Namespace is not served as v2 by kubernetes 1.30",
        ),
        ({"apiVersion": "example.com/v1", "kind": "Thing"}, CLUSTERS[0], "no schema for this kind"),
        ({"apiVersion": "kueue.x-k8s.io/v1beta3", "kind": "Cohort"}, CLUSTERS[0], "kueue.x-k8s.io/v1beta2"),
        (valid()["namespace"].body, SchemaVersions("1.29"), "no schema for kubernetes 1.29"),
        (valid()["namespace"].body, SchemaVersions("1.99"), "known kubernetes versions: 1.30"),
        (valid()["train-job"].body, SchemaVersions("1.34"), "the cluster states no trainer version"),
        (valid()["train-job"].body, SchemaVersions("1.34", "3.0"), "no schema for trainer 3.0"),
    ],
)
def test_objects_without_a_schema_are_not_valid(body: dict[str, Any], at: SchemaVersions, says: str) -> None:
    (found,) = check_object_against_api_schema(body, at)
    assert found.rule == "schema-missing"
    assert says in f"{found.message} {found.help}"
    assert build_kind_schema(at, body["apiVersion"], body["kind"]) is None


@pytest.mark.parametrize(
    "body", [{}, {"kind": "Pod"}, {"apiVersion": 1, "kind": "Pod"}, {"apiVersion": "v1", "kind": []}]
)
def test_an_object_without_identity_is_invalid(body: dict[str, Any]) -> None:
    assert check_object_against_api_schema(body, CLUSTERS[0])


def test_keys_that_json_cannot_represent_are_reported() -> None:
    body = deepcopy(valid()["namespace"].body)
    body["metadata"]["labels"][7] = "seven"
    (found,) = check_object_against_api_schema(body, CLUSTERS[0])
    assert "JSON" in found.message


def every_version() -> list[SchemaVersions]:
    """Return versions that have each minor version of each component at least once."""
    out = [SchemaVersions(minor) for minor in EVERY_KUBERNETES]
    out += [SchemaVersions("1.34", kueue=minor) for minor in EVERY_KUEUE]
    return [*out, *CLUSTERS]


def test_schemas_are_valid_and_self_contained() -> None:
    schemas = [
        build_kind_schema(at, *gvk) for at in every_version() for gvk in list_kinds_with_api_schema(at)
    ]
    parts = {json.dumps(part) for schema in schemas for part in schema["$defs"].values()}
    parts |= {json.dumps({**schema, "$defs": {}}) for schema in schemas}
    for part in parts:  # most parts are shared by other kinds and versions
        jsonschema.Draft202012Validator.check_schema(json.loads(part))
    for text in {json.dumps(schema) for schema in schemas}:
        names = set(json.loads(text)["$defs"])
        assert all(part.split('"')[0] in names for part in text.split('"#/$defs/')[1:])
        assert text.count('"$ref"') == text.count('"#/$defs/')


def test_every_kind_has_a_valid_object() -> None:
    covered = {(good.body["apiVersion"], good.body["kind"]) for good in valid().values()}
    kinds_covered = {kind for _, kind in covered}
    missing = {kind for at in CLUSTERS for _, kind in list_kinds_with_api_schema(at)} - kinds_covered
    # Kinds with the same fields are covered.
    assert missing <= {"ClusterRole", "Job"}


# Hypothesis: a valid object with one field deleted, renamed or given another type.

ODD_VALUES: list[Any] = [
    None,
    "",
    "x",
    "four",
    0,
    -1,
    1.0,
    1.5,
    70000,
    2**70,
    True,
    [],
    ["x"],
    {},
    {"x": 1},
    "a\n",
]


def mutations(draw: st.DrawFn) -> tuple[dict[str, Any], SchemaVersions]:
    """Draw a valid object after one to three random changes, and a cluster."""
    good = draw(st.sampled_from(list(valid().values())))
    body = deepcopy(good.body)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(nodes(body))))
        if way == [] and last in ("apiVersion", "kind"):
            continue
        node: Any = body
        for step in way:
            node = node[step]
        change = draw(st.sampled_from(["drop", "rename", "retype", "repeat"]))
        if change == "drop":
            del node[last]
        elif change == "rename" and isinstance(node, dict):
            node[str(last) + draw(st.sampled_from(["s", "X", " ", "\n", "/"]))] = node.pop(last)
        elif change == "repeat" and isinstance(node, list):
            node.append(deepcopy(node[last]))
        else:
            node[last] = deepcopy(draw(st.sampled_from(ODD_VALUES)))
    return body, draw(st.sampled_from(CLUSTERS))


@settings(max_examples=400, deadline=None)
@given(case=st.composite(mutations)())
def test_both_engines_agree(case: tuple[dict[str, Any], SchemaVersions]) -> None:
    body, at = case
    ours, reference = (
        check_object_against_api_schema(body, at),
        judge_object_by_reference_json_schema(body, at),
    )
    assert bool(ours) == bool(reference), (ours, reference)
    for one in ours:
        assert one.message
        assert "None" not in one.help
