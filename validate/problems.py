"""Sorting the problems of an object, and writing the path to a field as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gangplan.findings import Problem as Problem

PathStep = str | int
SIMPLE_NAME = re.compile(r"[A-Za-z_][-A-Za-z0-9_]*")


def sort_problems(found: Iterable[Problem]) -> list[Problem]:
    """Sort problems by path, without duplicates."""
    return sorted(set(found), key=lambda one: ([(isinstance(at, str), at) for at in one.path], one.message))


def format_path(path: Iterable[PathStep]) -> str:
    """Write a path as `spec.trainer.env[0].name`, with keys as `labels['example.com/team']`; "" if empty."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif SIMPLE_NAME.fullmatch(step):
            out += f".{step}" if out else step
        else:
            out += f"[{step!r}]"
    return out


def describe_path(path: Iterable[PathStep]) -> str:
    """Write a path as the subject of a sentence."""
    return format_path(path) or "the object"
