"""Monitoring in a cluster file, all the way to rendered/ and through the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import plain, workspaces

MONITORING = """\
monitoring:
  namespace: observe
  ruleLabels: {release: prometheus}
  dashboardLabels: {grafana_dashboard: "1"}
  pending: 45m
"""


def platform(root: Path, cluster: str) -> list[dict[str, Any]]:
    """Return what is rendered for the platform and accepted by `validate`."""
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    outcome = workspaces.gangplan("validate", "-C", root)
    assert outcome.code == 0, outcome.out + outcome.err
    texts = [text for path, text in workspaces.rendered(root).items() if "/platform/" in path]
    return [body for text in texts for body in plain.load_all(text)]


def names(bodies: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return kind and name of the objects of monitoring."""
    found = [body for body in bodies if body["metadata"].get("namespace") == "observe"]
    return sorted((body["kind"], body["metadata"]["name"]) for body in found)


def test_a_cluster_with_monitoring_has_rules_and_dashboards(root: Path) -> None:
    bodies = platform(root, workspaces.CLUSTER + MONITORING)
    assert names(bodies) == [
        ("ConfigMap", "gangplan-queues"),
        ("ConfigMap", "gangplan-usage"),
        ("ConfigMap", "gangplan-workers"),
        ("PrometheusRule", "gangplan-alerts"),
        ("PrometheusRule", "gangplan-records"),
    ]
    (records,) = [body for body in bodies if body["metadata"]["name"] == "gangplan-records"]
    assert records["metadata"]["labels"]["release"] == "prometheus"
    teams = [rule["labels"] for rule in records["spec"]["groups"][0]["rules"]]
    assert [(one["team"], one["namespace"]) for one in teams] == [("nlp", "nlp")]
    (alerts,) = [body for body in bodies if body["metadata"]["name"] == "gangplan-alerts"]
    waits = [rule for group in alerts["spec"]["groups"] for rule in group["rules"]]
    assert {rule["for"] for rule in waits if rule["alert"] == "GangplanRunPendingTooLong"} == {"45m"}


def test_a_cluster_without_monitoring_has_neither(root: Path) -> None:
    assert names(platform(root, workspaces.CLUSTER)) == []


def test_rules_name_the_queue_that_is_rendered(root: Path) -> None:
    bodies = platform(root, workspaces.CLUSTER + MONITORING)
    queues = {body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterQueue"}
    (records,) = [body for body in bodies if body["metadata"]["name"] == "gangplan-records"]
    assert {rule["labels"]["cluster_queue"] for rule in records["spec"]["groups"][0]["rules"]} == queues


@pytest.mark.parametrize("labels", ["ruleLabels: {'a b': c}", "namespace: Monitoring"])
def test_labels_and_namespaces_that_prometheus_cannot_read_are_refused(labels: str, root: Path) -> None:
    cluster = workspaces.CLUSTER + f"monitoring:\n  {labels}\n"
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    assert workspaces.gangplan("validate", "-C", root).code != 0
