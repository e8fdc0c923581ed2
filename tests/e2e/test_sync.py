"""`gangplan gitops sync` follows a real repository: edit a spec, render, commit, sync."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.errors import Exit
from gangplan.gitops.tekton import Push, render_tekton_sync_rights
from gangplan.pipeline.past import BOUND_ROLES
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests.e2e import shop as shops
from tests.e2e import world
from tests.e2e.shop import Isolated, spec_here
from tests.lab import programs
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.workspaces import Outcome, gangplan

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
HOME = "ci"


@dataclass(slots=True)
class Shop(shops.Shop):
    """A lab, and the repository that a pipeline syncs after each push, with an account only for that."""

    kubeconfig: Path
    last: Outcome = field(default_factory=lambda: Outcome(0, "", ""))

    def follow(self) -> None:
        """Run what the pipeline of a push runs."""
        flags = ("--kubeconfig", self.kubeconfig, "--context", "lab", "--namespace", HOME)
        self.last = gangplan("gitops", "sync", self.cluster, "-C", self.root, *flags)

    def synced(self, revision: str) -> None:
        """Check that the last sync was clean, and of this revision."""
        assert self.last.code == Exit.CLEAN, self.last.out + self.last.err
        assert self.inventory["data"]["revision"] == revision

    def synced_of(self, team: str, revision: str) -> None:
        """Check that the last sync reported nothing about the team."""
        assert f"/runs/{team}" not in self.last.err + self.last.out

    def fails_of(self, team: str) -> None:
        """Check that the last sync reported an object of the team that was not applied."""
        assert self.last.code == Exit.FINDINGS
        assert f"/runs/{team}/" in self.last.err

    def still(self, team: str, name: str) -> None:
        """Sync again, and check that it changes nothing about a run."""
        before = self.version(name)
        self.follow()
        assert self.version(name) == before

    @property
    def inventory(self) -> Object:
        """The inventory of the last sync in the cluster."""
        return self.lab.client.get("ConfigMap", f"gangplan-inventory-{self.cluster}", HOME)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A workspace of the cluster that fits the profile, rendered, committed and synced."""
    root, cluster = shops.sample(tmp_path_factory.mktemp("workspace"), [programs.KUSTOMIZE])
    with Lab(shops.fixtures.chosen()) as lab:
        shops.furnished(lab, root, cluster)
        shop = Shop(lab, GitRepository(root), cluster, account(lab, root))
        assert not render_tree(Request(root, (cluster,))).has_errors
        shop.synced(shop.commit({}, "first"))
        shop.complete()
        yield shop


def account(lab: Lab, root: Path) -> Path:
    """Create the account of docs/gitops.md with the rights written for it; return a kubeconfig with its
    token."""
    lab.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    push = Push(sync="in-cluster", roles=tuple(BOUND_ROLES), namespace=HOME)
    for body in load_objects(render_tekton_sync_rights(push)):
        lab.client.apply(body)
    path = root.parent / "kubeconfig"
    config = yaml.safe_load(lab.kubeconfig.read_text())
    token = lab.kubectl("create", "token", "gangplan-sync", f"--namespace={HOME}", "--duration=2h").strip()
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_second_sync_of_the_same_commit_changes_nothing(shop: Shop) -> None:
    before = {name: shop.version(name) for name in shop.runs()}
    queues = _generations(shop, "ClusterQueue")
    assert before
    assert queues
    shop.follow()
    assert shop.last.code == Exit.CLEAN
    assert "pruned" not in shop.last.out
    assert "created" not in shop.last.out
    assert before == {name: shop.version(name) for name in shop.runs()}
    assert queues == _generations(shop, "ClusterQueue")


def _generations(shop: Shop, kind: str) -> dict[str, int]:
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in shop.lab.client.list(kind)}


class TestSync(Isolated):
    """gangplan delivers, as a step of a pipeline."""

    def test_a_refused_object_of_one_team_does_not_stop_other_teams(self, shop: Shop) -> None:
        """A quota that is not gangplan's leaves no room for a run; the finding is at its spec."""
        spec = spec_here(shop)
        team = Path(spec).parts[1]
        other = next(one for one in shop.namespaces if one != team)
        full = {"hard": {"count/trainjobs.trainer.kubeflow.org": "0"}}
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "full", "namespace": shop.namespaces[team]},
            "spec": full,
        }
        shop.lab.client.apply(quota, manager="people")
        shop.lab.client.wait(
            "ResourceQuota",
            "full",
            shop.namespaces[team],
            until=lambda item: item.get("status", {}).get("hard"),
        )
        before = shop.runs()
        mine, theirs = f"specs/{team}/refused.yaml", f"specs/{other}/beside.yaml"
        text = (shop.root / spec).read_text()
        their_text = next(
            (shop.root / path).read_text()
            for path in (
                world.source_of(file)
                for file in world.run_files(shop.root / "rendered" / shop.cluster)
                if file.parent.name == other
            )
        )
        shop.change({mine: text, theirs: their_text})
        assert shop.last.code == Exit.FINDINGS, shop.last.err
        assert f"{mine}:" in shop.last.err
        assert "server-quota" in shop.last.err
        assert len(shop.runs()) == len(before) + 1
        shop.lab.client.delete("ResourceQuota", "full", shop.namespaces[team])
        shop.synced(shop.change({mine: None, theirs: None}))

    def test_an_earlier_commit_is_not_synced_after_a_later_one(self, shop: Shop) -> None:
        """Pipelines of two pushes may end in any order."""
        later = shop.inventory["data"]["revision"]
        shop.synced(shop.commit({}, "later"))
        shop.repository.checkout(later)
        shop.follow()
        assert "a later commit is synced already" in shop.last.out
        assert shop.last.code == Exit.CLEAN
        shop.repository.checkout("main")

    def test_a_rendered_file_that_was_edited_by_hand_is_not_applied(self, shop: Shop) -> None:
        file = min((shop.root / "rendered" / shop.cluster / "tenants").rglob("*.yaml"))
        text = file.read_text()
        secret = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
        name = str(file.relative_to(shop.root))
        shop.commit({name: f"{text}---\n{json.dumps(secret)}\n"}, "past CI")
        assert shop.last.code == Exit.FINDINGS
        assert name in shop.last.err
        assert shop.lab.client.find("ConfigMap", "x", "default") is None
        shop.synced(shop.commit({name: text}, "as it was"))
