"""`matches`, `find` and `findAll` with RE2's syntax (k8s.io/apiserver v0.34 `pkg/cel/library/regex.go`)."""

from __future__ import annotations

from typing import NoReturn

from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.library.base import I, Implementation, S
from gangplan.cel.operators import NO_OVERLOAD, build_operator_error
from gangplan.re2 import PatternError, Search, UnknownScriptError
from gangplan.re2 import compile_search as go_compiled


def compile_cel_pattern(pattern: str) -> Search:
    """Return the search function of an RE2 pattern. Raises `EvalError` in Go's words."""
    try:
        return go_compiled(pattern)
    except PatternError as problem:
        raise EvalError(str(problem)) from problem
    except UnknownScriptError as problem:
        return _build_unknown_search(str(problem))


def _build_unknown_search(why: str) -> Search:
    def search(text: str, start: int = 0, /) -> NoReturn:
        raise UnknownError(why)

    return search


def matches(text: object, pattern: object) -> bool:
    """Evaluate `text.matches(pattern)`: a match anywhere in the text."""
    if type(text) is not str:
        raise build_operator_error(text, "matches")
    if type(pattern) is not str:
        raise EvalError(NO_OVERLOAD)
    return compile_cel_pattern(pattern)(text) is not None


def find(text: str, pattern: str) -> str:
    """Evaluate `text.find(pattern)`: the first match, or the empty string."""
    found = _compile_legal_pattern(pattern)(text)
    return found.group() if found else ""


def find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    """Evaluate `text.findAll(pattern, most)`: matches that don't overlap; a negative number asks for all."""
    return find_all_cel_regex_matches(text, _compile_legal_pattern(pattern), most)


def find_all_cel_regex_matches(text: str, search: Search, most: int) -> list[str]:
    """Return all matches of a compiled pattern, as Go's `FindAllString` does."""
    found: list[str] = []
    at, previous = 0, -1
    while at <= len(text) and (most < 0 or len(found) < most):
        match = search(text, at)
        if not match:
            break
        start, end = match.span()
        # Go drops an empty match right after another match, and matches before the start of the search.
        if end != at or start != previous:
            found.append(match.group())
        at, previous = (end + 1 if end == at else end), end
    return found


def _compile_legal_pattern(pattern: str) -> Search:
    try:
        return compile_cel_pattern(pattern)
    except EvalError as problem:
        raise EvalError(f"Illegal regex: {problem}") from problem


TABLE = (
    Implementation("matches", "matches", (S, S), matches, guarded=False),
    Implementation("matches_string", "matches", (S, S), matches, guarded=False),
    Implementation("string_find_string", "find", (S, S), find),
    Implementation("string_find_all_string", "findAll", (S, S), find_all),
    Implementation("string_find_all_string_int", "findAll", (S, S, I), find_all),
)
