"""Find mistakes in how a command passes a script to a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launchers import (
    SHELL_NAMES,
    find_launcher_at,
    find_script_index,
    program_name_of,
    read_launcher_words,
    read_script_commands,
    strip_prefixes,
)
from gangplan.plan.launchers.programs import read_started_program
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.plan.operators import SoundnessCheck, propose_sound_command_help
from gangplan.plan.problems import join_shell_words
from gangplan.plan.words import split_command_word
from gangplan.rules.commands import (
    COMMAND_DETACHED,
    COMMAND_ONE_WORD,
    COMMAND_SHELL,
    COMMAND_WAITS,
    EXIT_CODE_LOST,
)

_OPERATOR = re.compile(r"&&|\|\||[|;<>\n]|&\s*\Z")
# How a script, or a file that it sources, gets at the words after it; a `for` without `in` reads them, too.
_READS = re.compile(
    r"\$(?:\{[#!]?)?[0-9@*#]|\b(?:shift|getopts|source|eval|BASH_ARG[VC])\b|(?:^|[\s;&|(])\.\s"
    r"|\bfor\s+\w+\s*(?:;|\n|do\b)"
)
_PIPES = ("|", "|&")
_KEEPS_CODE = re.compile(r"\bpipefail\b")
# Programs whose exit code says nothing about the training.
_IDLE = frozenset(
    {
        *("[", "[[", "test", "true", "false", ":", "which", "type", "touch", "wait"),
        *("awk", "cat", "cd", "chmod", "cp", "date", "echo", "env", "export", "find", "grep", "head", "ln"),
        *("ls", "mkdir", "mv", "nvidia-smi", "printf", "rm", "sed", "seq", "set", "sleep", "sort", "source"),
        *("tail", "ulimit", "yes", "."),
    }
)
# Programs that end scripts and succeed whatever happened before; `true` is there to hide a failure on purpose,
# and `sleep` to try again.
_LAST_WORDS = frozenset(
    {
        *("chmod", "cp", "date", "df", "du", "echo", "kill", "ls", "mv", "nvidia-smi", "pkill", "printf"),
        *("rm", "rsync", "set", "sync", "tar", "touch"),
    }
)
# The end of a script whose last command is that of a loop.
_LOOP_ENDS = re.compile(r"\s*;?\s*done\b[^\n;&|]*")
_SEPARATORS = (";", "\n")
# Commands with which a script decides itself how it ends, and what reads an exit code.
_DECIDING = frozenset({"exit", "return", "trap"})
_READS_CODE = re.compile(r"\$\?|\$\{\?\}|\bPIPESTATUS\b")
_LEAVING = (("break",), ("continue",))
_STOPPING = re.compile(r"-[a-z]*e[a-z]*|errexit")
# Commands that last until somebody ends them: a wait of an hour and more, and servers for people.
_WAITING = re.compile(
    r"sleep (?:inf(?:inity)?|\d+[dh]|\d{3,}m|\d{4,}s?)$|tail (?:-\S+ (?:\d+ )?)*/dev/null$|code-server\b|streamlit run\b"
    r"|ray start (?=.*--head\b).*--block\b|tensorboard (?!dev\b)|jupyter[ -](?:lab|notebook|server)\b|(?:notebook|jupyterlab|tensorboard\.main|http\.server)\b"
)
_PREPARING = ((), ("cd",), ("export",), ("set",), ("ulimit",), ("mkdir",))
_NAMES = frozenset({"-", "--", "_", *SHELL_NAMES})


def check_exit_code_of_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield a problem of a script whose exit code is not that of its program, but of one that comes after."""
    at, found = read_script_commands(job.command)
    if not found or _is_end_decided(found, job.command[at]):
        return
    lost, otherwise, right = _find_lost_code(job.command, at, found)
    programs = _name_programs(lost)
    last = next((one for one in reversed(found) if one.words), None)
    if not programs or last is None:
        return
    ends_with, failing = program_name_of(last.texts[0]), f"{programs[0]} fails"
    if lost == (last,) and not last.tested_by:
        ends_with, failing = "the last turn of its loop", f"{failing} in another one"
    elif ends_with == programs[0]:
        ends_with, failing = f"the last {ends_with}", "an earlier one fails"
    message = f"the run ends with the exit code of {ends_with}: if {failing}, it counts as complete"
    words = (*job.command[:at], right, *job.command[at + 1 :]) if right else None
    help = propose_sound_command_help(job, words or (), otherwise, is_sound if words else None)
    yield Problem(("command", at), message, help, EXIT_CODE_LOST)


