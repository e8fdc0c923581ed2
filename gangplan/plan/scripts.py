"""Find mistakes in how a command passes a script to a shell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launchers import (
    SHELL_NAMES,
    find_script_index,
    program_name_of,
    read_script_commands,
    strip_prefixes,
)
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.plan.operators import SoundnessCheck, propose_sound_command_help
from gangplan.plan.problems import join_shell_words
from gangplan.plan.words import split_command_word
from gangplan.rules.commands import COMMAND_DETACHED, COMMAND_ONE_WORD, COMMAND_SHELL, EXIT_CODE_LOST

_OPERATOR = re.compile(r"&&|\|\||[|;<>\n]|&\s*\Z")
# How a script, or a file that it sources, gets at the words after it; a `for` without `in` reads them, too.
_READS = re.compile(
    r"\$(?:\{[#!]?)?[0-9@*#]|\b(?:shift|getopts|source|eval|BASH_ARG[VC])\b|(?:^|[\s;&|(])\.\s"
    r"|\bfor\s+\w+\s*(?:;|\n|do\b)"
)
_PIPES = ("|", "|&")
_KEEPS_CODE = re.compile(r"\bpipefail\b|\bPIPESTATUS\b")
# Programs whose exit code says nothing about the training.
_IDLE = frozenset(
    {
        *("awk", "cat", "cd", "chmod", "cp", "date", "echo", "env", "export", "find", "grep", "head", "ln"),
        *("ls", "mkdir", "mv", "nvidia-smi", "printf", "rm", "sed", "seq", "set", "sleep", "sort", "source"),
        *("tail", "ulimit", "yes", "."),
    }
)
# Programs that end scripts without doing anything; `true` is there to hide a failure on purpose.
_LAST_WORDS = frozenset(("date", "echo", "ls", "printf", "sync"))
_SEPARATORS = (";", "\n")
# Options of a shell, and words of a script, with which a failure is not lost, or in which it may not be.
_STOPS_AT_FAILURE = re.compile(r"-[a-z]*e[a-z]*")
_STOPS_IN_SCRIPT = re.compile(r"\bset\s+-[a-z]*e|\berrexit\b")
_DECIDES = re.compile(r"\$\?|\b(?:exit|trap|wait|if|for|while|until|case|function)\b|\(\s*\)")
_PREPARING = ((), ("cd",), ("export",), ("set",), ("ulimit",), ("mkdir",))
_NAMES = frozenset({"-", "--", "_", *SHELL_NAMES})


def check_exit_code_of_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield a problem of a script whose exit code is not that of its program, but of one that comes after."""
    at, found = read_script_commands(job.command)
    end = len(found)
    while end > 1 and _says_nothing(found[end - 1]) and found[end - 2].after in ("&&", *_SEPARATORS):
        end -= 1  # such as `; echo done`
    pipes = [index for index, one in enumerate(found) if one.after in _PIPES]
    if end > 1 and found[end - 2].after == "||" and _says_nothing(found[end - 1]):
        yield from _find_failure_that_is_answered(job, at, found, end, is_sound)
        return
    if pipes and pipes[-1] == end - 2 and not any(_KEEPS_CODE.search(word) for word in job.command):
        begin, last, option = pipes[-1], found[end - 1], "-o pipefail"
        while begin - 1 in pipes:
            begin -= 1
        lost = found[begin : end - 1]
    elif end < len(found) and found[end - 1].after != "&&" and not _keeps_code_of_last(job.command, at):
        lost, last, option = found[end - 1 : end], found[-1], "-e"
    else:
        return
    programs = _list_working_programs(lost)
    if not programs or not last.words:
        return
    message = _describe_lost_code(last, programs[0])
    right = (*job.command[:at], f"set {option}; {job.command[at]}", *job.command[at + 1 :])
    otherwise = f"Begin the script with set {option}, and run it with bash, which has that."
    has_option = option == "-e" or any(program_name_of(word) == "bash" for word in job.command[:at])
    help = propose_sound_command_help(job, right, otherwise, is_sound if has_option else None)
    yield Problem(("command", at), message, help, EXIT_CODE_LOST)


def _find_failure_that_is_answered(
    job: Job, at: int, found: Sequence[SimpleCommand], end: int, is_sound: SoundnessCheck | None
) -> Iterator[Problem]:
    """Yield a problem of a script that ends with `PROGRAM || echo failed`, which is a success to a shell."""
    text, answer = job.command[at], found[end - 1]
    begin = end - 2
    while begin and found[begin - 1].after == "&&":
        begin -= 1
    programs = _list_working_programs(found[begin : end - 1])
    if not programs or not answer.words or _DECIDES.search(text):
        return
    first, stop = answer.words[0].begin, answer.words[-1].end
    ends = f"{text[:first]}{{ {text[first:stop]}; exit 1; }}{text[stop:]}"
    right = (*job.command[:at], ends, *job.command[at + 1 :])
    help = propose_sound_command_help(job, right, "Write exit 1 after it, both in braces.", is_sound)
    yield Problem(("command", at), _describe_lost_code(found[-1], programs[0]), help, EXIT_CODE_LOST)


