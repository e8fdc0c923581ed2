"""Find files of ConfigMaps that a command starts as programs: their volumes give no right to execute them.

Files of a ConfigMap have the mode 0644 without defaultMode (Kubernetes v1.34, ConfigMapVolumeSource), and the volume
is read-only, whatever modes they have in Git.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from gangplan.findings import FieldPath, Problem
from gangplan.model.folders import is_in_folder
from gangplan.model.job import Job, Mount
from gangplan.plan.flags import find_launchers_of_job
from gangplan.plan.launchers import (
    UnreadableError,
    program_name_of,
    read_script_commands,
    strip_prefixes,
)
from gangplan.plan.launchers.shell import ShellWord
from gangplan.plan.problems import format_flow_list
from gangplan.records import dataclass
from gangplan.rules.commands import COMMAND_NOT_EXECUTABLE

# Builtins of a shell before a program.
_BEFORE = ("exec", "command")
_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin")
_BY_SUFFIX = {".py": "python", ".sh": "bash", ".bash": "bash", ".pl": "perl"}


@dataclass(frozen=True, slots=True)
class _StartedWord:
    """A word of a command that names a program, or a file for chmod: its index there, and its place in a script."""

    text: str
    at: int
    folder: str
    place: ShellWord | None = None
    is_direct: bool = True
    is_for_chmod: bool = False


def check_files_started_as_programs(job: Job, place: FieldPath = ()) -> Iterator[Problem]:
    """Yield the first file of a ConfigMap that the job's command starts. `place` is the field of its container."""
    mounts = [one for one in job.mounts if one.config_map]
    if not mounts or not job.command:
        return
    for one in _list_started_words(job):
        path = _resolve_path(one.text, one.folder) if one.is_for_chmod or "/" in one.text else ""
        mount = next((mount for mount in mounts if path and is_in_folder(path, mount.path)), None)
        if mount is None:
            continue
        message = f"{path} comes from files:, which a run can read and not execute: it does not start (permission denied)"
        help = _propose_interpreter(job, one, mount, path)
        if one.is_for_chmod:
            message = f"{path} comes from files:, whose modes a run cannot change: chmod fails (read-only file system)"
            help = f"Remove chmod. {help}"
        yield Problem((*place, "command", one.at), message, help, COMMAND_NOT_EXECUTABLE)
        return


def _list_started_words(job: Job) -> Iterator[_StartedWord]:
    """Yield the words that the command, its script and the launchers in them start as programs."""
    script, commands = read_script_commands(job.command)
    if script < 0:
        at = strip_prefixes(job.command).at
        yield from [_StartedWord(word, at, job.workdir) for word in job.command[at : at + 1]]
    folders = [(0, job.workdir)]
    for command in commands:
        texts = command.texts
        begin = 1 if texts[:1] and texts[0] in _BEFORE else 0
        at = strip_prefixes(texts, begin).at
        if texts[:1] == ("cd",):
            folder = _resolve_path(texts[1], folders[-1][1]) if len(texts) == 2 else ""
            folders.append((command.words[0].begin, folder))
        elif at < len(texts) and program_name_of(texts[at]) == "chmod":
            for word in command.words[at + 1 :]:
                yield _StartedWord(word.text, script, folders[-1][1], word, is_for_chmod=True)
        elif at < len(texts):
            yield _StartedWord(texts[at], script, folders[-1][1], command.words[at])
    try:
        found = find_launchers_of_job(job)
    except UnreadableError:  # reported with the launchers
        return
    for launch in found:
        if launch.start.launcher.kind not in ("mpi", "horovod") and not any(launch.reading.of("no-python")):
            continue
        for begin, _ in launch.reading.programs:
            at = strip_prefixes(launch.reading.words, begin).at
            text = launch.reading.words[at] if at < len(launch.reading.words) else ""
            if launch.script is None:
                yield _StartedWord(text, at, job.workdir)
            elif at < len(launch.script.words):
                word, is_direct = launch.script.words[at], launch.script.is_direct
                folder = next(one for start, one in reversed(folders) if start <= word.begin or not is_direct)
                yield _StartedWord(text, launch.script.at, folder, word, is_direct)


def _resolve_path(word: str, folder: str) -> str:
    """Return the absolute path of a file; empty if it is unknown."""
    is_known = "$" not in word and (word.startswith("/") or folder)
    return posixpath.normpath(posixpath.join(folder, word)) if is_known else ""


def _propose_interpreter(job: Job, one: _StartedWord, mount: Mount, path: str) -> str:
    """Return a help with the command that starts a file with its interpreter, as far as both are known."""
    words = _find_interpreter(job, mount, path)
    if not words:
        return "Put the program into the image; files: is for files that a program reads."
    command = list(job.command)
    if one.place is None:
        command[one.at : one.at] = words
    elif one.is_direct and not one.place.is_part and not one.is_for_chmod:
        begin, text = one.place.begin, command[one.at]
        command[one.at] = f"{text[:begin]}{' '.join(words)} {text[begin:]}"
    else:
        return f"Start the file with its interpreter: {' '.join(words)} {path}."
    return f"Write command: {format_flow_list(command)}."


def _find_interpreter(job: Job, mount: Mount, path: str) -> Sequence[str]:
    """Return the interpreter in the first line of a file, or the one that its name says."""
    data = next((one.data for one in job.files if mount.key and one.key == mount.key), b"")
    line = data.partition(b"\n")[0].decode(errors="replace")
    words = line[2:].split() if line.startswith("#!") else []
    if words and program_name_of(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words:
        return [name] if (name := _BY_SUFFIX.get(posixpath.splitext(path)[1])) else []
    is_usual = posixpath.dirname(words[0]) in _SYSTEM_FOLDERS
    return [program_name_of(words[0]) if is_usual else words[0], *words[1:]]
