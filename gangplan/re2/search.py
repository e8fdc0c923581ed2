"""Searches for a pattern, with Python's `re` if that is certainly fast, else with the linear matcher."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from gangplan.re2.escapes import build_pattern_error
from gangplan.re2.linear import MatchSpan, PatternMachine
from gangplan.re2.syntax import parse_re2_pattern
from gangplan.re2.tree import PatternNode, estimate_re2_match_work, format_re2_pattern

# How many paths through a pattern Python's `re` may try; this takes some milliseconds.
_WAYS = 1_000_000


class TextMatch(Protocol):
    """A match, of `re` or of the linear matcher."""

    def span(self) -> tuple[int, int]: ...

    def group(self) -> str: ...


class Search(Protocol):
    """A function that returns the first match in the text at or after `start`."""

    def __call__(self, text: str, start: int = 0, /) -> TextMatch | None: ...


class UnknownScriptError(Exception):
    """The pattern is valid but uses a Unicode script, and Python has no table of scripts."""

    def __init__(self, script: str) -> None:
        super().__init__(f"the pattern asks for the script {script}, which can't be looked up offline")


@lru_cache(maxsize=512)
def compile_search(pattern: str) -> Search:
    """Compile a pattern to a search. Raises `PatternError` in Go's words, and `UnknownScriptError`."""
    try:
        node, script = parse_re2_pattern(pattern)
        if script:
            raise UnknownScriptError(script)
        return _build_re2_pattern_search(node)
    except (RecursionError, OverflowError) as problem:
        raise build_pattern_error("expression nests too deeply", pattern) from problem


def _build_re2_pattern_search(node: PatternNode) -> Search:
    quick = re.compile(format_re2_pattern(node)).search
    ways = estimate_re2_match_work(node)
    # The longest text for which `re` tries at most _WAYS paths, starting at every position. If the body of a
    # repetition matches in several ways, Go and Python may also find different matches.
    longest = (_WAYS / ways.branches) ** (1 / (ways.degree + 1)) if ways.branches < _WAYS else -1
    machine: list[PatternMachine] = []

    def search(text: str, start: int = 0, /) -> TextMatch | None:
        if len(text) <= longest:
            return quick(text, start)
        if not machine:
            machine.append(PatternMachine(node))
        return machine[0].search(text, start)

    return search


__all__ = ["MatchSpan", "Search", "TextMatch", "UnknownScriptError", "compile_search"]
