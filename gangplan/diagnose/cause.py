"""What a cause is: what it means and what helps.

A cause is a root, a symptom or an ending. An ending (the program ended with 1) says only that something went
wrong; a symptom (ranks lost each other) mostly has a root; a root stands for itself. Where a root was seen,
symptoms and endings are listed as what follows from it.
"""

from __future__ import annotations

from gangplan.records import dataclass

ROOT, SYMPTOM, ENDING = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause by its stable id. `cures` are ranked: the likeliest and cheapest first; `rules` would have told in CI."""

    id: str
    title: str
    means: str
    cures: tuple[str, ...]
    rules: tuple[str, ...] = ()
    depth: int = ROOT
