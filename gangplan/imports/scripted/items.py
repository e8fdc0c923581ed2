"""Results of walking through a script: pipelines and compound commands, and what prevents an import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from gangplan.findings import FieldPath
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ExpandedWord, ShellValue
from gangplan.plan.launchers.shell import ShellWord
from gangplan.records import dataclass

# set: assigns variables; drop: useless to a run; keep: goes into the command; cd: changes the folder; launch:
# starts ranks; program: is the launch if nothing else is; file: another script is read;
# option: sets an option of the shell.
ItemKind = Literal["set", "drop", "keep", "cd", "launch", "program", "file", "option"]


@dataclass(slots=True)
class ScriptItem:
    """A pipeline or compound command at the top level of the script, and what becomes of it."""

    kind: ItemKind
    begin: int
    end: int
    parts: list[ScriptCommand]
    why: str = ""
    names: set[str] = field(default_factory=set)
    exports: dict[str, ShellValue] = field(default_factory=dict)
    extends: set[str] = field(default_factory=set)  # variables that it sets from what they were outside
    unsets: set[str] = field(default_factory=set)
    fields: list[ExpandedWord] = field(default_factory=list)
    words: list[ShellWord] = field(default_factory=list)
    folder: str = ""
    is_home: bool = False  # a folder that is the run's if no subshell is around it
    shells: tuple[int, ...] = ()  # the subshells around it, where something follows them
    is_background: bool = False
    has_background: bool = False  # a compound command that starts others in the background
    reach: int = 1  # the items from it on that one `&` is for
    joined: str = ""  # the operator before it, if it is part of a list
    status: bool | None = None  # whether it succeeds, as far as that is known before the script runs
    is_skipped: bool = False
    is_guard: bool = False  # it may end the script
    is_function: bool = False
    has_program: bool = False
    text: str = ""
    tail: str = ""  # redirections and pipes behind a launch, whose files later commands read
    help: str = ""  # what to do about what becomes of it, where that is a question
    paths: list[FieldPath] = field(default_factory=list)


@dataclass(slots=True)
class ScriptRefusal:
    """What prevents an import: where it begins, what it is, and what would help."""

    begin: int
    message: str
    help: str


def find_last_script_action(items: Sequence[ScriptItem]) -> int:
    """Return the number of the last item that starts or does something; what is set behind it has no effect."""
    acting = (number for number, one in enumerate(items) if one.kind in ("launch", "program", "keep"))
    return max(acting, default=len(items))


def refuse_launch_in_shell_block(form: str, begin: int, names: Sequence[str] = ()) -> ScriptRefusal:
    """Return the refusal of a launch in a loop, case or condition whose rounds and branches are not known.

    `names` are variables that decide it and that a user can give.
    """
    what = {"loop": "a loop starts it several times", "case": "a case decides what starts"}.get(
        form, "a condition decides what starts"
    )
    help = (
        "Write the launch of one run without it."
        if form == "loop"
        else f"Give what decides it: {' '.join(f'--set {name}=VALUE' for name in names)}; or write the launch of one run without it."
        if names
        else "Give what decides it (--set NAME=VALUE), or write the launch of one run without it."
    )
    return ScriptRefusal(begin, f"{what}, and only running the script tells how", help)


def refuse_launch_in_function(begin: int, name: str) -> ScriptRefusal:
    """Return the refusal of a function that starts the ranks."""
    help = "Write the launch of one run without a function."
    return ScriptRefusal(begin, f"the function {name} starts the ranks", help)


def refuse_start_on_host(begin: int) -> ScriptRefusal:
    """Return the refusal of a part that `ssh` starts on a host of its own."""
    help = "Write the program that each host runs without it: every worker of a run starts it itself."
    return ScriptRefusal(begin, "it starts a part of the job on a host by ssh", help)


def refuse_several_programs(begin: int) -> ScriptRefusal:
    """Return the refusal of a launch of several programs, each with its own number of ranks."""
    message = "a launch starts several programs, each with ranks of its own"
    return ScriptRefusal(begin, message, "Import each program as a job of its own.")


def refuse_reader_of_launch(begin: int) -> ScriptRefusal:
    """Return the refusal of what reads the output of a launch: a variable, or a program behind a pipe."""
    message = "the script reads what the launch prints, and only running it would tell what comes of that"
    help = "Write the launch of one run by itself; let its program write what is needed to a file."
    return ScriptRefusal(begin, message, help)
