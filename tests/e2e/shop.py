"""A workspace whose commits an engine brings to the lab, and what must hold for every engine."""

from __future__ import annotations

import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.model.syncing import SYNC_ENGINES
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.lab import build, fixtures
from tests.lab.client import condition
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.lab.programs import Program
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

Object = dict[str, Any]
PARTS = ("platform", "tenants", "runs")


@dataclass(slots=True)
class Shop(ABC):
    """A lab with an engine, and the repository that the engine follows."""

    lab: Lab
    repository: GitRepository
    cluster: str

    @abstractmethod
    def follow(self) -> None:
        """Let the engine look at the repository at once."""

    @abstractmethod
    def synced(self, revision: str) -> None:
        """Wait until everything is as a revision has it."""

    @abstractmethod
    def synced_of(self, team: str, revision: str) -> None:
        """Wait until the runs of a team are as a revision has them."""

    @abstractmethod
    def fails_of(self, team: str) -> None:
        """Wait until the engine reports that it cannot apply the runs of a team."""

    @abstractmethod
    def still(self, team: str, name: str) -> None:
        """Let the engine look at the runs of a team, and check that it finds nothing to do about one of
        them."""

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.repository.folder

    @property
    def spec(self) -> Cluster:
        """The cluster file."""
        return load_workspace(self.root).clusters[self.cluster].spec

    @property
    def namespaces(self) -> dict[str, str]:
        """The namespace of each team."""
        workspace = load_workspace(self.root)
        spec = workspace.clusters[self.cluster].spec
        return {team: namespace_of(spec, team, workspace.teams[team].spec) for team in sorted(spec.teams)}

    def change(self, files: dict[str, str | None]) -> str:
        """Edit files, render and commit, as a user does; return the revision that the engine then sees."""
        for name, text in files.items():
            if text is None:
                (self.root / name).unlink()
            else:
                (self.root / name).write_text(text, encoding="utf-8")
        result = render_tree(Request(self.root, (self.cluster,)))
        assert not result.has_errors, result.findings
        return self.commit({}, "change specs")

    def commit(self, files: dict[str, str | None], message: str) -> str:
        """Commit without rendering, and let the engine look at it."""
        revision = self.repository.commit(files, message=message)
        self.follow()
        return revision

    def runs(self) -> dict[str, str]:
        """Return the uid of every TrainJob by name: another uid would be another run."""
        return {
            item["metadata"]["name"]: item["metadata"]["uid"] for item in self.lab.client.list("TrainJob")
        }

    def version(self, name: str) -> tuple[str, int]:
        """Return the uid of a TrainJob and the generation of its spec: controllers go on to write its
        status."""
        (found,) = (item for item in self.lab.client.list("TrainJob") if item["metadata"]["name"] == name)
        return found["metadata"]["uid"], found["metadata"]["generation"]

    def complete(self) -> None:
        """Wait until every run has completed."""
        for item in self.lab.client.list("TrainJob"):
            meta = item["metadata"]
            self.lab.client.wait(
                "TrainJob",
                meta["name"],
                meta["namespace"],
                until=lambda found: condition(found, "Complete") == "True",
                timeout=180,
            )


