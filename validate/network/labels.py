"""Label selectors, and labels that are only partly known.

A selector has a requirement for each key by itself, so selectors and partly known labels are both products:
per key a set of values, which may include "the label is absent". A set is finite or the complement of a
finite one, so products can be intersected and subtracted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from gangplan.objects import Body
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class LabelValues:
    """Values that a label may have: those `listed`, or with `is_rest` all others.

    With `may_lack`, the label may also be absent.
    """

    listed: frozenset[str] = frozenset()
    is_rest: bool = False
    may_lack: bool = False

    def __and__(self, other: LabelValues) -> LabelValues:
        """Return the intersection."""
        lacks = self.may_lack and other.may_lack
        if self.is_rest and other.is_rest:
            return LabelValues(self.listed | other.listed, True, lacks)
        if self.is_rest:
            return LabelValues(other.listed - self.listed, False, lacks)
        if other.is_rest:
            return LabelValues(self.listed - other.listed, False, lacks)
        return LabelValues(self.listed & other.listed, False, lacks)

    def __invert__(self) -> LabelValues:
        """Return the complement."""
        return LabelValues(self.listed, not self.is_rest, not self.may_lack)

    def __bool__(self) -> bool:
        """Return whether the set is not empty. The complement of a finite set never is."""
        return self.is_rest or self.may_lack or bool(self.listed)


ABSENT = LabelValues(may_lack=True)
PRESENT = LabelValues(is_rest=True)
ANYTHING = LabelValues(is_rest=True, may_lack=True)

# The values that it requires, by key; keys that it does not have may be anything.
Selector = Mapping[str, LabelValues]


def build_label_values(*values: str) -> LabelValues:
    """Return the values of a label that is present and one of these."""
    return LabelValues(frozenset(values))


def parse_label_selector(body: Body | None) -> Selector:
    """Return the selector of a LabelSelector that fits its schema; an empty one selects everything.

    Operators as in apimachinery pkg/labels (v0.34): NotIn also selects objects without the label.
    """
    asked: dict[str, LabelValues] = {}
    for key, value in ((body or {}).get("matchLabels") or {}).items():
        asked[key] = build_label_values(value)
    for entry in (body or {}).get("matchExpressions") or ():
        wanted = _parse_selector_expression(entry)
        key = entry["key"]
        asked[key] = asked[key] & wanted if key in asked else wanted
    return asked


def _parse_selector_expression(entry: Mapping[str, Any]) -> LabelValues:
    values = build_label_values(*(entry.get("values") or ()))
    return {"In": values, "NotIn": ~values, "Exists": PRESENT, "DoesNotExist": ABSENT}[entry["operator"]]


@dataclass(frozen=True, slots=True)
class PartialLabels:
    """Labels of an object: `known` keys, keys with a `free` prefix (any value), `rest` for all other keys."""

    known: Mapping[str, LabelValues] = field(default_factory=dict)
    rest: LabelValues = ABSENT
    free: tuple[str, ...] = ()

    def of(self, key: str) -> LabelValues:
        """Return the values that a label may have."""
        found = self.known.get(key)
        if found is not None:
            return found
        return ANYTHING if self.free and key.startswith(self.free) else self.rest

    def always(self, asked: Selector) -> bool:
        """Return whether the selector matches these labels for certain, whatever is unknown."""
        return not any(self.of(key) & ~wanted for key, wanted in asked.items())

    def maybe(self, asked: Selector) -> bool:
        """Return whether the selector may match these labels."""
        return all(self.of(key) & wanted for key, wanted in asked.items())

    def narrowed(self, asked: Selector) -> PartialLabels:
        """Return the labels that the selector matches; check `maybe` first."""
        if not asked:
            return self
        known = dict(self.known)
        for key, wanted in asked.items():
            known[key] = self.of(key) & wanted
        return PartialLabels(known, self.rest, self.free)

    def without(self, asked: Selector) -> Iterator[PartialLabels]:
        """Yield the labels that the selector does not match, as parts that may overlap."""
        for key, wanted in asked.items():
            left = self.of(key) & ~wanted
            if left:
                yield PartialLabels({**self.known, key: left}, self.rest, self.free)

    def split(self, key: str, mentioned: frozenset[str]) -> Iterator[PartialLabels]:
        """Yield parts that requirements with only `mentioned` values cannot split, if the key is finite."""
        values = self.of(key)
        if values.is_rest or values.may_lack:
            yield self
            return
        parts = [frozenset({value}) for value in sorted(values.listed & mentioned)]
        rest = values.listed - mentioned
        for part in [*parts, rest] if rest else parts:
            yield PartialLabels({**self.known, key: LabelValues(part)}, self.rest, self.free)


def build_exact_labels(labels: Mapping[str, str]) -> PartialLabels:
    """Return labels that are fully known."""
    return PartialLabels({key: build_label_values(value) for key, value in labels.items()}, ABSENT)


ANY_LABELS = PartialLabels(rest=ANYTHING)


def format_label_selector(asked: Selector) -> str:
    """Format a selector: `app=web, tier in (a, b), !old`; "" for everything."""
    parts = []
    for key, wanted in sorted(asked.items()):
        values = sorted(wanted.listed)
        if not values:
            parts.append(key if wanted.is_rest else f"!{key}")
        elif wanted.is_rest:
            parts.append(f"{key} not in ({', '.join(values)})")
        else:
            parts.append(f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({', '.join(values)})")
    return ", ".join(parts)
