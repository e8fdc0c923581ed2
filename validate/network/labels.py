"""Label selectors, and labels that are only partly known.

A selector has a requirement for each key by itself, so selectors and partly known labels are both products:
per key a set of values, which may include "the label is absent". A set is finite or the complement of a
finite one, so products can be intersected and subtracted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body


@dataclass(frozen=True, slots=True)
class Values:
    """Values that a label may have: those `listed`, or with `is_rest` all others.

    With `may_lack`, the label may also be absent.
    """

    listed: frozenset[str] = frozenset()
    is_rest: bool = False
    may_lack: bool = False

    def __and__(self, other: Values) -> Values:
        """Return the intersection."""
        lacks = self.may_lack and other.may_lack
        if self.is_rest and other.is_rest:
            return Values(self.listed | other.listed, True, lacks)
        if self.is_rest:
            return Values(other.listed - self.listed, False, lacks)
        if other.is_rest:
            return Values(self.listed - other.listed, False, lacks)
        return Values(self.listed & other.listed, False, lacks)

    def __invert__(self) -> Values:
        """Return the complement."""
        return Values(self.listed, not self.is_rest, not self.may_lack)

    def __bool__(self) -> bool:
        """Return whether the set is not empty. The complement of a finite set never is."""
        return self.is_rest or self.may_lack or bool(self.listed)


ABSENT = Values(may_lack=True)
PRESENT = Values(is_rest=True)
ANYTHING = Values(is_rest=True, may_lack=True)

# The values that it requires, by key; keys that it does not have may be anything.
Selector = Mapping[str, Values]


def one_of(*values: str) -> Values:
    """Return the values of a label that is present and one of these."""
    return Values(frozenset(values))


def selector(body: Body | None) -> Selector:
    """Return the selector of a LabelSelector that fits its schema; an empty one selects everything.

    Operators as in apimachinery pkg/labels (v0.34): NotIn also selects objects without the label.
    """
    asked: dict[str, Values] = {}
    for key, value in ((body or {}).get("matchLabels") or {}).items():
        asked[key] = one_of(value)
    for entry in (body or {}).get("matchExpressions") or ():
        wanted = _wanted(entry)
        key = entry["key"]
        asked[key] = asked[key] & wanted if key in asked else wanted
    return asked


def _wanted(entry: Mapping[str, Any]) -> Values:
    values = one_of(*(entry.get("values") or ()))
    return {"In": values, "NotIn": ~values, "Exists": PRESENT, "DoesNotExist": ABSENT}[entry["operator"]]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of an object: `known` keys, keys with a `free` prefix (any value), `rest` for all other keys."""

    known: Mapping[str, Values] = field(default_factory=dict)
    rest: Values = ABSENT
    free: tuple[str, ...] = ()

    def of(self, key: str) -> Values:
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

    def narrowed(self, asked: Selector) -> Labels:
        """Return the labels that the selector matches; check `maybe` first."""
        if not asked:
            return self
        known = dict(self.known)
        for key, wanted in asked.items():
            known[key] = self.of(key) & wanted
        return Labels(known, self.rest, self.free)

    def without(self, asked: Selector) -> Iterator[Labels]:
        """Yield the labels that the selector does not match, as parts that may overlap."""
        for key, wanted in asked.items():
            left = self.of(key) & ~wanted
            if left:
                yield Labels({**self.known, key: left}, self.rest, self.free)

    def split(self, key: str, mentioned: frozenset[str]) -> Iterator[Labels]:
        """Yield parts that requirements with only `mentioned` values cannot split, if the key is finite."""
        values = self.of(key)
        if values.is_rest or values.may_lack:
            yield self
            return
        parts = [frozenset({value}) for value in sorted(values.listed & mentioned)]
        rest = values.listed - mentioned
        for part in [*parts, rest] if rest else parts:
            yield Labels({**self.known, key: Values(part)}, self.rest, self.free)


def exactly(labels: Mapping[str, str]) -> Labels:
    """Return labels that are fully known."""
    return Labels({key: one_of(value) for key, value in labels.items()}, ABSENT)


ANY_LABELS = Labels(rest=ANYTHING)


def said(asked: Selector) -> str:
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
