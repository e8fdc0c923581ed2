"""The real kustomize, kubeconform and kubectl for any test: found, else provisioned, else skipped by name.

Import the fixtures into a conftest. They use the tool cache of the machine, so that what was built once (in
30 s) serves every later run; no other test touches it.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.tools import provision
from gangplan.tools.find import FoundTool, find_executables_on_path
from gangplan.tools.kubeconform import Kubeconform
from gangplan.tools.kustomize import KustomizeEngine
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL, PINNED_TOOLS
from gangplan.tools.versions import ask_kubectl_for_kustomize_version


@functools.cache
def provisioned(name: str) -> FoundTool | str:
    """Return a program by name, or why it is not available; asked once, so that no test waits twice."""
    tool = next(tool for tool in PINNED_TOOLS if tool.name == name)
    try:
        return provision.ensure(tool)
    except ToolError as error:
        return error.message


def real(name: str) -> FoundTool:
    """Return a real program, or skip the test with its name and the reason."""
    found = provisioned(name)
    if isinstance(found, str):
        pytest.skip(f"real {name}: {found}")
    return found


@pytest.fixture(scope="session")
def real_kustomize() -> KustomizeEngine:
    """Return the real kustomize, or skip."""
    found = real(KUSTOMIZE_TOOL.name)
    return KustomizeEngine(found.tool.name, found.version, (str(found.path), "build"))


@pytest.fixture(scope="session")
def real_kubeconform() -> Kubeconform:
    """Return the real kubeconform, or skip."""
    return Kubeconform(real(KUBECONFORM_TOOL.name))


@pytest.fixture(scope="session")
def real_kubectl() -> KustomizeEngine:
    """Return the engine inside kubectl, or skip."""
    for path in find_executables_on_path("kubectl"):
        if version := ask_kubectl_for_kustomize_version(Path(path)):
            return KustomizeEngine("kubectl kustomize", version, (str(path), "kustomize"))
    pytest.skip("real kubectl: not on PATH")
