"""Finding the known word that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

# Pairs that differ by one slip, but are never meant for each other.
_OTHERS = ({"cpu", "gpu"}, {"cpus", "gpus"})


def find_closest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is close enough to be meant; empty if there is none.

    A word may have one slip in three or four letters, two in five to eight, three beyond. Otherwise it is the
    only known word that begins with the word, or that the word begins with. Case is ignored. A word that is
    itself known has no close word.
    """
    return next(iter(list_closest(word, known)), "")


def list_closest(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that are equally close and close enough to be meant; see `find_closest`."""
    small = word.lower()
    names = sorted(set(known))
    if word in names:
        return []
    allowed = 0 if len(small) <= 2 else 1 if len(small) <= 4 else 2 if len(small) <= 8 else 3
    names = [
        name
        for name in names
        if {small, name.lower()} not in _OTHERS and not _are_different_gpu_models(small, name.lower())
    ]
    ranked = sorted((compute_spelling_distance(small, name.lower(), allowed), name) for name in names)
    if ranked and ranked[0][0] <= min(allowed, max(len(ranked[0][1]) // 2, 1)):
        return [name for distance, name in ranked if distance == ranked[0][0]]
    begun = [
        name
        for name in names
        if (len(small) >= 4 and name.lower().startswith(small))
        or (len(name) >= 5 and small.startswith(name.lower()))
    ]
    return begun if len(begun) == 1 else []


def compute_spelling_distance(one: str, other: str, most: int) -> int:
    """Return the number of letters added, omitted, replaced, or swapped with a neighbour; `most` + 1 if there
    are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        last, before, row = before, row, [at]
        for to, right in enumerate(other, 1):
            cost = min(row[to - 1] + 1, before[to] + 1, before[to - 1] + (left != right))
            if at > 1 and to > 1 and left == other[to - 2] and one[at - 2] == right:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
    return min(row[-1], most + 1)


def _are_different_gpu_models(one: str, other: str) -> bool:
    """Return whether two words are different GPU models, such as a100 and h100, which are not confused by a
    slip."""
    chips = [_CHIP.match(word) for word in (one, other)]
    return all(chips) and len({chip[1] for chip in chips if chip}) > 1


_CHIP = re.compile(r"([abhlptv]|gb|gh|mi)[0-9]{1,3}(?![0-9])")


def find_similar(word: str, known: Iterable[str]) -> str:
    """Return the known word that a help may propose: the closest or a similar one; empty if there is none."""
    names = sorted(set(known))
    others = [name for name in names if not _are_different_gpu_models(word.lower(), name.lower())]
    close = find_closest(word, names) or next(
        iter(difflib.get_close_matches(word, others, n=1, cutoff=0.75)), ""
    )
    return "" if close == word else close


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return a help sentence that names the closest known word, or all of a short list."""
    names = sorted(set(known))
    if close := find_similar(word, names):
        return f"Did you mean '{close}'?"
    return format_known_names(names) if len(names) > _SHOWN else f"{format_known_names(names)}."


_SHOWN = 8


def format_known_names(known: Iterable[str]) -> str:
    """Return the known words, at most eight of them, as a sentence without its full stop."""
    names = sorted(set(known))
    if not names:
        return "None is declared"
    return f"Known: {', '.join(names[:_SHOWN])}" + (", ..." if len(names) > _SHOWN else "")


def find_nearest_file(written: str, files: Iterable[str]) -> str:
    """Return the file that is meant: by its path or its name alone, with or without its ending; empty if
    there is none."""
    there = sorted(set(files))
    by_stem: dict[str, list[str]] = {}
    for file in there:
        by_stem.setdefault(PurePosixPath(file).stem, []).append(file)
    stem = PurePosixPath(written).name.removesuffix(".yaml").removesuffix(".yml")
    meant = by_stem.get(stem, []) or [find_closest(written, there)]
    if not meant[0]:
        meant = by_stem.get(find_closest(stem, by_stem), [])
    return meant[0] if len(meant) == 1 else ""