def _list_working_programs(commands: Iterable[SimpleCommand]) -> list[str]:
    """Return the names of the programs whose exit code tells something of the training."""
    return [name for one in commands if one.texts and (name := program_name_of(one.texts[0])) not in _IDLE]


def _describe_lost_code(last: SimpleCommand, program: str) -> str:
    ends_with = program_name_of(last.texts[0])
    return f"the run ends with the exit code of {ends_with}: if {program} fails, it counts as complete"


def _says_nothing(one: SimpleCommand) -> bool:
    """Return whether a command tells nothing of the training, by its output or its exit code."""
    return not one.sets and bool(one.texts) and program_name_of(one.texts[0]) in _LAST_WORDS


def _keeps_code_of_last(command: Sequence[str], at: int) -> bool:
    """Return whether a script ends at the first failure, or decides itself with which code it ends."""
    text = command[at]
    is_decided = _STOPS_IN_SCRIPT.search(text) or _DECIDES.search(text)
    return bool(is_decided) or any(map(_STOPS_AT_FAILURE.fullmatch, command[:at]))


def check_shell_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield problems of a script in a command without launchers, and of the words after it."""
    yield from check_words_after_script(job, is_sound)
    at, found = read_script_commands(job.command)
    if not found or found[-1].after != "&":
        return
    text, last = job.command[at], found[-1]
    if re.search(r"\bwait\b", text) or not last.words or text.rstrip().endswith(("fi", "esac")):
        return
    name = program_name_of(next((word for word in last.texts if word != "nohup"), last.texts[0]))
    message = f"{name} runs in the background and nothing waits for it: the run ends when the script does"
    otherwise = "Remove the '&', or end the script with wait."
    right = (*job.command[:at], _wait_for_programs(text, found), *job.command[at + 1 :])
    help = propose_sound_command_help(job, right, otherwise, is_sound)
    yield Problem(("command", at), message, help, COMMAND_DETACHED)


def _wait_for_programs(text: str, found: Sequence[SimpleCommand]) -> str:
    """Return a script that waits for its programs; a single one does not go to the background."""
    text = text.rstrip()
    if not text.endswith("&"):
        return text
    if sum(one.after == "&" for one in found) > 1:
        return f"{text} wait"
    words = found[-1].words
    cut = words[1].begin if len(words) > 1 and words[0].text == "nohup" else words[0].begin
    return (text[: words[0].begin] + text[cut:]).rstrip("& ")


def check_words_after_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield a problem of a script without -c, or of words that it never reads."""
    words, at = job.command, strip_prefixes(job.command).at
    if at >= len(words) or program_name_of(words[at]) not in SHELL_NAMES:
        return
    shell, script = program_name_of(words[at]), find_script_index(words, at)
    if script >= 0:
        yield from _find_unread_words(job, shell, script, is_sound)
    elif at + 1 < len(words) and _is_script_text(words[at + 1]):
        word = words[at + 1]
        message = f"'{word}' is one word with spaces: without -c, {shell} would look for a file of that name"
        split = split_command_word(word)
        is_file = split and split[0].endswith((".sh", ".bash")) and not _OPERATOR.search(word)
        right = (*words[: at + 1], *(split if is_file else ("-c", word)), *words[at + 2 :])
        help = propose_sound_command_help(job, right, f"Write -c after {shell}.", is_sound)
        yield Problem(("command", at + 1), message, help, COMMAND_ONE_WORD)


def _is_script_text(word: str) -> bool:
    """Return whether a word is a script, and not an option or a file whose name has blanks."""
    if word[:1] in ("-", "+") or not re.search(r"\S\s+\S", word):
        return False
    if _OPERATOR.search(word):
        return True
    return bool(split_command_word(word)) and not word.endswith((".sh", ".bash"))


def _find_unread_words(
    job: Job, shell: str, script: int, is_sound: SoundnessCheck | None
) -> Iterator[Problem]:
    """Yield a problem of the words after a script; the first is its name ($0) and may be there for nothing."""
    words, text = job.command, job.command[script]
    after = words[script + 1 :]
    if not after or _READS.search(text):
        return
    has_blanks = len(text.split()) > 1
    is_name = after[0] in _NAMES or (has_blanks and not after[0].startswith("-"))
    if len(after) == 1 and (is_name or program_name_of(text) == after[0]):
        return
    lost = after[1:] if after[0] in _NAMES else after
    _, found = read_script_commands(words)
    right = (
        (*words[:script], f"{text.strip()} {join_shell_words(lost)}")
        if _ends_with_program(text, found)
        else ()
    )
    message = f"'{lost[0]}' comes after the script of {shell}, which does not read it"
    otherwise = 'Write it into the script, or read it there with "$@".'
    help = propose_sound_command_help(job, right, otherwise, is_sound if right else None)
    yield Problem(("command", script + 1 + len(after) - len(lost)), message, help, COMMAND_SHELL)


def _ends_with_program(text: str, found: Sequence[SimpleCommand]) -> bool:
    """Return whether what is appended to a script is given to its only program."""
    if not found or not found[-1].words or text[found[-1].words[-1].end :].strip():
        return False
    return all(one.texts[:1] in _PREPARING and one.after in ("&&", ";", "\n") for one in found[:-1])