def sample(folder: Path, programs: Sequence[Program]) -> tuple[Path, str]:
    """Copy the sample workspace; return the copy and its cluster of the lab's versions. Skip without a
    lab."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if build.missing(programs) and (trouble := build.problem()):
        pytest.skip(f"{programs[0].name} cannot be built: {trouble}")
    cluster = story.cluster_of(profile.trainer, profile.kueue)
    if cluster is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name}")
    for name in ("specs", "overlays", "images"):
        shutil.copytree(story.ROOT / name, folder / name)
    return folder, cluster


def furnished(lab: Lab, root: Path, cluster: str) -> None:
    """Put into the lab what people and other programs own: nodes, the namespaces of monitoring, claims."""
    workspace = load_workspace(root)
    spec = workspace.clusters[cluster].spec
    lab.add_nodes(world.nodes(spec))
    lab.client.apply_all(world.monitoring(spec))
    teams = [(name, workspace.teams[name].spec) for name in spec.teams]
    for team, found in teams:  # claims exist before any run: their owners created them
        name = namespace_of(spec, team, found)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        lab.client.apply(body, manager="people")
    lab.client.apply_all(world.claims(spec, teams))


@contextmanager
def held(lab: Lab) -> Iterator[None]:
    """Keep runs training as long as the context lasts."""
    hold = Story(Plot.RUN, namespace=None, run=None)
    lab.tell(hold)
    try:
        yield
    finally:
        lab.forget(hold)


def spec_here(shop: Shop) -> str:
    """Return a small spec that runs on this cluster only, so that one change is one run."""
    found = sorted(
        world.run_files(shop.root / "rendered" / shop.cluster),
        key=lambda path: (path.stat().st_size, path.name),
    )
    for path in found:
        source = world.source_of(path)
        text = (shop.root / source).read_text()
        if "clusters:" not in text or f"clusters: [{shop.cluster}]" in text:
            return source
    raise AssertionError("no spec runs on this cluster alone")


def foreign(api: str, kind: str, namespace: str = "", **more: Any) -> Object:
    """Return an object that gangplan did not render."""
    meta = {"name": "mallory", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


@dataclass(frozen=True, slots=True)
class Started:
    """A run that trains."""

    name: str
    namespace: str
    uid: str

    def pods(self, shop: Shop) -> set[str]:
        """Return the uids of its pods."""
        selector = f"jobset.sigs.k8s.io/jobset-name={self.name}"
        found = shop.lab.client.list("Pod", self.namespace, labels=selector)
        return {pod["metadata"]["uid"] for pod in found}

    def objects(self, shop: Shop) -> set[str]:
        """Return the kinds of its objects that exist, and `quota` if it holds some."""
        found = set()
        for kind in ("TrainJob", "TrainingRuntime", "NetworkPolicy", "JobSet", "Job", "Pod"):
            items = shop.lab.client.list(kind, self.namespace)
            if any(item["metadata"].get("labels", {}).get("gangplan.dev/run") == self.name for item in items):
                found.add(kind)
        for item in shop.lab.client.list("Workload", self.namespace):
            if any(owner["name"] == self.name for owner in item["metadata"].get("ownerReferences", ())):
                found |= {"Workload", "quota"} if condition(item, "QuotaReserved") == "True" else {"Workload"}
        return found

    def ended(self, shop: Shop) -> None:
        """Wait until it has no pod and no quota, and a suspended record in its place."""
        shop.lab.client.wait(
            "TrainJob",
            self.name,
            self.namespace,
            until=lambda item: item["spec"].get("suspend") is True and item["metadata"]["uid"] != self.uid,
            timeout=60,
        )
        self._left(shop, {"Pod", "quota"})

    def gone(self, shop: Shop) -> None:
        """Wait until none of its objects is left."""
        self._left(shop, None)

    def _left(self, shop: Shop, kinds: set[str] | None, timeout_s: float = 60) -> None:
        """Wait until no objects of some kinds, or of any, are left."""
        end = time.monotonic() + timeout_s
        while left := (found := self.objects(shop)) & (kinds or found):
            assert time.monotonic() < end, f"{self.name} still has {sorted(left)}"
            time.sleep(0.5)


def started(shop: Shop, files: dict[str, str | None]) -> Started:
    """Return the one run that a change starts, once its pods are ready."""
    before = set(shop.runs())
    shop.synced(shop.change(files))
    (found,) = (item for item in shop.lab.client.list("TrainJob") if item["metadata"]["name"] not in before)
    meta = found["metadata"]
    shop.lab.client.wait(
        "TrainJob",
        meta["name"],
        meta["namespace"],
        until=lambda item: any(job["ready"] for job in item.get("status", {}).get("jobsStatus", [])),
        timeout=90,
    )
    return Started(meta["name"], meta["namespace"], meta["uid"])


def _retire(shop: Shop) -> set[tuple[str, str]]:
    """Run `gangplan retire` for runs that are superseded and, by their statuses, not complete; return its
    steps."""
    items = [
        {**item, "kind": "TrainJob"}
        for item in shop.lab.client.list("TrainJob")
        if condition(item, "Complete") != "True"
    ]
    statuses = shop.root.parent / "statuses.json"
    statuses.write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    flags = ("--superseded", "--finished", statuses, "--cluster", shop.cluster, "--format", "json", "--write")
    outcome = gangplan("retire", "-C", shop.root, *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    return {(step["action"], step["run"]) for step in json.loads(outcome.out)["steps"]}


class Delivered:
    """Tests of what docs/gitops.md says about a run and its team, with the real engine of the fixture
    `shop`."""

    def test_deleted_guardrails_are_restored(self, shop: Shop) -> None:
        queue = next(item for item in shop.lab.client.list("LocalQueue"))
        meta = queue["metadata"]

        shop.lab.client.delete("LocalQueue", meta["name"], meta["namespace"])
        shop.follow()

        healed = shop.lab.client.wait(
            "LocalQueue",
            meta["name"],
            meta["namespace"],
            until=lambda item: item["metadata"]["uid"] != meta["uid"],
            timeout=60,
        )
        assert healed["spec"] == queue["spec"]

    def test_a_second_commit_starts_only_its_run(self, shop: Shop) -> None:
        spec = spec_here(shop)
        before = shop.runs()

        shop.synced(shop.change({spec: f"{(shop.root / spec).read_text()}run: 2\n"}))
        shop.complete()

        after = shop.runs()
        assert before.items() <= after.items()
        assert len(after) == len(before) + 1

    def test_a_run_is_superseded_retired_and_stopped_from_git(self, shop: Shop) -> None:
        """Check superseding, retiring, stopping and removing, as docs/gitops.md describes them."""
        spec = spec_here(shop)
        team = Path(spec).parts[1]
        text = (shop.root / spec).read_text().replace("run: 2\n", "")
        with held(shop.lab):
            # A newer run supersedes one that trains: both train.
            first = started(shop, {spec: f"{text}run: 7\n"})
            second = started(shop, {spec: f"{text}run: 8\n"})
            assert first.pods(shop)
            assert first.objects(shop) >= {
                "TrainJob",
                "TrainingRuntime",
                "NetworkPolicy",
                "Workload",
                "quota",
            }

            # Retired, the old run ends; its record starts nothing, however often it is reconciled.
            assert _retire(shop) == {("record", first.name)}
            shop.synced(shop.change({}))
            assert f"retired: [{first.name}]" in (shop.root / spec).read_text()
            first.ended(shop)
            assert second.pods(shop)

            # Retired again, it leaves the cluster, and the other run is unaffected.
            assert _retire(shop) == {("remove", first.name)}
            shop.synced(shop.change({}))
            first.gone(shop)
            assert shop.runs()[second.name] == second.uid

            # A stopped run ends under its name, and stays stopped.
            shop.synced(shop.change({spec: f"{text}run: 8\nstate: stopped\n"}))
            second.ended(shop)
            record = shop.runs()[second.name]
            for _ in range(3):
                shop.still(team, second.name)
            assert (shop.runs()[second.name], second.pods(shop)) == (record, set())

        # Its record is removed with the next change.
        shop.synced(shop.change({spec: f"{text}run: 2\n"}))
        second.gone(shop)

    def test_removing_the_file_of_a_running_run_does_not_stop_it(self, shop: Shop) -> None:
        spec = spec_here(shop)
        with held(shop.lab):
            run = started(shop, {spec: (shop.root / spec).read_text().replace("run: 2", "run: 3")})
            pods, runs = run.pods(shop), shop.runs()

            shop.synced(shop.change({spec: None}))

            assert Path(spec).stem in run.name
            assert shop.runs() == runs
            assert pods <= run.pods(shop)


ARGO, FLUX = "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io"
# Annotations and labels that an engine may read: how they treat an object is what the checks say.
MARKS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "none": ({}, {}),
    "skip": ({f"{ARGO}/hook": "Skip"}, {}),
    "skip-blank": ({f"{ARGO}/hook": " Skip ,"}, {}),
    "ignore": ({f"{FLUX}/ssa": "Ignore"}, {}),
    "ignore-label": ({}, {f"{FLUX}/ssa": "ignore"}),
    "disabled": ({f"{FLUX}/reconcile": "Disabled"}, {}),
    "merge": ({f"{FLUX}/ssa": "Merge"}, {}),
    "once": ({f"{FLUX}/ssa": "IfNotPresent"}, {}),
    "kept": ({f"{ARGO}/sync-options": "Validate=false, Prune=false"}, {}),
    "kept-first": ({f"{ARGO}/sync-options": "Prune=false,Prune=true"}, {}),
    "pruned-first": ({f"{ARGO}/sync-options": "Prune=true,Prune=false"}, {}),
    "kept-flux": ({f"{FLUX}/prune": "DISABLED"}, {}),
    "kept-flux-label": ({}, {f"{FLUX}/prune": "disabled"}),
    "pruned-flux": ({f"{FLUX}/prune": "enabled"}, {}),
}


class Marked:
    """The table of marks in gangplan.model.syncing, held to the real engine of the fixture `shop`."""

    engine = ""

    def test_marks_do_what_the_checks_say(self, shop: Shop) -> None:
        engine, namespace = SYNC_ENGINES[self.engine], shop.namespaces[Path(spec_here(shop)).parts[1]]
        nothing = {"podSelector": {"matchLabels": {"example.com/app": "none"}}}
        # The cluster's policies ask each object for the labels of its team.
        own = shop.lab.client.get("NetworkPolicy", "default-deny", namespace)["metadata"]["labels"]
        bodies = []
        for name, (marks, labels) in MARKS.items():
            written = {**marks}
            body = foreign("networking.k8s.io/v1", "NetworkPolicy", namespace, spec=nothing)
            body["metadata"] |= {"name": f"mark-{name}", "annotations": written, "labels": own | labels}
            if engine.measure_guard(body["metadata"]):  # what is kept is then no drift
                written[f"{ARGO}/compare-options"] = "IgnoreExtraneous"
            bodies.append(body)
        file = f"rendered/{shop.cluster}/tenants/marks.yaml"
        shop.synced(shop.commit({file: "---\n".join(f"{json.dumps(one)}\n" for one in bodies)}, "marks"))
        marked = [one["metadata"] for one in bodies]
        applied = {one["name"] for one in marked if not engine.find_skipping_mark(one)}
        assert self._there(shop, namespace) == applied
        shop.synced(shop.commit({file: None}, "without marks"))
        kept = {one["name"] for one in marked if engine.measure_guard(one)} & applied
        assert self._there(shop, namespace) == kept
        for name in kept:
            shop.lab.client.delete("NetworkPolicy", name, namespace)

    def _there(self, shop: Shop, namespace: str) -> set[str]:
        found = shop.lab.client.list("NetworkPolicy", namespace)
        return {one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("mark-")}


class Isolated(Delivered):
    """The same tests, for an engine that applies each team separately."""

    def test_a_broken_object_of_one_team_does_not_stop_other_teams(self, shop: Shop) -> None:
        """The server refuses an object of one team; a run of another team starts all the same."""
        spec = spec_here(shop)
        team = Path(spec).parts[1]
        other = next(one for one in shop.namespaces if one != team)
        runtime = {"runtimeRef": {"name": "none"}}
        broken = foreign("trainer.kubeflow.org/v1alpha1", "TrainJob", shop.namespaces[other], spec=runtime)
        broken["metadata"]["labels"] = {"gangplan.dev/run": "mallory", "gangplan.dev/team": other}
        file = f"rendered/{shop.cluster}/runs/{other}/broken.yaml"
        before = shop.runs()

        shop.commit({file: json.dumps(broken)}, "broken")
        beside = f"specs/{team}/beside.yaml"
        revision = shop.change({beside: (shop.root / spec).read_text().replace("run: 2\n", "")})
        shop.synced_of(team, revision)
        shop.complete()
        assert len(shop.runs()) == len(before) + 1
        shop.fails_of(other)
        assert before.items() <= shop.runs().items()

        (shop.root / file).unlink()
        shop.synced(shop.change({beside: None}))
