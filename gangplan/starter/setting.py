"""Changing fields of a file: each value is written as the format of the file takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from gangplan.edits import FlagChange, edit_field, read_value
from gangplan.errors import UserError
from gangplan.objects import format_scalar
from gangplan.rules.core import SPEC_UNKNOWN_FIELD
from gangplan.rules.model import Rule
from gangplan.source import Document, load_document
from gangplan.spec.base import Strict
from gangplan.spec.blocks import find_block_model
from gangplan.spec.load import parse_spec_document

# Text that is already in quotes, so the user means text.
_QUOTED = re.compile(r"\"[^\"\\]*\"|'[^']*'")


def apply_set_flags_to_text(
    text: str, file: str, model: type[Strict], changes: Sequence[FlagChange], types: Mapping[str, str]
) -> str:
    """Return the text with all changes made. `types` are those of the parameters of the spec's template.

    A value is written as YAML if the field takes that, else as text, else as a list split at commas. Raises
    UserError if a change cannot be made.
    """
    for change in changes:
        _check_set_flag_names_known_field(change, model)
        if change.text is None:
            text = edit_field(text, file, change.path, None)
            continue
        before = _find_problems_after_set_flags(text, file, model)
        made: list[tuple[int, str]] = []
        for value in _list_spellings_of_set_flag_value(change, text, file, types):
            after = edit_field(
                text, file, change.path, value, *_list_field_orders_for_set_flag(model, change.path)
            )
            made.append((len(_find_problems_after_set_flags(after, file, model) - before), after))
            if made[-1][0] == 0:
                break
        text = min(made, key=lambda one: one[0])[1]
    return text


def _list_field_orders_for_set_flag(
    model: type[BaseModel] | None, path: Sequence[str | int]
) -> Iterator[list[str]]:
    """Yield the fields of the format in their order, for each level of a path."""
    for step in path:
        if model is None:
            return
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        yield list(fields)
        model = find_block_model(fields[str(step)].annotation) if step in fields else None


def _check_set_flag_names_known_field(change: FlagChange, model: type[Strict]) -> None:
    """Refuse a field that the format does not have, and name the likely one. Raises UserError."""
    if change.text is None or any(isinstance(step, int) for step in change.path):
        return
    written = "1"
    for step in reversed(change.path):
        written = f"{{{format_scalar(step)}: {written}}}"
    document, _ = load_document(written.encode(), "value")
    findings = parse_spec_document(model, document)[1] if document is not None else []
    for one in findings:
        if one.rule == SPEC_UNKNOWN_FIELD:
            meant = one.clue.meant
            is_field = meant.isalpha()  # neither inside a block, nor several fields
            name = ".".join([*map(str, change.path[:-1]), meant])
            help = f"Write --set {name}={change.text}" if is_field else one.help
            raise UserError(f"{change.typed}: {one.message}", help)


def _find_problems_after_set_flags(text: str, file: str, model: type[Strict]) -> set[tuple[Rule, str]]:
    """Return the rules and messages of a text's findings, wherever they are."""
    document, findings = load_document(text.encode(), file)
    if document is not None:
        findings = parse_spec_document(model, document)[1]
    return {(one.rule, one.message) for one in findings}


def _list_spellings_of_set_flag_value(
    change: FlagChange, text: str, file: str, types: Mapping[str, str]
) -> Iterator[str]:
    """Yield the ways in which a value may be written, the likeliest first."""
    typed = (change.text or "").strip()
    as_text = format_scalar(change.text or "")
    try:
        value = read_value(typed)
    except ValueError:
        yield as_text
        if "," in typed:
            yield _format_as_flow_list(typed)
        return
    if isinstance(value, (dict, list)):
        if typed[:1] in "{[":
            yield typed
        yield as_text
    elif isinstance(value, str):
        yield typed if _QUOTED.fullmatch(typed) else as_text
    elif change.path[0] == "parameters" and types.get(str(change.path[-1])) == "string":
        yield as_text
    else:
        is_text = _is_set_flag_value_quoted_number(text, file, change)
        yield as_text if is_text else typed
        yield typed if is_text else as_text
    if isinstance(value, str | int | float):
        yield _format_as_flow_list(typed)


def _format_as_flow_list(typed: str) -> str:
    return f"[{', '.join(format_scalar(one.strip()) for one in typed.split(','))}]"


def _is_set_flag_value_quoted_number(text: str, file: str, change: FlagChange) -> bool:
    """Return whether the field holds text that would not be text without its quotes: "1", "yes"."""
    document: Document | None = load_document(text.encode(), file)[0]
    if document is None or not document.is_quoted(change.path):
        return False
    try:
        return not isinstance(read_value(document.text(change.path) or ""), str)
    except ValueError:
        return False
