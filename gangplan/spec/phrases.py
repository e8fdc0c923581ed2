"""Values and pydantic's own complaints about them, in the user's words."""

from __future__ import annotations

from typing import Any

from gangplan.source import Path
from gangplan.spec.words import FORMS


def dotted(path: Path) -> str:
    """`data.filings[0]`; the empty path is the file."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else str(step))
    return text or "the file"


def plain(kind: str, context: dict[str, Any], given: Any, path: Path) -> tuple[str, str]:
    """Message and help for pydantic's own error types."""
    name = dotted(path)
    expected = {
        "int_type": "a whole number", "string_type": "text", "bool_type": "true or false", "dict_type": "fields (name: value)",
        "model_type": "fields (name: value)", "tuple_type": "a list", "list_type": "a list", "int_from_float": "a whole number",
        "model_attributes_type": "fields (name: value)",
    }.get(kind)  # fmt: skip
    if expected:
        quote = (
            f'Quote it: "{given}".' if expected == "text" and isinstance(given, (int, float, bool)) else ""
        )
        verb = "were" if expected.startswith("fields") else "was"
        return f"{name} is {show(given)}; {expected} {verb} expected", quote
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = "at least" if kind.startswith("greater") else "at most"
        return f"{name} is {given}, but must be {bound} {context.get('ge', context.get('le'))}", ""
    if kind in ("too_long", "string_too_long"):
        return (
            f"{name} has {len(given)} {'characters' if isinstance(given, str) else 'entries'}; at most {context['max_length']} are allowed",
            "Shorten it.",
        )
    if kind in ("too_short", "string_too_short"):
        return f"{name} is empty; at least {context['min_length']} is needed", ""
    if kind == "string_pattern_mismatch" and path == ("image",) and any(sign in given for sign in "/:@"):
        message = (
            f"image is {show(given)}, which is a reference; a spec names an entry of images/catalog.yaml,"
            " so that every run has a digest and a registry that the cluster trusts"
        )
        return message, "Write the entry's name; the owner of the catalog adds what is missing."
    if kind == "string_pattern_mismatch":
        return (
            f"{name} is {show(given)}, which does not have the right form{_form(context['pattern'])}",
            "",
        )
    return f"{name}: {kind.replace('_', ' ')} ({show(given)})", ""


def _form(pattern: str) -> str:
    words = FORMS.get(pattern)
    return f" ({words})" if words else ""


def show(value: Any) -> str:
    """A value as a message quotes it, cut when it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "empty"
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 60 else f"'{value[:57]}...'"
    if isinstance(value, (dict, list, tuple)):
        return kind_of(value)
    return f"the number {value}"


def kind_of(value: Any) -> str:
    """What a value is, in words: fields, a list, nothing, a single value."""
    if isinstance(value, dict):
        return "fields"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else "a single value"