def _is_end_decided(found: Sequence[SimpleCommand], text: str) -> bool:
    """Return whether a script ends itself with an exit code, or with a command that may pass on the one it
    reads."""
    is_waited = any(one.texts[:1] == ("wait",) and len(one.words) > 1 for one in found)
    may_pass_on = bool(_READS_CODE.search(text)) and not (found[-1].block and _says_nothing(found[-1]))
    return (
        is_waited or may_pass_on or any(_DECIDING & set(one.texts[:1]) or _ends_shell(one) for one in found)
    )


def _ends_shell(one: SimpleCommand) -> bool:
    """Return whether a program certainly replaces the shell, so that the script ends with its exit code."""
    return one.texts[:1] == ("exec",) and len(one.words) > 1 and not one.block and one.after not in _PIPES


def _only_reports(found: Sequence[SimpleCommand], end: int) -> bool:
    """Return whether the last of these commands says nothing, or looks at an exit code to report it."""
    last, before = found[end - 1], found[end - 2]
    is_condition = last.tested_by == "if" and any(_READS_CODE.search(word) for word in last.texts)
    return (_says_nothing(last) or is_condition) and before.after in ("&&", *_SEPARATORS)


def _name_programs(found: Sequence[SimpleCommand]) -> list[str]:
    """Return the names of the programs of commands, without those whose exit code says nothing."""
    starts = ((one.texts, strip_prefixes(one.texts).at) for one in found if one.texts)
    names = (program_name_of(texts[at if at < len(texts) else 0]) for texts, at in starts)
    return [name for name in names if name not in _IDLE]


def _find_lost_code(
    command: Sequence[str], at: int, found: Sequence[SimpleCommand]
) -> tuple[Sequence[SimpleCommand], str, str]:
    """Return the commands whose exit code is lost, what helps, and the right script; empty where it is not known."""
    text, end = command[at], len(found)
    while end > 1 and _only_reports(found, end):
        end -= 1  # such as `; echo done`
    before, last = found[end - 2] if end > 1 else found[0], found[end - 1]
    if end > 1 and before.after == "||" and _says_nothing(last) and last.words:
        first, stop = last.words[0].begin, last.words[-1].end
        right = f"{text[:first]}{{ {text[first:stop]}; exit 1; }}{text[stop:]}"
        return _list_chain(found, end - 2), "Write exit 1 after it, both in braces.", right
    pipes = [index for index, one in enumerate(found) if one.after in _PIPES]
    if pipes and pipes[-1] == end - 2 and not any(_KEEPS_CODE.search(word) for word in command):
        begin = pipes[-1]
        while begin - 1 in pipes:
            begin -= 1
        has_option = any(program_name_of(word) == "bash" for word in command[:at])
        otherwise = "Begin the script with set -o pipefail, and run it with bash, which has that."
        if any(map(_ends_early, found[begin + 1 : end])):
            # With pipefail, it would end the program by SIGPIPE.
            return (
                found[begin : end - 1],
                "Write the output to a file, and search that in the next command.",
                "",
            )
        return found[begin : end - 1], otherwise, f"set -o pipefail; {text}" if has_option else ""
    if last.texts == ("wait",):
        started = [one for one in found if one.after == "&"]
        right = f"{text[: last.words[0].end]} $!{text[last.words[0].end :]}" if len(started) == 1 else ""
        return started, "Start the program of the run without &, as the last one.", right
    is_looped = end == len(found) and _is_end_of_for(text, found)
    while last.after == "&&" and end < len(found):  # a list that ends the script says how it went
        last, end = found[end], end + 1
    if (end == len(found) and not is_looped) or last.tested_by in ("while", "until"):
        return _find_earlier_launch(command[:at], found), "Begin the script with set -e.", f"set -e; {text}"
    if last.tested_by:
        return (last,), "End the branch for its failure with exit 1.", ""
    is_stopping, unseen = (
        is_stopping_at_failure(command[:at], found[: end - 1]),
        _list_chain(found, end - 1)[:-1],
    )
    if not is_stopping and not _name_programs(unseen):
        return (last,), "Begin the script with set -e.", f"set -e; {text}"
    if is_looped:
        return (), "", ""
    help = "Write each command on a line of its own: set -e does not see a failure that && comes after."
    return unseen, help, ""


def _find_earlier_launch(options: Sequence[str], found: Sequence[SimpleCommand]) -> Sequence[SimpleCommand]:
    """Return the first launch of a script that goes on when it fails, and ends with another launch."""
    last = found[-1]
    if last.tested_by or not _starts_ranks(last):
        return ()
    settings: list[SimpleCommand] = []
    for one in found[:-1]:
        if one.texts[:1] == ("set",):
            settings.append(one)
        is_alone = one.block == last.block and one.after in _SEPARATORS and not one.tested_by
        if is_alone and _starts_ranks(one):
            return () if is_stopping_at_failure(options, settings) else (one,)
    return ()


