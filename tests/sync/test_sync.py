"""`gangplan gitops sync`: what is applied, in which order, what is pruned, and what is left alone.

tests/e2e/test_sync.py does the same with a real API server with Trainer and Kueue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from gangplan.errors import Exit
from gangplan.sync import sync as module
from tests import workspaces
from tests.lab.gitrepo import GitRepository
from tests.live.server import refusal
from tests.sync.store import Store, serving
from tests.workspaces import Outcome, gangplan, render, write

SPEC, OTHER = "specs/nlp/filings.yaml", "specs/vision/scans.yaml"
INVENTORY = "/api/v1/namespaces/gangplan/configmaps/gangplan-inventory-lab"


def kubeconfig_of(store: Store, path: Path) -> Path:
    """Write a kubeconfig with the context `lab`."""
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "one", "cluster": {"server": store.url}}],
        "users": [{"name": "me", "user": {"token": "not-a-secret"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "one", "user": "me"}}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(body))
    return path


@dataclass
class Story:
    """A workspace in Git, and the cluster that it is synced to."""

    root: Path
    repository: GitRepository
    store: Store

    def merge(self, files: dict[str, str | None], *flags: str) -> Outcome:
        """Change files, render, commit and sync."""
        for name, text in files.items():
            if text is None:
                (self.root / name).unlink()
                with suppress(OSError):  # other files are there
                    (self.root / name).parent.rmdir()
            else:
                write(self.root, {name: text})
        render(self.root)
        self.repository.commit()
        return self.sync(*flags)

    def sync(self, *flags: str) -> Outcome:
        """Sync the workspace."""
        kubeconfig = kubeconfig_of(self.store, self.root.parent / "kubeconfig")
        return gangplan("gitops", "sync", "lab", "-C", self.root, "--kubeconfig", kubeconfig, *flags)

    @property
    def revision(self) -> str:
        """The revision that the cluster records for the last complete sync."""
        return str(self.store.objects[INVENTORY]["data"]["revision"])

    def runs(self, start: str = "") -> dict[str, str]:
        """Return the uids of TrainJobs, by name."""
        return {
            one["metadata"]["name"]: one["metadata"]["uid"] for one in self.store.named("TrainJob", start)
        }


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    """Write two teams with a run each, and start a cluster that is empty."""
    monkeypatch.setattr(module, "PAUSES_S", (0, 0))
    root = tmp_path / "jobs"
    team, cluster = workspaces.TEAM, workspaces.CLUSTER
    write(
        root,
        {
            **workspaces.STOCK,
            "specs/vision/team.yaml": team,
            "overlays/lab/cluster.yaml": cluster.replace("  nlp:", "  vision: {queue: training}\n  nlp:"),
            OTHER: workspaces.SPEC.replace("filings", "scans"),
        },
    )
    with serving() as store:
        yield Story(root, GitRepository(root), store)


def test_objects_of_a_cluster_are_created_in_waves_and_runs_only_once(story: Story) -> None:
    outcome = story.merge({})
    assert outcome.code == Exit.CLEAN, outcome.err
    assert outcome.out == f"lab at {story.revision[:12]}: {len(story.store.objects) - 1} created\n"
    order = [path for method, path in story.store.changes if method == "PATCH"]
    kinds = [story.store.objects[path]["kind"] for path in order]
    first = {kind: number for number, kind in reversed(list(enumerate(kinds)))}
    last = {kind: number for number, kind in enumerate(kinds)}
    for before, after in (
        ("ResourceFlavor", "ClusterQueue"),
        ("ClusterQueue", "Namespace"),
        ("Namespace", "LocalQueue"),
        ("LocalQueue", "TrainJob"),
    ):
        assert last[before] < first[after], f"{before} after {after}"

    again = story.sync()
    assert again.code == Exit.CLEAN
    assert "2 left to their controllers" in again.out
    assert "created" not in again.out


def test_a_run_stays_when_its_file_leaves_git(story: Story) -> None:
    story.merge({})
    before = story.runs()
    outcome = story.merge({SPEC: None})
    assert outcome.code == Exit.CLEAN, outcome.err
    assert story.runs() == before
    assert outcome.out.count("not in Git any more, kept") == 1
    assert "TrainJob/nlp/filings-" in outcome.out
    # The inventory still has it: once its annotation allows it, the run is pruned.
    (run,) = story.runs("filings")
    for body in story.store.objects.values():
        if body["metadata"]["name"] == run:
            del body["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    assert "3 pruned" in story.sync().out
    assert story.runs("filings") == {}


def test_a_stopped_run_is_replaced_by_a_record_that_goes_with_its_file(story: Story) -> None:
    story.merge({})
    before = story.runs("filings")
    outcome = story.merge({SPEC: workspaces.SPEC + "state: stopped\n"})
    assert "1 replaced by records" in outcome.out
    record = story.runs("filings")
    assert record.keys() == before.keys()
    assert record != before
    story.sync()
    assert story.runs("filings") == record
    outcome = story.merge({SPEC: None})
    assert story.runs("filings") == {}
    deleted = [path for method, path in story.store.changes if method == "DELETE"][1:]
    kinds = [path.split("/")[-2] for path in deleted]
    assert kinds == ["trainjobs", "trainingruntimes", "networkpolicys"]


def test_an_archived_run_is_neither_applied_nor_deleted(story: Story) -> None:
    story.merge({})
    before = story.runs()
    outcome = story.merge({SPEC: workspaces.SPEC + "state: archived\n"})
    assert outcome.code == Exit.CLEAN, outcome.err
    assert story.runs() == before
    story.store.objects = {path: body for path, body in story.store.objects.items() if "filings" not in path}
    story.sync()
    assert not story.runs("filings")


def refuse(story: Story, name: str) -> None:
    """Refuse a TrainJob because a foreign quota is full."""
    said = "exceeded quota: full, requested: count/trainjobs.trainer.kubeflow.org=1, used: 0, limited: 0"
    story.store.refuses[f"TrainJob/{name}"] = refusal(
        403, "Forbidden", f'trainjobs "{name}" is forbidden: {said}'
    )


def test_a_refused_run_of_one_team_stops_no_other_team(story: Story) -> None:
    """The finding is at the spec; nothing of that team is pruned, and the commit counts as not synced."""
    write(story.root, {"specs/nlp/over.yaml": workspaces.SPEC + "state: stopped\n"})
    story.merge({})
    revision = story.revision
    (run,) = story.runs("filings")
    story.store.objects = {path: one for path, one in story.store.objects.items() if run not in path}
    refuse(story, run)
    outcome = story.merge({"specs/nlp/over.yaml": None, "specs/vision/two.yaml": workspaces.SPEC})
    assert outcome.code == Exit.FINDINGS
    assert [one.place.partition(":")[0] for one in outcome.findings] == [SPEC]
    assert "quota of lab refuses it" in outcome.err
    assert story.runs("two")
    assert not story.runs("filings")
    assert story.runs("over"), "nothing is pruned where something was refused"
    assert story.revision == revision

    story.store.refuses = {}
    outcome = story.sync()
    assert outcome.code == Exit.CLEAN
    assert "3 pruned" in outcome.out
    assert (bool(story.runs("filings")), bool(story.runs("over"))) == (True, False)
    assert story.revision != revision


@pytest.mark.parametrize(
    ("name", "untried"),
    [
        ("ResourceFlavor/a100", ["runs/nlp", "runs/vision", "tenants/nlp", "tenants/vision"]),
        ("Namespace/vision", ["runs/vision"]),
    ],
)
def test_objects_that_depend_on_a_refused_one_are_not_tried(
    story: Story, name: str, untried: list[str]
) -> None:
    """A ResourceFlavor belongs to the platform; the namespace belongs to one team, so only its runs wait."""
    said = 'admission webhook "x.example.com" denied the request: no'
    story.store.refuses[name] = refusal(403, "Forbidden", said)
    outcome = story.merge({})
    assert outcome.code == Exit.FINDINGS
    told = [line.split()[2].rstrip(",") for line in outcome.out.splitlines() if "not tried" in line]
    assert sorted(told) == untried


def test_a_rendered_file_that_ci_would_refuse_is_not_applied(story: Story) -> None:
    story.merge({})
    tenants = next((story.root / "rendered/lab/tenants/nlp").glob("*.yaml"))
    text = tenants.read_text()
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nlp"}}
    tenants.write_text(f"{text}---\n{json.dumps(extra)}\n")
    stray = story.root / "rendered/lab/runs/vision/stray.yaml"
    stray.write_text(json.dumps(extra))
    story.repository.commit()
    outcome = story.sync()
    assert outcome.code == Exit.FINDINGS
    assert {one.place.partition(":")[0] for one in outcome.findings} >= {
        str(path.relative_to(story.root)) for path in (tenants, stray)
    }
    assert "not tried: runs/nlp" in outcome.out
    assert not [one for one in story.store.named("ConfigMap", "x") if one["metadata"]["name"] == "x"]
    assert len(story.runs()) == 2


@pytest.mark.parametrize("place", ["stray.yaml", "far/runs/nlp/stray.yaml", "lab/stray.yaml"])
def test_a_file_outside_the_parts_of_the_cluster_blocks_nothing(story: Story, place: str) -> None:
    """It is in no part of this cluster; `render --check` in CI refuses it."""
    stray = story.root / "rendered" / place
    render(story.root)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: nlp}\n")
    story.repository.commit()
    outcome = story.sync()
    assert outcome.code == Exit.CLEAN, outcome.err
    assert len(story.runs()) == 2
    assert not story.store.named("ConfigMap", "x")


def test_a_workspace_with_errors_is_not_applied(story: Story) -> None:
    story.merge({})
    write(story.root, {SPEC: workspaces.SPEC.replace("workers: 4", "workers: four")})
    story.repository.commit()
    story.store.changes.clear()
    outcome = story.sync()
    assert outcome.code == Exit.INPUT
    assert "nothing was applied" in outcome.err
    assert story.store.changes == []


def test_an_earlier_commit_changes_nothing(story: Story) -> None:
    story.merge({})
    first = story.revision
    story.merge({SPEC: workspaces.SPEC + "run: 2\n"})
    story.repository.checkout(first)
    story.store.changes.clear()
    outcome = story.sync()
    assert (outcome.code, story.store.changes) == (Exit.CLEAN, [])
    assert outcome.out.startswith("lab: a later commit is synced already, ")


def test_shared_objects_are_pruned_only_with_confirmed(story: Story) -> None:
    story.merge({})
    cluster = (story.root / "overlays/lab/cluster.yaml").read_text()
    without = cluster.replace("  vision: {queue: training}\n", "")
    (story.root / OTHER).unlink()
    outcome = story.merge({"overlays/lab/cluster.yaml": without, "specs/vision/team.yaml": None})
    assert "kept without --confirmed: ClusterQueue/vision, Namespace/vision" in outcome.out
    assert story.store.named("ClusterQueue", "vision")
    outcome = story.sync("--confirmed")
    assert not story.store.named("ClusterQueue", "vision")
    assert "pruned ClusterQueue/vision" in outcome.out


def test_objects_that_helm_took_over_are_left_alone(story: Story) -> None:
    """Helm labels what it adopts as its own; deleting it would delete what belongs to others."""
    story.merge({SPEC: workspaces.SPEC + "state: stopped\n"})
    for one in story.store.named("TrainingRuntime", "filings"):
        one["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    outcome = story.merge({SPEC: None})
    assert story.store.named("TrainingRuntime", "filings")
    assert not story.runs("filings")
    assert "TrainingRuntime" in outcome.out
    assert "TrainingRuntime" not in story.sync().out


@pytest.mark.parametrize("when", ["at the start", "under way"])
def test_a_second_sync_at_the_same_time_stops_the_first(
    story: Story, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.merge({})
    real = module.inventory.write_inventory

    def meanwhile(*given: object) -> object:
        """Write the inventory as another sync would."""
        made = real(*given) if when == "under way" else None  # type: ignore[arg-type]
        story.store.objects[INVENTORY]["metadata"]["resourceVersion"] = "999999"
        return made or real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module.inventory, "write_inventory", meanwhile)
    outcome = story.sync()
    assert outcome.code == Exit.ENVIRONMENT
    assert "another sync of lab has begun meanwhile" in outcome.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda body: body.pop("binaryData"), "is not as gangplan wrote it"),
        (lambda body: body["binaryData"].update({"objects.json.gz": "e30="}), "is not as gangplan wrote it"),
        (lambda body: body.update(data={}), "is not as gangplan wrote it"),
    ],
)
def test_a_broken_inventory_prunes_nothing(story: Story, change: object, says: str) -> None:
    story.merge({})
    change(story.store.objects[INVENTORY])  # type: ignore[operator]
    outcome = story.sync()
    assert outcome.code == Exit.ENVIRONMENT
    assert says in outcome.err
    assert "Delete it" in outcome.err


def test_a_missing_namespace_of_the_inventory_is_reported(story: Story) -> None:
    story.store.spaces.clear()
    outcome = story.merge({})
    assert outcome.code == Exit.ENVIRONMENT
    assert "kubectl create namespace gangplan" in outcome.err
    assert list(story.store.objects) == []


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (("--in-cluster",), Exit.INPUT, "--in-cluster uses no kubeconfig"),
        (("--context", "other"), Exit.INPUT, "no context 'other'"),
    ],
)
def test_flags_of_the_connection_that_do_not_fit_are_refused(
    story: Story, flags: tuple[str, ...], code: Exit, says: str
) -> None:
    outcome = story.merge({}, *flags)
    assert outcome.code == code
    assert says in outcome.err


def test_in_cluster_outside_a_pod_is_an_environment_error(story: Story) -> None:
    render(story.root)
    story.repository.commit()
    outcome = gangplan("gitops", "sync", "lab", "-C", story.root, "--in-cluster")
    assert outcome.code == Exit.ENVIRONMENT
    assert "does not run in a pod" in outcome.err


@pytest.mark.parametrize("name", [SPEC, "specs/nlp/untracked.yaml", "rendered/lab/runs/nlp/stray.yaml", None])
def test_uncommitted_changes_are_not_applied(story: Story, name: str | None) -> None:
    """Someone syncs from a work tree: what would run is in no commit."""
    story.merge({})
    story.store.changes.clear()
    if name is None:
        name = str(next((story.root / "rendered/lab/runs/nlp").glob("*-*.yaml")).relative_to(story.root))
        (story.root / name).unlink()
    else:
        write(story.root, {name: workspaces.SPEC + "run: 3\n"})
    outcome = story.sync()
    assert outcome.code == Exit.INPUT
    assert f"not committed yet: 1 file, first {name}" in outcome.err
    assert story.store.changes == []


def test_an_interrupted_sync_forgets_no_object(story: Story) -> None:
    """The login expires half-way: what was applied is in the inventory, and is pruned when it leaves Git."""
    stopped = workspaces.SPEC + "state: stopped\n"
    story.merge({SPEC: stopped})
    revision = story.revision
    two = "specs/nlp/two.yaml"
    write(story.root, {two: stopped, "specs/nlp/zz.yaml": workspaces.SPEC})
    render(story.root)
    last = next((story.root / "rendered/lab/runs/nlp").glob("zz-*.yaml")).stem
    story.store.refuses[f"TrainingRuntime/{last}"] = refusal(401, "Unauthorized", "expired")
    story.repository.commit()
    assert story.sync().code == Exit.ENVIRONMENT
    assert story.revision == revision
    assert story.runs("two")
    assert not story.runs("zz")
    story.store.refuses.clear()
    outcome = story.merge({two: None})
    assert outcome.code == Exit.CLEAN, outcome.err
    assert (bool(story.runs("two")), bool(story.runs("zz"))) == (False, True)
    assert "3 pruned" in outcome.out
