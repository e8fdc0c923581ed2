"""Node fit compared with the real kube-scheduler: random small clusters and pods, and how many pods it binds.

All worlds share one lab. A label separates their nodes, and labels of their own their pods. Constraints that
reach beyond that (spread constraints that ignore node affinity count every node of the cluster) are left out
here; only tests/fit checks them.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from gangplan.validate.scheduler import Fit, fit_pods
from tests.fit.oracle import HOST, Case, Object, nodes_of, pods_of, random_case
from tests.lab import nodes as lab_nodes
from tests.lab.client import ApiError, Client, condition, poll
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
NAMESPACE, WORLD, WORLDS = "node-fit", "example.com/world", 180
# A pod that found no node is retried after at most ten seconds of backoff (kube-scheduler's default).
BACKOFF, PATIENCE = 11.0, 300.0


def isolated(case: Case, world: str) -> Case:
    """Return the same world for a cluster with other nodes and pods."""
    groups = tuple(replace(group, labels={**group.labels, WORLD: world}) for group in case.groups)
    return Case(groups, tuple((count, _isolated_pod(pod, world)) for count, pod in case.pods))


def _isolated_pod(pod: Object, world: str) -> Object:
    spec = _renamed(pod["spec"], world)
    for constraint in spec.get("topologySpreadConstraints", []):
        constraint.pop("nodeAffinityPolicy", None)
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), WORLD: world}
    # Every test namespace has a service account, but only after a while.
    spec |= {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    metadata = {
        **pod["metadata"],
        "labels": _renamed(pod["metadata"]["labels"], world),
        "namespace": NAMESPACE,
    }
    return {**pod, "metadata": metadata, "spec": spec}


def _renamed(value: Any, world: str) -> Any:
    """Return a value in which the pod labels have the world in their values."""
    if isinstance(value, dict):
        return {
            key: f"{inner}-{world}" if key in ("run", "role") else _renamed(inner, world)
            for key, inner in value.items()
        }
    return [_renamed(one, world) for one in value] if isinstance(value, list) else value


def nodes(case: Case, world: str) -> Iterator[Object]:
    """Yield the nodes of a world, with unique names."""
    for node in nodes_of(case.groups):
        name = f"{world}-{node['name']}"
        yield {**node, "name": name, "labels": {**node["labels"], HOST: name}}


def pods(case: Case, world: str) -> Iterator[Object]:
    """Yield the pods of a world one by one, kinds in random order."""
    every = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**pod["metadata"], "name": f"{world}-{pod['metadata']['name']}-{number}"},
            "spec": pod["spec"],
        }
        for count, pod in case.pods
        for number in range(count)
    ]
    random.Random(world).shuffle(every)
    yield from every


class Bound:
    """What the scheduler has done so far, by world."""

    def __init__(self, api: Client, fits: dict[str, Fit]) -> None:
        """Start counting the pods of these worlds."""
        self.api, self.fits = api, fits
        self.counts: Counter[str] = Counter()
        self.looked_at: Counter[str] = Counter()
        self._since = time.monotonic()

    def is_over(self) -> bool:
        """Return whether every pod is bound or refused, and nothing has changed for the time of a backoff."""
        counts: Counter[str] = Counter()
        looked_at: Counter[str] = Counter()
        for pod in self.api.list("Pod", NAMESPACE):
            world = pod["metadata"]["labels"]["run"].removeprefix("one-")
            counts[world] += bool(pod["spec"].get("nodeName"))
            looked_at[world] += condition(pod, "PodScheduled") is not None
        if counts != self.counts:
            self.counts, self._since = counts, time.monotonic()
        self.looked_at = looked_at
        if any(looked_at[world] < fit.pods for world, fit in self.fits.items()):
            return False
        # If as many run as ever can, there is nothing to wait for.
        is_full = all(counts[world] >= fit.bound for world, fit in self.fits.items())
        return is_full or time.monotonic() - self._since > BACKOFF


@pytest.fixture
def api(lab: Lab) -> Iterator[Client]:
    """Yield the lab's client with an empty namespace, and delete the pods and nodes of this test
    afterwards."""
    lab.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    poll(
        lambda: lab.client.find("ServiceAccount", "default", NAMESPACE),
        30,
        lambda: "there is no service account",
    )
    yield lab.client
    at_once = {"gracePeriodSeconds": "0"}
    lab.client.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods", query=at_once)
    lab.client.request("DELETE", "/api/v1/nodes", query={"labelSelector": WORLD, **at_once})
    lab.client.delete("Namespace", NAMESPACE)


def test_the_scheduler_binds_as_many_pods_as_node_fit_says(api: Client) -> None:
    cases = {f"w{seed}": isolated(_case(seed), f"w{seed}") for seed in range(WORLDS)}
    fits = {world: fit_pods(case.world, pods_of(case)) for world, case in cases.items()}
    with ThreadPoolExecutor(4) as several:
        named = several.map(lambda world: lab_nodes.create(api, nodes(cases[world], world)), cases)
        names = [name for some in named for name in some]
        poll(lambda: lab_nodes.usable(api, names), PATIENCE, lambda: "nodes are not ready", every=1)
        list(several.map(lambda world: _create(api, cases[world], world), cases))
    bound = Bound(api, fits)
    poll(bound.is_over, PATIENCE, lambda: f"the scheduler still works: {bound.looked_at}", every=1)
    wrong = {
        world: f"bound {bound.counts[world]}, said {fit.sure} to {fit.bound} of {fit.pods}: {cases[world]}"
        for world, fit in fits.items()
        if not (fit.sure or 0) <= bound.counts[world] <= fit.bound
    }
    assert not wrong
    exact = [fit for fit in fits.values() if fit.is_exact and fit.sure == fit.bound]
    partly = [fit for fit in exact if 0 < fit.bound < fit.pods]
    # Where the scheduler's choice decides (sure < bound), any number between the two is right.
    print(f"{len(fits)} worlds, {len(exact)} of them with one number, {len(partly)} of these in part")
    assert len(exact) >= 150
    assert len(partly) >= 20
    assert all(fit.is_exact and fit.sure is not None for fit in fits.values())


def _case(seed: int) -> Case:
    chance = random.Random(seed)
    return random_case(chance, nodes=2, pods=4, kinds=chance.choice((1, 2, 2, 3)))


def _create(api: Client, case: Case, world: str) -> None:
    """Create the pods of a world; fail with the pod if the server refuses one."""
    for pod in pods(case, world):
        try:
            api.create(pod)
        except ApiError as refused:
            raise AssertionError(f"{refused} for {pod}") from refused
