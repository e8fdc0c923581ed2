"""`matches`, `find` and `findAll` with a constant pattern, which is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.cel.errors import EvalError
from gangplan.cel.library.regex import compile_cel_pattern, find_all_cel_regex_matches
from gangplan.cel.operators import NO_OVERLOAD


def bind_constant_cel_pattern(function: str, pattern: object) -> Callable[..., Any] | None:
    """Return the call with its pattern compiled; None if the pattern is not a string. Raises `EvalError`."""
    if type(pattern) is not str:
        return None
    search = compile_cel_pattern(pattern)

    def matches(text: object, pattern: object) -> bool:
        if type(text) is not str:
            raise EvalError(NO_OVERLOAD)
        return search(text) is not None

    def find(text: object, pattern: object) -> str:
        if type(text) is not str:
            raise EvalError(NO_OVERLOAD)
        found = search(text)
        return found.group() if found else ""

    def find_all(text: object, pattern: object, most: object = -1) -> list[str]:
        if type(text) is not str or type(most) is not int:
            raise EvalError(NO_OVERLOAD)
        return find_all_cel_regex_matches(text, search, most)

    return {"matches": matches, "find": find, "findAll": find_all}[function]
