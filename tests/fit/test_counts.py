"""Node fit in small worlds made by hand: answers that can be checked by hand, large pools, each phase."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.scheduler import (
    Fit,
    PodShape,
    build_plain_pods_for_scheduler,
    fit_pods,
    fit_run_pods_onto_nodes,
)
from gangplan.validate.scheduler.model import FitQuestion, NodeShape, PodKind
from gangplan.validate.scheduler.reduce import Reducer
from gangplan.validate.scheduler.search import search_best_pod_packing
from gangplan.validate.scheduler.undeclared import find_undeclared_node_labels
from gangplan.validate.world import NodeGroup, NodeGroupTaint, World
from tests.fit.oracle import HOST, RACK, REQUIRED, ZONE, Object

WORKERS = {"matchLabels": {"role": "worker"}}


def world(*groups: NodeGroup, standing: tuple[dict[str, Any], ...] = (), pods: int = 110) -> World:
    """Return a cluster of these nodes."""
    versions = SchemaVersions("1.34", "2.3", "0.19", "0.12")
    return World("lab", versions, standing, groups, pods_per_node=pods)


def group(name: str = "a", count: int = 4, cpu: int = 8, **more: Any) -> NodeGroup:
    """Return nodes with this many cores."""
    free = {"cpu": Fraction(cpu), "memory": Fraction(64)} | more.pop("free", {})
    labels = {"pool": name} | more.pop("labels", {})
    return NodeGroup(name, count, labels, more.pop("taints", ()), free, more.pop("domains", ()))


def pods(count: int, cpu: str = "1", name: str = "worker", **spec: Any) -> PodShape:
    """Return this many equal pods."""
    requests = {"cpu": cpu, **spec.pop("requests", {})}
    container: Object = {"name": "node", "resources": {"requests": requests}}
    body = {"metadata": {"name": name, "labels": {"role": name}}, "spec": {"containers": [container], **spec}}
    return build_plain_pods_for_scheduler(name, count, body)


def apart(key: str) -> Object:
    """Return anti-affinity of workers among themselves."""
    term = {"topologyKey": key, "labelSelector": WORKERS}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def spread(key: str, skew: int = 1, **more: Any) -> list[Object]:
    """Return a hard spread constraint of workers."""
    own = {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WORKERS,
    }
    return [own | more]


EAST, WEST = group(labels={ZONE: "x", "zone": "x"}), group("b", 1, 2, labels={ZONE: "y"})
TAINTED = group("b", taints=(NodeGroupTaint("k", "", "NoSchedule"),))


@pytest.mark.parametrize(
    ("nodes", "asked", "bound"),
    [
        ((group(),), pods(40), 32),
        ((group(cpu=8),), pods(9, "3"), 8),
        ((group(),), pods(40, "0"), 40),
        ((group(free={"pods": Fraction(3)}),), pods(40), 12),
        ((group(), group("b", 2, 4)), pods(50), 40),
        ((group(count=0),), pods(1), 0),
        ((group(domains=((RACK, 2),)),), pods(5, affinity=apart(RACK)), 2),
        ((group(count=5, domains=((RACK, 2),)),), pods(5, affinity=apart(RACK)), 3),
        ((group(),), pods(5, affinity=apart(HOST)), 4),
        ((group(labels={ZONE: "x"}), group("b", labels={ZONE: "x"})), pods(5, affinity=apart(ZONE)), 1),
        ((group(),), pods(5, affinity=apart(ZONE)), 5),
        ((group(), group("b", 1, 2)), pods(50, topologySpreadConstraints=spread(HOST)), 14),
        ((EAST, WEST), pods(50, topologySpreadConstraints=spread(ZONE, 3)), 7),
        ((EAST,), pods(50, topologySpreadConstraints=spread(ZONE, 3, minDomains=2)), 3),
        ((group(), EAST), pods(9, topologySpreadConstraints=spread(HOST), nodeSelector={"zone": "x"}), 9),
        ((group(), TAINTED), pods(9, topologySpreadConstraints=spread(HOST)), 4),
        ((group(), TAINTED), pods(9, topologySpreadConstraints=spread(HOST, nodeTaintsPolicy="Honor")), 9),
    ],
)
def test_counts_are_those_calculated_by_hand(
    nodes: tuple[NodeGroup, ...], asked: PodShape, bound: int
) -> None:
    fit = fit_pods(world(*nodes), [asked])
    assert (fit.bound, fit.sure, fit.is_exact) == (bound, bound, True)
    assert fit.fits == (bound == asked.count)
    assert bool(fit.reasons) != fit.fits
    searched = search_best_pod_packing(Reducer(world(*nodes), [asked]).question())
    assert searched.bound == bound


def test_pods_per_node_follow_the_cluster() -> None:
    nodes = group(count=2, cpu=1000)
    assert fit_pods(world(nodes), [pods(500)]).bound == 220
    assert fit_pods(world(nodes, pods=250), [pods(500)]).bound == 500


def test_reasons_have_the_words_of_the_scheduler() -> None:
    tainted = group("b", 3, taints=(NodeGroupTaint("gpu", "yes", "NoExecute"),))
    other = group("c", 2, labels={"pool": "c"})
    fit = fit_pods(world(group(), tainted, other), [pods(9, "5", nodeSelector={"pool": "a"})])
    (told,) = fit.reasons
    assert told == (
        "0/9 nodes are available: 2 node(s) didn't match Pod's node affinity/selector,"
        " 3 node(s) had untolerated taint {gpu: yes}, 4 Insufficient cpu."
    )


def test_a_launcher_may_be_left_without_room() -> None:
    """Eight cores and workers of three cores: packed they leave a node free, spread they do not."""
    nodes, launcher = group(count=2), pods(1, "6", "launcher")
    fit = fit_pods(world(nodes), [pods(2, "3"), launcher])
    assert (fit.bound, fit.sure, fit.verdict) == (3, 2, "possible")
    assert fit_pods(world(nodes), [pods(2, "3"), pods(1, "5", "launcher")]).verdict == "sure"
    assert fit_pods(world(nodes), [pods(4, "3"), launcher]).verdict == "no"


def test_a_host_port_is_used_once_per_host() -> None:
    def with_port(count: int, name: str, port: int) -> PodShape:
        ports = [{"containerPort": 22, "hostPort": port}]
        container = {"name": "node", "resources": {}, "ports": ports}
        body = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        return build_plain_pods_for_scheduler(name, count, body)

    fit = fit_pods(world(group()), [with_port(5, "worker", 2222)])
    assert (fit.bound, fit.sure) == (4, 4)
    assert fit.reasons == (
        "0/4 nodes are available: 4 node(s) didn't have free ports for the requested pod ports.",
    )
    assert fit_pods(world(group()), [with_port(4, "worker", 2222), with_port(1, "launcher", 2222)]).bound == 4
    assert fit_pods(world(group()), [with_port(4, "worker", 2222), with_port(1, "launcher", 2223)]).bound == 5


def test_phases_do_not_share_nodes() -> None:
    first, second = pods(8, "4", "loader"), pods(8, "4")
    assert not fit_pods(world(group()), [first, second]).fits
    fit: Fit = fit_pods(world(group()), [first, replace(second, phase=1)])
    assert (fit.pods, fit.bound, fit.verdict) == (16, 16, "sure")


def test_pods_of_two_phases_lack_only_a_label_that_no_pool_states() -> None:
    first, second = pods(4, "8", "loader"), pods(4, "8", nodeSelector={"disk": "ssd"})
    assert find_undeclared_node_labels(world(group()), [first, replace(second, phase=1)]) == ["disk"]
    assert (
        find_undeclared_node_labels(world(group()), [first, second]) == []
    )  # together they need twice the nodes
    assert find_undeclared_node_labels(world(group()), [first, replace(second, count=5, phase=1)]) == []


def job_set(*jobs: dict[str, Any]) -> dict[str, Any]:
    """Return a JobSet of jobs with one container each."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "run", "namespace": "nlp"},
        "spec": {"replicatedJobs": list(jobs)},
    }


