"""Follow the arguments of a script: `--set 1=VALUE`, `set -- a b` and `shift`, as bash 5.2 reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.items import ItemKind, ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ExpandedWord, ShellValue, WordPiece

_NUMBERS = tuple(map(str, range(1, 10)))
ARGUMENT_NAMES = frozenset({"@", "*", "#", *_NUMBERS})
_READS = re.compile(
    r"\$\{?[#!]?(?:[@*#]|[1-9](?![0-9]*:?/))|\bfor\s+\w+\s*(?:[;\n]|do\b)|\b(?:getopts|shift)\b"
)


def is_reading_script_arguments(texts: Iterable[str]) -> bool:
    """Return whether pieces of script read their arguments."""
    return any(map(_READS.search, texts))


def fill_script_arguments(values: Mapping[str, str]) -> dict[str, ShellValue]:
    """Return the variables of the arguments that a user gives; those between them that are missing stay open."""
    numbers = sorted(int(name) for name in values if name.isdigit() and name != "0")
    if numbers != list(range(1, len(numbers) + 1)):
        missing = (str(one) for one in range(1, numbers[-1]) if one not in numbers)
        return {**dict.fromkeys(missing), "#": str(numbers[-1])}
    return _list_argument_variables(
        [ExpandedWord((WordPiece(values[str(one)], is_quoted=True),)) for one in numbers], is_set=False
    )


def find_arguments_of_user(values: Mapping[str, ShellValue]) -> ScriptItem | None:
    """Return the line that gives the run's script the arguments of the user, if it reads any."""
    words = values.get("@")
    if not isinstance(words, tuple):
        return None
    text = f"set -- {' '.join(shlex.quote(one.text) for one in words)}"
    return ScriptItem("set", 0, 0, [], names=set(ARGUMENT_NAMES), text=text)


def record_script_arguments(
    fields: Sequence[ExpandedWord], scope: ScriptScope, is_sure: bool
) -> ItemKind | None:
    """Record the arguments that `set` or `shift` leave; return None for any other command.

    What only a shell can tell stays in the script, and makes the arguments open; so does a command that may not
    run.
    """
    texts = [one.text for one in fields]
    while texts[:1] in (["eval"], ["builtin"], ["command"]):
        texts, fields = texts[1:], fields[1:]
    given = find_new_script_arguments(texts)
    if given is None:
        return None
    words = fields[given:] if texts[0] == "set" else _shift(texts, scope)
    if words is None or not is_sure or any(one.is_open for one in words):
        scope.values |= dict.fromkeys(ARGUMENT_NAMES)
        return "keep" if texts[0] == "set" else "set"
    for name in [one for one in scope.values if one.isdigit()]:
        del scope.values[name]
    scope.values |= _list_argument_variables(words, is_set=True)
    return "set"


def find_new_script_arguments(texts: Sequence[str]) -> int | None:
    """Return where the arguments begin that `set` sets, or a place in `shift`; None for other commands."""
    if texts[:1] == ["shift"]:
        return 1
    if texts[:1] != ["set"]:
        return None
    at = 1
    while at < len(texts) and texts[at][:1] in ("-", "+") and texts[at] not in ("-", "--"):
        at += 2 if texts[at].endswith("o") else 1
    if at < len(texts) and texts[at] in ("-", "--"):
        return at + 1 if texts[at] == "--" or at + 1 < len(texts) else None
    return at if at < len(texts) else None


def may_change_script_arguments(parts: Sequence[ScriptCommand]) -> bool:
    """Return whether one of several commands may set or shift the arguments."""
    return any(find_new_script_arguments(_strip_eval(part.texts)) is not None for part in parts)


def _strip_eval(texts: list[str]) -> list[str]:
    return texts[1:] if texts[:1] in (["eval"], ["builtin"], ["command"]) else texts


def _shift(texts: Sequence[str], scope: ScriptScope) -> Sequence[ExpandedWord] | None:
    words = scope.values.get("@")
    if words == "":
        words = ()
    count = int(texts[1]) if len(texts) > 1 and texts[1].isdigit() else 1 if len(texts) == 1 else None
    if not isinstance(words, tuple) or count is None:
        return None
    return words[count:] if count <= len(words) else words


def _list_argument_variables(words: Sequence[ExpandedWord], is_set: bool) -> dict[str, ShellValue]:
    found: dict[str, ShellValue] = dict.fromkeys(_NUMBERS, "") if is_set else {}
    found |= {str(number): one.text for number, one in enumerate(words, 1)}
    return {**found, "#": str(len(words)), **dict.fromkeys("@*", tuple(words) or "")}
