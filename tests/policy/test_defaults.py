"""The tables of defaults match the real CRDs, and a set value is never replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gangplan.validate.apiserver.defaulting import crds as tables
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.policy.test_crd_rules import MINORS, versions
from tests.validate.crd import crds, needs_crds

VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")


def defaults(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every default of a schema with its path."""
    if path and "default" in schema:
        yield path, schema["default"]
    for name, inner in (schema.get("properties") or {}).items():
        yield from defaults(inner, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), dict):
        yield from defaults(schema["items"], f"{path}[]")


@needs_crds
@pytest.mark.parametrize(("component", "minor"), MINORS)
def test_tables_match_the_defaults_of_the_crds(component: str, minor: str) -> None:
    for (api_version, kind), schema in crds(component, minor).items():
        if kind in ("Workload", "MultiKueueCluster"):
            continue  # a Workload is never in Git; a MultiKueueCluster's field moved between versions
        real = {path: value for path, value in defaults(schema, "") if not path.startswith("status")}
        ours = dict(tables.find_crd_defaults(api_version, kind, versions(component, minor)))
        fields = {path for path, _ in known(schema, "")}
        ours = {path: value for path, value in ours.items() if path in fields}
        # A default that is a mapping gets the defaults of its own fields.
        assert {p: v for p, v in real.items() if not isinstance(v, dict)} == {
            p: v for p, v in ours.items() if not isinstance(v, dict)
        }, (kind, minor)
        assert {p for p, v in real.items() if isinstance(v, dict)} == {
            p for p, v in ours.items() if isinstance(v, dict)
        }


def known(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every field of a schema with its path."""
    yield path, schema
    for name, inner in (schema.get("properties") or {}).items():
        yield from known(inner, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), dict):
        yield from known(schema["items"], f"{path}[]")


def test_set_values_are_never_replaced() -> None:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"runtimeRef": {"kind": "TrainingRuntime"}, "suspend": False, "managedBy": "x"},
    }
    filled = fill_api_server_defaults(job, SchemaVersions("1.34", "2.3"))
    assert filled["spec"]["managedBy"] == "x"
    assert filled["spec"]["runtimeRef"] == {"kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"}
    assert "apiGroup" not in job["spec"]["runtimeRef"]


def test_a_job_with_a_queue_is_suspended() -> None:
    metadata = {"name": "a", "namespace": "b", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {},
    }
    assert fill_api_server_defaults(job, VERSIONS)["spec"]["suspend"] is True
    assert len(fill_api_server_defaults(job, VERSIONS)["spec"]["runtimePatches"]) == 1
    assert (
        "runtimePatches" not in fill_api_server_defaults(job, SchemaVersions("1.34", "2.1", "0.15"))["spec"]
    )
    assert fill_api_server_defaults(job, SchemaVersions("1.34", "2.3"))["spec"]["suspend"] is False


def test_fields_of_a_wrong_type_are_left_alone() -> None:
    for spec in (None, 5, "x", [], {"containers": "x"}, {"containers": [None, 3]}, {"volumes": {"a": 1}}):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
        assert fill_api_server_defaults(pod, VERSIONS)["metadata"]["name"] == "a"
    assert fill_api_server_defaults({"kind": "Pod"}, VERSIONS) == {"kind": "Pod"}
    assert fill_api_server_defaults({"apiVersion": 1, "kind": []}, VERSIONS) == {"apiVersion": 1, "kind": []}
