"""Placeholders such as `${{ parameters.lr }}` in templates, found once and filled in for every trial.

A scalar that is only a placeholder takes the value as written in the file, so a number remains a number;
within a longer text, the text of the value is filled in. GitHub Actions writes expressions in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gangplan.findings import FieldPath
from gangplan.records import dataclass

PARAMETER_PREFIX = "parameters."
TRIAL_NAME = "trial.name"
_BEGIN = "${{"
_WRITTEN = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")
# The same name as other tools write placeholders, which nothing fills in here.
_MISWRITTEN = re.compile(
    r"(?:(?<!\$)\{\{|(?<!\{)\$?\{(?!\{)|\$\()\s*((?:parameters\.[\w-]+|trial\.name))\s*(?:\}\}|\}|\))"
)


@dataclass(frozen=True, slots=True)
class GivenValue:
    """The value of a parameter: as YAML reads it, and its text in the file."""

    value: str | int | float | bool
    text: str


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder: the name in it, and its place. `offset` counts characters of the text at `path`."""

    name: str
    path: FieldPath
    offset: int


def find_template_placeholders(template: Any, path: FieldPath = ()) -> Iterator[Placeholder]:
    """Yield all placeholders of a template, in order; the name is "" if one is never closed."""
    if isinstance(template, dict):
        for key, item in template.items():
            yield from find_template_placeholders(item, (*path, key))
    elif isinstance(template, list):
        for index, item in enumerate(template):
            yield from find_template_placeholders(item, (*path, index))
    elif isinstance(template, str) and _BEGIN in template:
        closed = {match.start(): match[1] for match in _WRITTEN.finditer(template)}
        at = template.find(_BEGIN)
        while at >= 0:
            yield Placeholder(closed.get(at, ""), path, at)
            at = template.find(_BEGIN, at + len(_BEGIN))


def find_miswritten_placeholders(template: Any, path: FieldPath = ()) -> Iterator[tuple[str, Placeholder]]:
    """Yield what looks like a placeholder of other tools, such as `{{ parameters.lr }}`, as it is written."""
    if isinstance(template, dict | list):
        for step, item in template.items() if isinstance(template, dict) else enumerate(template):
            yield from find_miswritten_placeholders(item, (*path, step))
    elif isinstance(template, str):
        for match in _MISWRITTEN.finditer(template):
            yield match[0], Placeholder(match[1], path, match.start())


def explain_miswritten_placeholder(written: str, name: str) -> tuple[str, str]:
    """Return message and help about a placeholder as other tools write it."""
    return f"'{written}' stays as it is: nothing fills it in", f"Write ${{{{ {name} }}}}."


def list_parameters_at(value: Any, path: FieldPath) -> set[str]:
    """Return the parameters that placeholders name in the value at a path; none if nothing is there."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return set()
    return {one.name.removeprefix(PARAMETER_PREFIX) for one in find_template_placeholders(value)}


Filled = Callable[[Mapping[str, GivenValue]], Any]


def compile_placeholder_template(template: Any) -> Filled | None:
    """Return a function that fills values into a template; None if the template has no placeholders."""
    if isinstance(template, dict):
        changing = {
            key: made for key, item in template.items() if (made := compile_placeholder_template(item))
        }
        if not changing:
            return None
        return lambda given: {**template, **{key: made(given) for key, made in changing.items()}}
    if isinstance(template, list):
        parts = [compile_placeholder_template(item) for item in template]
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


def fill_scalar(template: str, given: Mapping[str, GivenValue]) -> str | None:
    """Return a scalar of the template as it is in a trial; None if it has no placeholders."""
    if _BEGIN not in template:
        return None
    return _WRITTEN.sub(lambda match: given[match[1]].text, template)
