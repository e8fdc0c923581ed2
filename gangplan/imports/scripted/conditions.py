"""Evaluate shell conditions before the script runs: `[ "$SLURM_NNODES" -gt 1 ]`, `[[ $MODE == full ]]`."""

from __future__ import annotations

import re

from gangplan.imports.scripted.expand import Scope
from gangplan.plan.launchers.shell import Reader, UnreadableError

_NUMBERS = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
}


def holds(text: str, scope: Scope) -> bool | None:
    """Return whether a condition holds; None if it is only known when the script runs."""
    bare = text.strip().rstrip(";").strip()
    if bare.startswith("! "):
        inner = holds(bare[2:], scope)
        return None if inner is None else not inner
    found = re.fullmatch(r"(?:\[\[\s(.*)\s\]\]|\[\s(.*)\s\]|test\s(.*))", bare, re.DOTALL)
    if found is None:
        return {"true": True, "false": False, ":": True}.get(bare)
    inside = next(one for one in found.groups() if one is not None)
    for mark in ("&&", "||", " -a ", " -o "):
        left, is_list, right = inside.partition(mark)
        if is_list:
            values = (holds(f"[ {left.strip()} ]", scope), holds(f"[ {right.strip()} ]", scope))
            decisive = mark in ("||", " -o ")
            if decisive in values:
                return decisive
            return None if None in values else not decisive
    return _simple(split(inside), scope)


def split(text: str) -> list[str]:
    """Split a piece of script into words, as they are written."""
    reader, found = Reader(text), list[str]()
    while True:
        reader.blank()
        if reader.at >= len(text):
            return found
        if text[reader.at] in "<>()&|;\n":
            found.append(text[reader.at])
            reader.at += 1
            continue
        word = reader.word()
        found.append(text[word.begin : word.end])


def _simple(words: list[str], scope: Scope) -> bool | None:
    if words[:1] == ["!"]:
        inner = _simple(words[1:], scope)
        return None if inner is None else not inner
    try:
        texts = [scope.text(word) for word in words]
    except UnreadableError:
        return None
    if len(texts) == 2 and texts[0] in ("-z", "-n"):
        return None if texts[1] is None else (texts[1] == "") == (texts[0] == "-z")
    if len(texts) == 1:
        return None if texts[0] is None else texts[0] != ""
    if len(texts) != 3 or texts[0] is None or texts[2] is None:
        return None
    left, how, right = texts[0], texts[1] or "", texts[2]
    if how in _NUMBERS:
        a, b = scope.number(left), scope.number(right)
        return None if a is None or b is None else _NUMBERS[how](a, b)
    if how in ("=", "==", "!=") and not any(mark in right for mark in "*?["):
        return (left == right) == (how != "!=")
    return None
