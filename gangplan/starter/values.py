"""Values of fields from texts of flags: what a person typed, as the file would have it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_document, load_objects
from gangplan.source.scalars import NotFiniteError, parse_plain_yaml_scalar
from gangplan.spec.blocks import TEXT_PARENTS
from gangplan.spec.command import parse_spec_command
from gangplan.starter.fields import NewField

NewFileValues = dict[str, Any]
# What a flag gives: nothing, a truth value, one text, or several.
FlagText = bool | str | Sequence[str] | None
_NUMBERS = {"integer", "number"}
# The path of a program or file from here, which YAML takes for text as it is.
_BESIDE = re.compile(r"\.\.?/[A-Za-z0-9_./-]*[A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class WrittenScalar:
    """A scalar that is written in a file as it was typed, such as the number 1e-4."""

    text: str


def build_new_file_values(fields: Iterable[NewField], given: Mapping[str, FlagText]) -> NewFileValues:
    """Return the values of a file from the texts of its flags; blocks are in the order of the fields.

    Raises UserError for a text that cannot be the value of its flag.
    """
    values: NewFileValues = {}
    for field in fields:
        text = given.get(field.flag)
        if text is None or (not isinstance(text, (str, bool)) and not text):
            continue
        block = values
        for name in field.path[:-1]:
            block = block.setdefault(name, {})
        block[field.path[-1]] = parse_value_of_new_field(field, text)
    return values


def parse_value_of_new_field(field: NewField, given: FlagText) -> Any:
    """Return the value of one field. Raises UserError."""
    if isinstance(given, bool):
        return given
    texts = [given] if isinstance(given, str) else list(given or ())
    if field.path == ("command",):
        return parse_command_of_new_job(texts[0])
    if field.shape == "value":
        is_block = "object" in field.types and texts[0].lstrip().startswith("{")
        return (_parse_new_field_block if is_block else _parse_new_field_scalar)(field, texts[0])
    if field.shape == "list":
        return [
            _parse_new_field_scalar(field, part.strip())
            for text in texts
            for part in _split_list_text(field, text)
        ]
    if field.shape == "blocks":
        return [_parse_new_field_block(field, text) for text in texts]
    pairs = [
        _parse_pair_answer_of_new_field(field, part)
        for text in texts
        for part in _split_map_entries(field, text)
    ]
    return {
        name: (
            _parse_new_field_scalar
            if field.shape == "map" or _is_text(field, text)
            else _parse_new_field_block
        )(field, text)
        for name, text in pairs
    }


def _is_text(field: NewField, text: str) -> bool:
    """Return whether an entry that may be a text or a block is a text."""
    return "string" in field.types and not text.lstrip().startswith("{")


def _split_list_text(field: NewField, text: str) -> list[str]:
    """Split the entries of a list, which may be given at once: a,b."""
    return [text] if has_commas(field) else text.split(",")


def _split_map_entries(field: NewField, text: str) -> list[str]:
    """Split the entries of a map, which may be given at once: a=1,b=2. A value may contain commas."""
    parts = [part.strip() for part in text.split(",")] if field.shape == "map" else [text]
    return parts if all("=" in part for part in parts) else [text]


def has_commas(field: NewField) -> bool:
    """Return whether an entry of a list may contain commas, as the names of groups in a directory do."""
    return re.search(r"group|flags", field.flag) is not None


def parse_command_of_new_job(text: str) -> list[str | int] | str:
    """Parse a command into a list of words, as the one line of a file or as YAML: [python, train.py].

    A text that is neither, such as a script of several lines, is returned unchanged; a file with it has an error.
    """
    if text.lstrip().startswith("[") and text.rstrip().endswith("]"):
        document, _ = load_document(f"words: {text}".encode(), "command")
        words = document.value["words"] if document is not None else None
        if document is not None and isinstance(words, list):
            written = [document.text(("words", index)) for index in range(len(words))]
            if None not in written:
                quoted = [document.is_quoted(("words", index)) for index in range(len(words))]
                return [
                    one if is_text else _parse_command_word(one)
                    for one, is_text in zip(map(str, written), quoted, strict=True)
                ]
    try:
        return [_parse_command_word(word) for word in parse_spec_command(text)]
    except PydanticCustomError:
        return text


def _parse_command_word(text: str) -> str | int:
    """Return a word of a command, or a variable's value. A common number needs no quotes, because formats
    keep its text."""
    return int(text) if re.fullmatch(r"0|[1-9][0-9]{0,15}", text) else text


def _parse_new_field_scalar(field: NewField, text: str) -> Any:
    """Return a number or a truth value if the field takes one, else the text itself."""
    kinds = set(field.types)
    if field.path in TEXT_PARENTS:
        return _parse_command_word(text)
    if kinds == {"string"} or ("string" in kinds and kinds & {"boolean"}):
        return text
    try:
        value = parse_plain_yaml_scalar(text)
    except NotFiniteError:
        return text
    if isinstance(value, bool):
        return value if "boolean" in kinds else text
    return value if isinstance(value, int | float) and kinds & _NUMBERS else text


def _parse_pair_answer_of_new_field(field: NewField, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        key, example = ("NAME", "VALUE")
        if isinstance(field.example, dict) and field.example:
            key, example = next(iter(field.example.items()))
        missing = "name" if equals or not name.strip() else "value"
        if not equals:
            key = name.strip() or key
        raise UserError(
            f"{field.flag} {text}: the {missing} is missing",
            f"Write {field.flag} {shlex.quote(f'{key}={format_flow_yaml(example)}')}.",
        )
    return name.strip(), value


def _parse_new_field_block(field: NewField, text: str) -> Any:
    """Read a value written as YAML, such as {count: 4, cpu: 30}. Raises UserError."""
    try:
        documents = load_objects(f"value: {text}\n") if "\n" not in text else []
    except ManifestError:
        documents = []
    if (
        len(documents) != 1
        or list(documents[0]) != ["value"]
        or not isinstance(documents[0]["value"], dict | list)
    ):
        example = field.example
        if isinstance(example, dict):
            example = next(iter(example.values()))
        elif isinstance(example, list):
            example = example[0]
        name = "" if field.shape == "blocks" else "NAME="
        help = f"Write it as {field.flag} {shlex.quote(f'{name}{format_flow_yaml(example)}')}."
        raise UserError(f"{field.flag}: '{text}' is not a block of YAML", help)
    return documents[0]["value"]


def format_flow_yaml(value: Any) -> str:
    """Write a value as flow YAML on one line."""
    from gangplan.objects import format_scalar

    if isinstance(value, WrittenScalar):
        return value.text
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{format_scalar(str(key))}: {format_flow_yaml(one)}" for key, one in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_flow_yaml, value)) + "]"
    if isinstance(value, str) and _BESIDE.fullmatch(value):
        return value
    return repr(value) if isinstance(value, float) else format_scalar(value)
