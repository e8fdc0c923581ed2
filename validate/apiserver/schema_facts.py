"""Facts about objects and their schemas, which decide what another checker of the same schemas must see.

A schema tests each place of an object. A test together with the object's answer is a fact: "a variable has
the fields name and value", "the value of this label fits its pattern". By the semantics of JSON Schema, the
answers of an object decide whether it is valid. So if every fact of an object was seen in objects that a
checker accepted, it would accept this one too, and need not see it. A thousand runs contain a few dozen
objects with a fact that the earlier ones lack (docs/decisions/0019-what-kubeconform-sees.md).

An answer has no more of a value than the schema tests: nothing of a string under `type: string` alone, and
for patterns, lengths and bounds only that they hold. A value with a wrong answer is kept as it is, so it
always counts as new. So does, once, every character beyond printable ASCII, as it could trip a YAML parser.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from gangplan.parts import SharedParts
from gangplan.records import dataclass
from gangplan.validate.apiserver.schema import SchemaVersions, build_kind_schema
from gangplan.validate.apiserver.schema_messages import JsonSchema

# Values, and sets of fields, of one place that are known to be no new facts; facts of one worker. Above these
# limits, everything counts as new.
_MOST_REMEMBERED, _MOST_FACTS = 1024, 200_000
_PLAIN_INT = 2**31
_OPEN: JsonSchema = {}
_ODD = re.compile(r"[^ -~]")
_CLASSES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
# Types of values that `_Asked.shown` can recognise.
_TOLD = frozenset((str, int, bool, type(None), dict, list))
# Keywords that test nothing.
_SILENT = frozenset(("x-says", "x-kubernetes-list-map-keys", "$schema", "$defs", "description", "default"))


@cache
def _compile_schema_pattern(pattern: str) -> re.Pattern[str]:
    # `$` matches before a final newline in Python and nowhere else.
    return re.compile(pattern.replace("$", r"\Z"), re.ASCII)


# Keywords whose answer is whether they hold, by the class of values that they test.
_BOUNDS: Mapping[str, tuple[type, Callable[[Any, Any], bool]]] = {
    "pattern": (str, lambda value, wanted: _compile_schema_pattern(wanted).search(value) is not None),
    "minLength": (str, lambda value, wanted: len(value) >= wanted),
    "maxLength": (str, lambda value, wanted: len(value) <= wanted),
    "minimum": (int, lambda value, wanted: value >= wanted),
    "maximum": (int, lambda value, wanted: value <= wanted),
    "minItems": (list, lambda value, wanted: len(value) >= wanted),
    "maxItems": (list, lambda value, wanted: len(value) <= wanted),
    "minProperties": (dict, lambda value, wanted: len(value) >= wanted),
    "maxProperties": (dict, lambda value, wanted: len(value) <= wanted),
}
# Keywords that test a value itself.
_VALUES = frozenset(("enum", "const"))
# Keywords that apply to the place as a whole; their answer is whether they hold.
_WHOLE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "uniqueItems"))
_INNER = frozenset(
    ("properties", "required", "additionalProperties", "propertyNames", "items", "type", "$ref")
)
_KNOWN = _SILENT | _VALUES | _WHOLE | _INNER | _BOUNDS.keys()


@dataclass(slots=True)
class SchemaFacts:
    """The facts that one worker has seen so far, by the versions of the schemas.

    A part that was seen at a place has no new facts there, and is not walked again.
    """

    parts: SharedParts = field(default_factory=SharedParts)
    _known: set[Hashable] = field(default_factory=set)
    _kinds: dict[tuple[SchemaVersions, str, str], _Asked | None] = field(default_factory=dict)

    def are_new(self, bodies: Iterable[dict[str, Any]], versions: SchemaVersions) -> bool:
        """Return whether one of the objects has a fact that no earlier object had.

        Its facts count as seen from now on. An object without a schema is always new.
        """
        before = len(self._known)
        if before > _MOST_FACTS:
            return True
        has_schemas = True
        for body in bodies:
            asked = self._asked_of(versions, str(body.get("apiVersion")), str(body.get("kind")))
            if asked is None:
                has_schemas = False
            else:
                self._note(body, asked)
        return not has_schemas or len(self._known) > before

    def _asked_of(self, versions: SchemaVersions, api_version: str, kind: str) -> _Asked | None:
        key = versions, api_version, kind
        if key not in self._kinds:
            schema = build_kind_schema(versions, api_version, kind)
            self._kinds[key] = None if schema is None else _Asked(schema, schema.get("$defs") or {}, {})
        return self._kinds[key]

    def _note(self, value: Any, asked: _Asked) -> None:
        """Add the facts of a value and of everything below it."""
        is_right, kind = True, type(value)
        if kind is str and asked.takes(value):
            asked.remember(value)
            return
        for part in asked.made or asked.make():
            shape = tuple(value) if kind is dict else None
            if shape is None or shape not in part.shapes:
                answer, is_part_right = part.answer(value)
                self._known.add((part, answer))
                if not is_part_right:
                    is_right = False
                    continue
                if shape is not None and part.is_told_by_names and len(part.shapes) < _MOST_REMEMBERED:
                    part.shapes.add(shape)
            if shape is not None:
                self._note_fields(value, part)
            elif kind is list:
                self._note_all(value, part.items)
        if kind is str:
            self._known.update(("character", odd) for odd in _ODD.findall(value))
            if is_right and asked.texts is None and not any(part.asks_more_of_texts for part in asked.made):
                asked.texts = _collect_schema_text_constraints([part.schema for part in asked.made])
        is_told = id(value) in self.parts.ids if kind is dict or kind is list else is_right
        if is_told and kind in _TOLD:
            asked.remember(value if kind is str else (value,) if kind is int else id(value))

    def _note_fields(self, value: dict[str, Any], part: _Part) -> None:
        """Add the facts of the fields of a mapping, and of names that its schema does not know."""
        fields, more, names = part.fields, part.more, part.names
        if not fields and more is not None:
            self._note_all(value, names)
            self._note_all(value.values(), more)
            return
        for name, item in value.items():
            inner = fields.get(name)
            if inner is None:
                if more is None:
                    continue
                inner = more
                if name not in names.shown:
                    self._note(name, names)
            kind = type(item)
            if (item if kind is str else (item,) if kind is int else id(item)) not in inner.shown:
                self._note(item, inner)

    def _note_all(self, values: Iterable[Any], asked: _Asked) -> None:
        """Add the facts of values that the same place tests."""
        shown = asked.shown
        for item in values:
            kind = type(item)
            if (item if kind is str else (item,) if kind is int else id(item)) not in shown:
                self._note(item, asked)


def _collect_schema_text_constraints(
    schemas: Sequence[JsonSchema],
) -> tuple[list[Callable[[str], Any]], int, float]:
    """Return the patterns of texts, and their minimum and maximum length."""
    patterns: list[Any] = [
        _compile_schema_pattern(one["pattern"]).search for one in schemas if "pattern" in one
    ]
    shortest = max(one.get("minLength", 0) for one in schemas)
    return patterns, shortest, min(one.get("maxLength", math.inf) for one in schemas)


class _Asked:
    """All tests of one place. `make` builds its parts on first use, as most places never occur.

    `shown` are values without new facts here: valid texts, valid numbers (`(1,)`), and by their ids what
    lives as long as this: true, false, null, and the parts that are kept. `texts` are the patterns and the
    minimum and maximum length of texts, if nothing else is tested and a valid text was seen: then no other
    text has a new fact, except for odd characters.
    """

    __slots__ = ("_definitions", "_met", "_schema", "made", "shown", "texts")

    def __init__(self, schema: JsonSchema, definitions: JsonSchema, met: dict[int, _Asked]) -> None:
        self._schema, self._definitions, self._met = schema, definitions, met
        self.made: tuple[_Part, ...] = ()
        self.shown: set[str | tuple[int] | int] = set()
        self.texts: tuple[list[Callable[[str], Any]], int, float] | None = None
        met[id(schema)] = self  # the schema lives as long as this object, which refers to it

    def remember(self, shown: str | tuple[int] | int) -> None:
        """Remember a value that has no new facts from now on."""
        if len(self.shown) < _MOST_REMEMBERED:
            self.shown.add(shown)

    def takes(self, text: str) -> bool:
        """Return whether a text has no facts that an earlier one did not have."""
        if self.texts is None or not (text.isascii() and text.isprintable()):
            return False
        patterns, shortest, longest = self.texts
        if not shortest <= len(text) <= longest:
            return False
        for matches in patterns:  # noqa: SIM110  twice as fast as `all`, for each new name of each run
            if matches(text) is None:
                return False
        return True

    def make(self) -> tuple[_Part, ...]:
        """Build the parts: the schema, and the one that it refers to; a value must satisfy both."""
        own, reference = self._schema, self._schema.get("$ref")
        also: tuple[_Part, ...] = ()
        if reference is not None:
            referred = self.inner(self._definitions[reference.removeprefix("#/$defs/")])
            also = referred.made or referred.make()
        asks = bool(own.keys() - _SILENT - {"$ref"})
        self.made = (*also, *([_Part(own, self)] if asks or not also else []))
        return self.made

    def inner(self, schema: JsonSchema) -> _Asked:
        """Return the tests of a place below; the same object for the same schema."""
        return self._met.get(id(schema)) or _Asked(schema, self._definitions, self._met)

    def whole(self) -> Any:
        """Return a validator for keywords about the whole place, or None if its fields' names decide."""
        asked = {name: self._schema[name] for name in _WHOLE & self._schema.keys()}
        is_closed = self._schema.get("additionalProperties") is False
        if not asked or (is_closed and not _tests_field_values(asked)):
            return None
        import jsonschema_rs

        return jsonschema_rs.Draft202012Validator({**asked, "$defs": self._definitions})


