"""What all tests share: --update for golden files, an environment without surprises, the real programs."""

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

from gangplan.incremental.program import program
from gangplan.incremental.store import Store
from gangplan.pipeline import conditions, second_opinion, shapes
from gangplan.tools.pins import KUBECONFORM, KUSTOMIZE
from tests import workspaces
from tests.tools.real import provisioned, real_kubeconform, real_kubectl, real_kustomize

__all__ = ["real_kubeconform", "real_kubectl", "real_kustomize"]

# The same cases every time, so that a change is to blame for what fails after it; HYPOTHESIS_PROFILE=default
# looks for new ones. How long a busy machine takes says nothing about a test.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(_PROFILE)
if _PROFILE == "same":
    # Hypothesis draws some values from the constants of our modules that are loaded by then (since 6.135).
    # Which those are depends on the tests that this process ran before, so "same" goes without.
    providers._get_local_constants = providers.Constants

_STRANGE = re.compile(r"GIT_(?!SSL_)|MAKEFLAGS$|MAKELEVEL$|MFLAGS$")

#: The day of every test that says no other.
TODAY = "2026-07-01"

# A reader's settings that change what is printed.
SETTINGS = (
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "TERMINAL_WIDTH",
    "_TYPER_FORCE_DISABLE_TERMINAL",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """--update rewrites the golden files of tests/examples."""
    parser.addoption("--update", action="store_true", help="rewrite golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    """Settle what tests see. CI compares; it never rewrites what it compares with."""
    _settle()
    if config.getoption("--update") and os.environ.get("CI") == "true":
        raise pytest.UsageError("--update is for people; CI compares with what is committed")


def _settle() -> None:
    """The environment of every test, and of every program that one starts.

    A person's Git would sign commits or run hooks, and a hook's variables lead to that person's repository.
    A make around us would change what another one prints.
    Waivers and grants end on some day: without a day of its own, a test would begin to fail on that one.
    Shells in stand-ins read the name of a temporary folder as one word.
    """
    for name in [name for name in os.environ if _STRANGE.match(name)]:
        del os.environ[name]
    os.environ.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull, GANGPLAN_TODAY=TODAY)
    if not re.fullmatch(r"[\w./-]+", tempfile.gettempdir()):
        tempfile.tempdir = os.environ["TMPDIR"] = "/tmp"


class _OneControlPlane(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist says nothing of its types
    """Tests with a control plane share one, so that one process runs them all, in their order (make e2e)."""

    def _split_scope(self, nodeid: str) -> str:
        return "lab" if nodeid.startswith(("tests/lab/", "tests/e2e/")) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """`--dist loadscope` keeps the tests of the lab together, and nothing else."""
    return _OneControlPlane(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's settings show in what is printed."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_second_opinion(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process do without kubeconform, which is most of the time that `validate` takes.

    tests/validate/test_second_opinion.py shows it everything at once; tests marked with it have it as always.
    """
    if not any(mark.args == (KUBECONFORM.name,) for mark in request.node.iter_markers("real_tool")):
        monkeypatch.setattr(second_opinion, "pick", lambda *_: None)


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process read gangplan's own files once, although each test has a cache of its own."""
    for module in (conditions, shapes):
        monkeypatch.setattr(module, "program", _program)


@functools.cache
def _digest() -> str:
    nowhere = Store("")
    nowhere.folder = None
    return program(nowhere)


def _program(_: Store) -> str:
    return _digest()


@pytest.fixture
def is_updating(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small workspace of tests.workspaces: one spec, one team, one cluster without patches."""
    return workspaces.stock(tmp_path / "workspace")


@pytest.fixture(scope="session")
def builder() -> str:
    """The program that builds overlays, or a skip by name where there is none."""
    from gangplan.tools.kustomize import engine

    provisioned(KUSTOMIZE.name)
    found = engine()
    if found is None:
        pytest.skip("no kustomize and no kubectl: overlays with patches cannot be built")
    return found.label


@pytest.fixture
def sample(tmp_path: Path, builder: str) -> Path:
    """A copy of the sample workspace, its rendered/ included."""
    return workspaces.sample(tmp_path / "sample")
