"""Volcano and coscheduling with the real Trainer: the PodGroup counts only pods that are created.

The schedulers themselves are not in the lab, so pods stay pending; what matters is that all of them exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from tests import workspaces
from tests.lab import fixtures, install
from tests.lab.client import condition, poll
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
GROUPS = {
    "volcano": ("scheduling.volcano.sh", "v1beta1"),
    "coscheduling": ("scheduling.x-k8s.io", "v1alpha1"),
}
JOBSET = "jobset.sigs.k8s.io/jobset-name"


def definition(group: str, version: str) -> dict[str, Any]:
    """Return the definition of a scheduler's PodGroup, with any content."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    metadata = {
        "name": f"podgroups.{group}",
        # Without it the API server refuses kinds in groups of the Kubernetes project.
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    }
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.fixture(scope="module")
def grouped() -> Iterator[Lab]:
    """Run a lab whose Trainer found both kinds of PodGroup when it started."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("one profile with each Trainer is enough")
    fixtures.require(profile)
    with Lab(profile) as running:
        definitions = [definition(*group) for group in GROUPS.values()]
        running.client.apply_all(definitions)
        poll(lambda: install.served(running.client, definitions), 30, lambda: "PodGroups are not served")
        running.halt("trainer")
        running.resume("trainer")
        yield running


def workspace(root: Path, gang: str, lab: Lab) -> Path:
    """Create the small workspace on a cluster of the lab's versions with this scheduler."""
    versions = f'versions: {{kubernetes: "{lab.profile.kubernetes}", trainer: "{lab.profile.trainer}"}}'
    lines = workspaces.CLUSTER.splitlines()
    cluster = "\n".join([versions if line.startswith("versions:") else line for line in lines])
    workspaces.stock(root)
    return workspaces.write(root, {"overlays/lab/cluster.yaml": f"{cluster}\ngang: {gang}\n"})


def rendered(root: Path) -> tuple[PlannedRun, list[dict[str, Any]]]:
    """Return the only run of a workspace, and all objects in the order in which to apply them."""
    result = preview_render(Request(root))
    assert not result.has_errors, result.findings
    (run,) = result.runs
    paths = sorted(result.texts, key=lambda path: ["platform", "tenants", "runs"].index(path.split("/")[1]))
    return run, [body for path in paths for body in load_objects(result.texts[path])]


@pytest.mark.parametrize("gang", GROUPS)
def test_every_pod_of_the_group_exists(gang: str, grouped: Lab, tmp_path: Path) -> None:
    api = grouped.client
    run, bodies = rendered(workspace(tmp_path / "workspace", gang, grouped))
    for body in bodies:
        api.apply_patiently(body, timeout=60)
    namespace, pods = run.unit.job.namespace, []

    def all_exist() -> bool:
        pods[:] = api.list("Pod", namespace, labels=f"{JOBSET}={run.name}")
        return len(pods) == run.unit.layout.pods

    poll(all_exist, 60, lambda: f"{len(pods)} of {run.unit.layout.pods} pods")
    group, version = GROUPS[gang]
    path = f"/apis/{group}/{version}/namespaces/{namespace}/podgroups/{run.name}"
    spec = api.request("GET", path).object["spec"]
    assert spec["minMember"] == run.unit.layout.pods == len(pods)
    scheduler = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}[gang]
    assert {pod["spec"]["schedulerName"] for pod in pods} == {scheduler}
    if gang == "volcano":
        assert (spec["queue"], spec["priorityClassName"]) == ("training", "training-normal")
        assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {run.name}
    else:
        assert spec["scheduleTimeoutSeconds"] == 60
        assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in pods} == {run.name}
    assert condition(api.get("TrainJob", run.name, namespace), "Suspended") != "True"
