"""Signs of causes in text: a piece that a line must contain, and a pattern that extracts facts.

The patterns' named groups become facts of a sighting: `rank`, `host`, `code`, `limit`, `what`. A sign with
`follow` looks for more of them in the lines after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from gangplan.diagnose.levels import is_quoted, is_warning
from gangplan.records import dataclass

#: Lines and characters after a sign in which `follow` is searched: a traceback may be long.
MAX_FOLLOWING_LINES, MAX_WINDOW_LENGTH = 150, 20_000
#: Characters of a line before and after the needle that a pattern sees.
NEAR = 2_000


@dataclass(frozen=True, slots=True)
class Sign:
    """A line that contains `needle` and matches `pattern` (if it is not empty) is a sign of `cause`.

    `reach` is the number of lines after it that `follow` may be in. In a line of level warning or below it is
    a warning, unless `is_sure`; one that is `is_mild` always is, because healthy programs print it, too.
    """

    cause: str
    needle: str
    pattern: str = ""
    follow: str = ""
    reach: int = 12
    is_sure: bool = False
    is_mild: bool = False


@dataclass(frozen=True, slots=True)
class FoundSign:
    """A sign found in a text: where its line begins and ends, where the needle is, and its facts.

    A warning is a line that does not prove a failure.
    """

    cause: str
    start: int
    end: int
    needle: int
    facts: Mapping[str, str]
    is_warning: bool = False


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern of a sign."""
    return re.compile(pattern)


def find_signs_of_causes(text: str, signs: Sequence[Sign], most: int = 200) -> Iterator[FoundSign]:
    """Yield the signs in a text in line order, at most one cause per line and `most` of each sign.

    Time grows with the text and the number of signs: each needle is searched once, in C.
    """
    found: dict[int, FoundSign] = {}
    for sign in signs:
        position, count = 0, 0
        while count < most and (position := text.find(sign.needle, position)) >= 0:
            start = text.rfind("\n", 0, position) + 1
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            found_at = position
            position = max(end, position + 1)
            if start in found:
                continue
            # Of an endless line, use only the text near the needle: patterns may take quadratic time.
            begin = max(start, found_at - NEAR)
            near = text[begin : min(end, found_at + NEAR)]
            match = compiled(sign.pattern).search(near) if sign.pattern else None
            if (sign.pattern and match is None) or is_quoted(near, found_at - begin):
                continue
            facts = {name: value for name, value in match.groupdict().items() if value} if match else {}
            if sign.follow:
                facts |= _collect_facts_after_log_sign(text, end, sign)
            before = text[max(text.rfind("\n", 0, max(start - 1, 0)) + 1, start - NEAR) : start]
            warns = not sign.is_sure and (sign.is_mild or is_warning(near, found_at - begin, before))
            found[start] = FoundSign(sign.cause, start, end, found_at, facts, warns)
            count += 1
    for start in sorted(found):
        yield found[start]


def _collect_facts_after_log_sign(text: str, end: int, sign: Sign) -> dict[str, str]:
    """Return facts from the following lines, each from the first line that has it."""
    facts: dict[str, str] = {}
    for line in text[end + 1 : end + MAX_WINDOW_LENGTH].split("\n")[: sign.reach]:
        for match in compiled(sign.follow).finditer(line):
            for name, value in match.groupdict().items():
                if value:
                    facts.setdefault(name, value)
    return facts
