"""A real Argo CD follows a real repository, a gangplan workspace: edit a spec, render, commit, sync."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.gitops.argocd import ArgoCluster, ArgoOptions, argocd_objects
from gangplan.gitops.settings import settings_of
from gangplan.gitops.source import RepositorySource
from gangplan.model.support import TRAINER
from gangplan.model.version import parse_version
from gangplan.pipeline.render import render
from gangplan.pipeline.request import Request
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.lab import build, fixtures, programs
from tests.lab.argocd import NAMESPACE, ArgoCD
from tests.lab.client import TooLateError, condition
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
PARTS = ("platform", "tenants", "runs")
LOOKS = 8  # reconciliations that must not change anything


@dataclass(slots=True)
class Shop:
    """A lab with Argo CD, and the repository it follows."""

    lab: Lab
    argocd: ArgoCD
    repository: GitRepository
    cluster: str

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.repository.folder

    @property
    def applications(self) -> list[str]:
        """Platform, tenants, and the runs of each team."""
        teams = load_workspace(self.root).clusters[self.cluster].spec.teams
        return [
            f"{self.cluster}-{part}"
            for part in ("platform", "tenants", *(f"runs-{one}" for one in sorted(teams)))
        ]

    def change(self, files: dict[str, str | None]) -> str:
        """What a person does: edit specs, render, commit. Returns the revision that Argo CD then sees."""
        for name, text in files.items():
            if text is None:
                (self.root / name).unlink()
            else:
                (self.root / name).write_text(text, encoding="utf-8")
        result = render(Request(self.root, (self.cluster,)))
        assert not result.has_errors, result.findings
        revision = self.repository.commit(message="change specs")
        for name in self.applications:
            self.argocd.refresh(name)
        return revision

    def synced(self, revision: str) -> None:
        """All applications are Synced at a revision."""
        for name in self.applications:
            try:
                self.argocd.wait(name, revision=revision, timeout=90)
            except TooLateError as late:
                raise AssertionError(f"{name}: {self.argocd.differing(name)}; {late}") from late

    def runs(self) -> dict[str, str]:
        """The uid of every TrainJob, by name: another uid would be another run."""
        return {
            item["metadata"]["name"]: item["metadata"]["uid"] for item in self.lab.client.list("TrainJob")
        }

    def complete(self) -> None:
        """Every run has completed."""
        for item in self.lab.client.list("TrainJob"):
            meta = item["metadata"]
            self.lab.client.wait(
                "TrainJob",
                meta["name"],
                meta["namespace"],
                until=lambda found: condition(found, "Complete") == "True",
                timeout=180,
            )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A workspace of the cluster that fits the profile, rendered, committed and handed to Argo CD."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if build.missing([programs.ARGOCD]) and (trouble := build.problem()):
        pytest.skip(f"Argo CD cannot be built: {trouble}")
    cluster = story.cluster_of(profile.trainer, profile.kueue)
    if cluster is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name}")
    root = tmp_path_factory.mktemp("workspace")
    for folder in ("specs", "overlays", "images"):
        shutil.copytree(story.ROOT / folder, root / folder)
    repository = GitRepository(root)
    with Lab(profile) as lab:
        yield _opened(lab, repository, cluster)


def _opened(lab: Lab, repository: GitRepository, cluster: str) -> Shop:
    workspace = load_workspace(repository.folder)
    spec = workspace.clusters[cluster].spec
    lab.add_nodes(world.nodes(spec))
    lab.client.apply_all(world.monitoring(spec))
    teams = [(name, workspace.teams[name].spec) for name in spec.teams]
    for team, found in teams:  # claims are there before any run: their owners made them
        lab.client.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_of(spec, team, found)}},
            manager="people",
        )
    lab.client.apply_all(world.claims(spec, teams))
    (checks,) = settings_of(NAMESPACE, ArgoOptions())["argocd-cm.yaml"]
    shop = Shop(lab, ArgoCD(lab, cluster=cluster, settings=checks["data"]), repository, cluster)
    assert not render(Request(shop.root, (cluster,))).has_errors
    revision = repository.commit(message="first")
    lab.client.apply_all(
        argocd_objects(
            ArgoCluster(
                cluster,
                {team: namespace_of(spec, team, found) for team, found in teams},
                TRAINER[parse_version(spec.versions.trainer).line].override_field,
                (spec.monitoring.namespace,) if spec.monitoring else (),
            ),
            RepositorySource(repository.url, "main", NAMESPACE),
            list(PARTS),
        )
    )
    shop.synced(revision)
    shop.complete()
    return shop


def test_everything_stays_synced_over_many_reconciliations(shop: Shop) -> None:
    names = shop.applications
    before = {name: _finished(shop, name) for name in names}
    runs = shop.runs()
    assert runs

    for look in range(LOOKS):
        for name in names:
            seen = shop.argocd.reconciled(name)
            shop.argocd.refresh(name, hard=look % 2 == 0)
            shop.lab.client.wait(
                "Application",
                name,
                NAMESPACE,
                until=lambda item, seen=seen: item["status"].get("reconciledAt") != seen,
            )
            assert shop.argocd.differing(name) == []
            assert shop.argocd.get(name)["status"]["sync"]["status"] == "Synced"

    assert {name: _finished(shop, name) for name in names} == before
    assert shop.runs() == runs


def _finished(shop: Shop, name: str) -> str:
    """When the last sync ended; empty for a team without runs, which was never synced."""
    return str(shop.argocd.get(name)["status"].get("operationState", {}).get("finishedAt", ""))


def test_guardrails_heal_themselves(shop: Shop) -> None:
    queue = next(item for item in shop.lab.client.list("LocalQueue"))
    meta = queue["metadata"]

    shop.lab.client.delete("LocalQueue", meta["name"], meta["namespace"])

    healed = shop.lab.client.wait(
        "LocalQueue",
        meta["name"],
        meta["namespace"],
        until=lambda item: item["metadata"]["uid"] != meta["uid"],
        timeout=60,
    )
    assert healed["spec"] == queue["spec"]


def test_a_second_commit_starts_only_its_run(shop: Shop) -> None:
    spec = _spec_here(shop)
    before = shop.runs()

    revision = shop.change({spec: f"{(shop.root / spec).read_text()}run: 2\n"})
    shop.synced(revision)
    shop.complete()

    after = shop.runs()
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_the_life_of_a_run_from_git(shop: Shop) -> None:
    """Superseded, retired, removed; stopped, removed: what docs/gitops.md says of each, in a real Argo CD."""
    spec = _spec_here(shop)
    text = (shop.root / spec).read_text().replace("run: 2\n", "")
    hold = Story(Plot.RUN, namespace=None, run=None)
    shop.lab.tell(hold)

    # A newer run takes the place of one that trains: both train.
    first = _started(shop, {spec: f"{text}run: 7\n"})
    second = _started(shop, {spec: f"{text}run: 8\n"})
    assert _pods(shop, first)
    assert _objects_of(shop, first) >= {"TrainJob", "TrainingRuntime", "NetworkPolicy", "Workload", "quota"}

    # Retired, the old one ends; its record starts nothing, whatever is reconciled.
    assert _retire(shop) == {("record", first.name)}
    shop.synced(shop.change({}))
    assert f"retired: [{first.name}]" in (shop.root / spec).read_text()
    _ended(shop, first)
    assert _pods(shop, second)

    # Retired again, it goes from the cluster, and the other one never noticed.
    assert _retire(shop) == {("remove", first.name)}
    shop.synced(shop.change({}))
    _gone(shop, first)
    assert _uid(shop, second) == second.uid

    # Stopped, a run ends under its name, and stays so.
    shop.synced(shop.change({spec: f"{text}run: 8\nstate: stopped\n"}))
    _ended(shop, second)
    name, record = _application(shop, spec), _uid(shop, second)
    for _ in range(3):
        seen = shop.argocd.reconciled(name)
        shop.argocd.refresh(name, hard=True)
        shop.lab.client.wait(
            "Application",
            name,
            NAMESPACE,
            until=lambda item, seen=seen: item["status"].get("reconciledAt") != seen,
        )
        assert not [one for one in shop.argocd.differing(name) if second.name in one]
        assert shop.argocd.get(name)["status"]["sync"]["status"] == "Synced"
    assert (_uid(shop, second), _pods(shop, second)) == (record, set())

    # And its record goes with the next change.
    shop.lab.forget(hold)
    shop.synced(shop.change({spec: f"{text}run: 2\n"}))
    _gone(shop, second)


def test_the_application_of_a_team_says_how_its_runs_are(shop: Shop) -> None:
    """A sync is over while runs train, and one that fails degrades the application of its team alone."""
    spec = _spec_here(shop)
    before, name = (shop.root / spec).read_text(), _application(shop, spec)
    text = re.sub(r"^run: .*\n", "", before, flags=re.MULTILINE)
    shop.complete()
    shop.argocd.wait(name, health="Healthy")
    trains = Story(Plot.RUN, namespace=None, run=None)
    shop.lab.tell(trains)
    _started(shop, {spec: f"{text}run: 20\n"})
    found = shop.argocd.wait(name, health="Progressing")
    assert found["status"]["operationState"]["phase"] == "Succeeded"
    shop.lab.forget(trains)
    fails = Story(Plot.FAIL, namespace=None, run=None)
    shop.lab.tell(fails)
    shop.synced(shop.change({spec: f"{text}run: 21\n"}))
    found = shop.argocd.wait(name, health="Degraded", timeout=90)
    assert found["status"]["sync"]["status"] == "Synced"
    others = [one for one in shop.applications if one != name]
    # Nobody fills in ExternalSecrets here, so that tenants may still be at it.
    assert {shop.argocd.get(one)["status"]["health"]["status"] for one in others} <= {
        "Healthy",
        "Progressing",
    }
    shop.lab.forget(fails)
    shop.synced(shop.change({spec: before}))


def _application(shop: Shop, spec: str) -> str:
    return f"{shop.cluster}-runs-{Path(spec).parts[1]}"


def _retire(shop: Shop) -> set[tuple[str, str]]:
    """What `gangplan retire` does of runs that are superseded and, by statuses, not complete."""
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


@dataclass(frozen=True, slots=True)
class Started:
    """A run that trains."""

    name: str
    namespace: str
    uid: str


def _started(shop: Shop, files: dict[str, str | None]) -> Started:
    """The one run that a change starts, once its pods are ready."""
    before = set(shop.runs())
    shop.synced(shop.change(files))
    (found,) = (item for item in shop.lab.client.list("TrainJob") if item["metadata"]["name"] not in before)
    meta = found["metadata"]
    shop.lab.client.wait(
        "TrainJob",
        meta["name"],
        meta["namespace"],
        until=lambda item: any(job["ready"] for job in item["status"].get("jobsStatus", [])),
        timeout=90,
    )
    return Started(meta["name"], meta["namespace"], meta["uid"])


def _uid(shop: Shop, run: Started) -> str | None:
    return shop.runs().get(run.name)


def _pods(shop: Shop, run: Started) -> set[str]:
    selector = f"jobset.sigs.k8s.io/jobset-name={run.name}"
    return {pod["metadata"]["uid"] for pod in shop.lab.client.list("Pod", run.namespace, labels=selector)}


def _objects_of(shop: Shop, run: Started) -> set[str]:
    """The kinds of objects that there are of a run."""
    found = set()
    for kind in ("TrainJob", "TrainingRuntime", "NetworkPolicy", "JobSet", "Job", "Pod"):
        items = shop.lab.client.list(kind, run.namespace)
        if any(item["metadata"].get("labels", {}).get("gangplan.dev/run") == run.name for item in items):
            found.add(kind)
    for item in shop.lab.client.list("Workload", run.namespace):
        if any(owner["name"] == run.name for owner in item["metadata"].get("ownerReferences", ())):
            found |= {"Workload", "quota"} if condition(item, "QuotaReserved") == "True" else {"Workload"}
    return found


def _ended(shop: Shop, run: Started) -> None:
    """The run has no pod and no quota; its record is there, and suspended."""
    shop.lab.client.wait(
        "TrainJob",
        run.name,
        run.namespace,
        until=lambda item: item["spec"].get("suspend") is True and item["metadata"]["uid"] != run.uid,
        timeout=60,
    )
    _wait_for_none(shop, run, {"Pod", "quota"})


def _gone(shop: Shop, run: Started) -> None:
    """Nothing of the run is left."""
    _wait_for_none(shop, run, None)


def _wait_for_none(shop: Shop, run: Started, kinds: set[str] | None, timeout_s: float = 60) -> None:
    """Nothing of some kinds, or of any, is left of a run."""
    end = time.monotonic() + timeout_s
    while left := (found := _objects_of(shop, run)) & (kinds or found):
        assert time.monotonic() < end, f"{run.name} still has {sorted(left)}"
        time.sleep(0.5)


def test_a_broken_object_of_one_team_stops_no_other(shop: Shop) -> None:
    """The server refuses an object of one team; a run of another team starts all the same."""
    spec = _spec_here(shop)
    team = spec.split("/")[1]
    cluster = load_workspace(shop.root).clusters[shop.cluster].spec
    other = next(one for one in sorted(cluster.teams) if one != team)
    home = namespace_of(cluster, other, load_workspace(shop.root).teams[other].spec)
    runtime = {"runtimeRef": {"name": "none"}}
    broken = _object("trainer.kubeflow.org/v1alpha1", "TrainJob", home, spec=runtime)
    file = f"rendered/{shop.cluster}/runs/{other}/broken.yaml"
    before = shop.runs()

    shop.repository.commit({file: json.dumps(broken)}, message="broken")
    beside = f"specs/{team}/beside.yaml"
    (shop.root / beside).write_text((shop.root / spec).read_text().replace("run: 2\n", ""))
    assert not render(Request(shop.root, (shop.cluster,))).has_errors
    revision = shop.repository.commit(message="beside")
    for name in shop.applications:
        shop.argocd.refresh(name)

    def has_failed(found: Object) -> bool:
        state = found["status"].get("operationState") or {}
        return state.get("phase") in ("Failed", "Error") or state.get("retryCount", 0) > 0

    shop.argocd.wait(f"{shop.cluster}-runs-{team}", revision=revision, timeout=90)
    shop.complete()
    assert len(shop.runs()) == len(before) + 1
    shop.lab.client.wait(
        "Application", f"{shop.cluster}-runs-{other}", NAMESPACE, until=has_failed, timeout=90
    )
    assert before.items() <= shop.runs().items()
    (shop.root / beside).unlink()
    assert not render(Request(shop.root, (shop.cluster,))).has_errors
    revision = shop.repository.commit({file: None}, message="without the broken one")
    for name in shop.applications:
        shop.argocd.refresh(name)
    shop.synced(revision)


def test_removing_the_file_of_a_running_run_does_not_kill_it(shop: Shop) -> None:
    spec = _spec_here(shop)
    stem = Path(spec).stem
    before = set(shop.runs())
    hold = Story(Plot.RUN, namespace=None, run=None)
    shop.lab.tell(hold)
    shop.synced(shop.change({spec: f"{(shop.root / spec).read_text().replace('run: 2', 'run: 3')}"}))
    started = next(name for name in shop.runs() if name not in before)
    namespace = next(
        item["metadata"]["namespace"]
        for item in shop.lab.client.list("TrainJob")
        if item["metadata"]["name"] == started
    )
    selector = f"jobset.sigs.k8s.io/jobset-name={started}"
    shop.lab.client.wait(
        "TrainJob",
        started,
        namespace,
        until=lambda item: any(job["ready"] for job in item["status"].get("jobsStatus", [])),
        timeout=60,
    )
    pods = {pod["metadata"]["uid"] for pod in shop.lab.client.list("Pod", namespace, labels=selector)}
    runs = shop.runs()

    shop.synced(shop.change({spec: None}))

    assert stem in started
    assert shop.runs() == runs
    assert pods <= {pod["metadata"]["uid"] for pod in shop.lab.client.list("Pod", namespace, labels=selector)}
    shop.lab.forget(hold)


def _object(api: str, kind: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": "mallory", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


RBAC = "rbac.authorization.k8s.io/v1"
ADMIN = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
}
# Files that gangplan did not write, as if the checks of CI had been passed over: part, object.
FOREIGN = {
    "a cluster role binding among runs": ("runs/research", _object(RBAC, "ClusterRoleBinding", **ADMIN)),
    "a cluster role binding among tenants": ("tenants", _object(RBAC, "ClusterRoleBinding", **ADMIN)),
    "a role binding of the system": ("tenants", _object(RBAC, "RoleBinding", "kube-system", **ADMIN)),
    "a role binding among runs": ("runs/research", _object(RBAC, "RoleBinding", "research", **ADMIN)),
    "a policy of the network of another team": (
        "runs/research",
        _object("networking.k8s.io/v1", "NetworkPolicy", "team-nlp", spec={"podSelector": {}}),
    ),
    "a secret": ("tenants", _object("v1", "Secret", "research", stringData={"a": "b"})),
    "a map of the system": ("platform", _object("v1", "ConfigMap", "kube-system", data={"a": "b"})),
    "a policy of the network in the system": (
        "runs/research",
        _object("networking.k8s.io/v1", "NetworkPolicy", "kube-system", spec={"podSelector": {}}),
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_projects_refuse_what_is_no_part_of_them(shop: Shop, name: str) -> None:
    """Last in this file: the applications stay out of sync for a while."""
    part, body = FOREIGN[name]
    application = f"{shop.cluster}-{part.replace('/', '-')}"
    file = f"rendered/{shop.cluster}/{part}/mallory.yaml"
    shop.repository.commit({file: json.dumps(body)}, message=name)
    shop.argocd.refresh(application)

    def is_refused(found: Object) -> bool:
        state = found["status"].get("operationState") or {}
        told = [
            *((state.get("syncResult") or {}).get("resources") or ()),
            *found["status"].get("conditions", ()),
        ]
        return any("not permitted" in one.get("message", "") for one in told)

    shop.lab.client.wait("Application", application, NAMESPACE, until=is_refused, timeout=60)
    assert shop.lab.client.find(body["kind"], "mallory", body["metadata"].get("namespace")) is None
    shop.repository.commit({file: None}, message=f"without {name}")
    shop.argocd.refresh(application)


def _spec_here(shop: Shop) -> str:
    """A small spec that runs on this cluster only, so that one change is one run."""
    found = sorted(
        (shop.root / "rendered" / shop.cluster / "runs").rglob("*.yaml"),
        key=lambda path: (path.stat().st_size, path.name),
    )
    for path in found:
        source = path.read_text().splitlines()[0].rpartition(" ")[2]
        text = (shop.root / source).read_text()
        if "clusters:" not in text or f"clusters: [{shop.cluster}]" in text:
            return source
    raise AssertionError("no spec runs on this cluster alone")
