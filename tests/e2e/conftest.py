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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the personas first: the sample's story leaves policies in the lab that refuse their namespaces."""
    here = Path(__file__).parent
    first = next((at for at, item in enumerate(items) if item.path.parent == here), 0)
    of_personas = [item for item in items if item.path == here / "test_personas.py"]
    others = [item for item in items if item.path != here / "test_personas.py"]
    items[:] = [*others[:first], *of_personas, *others[first:]]
