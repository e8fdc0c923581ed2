"""Find lines of a script that YAML joined, that their backslashes do not join, that never run, or that only bash
understands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launchers import (
    SHELL_NAMES,
    find_launcher_at,
    is_python,
    program_name_of,
    read_script_commands,
)
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.plan.operators import SoundnessCheck, propose_sound_command_help
from gangplan.rules.commands import COMMAND_AFTER_EXEC, COMMAND_BASH, COMMAND_LINES_JOINED, COMMAND_MODULE

_DECLARING = frozenset({"export", "readonly"})
_PLAIN_SHELLS = frozenset({"sh", "dash"})
# Words that dash 0.5.12 and POSIX.1-2017 do not know;
_OF_BASH = frozenset(
    {
        "[[",
        "source",
        "shopt",
        "declare",
        "typeset",
        "mapfile",
        "readarray",
        "let",
        "pushd",
        "popd",
        "function",
    }
)
# Subcommands of module that change the environment; what defines it: a login shell, or a file with an init of it.
_LOADING = frozenset({"add", "load", "purge", "restore", "swap", "switch", "unload", "use"})
_LOGIN = re.compile(r"--login|-[a-zA-Z]*l[a-zA-Z]*")
_DEFINES = re.compile(
    r"lmod|modules|/init/|/etc/profile|bashrc|\bmodule\s*\(\)|modulecmd|-v module|type module", re.IGNORECASE
)
# What runs a command in a shell of its own, so that exec replaces only that; and what scripts do if exec fails.
_IN_SUBSHELLS = ("|", "|&", "&")
_IF_EXEC_FAILS = frozenset({"echo", "exit", "printf", "return"})
_JOINED = "Write | in place of > before the script, so that each line stays one, or ; between the commands."
_CONTINUED = "End the line before it with a backslash, and leave nothing behind that."


def check_lines_of_script(job: Job) -> Iterator[Problem]:
    """Yield a problem of the first command in a script whose words are those of two lines, or of half a line."""
    at, found = read_script_commands(job.command)
    if at < 0:
        return
    text = job.command[at].strip()
    if not found and text.startswith("#"):
        message = "the whole script is a comment: the run would do nothing, and count as complete"
        yield Problem(("command", at), message, _JOINED, COMMAND_LINES_JOINED)
    for one in found:
        if told := _explain_joined_lines(one, job.command[at]):
            yield Problem(("command", at), *told, COMMAND_LINES_JOINED)
            return


def check_shell_of_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield a problem of the first command in a script of sh that a POSIX shell, such as dash, does not know."""
    at, found = read_script_commands(job.command)
    shell = next((index for index in range(at) if program_name_of(job.command[index]) in _PLAIN_SHELLS), -1)
    what = next(filter(None, map(_name_word_of_bash, found)), "") if shell >= 0 else ""
    if not what:
        return
    name = program_name_of(job.command[shell])
    where = (
        "in images of Debian and Ubuntu, where sh is dash, it would fail" if name == "sh" else "it would fail"
    )
    message = f"'{what}' is of bash, but {name} runs the script: {where}"
    right = (*job.command[:shell], "bash", *job.command[shell + 1 :])
    help = propose_sound_command_help(job, right, "Start bash in its place.", is_sound)
    yield Problem(("command", shell), message, help, COMMAND_BASH)


