"""Argo CD in the lab follows a Git repository of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from . import build, client, fixtures, programs, samples
from .argocd import NAMESPACE, ArgoCD
from .client import Object, condition
from .gitrepo import GitRepository
from .lab import Lab

pytestmark = pytest.mark.e2e

TEAM = "argo"


@pytest.fixture(scope="module")
def argocd(lab: Lab) -> Iterator[ArgoCD]:
    """Run Argo CD with a project that allows everything."""
    fixtures.require(lab.profile)
    if build.missing([programs.ARGOCD]) and (trouble := build.problem()):
        pytest.skip(f"Argo CD can't be built: {trouble}")
    if lab.profile.name == "broken":
        pytest.skip("runs can't start in this profile")
    running = ArgoCD(lab)
    everything = [{"group": "*", "kind": "*"}]
    spec = {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": everything,
        "namespaceResourceWhitelist": everything,
    }
    lab.client.apply(_argo("AppProject", "lab", spec))
    yield running
    running.stop()


def _argo(kind: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def application(name: str, repository: GitRepository, path: str, policy: Object) -> Object:
    """Return an application that syncs a folder automatically."""
    source = {"repoURL": repository.url, "path": path, "targetRevision": "main"}
    options = ["ServerSideApply=true", "SkipDryRunOnMissingResource=true"]
    retry = {"limit": 5, "backoff": {"duration": "1s", "factor": 1}}
    spec = {
        "project": "lab",
        "destination": {"name": "lab"},
        "source": source,
        "syncPolicy": {"automated": policy, "syncOptions": options, "retry": retry},
    }
    return _argo("Application", name, spec)


def text(*items: Object) -> str:
    return yaml.safe_dump_all(items)


def test_a_repository_is_synced_and_runs_are_left_alone(lab: Lab, argocd: ArgoCD, tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "repository")
    queue = samples.queue(lab.client, TEAM)
    files = {"tenants/queue.yaml": text(*queue), "tenants/runtime.yaml": text(samples.runtime(TEAM, TEAM))}
    files["runs/first.yaml"] = text(samples.run(TEAM, "first"))
    revision = repository.commit(files)

    lab.client.apply(application("tenants", repository, "tenants", {"prune": True, "selfHeal": True}))
    argocd.wait("tenants", revision=revision)
    lab.client.apply(application("runs", repository, "runs", {"prune": False, "selfHeal": False}))
    argocd.wait("runs", revision=revision)
    lab.client.wait("TrainJob", "first", TEAM, until=lambda run: condition(run, "Complete") == "True")
    identity = lab.client.get("TrainJob", "first", TEAM)["metadata"]["uid"]

    revision = repository.commit(
        {"runs/first.yaml": None, "runs/second.yaml": text(samples.run(TEAM, "second"))}
    )
    argocd.refresh("runs")
    argocd.wait("runs", sync="OutOfSync", revision=revision)
    lab.client.wait("TrainJob", "second", TEAM, until=lambda run: condition(run, "Complete") == "True")

    assert argocd.differing("runs") == [f"TrainJob {TEAM}/first"]
    assert lab.client.get("TrainJob", "first", TEAM)["metadata"]["uid"] == identity


def test_an_application_is_reconciled_repeatedly(lab: Lab, argocd: ArgoCD) -> None:
    if not lab.client.find("Application", "tenants", NAMESPACE):
        pytest.skip("needs the applications of the test before")
    seen = argocd.reconciled("tenants")

    client.poll(lambda: argocd.reconciled("tenants") != seen, 30, lambda: "no second look")
