"""A real Argo CD follows a real repository, a gangplan workspace: edit a spec, render, commit, sync."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.gitops.argocd import ArgoCluster, ArgoOptions, build_argocd_objects
from gangplan.gitops.settings import build_argocd_settings
from gangplan.gitops.source import RepositorySource
from gangplan.model.support import TRAINER_LINES
from gangplan.model.version import parse_version
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from tests.e2e import shop as shops
from tests.e2e.shop import PARTS, Isolated, Marked, foreign, spec_here, started
from tests.lab import build, programs
from tests.lab.argocd import NAMESPACE, ArgoCD
from tests.lab.client import TooLateError
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
LOOKS = 8  # reconciliations that must not change anything


@dataclass(slots=True)
class Shop(shops.Shop):
    """A lab with Argo CD, and the repository that it follows."""

    argocd: ArgoCD

    @property
    def applications(self) -> list[str]:
        """Platform, tenants, and the runs of each team."""
        parts = ("platform", "tenants", *(f"runs-{one}" for one in self.namespaces))
        return [f"{self.cluster}-{part}" for part in parts]

    def of_team(self, team: str) -> str:
        """Return the application of a team's runs."""
        return f"{self.cluster}-runs-{team}"

    def follow(self) -> None:
        """Refresh every application."""
        for name in self.applications:
            self.argocd.refresh(name)

    def synced(self, revision: str) -> None:
        """Wait until all applications are Synced at a revision."""
        for name in self.applications:
            self._synced(name, revision)

    def synced_of(self, team: str, revision: str) -> None:
        """Wait until the application of a team is Synced at a revision."""
        self._synced(self.of_team(team), revision)

    def _synced(self, name: str, revision: str) -> None:
        try:
            self.argocd.wait(name, revision=revision, timeout=90)
        except TooLateError as late:
            raise AssertionError(f"{name}: {self.argocd.differing(name)}; {late}") from late

    def fails_of(self, team: str) -> None:
        """Wait until the sync of a team's application fails or is retried."""

        def has_failed(found: Object) -> bool:
            state = found.get("status", {}).get("operationState") or {}
            return state.get("phase") in ("Failed", "Error") or state.get("retryCount", 0) > 0

        self.lab.client.wait("Application", self.of_team(team), NAMESPACE, until=has_failed, timeout=90)

    def look(self, name: str, *, hard: bool) -> None:
        """Let Argo CD look at an application, and wait until it has done so."""
        seen = self.argocd.reconciled(name)
        self.argocd.refresh(name, hard=hard)
        self.lab.client.wait(
            "Application",
            name,
            NAMESPACE,
            until=lambda item: item.get("status", {}).get("reconciledAt") != seen,
        )
        assert self.argocd.get(name)["status"]["sync"]["status"] == "Synced"

    def still(self, team: str, name: str) -> None:
        """Check that a hard refresh finds no difference in a run."""
        self.look(self.of_team(team), hard=True)
        assert not [one for one in self.argocd.differing(self.of_team(team)) if name in one]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A workspace of the cluster that fits the profile, rendered, committed and handed to Argo CD."""
    root, cluster = shops.sample(tmp_path_factory.mktemp("workspace"), [programs.ARGOCD])
    with Lab(shops.fixtures.chosen()) as lab:
        yield opened(lab, GitRepository(root), cluster)


def opened(lab: Lab, repository: GitRepository, cluster: str, *, has_plugin: bool = False) -> Shop:
    """Start Argo CD, hand it the rendered and committed workspace, and wait until all runs have ended.

    With the plugin, its server runs next to the repo server, with the gangplan and kustomize of these tests.
    """
    shops.furnished(lab, repository.folder, cluster)
    files = build_argocd_settings(
        NAMESPACE, ArgoOptions(), "registry.example.com/gangplan" if has_plugin else ""
    )
    (checks,) = files["argocd-cm.yaml"]
    plugin = files["plugin.yaml"][0]["data"]["plugin.yaml"] if has_plugin else ""
    tools = (Path(sys.executable).parent, build.executable(programs.KUSTOMIZE).parent)
    argocd = ArgoCD(lab, cluster=cluster, settings=checks["data"], plugin=plugin, tools=tools)
    shop = Shop(lab, repository, cluster, argocd)
    assert not render_tree(Request(shop.root, (cluster,))).has_errors
    revision = repository.commit(message="first")
    spec = shop.spec
    lab.client.apply_all(
        build_argocd_objects(
            ArgoCluster(
                cluster,
                shop.namespaces,
                TRAINER_LINES[parse_version(spec.versions.trainer).line].override_field,
                (spec.monitoring.namespace,) if spec.monitoring else (),
            ),
            RepositorySource(repository.url, "main", NAMESPACE),
            list(PARTS),
            ArgoOptions(has_plugin=has_plugin),
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
            shop.look(name, hard=look % 2 == 0)
            assert shop.argocd.differing(name) == []

    assert {name: _finished(shop, name) for name in names} == before
    assert shop.runs() == runs


def _finished(shop: Shop, name: str) -> str:
    """Return when the last sync ended; '' for a team without runs, which was never synced."""
    return str(shop.argocd.get(name)["status"].get("operationState", {}).get("finishedAt", ""))


class TestArgoCD(Isolated, Marked):
    """Argo CD delivers, and reports how runs are."""

    engine = "argocd"

    def test_the_health_of_a_team_application_follows_its_runs(self, shop: Shop) -> None:
        """A sync ends while runs train, and a run that fails degrades only the application of its team."""
        spec = spec_here(shop)
        before, name = (shop.root / spec).read_text(), shop.of_team(Path(spec).parts[1])
        text = re.sub(r"^run: .*\n", "", before, flags=re.MULTILINE)
        shop.complete()
        shop.argocd.wait(name, health="Healthy")
        trains = Story(Plot.RUN, namespace=None, run=None)
        shop.lab.tell(trains)
        started(shop, {spec: f"{text}run: 20\n"})
        found = shop.argocd.wait(name, health="Progressing")
        assert found["status"]["operationState"]["phase"] == "Succeeded"
        shop.lab.forget(trains)
        fails = Story(Plot.FAIL, namespace=None, run=None)
        shop.lab.tell(fails)
        shop.synced(shop.change({spec: f"{text}run: 21\n"}))
        found = shop.argocd.wait(name, health="Degraded", timeout=90)
        assert found["status"]["sync"]["status"] == "Synced"
        others = [one for one in shop.applications if one != name]
        # Nothing fills in ExternalSecrets here, so tenants may still be progressing.
        assert {shop.argocd.get(one)["status"]["health"]["status"] for one in others} <= {
            "Healthy",
            "Progressing",
        }
        shop.lab.forget(fails)
        shop.synced(shop.change({spec: before}))


RBAC = "rbac.authorization.k8s.io/v1"
ADMIN = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
}
# Files that gangplan did not write, as if the checks of CI had been bypassed: part, object.
FOREIGN = {
    "a cluster role binding among runs": ("runs/research", foreign(RBAC, "ClusterRoleBinding", **ADMIN)),
    "a cluster role binding among tenants": ("tenants", foreign(RBAC, "ClusterRoleBinding", **ADMIN)),
    "a role binding of the system": ("tenants", foreign(RBAC, "RoleBinding", "kube-system", **ADMIN)),
    "a role binding among runs": ("runs/research", foreign(RBAC, "RoleBinding", "research", **ADMIN)),
    "a policy of the network of another team": (
        "runs/research",
        foreign("networking.k8s.io/v1", "NetworkPolicy", "team-nlp", spec={"podSelector": {}}),
    ),
    "a secret": ("tenants", foreign("v1", "Secret", "research", stringData={"a": "b"})),
    "a map of the system": ("platform", foreign("v1", "ConfigMap", "kube-system", data={"a": "b"})),
    "a policy of the network in the system": (
        "runs/research",
        foreign("networking.k8s.io/v1", "NetworkPolicy", "kube-system", spec={"podSelector": {}}),
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_projects_refuse_objects_that_do_not_belong_to_them(shop: Shop, name: str) -> None:
    """Last in this file: the applications stay out of sync for a while."""
    part, body = FOREIGN[name]
    application = f"{shop.cluster}-{part.replace('/', '-')}"
    file = f"rendered/{shop.cluster}/{part}/mallory.yaml"
    shop.repository.commit({file: json.dumps(body)}, message=name)
    shop.argocd.refresh(application)

    def is_refused(found: Object) -> bool:
        state = found.get("status", {}).get("operationState") or {}
        told = [
            *((state.get("syncResult") or {}).get("resources") or ()),
            *found.get("status", {}).get("conditions", ()),
        ]
        return any("not permitted" in one.get("message", "") for one in told)

    shop.lab.client.wait("Application", application, NAMESPACE, until=is_refused, timeout=60)
    assert shop.lab.client.find(body["kind"], "mallory", body["metadata"].get("namespace")) is None
    shop.repository.commit({file: None}, message=f"without {name}")
    shop.argocd.refresh(application)
