"""Causes: what they mean and what helps.

A cause is a root, a symptom, an ending or a note. An ending (the program ended with 1) says only that something went
wrong; a symptom (ranks lost each other) mostly has a root; a root explains itself. If a root was seen,
symptoms and endings are listed as its consequences. A note never ended a run: it is a cause only where nothing else was seen.
"""

from __future__ import annotations

from gangplan.records import dataclass

ROOT_CAUSE, SYMPTOM, ENDING, ASIDE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A cause with its stable id.

    `cures` are ranked, the likeliest and cheapest first; `rules` would have reported it in CI.
    A root without any says in `unforeseen` why nothing in Git can tell. `ends_in` are roots that follow from it
    where both were seen.
    """

    id: str
    title: str
    means: str
    cures: tuple[str, ...]
    rules: tuple[str, ...] = ()
    depth: int = ROOT_CAUSE
    unforeseen: str = ""
    ends_in: tuple[str, ...] = ()
