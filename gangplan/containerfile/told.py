"""Report breaches of Containerfile rules at the lines of the instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gangplan.containerfile.parse import Instruction
from gangplan.findings import Finding, Location
from gangplan.rules.model import Rule


def build_lint_finding(rule: Rule, file: str, line: int, column: int, message: str) -> Finding:
    """Return a finding at a place, with the fix of its rule as help."""
    return Finding(rule, Location(file, line, column), message, rule.fix)


def build_instruction_finding(rule: Rule, file: str, one: Instruction, message: str) -> Finding:
    """Return a finding at the first line of an instruction."""
    place = one.pieces[0] if one.pieces else None
    return build_lint_finding(rule, file, place.line if place else 1, place.column if place else 1, message)


def find_matching_instruction_lines(
    rule: Rule, file: str, one: Instruction, pattern: re.Pattern[str], says: Callable[[re.Match[str]], str]
) -> Iterator[Finding]:
    """Yield a finding for each line of an instruction that matches the pattern."""
    lines: set[int] = set()
    for line, column, match in one.find(pattern):
        if line not in lines:
            lines.add(line)
            yield build_lint_finding(rule, file, line, column, says(match))
