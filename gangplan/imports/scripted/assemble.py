"""Assemble the command of a run from what a script sets, prepares and starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.imports.scripted.background import find_background_lines
from gangplan.imports.scripted.guards import add_script_guards
from gangplan.imports.scripted.idioms import ALL_HOSTS, FIRST_HOST, THIS_HOST
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.launch import FOREIGN_LAUNCHER_NAMES, ScriptLaunch
from gangplan.imports.scripted.lists import (
    add_list_conditions,
    has_here_document,
    join_script_lines,
)
from gangplan.imports.scripted.options import is_shell_option_needed
from gangplan.imports.scripted.pieces import (
    ExpandedWord,
    WordPiece,
    fill_script_variables,
    find_variable_names,
    is_computed,
)
from gangplan.imports.scripted.positional import ARGUMENT_NAMES, is_reading_script_arguments
from gangplan.imports.scripted.variables import MEETING_POINT, RANKED, build_batch_variables
from gangplan.plan.launchers import (
    UnreadableError,
    find_launcher_at,
    find_launchers,
    find_script_index,
    is_python,
    program_name_of,
)
from gangplan.records import dataclass

_HOSTS = {FIRST_HOST: "$MASTER_ADDR", ALL_HOSTS: "$MASTER_ADDR", THIS_HOST: "$HOSTNAME"}
_ASKS_HOSTS = re.compile(r"\bscontrol\b|\bsqueue\b|SLURM_(?:JOB_)?NODELIST|PBS_NODEFILE")


@dataclass(slots=True)
class AssembledCommand:
    """The command, the items of the script in it, and those that ask the scheduler for hosts."""

    words: tuple[str, ...]
    text: str
    kept: list[ScriptItem]
    asks_hosts: list[ScriptItem]


def find_rank_framework(texts: Sequence[str]) -> str:
    """Return how the program started by the scheduler's launcher starts ranks itself.

    The result is torch, mpi or foreign; empty if it starts none.
    """
    try:
        found = find_launchers(texts, None)
    except UnreadableError:
        return ""
    kinds = {one.start.launcher.kind for one in found}
    if kinds & {"torch", "accelerate"}:
        return "torch"
    if kinds & {"mpi", "horovod", "deepspeed"}:
        return "mpi"
    return "foreign" if kinds and any(one.start.name in FOREIGN_LAUNCHER_NAMES for one in found) else ""


def assemble_command(
    items: Sequence[ScriptItem],
    launches: Mapping[int, ScriptLaunch],
    text: str,
    start: str,
    values: Mapping[str, str],
    forced: set[int],
    own: Mapping[int, Sequence[str]],
) -> AssembledCommand:
    """Assemble the command of the run.

    `launches` are by the number of their item, and `values` are the scheduler's variables as a run expresses
    them; `own` are the assignments before a launch.
    """
    outer = {**values, **build_batch_variables(start)} if start in ("mpi", "torch") else values
    written, asks = _write_kept_items(items, {*launches}, forced, text, (values, outer))
    add_list_conditions(items, written, text, outer)
    add_script_guards(items, written, text, outer)
    behind = find_background_lines(items, launches, written, text)
    is_alone = len(written) == 1 and not own
    is_alone &= not any(items[one].tail or _is_computed_once(items, launches[one], start) for one in launches)
    batch = _list_batch_values(launches, start, outer, is_alone)
    lines = _write_launch_lines(items, launches, start, (values, batch), is_alone, forced, own)
    written |= {
        number: _write_list_line(items, number, one, number in behind, values)
        for number, one in lines.items()
    }
    if is_alone and all(isinstance(one, tuple) for one in lines.values()):
        ((number, only),) = lines.items()
        at = find_script_index(only, 0) if isinstance(only, tuple) else -1
        if at < 0:
            return AssembledCommand(tuple(only), shlex.join(only), [], asks)
        written = {number: only[at]}  # the shell of the launch may call functions of the script
        asks += _add_needed_script_items(items, written, text, values, has_own_arguments=True)
        script = "\n".join(written[one] for one in sorted(written))
        kept = [items[one] for one in sorted(written) if one not in launches]
        return AssembledCommand((*only[:at], script, *only[at + 1 :]), script, kept, asks)
    asks += _add_needed_script_items(items, written, text, values)
    if is_shell_option_needed(written.values()):
        written |= {
            number: one.text or text[one.begin : one.end]
            for number, one in enumerate(items)
            if one.kind == "option"
        }
    script = join_script_lines(items, written, behind)
    kept = [items[number] for number in sorted(written) if number not in launches]
    return AssembledCommand(("bash", "-c", script), script, kept, asks)


def _write_kept_items(
    items: Sequence[ScriptItem],
    launches: set[int],
    forced: set[int],
    text: str,
    values: tuple[Mapping[str, str], Mapping[str, str]],
) -> tuple[dict[int, str], list[ScriptItem]]:
    """Return the lines that stay, by number, with empty ones for launches; and items that ask for hosts.

    `values` are the scheduler's variables inside of ranks, and in the script itself.
    """
    written, asks = dict[int, str](), list[ScriptItem]()
    for number, item in enumerate(items):
        if number in launches:
            written[number] = ""
        elif item.kind == "keep" or number in forced:
            raw = item.text or text[item.begin : item.end]
            for host, variable in _HOSTS.items():
                raw = raw.replace(host, variable)
            if _ASKS_HOSTS.search(raw):
                asks.append(item)
            else:
                is_inner = item.is_function or has_here_document(item.parts)
                written[number] = fill_script_variables(raw, values[0] if is_inner else values[1])
    return written, asks


def _write_launch_lines(
    items: Sequence[ScriptItem],
    launches: Mapping[int, ScriptLaunch],
    start: str,
    values: tuple[Mapping[str, str], Mapping[int, Mapping[str, str]]],
    is_alone: bool,
    forced: set[int],
    own: Mapping[int, Sequence[str]],
) -> dict[int, tuple[str, ...] | str]:
    """Return the lines of launches, each with the variables that the script gives it.

    `values` are the scheduler's variables inside of ranks, and to the shell of the script for each launch.
    """
    inner, batch = values
    before = {
        number: [fill_script_variables(word, {**inner, **batch[number]}) for word in words]
        for number, words in own.items()
    }
    lines: dict[int, tuple[str, ...] | str] = {
        number: fill_script_variables(
            shell_of([field.text for field in one.program]), {**inner, **batch[number]}
        )
        if items[number].has_program and not is_alone
        else _write_batch_script_launch_line(
            replace(one, program=[_fill_in_batch_values(word, batch[number]) for word in one.program]),
            start,
            inner,
            is_alone,
            _list_carried_variables(items, forced, number) + before.get(number, []),
        )
        for number, one in launches.items()
    }
    return lines | {number: _set_before_launch(lines[number], words) for number, words in before.items()}


def _list_batch_values(
    launches: Mapping[int, ScriptLaunch], start: str, outer: Mapping[str, str], is_alone: bool
) -> dict[int, Mapping[str, str]]:
    """Return the variables of a rank for each launch, as the shell of the script reads them.

    It is the first task of its job, unless the workers of a run start the script by themselves.
    """
    first = dict.fromkeys(RANKED, "0")
    others = {name: outer[name] for name in RANKED if name in outer} if start in ("mpi", "torch") else {}
    return {
        number: first if one.starter or start == "mpi" else {} if is_alone else others
        for number, one in launches.items()
    }


def _fill_in_batch_values(word: ExpandedWord, values: Mapping[str, str]) -> ExpandedWord:
    """Return a word with variables that the shell of the script expands, and not a shell that it starts."""
    pieces = []
    for one in word.pieces:
        text = fill_script_variables(one.text, values) if one.is_open else one.text
        is_open = one.is_open and not (text != one.text and text.isdigit())
        pieces.append(WordPiece(text, is_open, one.is_quoted))
    return ExpandedWord(tuple(pieces))


def _is_computed_once(items: Sequence[ScriptItem], launch: ScriptLaunch, start: str) -> bool:
    """Return whether the script computes words of a launch, which are the same for all of its ranks."""
    if start not in ("mpi", "torch") or not launch.starter:
        return False
    texts = [piece.text for one in launch.program for piece in one.pieces if piece.is_open]
    names = {name for item in items if item.kind == "set" for name in item.names}
    return bool(names & find_variable_names(texts)) or any(map(is_computed, texts))


def _set_before_launch(line: tuple[str, ...] | str, sets: Sequence[str]) -> str:
    """Return the line of a launch with the variables that only this launch has."""
    text = shlex.join(line) if isinstance(line, tuple) else line
    if text.startswith("mpirun -np {ranks} env "):
        return text
    if re.search(r"[;&|\n]", text):
        return f"(\nexport {' '.join(sets)}\n{text}\n)"
    return f"{' '.join(sets)} {text}"


def _write_list_line(
    items: Sequence[ScriptItem],
    number: int,
    line: tuple[str, ...] | str,
    is_background: bool,
    values: Mapping[str, str],
) -> str:
    """Return the line of a launch; a script of several commands stays together where `&&` or `||` joins it."""
    text = shlex.join(line) if isinstance(line, tuple) else line
    tail = fill_script_variables(items[number].tail, values)
    is_listed = (
        bool(tail)
        or is_background
        or items[number].joined
        or (number + 1 < len(items) and items[number + 1].joined)
    )
    is_long = not isinstance(line, tuple) and re.search(r"[;&|\n]", text)
    text = f"{{\n{text}\n}}" if is_listed and is_long else text
    return f"{text} {tail}" if tail else text


def _add_needed_script_items(
    items: Sequence[ScriptItem],
    written: dict[int, str],
    text: str,
    values: Mapping[str, str],
    has_own_arguments: bool = False,
) -> list[ScriptItem]:
    """Add assignments of variables and functions that are used, and what these need in turn.

    An inner shell has arguments of its own. Return the functions that only a scheduler could answer.
    """
    asks: dict[int, ScriptItem] = {}
    last = max(written, default=0)
    while True:
        wanted = find_variable_names(written.values())
        if not has_own_arguments and is_reading_script_arguments(written.values()):
            wanted |= ARGUMENT_NAMES
        called = "\n".join(written.values())
        added = {}
        for number, item in enumerate(items):
            is_met = item.names and item.names <= MEETING_POINT  # a run has its own
            if item.kind != "set" or is_met or number in written or number in asks or number > last:
                continue
            calls = item.is_function and any(
                re.search(rf"\b{re.escape(one)}\b", called) for one in item.names
            )
            if calls or (not item.is_function and item.names & wanted):
                raw = fill_script_variables(item.text or text[item.begin : item.end], values)
                if _ASKS_HOSTS.search(raw):
                    asks[number] = item
                else:
                    added[number] = raw
        if not added:
            return [item for item in asks.values() if item.is_function]
        written |= added


def _write_batch_script_launch_line(
    launch: ScriptLaunch, start: str, values: Mapping[str, str], is_alone: bool, carried: Sequence[str]
) -> tuple[str, ...] | str:
    """Return a launch as words, or as a line for a shell if a part is open."""
    fields = [_replace_hosts_in_batch_script_word(one) for one in launch.program]
    texts = tuple(_fill_in_inner_script(one, values) for one in fields)
    at_home = [
        text.startswith("~/") and not one.pieces[0].is_quoted for one, text in zip(fields, texts, strict=True)
    ]
    is_open = any(one.is_open for one in fields) or any(at_home)
    starts_itself = bool(find_rank_framework(texts))
    at = find_script_index(texts, 0)
    if at >= 0 and at + 1 == len(texts) and (is_alone or starts_itself):
        script = fill_script_variables(texts[at], values).replace(FIRST_HOST, "$MASTER_ADDR").strip()
        return (*texts[:at], script) if is_alone else script
    if not is_open and is_alone:
        return texts
    shown = [
        _quote_home_path(text)
        if is_home
        else shlex.quote(text)
        if not one.is_open
        else fill_script_variables(one.written(), values)
        for one, text, is_home in zip(fields, texts, at_home, strict=True)
    ]
    line = " ".join(shown)
    if is_open:
        line = line.replace(FIRST_HOST, "$MASTER_ADDR")
    if is_alone or starts_itself or not launch.starter:
        return line
    if start == "torch":
        return (
            f"torchrun {' '.join(shown[1:])}"
            if texts and is_python(texts[0]) and len(texts) > 1 and not texts[1].startswith("-")
            else f"torchrun --no-python {line}"
        )
    sets = f"env {' '.join(carried)} " if carried else ""
    return f"mpirun -np {{ranks}} {sets}{line}" if start == "mpi" else line


def _list_carried_variables(items: Sequence[ScriptItem], forced: set[int], number: int) -> list[str]:
    """Return what the script exports before a launch, for ranks that get only what mpirun passes on (Open MPI's -x)."""
    found: dict[str, str] = {}
    for one in sorted(forced):
        if one < number and items[one].shells == items[number].shells[: len(items[one].shells)]:
            found |= {name: f'{name}="${name}"' for name in items[one].exports}
            for name in items[one].unsets:
                found.pop(name, None)
    return list(found.values())


def _quote_home_path(text: str) -> str:
    """Write a path below the user's home as a shell reads it."""
    return f'"$HOME"/{shlex.quote(text[2:])}' if text[2:] else '"$HOME"'


def _replace_hosts_in_batch_script_word(one: ExpandedWord) -> ExpandedWord:
    """Return the word with its hosts open: the run knows them when it starts."""
    if not any(host in one.text for host in _HOSTS):
        return one
    pieces = []
    for piece in one.pieces:
        for part in re.split(f"({'|'.join(_HOSTS)})", piece.text):
            pieces.append(
                WordPiece(_HOSTS[part], True, piece.is_quoted)
                if part in _HOSTS
                else WordPiece(part, piece.is_open, piece.is_quoted)
            )
    return ExpandedWord(tuple(pieces))


def _fill_in_inner_script(one: ExpandedWord, values: Mapping[str, str]) -> str:
    """Return a word as text; if it is a script for a shell, with the run's variables."""
    text = one.text
    return fill_script_variables(text, values) if " " in text and "$" in text else text


def shell_of(words: Sequence[str]) -> str:
    """Return the script that a command runs, or an empty text."""
    at = find_script_index(words, 0)
    return words[at] if at >= 0 else ""


__all__ = [
    "AssembledCommand",
    "assemble_command",
    "find_launcher_at",
    "find_rank_framework",
    "program_name_of",
    "shell_of",
]
