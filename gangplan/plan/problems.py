"""Problems of a command, their positions, and the corrected command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from gangplan.plan.launchers import FoundLauncher
from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.spec.flow import format_flow_list as format_flow_list

_LONGEST = 400
_KUBELET_REFERENCE = re.compile(r"\$\(([A-Z_][A-Z0-9_]*)\)")


@dataclass(frozen=True, slots=True)
class WordEdit:
    """Words of a launcher's command, from `begin` up to `end`, and their replacement."""

    begin: int
    end: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordProblem:
    """A problem of a launcher: the word at index `at`, what is wrong, what to do, and its correction.

    The help is `hint` and the whole command with all corrections. If `command` is set and nothing else is
    wrong with it, it replaces the whole command.
    """

    rule: Rule
    at: int
    message: str
    hint: str
    edit: WordEdit | None = None
    command: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """The severity of its rule."""
        return self.rule.severity


def is_pasteable(words: Sequence[str]) -> bool:
    """Return whether a command is short enough for a help line and contains only printable characters."""
    letters = "".join(words).replace("\n", "").replace("\t", "")
    return bool(words) and letters.isprintable() and len(format_flow_list(words)) <= _LONGEST


def correct_launcher_words_in_command(
    command: Sequence[str], found: FoundLauncher, edits: Sequence[WordEdit]
) -> tuple[str, ...] | None:
    """Return the command with a launcher's words changed; None if its script is nested too deeply, or if a
    variable holds them."""
    if found.script is None:
        words = list(command)
        for edit in sorted(edits, key=lambda one: -one.begin):
            words[edit.begin : edit.end] = edit.words
        return tuple(words)
    if not found.script.is_direct:
        return None
    text, places = found.script.text, found.script.words
    if any(one.is_part for edit in edits for one in places[edit.begin : max(edit.end, edit.begin + 1)]):
        return None
    written = {one.text: text[one.begin : one.end] for one in places if not one.is_part}
    for edit in sorted(edits, key=lambda one: -one.begin):
        begin = places[edit.begin].begin if edit.begin < len(places) else places[-1].end
        end = places[edit.end - 1].end if edit.end > edit.begin else begin
        new = " ".join(written.get(word) or shlex.quote(word) for word in edit.words)
        if not new and end > begin:  # including the blank after it
            end += len(text[end:]) - len(text[end:].lstrip(" "))
        elif edit.end == edit.begin:
            new += " "
        text = text[:begin] + new + text[end:]
    return (*command[: found.script.at], text, *command[found.script.at + 1 :])


def join_shell_words(words: Sequence[str]) -> str:
    """Return words as one line of a shell script, in which `$NAME` stays a variable.

    `$(NAME)` in capitals becomes one, too: it is Kubernetes' form, and a shell would take it for a command.
    """
    return " ".join(
        '"' + re.sub(r'(["\\`])', r"\\\1", _KUBELET_REFERENCE.sub(_write_shell_variable, word)) + '"'
        if "$" in word
        else shlex.quote(word)
        for word in words
    )


def _write_shell_variable(found: re.Match[str]) -> str:
    following = found.string[found.end() : found.end() + 1]
    return f"${{{found[1]}}}" if following.isalnum() or following in ("_", "[") else f"${found[1]}"
