"""The configuration that `gangplan cluster kueue-config` prints, passed to the profile's real Kueue."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import story
from tests.lab import build, fixtures, samples
from tests.lab.client import condition
from tests.lab.lab import Lab
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
TEAM, STRANGER = "team-config", "stranger"


def printed(cluster: str) -> str:
    """Return the snippet of a sample cluster."""
    outcome = gangplan("cluster", "kueue-config", "-C", story.ROOT, "--cluster", cluster)
    assert outcome.code == 0, outcome.err
    return outcome.out


def manager_says(text: str, folder: Path) -> str:
    """Return what the manager logs about a configuration before it looks for its cluster, which does not
    exist."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    build.ensure(profile.programs)
    file = folder / "configuration.yaml"
    file.write_text(text)
    command = [
        str(build.executable(profile.program("kueue"))),
        f"--config={file}",
        f"--kubeconfig={folder}/nothing",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


# Clusters whose manager reads a file: on OpenShift, an operator writes it from an object of its own.
CLUSTERS = [
    name
    for name, file in sorted(load_workspace(story.ROOT).clusters.items())
    if not file.spec.versions.openshift
]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_kueue_knows_every_key(cluster: str, tmp_path: Path) -> None:
    text = printed(cluster)
    said = manager_says(text, tmp_path)
    loaded = re.search(r'"Configuration loaded","config":("(?:[^"\\]|\\.)*")', said)
    assert loaded, said
    config = plain.load(plain.load(loaded.group(1)))
    for key, value in plain.load(text).items():
        assert subset(value, config[key]), (key, value, config[key])


def subset(wanted: Any, found: Any) -> bool:
    """Return whether the manager took each value; it prints durations in its own form."""
    if isinstance(wanted, dict):
        return all(key in found and subset(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, str) and re.fullmatch(r"([0-9]+[hms])+", wanted):
        return re.sub(r"(?<![0-9])0[hms]", "", str(found)) == wanted
    return bool(wanted == found)


def test_kueue_refuses_an_unknown_key(tmp_path: Path) -> None:
    text = printed(sorted(load_workspace(story.ROOT).clusters)[0]).replace(
        "blockAdmission", "blocksAdmission"
    )
    assert "unknown field" in manager_says(text, tmp_path)


@pytest.fixture(scope="module")
def configured() -> Iterator[Lab]:
    """Run a lab whose Kueue has the snippet of the sample cluster with its versions."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    name = story.cluster_of(profile.trainer, profile.kueue)
    if name is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name}")
    fixtures.require(profile)
    with Lab(profile, settings={"kueue": plain.load(printed(name))}) as running:
        yield running


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return a namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def unqueued(where: str) -> dict[str, Any]:
    """Return a plain Job that names no queue."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "job", "image": "registry.example.com/job:1"}]}
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "plain", "namespace": where},
        "spec": spec,
    }


def is_complete(item: dict[str, Any]) -> bool:
    """Return whether a run or a job has completed."""
    return condition(item, "Complete") == "True"


def test_runs_complete_and_jobs_without_a_queue_stay_suspended(configured: Lab) -> None:
    api = configured.client
    queue = samples.queue(api, TEAM)
    api.apply_all([namespace(TEAM, {"gangplan.dev/team": "config"}), *queue[1:], namespace(STRANGER, {})])
    api.apply(samples.runtime(TEAM, TEAM))
    api.apply_patiently(samples.run(TEAM, "pi"))

    api.wait("TrainJob", "pi", TEAM, until=is_complete, timeout=90)
    api.apply_all([unqueued(TEAM), unqueued(STRANGER)])
    api.wait("Job", "plain", STRANGER, until=is_complete, timeout=60)
    time.sleep(2)
    assert api.get("Job", "plain", TEAM)["spec"]["suspend"] is True
