"""gangplan and the control plane agree on every committed case, and on a small random batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.e2e import story
from tests.e2e.fidelity import ask, report
from tests.e2e.fidelity.known import KNOWN
from tests.e2e.fidelity.mutations import TABLE
from tests.e2e.fidelity.questions import AS_EMITTED
from tests.e2e.fidelity.sides import ControlPlane, versions_of
from tests.e2e.fidelity.worlds import workspace
from tests.lab import fixtures
from tests.lab.lab import Lab
from tests.lab.profiles import Profile

pytestmark = pytest.mark.e2e
CASES: list[dict[str, Any]] = [
    case
    for file in sorted((Path(__file__).parent / "fidelity" / "cases").glob("*.yaml"))
    for case in plain.load(file.read_text(encoding="utf-8"))
]
SEED, COUNT = 20, 150


@pytest.fixture(scope="session")
def profile() -> Profile:
    """The profile of the lab; its versions must be those of a sample cluster."""
    chosen = fixtures.chosen()
    if story.cluster_of(chosen.trainer, chosen.kueue) is None:
        pytest.skip(f"no sample cluster has the versions of profile {chosen.name} ({chosen.versions()})")
    return chosen


@pytest.fixture(scope="session")
def folder(profile: Profile) -> Iterator[Path]:
    """A workspace of the profile's cluster."""
    with workspace(profile) as root:
        yield root


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"].replace(" ", "-"))
def test_committed_cases_still_agree(case: dict[str, Any], lab: Lab, profile: Profile, folder: Path) -> None:
    if profile.name not in case.get("profiles", [profile.name]):
        pytest.skip(f"the case is for profiles {case['profiles']}")
    plane = ControlPlane(lab.client, versions_of(profile))
    question = ask.of_case(case, folder)
    plane.prepare(question.emitted.bodies)
    try:
        answer = ask.ask(plane, versions_of(profile), question)
    finally:
        plane.forget(question.emitted.bodies)
    assert answer is not None
    assert answer.server.accepted == case["accepted"], answer.server
    assert answer.agrees != ("known" in case), answer.gangplan
    if "known" in case:
        assert answer.known is not None, answer.gangplan
        assert answer.known.name == case["known"]


def test_both_sides_agree_about_random_objects(lab: Lab, profile: Profile) -> None:
    result = ask.run(lab.client, profile, SEED, COUNT)

    assert not result.disagreements, "\n".join(report.lines(result, {}))
    assert len(result.answered) + result.unasked == COUNT
    emitted = [one for one in result.answered if one.question.mutation == AS_EMITTED]
    assert all(one.server.accepted and not one.server.warnings for one in emitted)
    assert len(emitted) <= COUNT / 2


def test_names_of_cases_causes_and_mutations_are_unique() -> None:
    for names in ([case["case"] for case in CASES], [one.name for one in KNOWN], [one.name for one in TABLE]):
        assert len(names) == len(set(names))
