"""Fixing a pydantic error by the one mechanical change that is unambiguous, if there is one.

A fix changes how something is written, never what is requested: the spelling of a field's name, quotes around
a text, the unit that the message proposes for one that Kubernetes does not support.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from gangplan.findings import UNKNOWN_FIELD, FieldPath, Fix
from gangplan.source import Document
from gangplan.source.scalar_fix import quote_scalar
from gangplan.spec.base import NO_HINTS

# Names in other tools that correspond to exactly one field, with the same kind of value. Ambiguous names
# (nodes, replicas, namespace) are only mentioned in the message.
OLD_NAMES = {
    "mem": "memory",
    "ram": "memory",
    "cpus": "cpu",
    "cores": "cpu",
    "cmd": "command",
    "environment": "env",
}
_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def propose_repair_of_spec_field(
    document: Document, path: FieldPath, item: Any, known: Collection[str], fits: Callable[[str, Any], bool]
) -> Fix | None:
    """Return the fix for one of pydantic's errors at `path`, if there is one.

    `known` are the fields that are allowed there, and `fits` returns whether one of them may have a value.
    """
    kind, context = item["type"], item.get("ctx", {})
    if not path or "[key]" in item["loc"]:
        return None
    if kind == UNKNOWN_FIELD:
        return _propose_spelling_of_spec_field(document, path, known, fits)
    if kind == "string_type":
        return _propose_quotes_for_spec_text(document, path, item["input"])
    if kind in ("int_type", "bool_type"):
        return _propose_spec_value_without_quotes(document, path, item["input"], kind)
    if kind == "literal_error":
        return _propose_case_of_spec_word(document, path, item)
    if kind in ("quantity", "duration"):
        return _propose_unit_of_spec_amount(document, path, context.get("hints", NO_HINTS).meant)
    return None


def _propose_spelling_of_spec_field(
    document: Document, path: FieldPath, known: Collection[str], fits: Callable[[str, Any], bool]
) -> Fix | None:
    """Return the fix that renames a field, if a single field is meant.

    It differs from the word only by case, dashes and underscores, is what another tool's name means, or is
    one slip away.
    """
    word = str(path[-1])
    siblings = _find_spec_value_at_path(document.value, path[:-1])
    meant = {name for name in known if _fold_field_name(name) == _fold_field_name(word)}
    meant = meant or {OLD_NAMES.get(word.lower(), "")} & set(
        known
    )  # before slips: cpus is also one slip from gpus
    meant = meant or {name for name in known if is_one_slip(word, name)}
    if len(meant) != 1 or not isinstance(siblings, dict):
        return None
    (name,) = meant
    if name in siblings or not fits(name, siblings[word]):
        return None  # else both would be set, or something else was meant
    return document.fix(path, name, f"the field is called {name}, not {word}", key=True)


def _fold_field_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def is_one_slip(word: str, other: str) -> bool:
    """Return whether adding, omitting or replacing one letter, or swapping two neighbours, makes the other
    word.

    Words of two letters or fewer are never close, because one slip can turn them into almost anything.
    """
    if word == other or abs(len(word) - len(other)) > 1 or min(len(word), len(other)) < 3:
        return False
    short, long = sorted((word, other), key=len)
    start = next(
        (at for at, (one, two) in enumerate(zip(short, long, strict=False)) if one != two), len(short)
    )
    if len(short) != len(long):
        return short[start:] == long[start + 1 :]
    rest = short[start + 1 :] == long[start + 1 :]
    swapped = (
        short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]
    )
    return rest or swapped


def _propose_quotes_for_spec_text(document: Document, path: FieldPath, given: Any) -> Fix | None:
    """Return the fix that quotes a text that YAML reads as a boolean or a number. An empty value is not a
    text."""
    written = document.text(path)
    if not isinstance(given, (bool, int, float)) or not written or re.search(r"[\"\\\s]", written):
        return None
    read = str(given).lower() if isinstance(given, bool) else f"the number {given}"
    return document.fix(
        path, quote_scalar(written), f"{written} without quotes is {read}, and a string is expected"
    )


def _propose_spec_value_without_quotes(
    document: Document, path: FieldPath, given: Any, kind: str
) -> Fix | None:
    """Return the fix that removes the quotes around a number or boolean, if the field needs one."""
    if not isinstance(given, str) or not document.is_quoted(path):
        return None
    if kind == "int_type" and _WHOLE.fullmatch(given):
        return document.fix(path, given, f"in quotes {given} is a string, and a number is expected")
    if kind == "bool_type" and given in ("true", "false"):
        return document.fix(path, given, f"in quotes {given} is a string, and true or false is expected")
    return None


def _propose_case_of_spec_word(document: Document, path: FieldPath, item: Any) -> Fix | None:
    """Return the fix for a value that differs from one allowed word only by case."""
    given, expected = item["input"], str(item.get("ctx", {}).get("expected", ""))
    words = {word for word in re.findall(r"'([^']*)'", expected) if word.lower() == str(given).lower()}
    if not isinstance(given, str) or len(words) != 1:
        return None
    (word,) = words
    written = document.like(path, word)
    return document.fix(path, written, f"it is written {word}") if written else None


def _propose_unit_of_spec_amount(document: Document, path: FieldPath, meant: str) -> Fix | None:
    """Return the fix with the only amount that can be meant, if a unit was written.

    An amount without a unit is not guessed, and if two amounts are possible, only the user knows which one is
    meant.
    """
    given = document.text(path)
    if not meant or given is None or not re.search(r"[A-Za-z]", given):
        return None
    written = document.like(path, meant)
    return document.fix(path, written, f"{given} is not a valid amount") if written else None


def _find_spec_value_at_path(value: Any, path: FieldPath) -> Any:
    for step in path:
        if not isinstance(value, (dict, list)):
            return None
        try:
            value = value[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return value
