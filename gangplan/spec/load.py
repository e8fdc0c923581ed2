"""Loading a document into a typed spec; pydantic's errors become findings in the user's words, with
positions."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gangplan.findings import UNKNOWN_FIELD, Clue, FieldPath, Finding, Fix
from gangplan.rules.commands import COMMAND_SHELL
from gangplan.rules.core import SPEC_MISSING_FIELD, SPEC_TYPE, SPEC_VALUE
from gangplan.source import Document
from gangplan.spec.base import ENV_NAME, Hints
from gangplan.spec.blocks import (
    TEXT_PARENTS,
    find_spec_model_at,
    is_suitable_value,
    list_nested_spec_field_paths,
    list_spec_fields_at,
    list_spec_value_errors,
)
from gangplan.spec.flow import format_flow_style
from gangplan.spec.nodes import SEVERAL_FORM_TAG, SINGLE_FORM_TAG
from gangplan.spec.phrases import (
    convert_to_name,
    describe_kind_of_spec_value,
    explain_pydantic_error,
    format_dotted_path,
    split_image_reference,
)
from gangplan.spec.repair import propose_repair_of_spec_field
from gangplan.spec.words import DNS_LABEL, PATTERN_DESCRIPTIONS

ModelType = TypeVar("ModelType", bound=BaseModel)


def parse_spec_document(model: type[ModelType], document: Document) -> tuple[ModelType | None, list[Finding]]:
    """Return the typed value of `document`, or every finding about it. Never raises on bad input."""
    if not isinstance(document.value, dict):
        what = describe_kind_of_spec_value(document.value)
        return None, [
            Finding(
                SPEC_TYPE,
                document.where(()),
                f"the file contains {what}; expected fields (name: value)",
                "Start with 'apiVersion: gangplan.dev/v1'.",
            )
        ]
    try:
        return model.model_validate(_convert_to_strict_spec_values(document.value, document, ())), []
    except ValidationError as raised:
        found = [
            replace(
                _convert_pydantic_error_to_finding(model, document, item),
                fix=_find_pydantic_error_fix(model, document, item),
            )
            for item in _select_pydantic_root_errors(raised)
        ]
        return None, _drop_renamed_missing_fields(found)


def _drop_renamed_missing_fields(found: list[Finding]) -> list[Finding]:
    """Return the findings without those on a missing field that is present under another name."""
    named = {name for one in found for name in one.clue.follows}
    return [
        one
        for one in found
        if one.rule != SPEC_MISSING_FIELD or format_dotted_path(one.clue.path) not in named
    ]


def _find_pydantic_error_fix(model: type[BaseModel], document: Document, item: Any) -> Fix | None:
    path = _convert_pydantic_location_to_path(document, item["loc"])
    block = find_spec_model_at(model, path[:-1])
    if item["type"] == "string_type" and _is_wrong_in_quotes(model, path, document.text(path)):
        return None
    return propose_repair_of_spec_field(
        document,
        path,
        item,
        list_spec_fields_at(model, path[:-1]),
        partial(is_suitable_value, block),
    )


def _find_value_at_path(document: Document, path: FieldPath) -> Any:
    value: Any = document.value
    for step in path:
        value = value[step]
    return value


def _select_pydantic_root_errors(raised: ValidationError) -> list[Any]:
    """Return pydantic's errors without those that only follow from another.

    A file of another kind has other fields, and a list with a wrong entry is also reported as too short.
    """
    items = raised.errors(include_url=False)
    other = [item for item in items if item["loc"] == ("kind",) and item["type"] == "literal_error"]
    if other:
        return other
    places = [item["loc"] for item in items]
    swapped = {
        loc[:-1] for loc in places if loc[:1] == ("data",) and loc[-1] == "[key]" and str(loc[1])[:1] == "/"
    }
    return [
        item
        for item in items
        if item["loc"] not in swapped
        if item["type"] != "too_short"
        or not any(
            len(place) > len(item["loc"]) and place[: len(item["loc"])] == item["loc"] for place in places
        )
    ]


def _convert_to_strict_spec_values(value: Any, document: Document, path: FieldPath) -> Any:
    """Return lists as tuples (the models are strict), and numbers as texts where a text is needed."""
    if isinstance(value, dict):
        return {
            key: _convert_to_strict_spec_values(item, document, (*path, key)) for key, item in value.items()
        }
    if isinstance(value, list):
        convert = _convert_command_entry if path[-1:] == ("command",) else _convert_to_strict_spec_values
        return tuple(convert(item, document, (*path, index)) for index, item in enumerate(value))
    if isinstance(value, (int, float)) and (path[:-1] in TEXT_PARENTS or _is_spec_variable_or_argument(path)):
        return document.text(path)
    return value


def _convert_command_entry(value: Any, document: Document, path: FieldPath) -> Any:
    """Return an entry of a command; one that is not text keeps what was written, for the help.

    `null` becomes a list of this text, so that it remains an error.
    """
    if value is None or isinstance(value, list):
        written = _convert_to_written_texts(value, document, path)
        return written if isinstance(written, tuple) else tuple(filter(None, [written]))
    if isinstance(value, dict):
        return {
            key: _convert_to_written_texts(item, document, (*path, key)) if key.startswith("-") else item
            for key, item in value.items()
        }
    return _convert_to_strict_spec_values(value, document, path)


def _convert_to_written_texts(value: Any, document: Document, path: FieldPath) -> Any:
    """Return a scalar, or those in a list, as written."""
    if isinstance(value, list):
        return tuple(
            _convert_to_written_texts(item, document, (*path, index)) for index, item in enumerate(value)
        )
    return value if isinstance(value, (str, dict)) else document.text(path)


def _is_spec_variable_or_argument(path: FieldPath) -> bool:
    """Return whether it is a variable or an argument in a fabric or a container: `fabrics.NAME.env.X`,
    `setup.0.env.X`."""
    return (
        path[0] in ("fabrics", "setup", "sidecars", "roles")
        and len(path) > 2
        and path[-2] in ("env", "command")
    )


def _convert_pydantic_error_to_finding(model: type[BaseModel], document: Document, item: Any) -> Finding:
    """Return one pydantic error as a finding."""
    kind, path = item["type"], _convert_pydantic_location_to_path(document, item["loc"])
    context = item.get("ctx", {})
    if item["loc"] and item["loc"][-1] == "[key]":
        message, help = _explain_bad_key_of_spec_map(path, item, _find_value_at_path(document, path))
        return Finding(SPEC_VALUE, document.where(path, key=True), message, help)
    if kind == UNKNOWN_FIELD:
        return _report_unknown_spec_field(model, document, path)
    clue = Clue(path, kind, item["input"])
    if kind == "missing":
        message, help = f"'{format_dotted_path(path)}' is missing", _format_example_of_spec_field(model, path)
        return Finding(SPEC_MISSING_FIELD, document.where(path[:-1]), message, help, clue=clue)
    if "hints" in context:
        hints: Hints = context["hints"]
        where = document.where(path if hints.word is None else (*path, hints.word))
        message = (
            context["message"] if hints.is_whole else f"{format_dotted_path(path)}: {context['message']}"
        )
        rule = COMMAND_SHELL if kind == "shell" else SPEC_VALUE
        return Finding(rule, where, message, context["help"], clue=clue)
    if kind == "literal_error":
        return _report_disallowed_spec_value(model, document, path, item)
    message, help = explain_pydantic_error(kind, context, item["input"], path, document.text(path))
    if path == ("run",) and isinstance(item["input"], str):
        clue = clue._replace(follows=("command",))  # GitHub Actions calls the command so
    if path[-1:] == ("repository",) and "digest" in split_image_reference(item["input"]):
        clue = clue._replace(follows=(format_dotted_path((*path[:-1], "digest")),))
    rule = SPEC_TYPE if kind.endswith("_type") else SPEC_VALUE
    from gangplan.spec.shapes import describe_wrong_spec_value_shape  # rarely needed: few files are wrong

    shaped = describe_wrong_spec_value_shape(
        path, kind, item["input"], document.text(path)
    ) or _suggest_pool_shares_in_cluster_file(document, path)
    is_number = kind == "string_type" and isinstance(item["input"], int | float)
    if is_number and _is_wrong_in_quotes(model, path, document.text(path)):
        help = ""
    help = help or shaped or _format_example_of_spec_field(model, path)
    return Finding(rule, document.where(path), message, help, clue=clue)


def _is_wrong_in_quotes(model: type[BaseModel], path: FieldPath, written: str | None) -> bool:
    """Return whether a value would be as wrong as a text, such as 5 as a day, or true as a name."""
    block = find_spec_model_at(model, path[:-1]) if path else None
    if block is not None and written in ("true", "false"):
        return True
    return block is not None and bool(list_spec_value_errors(block, str(path[-1]), written))


_SHARES = ("quota", "borrow", "lend")


def _suggest_pool_shares_in_cluster_file(document: Document, path: FieldPath) -> str:
    """Return the help for a number in place of shares of pools; it names pools of the cluster that have such
    a resource."""
    field = next((one for one in path[-2:] if one in _SHARES), "")
    pools = document.value.get("nodePools") if isinstance(document.value, dict) else None
    if (
        not field
        or not isinstance(pools, dict)
        or not isinstance(_find_value_at_path(document, path), (int, str))
    ):
        return ""
    what = path[-1] if path[-1] in ("cpu", "memory") else "gpus"
    fitting = [
        name for name, pool in pools.items() if what != "gpus" or (isinstance(pool, dict) and "gpu" in pool)
    ]
    fitting = [path[-1]] if path[-1] in fitting else fitting[:1]
    shares = {name: {what: _find_value_at_path(document, path)} for name in fitting}
    return f"Write {field}: {format_flow_style(shares)}." if shares else ""


def _convert_pydantic_location_to_path(document: Document, loc: tuple[Any, ...]) -> FieldPath:
    """Return pydantic's location as a path into the document (its union and key marks removed)."""
    path: list[str | int] = []
    value = document.value
    for step in loc:
        if not isinstance(value, (dict, list)):
            break  # steps after a scalar name the form that was tried
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        ):
            path.append(step)
            value = value[step]
        elif step in ("[key]", SINGLE_FORM_TAG, SEVERAL_FORM_TAG) or (
            step is not loc[-1] and not isinstance(value, dict)
        ):
            continue
        else:
            path.append(step)
            break
    return tuple(path)


