"""Every step of a run's life through models of Argo CD and Flux: what is applied, pruned and healed.

The inputs of the engines are real: the tree as rendered, and the Application and Kustomization as printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from pathlib import Path

import pytest

from gangplan.gitops.argocd import ArgoCluster, build_argocd_objects
from gangplan.gitops.flux import build_flux_objects
from gangplan.gitops.source import RepositorySource
from gangplan.source import load_objects
from tests import workspaces
from tests.engines_model import QUEUE, ArgoCD, Cluster, Flux, Object, key_of
from tests.golden import render_example
from tests.workspaces import render, write

SPEC = "specs/nlp/filings.yaml"
SOURCE = RepositorySource("https://git.example.com/ml/jobs.git", "main", "gitops")
WAVE = "argocd.argoproj.io/sync-wave"
WHOLE = {"TrainJob", "TrainingRuntime", "NetworkPolicy"}


class Story:
    """A workspace, a cluster and an engine between them."""

    def __init__(self, root: Path, make: Callable[[Cluster], ArgoCD | Flux]) -> None:
        self.root, self.make = root, make
        self.revisions = count(1)
        self.cluster = Cluster()
        self.engine = make(self.cluster)
        self.revision, self.bodies = "", list[Object]()

    def merge(self, more: str | None) -> str:
        """Add lines to the spec (None: remove it), render, merge, and let the engine sync.

        Returns the run that the spec describes, empty without a spec.
        """
        if more is None:
            (self.root / SPEC).unlink()
        else:
            write(self.root, {SPEC: workspaces.SPEC + more})
        render(self.root)
        folder = self.root / "rendered/lab/runs"
        files = sorted(folder.rglob("*.yaml")) if folder.exists() else []
        self.bodies = [body for file in files for body in load_objects(file.read_text())]
        self.revision = f"r{next(self.revisions)}"
        self.look()
        retired = re.findall(r"filings-[0-9a-f]{8}", more or "")
        names = {file.stem for file in files if "-" in file.stem} - set(retired)
        return names.pop() if names else ""

    def look(self, times: int = 3) -> None:
        """Let the engine look at the same revision again: an interval, a refresh."""
        for _ in range(times):
            self.engine.refresh(self.revision, deepcopy(self.bodies))
        if isinstance(self.engine, Flux):
            assert self.engine.error == ""
        else:
            assert self.engine.status != "Unknown"

    def uid(self, run: str) -> int:
        """Return the identity of the TrainJob: another object is another run."""
        return self.cluster.live["TrainJob", "nlp", run].uid

    def rebuild(self) -> None:
        """Lose the cluster, and give the engine another one."""
        self.cluster = Cluster()
        self.engine = self.make(self.cluster)
        self.look()


def argocd(cluster: Cluster) -> ArgoCD:
    """Create the application of runs as printed."""
    bodies = build_argocd_objects(ArgoCluster("lab", {"nlp": "nlp"}, "runtimePatches"), SOURCE, ["runs"])
    return ArgoCD(cluster, next(body for body in bodies if body["kind"] == "Application"))


def flux(cluster: Cluster) -> Flux:
    """Create the Kustomization of runs as printed."""
    bodies = build_flux_objects("lab", SOURCE, ["runs"], has_kueue=cluster.has_kueue)
    return Flux(cluster, [body for body in bodies if body["kind"] == "Kustomization"])


@pytest.fixture(params=[argocd, flux], ids=["argocd", "flux"])
def story(request: pytest.FixtureRequest, root: Path) -> Story:
    """Return the small workspace with each engine."""
    return Story(root, request.param)


def test_a_run_starts_once_and_is_never_repeated(story: Story) -> None:
    run = story.merge("")
    assert story.cluster.running == {run} == story.cluster.held
    first = story.uid(run)
    story.look(5)
    story.merge("description: Only words\n")
    assert (story.uid(run), story.cluster.live["TrainJob", "nlp", run].restarts) == (first, 0)


def test_superseded_runs_continue_until_they_are_retired(story: Story) -> None:
    old = story.merge("")
    new = story.merge("run: 2\n")
    assert story.cluster.running == {old, new}
    first = story.uid(new)

    story.merge(f"run: 2\nretired: [{old}]\n")
    assert story.cluster.running == story.cluster.held == {new}
    assert story.cluster.kinds(old) == WHOLE
    record = story.uid(old)
    story.look(5)
    assert (story.uid(old), story.cluster.running) == (record, {new})

    story.merge("run: 2\n")
    assert story.cluster.kinds(old) == set()
    assert (story.uid(new), story.cluster.live["TrainJob", "nlp", new].restarts) == (first, 0)


def test_a_stopped_run_ends_and_the_next_change_removes_its_record(story: Story) -> None:
    run = story.merge("")
    assert story.merge("state: stopped\n") == run
    assert story.cluster.running == story.cluster.held == set()
    assert story.cluster.kinds(run) == WHOLE
    story.look(5)
    assert story.cluster.running == set()
    story.merge(None)
    assert {kind for kind, _, _ in story.cluster.live} == {"ConfigMap"}  # the launch scripts stay


def test_a_resumed_run_starts_again(story: Story) -> None:
    run = story.merge("")
    story.merge("state: stopped\n")
    assert story.merge("") == run
    if isinstance(story.engine, ArgoCD):
        assert story.cluster.running == {run} == story.cluster.held
    else:  # Flux leaves existing objects alone, so docs/gitops.md says to raise run:
        assert story.cluster.running == set()
    again = story.merge("run: 2\n")
    assert again in story.cluster.running


def test_removing_its_file_ends_no_run(story: Story) -> None:
    run = story.merge("")
    first = story.uid(run)
    story.merge(None)
    story.look(5)
    assert (story.cluster.running, story.uid(run)) == ({run}, first)


def test_an_archived_run_is_left_alone_and_never_started(story: Story) -> None:
    run = story.merge("")
    story.merge("state: archived\n")
    assert story.cluster.running == {run}
    story.rebuild()
    assert story.cluster.running == set()
    assert "TrainJob" not in story.cluster.kinds(run)


def test_a_rebuilt_cluster_starts_no_record(story: Story) -> None:
    old = story.merge("")
    new = story.merge(f"run: 2\nretired: [{old}]\n")
    story.rebuild()
    assert story.cluster.running == story.cluster.held == {new}


def test_a_platform_change_retrains_unless_the_run_is_kept(story: Story) -> None:
    run = story.merge("")
    first = story.uid(run)
    write(story.root, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    assert story.merge("keep: true\n") == run
    assert (story.cluster.running, story.uid(run)) == ({run}, first)
    other = story.merge("")
    assert story.cluster.running == {run, other}


def test_deletions_by_hand_are_healed_as_documented(story: Story) -> None:
    """Argo CD does not heal runs; Flux creates what is in Git at the next interval."""
    run = story.merge("")
    story.cluster.delete(("TrainJob", "nlp", run))
    story.look()
    assert story.cluster.running == (set() if isinstance(story.engine, ArgoCD) else {run})


def test_without_kueue_a_stopped_run_keeps_its_object(root: Path) -> None:
    """Only the engine's side: the same tree without queues, on a cluster without Kueue."""
    for make in (argocd, flux):
        cluster = Cluster(has_kueue=False)
        engine = make(cluster)
        spec = {"runtimeRef": {"name": "a-1"}}
        labels = {"gangplan.dev/run": "a-1"}
        metadata = {"name": "a-1", "namespace": "nlp", "labels": labels, "annotations": {}}
        body: Object = {"kind": "TrainJob", "metadata": metadata, "spec": spec}
        runtime: Object = {"kind": "TrainingRuntime", "metadata": {**metadata, "annotations": {WAVE: "-5"}}}
        engine.refresh("r1", deepcopy([runtime, body]))
        first = cluster.live[key_of(body)].uid
        assert cluster.running == {"a-1"}
        body["spec"]["suspend"] = True
        body["metadata"]["annotations"]["gangplan.dev/state"] = "stopped"
        engine.refresh("r2", deepcopy([runtime, body]))
        assert (cluster.running, cluster.live[key_of(body)].uid) == (set(), first)