def job(name: str, count: int, resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return one entry of a JobSet."""
    pod = {"containers": [{"name": "node", "resources": resources}], **more.pop("pod", {})}
    spec = {"parallelism": count, "completions": count, "template": {"spec": pod}}
    return {"name": name, "template": {"spec": spec}} | more


def test_defaults_of_the_namespace_and_of_limits_count() -> None:
    limits = {"limits": {"cpu": "4"}}
    bounds = {
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "nlp"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "8"}}]},
    }
    assert fit_run_pods_onto_nodes(world(group()), [job_set(job("node", 20, {}))]).bound == 20
    assert (
        fit_run_pods_onto_nodes(world(group(), standing=(bounds,)), [job_set(job("node", 20, {}))]).bound == 4
    )
    # A container's own limits come before the default request of a LimitRange.
    assert (
        fit_run_pods_onto_nodes(world(group(), standing=(bounds,)), [job_set(job("node", 20, limits))]).bound
        == 8
    )


@pytest.mark.parametrize(
    ("annotations", "cpu", "memory"),
    [
        ({}, 1000, 0),
        ({"gke-gcsfuse/volumes": "false"}, 1000, 0),
        ({"gke-gcsfuse/volumes": "true"}, 1250, 256 << 20),
        ({"gke-gcsfuse/volumes": "true", "gke-gcsfuse/cpu-limit": "0"}, 1250, 256 << 20),
        ({"gke-gcsfuse/volumes": "true", "gke-gcsfuse/cpu-limit": "2"}, 3000, 256 << 20),
        (
            {
                "gke-gcsfuse/volumes": "true",
                "gke-gcsfuse/cpu-request": "1",
                "gke-gcsfuse/cpu-limit": "2",
                "gke-gcsfuse/memory-request": "1Gi",
            },
            2000,
            1 << 30,
        ),
    ],
)
def test_a_container_that_gke_adds_counts(annotations: dict[str, str], cpu: int, memory: int) -> None:
    box = {"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {}}}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [box]}}
    found = build_plain_pods_for_scheduler("worker", 1, pod).requests
    assert (found["cpu"], found.get("memory", 0)) == (cpu, memory)


def test_overhead_of_a_runtime_class_counts() -> None:
    kata = {"kind": "RuntimeClass", "metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "500m"}}}
    entry = job("node", 8, {"requests": {"cpu": "4"}}, pod={"runtimeClassName": "kata"})
    assert fit_run_pods_onto_nodes(world(group()), [job_set(entry)]).bound == 8
    assert fit_run_pods_onto_nodes(world(group(), standing=(kata,)), [job_set(entry)]).bound == 4


def test_the_start_order_of_a_run_counts() -> None:
    """Workers start first: only the launcher may lack a node, never a worker."""
    needed = [{"name": "node", "status": "Ready"}]
    workers = job("node", 2, {"requests": {"cpu": "7"}})
    mixed = [workers, job("launcher", 1, {"requests": {"cpu": "2"}})]
    ordered = [workers, job("launcher", 1, {"requests": {"cpu": "2"}}, dependsOn=needed)]
    assert fit_run_pods_onto_nodes(world(group(count=2)), [job_set(*mixed)]).bound == 2
    fit = fit_run_pods_onto_nodes(world(group(count=2)), [job_set(*ordered)])
    assert fit.placements == {"node": {"a": 2}, "launcher": {}}


def test_the_search_tries_every_order_of_several_kinds() -> None:
    """With the fullest node first one pod is left over; with another order none is."""
    question = FitQuestion(
        (NodeShape(2, (10,), 110, ()),), tuple(PodKind(2, 0, (need,), (True,)) for need in (6, 3, 1))
    )
    answer = search_best_pod_packing(question)
    assert (answer.bound, answer.is_most) == (6, True)
    assert search_best_pod_packing(question, budget=0).bound <= 6


def test_domains_that_do_not_nest_give_an_unknown_verdict() -> None:
    nodes = group(count=12, domains=(("block", 6), (RACK, 4)))
    constraints = [*spread("block"), *spread(RACK)]
    fit = fit_pods(world(nodes), [pods(12, topologySpreadConstraints=constraints)])
    assert fit.verdict == "unknown"


def test_domains_of_unknown_size_give_an_unknown_verdict() -> None:
    nodes = group(domains=((RACK, 0),))
    fit = fit_pods(world(nodes), [pods(2, topologySpreadConstraints=spread(RACK))])
    assert fit.verdict == "unknown"
    assert "whose domains have no size" in fit.reasons[0]


def test_large_pools_cost_no_more_than_small_ones() -> None:
    """A hundred thousand nodes, up to 500 workers: the work is per pool and per domain shape."""
    nodes = group(count=100_000, cpu=64, domains=((RACK, 8),))
    began = time.monotonic()
    for count in range(1, 501, 5):
        asked = pods(count, "3", topologySpreadConstraints=spread(RACK))
        assert fit_pods(world(nodes), [asked, pods(1, name="launcher")]).verdict == "sure"
    assert time.monotonic() - began < 20