def _report_unknown_spec_field(model: type[BaseModel], document: Document, path: FieldPath) -> Finding:
    """Return the finding for an unknown field, with the field that was probably meant."""
    block = find_spec_model_at(model, path[:-1])
    fields = {field.alias or name: field for name, field in block.model_fields.items()} if block else {}
    from gangplan.spec.guess import explain_unknown_spec_field  # rarely needed: few files are wrong

    value: Any = document.value
    for step in path[:-1]:
        value = value[step]
    problem = explain_unknown_spec_field(
        model.__name__,
        path,
        fields,
        list_nested_spec_field_paths(block),
        value,
        partial(list_spec_value_errors, block),
    )
    if model.__name__ in ("Sweep", "JobTemplate") and not problem.clue.meant:
        from gangplan.spec import sweep_words  # rarely needed: few files are sweeps or templates

        if len(path) == 1:
            problem = (
                sweep_words.explain_job_field_outside_its_block(model, document, str(path[0])) or problem
            )
        elif model.__name__ == "Sweep" and path[:-1] == ("parameters",) and problem.clue.known:
            problem = replace(problem, help=sweep_words.suggest_sweep_parameters_block(document))
    if len(path) > 1 and not problem.clue.meant and _fits_at_top_level(model, path, value):
        help = f"Move {path[-1]}: out of {format_dotted_path(path[:-1])}, to the top level of the file."
        problem = replace(problem, help=help)
    return problem.found(document.where(path, key=True))