def check_commands_after_exec(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield a problem of the first program of a script that exec has replaced the shell before."""
    at, found = read_script_commands(job.command)
    programs = [one for one in found if one.words]
    for index, one in enumerate(programs):
        if one.texts[0] != "exec" or len(one.words) < 2 or one.after in _IN_SUBSHELLS:
            continue
        if index and programs[index - 1].after in _IN_SUBSHELLS[:2]:
            continue
        lost = _find_command_behind(programs, index)
        if lost is None:
            continue
        text, begin = job.command[at], one.words[0].begin
        right = f"set -e; {text[:begin]}{text[one.words[1].begin :]}"
        is_plain = (
            not one.texts[1].startswith("-") and sum("exec" in late.texts[:1] for late in programs) == 1
        )
        words = (*job.command[:at], right, *job.command[at + 1 :]) if is_plain else ()
        message = f"'{' '.join(lost.texts[:2])}' never runs: exec puts {program_name_of(one.texts[1])} in the place of the shell"
        help = propose_sound_command_help(
            job, words, "Start the program without exec.", is_sound if words else None
        )
        yield Problem(("command", at), message, help, COMMAND_AFTER_EXEC)
        return


def check_modules_of_script(job: Job) -> Iterator[Problem]:
    """Yield a problem of the first modules that a script loads without what defines the command for it."""
    at, found = read_script_commands(job.command)
    if any(_LOGIN.fullmatch(word) for word in job.command[:at]) or (
        at >= 0 and _DEFINES.search(job.command[at])
    ):
        return
    for one in found:
        words = one.texts
        if words[:1] == ("ml",) or (words[:1] == ("module",) and words[1:2] and words[1] in _LOADING):
            shown = " ".join(words[:3])
            message = (
                f"'{shown}' is of an HPC cluster's login shells; in an image without modules, it is not found"
            )
            help = "Remove it, and choose an image that has the software."
            yield Problem(("command", at), message, help, COMMAND_MODULE)
            return


def _find_command_behind(programs: Sequence[SimpleCommand], index: int) -> SimpleCommand | None:
    """Return the first command of a block that comes after another one, and is not there for its failure."""
    block = programs[index].block
    for at in range(index + 1, len(programs)):
        if programs[at].block[: len(block)] != block:
            return None  # commands of a block are next to each other
        if programs[at].texts[0] not in _IF_EXEC_FAILS:
            return programs[at]
    return None


def _name_word_of_bash(one: SimpleCommand) -> str:
    """Return what a POSIX shell does not know of a command, such as `[[`; an empty text if it may know all."""
    name = one.texts[0] if one.words else ""
    if name == "set" and "pipefail" in one.texts:
        return "pipefail"
    array = next((word.text for word in one.sets if word.items is not None), "")
    if array:
        return f"{array.partition('=')[0]}=(...)"
    return name if name in _OF_BASH else "|&" if one.after == "|&" else ""


def _explain_joined_lines(one: SimpleCommand, script: str) -> tuple[str, str] | None:
    """Return what is wrong with the words of a command, and what helps; None if they are those of one line."""
    words = one.texts
    if not words:
        return None
    name = program_name_of(words[0])
    is_pattern = one.after in ("|", ")")  # of a case, such as `-h|--help)`
    if words[0].startswith("-") and len(words[0]) > 1 and not is_pattern:
        return f"'{words[0]}' is an option, and begins a command of its own", _CONTINUED
    for word in one.words:
        if script[word.begin : word.begin + 2] in ("\\ ", "\\\t") and word.text.strip().startswith("-"):
            return f"the option '{word.text}' begins with the blank behind a backslash", _CONTINUED
    behind = _find_words_behind(name, words)
    if not behind:
        return None
    return f"{name} gets the words of another command: {' '.join(behind[:4])}", _JOINED


def _find_words_behind(name: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words that a builtin of the shell cannot use, from the first on; empty without any."""
    if name == "cd":
        rest = [index for index, word in enumerate(words) if index and not word.startswith("-")]
        return words[rest[1] :] if len(rest) > 1 else ()
    if name in _DECLARING:
        wrong = (
            index
            for index, word in enumerate(words)
            if index and not word.startswith("-") and not word.partition("=")[0].rstrip("+").isidentifier()
        )
        first = next((index for index, word in enumerate(words) if index and _is_program(words, index)), None)
        found = [
            index for index in (first, next(wrong, None)) if index is not None and "$" not in words[index]
        ]
        return words[min(found) :] if found else ()
    if name == "set" and "--" in words:
        return ()  # words of its own, for "$@"
    if name in ("set", "source", ".", "ulimit"):
        begin = 2 if name in ("source", ".") else 1
        return next((words[index:] for index in range(begin, len(words)) if _is_program(words, index)), ())
    return ()


def _is_program(words: Sequence[str], at: int) -> bool:
    """Return whether a word is certainly a program that is started: Python, a shell or a launcher."""
    has_more = at + 1 < len(words)
    is_known = is_python(words[at]) or program_name_of(words[at]) in SHELL_NAMES
    return has_more and (is_known or find_launcher_at(words, at, None) is not None)
