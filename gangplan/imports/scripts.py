"""Shell scripts in commands, read and never run: one that only prepares a launch becomes the launch itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.plan.launchers import FoundLauncher, Use, find, script_at
from gangplan.plan.launchers.shell import Command, UnreadableError, Word, commands

# What a script needs a shell for: compound commands, redirections, pipes, patterns, jobs in the background.
_COMPOUND = re.compile(
    r"(?:^|[;&|\s(])(?:if|for|while|until|case|select|function)\s|\(\)|<|>|\|(?!\|)|&(?![&>])"
)
_PATTERN = re.compile(r"[*?\[\]~{}]")
# Commands that prepare what a run has: servers for SSH, lists of hosts, the time until workers answer.
_SERVER = re.compile(
    r"mkdir (-p )?/(var/)?run/sshd|(\S*/)?sshd( .*)?|service sshd? (start|restart)|(\S*/)?ssh-keygen .*|set [-+].*|sleep [0-9]+[sm]?|:"
)
_HOSTS = re.compile(r"/etc/volcano/|/etc/mpi/|VC_\w+_HOSTS|hostfile", re.IGNORECASE)
# Options of torch's launcher and DeepSpeed's about the meeting of workers, which change nothing else.
_MEETING = frozenset({"master-port", "master_port", "rdzv-id", "rdzv_id"})
_ROLES = frozenset(
    {"count", "per-host", "hosts", "hostfile", "workers", "rendezvous", "standalone", "elastic"}
)


def simplified(words: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """The command without a shell where it needs none, and what it said that a run has anyway.

    A script stays where its shell decides anything: a branch, a loop, a redirection, a value known at run time only.
    Raises UnreadableError for a script that no shell would read.
    """
    words = tuple(words)
    at = script_at(words, 0)
    if at < 0 or at + 1 < len(words):
        return words, []
    text = words[at]
    found = commands(text)
    left = [one for one in found if not _prepares(one)]
    if len(left) != 1 or _COMPOUND.search(_plain(text, found)) or left[0].sets:
        return words, []
    inner = list(left[0].words)
    if inner and inner[0].text == "exec":
        inner = inner[1:]
    launchers = find([one.text for one in inner], None)
    goes = {index for use in _uses(launchers) for index in range(use[0], use[1])}
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


def _uses(launchers: Sequence[FoundLauncher]) -> list[tuple[int, int]]:
    """Where a launcher's words stand that the run knows better."""
    return [(use.at, use.end) for one in launchers for use in one.reading.uses if _knows_better(use)]


def _knows_better(use: Use) -> bool:
    return use.option.role in _ROLES or is_meeting(use)


def is_meeting(use: Use) -> bool:
    """Whether an option is about where workers meet, and nothing else: also the question who is its host."""
    return use.option.name in _MEETING or (
        use.option.name in ("rdzv-conf", "rdzv_conf") and use.value.startswith("is_host")
    )


def _prepares(command: Command) -> bool:
    """Whether a command only prepares the start of ranks."""
    line = " ".join(command.texts)
    if not command.words:
        return all(_HOSTS.search(one.text) for one in command.sets)
    return not command.sets and (
        _SERVER.fullmatch(line) is not None
        or (command.texts[0] == "export" and all(_HOSTS.search(one) for one in command.texts[1:]))
    )


def _plain(text: str, found: Sequence[Command]) -> str:
    """The script outside of quotes and substitutions of the words that prepare; only its own marks are left."""
    for command in found:
        for word in (*command.sets, *command.words):
            text = text[: word.begin] + "w" * (word.end - word.begin) + text[word.end :]
    return text


def _is_pattern(text: str, word: Word) -> bool:
    """Whether a word has a character that a shell expands and nobody quoted."""
    raw = text[word.begin : word.end]
    return not any(mark in raw for mark in "'\"\\") and _PATTERN.search(raw) is not None


__all__ = ["UnreadableError", "is_meeting", "simplified"]
