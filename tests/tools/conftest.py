"""Tests of the tools see an empty cache and no override, unless they ask for more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.tools.real import real_kubeconform, real_kubectl, real_kustomize

__all__ = ["cache", "path_folder", "real_kubeconform", "real_kubectl", "real_kustomize"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a tool cache of this test's own; the user's is out of reach."""
    for name in ("GANGPLAN_KUSTOMIZE", "GANGPLAN_KUBECONFORM", "GANGPLAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setenv("GANGPLAN_TOOL_CACHE", str(folder))
    return folder


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, first on a PATH that otherwise has only the system's own programs (sh, cat)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    system = tmp_path / "system"
    system.mkdir()
    for name in ("sh", "cat", "cp", "mv", "env", "sleep", "dirname"):
        found = shutil.which(name, path=os.defpath)
        assert found, name
        (system / name).symlink_to(found)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), str(system)]))
    return folder
