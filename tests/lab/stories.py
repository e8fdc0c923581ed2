"""Tell stories to a running cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

from .client import PATIENCE, ApiError, Client
from .stages import Story

NUDGED = "lab.gangplan.dev/nudged"
#: How long KWOK takes to notice a changed Stage, in seconds; nothing reports it. A busy machine takes longer,
#: so pods are nudged more than once.
NOTICES = (0.3, 1.2)

_NUMBERS = count(1)


def tell(api: Client, stories: Iterable[Story], instead_of: Iterable[Story] = ()) -> None:
    """Let stories happen to their pods from now on, with no moment of the usual course before."""
    told, old = list(stories), list(instead_of)
    for story in told:
        api.apply(story.stage())
    for story in old:
        api.delete("Stage", story.name)
    _nudge(api, [*told, *old])


def forget(api: Client, stories: Iterable[Story]) -> None:
    """Let the usual course happen again."""
    told = list(stories)
    for story in told:
        api.delete("Stage", story.name)
    _nudge(api, told)


def _nudge(api: Client, stories: list[Story]) -> None:
    """Make KWOK decide again about existing pods, which it does only when one changes."""
    pods = [pod for story in stories for pod in api.list("Pod", story.namespace, story.selector())]
    for notice in NOTICES if pods else ():
        time.sleep(notice * PATIENCE / 60)
        for pod in pods:
            metadata = pod["metadata"]
            change = {"metadata": {"annotations": {NUDGED: str(next(_NUMBERS))}}}
            with suppress(ApiError):
                api.patch("Pod", metadata["name"], change, metadata["namespace"])
