"""Find the variables that a script reads: those behind a dollar sign, and bare names in arithmetic."""

from __future__ import annotations

import re

_NAME = re.compile(r"\$(?:\{[!#]?([A-Za-z_][A-Za-z0-9_]*)|([A-Za-z_][A-Za-z0-9_]*))")
_BARE = re.compile(r"(?<![\w#])[A-Za-z_][A-Za-z0-9_]*")
# Where bash reads arithmetic apart from $((...)) and ((...)), whose parentheses may be nested (bash 5.2, Shell
# Arithmetic): let, declare -i, $[...], subscripts, parts of a value, and comparisons in [[ ]].
_ARITHMETIC = re.compile(
    r"\blet[ \t]+([^\n;&|]+)"
    r"|\b(?:declare|local|typeset)[ \t]+-\w*i\w*[ \t]+([^\n;&|]+)"
    r"|[\w$]\[([^][\n]+)\]"
    r"|\$\{[A-Za-z_]\w*(?:\[[^][]*\])?:(?![-=+?])([^{}\n]+)\}"
)
_TEST = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_COMPARISON = re.compile(r"([A-Za-z_]\w*)?[\"']?\s+-(?:eq|ne|lt|le|gt|ge)\s+(?=([A-Za-z_]\w*)?)")


def find_variables_read_by_script(script: str) -> set[str]:
    """Return the names of the variables that a script reads, with those that stand bare in arithmetic."""
    found = {one[1] or one[2] for one in _NAME.finditer(script)}
    for text in _list_arithmetic_texts(script):
        found.update(_BARE.findall(text))
    for test in _TEST.finditer(script):
        found |= {name for pair in _COMPARISON.findall(test[1]) for name in pair if name}
    return found


def _list_arithmetic_texts(script: str) -> list[str]:
    texts = [part for found in _ARITHMETIC.findall(script) for part in found if part]
    end = 0
    while (at := script.find("((", end)) >= 0:
        depth, end = 0, at
        while end < len(script):
            depth += {"(": 1, ")": -1}.get(script[end], 0)
            end += 1
            if not depth:
                break
        texts.append(script[at:end])
    return texts
