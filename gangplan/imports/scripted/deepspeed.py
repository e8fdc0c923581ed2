"""Count the ranks that DeepSpeed starts on each node of a batch script (deepspeed/launcher/runner.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gangplan.plan.launchers import UnreadableError, find_launchers

# A line of the host file that a script writes: `echo "$host slots=8"`.
_SLOTS = re.compile(r"\bslots=([1-9][0-9]?)\b")


def find_ranks_of_deepspeed(programs: Iterable[Sequence[str]], text: str, gpus: int | None) -> int | None:
    """Return the ranks on each node if deepspeed starts all of them; None if something else does.

    They are the slots in the host file, or one for each GPU of the node.
    """
    kinds = {kind for words in programs for kind in _list_launcher_kinds(words)}
    slots = set(_SLOTS.findall(text))
    if kinds != {"deepspeed"}:
        return None
    return int(slots.pop()) if len(slots) == 1 else gpus


def _list_launcher_kinds(words: Sequence[str]) -> set[str]:
    try:
        return {one.start.launcher.kind for one in find_launchers(words, None)}
    except UnreadableError:
        return set()
