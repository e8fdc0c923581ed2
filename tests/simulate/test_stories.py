"""The simulation tells every story as it was seen on a real Kueue."""

from __future__ import annotations

import pytest

from tests.simulate.stories import Story, all_stories, tell


@pytest.mark.parametrize("story", all_stories(), ids=lambda story: story.key)
def test_story(story: Story) -> None:
    told = [sorted(happened) for happened in tell(story)]
    assert told == [sorted(step["then"]) for step in story.steps]


def test_stories_have_names_of_their_own() -> None:
    keys = [story.key for story in all_stories()]
    assert len(set(keys)) == len(keys) >= 15
