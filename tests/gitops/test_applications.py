"""Objects that another Application of Argo CD holds from a change on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.review.repository import Repository, begin
from tests.workspaces import CLUSTER, Shown, gangplan, write

FILE = "overlays/lab/cluster.yaml"
SETTINGS = """\
apiVersion: gangplan.dev/v1
kind: Workspace
gitops:
  repo: https://git.example.com/ml/jobs.git
  engines: {argocd: {destination: {prod: lab}}}
"""
ANNOTATE = "argocd.argoproj.io/tracking-id-"


@pytest.fixture
def delivered(tmp_path: Path) -> Repository:
    """Commit a rendered workspace that Argo CD syncs."""
    found = begin(tmp_path / "top", is_rendered=False)
    (found.root / "gangplan.yaml").write_text(SETTINGS)
    found.render()
    found.commit("base")
    found.git("branch", "-f", "main")
    return found


def change(at: Repository, file: str, old: str, new: str) -> None:
    """Replace a text in a file of the workspace."""
    text = (at.root / file).read_text()
    assert old in text
    (at.root / file).write_text(text.replace(old, new))


def moved(at: Repository) -> list[Shown]:
    """Return the findings about objects that move, once the change is rendered."""
    assert gangplan("render", "-C", at.root).code in (0, 1)
    outcome = gangplan("validate", "-C", at.root, "--base", "main")
    return [one for one in outcome.findings if one.rule == "app-moved"]


def rename_team(at: Repository, namespace: str) -> None:
    """Call the team lang, and give it a namespace."""
    at.git("mv", "specs/nlp", "specs/lang")
    change(at, FILE, "  nlp: {", f"  lang: {{namespace: {namespace}, ")


def rename_cluster(at: Repository) -> None:
    """Call the cluster prod, which Argo CD calls lab."""
    at.git("mv", "overlays/lab", "overlays/prod")
    change(at, "specs/nlp/team.yaml", "clusters: [lab]", "clusters: [prod]")


def test_a_renamed_team_in_its_namespace_moves_what_its_runs_share(delivered: Repository) -> None:
    rename_team(delivered, "nlp")
    (found,) = moved(delivered)
    assert found.place.startswith(f"{FILE}:")
    assert found.message.startswith("ConfigMap nlp/gangplan-launch-")
    assert " moves from Application lab-runs-nlp to lab-runs-lang: " in found.message
    assert "argocd app delete lab-runs-nlp --cascade=false, then " in found.help
    assert f"kubectl annotate -R -f rendered/lab/runs/lang {ANNOTATE} " in found.help


def test_a_renamed_team_in_another_namespace_moves_nothing(delivered: Repository) -> None:
    rename_team(delivered, "lang")
    assert moved(delivered) == []


def test_a_renamed_cluster_moves_all_of_its_objects(delivered: Repository) -> None:
    rename_cluster(delivered)
    (found,) = moved(delivered)
    assert found.place == "overlays/prod/cluster.yaml:1:1"
    assert "argocd app delete lab-platform lab-runs-nlp lab-tenants --cascade=false" in found.help
    assert f"kubectl annotate -R -f rendered/prod {ANNOTATE} " in found.help


def test_two_clusters_of_one_destination_are_refused(delivered: Repository) -> None:
    change(delivered, "gangplan.yaml", "argocd: {destination: {prod: lab}}", "argocd: {}")
    write(delivered.root, {"overlays/two/cluster.yaml": CLUSTER})
    delivered.render()
    two = gangplan("gitops", "argocd", "-C", delivered.root)
    same = gangplan("gitops", "argocd", "-C", delivered.root, "--destination", "two=lab")
    assert (two.code, same.code) == (Exit.CLEAN, Exit.INPUT)
    assert "clusters lab and two have one destination, lab" in same.err


@pytest.mark.parametrize("settings", ["argocd: {}", "flux: {}"])
def test_another_cluster_or_engine_moves_nothing(delivered: Repository, settings: str) -> None:
    """Without its destination, prod is another cluster of Argo CD."""
    change(delivered, "gangplan.yaml", "argocd: {destination: {prod: lab}}", settings)
    rename_cluster(delivered)
    assert moved(delivered) == []
