"""Why gangplan refuses a version pair: its runs are admitted, and suspended forever."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from gangplan.model.version import parse_version
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.resolve.compat import check_versions
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.lab import fixtures
from tests.lab.client import condition
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
CLUSTER = "eu-airgap"  # the sample cluster with this Trainer
PATIENCE = 15.0


def test_the_pair_is_refused_and_would_never_start(lab: Lab) -> None:
    profile = fixtures.chosen()
    if profile.name != "broken":
        pytest.skip("this is about profile broken")
    workspace = load_workspace(story.ROOT)
    cluster = workspace.clusters[CLUSTER]
    platform = replace(
        resolve_platform_of_cluster_file(cluster),
        trainer=parse_version(profile.trainer),
        kueue=parse_version(profile.kueue),
    )
    assert "version-pair" in {finding.rule for finding in check_versions(cluster, platform)}
    result = preview_render(Request(story.ROOT, (CLUSTER,)))
    lab.add_nodes(world.nodes(cluster.spec))
    lab.client.apply_all(world.monitoring(cluster.spec))
    for path in world.before_runs(result.texts):
        lab.client.apply_all(load_objects(result.texts[path]))
    teams = [(team, workspace.teams[team].spec) for team in cluster.spec.teams]
    lab.client.apply_all(world.claims(cluster.spec, teams))
    run = result.runs[0]
    namespace = run.unit.job.namespace

    for body in load_objects(result.texts[run.path]):
        lab.client.apply_patiently(body)

    def admitted() -> bool:
        found = [
            item for item in lab.client.list("Workload", namespace) if run.name in item["metadata"]["name"]
        ]
        return bool(found) and condition(found[0], "Admitted") == "True"

    deadline = time.monotonic() + 60
    while not admitted():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(PATIENCE)
    job = lab.client.get("TrainJob", run.name, namespace)
    assert job["spec"]["suspend"] is True
    assert condition(job, "Suspended") == "True"
    assert admitted()
