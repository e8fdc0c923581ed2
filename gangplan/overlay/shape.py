"""The shape of an object: everything but its texts. Objects of one shape are patched alike.

kustomize costs about a millisecond an object and grows quadratically; a patch that looks at no text does
the same to every object of a shape. So one representative per shape is built, with placeholders for its
texts, and the outcome is filled for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from gangplan.objects import Body

_PLACEHOLDER = re.compile(r"gp[0-9]+x([0-9]+)x0gp")
# Texts that decide what kustomize does with an object.
_LITERAL = ("apiVersion", "kind")


def shape_of(body: Body) -> tuple[Any, list[str]]:
    """A hashable key of the shape, and the texts in order."""
    texts: list[str] = []
    literal = {name: body[name] for name in _LITERAL}
    rest = {name: value for name, value in body.items() if name not in literal}
    return (*literal.values(), _key(rest, texts)), texts


def _key(value: Any, texts: list[str]) -> Any:
    if isinstance(value, str):
        texts.append(value)
        return str
    if isinstance(value, dict):
        return tuple((name, _key(item, texts)) for name, item in value.items())
    if isinstance(value, list):
        return ("[", *(_key(item, texts) for item in value))
    return value


def representative(body: Body, number: int) -> Body:
    """The object with a placeholder for each text; the number keeps names in one build apart."""
    placeholders = (f"gp{number}x{index}x0gp" for index in count())
    return {name: value if name in _LITERAL else _placed(value, placeholders) for name, value in body.items()}


def _placed(value: Any, placeholders: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(placeholders)
    if isinstance(value, dict):
        return {name: _placed(item, placeholders) for name, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, placeholders) for item in value]
    return value


def filled(value: Any, texts: list[str]) -> Any:
    """A built representative with the texts of one object in place of the placeholders."""
    if isinstance(value, str):
        match = _PLACEHOLDER.fullmatch(value)
        return texts[int(match.group(1))] if match else value
    if isinstance(value, dict):
        return {name: filled(item, texts) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, texts) for item in value]
    return value