def _starts_ranks(one: SimpleCommand) -> bool:
    """Return whether a command starts a launcher."""
    at = strip_prefixes(one.texts).at
    start = find_launcher_at(one.texts, at, None) if at < len(one.texts) else None
    return start is not None and not any(
        read_launcher_words(start.launcher, one.texts, start.at).of("nothing")
    )


def _is_end_of_for(text: str, found: Sequence[SimpleCommand]) -> bool:
    """Return whether a script ends with a command of a `for` that goes on when it fails."""
    last = found[-1]
    if not last.words or not last.block or not _LOOP_ENDS.fullmatch(text[last.words[-1].end :].rstrip()):
        return False
    return not any(one.tested_by in ("while", "until") or one.texts[:1] in _LEAVING for one in found)


def _ends_early(one: SimpleCommand) -> bool:
    """Return whether a command may end before it has read all of its input."""
    name = program_name_of(one.texts[0]) if one.texts else ""
    return name == "head" or (
        name == "grep" and any(re.match(r"-\w*[qm]|--quiet|--max", word) for word in one.texts[1:])
    )


def _list_chain(found: Sequence[SimpleCommand], end: int) -> Sequence[SimpleCommand]:
    """Return the commands that `&&` joins, up to the one at `end`."""
    begin = end
    while begin and found[begin - 1].after == "&&":
        begin -= 1
    return found[begin : end + 1]


def _says_nothing(one: SimpleCommand) -> bool:
    """Return whether a command tells nothing of the training, by its output or its exit code."""
    return not one.sets and bool(one.texts) and program_name_of(one.texts[0]) in _LAST_WORDS


def is_stopping_at_failure(options: Sequence[str], found: Sequence[SimpleCommand]) -> bool:
    """Return whether a shell with these options ends a script at a failure behind these commands."""
    words = [*options, *(word for one in found if one.texts[:1] == ("set",) for word in one.texts[1:])]
    is_stopping = False
    for before, word in zip(["", *words], words, strict=False):
        if _STOPPING.fullmatch(word.replace("+", "-", 1)):
            is_stopping = not word.startswith("+") and before != "+o"
    return is_stopping


def _is_blocking_head(one: SimpleCommand) -> bool:
    """Return whether a command starts the head of a Ray cluster and never returns, wherever it is."""
    return one.texts[:2] == ("ray", "start") and {"--head", "--block"} <= {*one.texts} and one.after != "&"


def check_waiting_command(job: Job) -> Iterator[Problem]:
    """Yield a problem of a command whose last program only waits, such as `sleep infinity`."""
    at, found = read_script_commands(job.command)
    last = next(filter(_is_blocking_head, found), found[-1] if found else None)
    words = last.texts if last else job.command
    begin = strip_prefixes(words).at
    if begin >= len(words) or (last and (last.after == "&" or last.tested_by)):
        return
    name = read_started_program(words, begin)
    if not _WAITING.match(name):
        return
    kept = f"its {gpus} GPUs" if (gpus := job.workers * job.gpus) > 1 else "its GPU" if gpus else "its pods"
    short = " ".join(name.split()[:2])
    message = f"{short} only waits: the run keeps {kept} until its timeout, and then counts as failed"
    help = "Write the program of the run; gangplan run tries it on this machine."
    yield Problem(("command", at if found else begin), message, help, COMMAND_WAITS)


def check_shell_script(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield problems of a script in a command without launchers, and of the words after it."""
    yield from check_words_after_script(job, is_sound)
    at, found = read_script_commands(job.command)
    if not found or found[-1].after != "&":
        return
    text, last = job.command[at], found[-1]
    is_waited = any("wait" in one.texts and one.texts[0] in ("trap", "wait") for one in found)
    if is_waited or not last.words or text.rstrip().endswith(("fi", "esac")):
        return
    name = program_name_of(next((word for word in last.texts if word != "nohup"), last.texts[0]))
    message = f"{name} runs in the background and nothing waits for it: the run ends when the script does"
    otherwise = "Start the program of the run without &, as the last one."
    text = _start_in_foreground(text, found)
    right = (*job.command[:at], text, *job.command[at + 1 :]) if text else None
    help = propose_sound_command_help(job, right or (), otherwise, is_sound if right else None)
    yield Problem(("command", at), message, help, COMMAND_DETACHED)


def _start_in_foreground(text: str, found: Sequence[SimpleCommand]) -> str:
    """Return a script whose only program does not go to the background; empty if it has several."""
    text = text.rstrip()
    if not text.endswith("&") or sum(one.after == "&" for one in found) > 1:
        return ""
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
