"""The parts of a script: statements, simple commands and redirections, each with its place."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gangplan.plan.launchers.shell import ShellWord
from gangplan.records import dataclass

StatementForm = Literal["plain", "if", "loop", "case", "function", "group"]


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection: its operator, with the number before it, and its target."""

    operator: str
    target: str


def is_input_redirect(one: Redirect) -> bool:
    """Return whether a redirection is what a command reads from."""
    return one.operator.lstrip("0123456789") in ("<", "<<", "<<-", "<<<")


@dataclass(slots=True)
class ScriptCommand:
    """A simple command: assignments, words, redirections, its place, and the operator after it.

    `arrays` are the words of array assignments, by the index of the assignment in `sets`; `arithmetic` is what
    `((...))` calculates.
    """

    begin: int
    end: int = 0
    sets: list[ShellWord] = field(default_factory=list)
    arrays: dict[int, list[ShellWord]] = field(default_factory=dict)
    words: list[ShellWord] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    operator: str = ""
    arithmetic: str = ""

    @property
    def texts(self) -> list[str]:
        """The words as texts."""
        return [word.text for word in self.words]


@dataclass(slots=True)
class Statement:
    """A statement at the top level of the script: a command, a pipe, a list, or a compound command.

    `marks` are the words of a compound command's own level: if, then, elif, else, fi; { and }; ( and ).
    """

    form: StatementForm
    begin: int
    end: int
    parts: list[ScriptCommand]
    is_background: bool = False
    name: str = ""
    marks: list[ShellWord] = field(default_factory=list)
