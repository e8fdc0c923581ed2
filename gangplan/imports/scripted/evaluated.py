"""The words of a command as the shell that runs it reads them: after expansion, `eval`, and ssh to its own host."""

from __future__ import annotations

import re

from gangplan.imports.scripted.conditions import split_shell_words
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.hosts import build_shell_command, unwrap_remote_shell
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ExpandedWord
from gangplan.plan.launchers.shell import ShellWord

# What makes a text more than the words of one command, outside of quotes.
_SEVERAL, _QUOTED = re.compile(r"[;&|<>\n]"), re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.")


def expand_command_words(
    part: ScriptCommand, text: str, scope: ScriptScope
) -> tuple[list[ExpandedWord], list[ShellWord]]:
    """Return the words of a command after expansion, each with its word of the script."""
    fields, words = list[ExpandedWord](), list[ShellWord]()
    for word in part.words:
        found = scope.fields(text[word.begin : word.end])
        fields += found
        words += [word] * len(found)
    if fields and fields[0].text == "eval" and len(fields) > 1:
        joined = " ".join(one.text for one in fields[1:])
        if _SEVERAL.search(_QUOTED.sub("", joined)):
            fields = build_shell_command(fields[1:])
            words = [words[-1]] * len(fields)
        elif not any(one.is_open for one in fields[1:]):
            fields = [one for text in split_shell_words(joined) for one in scope.fields(text)]
            words = [words[-1]] * len(fields)
    inner = unwrap_remote_shell(fields)
    return inner, words if inner is fields else [words[-1]] * len(inner)
