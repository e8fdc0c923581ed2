"""Keep what ends a script early, says with which status it ends, or is done at its end: guards, `exit`, `trap`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand, Statement
from gangplan.imports.scripted.pieces import fill_script_variables, find_variable_names
from gangplan.imports.scripted.positional import is_reading_script_arguments
from gangplan.imports.scripted.statements import parse_shell_statements
from gangplan.plan.launchers.shell import UnreadableError

_STATUS = re.compile(r"\$(?:\?|\{\?\}|\{PIPESTATUS\b|PIPESTATUS\b)")
# A condition about these would end every run: they are the old cluster's, and a run has none of them.
_OF_OLD_CLUSTER = re.compile(
    r"\b(?:module|ml|conda|mamba|micromamba|spack|squeue|sinfo|scontrol|sacct|qstat|pbsnodes|SLURM_(?:JOB_)?NODELIST|PBS_NODEFILE)\b"
)
_AT_END = frozenset({"EXIT", "0", "ERR"})
# What a handler may do that a run does by itself: its pods end with it.
_ENDING = frozenset({"kill", "pkill", "wait", "exit", "trap"})


def is_script_guard(parts: Sequence[ScriptCommand], raw: str) -> bool:
    """Return whether commands may end the script for a reason that is there in a run too."""
    leaves = any(part.texts[:1] == ["exit"] for part in parts)
    is_outside = is_reading_script_arguments([raw]) or _OF_OLD_CLUSTER.search(raw)
    return leaves and not re.match(r"\((?!\()", raw) and not is_outside


def add_script_guards(
    items: Sequence[ScriptItem], written: dict[int, str], text: str, values: Mapping[str, str]
) -> None:
    """Add the compound commands that may end the script before something that is written, and its own status."""
    last = max(written, default=-1)
    for number, item in enumerate(items):
        raw = text[item.begin : item.end]
        if item.is_guard and number < last:
            written[number] = fill_script_variables(raw, values)
        elif number > last >= 0 and _ends_with_status(items, written, text, number):
            written[number] = raw


def _ends_with_status(
    items: Sequence[ScriptItem], written: Mapping[int, str], text: str, number: int
) -> bool:
    """Return whether an item is an `exit` with the status of a command before the last that is written."""
    item = items[number]
    if item.kind != "drop" or item.joined or not item.parts or item.parts[0].texts[:1] != ["exit"]:
        return False
    raw = text[item.begin : item.end]
    names = find_variable_names([raw])
    states = [
        one
        for one, other in enumerate(items[:number])
        if other.kind == "set" and other.names & names and _STATUS.search(text[other.begin : other.end])
    ]
    return bool(states) and any(one > states[-1] for one in written)


def find_trap(
    texts: Sequence[str], is_idle: Callable[[ScriptCommand, list[str]], bool]
) -> tuple[bool, frozenset[str]] | None:
    """Return whether a `trap` is for the end of the script, and its signals; None if its handler does nothing.

    `is_idle` says whether a command only prints or looks.
    """
    words = [one for one in texts[1:] if one != "--"]
    if texts[:1] != ["trap"] or len(words) < 2 or words[0].startswith("-") or not words[0].strip():
        return None
    signals = frozenset(one.upper().removeprefix("SIG") for one in words[1:])
    try:
        parts = [part for one in parse_shell_statements(words[0]) for part in one.parts]
    except UnreadableError:
        parts = []
    acting = [part for part in parts if part.words and part.texts[0] not in _ENDING]
    if parts and all(is_idle(part, part.texts) for part in acting) and "requeue" not in words[0]:
        return None
    return bool(signals & _AT_END), signals


def ask_about_trap(item: ScriptItem, signals: frozenset[str]) -> None:
    """Ask about what the script does where a signal comes."""
    shown = ", ".join(sorted(signals))
    item.why = (
        f"what the script does on {shown} is not done in a run, whose programs get SIGTERM before they end"
    )
    item.help = "Let the program handle SIGTERM; gracePeriod: is the time that it has."


def is_guard_statement(one: Statement, text: str) -> bool:
    """Return whether a compound command may end the script."""
    return one.form in ("if", "case", "group", "loop") and is_script_guard(
        one.parts, text[one.begin : one.end]
    )
