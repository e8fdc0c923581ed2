"""The pods that controllers create have the labels that the reachability proof relies on."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from gangplan.model.backend import TRAINJOB
from gangplan.validate.network.labels import PartialLabels, build_label_values
from gangplan.validate.network.pods import INDEX, RolePods, build_roles_seen_by_network_policies
from gangplan.validate.network.policy import PodGroup
from gangplan.validate.network.relation import build_namespace_labels
from tests.e2e.story import ROLE, Chapter, Object, Seen
from tests.network.brute import Pod, allowed

pytestmark = pytest.mark.e2e


def roles(seen: Seen) -> list[RolePods]:
    """Return the roles of a run, with its pods one by one."""
    of = {body["kind"]: body for body in seen.bodies}
    indexes = frozenset(map(str, range(seen.run.unit.layout.pods)))
    home = build_namespace_labels(seen.run.unit.job.namespace, {})
    return build_roles_seen_by_network_policies(
        TRAINJOB, of["TrainJob"], of["TrainingRuntime"], home, {INDEX: indexes}
    )


def fits(labels: PartialLabels, real: dict[str, str]) -> bool:
    """Return whether these may be the labels of a pod: each of its own is predicted, and no required one is
    missing."""
    foreseen = all(labels.of(key) & build_label_values(value) for key, value in real.items())
    return foreseen and all(values.may_lack or key in real for key, values in labels.known.items())


def test_pods_have_the_predicted_labels(chapter: Chapter) -> None:
    for seen in chapter.seen:
        parts = [part for role in roles(seen) for part in role.parts]
        assert sum(part.count for part in parts) == len(seen.pods) == len(parts)
        left = list(parts)
        for pod in seen.pods:
            fitting = [part for part in left if fits(part.labels, pod["metadata"]["labels"])]
            assert len(fitting) == 1, (pod["metadata"]["name"], pod["metadata"]["labels"], _near(parts, pod))
            left.remove(fitting[0])


def _near(parts: list[PodGroup], pod: Object) -> list[Any]:
    real = pod["metadata"]["labels"]
    return [
        (
            part.title,
            [key for key, value in real.items() if not part.labels.of(key) & build_label_values(value)],
            [key for key, values in part.labels.known.items() if not values.may_lack and key not in real],
        )
        for part in parts
    ]


def test_real_pods_reach_each_other_through_the_stored_policies(chapter: Chapter) -> None:
    """Each connection is checked with what the server stores: policies with defaults, pods with all
    labels."""
    homes = {
        body["metadata"]["name"]: chapter.lab.client.get("Namespace", body["metadata"]["name"])
        for body in chapter.standing
        if body["kind"] == "Namespace"
    }
    for seen in chapter.seen:
        namespace = seen.run.unit.job.namespace
        home = homes[namespace]["metadata"]["labels"]
        pods = [Pod(namespace, home, pod["metadata"]["labels"]) for pod in seen.pods]
        stranger = Pod(namespace, home, {"app": "notebook"})
        ssh = seen.run.unit.job.image.ssh.port
        is_narrow = seen.run.unit.job.posture != "default"
        for one, two in list(permutations(pods, 2))[:200]:
            assert allowed(seen.policies, one, two, "TCP", 1024)
            assert allowed(seen.policies, one, two, "TCP", 65535)
            is_launch = one.labels[ROLE] == "launcher" and two.labels[ROLE] == "node"
            if seen.run.unit.job.uses_mpi:
                assert allowed(seen.policies, one, two, "TCP", ssh) is (is_launch or not is_narrow)
            assert allowed(seen.policies, one, two, "UDP", 5000) is not is_narrow
        for pod in pods:
            assert not allowed(seen.policies, stranger, pod, "TCP", 1024)
            assert not allowed(seen.policies, pod, stranger, "TCP", 1024)
