"""The lab and the sample cluster that matches its profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import story
from tests.lab import fixtures
from tests.lab.fixtures import lab, pytest_runtest_makereport  # noqa: F401  the shared lab and its log on failure
from tests.lab.lab import Lab


@pytest.fixture(scope="session")
def chapter(lab: Lab) -> story.Chapter:  # noqa: F811
    """Tell the story of the sample cluster with the lab's versions."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    name = story.cluster_of(profile.trainer, profile.kueue)
    if name is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name} ({profile.versions()})")
    return story.tell(lab, name)


# Their namespaces are refused by policies that the sample's story leaves in the lab.
BEFORE_THE_STORY = ("test_personas.py", "test_waivers.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests first that the sample's story would disturb, whatever order they were asked for in."""
    here = Path(__file__).parent
    first = next((at for at, item in enumerate(items) if item.path.parent == here), 0)
    files = {here / name for name in BEFORE_THE_STORY}
    early = [item for item in items if item.path in files]
    others = [item for item in items if item.path not in files]
    items[:] = [*others[:first], *early, *others[first:]]
