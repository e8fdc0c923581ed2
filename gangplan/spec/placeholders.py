"""`${{ parameters.lr }}` in the template of a sweep: found once, filled in for every trial.

A scalar that is nothing but a placeholder takes the value as it is written in the file, a number stays a
number; inside a longer text it is the text of the value. GitHub Actions writes expressions the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gangplan.records import dataclass
from gangplan.source import Path

PARAMETERS = "parameters."
TRIAL_NAME = "trial.name"
_BEGIN = "${{"
_WRITTEN = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Given:
    """The value of a parameter: as YAML reads it, and the text in the file."""

    value: str | int | float | bool
    text: str


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One of them: what it names, and where. `offset` counts characters of the text at `path`."""

    name: str
    path: Path
    offset: int


def placeholders(template: Any, path: Path = ()) -> Iterator[Placeholder]:
    """All placeholders of a template, in order; one that is never closed has the name ""."""
    if isinstance(template, dict):
        for key, item in template.items():
            yield from placeholders(item, (*path, key))
    elif isinstance(template, list):
        for index, item in enumerate(template):
            yield from placeholders(item, (*path, index))
    elif isinstance(template, str) and _BEGIN in template:
        closed = {match.start(): match[1] for match in _WRITTEN.finditer(template)}
        at = template.find(_BEGIN)
        while at >= 0:
            yield Placeholder(closed.get(at, ""), path, at)
            at = template.find(_BEGIN, at + len(_BEGIN))


Filled = Callable[[Mapping[str, Given]], Any]


def compiled(template: Any) -> Filled | None:
    """What makes a trial's value of a template's; None where there is no placeholder in it."""
    if isinstance(template, dict):
        changing = {key: made for key, item in template.items() if (made := compiled(item))}
        if not changing:
            return None
        return lambda given: {**template, **{key: made(given) for key, made in changing.items()}}
    if isinstance(template, list):
        parts = [compiled(item) for item in template]
        if not any(parts):
            return None
        both = list(zip(template, parts, strict=True))
        return lambda given: [made(given) if made else item for item, made in both]
    if not isinstance(template, str) or _BEGIN not in template:
        return None
    whole = _WRITTEN.fullmatch(template)
    if whole:
        name = whole[1]
        return lambda given: given[name].value
    pieces = _WRITTEN.split(template)
    return lambda given: "".join(given[one].text if odd % 2 else one for odd, one in enumerate(pieces))


def written(template: str, given: Mapping[str, Given]) -> str | None:
    """The text that stands in a trial for a scalar of the template; None where it has no placeholder."""
    if _BEGIN not in template:
        return None
    return _WRITTEN.sub(lambda match: given[match[1]].text, template)
