"""The lab as a pytest fixture: started once per test run, when a test needs it."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from . import build, profiles
from .lab import Lab
from .profiles import Profile

PROFILE = "GANGPLAN_LAB_PROFILE"


def chosen() -> Profile:
    """Return the profile of this test run."""
    return profiles.find(os.environ.get(PROFILE) or profiles.DEFAULT)


def require(profile: Profile) -> None:
    """Skip a test, naming what is missing, if the lab is not built and cannot be."""
    absent = build.missing(profile.programs)
    trouble = build.problem() if absent else None
    if trouble:
        names = ", ".join(f"{program.name} {program.version}" for program in absent)
        pytest.skip(f"the lab can't be built ({names}): {trouble}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test's report what the lab's programs logged as errors meanwhile."""
    report = yield
    running = getattr(item, "funcargs", {}).get("lab")
    if isinstance(running, Lab) and report.when == "setup":
        running.mark()
    if isinstance(running, Lab) and report.failed:
        report.sections.append(("lab", running.problems()))
    return report


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Return a running control plane, shared by all tests of the run."""
    profile = chosen()
    require(profile)
    with Lab(profile) as running:
        yield running
