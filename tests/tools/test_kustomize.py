"""Building overlays: which engine, what it returns, and how it fails."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gangplan.errors import ToolError, UserError
from gangplan.tools.find import build_cached_path
from gangplan.tools.kustomize import KustomizeEngine, find_kustomize_engine, require_engine
from gangplan.tools.pins import KUSTOMIZE_TOOL
from tests.tools.programs import binary_of, fake

CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: llama-ft\n  namespace: nlp\ndata:\n  ranks: '8'\n"
)

KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [config.yaml]
patches:
- target: {kind: ConfigMap, name: llama-ft}
  patch: |
    - {op: add, path: /data/site, value: frankfurt}
"""

BUILT = b"""\
apiVersion: v1
data:
  ranks: "8"
  site: frankfurt
kind: ConfigMap
metadata:
  name: llama-ft
  namespace: nlp
"""


def overlay(folder: Path, kustomization: str = KUSTOMIZATION) -> Path:
    """Write a small overlay."""
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG_MAP)
    (folder / "kustomization.yaml").write_text(kustomization)
    return folder


def kubectl(folder: Path, version: str = "v5.5.0") -> Path:
    """Put a fake kubectl whose kustomize has this version into a folder."""
    return fake("replay", "kubectl", folder, stdout=json.dumps({"kustomizeVersion": version}))


def engine_of(program: Path) -> KustomizeEngine:
    """Return an engine that calls a fake."""
    return KustomizeEngine("kustomize", "5.8.1", (str(program), "build"))


def test_kustomize_comes_before_kubectl(path_folder: Path) -> None:
    kubectl(path_folder)
    cached = binary_of(KUSTOMIZE_TOOL, "5.8.1", build_cached_path(KUSTOMIZE_TOOL))
    chosen = require_engine()
    assert (chosen.label, chosen.path, chosen.command[1]) == ("kustomize 5.8.1", cached, "build")


def test_kubectl_is_used_if_there_is_no_kustomize(path_folder: Path) -> None:
    program = kubectl(path_folder)
    fake("wrong_version", "kustomize", path_folder)
    chosen = require_engine()
    assert chosen.label == "kubectl kustomize 5.5.0"
    assert chosen.command == (str(program), "kustomize")


@pytest.mark.parametrize("version", ["v4.5.7", "unknown"])
def test_an_old_kubectl_is_not_used(version: str, path_folder: Path) -> None:
    kubectl(path_folder, version)
    assert find_kustomize_engine() is None


def test_a_broken_kubectl_is_not_used(path_folder: Path) -> None:
    fake("crash", "kubectl", path_folder)
    assert find_kustomize_engine() is None


def test_a_missing_engine_is_reported_with_help(path_folder: Path) -> None:
    assert find_kustomize_engine() is None
    with pytest.raises(
        ToolError, match=r"kustomize 5\.8\.x is neither .*, and there is no kubectl"
    ) as caught:
        require_engine()
    assert "gangplan tools install kustomize" in (caught.value.help or "")


def test_a_refused_overlay_is_the_users_error(tmp_path: Path) -> None:
    program = fake("replay", "kustomize", tmp_path, code="1", stderr="Error: kustomization.yaml is empty\n")
    site = overlay(tmp_path / "site")
    with pytest.raises(UserError, match=r"site: kustomize cannot build it: kustomization\.yaml is") as caught:
        engine_of(program).build(site)
    assert caught.value.help == f"to see it by hand: {program} build {site}"


def test_a_crash_is_not_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="kustomize crashed: panic"):
        engine_of(fake("crash", "kustomize", tmp_path)).build(tmp_path)


def test_a_hang_is_not_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"did not end within 0\.3 s"):
        engine_of(fake("hang", "kustomize", tmp_path)).build(tmp_path, timeout_s=0.3)


@pytest.mark.real_tool("kustomize")
def test_the_real_kustomize_builds_an_overlay(real_kustomize: KustomizeEngine, tmp_path: Path) -> None:
    assert real_kustomize.build(overlay(tmp_path / "site")) == BUILT


@pytest.mark.real_tool("kubectl")
def test_real_kubectl_builds_the_same_bytes(real_kubectl: KustomizeEngine, tmp_path: Path) -> None:
    assert real_kubectl.build(overlay(tmp_path / "site")) == BUILT


@pytest.mark.real_tool("kustomize")
@pytest.mark.parametrize(
    ("resource", "why"),
    [
        ("https://example.invalid/x.yaml", "is remote; builds do not use the network"),
        ("github.com/kubernetes/kubernetes//x?ref=v1", "is remote; builds do not use the network"),
        ("../outside.yaml", "../outside.yaml is outside of the overlay"),
        ("absent.yaml", "no such file or folder: absent.yaml"),
    ],
)
def test_the_real_kustomize_refuses_other_resources(
    resource: str, why: str, real_kustomize: KustomizeEngine, tmp_path: Path
) -> None:
    (tmp_path / "outside.yaml").write_text(CONFIG_MAP)
    site = overlay(tmp_path / "site", KUSTOMIZATION.replace("config.yaml", f"'{resource}'"))
    started = time.monotonic()
    with pytest.raises(UserError) as caught:
        real_kustomize.build(site)
    assert caught.value.message.endswith(why)
    assert time.monotonic() - started < 5
