"""The shared set-up of all tests: --update for golden files, a controlled environment, the real programs."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from gangplan.incremental.program import digest_program
from gangplan.incremental.store import RecordStore
from gangplan.pipeline import conditions, second_opinion, shapes
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL
from tests import workspaces
from tests.tools.real import provisioned, real_kubeconform, real_kubectl, real_kustomize

__all__ = ["real_kubeconform", "real_kubectl", "real_kustomize"]

# Draw the same cases every time, so that a failure comes from a change; HYPOTHESIS_PROFILE=default looks for
# new ones. There is no deadline, because the speed of a busy machine says nothing about a test.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(_PROFILE)
if _PROFILE == "same":
    # Since 6.135, Hypothesis draws some values from the constants of those of our modules that are loaded.
    # These depend on the tests that this process has run before, so the profile "same" ignores them.
    providers._get_local_constants = providers.Constants

_STRANGE = re.compile(r"GIT_(?!SSL_)|MAKEFLAGS$|MAKELEVEL$|MFLAGS$")

#: The day of every test that does not set its own.
TODAY = "2026-07-01"

# Settings of a user that change what is printed.
SETTINGS = (
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "TERMINAL_WIDTH",
    "_TYPER_FORCE_DISABLE_TERMINAL",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update`, which rewrites the golden files of tests/examples."""
    parser.addoption("--update", action="store_true", help="rewrite golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment of the tests, and refuse `--update` in CI, which compares with committed files."""
    _settle()
    if config.getoption("--update") and os.environ.get("CI") == "true":
        raise pytest.UsageError("--update is for people; CI compares with what is committed")


def _settle() -> None:
    """Set the environment of every test, and of every program that a test starts.

    A person's Git would sign commits or run hooks, and a hook's variables lead to that person's repository.
    An outer make would change what an inner one prints. Waivers and grants expire: without a fixed day, tests
    would begin to fail on one of these days. Shells in stand-ins read the name of a temporary folder as one
    word.
    """
    for name in [name for name in os.environ if _STRANGE.match(name)]:
        del os.environ[name]
    os.environ.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull, GANGPLAN_TODAY=TODAY)
    if not re.fullmatch(r"[\w./-]+", tempfile.gettempdir()):
        tempfile.tempdir = os.environ["TMPDIR"] = "/tmp"


class _OneControlPlane(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist says nothing of its types
    """Runs the tests of the lab in one process, in order, as they share a control plane (make e2e)."""

    def _split_scope(self, nodeid: str) -> str:
        return "lab" if nodeid.startswith(("tests/lab/", "tests/e2e/")) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Keep the tests of the lab together under `--dist loadscope`; change nothing else."""
    return _OneControlPlane(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the user's settings that would change what is printed."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_second_opinion(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip kubeconform, which takes most of the time of `validate`, for commands in this process.

    tests/validate/test_second_opinion.py shows it everything at once; tests marked with it run it as usual.
    """
    if not any(mark.args == (KUBECONFORM_TOOL.name,) for mark in request.node.iter_markers("real_tool")):
        monkeypatch.setattr(second_opinion, "find_kubeconform", lambda *_: None)


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read gangplan's own files once per process, although each test has its own cache."""
    for module in (conditions, shapes):
        monkeypatch.setattr(module, "digest_program", _program)


@functools.cache
def _digest() -> str:
    nowhere = RecordStore("")
    nowhere.folder = None
    return digest_program(nowhere)


def _program(_: RecordStore) -> str:
    return _digest()


@pytest.fixture
def is_updating(request: pytest.FixtureRequest) -> bool:
    """Return whether to rewrite golden files."""
    return bool(request.config.getoption("--update"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace of tests.workspaces: one spec, one team, one cluster without patches."""
    return workspaces.stock(tmp_path / "workspace")


@pytest.fixture(scope="session")
def builder() -> str:
    """Return the program that builds overlays, or skip the test, naming the program, where there is none."""
    from gangplan.tools.kustomize import find_kustomize_engine

    provisioned(KUSTOMIZE_TOOL.name)
    found = find_kustomize_engine()
    if found is None:
        pytest.skip("no kustomize and no kubectl: overlays with patches cannot be built")
    return found.label


@pytest.fixture
def sample(tmp_path: Path, builder: str) -> Path:
    """Copy the sample workspace, including its rendered/."""
    return workspaces.sample(tmp_path / "sample")
