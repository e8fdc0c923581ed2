"""Find launches inside `$(...)` and backquotes, whose output a script reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from gangplan.imports.scripted.conditions import split_shell_words
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ShellValue
from gangplan.plan.launchers.shell import ShellReader, UnreadableError

_ENDS = frozenset({"|", "||", "&&", "&", ";", "|&", "\n"})
# A single process answers a question; it does not train.
_ONE = re.compile(r"(?:^|\s)(?:-np?|--ntasks|--n)[= ]?1(?:\s|$)")
# Options with which a launcher reports about itself and starts nothing.
_FILE = re.compile(r"(?:>>?|&>>?|>\||\btee(?:\s+-\w+)*)\s*\"?([\w./${}-]+)")
_ASKS = frozenset({"--version", "-V", "--help", "-h", "-info"})


def is_launch_captured(
    part: ScriptCommand,
    text: str,
    is_launch: Callable[[Sequence[str]], bool],
    output: Callable[[str], ShellValue],
) -> bool:
    """Return whether a command reads what a launch prints, as a word, a value or a file such as `<(srun ...)`."""
    texts = [text[word.begin : word.end] for word in (*part.sets, *part.words)]
    texts += [
        f"${one.target.lstrip('<>')}" for one in part.redirects if one.target.startswith(("(", "<(", ">("))
    ]
    return any(
        has_launch_in_command_substitution(one, is_launch, output)
        for one in texts
        if "$(" in one or "`" in one
    )


def has_launch_in_command_substitution(
    text: str, is_launch: Callable[[Sequence[str]], bool], output: Callable[[str], ShellValue]
) -> bool:
    """Return whether a word has a command substitution that starts ranks.

    `output` knows what other commands print, such as the name of a host. Raises UnreadableError for a
    substitution without an end.
    """
    for command in _find_shell_command_substitutions(text):
        if output(command) is not None or _ONE.search(command):
            continue
        try:
            words = split_shell_words(command)
        except UnreadableError:
            continue
        commands = [list(group) for is_end, group in groupby(words, _ENDS.__contains__) if not is_end]
        if any(not _ASKS & set(one) and is_launch(one) for one in commands):
            return True
    return False


def _find_shell_command_substitutions(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text.startswith("$(", at) and not text.startswith("$((", at):
            end = ShellReader(text).balanced(at + 2, "(", ")")
            yield text[at + 2 : end - 1].strip()
            at = end
        elif text[at] == "`" and (end := text.find("`", at + 1)) > 0:
            yield text[at + 1 : end].strip()
            at = end + 1
        else:
            at += 1


def find_output_that_is_read(items: Sequence[ScriptItem], number: int, text: str) -> str:
    """Return what is behind the words of a launch, such as `> out.log`, if a later command names its file."""
    item = items[number]
    if not item.words:
        return ""
    tail = text[max(word.end for word in item.words) : item.end].strip()
    files = {one for one in _FILE.findall(tail) if one not in ("tee", "/dev/null")}
    later = [
        text[one.begin : one.end]
        for one in items[number + 1 :]
        if one.kind in ("keep", "launch", "program") or one.joined or one.is_guard
    ]
    is_read = any(re.search(rf"(?<![\w.]){re.escape(file)}(?![\w.])", one) for file in files for one in later)
    return tail if is_read else ""
