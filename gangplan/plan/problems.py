"""What is wrong with a command, where, and the command that would be right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from gangplan.plan.launchers import FoundLauncher
from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.spec.flow import listed as listed

Path = tuple[str | int, ...]
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Edit:
    """Words of a launcher's command, from `begin` up to `end`, and what should stand there."""

    begin: int
    end: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordProblem:
    """One thing wrong with a launcher: the word at index `at`, what is wrong, what to do, and how it is corrected.

    The help is `hint` and the whole command with all corrections; or `command` alone, which would be right in
    place of the whole one, where nothing else is wrong with it.
    """

    rule: Rule
    at: int
    message: str
    hint: str
    edit: Edit | None = None
    command: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity


def is_pasteable(words: Sequence[str]) -> bool:
    """Whether a command is short enough to stand in a help line, and made of letters that can."""
    letters = "".join(words).replace("\n", "").replace("\t", "")
    return bool(words) and letters.isprintable() and len(listed(words)) <= _LONGEST


def corrected(command: Sequence[str], found: FoundLauncher, edits: Sequence[Edit]) -> tuple[str, ...] | None:
    """The command with a launcher's words changed; None where its script is too deep to be written anew."""
    if found.script is None:
        words = list(command)
        for edit in sorted(edits, key=lambda one: -one.begin):
            words[edit.begin : edit.end] = edit.words
        return tuple(words)
    if not found.script.is_direct:
        return None
    text, places = found.script.text, found.script.words
    for edit in sorted(edits, key=lambda one: -one.begin):
        begin = places[edit.begin].begin if edit.begin < len(places) else places[-1].end
        end = places[edit.end - 1].end if edit.end > edit.begin else begin
        new = " ".join(shlex.quote(word) for word in edit.words)
        if not new and end > begin:  # with the blank that follows
            end += len(text[end:]) - len(text[end:].lstrip(" "))
        elif edit.end == edit.begin:
            new += " "
        text = text[:begin] + new + text[end:]
    return (*command[: found.script.at], text, *command[found.script.at + 1 :])


def script_of(words: Sequence[str]) -> str:
    """Words as one line of a shell's script, in which `$NAME` stays a variable."""
    return " ".join(
        '"' + re.sub(r'(["\\`])', r"\\\1", word) + '"' if "$" in word else shlex.quote(word) for word in words
    )