def _fits_at_top_level(model: type[BaseModel], path: FieldPath, block: Any) -> bool:
    """Return whether a field that is nested too deeply belongs to the top level, and could have its value
    there."""
    name, given = str(path[-1]), block.get(path[-1]) if isinstance(block, dict) else None
    return name in list_spec_fields_at(model, ()) and not list_spec_value_errors(model, name, given)


def _report_disallowed_spec_value(
    model: type[BaseModel], document: Document, path: FieldPath, item: Any
) -> Finding:
    """Return the finding for a value outside a fixed set, with the member that was probably meant."""
    allowed = re.findall(r"'([^']*)'", str(item["ctx"]["expected"]))
    from gangplan.spec.guess import explain_wrong_spec_word

    return explain_wrong_spec_word(model.__name__, path, allowed, item["input"]).found(document.where(path))


def _explain_bad_key_of_spec_data(key: str, message: str, given: Any) -> tuple[str, str]:
    """Return message and help for a key of data that is not a name: a folder, swapped with the claim; a
    bucket's address; another spelling."""
    if key.startswith("/") and isinstance(given, str) and re.fullmatch(DNS_LABEL, given):
        return (
            f"'{key}' is a folder; data names a claim first, then its folder",
            f"Swap them: data: {{{given}: {key}}}.",
        )
    if "://" in key:
        help = "Write the name of a connection to it: gangplan list claims has those of the team, team.yaml declares them."
        return f"'{key}' is an address; data names claims and connections of the team", help
    name = convert_to_name(DNS_LABEL, key)
    return (
        message,
        f"Write {name}:."
        if name
        else "Write the name of a claim of the team; gangplan list claims has them.",
    )


