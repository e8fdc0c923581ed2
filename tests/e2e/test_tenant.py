"""All that a tenant can have, on a real API server: accepted without a warning, no drift, and in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import Answer, ApiError, poll
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
EXAMPLE = Path(__file__).parents[1] / "examples/tenant-in-full/input"
# Other tests have namespaces of these names.
NAMESPACES = {"team-nlp": "full-nlp", "vision": "full-vision"}
OWN = ("Namespace", "PriorityClass")
ABSENT = ("ExternalSecret",)  # its operator is not in the lab; the gate knows its schema


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Run a cluster of its own: policies that the sample's cluster leaves in the shared one judge claims."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    with Lab(profile) as running:
        yield running


@pytest.fixture(scope="module")
def applied(lab: Lab) -> Iterator[list[tuple[Object, Answer]]]:
    """Apply the tenants of the example and what they need; yield each object with the server's answer."""
    result = preview_render(Request(EXAMPLE, ("lab",), engine="serial"))
    assert not result.has_errors, result.findings
    bodies = [
        _elsewhere(body)
        for path, text in sorted(result.texts.items())
        if "/runs/" not in path
        for body in load_objects(text)
        if body["kind"] not in ABSENT and ("/tenants/" in path or body["kind"] in OWN)
    ]
    yield [(body, lab.client.apply(body)) for body in bodies]
    for namespace in NAMESPACES.values():
        lab.client.delete("Namespace", namespace)


def _elsewhere(body: Object) -> Object:
    metadata = body["metadata"]
    if body["kind"] == "Namespace":
        metadata["name"] = NAMESPACES[metadata["name"]]
    elif "namespace" in metadata:
        metadata["namespace"] = NAMESPACES[metadata["namespace"]]
    return body


def test_tenant_objects_are_accepted_without_a_warning(applied: list[tuple[Object, Answer]]) -> None:
    kinds = {body["kind"] for body, _ in applied}
    assert kinds >= {"ResourceQuota", "LimitRange", "NetworkPolicy", "PersistentVolumeClaim", "RoleBinding"}
    assert not [(body["kind"], answer.warnings) for body, answer in applied if answer.warnings]


def test_tenant_objects_do_not_drift(lab: Lab, applied: list[tuple[Object, Answer]]) -> None:
    for body, _ in applied:
        metadata = body["metadata"]
        live = lab.client.get(body["kind"], metadata["name"], metadata.get("namespace"))
        assert drift(body, live) == [], f"{body['kind']}/{metadata['name']}"


def pod(namespace: str, **changes: Any) -> Object:
    """Return a pod that restricted pod security admits."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": namespace},
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "serviceAccountName": "training",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/probe:1",
                    "securityContext": security,
                    **changes.pop("container", {}),
                }
            ],
            **changes,
        },
    }


@pytest.fixture
def counted(lab: Lab, applied: list[tuple[Object, Answer]]) -> None:
    """Wait for the controller of quotas: they refuse everything until it has counted."""
    for namespace in NAMESPACES.values():
        quotas = {body["metadata"]["name"] for body in lab.client.list("ResourceQuota", namespace)}
        poll(
            lambda namespace=namespace, quotas=quotas: all(
                "hard" in lab.client.get("ResourceQuota", name, namespace).get("status", {})
                for name in quotas
            ),
            30,
            lambda namespace=namespace: f"the quotas of {namespace} are not counted",
        )


@pytest.mark.parametrize(
    ("namespace", "priority"),
    [("full-vision", "high"), ("full-vision", "critical"), ("full-nlp", "critical")],
)
def test_pods_of_a_forbidden_priority_are_refused(
    lab: Lab, counted: None, namespace: str, priority: str
) -> None:
    body = pod(namespace, priorityClassName=f"training-{priority}")
    with pytest.raises(ApiError, match="exceeded quota: priorities"):
        lab.client.create(body, dry_run=True)


@pytest.mark.parametrize(
    ("namespace", "priority"), [("full-vision", "normal"), ("full-nlp", "high"), ("full-nlp", "low")]
)
def test_pods_of_other_priorities_are_admitted_and_get_defaults(
    lab: Lab, counted: None, namespace: str, priority: str
) -> None:
    body = pod(namespace, priorityClassName=f"training-{priority}")
    made = lab.client.create(body, dry_run=True).object["spec"]
    defaults = {"cpu": "1", "memory": "1Gi"}
    assert made["containers"][0]["resources"] == {"requests": defaults, "limits": defaults}
    assert made["preemptionPolicy"] == "Never"
    assert made["imagePullSecrets" if namespace == "full-nlp" else "serviceAccountName"]


def test_a_container_larger_than_any_node_is_refused(lab: Lab, counted: None) -> None:
    body = pod("full-nlp", container={"resources": {"limits": {"cpu": "61", "memory": "1Gi"}}})
    with pytest.raises(ApiError, match="maximum cpu usage per Container is 60, but limit is 61"):
        lab.client.create(body, dry_run=True)


def test_services_with_node_ports_are_refused(lab: Lab, counted: None) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "door", "namespace": "full-nlp"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]},
    }
    with pytest.raises(ApiError, match=r"exceeded quota: training, requested: services.nodeports=1"):
        lab.client.create(service, dry_run=True)
