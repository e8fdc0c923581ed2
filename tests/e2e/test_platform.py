"""The rendered platform works: queues are active, quotas are what the API server stores, names are valid."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.resolve.shares import compute_pool_capacity
from tests.e2e.story import Chapter
from tests.lab.client import condition

pytestmark = pytest.mark.e2e


def live(chapter: Chapter, kind: str) -> list[Any]:
    """Return the chapter's own objects of a kind as the server has them now; other modules may have left
    some."""
    own = [body["metadata"] for body in chapter.standing if body["kind"] == kind]
    return [chapter.lab.client.get(kind, one["name"], one.get("namespace")) for one in own]


def test_queues_are_active(chapter: Chapter) -> None:
    kinds = {body["kind"] for body in chapter.standing}
    assert {"ClusterQueue", "LocalQueue", "ResourceFlavor", "Cohort"} <= kinds
    for body in chapter.standing:
        if body["kind"] in ("ClusterQueue", "LocalQueue"):
            meta = body["metadata"]
            live = chapter.lab.client.get(body["kind"], meta["name"], meta.get("namespace"))
            assert condition(live, "Active") == "True", live["status"]["conditions"]


def test_quotas_add_up_to_the_nodes(chapter: Chapter) -> None:
    """Nominal quotas add up to what the nodes of each pool have, and no more."""
    pools = chapter.cluster.node_pools
    promised: dict[tuple[str, str], Quantity] = {}
    for queue in live(chapter, "ClusterQueue"):
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            pool = next(
                name for name in sorted(pools, key=len, reverse=True) if flavor["name"].startswith(name)
            )
            for item in flavor["resources"]:
                key = (pool, item["name"])
                promised[key] = promised.get(key, Quantity.of(0)) + parse_quantity(item["nominalQuota"])
    for pool, spec in pools.items():
        for resource, whole in compute_pool_capacity(spec).items():
            # An indivisible rest is left over: less than a thousandth of a core or a MiB for each team.
            assert promised[pool, resource] <= whole
            assert (whole - promised[pool, resource]).nano * 1000 <= whole.nano


def test_no_team_reaches_the_queue_of_another(chapter: Chapter) -> None:
    """A ClusterQueue admits only runs of its own team's namespace."""
    queues = live(chapter, "ClusterQueue")
    namespaces = [queue["spec"]["namespaceSelector"]["matchLabels"] for queue in queues]
    assert len({str(labels) for labels in namespaces}) == len(queues)
    locals_ = live(chapter, "LocalQueue")
    for queue in locals_:
        (behind,) = (one for one in queues if one["metadata"]["name"] == queue["spec"]["clusterQueue"])
        wanted = behind["spec"]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        assert wanted == queue["metadata"]["namespace"]


def test_the_resource_quota_of_a_namespace_refuses_no_rendered_object(chapter: Chapter) -> None:
    said = [
        event["message"]
        for event in chapter.lab.client.list("Event")
        if "exceeded quota" in event.get("message", "")
    ]
    assert not said
    used = [item["status"]["used"] for item in chapter.lab.client.list("ResourceQuota") if item.get("status")]
    assert used


def test_a_container_above_the_largest_node_is_refused(chapter: Chapter) -> None:
    """The LimitRange is in force: a container above the largest node is refused at once."""
    body = next(body for body in chapter.standing if body["kind"] == "LimitRange")
    most = parse_quantity(body["spec"]["limits"][0]["max"]["cpu"])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "too-large", "namespace": body["metadata"]["namespace"]},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "node",
                    "image": "registry.example.com/x",
                    "resources": {
                        "requests": {"cpu": (most + most).canonical()},
                        "limits": {"cpu": (most + most).canonical()},
                    },
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
    with pytest.raises(Exception, match="maximum cpu usage per Container"):
        chapter.lab.client.create(pod, dry_run=True)
