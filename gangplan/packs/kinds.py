"""The kind of a parameter, which is that of its default, and whether a value is of that kind."""

from __future__ import annotations

from typing import Any

from gangplan.packs.facts import PACK_FACTS, ParameterKind
from gangplan.packs.model import FactParam, ParameterValue

WORDS: dict[ParameterKind, str] = {
    "text": "a string",
    "number": "a number",
    "truth": "true or false",
    "list": "a list of strings",
}
# The largest number that CEL's int() accepts.
MOST = 2**63 - 1


def pack_parameter_kind_of(default: ParameterValue) -> ParameterKind:
    """Return the kind of a parameter with this default; an unknown fact is a text."""
    if isinstance(default, FactParam):
        return PACK_FACTS[default.fact].kind if default.fact in PACK_FACTS else "text"
    if isinstance(default, bool):
        return "truth"
    if isinstance(default, (int, float)):
        return "number"
    return "list" if isinstance(default, tuple) else "text"


def explain_wrong_pack_parameter_kind(value: Any, default: ParameterValue) -> str:
    """Return what a value should be instead, in words; empty when it fits."""
    kind = pack_parameter_kind_of(default)
    if isinstance(value, FactParam):
        fits = value.fact not in PACK_FACTS or PACK_FACTS[value.fact].kind == kind
        return "" if fits else f"{WORDS[kind]}, as the fact '{value.fact}' is not"
    if pack_parameter_kind_of(value) != kind:
        return WORDS[kind]
    if isinstance(value, float) and isinstance(default, int):
        return "a whole number"
    return f"at most {MOST}" if isinstance(value, int) and abs(value) > MOST else ""


def format_example_value(default: ParameterValue) -> str:
    """Return a value that would fit, as written in YAML."""
    if isinstance(default, FactParam):
        return {"text": "prod", "number": "90", "truth": "true", "list": "[a, b]"}[
            pack_parameter_kind_of(default)
        ]
    if isinstance(default, bool):
        return "true" if default else "false"
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
