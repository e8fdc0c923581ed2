"""Runs on fabrics in a real control plane: their namespace admits their pods, and policies refuse all
else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import ApiError, condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLES = story.ROOT / "tests/examples"
Object = dict[str, Any]
# Example -> its cluster, and what the workers' pods have in the end.
FABRICS: dict[str, tuple[str, Callable[[Object], object], object]] = {
    "efa-fabric": (
        "lab",
        lambda pod: pod["spec"]["containers"][0]["resources"]["limits"]["hugepages-2Mi"],
        "5Gi",
    ),
    "gke-tcpxo": (
        "gke",
        lambda pod: [(one["name"], one["restartPolicy"]) for one in pod["spec"]["initContainers"]],
        [("tcpxo-daemon", "Always")],
    ),
    "host-network": (
        "hall",
        lambda pod: (pod["spec"]["hostNetwork"], pod["spec"]["containers"][0]["ports"][0]["hostPort"]),
        (True, 2222),
    ),
}
# Example -> what no fabric of it grants: a change of a worker's pod, and the policy that refuses it.
BEYOND: dict[str, tuple[Object, str]] = {
    "efa-fabric": ({"hostIPC": True}, "violates PodSecurity"),
    "gke-tcpxo": ({"hostPath": "/"}, "fabric-access"),
    "host-network": ({"sysctls": "kernel.msgmax"}, "unsafe-sysctls"),
}


def _pod(workers: Object, example: str) -> Object:
    """Return a worker's pod, as one could create it by hand, with more than its fabric grants."""
    change, _ = BEYOND[example]
    spec = copy.deepcopy(workers["spec"])
    spec.pop("nodeName")
    if "sysctls" in change:
        spec["securityContext"]["sysctls"] = [{"name": change["sysctls"], "value": "1"}]
    elif "hostPath" in change:
        spec["volumes"].append({"name": "node", "hostPath": {"path": change["hostPath"]}})
    else:
        spec |= change
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "beyond", "namespace": "research"},
        "spec": spec,
    }


@pytest.mark.parametrize("example", FABRICS)
def test_runs_on_fabrics_get_their_pods_and_nothing_more(example: str) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the examples are for the versions of profile new")
    cluster, seen, expected = FABRICS[example]
    spec = load_workspace(EXAMPLES / example / "input").clusters[cluster].spec
    tree = render_example(example) / cluster
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((tree / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

        def workload() -> Object:
            found = lab.client.list("Workload", "research")
            return found[0] if found else {}

        poll(lambda: condition(workload(), "Admitted") == "True", 60, lambda: f"{workload().get('status')}")

        def workers() -> list[Object]:
            return [
                pod
                for pod in lab.client.list("Pod", "research")
                if pod["metadata"]["labels"].get("gangplan.dev/role") == "worker"
                and pod["spec"].get("nodeName")
            ]

        poll(lambda: len(workers()) == 4, 90, lambda: f"{len(workers())} of 4 workers have a node")
        assert len({pod["spec"]["nodeName"] for pod in workers()}) == 4
        for pod in workers():
            assert seen(pod) == expected

        said: list[str] = []

        def is_refused() -> bool:
            try:
                lab.client.create(_pod(workers()[0], example), dry_run=True)
            except ApiError as refusal:
                said.append(refusal.message)
                return BEYOND[example][1] in refusal.message
            return False

        poll(is_refused, 60, lambda: f"let in, or refused otherwise: {said[-1:]}")
