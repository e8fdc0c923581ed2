"""Claims that a patch makes unshareable under runs with several workers, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces import begin, gangplan, write

PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: PersistentVolumeClaim, name: datasets}}
  patch: |-
    - {{op: replace, path: /spec/accessModes, value: [{}]}}
"""
PLACE = "overlays/lab/kustomization.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a new workspace with a run of two workers that mount a claim of the team."""
    root = begin(tmp_path / "w")
    team, spec = ((root / f"specs/nlp/{name}.yaml").read_text() for name in ("team", "quickstart"))
    claim = "claims: {datasets: {accessModes: [ReadWriteMany], size: 1Ti}}\n"
    mounted = f"{spec}data: {{datasets: /data}}\n"
    cluster, offers = (root / "overlays/lab/cluster.yaml").read_text(), "[ReadWriteMany, ReadWriteOnce]"
    assert offers in cluster
    more = cluster.replace(offers, "[ReadWriteMany, ReadWriteOnce, ReadWriteOncePod]")
    write(root, {"overlays/lab/cluster.yaml": more})
    return write(root, {"specs/nlp/team.yaml": team + claim, "specs/nlp/quickstart.yaml": mounted})


@pytest.mark.parametrize(("mode", "holder"), [("ReadWriteOnce", "node"), ("ReadWriteOncePod", "pod")])
def test_a_claim_for_one_is_reported_at_the_patch(mode: str, holder: str, root: Path) -> None:
    spec = (root / "specs/nlp/quickstart.yaml").read_text()
    write(root, {"specs/nlp/again.yaml": spec, PLACE: PATCH.format(mode)})
    outcome = gangplan("render", "-C", root)
    ((where, rule),) = outcome.errors()  # once for both runs
    assert (where.startswith(f"{PLACE}:6:"), rule) == (True, "claim-not-shared")
    says = f"claim 'datasets' is {mode}: only one {holder} can mount it, but the run has 2 workers"
    assert says in outcome.findings[0].message


def test_one_worker_may_have_a_claim_of_its_own(root: Path) -> None:
    spec = (root / "specs/nlp/quickstart.yaml").read_text()
    write(root, {"specs/nlp/quickstart.yaml": spec.replace("workers: 2", "workers: 1")})
    write(root, {PLACE: PATCH.format("ReadWriteOnce")})
    assert not gangplan("render", "-C", root).errors()


def test_more_modes_stay_silent(root: Path) -> None:
    write(root, {PLACE: PATCH.format("ReadWriteOnce, ReadWriteMany")})
    assert not gangplan("render", "-C", root).findings


def test_a_claim_that_no_run_mounts_stays_silent(root: Path) -> None:
    spec = (root / "specs/nlp/quickstart.yaml").read_text()
    write(root, {"specs/nlp/quickstart.yaml": spec.replace("data: {datasets: /data}\n", "")})
    write(root, {PLACE: PATCH.format("ReadWriteOnce")})
    assert not gangplan("render", "-C", root).findings
