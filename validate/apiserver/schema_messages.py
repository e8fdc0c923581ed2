"""Describing a violated schema keyword in the user's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from gangplan.findings import UNKNOWN_FIELD, Clue
from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.rules.objects import SCHEMA_MISSING
from gangplan.validate.problems import PathStep, Problem, describe_path, format_path

JsonSchema = dict[str, Any]


TYPE_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}
COMBINATORS = {"if", "then", "else", "allOf", "anyOf", "oneOf", "not"}
Words = Callable[[tuple[PathStep, ...], Any, JsonSchema, Any], "list[Problem]"]


def describe_value_with_type(value: Any) -> str:
    """Describe a value: `the text 'four'`, `the number 4`, `a mapping`."""
    if value is None:
        return "empty (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {shorten_repr(value)}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a mapping" if isinstance(value, dict) else "a list"


def shorten_repr(value: Any) -> str:
    """Return the repr, cut in the middle if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:50]}...{text[-20:]}"


# The words of each keyword: (path, keyword's value, its schema, the instance) -> problems.


def _describe_type_mismatch(
    path: tuple[PathStep, ...], wanted: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    names = wanted if isinstance(wanted, list) else [wanted]
    says = " or ".join(TYPE_WORDS[name] for name in names)
    if len(names) > 1:
        says = schema.get("x-says", says)
    help = ""
    if instance is None:
        help = "remove the field, or give it a value"
    elif names == ["string"] and isinstance(instance, int | float):
        quoted = str(instance).lower() if isinstance(instance, bool) else str(instance)
        help = f'quote it: "{quoted}"'
    elif names == ["integer"] and isinstance(instance, str) and re.fullmatch(r"-?[0-9]+", instance):
        help = f"remove the quotes: {instance}"
    elif names == ["array"] and instance is not None:
        help = "put it in a list: start the line with '- '"
    return [
        Problem(
            path, f"{describe_path(path)} is {describe_value_with_type(instance)}; {says} is expected", help
        )
    ]


def _describe_unknown_api_fields(
    path: tuple[PathStep, ...], _: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    known = schema.get("properties", {})
    where = f" in {format_path(path)}" if path else ""
    out = []
    for name in instance:
        if name not in known:
            near = find_nearest_api_schema_field(name, known)
            message = f"unknown field {name!r}{where}" + (f"; did you mean {near!r}?" if near else "")
            help = f"fields here: {format_options(known)}" if known else "nothing can be set here"
            clue = Clue(kind=UNKNOWN_FIELD)
            out.append(Problem((*path, name), message, "" if near else help, clue=clue))
    return out


def _describe_missing_api_fields(
    path: tuple[PathStep, ...], names: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    where = f" in {format_path(path)}" if path else ""
    return [
        Problem((*path, name), f"required field {name!r} is missing{where}")
        for name in names
        if name not in instance
    ]


def _describe_enum_mismatch(
    path: tuple[PathStep, ...], options: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    if instance is None or isinstance(instance, dict | list):
        return [
            Problem(
                path,
                f"{describe_path(path)} is {describe_value_with_type(instance)};"
                f" one of {format_options(options)} is expected",
            )
        ]
    near = find_nearest_api_schema_field(instance, options) if isinstance(instance, str) else None
    message = f"{describe_path(path)}: {instance!r} is not one of: {format_options(options)}"
    return [Problem(path, message, f"did you mean {near!r}?" if near else "")]


def _describe_const_mismatch(
    path: tuple[PathStep, ...], value: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    return _describe_enum_mismatch(path, [value], schema, instance)


def _describe_pattern_mismatch(
    path: tuple[PathStep, ...], pattern: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    says = schema.get("x-says", f"a text that matches {pattern}")
    help = ""
    if says.startswith("a quantity"):
        help = suggest_valid_quantity(instance)
    elif instance != instance.lower():
        with suppress(PatternError, UnknownScriptError):
            help = f"write {instance.lower()!r}" if compile_search(pattern)(instance.lower()) else ""
    return [
        Problem(
            path, f"{describe_path(path)} is {describe_value_with_type(instance)}; expected: {says}", help
        )
    ]


def _build_schema_limit_describer(words: Callable[[Any, Any], str]) -> Words:
    def explain(path: tuple[PathStep, ...], limit: Any, schema: JsonSchema, instance: Any) -> list[Problem]:
        # The words of a mapping's schema say which fields go together; those of a text's schema are about its
        # characters.
        if isinstance(instance, dict) and "x-says" in schema:
            return _describe_failed_schema_combination(path, limit, schema, instance)
        return [Problem(path, f"{describe_path(path)} {words(instance, limit)}")]

    return explain


def _describe_failed_schema_combination(
    path: tuple[PathStep, ...], _: Any, schema: JsonSchema, instance: Any
) -> list[Problem]:
    says = schema.get("x-says")
    return [
        Problem(path, f"{describe_path(path)}: {says}" if says else f"{describe_path(path)} is not allowed")
    ]


KEYWORDS: dict[str, Words] = {
    "type": _describe_type_mismatch,
    "additionalProperties": _describe_unknown_api_fields,
    "required": _describe_missing_api_fields,
    "enum": _describe_enum_mismatch,
    "const": _describe_const_mismatch,
    "pattern": _describe_pattern_mismatch,
    "format": _describe_pattern_mismatch,
    "minimum": _build_schema_limit_describer(lambda value, limit: f"is {value}; the least is {limit}"),
    "maximum": _build_schema_limit_describer(lambda value, limit: f"is {value}; the most is {limit}"),
    "minLength": _build_schema_limit_describer(
        lambda value, limit: "is empty" if not value else f"is shorter than {limit} characters"
    ),
    "maxLength": _build_schema_limit_describer(
        lambda value, limit: f"has {len(value)} characters; at most {limit} are allowed"
    ),
    "minItems": _build_schema_limit_describer(
        lambda value, limit: f"has {len(value)} entries; at least {limit} needed"
    ),
    "maxItems": _build_schema_limit_describer(
        lambda value, limit: f"has {len(value)} entries; at most {limit} are allowed"
    ),
    "minProperties": _build_schema_limit_describer(
        lambda value, limit: f"has {len(value)} fields; at least {limit} needed"
    ),
    "maxProperties": _build_schema_limit_describer(
        lambda value, limit: f"has {len(value)} fields; at most {limit} are allowed"
    ),
    "uniqueItems": _build_schema_limit_describer(lambda value, limit: "contains the same entry twice"),
}


def describe_api_schema_violation(
    root: JsonSchema, path: tuple[PathStep, ...], schema_path: list[PathStep], instance: Any, kind: Any
) -> list[Problem]:
    """Return the problems behind one violation of `root`."""
    key = getattr(kind, "error", None)
    if key is not None:  # propertyNames: the violation is about a key of the mapping, not about the mapping
        return _describe_key_mismatch(root, path, key)
    schema: Any = root
    parents = []
    for step in schema_path[:-1]:
        parents.append(schema)
        schema = schema[step]
    for parent, step in zip(parents, schema_path, strict=False):
        if step in COMBINATORS and isinstance(parent, dict) and "x-says" in parent and step != "allOf":
            return _describe_failed_schema_combination(path, None, parent, instance)
    keyword = str(schema_path[-1])
    return KEYWORDS.get(keyword, _describe_failed_schema_combination)(
        path, schema.get(keyword), schema, instance
    )


def _describe_key_mismatch(root: JsonSchema, path: tuple[PathStep, ...], error: Any) -> list[Problem]:
    schema: Any = root
    for step in error.schema_path[:-1]:
        schema = schema[step]
    says = schema.get("x-says", "another key")
    key = error.instance
    return [Problem((*path, key), f"{describe_path(path)} has the key {shorten_repr(key)}; expected: {says}")]


def describe_repeated_key_in_keyed_list(
    path: tuple[PathStep, ...], names: tuple[str, ...], key: tuple[str, ...], count: int
) -> Problem:
    """Return the problem of a keyed list with one key several times."""
    said = ", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True))
    times = "twice" if count == 2 else f"{count} times"
    return Problem(path, f"{describe_path(path)} holds {said} {times}", "keep one")


# Objects that cannot be checked.


def describe_object_without_kind_or_version(body: dict[str, Any]) -> list[Problem]:
    """Return the problems of an object without apiVersion or kind."""
    out = []
    for name in ("apiVersion", "kind"):
        value = body.get(name)
        if name not in body:
            out.append(Problem((name,), f"required field {name!r} is missing"))
        elif not isinstance(value, str):
            out.append(Problem((name,), f"{name} is {describe_value_with_type(value)}; a text is expected"))
    return out


def describe_missing_component(api_version: str, kind: str, component: str) -> Problem:
    """Return the problem that the cluster states no version of the component that serves the kind."""
    message = f"{kind} ({api_version}) cannot be checked: the cluster states no {component} version"
    return Problem(("apiVersion",), message, f"state the {component} version in cluster.yaml", SCHEMA_MISSING)


def describe_minor_without_api_schema(
    api_version: str, kind: str, component: str, minor: str, known: list[str]
) -> Problem:
    """Return the problem of a minor that has no schema here."""
    message = f"{kind} ({api_version}) cannot be checked: no schema for {component} {minor}"
    return Problem(
        ("apiVersion",), message, f"known {component} versions: {', '.join(known)}", SCHEMA_MISSING
    )


def describe_kind_without_api_schema(
    api_version: str, kind: str, component: str, minor: str, known: Iterable[str]
) -> Problem:
    """Return the problem of a kind, or a version of it, that has no schema here."""
    pairs = [gvk.rsplit("/", 1) for gvk in known]
    served = sorted(version for version, name in pairs if name == kind)
    if served:
        by = "" if component == "addons" else f" by {component} {minor}"
        message = f"{kind} is not served as {api_version}{by}"
        return Problem(("apiVersion",), message, f"served as: {', '.join(served)}", SCHEMA_MISSING)
    near = find_nearest_api_schema_field(kind, [name for _, name in pairs])
    message = f"{kind} ({api_version}) cannot be checked: no schema for this kind"
    return Problem(("kind",), message, f"did you mean {near!r}?" if near else "", SCHEMA_MISSING)


# Hints.


def find_nearest_api_schema_field(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, or None."""
    from difflib import get_close_matches  # 4 ms, and only when something is wrong

    folded = {option.lower(): option for option in known if isinstance(option, str)}
    found = get_close_matches(name.lower(), folded, n=1, cutoff=0.7)
    return folded[found[0]] if found else None


def format_options(options: Iterable[Any]) -> str:
    """List the options in their order, at most a dozen of them."""
    names = ["''" if option == "" else str(option) for option in options]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def suggest_valid_quantity(text: str) -> str:
    """Return what was probably meant by a text that is not a valid quantity."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]i?b?|)\s*", text, re.IGNORECASE)
    if not match:
        return "suffixes are m, k, M, G, T, P, E and Ki, Mi, Gi, Ti, Pi, Ei"
    number, suffix = match.groups()
    if suffix.lower().endswith("b") or suffix.lower().endswith("i"):
        return f"write {number}{suffix[0].upper()}i, powers of 1024"
    return f"write {number}{suffix}"
