"""Compare values of the engine with recorded answers of an API server."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

from gangplan.cel.values import Duration, Opaque, Optional, Timestamp, TypeValue, Uint, runtime_kind_of


def is_recorded_cel_value(recorded: Any, value: object) -> bool:
    """Return whether a value is the recorded one.

    Integers beyond 53 bits may be recorded as text, doubles as integers; opaque values record only their
    type.
    """
    if isinstance(recorded, str) and recorded.startswith("<"):
        return recorded == format_recorded_value(value) or value == recorded
    if isinstance(recorded, dict) and len(recorded) == 1 and next(iter(recorded)).startswith("$"):
        tag, content = next(iter(recorded.items()))
        return _matches_tagged_cel_value(tag[1:], content, value)
    if isinstance(value, bool) or recorded is None:
        return value is recorded
    if isinstance(value, float):
        return isinstance(recorded, int | float) and float(recorded) == value
    if isinstance(value, int):
        return not isinstance(recorded, float | bool) and str(recorded) == str(int(value))
    if isinstance(value, list | tuple):
        is_same_size = isinstance(recorded, list) and len(recorded) == len(value)
        return is_same_size and all(map(is_recorded_cel_value, recorded, value))
    if isinstance(value, Mapping):
        if not isinstance(recorded, dict) or recorded.keys() != value.keys():
            return False
        return all(is_recorded_cel_value(recorded[key], found) for key, found in value.items())
    return type(recorded) is type(value) and recorded == value


def _matches_tagged_cel_value(tag: str, content: Any, value: object) -> bool:
    """Return whether a value is the one that a tagged value represents."""
    match value:
        case Uint():
            return tag == "uint" and int(content) == int(value)
        case bytes():
            return tag == "bytes" and base64.b64decode(content) == value
        case Duration(nanoseconds=nanoseconds):
            return tag == "duration" and content == nanoseconds
        case Timestamp(nanoseconds=nanoseconds):
            seconds, fraction = divmod(nanoseconds, 10**9)
            return tag == "timestamp" and content == f"{seconds}.{fraction:09d}"
        case Optional(present=present, value=inner):
            return (
                tag == "optional"
                and len(content) == present
                and (not present or is_recorded_cel_value(content[0], inner))
            )
        case TypeValue(type=type_):
            return tag == "type" and content.partition("(")[0] == type_.name
        case float():
            return tag == "double" and _format_special_cel_double(value) == content
        case Mapping():
            return tag == "map" and _matches_recorded_cel_pairs(content, value)
        case Opaque():
            return tag == runtime_kind_of(value)
    return False


def _format_special_cel_double(value: float) -> str:
    """Return a double that JSON lacks as Go prints it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "-0" if value == 0 and math.copysign(1, value) < 0 else repr(value)


def _matches_recorded_cel_pairs(pairs: list[list[Any]], value: Mapping[Any, Any]) -> bool:
    left = list(pairs)
    for key, found in value.items():
        match = next(
            (
                pair
                for pair in left
                if is_recorded_cel_value(pair[0], key) and is_recorded_cel_value(pair[1], found)
            ),
            None,
        )
        if match is None:
            return False
        left.remove(match)
    return not left


def format_recorded_value(value: object) -> str:
    """Return a value for people; maps with keys that are not strings as Go prints them (`<map map[1:a]>`)."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return f"<map {_format_cel_value_like_go(value)}>"
    return repr(value)


def _format_cel_value_like_go(value: object) -> str:
    """Return a value as Go's fmt prints it."""
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (str(type(key)), key))
        pairs = (f"{_format_cel_value_like_go(key)}:{_format_cel_value_like_go(value[key])}" for key in keys)
        return f"map[{' '.join(pairs)}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(_format_cel_value_like_go, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
