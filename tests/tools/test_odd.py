"""kustomize and kubeconform that break (the campaign `tools` of make fuzz tries them at random)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.pipeline import second_opinion
from gangplan.tools.kubeconform import find_kubeconform
from tests import workspaces
from tests.fuzz.odd import WAYS, assert_helpful, tried


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace, with a patch for kustomize to apply."""
    root = workspaces.stock(tmp_path / "workspace")
    return workspaces.write(root, {"overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION})


@pytest.mark.parametrize("way", WAYS)
def test_a_broken_kustomize_is_reported(way: str, root: Path, tmp_path: Path) -> None:
    outcome = tried(root, tmp_path, "kustomize", WAYS[way].replace("SIZE", "300"))
    assert_helpful(outcome, "kustomize", way)
    assert not (root / "rendered").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_broken_kubeconform_is_reported(
    way: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_opinion, "find_kubeconform", find_kubeconform)
    (root / "overlays/lab/kustomization.yaml").unlink()
    outcome = tried(root, tmp_path, "kubeconform", WAYS[way].replace("SIZE", "300"))
    assert_helpful(outcome, "kubeconform", way)


def test_a_slow_program_is_waited_for(root: Path, tmp_path: Path) -> None:
    outcome = tried(root, tmp_path, "kustomize", 'sleep 0.2; cat "$last"; touch "$here/asked"')
    assert (tmp_path / "bin/asked").exists()
    assert outcome.code == Exit.CLEAN