# Reasons for the design: simpler ways, and their effects


def stopped(story: Story, change: Callable[[Object], None]) -> None:
    """Start a run, and change its TrainJob by hand in Git."""
    story.merge("")
    for body in story.bodies:
        if body["kind"] == "TrainJob":
            change(body)
    story.revision = "by hand"


def test_suspending_alone_restarts_a_run(root: Path) -> None:
    story = Story(root, argocd)

    def change(body: Object) -> None:
        body["spec"]["suspend"] = True
        body["metadata"]["annotations"]["note"] = "so that something differs"

    stopped(story, change)
    story.look()
    (one,) = (live for key, live in story.cluster.live.items() if key[0] == "TrainJob")
    assert (one.runs, one.restarts) == (True, 1)


def test_removing_the_queue_ends_a_run_but_keeps_its_quota(root: Path) -> None:
    story = Story(root, argocd)

    def change(body: Object) -> None:
        body["spec"]["suspend"] = True
        del body["metadata"]["labels"][QUEUE]

    stopped(story, change)
    story.look()
    assert story.cluster.running == set()
    assert len(story.cluster.held) == 1


def test_an_immutable_change_keeps_argocd_from_syncing_anything(root: Path) -> None:
    story = Story(root, argocd)

    def change(body: Object) -> None:
        body["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"

    stopped(story, change)
    story.engine.refresh(story.revision, story.bodies)
    assert isinstance(story.engine, ArgoCD)
    assert story.engine.status == "Unknown"


def test_flux_without_the_replacing_patch_restarts_a_stopped_run(root: Path) -> None:
    """The patch makes Flux replace the TrainJob."""
    story = Story(root, flux)
    assert isinstance(story.engine, Flux)
    story.engine.kustomizations[-1]["spec"]["patches"].pop()
    run = story.merge("")
    story.merge("state: stopped\n")
    assert story.cluster.running == story.cluster.held == {run}
    assert story.cluster.live["TrainJob", "nlp", run].restarts > 0


def test_flux_dry_runs_all_of_a_kustomization_before_it_applies_one(root: Path) -> None:
    """With one Kustomization for runs and their runtimes, no run would ever start."""
    story = Story(root, flux)
    assert isinstance(story.engine, Flux)
    runtimes, runs = story.engine.kustomizations
    both = [
        one for one in runs["spec"]["patches"] if "kind" not in one["target"] or "op: add" in one["patch"]
    ]
    story.engine.kustomizations = [{**runs, "spec": {**runs["spec"], "patches": both}}]
    with pytest.raises(AssertionError, match="not found"):
        story.merge("")
    story.engine.kustomizations = [runtimes, runs]
    story.look()
    assert story.cluster.running


def test_a_protected_run_is_not_pruned_in_the_change_that_stops_it(story: Story) -> None:
    """Engines read the object in the cluster, which is still protected."""
    run = story.merge("")
    for body in story.bodies:
        for name in ("argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"):
            body["metadata"]["annotations"].pop(name)
    story.revision, story.bodies = "removed at once", []
    story.look()
    assert story.cluster.running == {run}


@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_data_and_the_namespace_outlive_the_file_of_a_team(engine: str) -> None:
    """Flux removed claims and volumes whose entry was gone, and with the namespace every run."""
    trees = [render_example(name) / "lab/tenants" for name in ("tenant-in-full", "static-volumes")]
    files = [file for tree in trees for file in sorted(tree.rglob("*.yaml"))]
    bodies = [body for file in files for body in load_objects(file.read_text())]
    cluster, parts = Cluster(), ["platform", "tenants"]
    made: ArgoCD | Flux
    if engine == "argocd":
        objects = build_argocd_objects(ArgoCluster("lab", {"nlp": "nlp"}, "runtimePatches"), SOURCE, parts)
        made = ArgoCD(cluster, next(one for one in objects if one["metadata"]["name"] == "lab-tenants"))
    else:
        objects = build_flux_objects("lab", SOURCE, parts)
        made = Flux(cluster, [one for one in objects if one["metadata"]["name"] == "lab-tenants"])
    made.refresh("r1", bodies)
    before = {key[0] for key in cluster.live}
    assert {"Namespace", "PersistentVolume", "PersistentVolumeClaim", "LocalQueue", "RoleBinding"} <= before

    made.refresh("r2", [body for body in bodies if body["kind"] == "ServiceAccount"])
    assert {key[0] for key in cluster.live} == {
        *("Namespace", "PersistentVolume", "PersistentVolumeClaim", "ServiceAccount"),
    }
