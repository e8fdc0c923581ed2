"""Evaluate shell conditions before the script runs: `[ "$SLURM_NNODES" -gt 1 ]`, `[[ $MODE == full ]]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.hosts import is_own_host
from gangplan.imports.scripted.idioms import THIS_HOST
from gangplan.imports.scripted.parts import Statement
from gangplan.plan.launchers.shell import ShellReader, UnreadableError

_NUMBERS = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
}

_OUTSIDE = re.compile(r"\$\{?([A-Za-z_]\w*|[1-9])")
# The operators between conditions, "or" before "and"; and words that no plain list of conditions has.
_DOUBLE, _TEST = ("||", "&&"), ("-o", "-a")
_BEYOND = frozenset({"(", ")", r"\(", r"\)", "[", "]", "]]", ";", "\n"})


def evaluate_shell_condition(text: str, scope: ScriptScope) -> bool | None:
    """Return whether a condition holds; None if it is only known when the script runs."""
    bare = text.strip().rstrip(";").strip()
    if calculated := re.fullmatch(r"\(\(((?:(?!\)\)).)*)\)\)", bare, re.DOTALL):
        number = scope.calculate(calculated[1])
        return None if number is None else number != 0
    if (listed := _split_condition_commands(bare)) is not None:
        return _evaluate_condition_commands(listed, scope)
    if bare.startswith("! "):
        inner = evaluate_shell_condition(bare[2:], scope)
        return None if inner is None else not inner
    found = re.fullmatch(r"(?:\[\[\s(.*)\s\]\]|\[\s(.*)\s\]|test\s(.*))", bare, re.DOTALL)
    if found is None:
        return {"true": True, "false": False, ":": True}.get(bare)
    inside = next(one for one in found.groups() if one is not None)
    try:
        words = split_shell_words(inside)
    except UnreadableError:
        return None
    if not _BEYOND.isdisjoint(words):
        return None
    is_new = found[1] is not None
    if len(words) == 4 and words[0] == "!" and not is_new:
        # POSIX: of four words, `!` negates the other three.
        inner = _evaluate_shell_condition_list(words[1:], _TEST, scope)
        return None if inner is None else not inner
    return _evaluate_shell_condition_list(words, _DOUBLE if is_new else _TEST, scope)


def _split_condition_commands(text: str) -> list[str] | None:
    """Split `[ A ] || [ B ] && C` into its commands and the operators between them; None for one command."""
    try:
        words = split_shell_words(text)
    except UnreadableError:
        return None
    found, command, is_inside = list[str](), list[str](), False
    for word in words:
        is_inside = word in ("[", "[[") or (is_inside and word not in ("]", "]]"))
        if word in _DOUBLE and not is_inside:
            found += [" ".join(command), word]
            command = []
        else:
            command.append(word)
    return [*found, " ".join(command)] if found else None


def _evaluate_condition_commands(listed: Sequence[str], scope: ScriptScope) -> bool | None:
    """Evaluate commands that `&&` and `||` join, from left to right, as a shell does."""
    status = evaluate_shell_condition(listed[0], scope)
    for mark, command in zip(listed[1::2], listed[2::2], strict=True):
        decisive = mark == "||"
        values = status, evaluate_shell_condition(command, scope)
        status = decisive if decisive in values else None if None in values else not decisive
    return status


def _evaluate_shell_condition_list(
    words: list[str], marks: tuple[str, str], scope: ScriptScope
) -> bool | None:
    """Evaluate a list of conditions: "and" binds tighter than "or", both in `[[` and in `[`."""
    for mark, decisive in zip(marks, (True, False), strict=True):
        if mark in words[1:-1]:
            at = words.index(mark, 1)
            values = (
                _evaluate_shell_condition_list(words[:at], marks, scope),
                _evaluate_shell_condition_list(words[at + 1 :], marks, scope),
            )
            if decisive in values:
                return decisive
            return None if None in values else not decisive
    return _evaluate_simple_shell_condition(words, scope)


def split_shell_words(text: str) -> list[str]:
    """Split a piece of script into words, as they are written."""
    reader, found = ShellReader(text), list[str]()
    while True:
        reader.blank()
        if reader.at >= len(text):
            return found
        if text[reader.at] in "<>()&|;\n":
            end = reader.at + 1 + (text[reader.at : reader.at + 2] in _DOUBLE)
            found.append(text[reader.at : end])
            reader.at = end
            continue
        word = reader.word()
        found.append(text[word.begin : word.end])


def _evaluate_simple_shell_condition(words: list[str], scope: ScriptScope) -> bool | None:
    if words[:1] == ["!"]:
        inner = _evaluate_simple_shell_condition(words[1:], scope)
        return None if inner is None else not inner
    try:
        texts = [scope.text(word) for word in words]
        is_empty = scope.is_empty(words[-1]) if words else None
    except UnreadableError:
        return None
    if len(texts) == 2 and texts[0] in ("-z", "-n"):
        return None if is_empty is None else is_empty == (texts[0] == "-z")
    if len(texts) == 1:
        return None if is_empty is None else not is_empty
    if len(texts) == 3 and THIS_HOST in texts and texts[1] in ("=", "==", "!="):
        other = words[2] if texts[0] == THIS_HOST else words[0]
        return (texts[1] != "!=") if is_own_host(other) else None
    if len(texts) != 3 or texts[0] is None or texts[2] is None:
        return None
    left, how, right = texts[0], texts[1] or "", texts[2]
    if how in _NUMBERS:
        a, b = scope.number(left), scope.number(right)
        return None if a is None or b is None else _NUMBERS[how](a, b)
    if how in ("=", "==", "!=") and not any(mark in right for mark in "*?["):
        return (left == right) == (how != "!=")
    return None


def find_open_condition_names(one: Statement, text: str, scope: ScriptScope) -> list[str]:
    """Return the variables in the conditions of an `if` whose values a user can give."""
    marks = [mark for mark in one.marks if mark.text in ("if", "elif", "then")]
    heads = [
        text[first.end : then.begin]
        for first, then in pairwise(marks)
        if then.text == "then" and first.text != "then"
    ]
    names = [found[1] for head in heads for found in _OUTSIDE.finditer(head)]
    return [name for name in dict.fromkeys(names) if scope.can_be_given(name)]