def _explain_bad_key_of_spec_map(path: FieldPath, item: Any, given: Any) -> tuple[str, str]:
    """Return message and help for a key of a map that cannot be a name there, with a similar name."""
    key, context = str(path[-1]) if path else "", item.get("ctx", {})
    form = PATTERN_DESCRIPTIONS.get(context.get("pattern", ""), "")
    like = re.sub(r"[^A-Za-z0-9_]", "_", key) if context.get("pattern") == ENV_NAME else ""
    message = f"'{key}' cannot be a name in {format_dotted_path(path[:-1])}{f' ({form})' if form else ''}"
    if path[:1] == ("data",) and key:
        return _explain_bad_key_of_spec_data(key, message, given)
    if path[:1] == ("files",) and "/" in key and not key.startswith(("/", "../")) and key[-1:] != "/":
        return message, f"Write ./{key.removeprefix('./')}: for a file next to the spec."
    if path[:1] == ("files",) and "/" in key:
        return message, "Write ./NAME: for a file in the folder of the spec, one entry for each."
    if path[:1] == ("files",) and re.fullmatch(r"[\w.-]*[\w-]\.\w+", key, re.ASCII):
        return message, f"Write ./{key}: for a file next to the spec."
    if path[:1] == ("hugePages",) and (size := re.fullmatch(r"([0-9]+) ?([MG])i?B?", key, re.ASCII)):
        like = f"{size[1]}{size[2]}i"
        return message, f"Write {like}:."
    return message, f"Write {like}:." if like and not like[0].isdigit() else "Rename it."


def _format_example_of_spec_field(model: type[BaseModel], path: FieldPath) -> str:
    """Return a help line from the field's own documented example."""
    if not path:
        return ""
    parent = find_spec_model_at(model, path[:-1])
    if parent is None:
        return _format_example_of_spec_field(
            model, path[:-1]
        )  # an entry of a map or a list: use the whole field's example
    for name, field in parent.model_fields.items():
        if (field.alias or name) == path[-1] and field.examples:
            return f"For example {path[-1]}: {format_flow_style(field.examples[0])}."
    return ""
