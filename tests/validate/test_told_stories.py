"""The stories of a campaign: varied, reproducible, kept, and replayed offline."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.admission import plots, runs, story_records
from tests.e2e.admission.stories import Which
from tests.e2e.admission.story import State, Step, Told, has_preemption, has_return, shares
from tests.e2e.fidelity.replay import replay
from tests.e2e.fidelity.sides import versions_of
from tests.lab import profiles

FILES = sorted((Path(__file__).parents[1] / "e2e" / "admission" / "answers").glob("stories-*.jsonl.gz"))
NAMES = ("new", "middle", "old")
COUNT = 48


@cache
def _shapes(profile: str) -> dict[str, list[runs.Object]]:
    return runs.rendered(profiles.find(profile))


def _plot(profile: str, number: int) -> plots.Plot:
    versions = versions_of(profiles.find(profile))
    return plots.draw(versions, _shapes(profile), "1", number, f"s{number}", bool(number % 2))


def _foretold(plot: plots.Plot) -> Told:
    """Return the story as if Kueue acted like the simulation."""
    steps, told = list(plot.steps), list(plot.told)
    return Told("s", plot.fair, steps, told, told, len(plot.scene.flavors))


@pytest.mark.parametrize("profile", NAMES)
def test_half_of_the_stories_have_flavors_preemptions_and_returns(profile: str) -> None:
    for fair in (False, True):
        told = [_foretold(_plot(profile, number)) for number in range(fair, COUNT, 2)]
        assert sum(one.is_rich for one in told) >= len(told) / 2, shares(told)
        assert sum(has_preemption(one.seen) for one in told) < len(told), "some are drawn without a thought"
        assert len({len(one.steps) for one in told}) > 3


def test_queues_of_stories_differ_in_all_settings_that_decide() -> None:
    specs = [queue["spec"] for number in range(COUNT) for queue in _plot("new", number).scene.queues]
    assert {one["queueingStrategy"] for one in specs} == {"BestEffortFIFO", "StrictFIFO"}
    assert len({json.dumps(one["preemption"], sort_keys=True) for one in specs}) > 12
    assert len({json.dumps(one.get("flavorFungibility")) for one in specs}) > 5
    limits = {
        key
        for one in specs
        for flavor in one["resourceGroups"][0]["flavors"]
        for key in flavor["resources"][0]
    }
    assert limits == {"name", "nominalQuota", "borrowingLimit", "lendingLimit"}


@pytest.mark.parametrize("profile", NAMES)
def test_the_first_story_is_a_known_bug(profile: str) -> None:
    """A guest is preempted and returns to the first flavor when a run of the owner ends."""
    plot = _plot(profile, 0)
    assert [str(state) for state in plot.told] == [
        "in: s0-r0",
        "in: s0-r0, s0-r1",
        "in: s0-r0, s0-r2, preempted s0-r1",
        "in: s0-r0, s0-r1",
    ]
    assert _foretold(plot).is_rich


def test_the_same_seed_gives_the_same_story() -> None:
    for number in range(12):
        one, other = _plot("new", number), _plot("new", number)
        assert one.scene.standing == other.scene.standing
        assert [each.judged for each in one.questions] == [each.judged for each in other.questions]
        assert (one.steps, one.told) == (other.steps, other.told)
        for body in one.scene.standing:
            metadata = body["metadata"]
            assert metadata.get("namespace", metadata["name"]).startswith(f"s{number}-")


def test_a_kept_story_is_replayed_offline(tmp_path: Path) -> None:
    """A story that later code simulates differently is open; a campaign continues after the kept ones."""
    file, plot = tmp_path / "stories.jsonl", _plot("new", 0)
    told, versions = _foretold(plot), versions_of(profiles.find("new"))
    file.write_text(story_records.line("new", 1, 0, plot, versions, told) + "\n")
    assert replay(file)[0] == 0
    (again,) = story_records.retold(file)
    assert (again.steps, again.seen, again.flavors) == (told.steps, told.seen, told.flavors)
    assert Which(1, 4, 0, file).numbers == [1, 2, 3]
    told.seen[3] = State(frozenset({"s0-r0"}), frozenset())
    file.write_text(story_records.line("new", 1, 0, plot, versions, told) + "\n")
    number, said = replay(file)
    assert number == 1
    assert "    s0-r2 ends: simulated in: s0-r0, s0-r1; Kueue in: s0-r0" in said


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_kept_stories_agree_with_kueue(file: Path) -> None:
    """The simulation of every kept story equals what Kueue did, or they differ by chance."""
    told = list(story_records.retold(file))
    assert not [one.name for one in told if one.is_open]
    assert sum(one.is_rich for one in told) >= len(told) / 2, shares(told)


def test_a_return_needs_a_preempted_run_that_is_admitted_again() -> None:
    def states(*seen: tuple[str, str]) -> list[State]:
        return [State(frozenset(admitted), frozenset(gone)) for admitted, gone in seen]

    assert has_return(states(("a", ""), ("b", "a"), ("ab", "")))
    assert not has_return(states(("a", ""), ("b", "a"), ("b", "")))
    assert not has_return(states(("a", ""), ("ab", "")))


def _told(*seen: tuple[str, str]) -> Told:
    """Return a story where Kueue may differ from the simulation: admitted and preempted runs of each step."""
    steps = [Step(name) for name in ("a", "b", "c")]
    mine = [("a", ""), ("ab", ""), ("ac", "b")]
    sides = [
        [State(frozenset(admitted), frozenset(gone)) for admitted, gone in side] for side in (mine, seen)
    ]
    return Told("s", False, steps, *sides)


def test_only_runs_of_one_moment_may_differ_by_chance() -> None:
    assert not _told(("a", ""), ("ab", ""), ("bc", "a")).is_chance  # a came earlier
    together = _told(("", ""), ("ab", ""), ("bc", "a"))
    together.simulated[0] = together.seen[0]
    assert together.is_chance
    assert not together.agrees
    late = _told(("", ""), ("ab", ""), ("ab", ""))
    late.simulated[0] = late.seen[0]
    assert not late.is_chance
    assert not _told(("a", ""), ("ab", ""), ("ac", "b")).is_chance  # they do not differ
