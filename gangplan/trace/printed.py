"""The source map of rendered objects: the model value that each field was printed from.

Templates run once more on stand-ins (stand_ins.py) that print markers with the path to each value; the
rendered objects themselves are not touched. A field thus leads to the values that it was printed from, and
those to their origins, which resolve/ and plan/ record with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment

from gangplan.findings import FieldPath
from gangplan.generators import generate_run_objects
from gangplan.model.job import EnvVar
from gangplan.mould import build_stand_in_environment, render_template_objects
from gangplan.objects import Body, walk_leaves
from gangplan.plan import RunPlan
from gangplan.source import load_blocks
from gangplan.stand_ins import STAND_IN_MARKER, Study, TemplateNotes
from gangplan.trace.attributes import trace_attribute_causes
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext
from gangplan.trace.origins import trace_origins_to_causes


class Way(NamedTuple):
    """The steps from a name passed to a template to a value that it prints, and the values on that path."""

    steps: FieldPath
    values: tuple[Any, ...]


# The fields of one object, each with the paths to the values printed in it; a constant of the template has
# none.
Printed = dict[FieldPath, tuple[Way, ...]]


def build_source_maps(unit: RunPlan) -> list[Printed]:
    """Return the source maps of a run's objects, in order; empty for an object that no template writes."""
    known: dict[int, Printed] = {}
    made: list[Body] = []  # keeps the objects alive, so that their ids stay unique

    def write(template: str, values: dict[str, Any]) -> list[Body]:
        bodies = render_template_objects(template, values)
        made.extend(bodies)
        known.update(zip(map(id, bodies), build_source_maps_of_template(template, values), strict=True))
        return bodies

    return [known.get(id(body), {}) for body in generate_run_objects(unit, write)]


def build_source_maps_of_template(template: str, values: dict[str, Any]) -> list[Printed]:
    """Return the source maps of the objects that a template writes for some values."""
    opened: list[TemplateNotes] = []
    notes = TemplateNotes(Study(), opened)
    opened.append(notes)
    given = {name: notes.given(name, value) for name, value in values.items()}
    text = _build_template_environment().get_template(template).render(given)
    ways = _Ways(notes.study, values)
    return [
        {path: found for path, value in walk_leaves(body) if (found := tuple(ways.in_text(value)))}
        for body in load_blocks(text)
    ]


@cache
def _build_template_environment() -> Environment:
    return build_stand_in_environment()


class _Ways:
    """The paths to the values of a study, by their numbers."""

    def __init__(self, study: Study, values: dict[str, Any]) -> None:
        self._words: dict[int, Any] = {number: key for key, number in study._numbers.items()}
        known: list[Any] = [None, values]
        known[0] = known
        for step in study.steps[2:]:
            try:
                known.append(step.find(known[step.start]))
            except AttributeError:  # jinja looks up attributes that few callables have
                known.append(None)
        self._known = known

    def in_text(self, text: object) -> Iterator[Way]:
        """Yield the paths to the values whose markers are in a text."""
        for match in re.finditer(STAND_IN_MARKER, text) if isinstance(text, str) else ():
            yield from self._to(int(match[2]))

    def _to(self, number: int) -> list[Way]:
        start, words = self._words[number]
        if start:
            before = self._to(start) if start > 1 else [Way((), ())]
            return [self._further(one, words, number, start) for one in before]
        kind, *parts = words
        given = [one for one in parts if isinstance(one, int)]
        if kind == "item" and not isinstance(parts[1], int):
            return [
                Way((*one.steps, parts[1][1]), (*one.values, self._known[number]))
                for one in self._to(parts[0])
            ]
        if kind == "call":
            ways = self._to(parts[0])
            if len(ways[0].steps) > 1:  # a method: the template continues with its result
                return [Way(one.steps, (*one.values[:-1], self._known[number])) for one in ways]
            given = given[1:]
        return [way for one in given for way in self._to(one)]

    def _further(self, way: Way, words: Any, number: int, start: int) -> Way:
        kind, step = words
        name = self._known[start][step][0] if kind == "pair" else step
        return Way((*way.steps, name), (*way.values, self._known[number]))


def trace_recorded_causes(context: TraceContext, printed: Printed, path: FieldPath) -> list[Cause]:
    """Return the causes recorded with the value that a field was printed from; empty if it has none.

    An attribute of the model has those in `MODEL`, or those of the field that it is named after.
    """
    for way in printed.get(path, ()):
        for value in reversed(way.values):
            if isinstance(value, EnvVar):
                causes = trace_origins_to_causes(context, value.origins)
                is_told = way.steps[-1] == "name" or (way.steps[-1] == "key" and value.name == value.key)
                return mark_indirect(causes) if is_told else causes
        if len(way.values) > 1 and isinstance(way.values[-1], str | int):
            return trace_attribute_causes(context, way.values[-2], str(way.steps[-1]))
    return []
