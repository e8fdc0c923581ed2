"""Our schemas compared with the real CRDs: they are never looser, and no field is forgotten."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.validate.apiserver.schema import (
    SchemaVersions,
    build_kind_schema,
    check_object_against_api_schema,
)
from tests.validate import crd
from tests.validate.cases import valid
from tests.validate.test_schema import mutations

pytestmark = crd.needs_crds

AT_HAND = {"trainer": ["2.1", "2.2", "2.3"], "jobset": ["0.10", "0.12"], "kueue": ["0.15", "0.17", "0.19"]}
VERSIONS = [(component, minor) for component, minors in AT_HAND.items() for minor in minors]
# A Workload is Kueue's own object, which is not written by hand.
NOT_OURS = {"Workload"}


def at(component: str, minor: str) -> SchemaVersions:
    """Return a cluster with one component."""
    return SchemaVersions("1.34", **{component: minor})


def pairs(component: str, minor: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return name, our schema and CRD for every kind of a component."""
    out = []
    for (api_version, kind), theirs in crd.crds(component, minor).items():
        if kind not in NOT_OURS:
            ours = build_kind_schema(at(component, minor), api_version, kind)
            assert ours is not None, f"{api_version} {kind}"
            out.append((f"{api_version} {kind}", ours, theirs))
    assert out
    return out


@pytest.mark.parametrize(("component", "minor"), VERSIONS)
def test_schemas_are_never_looser_than_the_crd(component: str, minor: str) -> None:
    gaps = {name: crd.looser(ours, theirs) for name, ours, theirs in pairs(component, minor)}
    assert {name: found for name, found in gaps.items() if found} == {}


@pytest.mark.parametrize(("component", "minor"), VERSIONS)
def test_no_field_of_the_crd_is_forgotten(component: str, minor: str) -> None:
    gaps = {name: crd.forgotten(ours, theirs) for name, ours, theirs in pairs(component, minor)}
    # A claim that a JobSet creates has no status before it exists.
    assert {
        name: [one for one in found if ".templates[].status" not in one] for name, found in gaps.items()
    } == {name: [] for name in gaps}


def minors_of(versions: SchemaVersions) -> dict[str, str]:
    """Return minor versions by component, as crd.crd_for takes them."""
    return {name: minor for name in AT_HAND if (minor := versions.minor(name)) is not None}


def test_valid_objects_satisfy_the_crds() -> None:
    seen: Counter[str] = Counter()
    for good in valid().values():
        for versions in good.clusters():
            minors = minors_of(versions)
            component = crd.GROUPS.get(good.body["apiVersion"].partition("/")[0])
            if component and minors[component] in AT_HAND[component]:
                schema = crd.crd_for(good.body, minors)
                assert schema is not None
                assert crd.violations(good.body, schema) == []
                seen[good.body["kind"]] += 1
    assert len(seen) >= 12


@settings(max_examples=400, deadline=None)
@given(case=st.composite(mutations)())
def test_objects_that_the_crd_refuses_are_refused(case: tuple[dict[str, Any], SchemaVersions]) -> None:
    body, versions = case
    minors = minors_of(versions)
    component = crd.GROUPS.get(str(body.get("apiVersion")).partition("/")[0])
    if component is None or minors[component] not in AT_HAND[component]:
        return
    schema = crd.crd_for(body, minors)
    assert schema is not None
    refused = crd.violations(body, schema)
    if refused:
        assert check_object_against_api_schema(body, versions), refused


def test_the_check_of_crds_finds_each_violation() -> None:
    schema = crd.crds("trainer", "2.3")["trainer.kubeflow.org/v1alpha1", "TrainJob"]
    body = deepcopy(valid()["train-job-deadline"].body)
    body["spec"] |= {"activeDeadlineSeconds": 0, "suspend": "yes", "nodes": 4}
    body["spec"]["trainer"] |= {"command": "x", "env": [{"name": "A"}, {"name": "A"}, {}]}
    body["spec"]["runtimeRef"] = {"name": "", "kind": None}
    body["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"cpu": 1.5, "memory": "32GB"}}
    assert [one.split(" ")[0] for one in sorted(crd.violations(body, schema))] == [
        "spec.activeDeadlineSeconds",
        "spec.nodes",
        "spec.runtimeRef.kind",
        "spec.runtimeRef.name",
        "spec.suspend",
        "spec.trainer.command",
        "spec.trainer.env",
        "spec.trainer.env[2]",
        "spec.trainer.resourcesPerNode.limits.cpu",
        "spec.trainer.resourcesPerNode.limits.memory",
    ]
