"""The simulation gives the events of every story as a real Kueue did."""

from __future__ import annotations

import pytest

from tests.simulate.stories import Story, all_stories, tell


@pytest.mark.parametrize("story", all_stories(), ids=lambda story: story.key)
def test_each_story_has_the_events_of_a_real_kueue(story: Story) -> None:
    told = [sorted(happened) for happened in tell(story)]
    assert told == [sorted(step["then"]) for step in story.steps]


def test_stories_have_unique_names() -> None:
    keys = [story.key for story in all_stories()]
    assert len(set(keys)) == len(keys) >= 15
