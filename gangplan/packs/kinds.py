"""The kind of a parameter is that of its default: a value in, what is wrong with it out."""

from __future__ import annotations

from typing import Any

from gangplan.packs.facts import FACTS, Kind
from gangplan.packs.model import FactParam, Value

WORDS: dict[Kind, str] = {
    "text": "a string",
    "number": "a number",
    "truth": "true or false",
    "list": "a list of strings",
}
# What CEL's int() takes.
MOST = 2**63 - 1


def kind_of(default: Value) -> Kind:
    """The kind of a parameter with this default; a fact that nobody knows is a text."""
    if isinstance(default, FactParam):
        return FACTS[default.fact].kind if default.fact in FACTS else "text"
    if isinstance(default, bool):
        return "truth"
    if isinstance(default, (int, float)):
        return "number"
    return "list" if isinstance(default, tuple) else "text"


def misfit(value: Any, default: Value) -> str:
    """What a value should be instead, in words; empty when it fits."""
    kind = kind_of(default)
    if isinstance(value, FactParam):
        fits = value.fact not in FACTS or FACTS[value.fact].kind == kind
        return "" if fits else f"{WORDS[kind]}, as the fact '{value.fact}' is not"
    if kind_of(value) != kind:
        return WORDS[kind]
    if isinstance(value, float) and isinstance(default, int):
        return "a whole number"
    return f"at most {MOST}" if isinstance(value, int) and abs(value) > MOST else ""


def example(default: Value) -> str:
    """A value that would fit, as it is written in YAML."""
    if isinstance(default, FactParam):
        return {"text": "prod", "number": "90", "truth": "true", "list": "[a, b]"}[kind_of(default)]
    if isinstance(default, bool):
        return "true" if default else "false"
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
