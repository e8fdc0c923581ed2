"""ResourceQuotas below the claims that the team's own file asks for, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces import begin, gangplan, write

PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: ResourceQuota, name: training}}
  patch: |-
    - {{op: add, path: /spec/hard/{}, value: "{}"}}
"""
PLACE = "overlays/lab/kustomization.yaml"
CLASS = "shared.storageclass.storage.k8s.io"
# A key, what the claim of 1Ti needs of it, and a little less.
NEEDED = {
    "requests.storage": ("1Ti", "1023Gi", "need 1024 GiB of storage, and the namespace may request 1023 GiB"),
    f"{CLASS}~1requests.storage": ("1Ti", "1023Gi", "of storage class 'shared'"),
    f"{CLASS}~1persistentvolumeclaims": ("1", "0", "are 1 of storage class 'shared'"),
    "persistentvolumeclaims": ("1", "0", "are 1, and the namespace may hold 0"),
    "count~1persistentvolumeclaims": ("1", "0", "are 1, and the namespace may hold 0"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a new workspace whose team has a claim of 1Ti."""
    root = begin(tmp_path / "w")
    text = (root / "specs/nlp/team.yaml").read_text()
    claim = "claims: {datasets: {accessModes: [ReadWriteMany], size: 1Ti}}\n"
    return write(root, {"specs/nlp/team.yaml": text + claim})


@pytest.mark.parametrize(("cap", "is_enough"), [("10Gi", False), ("1Ti", True)])
def test_a_cap_below_the_claims_is_reported_at_the_cap(cap: str, is_enough: bool, root: Path) -> None:
    text = (root / "overlays/lab/cluster.yaml").read_text()
    team = f"nlp: {{queue: training, hardQuota: {{storage: {{shared: {cap}}}}}}}"
    write(root, {"overlays/lab/cluster.yaml": text.replace("nlp: {queue: training}", team)})
    outcome = gangplan("render", "-C", root)
    if is_enough:
        assert not outcome.findings
        return
    ((where, rule),) = outcome.errors()
    assert (where.startswith("overlays/lab/cluster.yaml:"), rule) == (True, "volume-over-quota")
    assert "hardQuota: {storage: {shared: 1Ti}}" in outcome.findings[0].help


@pytest.mark.parametrize("key", NEEDED)
def test_a_patched_quota_below_the_claims_is_reported_at_the_patch(key: str, root: Path) -> None:
    enough, less, says = NEEDED[key]
    write(root, {PLACE: PATCH.format(key, enough)})
    assert not gangplan("render", "-C", root).findings
    write(root, {PLACE: PATCH.format(key, less)})
    outcome = gangplan("render", "-C", root)
    ((where, rule),) = outcome.errors()
    assert (where.startswith(f"{PLACE}:6:"), rule) == (True, "volume-over-quota")
    assert says in outcome.findings[0].message


def test_a_cap_of_another_class_says_nothing_of_the_claim(root: Path) -> None:
    write(root, {PLACE: PATCH.format("fast.storageclass.storage.k8s.io~1requests.storage", "1Gi")})
    assert not gangplan("render", "-C", root).findings


CLAIM_PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: PersistentVolumeClaim}
  patch: |-
"""
# What a patch does to the claim, and what is found; `local` is a class that offers ReadWriteOnce alone.
CLAIM_CASES = {
    "another class": (["{op: replace, path: /spec/storageClassName, value: local}"], "storage-access-mode"),
    "an unknown class": (
        ["{op: replace, path: /spec/storageClassName, value: shard}"],
        "storage-class-unknown",
    ),
    "a mode that the class lacks": (
        ["{op: replace, path: /spec/accessModes, value: [ReadWriteOncePod]}"],
        "storage-access-mode",
    ),
    "a class and a mode that fit": (
        [
            "{op: replace, path: /spec/storageClassName, value: local}",
            "{op: replace, path: /spec/accessModes, value: [ReadWriteOnce]}",
        ],
        "",
    ),
    "a volume that is there": (
        [
            "{op: replace, path: /spec/storageClassName, value: manual}",
            "{op: add, path: /spec/volumeName, value: datasets}",
        ],
        "",
    ),
    "a larger claim": (["{op: replace, path: /spec/resources/requests/storage, value: 2Ti}"], ""),
}


@pytest.mark.parametrize("name", CLAIM_CASES)
def test_a_patched_claim_needs_a_storage_class_that_provisions_it(name: str, root: Path) -> None:
    operations, rule = CLAIM_CASES[name]
    cluster = (root / "overlays/lab/cluster.yaml").read_text()
    shared = "  shared: {accessModes"
    assert shared in cluster
    local = f"  local: {{accessModes: [ReadWriteOnce]}}\n{shared}"
    write(root, {"overlays/lab/cluster.yaml": cluster.replace(shared, local)})
    patch = "".join(f"    - {one}\n" for one in operations)
    write(root, {PLACE: CLAIM_PATCH + patch})
    outcome = gangplan("render", "-C", root)
    assert [one.rule for one in outcome.findings] == ([rule] if rule else [])
    if rule:
        assert outcome.findings[0].place.startswith(f"{PLACE}:6:")
