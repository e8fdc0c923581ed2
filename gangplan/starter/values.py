"""Texts of flags in, values of fields out: what a person typed, as the file would say it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_objects
from gangplan.source.scalars import NotFiniteError, plain
from gangplan.spec.blocks import TEXT_PARENTS
from gangplan.starter.fields import NewField

Values = dict[str, Any]
# What a flag gives: nothing, a truth value, one text, or several.
Given = bool | str | Sequence[str] | None
_NUMBERS = {"integer", "number"}
# A program or file by its path from here, which YAML takes for text as it is.
_BESIDE = re.compile(r"\.\.?/[A-Za-z0-9_./-]*[A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Written:
    """A scalar that stands in a file as it was typed, such as the number 1e-4."""

    text: str


def nested(fields: Iterable[NewField], given: Mapping[str, Given]) -> Values:
    """The values of a file, from the texts of its flags by their names; blocks stand in the order of the fields.

    Raises UserError for a text that cannot be the value of its flag.
    """
    values: Values = {}
    for field in fields:
        text = given.get(field.flag)
        if text is None or (not isinstance(text, (str, bool)) and not text):
            continue
        block = values
        for name in field.path[:-1]:
            block = block.setdefault(name, {})
        block[field.path[-1]] = value_of(field, text)
    return values


def value_of(field: NewField, given: Given) -> Any:
    """The value of one field. Raises UserError."""
    if isinstance(given, bool):
        return given
    texts = [given] if isinstance(given, str) else list(given or ())
    if field.path == ("command",):
        return words_of(texts[0])
    if field.shape == "value":
        is_block = "object" in field.types and texts[0].lstrip().startswith("{")
        return (_block if is_block else _scalar)(field, texts[0])
    if field.shape == "list":
        return [_scalar(field, part.strip()) for text in texts for part in _parts(field, text)]
    if field.shape == "blocks":
        return [_block(field, text) for text in texts]
    pairs = [_pair(field, text) for text in texts]
    return {
        name: (_scalar if field.shape == "map" or _is_text(field, text) else _block)(field, text)
        for name, text in pairs
    }


def _is_text(field: NewField, text: str) -> bool:
    """Whether an entry that may be a text or a block is a text."""
    return "string" in field.types and not text.lstrip().startswith("{")


def _parts(field: NewField, text: str) -> list[str]:
    """Entries of a list, which may be given at once: a,b."""
    return [text] if has_commas(field) else text.split(",")


def has_commas(field: NewField) -> bool:
    """Whether an entry of a list may hold commas, as the names of groups in a directory do."""
    return re.search(r"group|flags", field.flag) is not None


def words_of(text: str) -> list[str | int] | str:
    """A command as a list of words, as a shell would read it; as it is where it is no such line."""
    try:
        return [_word(word) for word in shlex.split(text)]
    except ValueError:
        return text


def _word(text: str) -> str | int:
    """A word of a command, or a variable's value: a usual number needs no quotes, for formats keep its text."""
    return int(text) if re.fullmatch(r"0|[1-9][0-9]{0,15}", text) else text


def _scalar(field: NewField, text: str) -> Any:
    """A number or a truth value where the field takes one, else the text itself."""
    kinds = set(field.types)
    if field.path in TEXT_PARENTS:
        return _word(text)
    if kinds == {"string"} or ("string" in kinds and kinds & {"boolean"}):
        return text
    try:
        value = plain(text)
    except NotFiniteError:
        return text
    if isinstance(value, bool):
        return value if "boolean" in kinds else text
    return value if isinstance(value, int | float) and kinds & _NUMBERS else text


def _pair(field: NewField, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        example = (
            next(iter(field.example.items()), ("NAME", "VALUE")) if isinstance(field.example, dict) else None
        )
        help = f"Write {field.flag} NAME=VALUE"
        if example:
            help = f"Write {field.flag} {shlex.quote(f'{example[0]}={flow(example[1])}')}"
        raise UserError(f"{field.flag} {text}: the name is missing", f"{help}.")
    return name.strip(), value


def _block(field: NewField, text: str) -> Any:
    """A value written as YAML, such as {count: 4, cpu: 30}."""
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
        help = f"Write it as {field.flag} {shlex.quote(f'{name}{flow(example)}')}."
        raise UserError(f"{field.flag}: '{text}' is not a block of YAML", help)
    return documents[0]["value"]


def flow(value: Any) -> str:
    """A value as flow YAML on one line."""
    from gangplan.objects import scalar

    if isinstance(value, Written):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str) and _BESIDE.fullmatch(value):
        return value
    return repr(value) if isinstance(value, float) else scalar(value)