def _tests_field_values(schema: Any) -> bool:
    """Return whether a condition tests more than the presence of fields."""
    if isinstance(schema, list):
        return any(map(_tests_field_values, schema))
    if not isinstance(schema, dict):
        return True
    asked = schema.keys() - _SILENT - {"required", "minProperties", "maxProperties"}
    return bool(asked - (_WHOLE - {"uniqueItems"})) or any(
        _tests_field_values(schema[name]) for name in asked
    )


class _Part:
    """One schema without those that it refers to: its tests of a place, and of the places below.

    `fields` are those whose presence is tested; `more` are the tests of all others (None: others are not
    allowed), `names` those of their names, `items` those of the entries of a list. `shapes` are sets of
    fields that were seen and are valid together; they are kept if no value matters for that
    (`is_told_by_names`).
    """

    __slots__ = (
        *("_bounds", "_classes", "_is_known", "_keeps", "_whole"),
        *("asks_more_of_texts", "fields", "is_told_by_names", "items", "more", "names", "shapes"),
        "schema",
    )

    def __init__(self, schema: JsonSchema, asked: _Asked) -> None:
        inner, wanted, more = asked.inner, schema.get("type"), schema.get("additionalProperties", True)
        names = [wanted] if isinstance(wanted, str) else wanted or _CLASSES
        self._classes = frozenset(one for name in names for one in _CLASSES[name])
        self._is_known = schema.keys() <= _KNOWN
        self._keeps = not _VALUES.isdisjoint(schema)
        self._bounds = [(*_BOUNDS[name], schema[name]) for name in _BOUNDS.keys() & schema.keys()]
        self._whole = asked.whole()
        self.more = None if more is False else inner(_OPEN if more is True else more)
        self.fields = {name: inner(one) for name, one in schema.get("properties", {}).items()}
        self.fields |= {name: self.more for name in schema.get("required", ()) if name not in self.fields}
        self.items = inner(schema.get("items", _OPEN))
        self.names = inner(schema.get("propertyNames", _OPEN))
        self.asks_more_of_texts = not self._is_known or self._keeps or self._whole is not None
        self.schema = schema
        self.is_told_by_names = self._whole is None and not self._keeps
        self.shapes: set[tuple[str, ...]] = set()

    def answer(self, value: Any) -> tuple[Hashable, bool]:
        """Return the answer of a value, and whether it is valid; fields and entries answer for themselves."""
        is_right = self._is_right(value)
        if self._keeps or not is_right:
            return json.dumps(value, sort_keys=True, default=repr), is_right
        if type(value) is dict:
            return tuple([name for name in value if name in self.fields]), True
        return type(value).__name__, True

    def _is_right(self, value: Any) -> bool:
        kind = type(value)
        if not self._is_known or kind not in self._classes or kind is float:
            return False
        if kind is int and not -_PLAIN_INT <= value < _PLAIN_INT:  # others may read it as a float
            return False
        for asked, holds, wanted in self._bounds:
            if kind is asked and not holds(value, wanted):
                return False
        if kind is dict and self.more is None and not value.keys() <= self.fields.keys():
            return False
        return self._whole is None or bool(self._whole.is_valid(value))
