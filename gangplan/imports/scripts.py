"""Read shell scripts in commands, without running them, and reduce those that only prepare a launch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.plan.launchers import FoundLauncher, ParsedOption, find_launchers, find_script_index
from gangplan.plan.launchers.shell import ShellWord, SimpleCommand, UnreadableError, read_shell_commands

# What needs a shell: compound commands, redirections, pipes, patterns, background jobs.
_COMPOUND = re.compile(
    r"(?:^|[;&|\s(])(?:if|for|while|until|case|select|function)\s|\(\)|<|>|\|(?!\|)|&(?![&>])"
)
_PATTERN = re.compile(r"[*?\[\]~{}]")
# Commands that prepare what every run has: SSH servers, lists of hosts, the time until workers answer.
_SERVER = re.compile(
    r"mkdir (-p )?/(var/)?run/sshd|(\S*/)?sshd( .*)?|service sshd? (start|restart)|(\S*/)?ssh-keygen .*|set [-+].*|sleep [0-9]+[sm]?|:"
)
_HOSTS = re.compile(r"/etc/volcano/|/etc/mpi/|VC_\w+_HOSTS|hostfile", re.IGNORECASE)
# Options of torch's launcher and DeepSpeed's for the rendezvous of workers, which change nothing else.
_MEETING = frozenset({"master-port", "master_port", "rdzv-id", "rdzv_id"})
_ROLES = frozenset(
    {"count", "per-host", "hosts", "hostfile", "workers", "rendezvous", "standalone", "elastic"}
)


def simplify_command(words: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Return the command without a shell if it needs none, and what is dropped because a run has it anyway.

    A script stays if its shell decides anything: a branch, a loop, a redirection, a value known only at run
    time. Raises UnreadableError for a script that no shell would accept.
    """
    words = tuple(words)
    at = find_script_index(words, 0)
    if at < 0 or at + 1 < len(words):
        return words, []
    text = words[at]
    found = read_shell_commands(text)
    left = [one for one in found if not _is_launch_preparation(one)]
    if len(left) != 1 or _COMPOUND.search(_mask_shell_words(text, found)) or left[0].sets:
        return words, []
    inner = list(left[0].words)
    if inner and inner[0].text == "exec":
        inner = inner[1:]
    launchers = find_launchers([one.text for one in inner], None)
    goes = {index for use in _find_replaceable_options(launchers) for index in range(use[0], use[1])}
    stays = [word for index, word in enumerate(inner) if index not in goes]
    if not stays or any(word.is_open or _is_pattern(text, word) for word in stays):
        return words, []
    lost = [
        (text[one.words[0].begin : one.words[-1].end], "the run prepares its workers")
        for one in found
        if one is not left[0] and one.words
    ]
    lost += [
        (one.text, "the run hands its own hosts to the launcher")
        for entry in found
        if entry is not left[0]
        for one in entry.sets
    ]
    return tuple(word.text for word in inner), lost


def _find_replaceable_options(launchers: Sequence[FoundLauncher]) -> list[tuple[int, int]]:
    """Return where a launcher's words are for which the run has better values."""
    return [(use.at, use.end) for one in launchers for use in one.reading.uses if _is_option_set_by_run(use)]


def _is_option_set_by_run(use: ParsedOption) -> bool:
    return use.option.role in _ROLES or is_rendezvous_option(use)


def is_rendezvous_option(use: ParsedOption) -> bool:
    """Return whether an option is only about the rendezvous of workers, including which of them hosts it."""
    return use.option.name in _MEETING or (
        use.option.name in ("rdzv-conf", "rdzv_conf") and use.value.startswith("is_host")
    )


def _is_launch_preparation(command: SimpleCommand) -> bool:
    """Return whether a command only prepares the start of ranks."""
    line = " ".join(command.texts)
    if not command.words:
        return all(_HOSTS.search(one.text) for one in command.sets)
    return not command.sets and (
        _SERVER.fullmatch(line) is not None
        or (command.texts[0] == "export" and all(_HOSTS.search(one) for one in command.texts[1:]))
    )


def _mask_shell_words(text: str, found: Sequence[SimpleCommand]) -> str:
    """Return the script with its words masked, so that only operators are left."""
    for command in found:
        for word in (*command.sets, *command.words):
            text = text[: word.begin] + "w" * (word.end - word.begin) + text[word.end :]
    return text


def _is_pattern(text: str, word: ShellWord) -> bool:
    """Return whether a word has an unquoted character that a shell expands."""
    raw = text[word.begin : word.end]
    return not any(mark in raw for mark in "'\"\\") and _PATTERN.search(raw) is not None


__all__ = ["UnreadableError", "is_rendezvous_option", "simplify_command"]
