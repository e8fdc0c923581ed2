"""Objects with slots: the output of a template for stand-ins, to be filled with the values of one run."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import field
from functools import partial
from types import NoneType
from typing import Any

from gangplan.parts import SharedParts
from gangplan.records import dataclass
from gangplan.stand_ins import STAND_IN_MARKER, ValueStep

_MARKER = re.compile(STAND_IN_MARKER)
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
# The most results that a holder keeps; and how many more misses than hits it may have until it stops keeping
# any: names and hashes hardly ever repeat.
_MOST_KEPT, _PATIENCE = 64, 8


class UnlikeError(Exception):
    """A template or a value is unsuitable for moulds."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of a value, by its number in the mould.

    `spreads`: the value is a mapping or list whose entries are merged into the enclosing one.
    """

    number: int
    spreads: bool = False


@dataclass(slots=True, eq=False)
class _Holder:
    """A mapping or list, with its variable entries (`live`) by key or index.

    `kept` holds earlier results by the values that were filled in, so that equal values give the same part.
    `luck` counts up for every hit in it, and down for every miss.
    """

    model: Any
    live: tuple[tuple[Any, _Slot | _Holder], ...]
    spreads: bool
    slots: tuple[tuple[Any, int], ...]  # the slots of `live`; the next are its holders
    holders: tuple[tuple[Any, _Holder], ...]
    kept: dict[Hashable, Any] = field(default_factory=dict)
    luck: int = _PATIENCE


@dataclass(frozen=True, slots=True)
class Mould:
    """A mapping or list with slots; each function of `slots` finds the value of one slot in what is known.

    Results share the mappings and lists that have no slot or the same values in their slots, because objects
    are never changed. `parts` holds both kinds.
    """

    steps: tuple[ValueStep, ...]
    slots: tuple[Callable[[list[Any]], Any], ...]
    model: Any
    parts: SharedParts

    def filled(self, known: list[Any]) -> Any:
        """Return the objects for the values of one run. Raises UnlikeError."""
        for number, start, find, _ in self.steps:
            known[number] = find(known[start])
        made = [slot(known) for slot in self.slots]
        return _fill_holder_slots(self.model, made, self.parts) if type(self.model) is _Holder else self.model


def build_mould(
    made: Any, steps_to: Callable[[Iterable[int]], tuple[ValueStep, ...]], parts: SharedParts
) -> Mould:
    """Build the mould of a mapping or list with markers. Raises UnlikeError for a marker in an odd place."""
    slots = _Slots()
    model = slots.holder(made)
    _hold_shared_parts(model, parts)
    return Mould(steps_to(slots.numbers), tuple(slots.finders.values()), model, parts)


def _hold_shared_parts(model: Any, parts: SharedParts) -> None:
    """Hold the mappings and lists of a model that have no slots."""
    if isinstance(model, _Holder):
        live = dict(model.live)
        inner = model.model.items() if isinstance(model.model, dict) else enumerate(model.model)
        for key, item in inner:
            _hold_shared_parts(live.get(key, item), parts)
    elif isinstance(model, dict | list):
        parts.hold(model)


@dataclass(slots=True)
class _Slots:
    """The slots of a mould by their text with markers, and the numbers of the values in them."""

    finders: dict[str, Callable[[list[Any]], Any]] = field(default_factory=dict)
    numbers: dict[int, None] = field(default_factory=dict)

    def holder(self, value: Any) -> Any:
        """Return a value with slots for the markers in it, or the value itself where it has none."""
        if isinstance(value, str):
            return self._slot(value) if _MARKER.search(value) else value
        if isinstance(value, dict):
            pairs = [(key, item, self._key(key) or self.holder(item)) for key, item in value.items()]
        elif isinstance(value, list):
            pairs = [(index, item, self.holder(item)) for index, item in enumerate(value)]
        else:
            return value
        live = tuple((key, held) for key, item, held in pairs if held is not item)
        if not live:
            return value
        slots = tuple((key, held) for key, held in live if isinstance(held, _Slot))
        return _Holder(
            value,
            live,
            any(held.spreads for _, held in slots),
            tuple((key, held.number) for key, held in slots),
            tuple((key, held) for key, held in live if isinstance(held, _Holder)),
        )

    def _key(self, key: str) -> _Slot | None:
        """Return the slot of a key whose mapping is merged into the enclosing one. Raises UnlikeError."""
        if not _MARKER.search(key):
            return None
        slot = self._slot(key)
        if not slot.spreads:
            raise UnlikeError("a key is a value that was not asked for")
        return slot

    def _slot(self, text: str) -> _Slot:
        """Return the slot of a text with markers. Raises UnlikeError for a value printed next to text."""
        pieces = _MARKER.split(text)  # text, kind, number, text, kind, number ... text
        kinds, numbers = pieces[1::3], [int(number) for number in pieces[2::3]]
        is_bare = len(kinds) == 1 and not pieces[0] and not pieces[-1]
        if is_bare and kinds[0] != "s":
            finder: Callable[[list[Any]], Any] = partial(
                _convert_to_printed_value if kinds[0] == "v" else _require_macro_output, numbers[0]
            )
        elif set(kinds) == {"s"}:
            finder = partial(_fill_text_slots, pieces[0], tuple(zip(numbers, pieces[3::3], strict=True)))
        else:
            raise UnlikeError("a value was printed next to text")
        self.numbers |= dict.fromkeys(numbers)
        self.finders.setdefault(text, finder)
        return _Slot(list(self.finders).index(text), kinds == ["m"])


def _convert_to_printed_value(number: int, known: list[Any]) -> Any:
    """Return a value as it would be read back after printing (template.format_template_expression). Raises
    UnlikeError."""
    value = known[number]
    kind = type(value)
    if kind is str or kind is bool or kind is NoneType or (kind is int and _INT_MIN <= value <= _INT_MAX):
        return value
    text = value.canonical()
    if type(text) is not str:
        raise UnlikeError(f"{value!r} is not printed as text")
    return text


def _fill_text_slots(first: str, others: tuple[tuple[int, str], ...], known: list[Any]) -> str:
    """Return a text of constant pieces and the texts of values."""
    return first + "".join([str(known[number]) + piece for number, piece in others])


def _require_macro_output(number: int, known: list[Any]) -> Any:
    """Return the output of a macro. Raises UnlikeError if it is empty, which would be read back as null."""
    if not known[number]:
        raise UnlikeError("a macro made nothing")
    return known[number]


def _fill_holder_slots(holder: _Holder, made: list[Any], parts: SharedParts) -> Any:
    """Return the mapping or list of a holder, with these values in its slots."""
    if holder.luck <= 0 and not holder.spreads:
        body = holder.model.copy()
        for key, number in holder.slots:
            body[key] = made[number]
        for key, inner in holder.holders:
            body[key] = _fill_holder_slots(inner, made, parts)
        return body
    values = [
        made[inner.number] if type(inner) is _Slot else _fill_holder_slots(inner, made, parts)  # type: ignore[arg-type]
        for _, inner in holder.live
    ]
    if holder.luck <= 0:
        return _fill_variable_entries(holder, values)
    found = _build_key_of_slot_values(values, parts)
    known = holder.kept.get(found) if found is not None else None
    if known is not None:
        holder.luck += holder.luck < _MOST_KEPT
        return known
    holder.luck -= 1
    body = _fill_variable_entries(holder, values)
    if found is not None and len(holder.kept) < _MOST_KEPT:
        holder.kept[found] = body
        parts.hold(body)
    return body


def _build_key_of_slot_values(values: list[Any], parts: SharedParts) -> Hashable | None:
    """Return a key that identifies values: scalars as they are, parts by their id; None for any other."""
    key: list[Hashable] = []
    for value in values:
        kind = type(value)
        if kind is str:
            key.append(value)
        elif kind is not dict and kind is not list:
            key.append((kind, value))  # 1 and True are equal
        elif id(value) in parts.ids:
            key.append(id(value))
        else:
            return None
    return tuple(key)


def _fill_variable_entries(holder: _Holder, values: list[Any]) -> Any:
    """Return the mapping or list of a holder, with these values as its variable entries."""
    if holder.spreads:
        return _merge_slot_values_into_holder(holder, values)
    body = holder.model.copy()
    for (key, _), value in zip(holder.live, values, strict=True):
        body[key] = value
    return body


def _merge_slot_values_into_holder(holder: _Holder, values: list[Any]) -> Any:
    """Return the mapping or list of a holder where some values are merged into it. Raises UnlikeError."""
    model = holder.model
    if len(model) == 1:
        return values[0]
    live = {
        key: (value, type(inner) is _Slot and inner.spreads)
        for (key, inner), value in zip(holder.live, values, strict=True)
    }
    return (
        _merge_slot_values_into_list(model, live)
        if type(model) is list
        else _merge_slot_values_into_mapping(model, live)
    )


def _merge_slot_values_into_list(model: list[Any], live: dict[Any, tuple[Any, bool]]) -> list[Any]:
    entries: list[Any] = []
    for index, item in enumerate(model):
        value, spreads = live.get(index, (item, False))
        if spreads:
            entries += value
        else:
            entries.append(value)
    return entries


def _merge_slot_values_into_mapping(
    model: dict[str, Any], live: dict[Any, tuple[Any, bool]]
) -> dict[str, Any]:
    body: dict[str, Any] = {}
    count = 0
    for key, item in model.items():
        value, spreads = live.get(key, (item, False))
        if spreads:
            body.update(value)
            count += len(value)
        else:
            body[key] = value
            count += 1
    if len(body) < count:
        raise UnlikeError("a key is there twice")
    return body
