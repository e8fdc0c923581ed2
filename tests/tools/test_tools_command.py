"""`gangplan tools`: what it prints and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gangplan.commands.tools import app
from gangplan.errors import Exit, ToolError, UserError
from gangplan.tools.find import build_cached_path
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL
from tests.tools.programs import binary_of, fake


def output(*arguments: str) -> str:
    """Run a command and return what it prints, or raise what it raises."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_list_shows_all_tools(path_folder: Path) -> None:
    kustomize = binary_of(KUSTOMIZE_TOOL, "5.8.0", path_folder / "kustomize")
    cached = binary_of(KUBECONFORM_TOOL, "0.7.0", build_cached_path(KUBECONFORM_TOOL))
    assert output("list").splitlines() == [
        f"kustomize    5.8.0  PATH   {kustomize}",
        f"kubeconform  0.7.0  cache  {cached}",
        "overlays are built by kustomize 5.8.0",
        "schemas are judged by kubeconform 0.7.0 and the embedded validator",
    ]


def test_list_shows_kubectl_in_place_of_kustomize(path_folder: Path) -> None:
    kubectl = fake("replay", "kubectl", path_folder, stdout=json.dumps({"kustomizeVersion": "v5.5.0"}))
    old = fake("wrong_version", "kustomize", path_folder)
    assert output("list").splitlines() == [
        f"kustomize    5.5.0  kubectl   {kubectl}",
        "kubeconform  -      embedded  -",
        "overlays are built by kubectl kustomize 5.5.0",
        "schemas are judged by the embedded validator",
        f"note: {old} is version 4.5.7, not 5.8.x",
        "help: run `gangplan tools install kustomize`, or set GANGPLAN_KUSTOMIZE=/path/to/kustomize",
        "help: run `gangplan tools install kubeconform`, or set GANGPLAN_KUBECONFORM=/path/to/kubeconform",
    ]


def test_list_shows_what_is_missing(path_folder: Path) -> None:
    lines = output("list").splitlines()
    assert lines[0] == "kustomize    -  missing   -"
    assert "overlays are built by nothing: overlays cannot be built" in lines


def test_install_leaves_installed_tools_alone(path_folder: Path) -> None:
    binary_of(KUSTOMIZE_TOOL, "5.8.1", path_folder / "kustomize")
    binary_of(KUBECONFORM_TOOL, "0.7.0", build_cached_path(KUBECONFORM_TOOL))
    lines = output("install").splitlines()
    assert [line.split(" in ")[0] for line in lines] == ["kustomize 5.8.1 found", "kubeconform 0.7.0 found"]


def test_install_goes_on_after_a_failure(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_OFFLINE", "1")
    cached = binary_of(KUBECONFORM_TOOL, "0.7.0", build_cached_path(KUBECONFORM_TOOL))
    result = CliRunner().invoke(app, ["install"])
    assert str(cached) in result.stdout
    assert isinstance(result.exception, ToolError)
    assert result.exception.code is Exit.ENVIRONMENT
    assert "kustomize 5.8.1 cannot be installed: GANGPLAN_OFFLINE" in result.exception.message


def test_install_refuses_unknown_tools() -> None:
    with pytest.raises(UserError, match="unknown tool 'helm'; known: kustomize, kubeconform"):
        output("install", "helm")


def test_importing_the_command_imports_no_tools() -> None:
    script = "import sys, gangplan.commands.tools; print(*(m for m in sys.modules if 'gangplan.tools' in m))"
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == b""
