"""Searches for a pattern: by Python's `re` while that is sure to be quick, else by the linear matcher."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from gangplan.re2.escapes import fail
from gangplan.re2.linear import Machine, Span
from gangplan.re2.syntax import read
from gangplan.re2.tree import Node, work, written

# So many ways through a pattern Python's `re` may try, in some milliseconds.
_WAYS = 1_000_000


class TextMatch(Protocol):
    """What was found."""

    def span(self) -> tuple[int, int]: ...

    def group(self) -> str: ...


class Search(Protocol):
    """The first match in the text, at `start` or behind it."""

    def __call__(self, text: str, start: int = 0, /) -> TextMatch | None: ...


class UnknownScriptError(Exception):
    """The pattern is right, and asks for a script of Unicode; Python has no table of them."""

    def __init__(self, script: str) -> None:
        super().__init__(f"the pattern asks for the script {script}, which can't be looked up offline")


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Search:
    """The search for a pattern. Raises `PatternError` in Go's words, and `UnknownScriptError`."""
    try:
        node, script = read(pattern)
        if script:
            raise UnknownScriptError(script)
        return _search(node)
    except (RecursionError, OverflowError) as problem:
        raise fail("expression nests too deeply", pattern) from problem


def _search(node: Node) -> Search:
    quick = re.compile(written(node)).search
    ways = work(node)
    # From every place of the text once more; the longest text with which that is no more than _WAYS. Where a
    # repetition's body can be cut in several ways, Go and Python part also in what they find.
    longest = (_WAYS / ways.branches) ** (1 / (ways.degree + 1)) if ways.branches < _WAYS else -1
    machine: list[Machine] = []

    def search(text: str, start: int = 0, /) -> TextMatch | None:
        if len(text) <= longest:
            return quick(text, start)
        if not machine:
            machine.append(Machine(node))
        return machine[0].search(text, start)

    return search


__all__ = ["Search", "Span", "TextMatch", "UnknownScriptError", "compiled"]
