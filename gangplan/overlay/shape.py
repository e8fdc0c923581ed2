"""The shape of an object: everything but its scalars. Objects of one shape are patched alike.

kustomize costs about a millisecond an object and grows quadratically; a patch that looks at no value does
the same to every object of a shape. So one representative per shape is built, with placeholders for its
scalars, and the outcome is filled for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from gangplan.objects import Body

_PLACEHOLDER = re.compile(r"gp[0-9]+x([0-9]+)x0gp")
# Texts that decide what kustomize does with an object.
_LITERAL = ("apiVersion", "kind")


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of a scalar, by its index among those of the object."""

    index: int


def shape_of(body: Body) -> tuple[Any, list[Any]]:
    """A hashable key of the shape, and the scalars in order."""
    scalars: list[Any] = []
    literal = {name: body[name] for name in _LITERAL}
    rest = {name: value for name, value in body.items() if name not in literal}
    return (*literal.values(), _key(rest, scalars)), scalars


def _key(value: Any, scalars: list[Any]) -> Any:
    kind = type(value)
    if kind is dict:
        return tuple([(name, _key(item, scalars)) for name, item in value.items()])
    if kind is list:
        return ("[", *[_key(item, scalars) for item in value])
    scalars.append(value)
    return None


def representative(body: Body, number: int) -> Body:
    """The object with a placeholder for each scalar; the number keeps names in one build apart.

    A number becomes a text too: kustomize's JSON patches do not look at types.
    """
    placeholders = (f"gp{number}x{index}x0gp" for index in count())
    return {name: value if name in _LITERAL else _placed(value, placeholders) for name, value in body.items()}


def _placed(value: Any, placeholders: Iterator[str]) -> Any:
    if isinstance(value, dict):
        return {name: _placed(item, placeholders) for name, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, placeholders) for item in value]
    return next(placeholders)


def slotted(value: Any) -> Any:
    """A built representative, ready to be filled."""
    if isinstance(value, dict):
        return {name: slotted(item) for name, item in value.items()}
    if isinstance(value, list):
        return [slotted(item) for item in value]
    match = _PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return _Slot(int(match[1])) if match else value


def filled(value: Any, scalars: list[Any]) -> Any:
    """A slotted representative with the scalars of one object in its slots."""
    kind = type(value)
    if kind is _Slot:
        return scalars[value.index]
    if kind is dict:
        return {name: filled(item, scalars) for name, item in value.items()}
    if kind is list:
        return [filled(item, scalars) for item in value]
    return value
