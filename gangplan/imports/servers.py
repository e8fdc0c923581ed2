"""Read what workers of MPI start besides their SSH server, which is all that those of a run start."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from gangplan.imports.draft import SpecDraft
from gangplan.imports.workload import PodRole
from gangplan.plan.launchers import UnreadableError, find_script_index
from gangplan.plan.launchers.programs import program_name_of
from gangplan.plan.launchers.shell import ShellReader, ShellWord, SimpleCommand

_SERVER = "gangplan starts the SSH server of the workers"
_HELP = (
    "Files and folders can be made by setup: in the spec, programs belong in the image; what changes the server's"
    " own process (ulimit, variables) reaches no rank of a run: write it into the command, or ask the platform."
)
# What may come before a server, without a meaning of its own.
_BEFORE = frozenset({"exec", "command", "nohup", "sudo", "tini", "dumb-init"})
# Programs that only wait, show what is done, or end the script with its first error.
_IDLE = frozenset({"sleep", "wait", "true", ":"})
_SERVICES = frozenset({"ssh", "sshd"})
# Programs that write files: how many operands come before the files, of which all are written, or the last one.
_WRITERS = {
    "mkdir": (0, True),
    "touch": (0, True),
    "rm": (0, True),
    "mv": (0, True),
    "chmod": (1, True),
    "chown": (1, True),
    "chgrp": (1, True),
    "sed": (1, True),
    "cp": (0, False),
    "ln": (0, False),
}
_PRINTERS = frozenset({"echo", "printf", "cat"})
_NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "-"})
_FOLDERS = ("/etc/ssh", "/run/sshd", "/var/run/sshd")
_CONFIGS = frozenset({"sshd_config", ".sshd_config", "ssh_config"})
_MOST = 4


class _ScriptReader(ShellReader):
    """A reader that keeps the targets of redirections, and here-documents that run commands."""

    def __init__(self, script: str) -> None:
        super().__init__(script)
        self.targets: list[str] = []

    def target(self) -> ShellWord:
        word = super().target()
        self.targets.append(word.text)
        return word

    def skip_documents(self) -> str:
        for mark, _ in self.documents:
            if mark in self.targets:
                self.targets.remove(mark)
        begin = self.at
        document = super().skip_documents()
        if _has_substitution(self.text[begin : self.at]):
            self.targets.append("a here-document")
        return document


def account_for_worker_ssh_servers(draft: SpecDraft) -> None:
    """Account for the commands of workers that a launcher starts ranks on: the server goes, the rest is asked about."""
    work = draft.work
    if work.start != "mpi" or work.launcher is None:
        return
    for role in work.roles[1:]:
        _account_for_worker_server(draft, role)


def _account_for_worker_server(draft: SpecDraft, role: PodRole) -> None:
    main = role.pod.main
    nodes = [main.node[name] for name in ("command", "args") if main.node[name]]
    rest = list(dict.fromkeys(list_source_work_besides_ssh_server(main.command)))
    if not rest:
        for node in nodes:
            node.dropped(_SERVER)
        return
    more = len(rest) - _MOST
    shown = ", ".join(rest[:_MOST]) + (f" and {more} more" if more > 0 else "")
    why = f"the workers start more than an SSH server, which is all that those of a run start: {shown}"
    for node in nodes[1:]:
        node.asked(why)
    draft.ask(nodes[0], why, _HELP)
    draft.miss("command", "other commands of a worker", shown, None, "workers of a run start an SSH server")


def list_source_work_besides_ssh_server(words: Sequence[str]) -> Iterator[str]:
    """Yield what a command does besides starting an SSH server, by the names of programs and files.

    Other values are left out: they may be secrets.
    """
    if not words:
        return
    at = find_script_index(words, _skip_prefixes(words))
    if at < 0:
        if not _is_about_server(words, ()):
            yield _name_program(words)
        return
    reader = _ScriptReader(words[at])
    try:
        if any(f"{mark}(" in words[at] for mark in "<>"):
            yield "a process substitution"
        for command in reader.read():
            targets, reader.targets = reader.targets, []
            yield from _list_other_work_of_command(command, targets)
        if reader.targets:
            yield from _list_written_files(reader.targets)
    except UnreadableError as error:
        yield f"a script that cannot be read ({error} is not closed)"


def _list_other_work_of_command(command: SimpleCommand, targets: Sequence[str]) -> Iterator[str]:
    hidden = any(one.is_open and _has_substitution(one.text) for one in command.words)
    yield from (f"{one.text.partition('=')[0]}=" for one in command.sets)
    if command.words and (hidden or not _is_about_server(command.texts, targets)):
        yield _name_program(command.texts)
    yield from _list_written_files(targets)


def _name_program(words: Sequence[str]) -> str:
    """Return the name of a program with the prefixes before it."""
    return " ".join(map(program_name_of, words[: _skip_prefixes(words) + 1]))


def _has_substitution(text: str) -> bool:
    return "$(" in text or "`" in text


def _list_written_files(targets: Sequence[str]) -> Iterator[str]:
    """Yield the files that redirections name, other than those of the server and its logs."""
    for one in targets:
        if not (one in _NOWHERE or one.isdigit() or _is_of_server(one)):
            yield one


def _is_about_server(words: Sequence[str], targets: Sequence[str]) -> bool:
    """Return whether a command starts a server, prepares it, or does nothing that lasts."""
    name, rest = program_name_of(words[0]), list(words[1:])
    if _is_server(words) or name in _IDLE or (name == "set" and rest[:1] != ["--"]):
        return True
    if name == "tail":
        return rest == ["-f", "/dev/null"]
    if name in _PRINTERS:
        return any(map(_is_of_server, targets))
    skipped, is_all = _WRITERS.get(name, (0, False))
    files = [one for one in rest if not one.startswith("-")][skipped:]
    return name in _WRITERS and bool(files) and all(map(_is_of_server, files if is_all else files[-1:]))


def _is_server(words: Sequence[str]) -> bool:
    """Return whether a command starts an SSH server or makes its keys."""
    rest = words[_skip_prefixes(words) :]
    name = program_name_of(rest[0])
    if name == "service":
        return list(rest[1:]) in [[one, verb] for one in _SERVICES for verb in ("start", "restart")]
    if name == "systemctl":
        return list(rest[1:]) in [[verb, one] for one in _SERVICES for verb in ("start", "restart")]
    if rest[0].startswith("/etc/init.d/"):
        return name in _SERVICES and list(rest[1:]) in (["start"], ["restart"])
    return name in ("sshd", "ssh-keygen")


def _skip_prefixes(words: Sequence[str]) -> int:
    """Return the index of the program behind prefixes such as `exec` and `tini --`."""
    at = 0
    while at + 1 < len(words) and program_name_of(words[at]) in _BEFORE:
        at += 1
        while at + 1 < len(words) and words[at].startswith("-"):
            at += 1
    return at


def _is_of_server(path: str) -> bool:
    """Return whether a path is that of an SSH server or its keys."""
    path = posixpath.normpath(path)
    parts = path.split("/")
    return (
        ".ssh" in parts or parts[-1] in _CONFIGS or any(f"{path}/".startswith(f"{one}/") for one in _FOLDERS)
    )
