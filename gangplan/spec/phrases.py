"""Values and pydantic's own error types, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gangplan.findings import FieldPath
from gangplan.spec.lookalikes import convert_to_latin
from gangplan.spec.words import DIGEST_FORM, DNS_LABEL, PATTERN_DESCRIPTIONS, REPOSITORY_FORM


def format_dotted_path(path: FieldPath) -> str:
    """Return a path as `data.filings[0]`; the empty path is the file."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else str(step))
    return text or "the file"


def explain_pydantic_error(
    kind: str, context: dict[str, Any], given: Any, path: FieldPath, written: str | None
) -> tuple[str, str]:
    """Return message and help for pydantic's own error types; `written` is the value as in the file: 007, not
    7."""
    name = format_dotted_path(path)
    expected = {
        "int_type": "a whole number", "string_type": "text", "bool_type": "true or false", "dict_type": "fields (name: value)",
        "model_type": "fields (name: value)", "tuple_type": "a list", "list_type": "a list", "int_from_float": "a whole number",
        "model_attributes_type": "fields (name: value)",
    }.get(kind)  # fmt: skip
    if expected:
        quote = (
            f'Quote it: "{written}".' if expected == "text" and isinstance(given, (int, float, bool)) else ""
        )
        verb = "holds" if isinstance(given, dict) else "is"
        return (
            f"{name} {verb} {quote_spec_value(given)}; expected {expected}",
            quote or _suggest_unquoted_spec_value(kind, given, path),
        )
    if kind in ("greater_than_equal", "less_than_equal"):
        is_low, limit = kind.startswith("greater"), context.get("ge", context.get("le"))
        message = f"{name} is {given}, but must be {'at least' if is_low else 'at most'} {limit}"
        return message, f"Write {limit} or {'more' if is_low else 'less'}."
    if kind in ("too_long", "string_too_long"):
        return (
            f"{name} has {len(given)} {'characters' if isinstance(given, str) else 'entries'}; at most {context['max_length']} are allowed",
            "Shorten it.",
        )
    if kind in ("too_short", "string_too_short"):
        count, least = len(given), context["min_length"]
        if not count:
            return f"{name} is empty; at least {least} is needed", ""
        what = "characters" if isinstance(given, str) else "entries"
        return f"{name} has {count} {what}; at least {least} are needed", "Write more."
    if kind == "string_pattern_mismatch" and path[-1:] == ("image",) and is_reference(given):
        message = (
            f"image is {quote_spec_value(given)}, which is an image reference; a spec names an entry of images/catalog.yaml,"
            " so that every run has a digest and a registry that the cluster trusts"
        )
        return message, "Write the entry's name; the owner of the catalog adds what is missing."
    if kind == "string_pattern_mismatch":
        form = PATTERN_DESCRIPTIONS.get(context["pattern"])
        if path[-1:] == ("repository",) and (parts := split_image_reference(given)):
            message = f"{name} is {quote_spec_value(given)}; tag and digest are fields of their own"
            return message, suggest_catalog_fields_for_image(parts)
        message = f"{name} is {quote_spec_value(given)}, which does not have the right form{f' ({form})' if form else ''}"
        if path[-1:] == ("fetch",) and "://" in given:
            help = "Name a connection of team.yaml and a path in it, such as raw/data.tar; a step's command downloads from elsewhere."
            return message, help
        return message, _suggest_valid_name(context["pattern"], given, path)
    return f"{name}: {kind.replace('_', ' ')} ({quote_spec_value(given)})", ""


def is_reference(image: str) -> bool:
    """Return whether an image is written as a registry reference, not as the name of its entry in the
    catalog."""
    return any(sign in image for sign in "/:@")


def split_image_reference(reference: Any) -> dict[str, str]:
    """Return repository, tag and digest of an image's reference, those that it has; empty without a registry,
    or without both of the others."""
    name, _, digest = str(reference).removeprefix("docker://").partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{folder}{slash}{last}"
    is_good = slash and (tag or digest) and (not digest or re.fullmatch(DIGEST_FORM, digest))
    if not is_good or not re.fullmatch(REPOSITORY_FORM, repository):
        return {}
    return {"repository": repository} | {
        field: value for field, value in (("tag", tag), ("digest", digest)) if value
    }


def suggest_catalog_fields_for_image(parts: Mapping[str, str]) -> str:
    """Return the help with the fields of an image's reference."""
    shown = (
        f'{field}: "{value}"' if field == "tag" else f"{field}: {value}" for field, value in parts.items()
    )
    return f"Write {' and '.join(shown)}."


def _suggest_unquoted_spec_value(kind: str, given: Any, path: FieldPath) -> str:
    """Return the help for a number or boolean in quotes, or for a variable, which is not filled in."""
    if kind in ("int_type", "bool_type") and isinstance(given, str) and re.match(r"\$[({]?\w+", given):
        return "Write the value itself: variables are not filled in here."
    if kind == "int_type" and isinstance(given, str) and given.isdecimal() and len(given) <= 18 and path:
        return f"Write {_format_field_assignment(path, given)}, without quotes."
    if kind == "bool_type" and str(given).lower() in ("true", "yes", "on", "1"):
        return f"Write {_format_field_assignment(path, 'true')}."
    if kind == "bool_type" and str(given).lower() in ("false", "no", "off", "0"):
        return f"Write {_format_field_assignment(path, 'false')}."
    return ""


def convert_to_name(pattern: str, given: str) -> str:
    """Return the text converted to a Kubernetes name, if `pattern` is that of such names; empty if this is
    not possible."""
    name = re.sub(r"[^a-z0-9]+", "-", convert_to_latin(given).lower()).strip("-")
    if number := re.match(r"([0-9][a-z0-9]*)-(.*[a-z].*)", name):
        name = f"{number[2]}-{number[1]}".lstrip("-0123456789")  # 3d-unet is unet-3d
    elif name[:1].isdigit():
        name = f"job-{name}"
    return name if pattern == DNS_LABEL and not given.startswith("/") and re.fullmatch(pattern, name) else ""


def _suggest_valid_name(pattern: str, given: str, path: FieldPath) -> str:
    """Return the help with the required form, if changing case, dashes or address gives it; else an empty
    text."""
    bare = re.sub(r"^[a-z0-9]+://|/+$", "", given)
    like = (
        convert_to_name(pattern, given),
        given.lower(),
        f"https://{bare}",
        f"sha256:{bare.lower()}",
        bare,
        bare.replace("_", "-").lower(),
    )
    meant = next(
        (one for one in like if one and not given.startswith("/") and re.fullmatch(pattern, one)), ""
    )
    return f"Write {_format_field_assignment(path, meant)}." if meant and path else ""


def _format_field_assignment(path: FieldPath, value: str) -> str:
    return value if isinstance(path[-1], int) else f"{path[-1]}: {value}"


def quote_spec_value(value: Any) -> str:
    """Return a value as a message quotes it, shortened if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "empty"
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 60 else f"'{value[:57]}...'"
    if isinstance(value, (dict, list, tuple)):
        return describe_kind_of_spec_value(value)
    return f"the number {value}"


def describe_kind_of_spec_value(value: Any) -> str:
    """Return what a value is, in words: fields, a list, nothing, a single value."""
    if isinstance(value, dict):
        return "fields"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else "a single value"
