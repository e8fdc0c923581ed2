"""A real Flux follows a real repository, a gangplan workspace: edit a spec, render, commit, reconcile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.gitops.flux import build_flux_objects, kustomizations_of
from gangplan.gitops.source import RepositorySource
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from tests.e2e import shop as shops
from tests.e2e.shop import PARTS, Delivered, Marked, foreign, spec_here
from tests.lab import programs
from tests.lab.client import condition
from tests.lab.flux import NAMESPACE, Flux
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
LOOKS = 4  # reconciliations that must not change anything


@dataclass(slots=True)
class Shop(shops.Shop):
    """A lab with Flux, and the repository that it follows."""

    flux: Flux

    @property
    def kustomizations(self) -> list[str]:
        """The names of all Kustomizations, in the order of their dependencies."""
        return [f"{self.cluster}-{part}" for part in kustomizations_of(PARTS)]

    def follow(self) -> None:
        """Fetch and apply at once."""
        self.flux.look(f"{self.cluster}-rendered", "GitRepository")
        for name in self.kustomizations:
            self.flux.look(name)

    def synced(self, revision: str) -> None:
        """Wait until every Kustomization is ready at a revision."""
        for name in self.kustomizations:
            self.flux.wait(name, revision)

    def synced_of(self, team: str, revision: str) -> None:
        """Wait until the Kustomization of a team's runs is ready at a revision."""
        self.flux.wait(f"{self.cluster}-runs", revision)

    def fails_of(self, team: str) -> None:
        """Wait until the Kustomization of a team's runs is not ready."""
        name = f"{self.cluster}-runs"
        self.lab.client.wait(
            "Kustomization", name, NAMESPACE, until=lambda item: condition(item, "Ready") == "False"
        )

    def still(self, team: str, name: str) -> None:
        """Let Flux apply the runs of a team again, and check that it changes nothing about one of them."""
        before = self.version(name)
        self.flux.look(f"{self.cluster}-runs")
        assert self.version(name) == before


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A workspace of the cluster that fits the profile, rendered, committed and handed to Flux."""
    root, cluster = shops.sample(tmp_path_factory.mktemp("workspace"), programs.FLUX)
    repository = GitRepository(root)
    with Lab(shops.fixtures.chosen()) as lab, repository.served(lab.site.ports.take()) as url:
        shops.furnished(lab, root, cluster)
        shop = Shop(lab, repository, cluster, Flux(lab))
        assert not render_tree(Request(root, (cluster,))).has_errors
        revision = repository.commit(message="first")
        source = RepositorySource(url, "main", NAMESPACE)
        for body in build_flux_objects(cluster, source, PARTS):
            lab.client.apply(body)
        shop.synced(revision)
        shop.complete()
        yield shop


def test_nothing_changes_over_many_reconciliations(shop: Shop) -> None:
    """Every object keeps its version, once Flux has taken over the namespaces that people created."""
    shop.follow()
    before = _versions(shop)
    assert shop.runs()
    for _ in range(LOOKS):
        shop.follow()
    assert _versions(shop) == before


def _versions(shop: Shop) -> dict[str, Any]:
    """Return the generation (or else the version) of each object in the inventories, by its id there."""
    found = {}
    for name in shop.kustomizations:
        for entry in shop.flux.get(name)["status"]["inventory"]["entries"]:
            namespace, object_name, _, kind = entry["id"].split("_")
            body = shop.lab.client.get(kind, object_name.replace("__", ":"), namespace or None)
            meta = body["metadata"]
            found[entry["id"]] = meta["uid"], meta.get("generation", meta["resourceVersion"])
    return found


def test_variables_of_a_users_kustomization_stay_out_of_scripts(shop: Shop) -> None:
    """A user's own Kustomization may have `postBuild`; launch scripts are full of `${NAME}`."""
    before = _versions(shop)
    name = f"{shop.cluster}-runtimes"
    change = {"spec": {"postBuild": {"substitute": {"HOME": "eaten", "PATH": "eaten"}}}}
    shop.lab.client.patch("Kustomization", name, change, NAMESPACE)
    shop.follow()
    assert condition(shop.flux.get(name), "Ready") == "True"
    assert _versions(shop) == before
    shop.lab.client.patch("Kustomization", name, {"spec": {"postBuild": None}}, NAMESPACE)


class TestFlux(Delivered, Marked):
    """Flux delivers all runs of a cluster together."""

    engine = "flux"

    def test_a_refused_run_blocks_new_ones_until_it_is_removed_from_git(self, shop: Shop) -> None:
        spec = spec_here(shop)
        team = Path(spec).parts[1]
        broken = foreign(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            shop.namespaces[team],
            spec={"runtimeRef": {"name": "none"}},
        )
        broken["metadata"]["labels"] = {"gangplan.dev/run": "mallory"}
        file, beside = f"rendered/{shop.cluster}/runs/{team}/broken.yaml", f"specs/{team}/beside.yaml"
        before = shop.runs()
        shop.commit({file: json.dumps(broken)}, "broken")
        shop.change({beside: (shop.root / spec).read_text()})
        shop.fails_of(team)
        assert shop.runs() == before
        shop.synced(shop.commit({file: None}, "without the broken one"))
        assert before.items() <= shop.runs().items()
        assert len(shop.runs()) == len(before) + 1
