"""Argo CD reads a workspace through gangplan's plugin; the plugin's server is the real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import shop as shops
from tests.e2e import world
from tests.e2e.shop import spec_here
from tests.e2e.test_argocd import Object, Shop, opened
from tests.lab import programs
from tests.lab.argocd import NAMESPACE
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A workspace of the cluster that fits the profile, synced only through the plugin."""
    root, cluster = shops.sample(tmp_path_factory.mktemp("workspace"), [programs.ARGOCD])
    with Lab(shops.fixtures.chosen()) as lab:
        yield opened(lab, GitRepository(root), cluster, has_plugin=True)


def test_a_second_commit_starts_only_its_run(shop: Shop) -> None:
    spec, before = spec_here(shop), shop.runs()
    assert before
    shop.synced(shop.change({spec: f"{(shop.root / spec).read_text()}run: 2\n"}))
    assert before.items() <= shop.runs().items()
    assert len(shop.runs()) == len(before) + 1


def test_changes_that_bypassed_ci_are_not_applied(shop: Shop) -> None:
    """A spec that was not rendered, and a rendered file that was edited."""
    spec, before = spec_here(shop), shop.runs()
    text = (shop.root / spec).read_text()
    run = world.run_files(shop.root / "rendered" / shop.cluster)[0]
    forged = str(run.relative_to(shop.root))
    for files, said in (
        ({spec: text.replace("run: 2", "run: 3")}, "rendered-stale"),
        (
            {forged: run.read_text() + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"},
            "rendered",
        ),
    ):
        old = {name: (shop.root / name).read_text() for name in files}
        shop.commit(files, "past CI")

        def is_told(found: Object, said: str = said) -> bool:
            return any(said in one["message"] for one in found.get("status", {}).get("conditions", ()))

        for name in shop.applications:
            shop.lab.client.wait("Application", name, NAMESPACE, until=is_told, timeout=90)
        assert shop.runs() == before
        shop.synced(shop.commit(old, "as it was"))
