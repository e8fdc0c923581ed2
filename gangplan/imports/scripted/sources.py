"""Find batch scripts of a scheduler in files and folders: one source for each task of a small array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.imports.account import Account, SourceNode
from gangplan.imports.comments import Comments
from gangplan.imports.scripted.directives import BatchScript, read_batch_directive_lines
from gangplan.imports.scripted.wanted import parse_job_array_numbers
from gangplan.imports.sources import SourceObject
from gangplan.rules.imports import IMPORT_SCRIPT, IMPORT_SOURCE

_MOST_BYTES = 1 << 20
# Tasks of an array that become specs one by one; larger arrays become the trials of a sweep.
_MOST_TASKS = 50
_MOST_TRIALS = 10_000
# A line that starts something in the background.
_BESIDE = re.compile(r"[^&|>]&[ \t]*(?:#.*)?$", re.MULTILINE)


class ScriptComments(Comments):
    """The comments of a script, for the fields that its lines become."""

    __slots__ = ("_mark",)

    def __init__(self, text: str, mark: str) -> None:
        super().__init__(text, None, ())
        self._mark = f"#{mark}"

    def head(self) -> list[str]:
        """Return the comments at the top, before the first line of code."""
        at = 0
        while at < len(self._lines) and (self._lines[at].startswith("#!") or not self._lines[at].strip()):
            at += 1
        begin = at
        while at < len(self._lines) and self._is_comment(self._lines[at]):
            at += 1
        return self._above(at) if at > begin else []

    def of(self, node: SourceNode) -> list[str]:
        """Return the comments above the line of an option or a command."""
        line = node.where.line
        if line < 2 or not self._is_comment(self._lines[line - 2]):
            return []
        return self._above(line - 1)

    def _above(self, at: int) -> list[str]:
        begin = at
        while begin > 0 and self._is_comment(self._lines[begin - 1]):
            begin -= 1
        kept = [
            text for text in super()._above(at)[-(at - begin) :] if not text.startswith(("SBATCH", "PBS"))
        ]
        return [text for text in kept if not text.startswith("!")]

    def _is_comment(self, line: str) -> bool:
        bare = line.lstrip()
        return bare.startswith("#") and not bare.startswith((self._mark, "#!", f"#{self._mark}"))


def find_batch_scripts(
    mark: str,
    array: Callable[[str], str],
    steps: Callable[[BatchScript], int],
    files: Sequence[Path],
    filled: Mapping[str, str],
) -> tuple[list[SourceObject], list[Finding]]:
    """Return the scripts in files that have option lines of a scheduler; other files are skipped.

    `array` returns the value of an option for an array, empty for other options; `steps` returns how many
    steps of a script that run in parallel are separate jobs.
    """
    found: list[SourceObject] = []
    findings: list[Finding] = []
    for path in files:
        text = _read_batch_script_text(path, mark, findings)
        if text is not None:
            found += _list_batch_script_sources(path.as_posix(), text, mark, array, filled, findings, steps)
    return found, findings


def _read_batch_script_text(path: Path, mark: str, findings: list[Finding]) -> str | None:
    """Return the text of a script with plain line ends; None if it is not text, or has no option line."""
    place = Location(path.as_posix())
    try:
        if path.stat().st_size > _MOST_BYTES:
            findings.append(
                Finding(
                    IMPORT_SOURCE,
                    place,
                    "it is larger than 1 MiB, which no batch script is",
                    "Leave the file out.",
                )
            )
            return None
        data = path.read_bytes()
    except OSError as error:
        findings.append(Finding(IMPORT_SOURCE, place, f"it cannot be read: {error.strerror}"))
        return None
    if f"#{mark}".encode() not in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        findings.append(
            Finding(
                IMPORT_SOURCE, place, "it is not text in UTF-8", "Save it as UTF-8; or leave the file out."
            )
        )
        return None
    if "\0" in text:
        findings.append(
            Finding(IMPORT_SOURCE, place, "it is not text: it has bytes of zero", "Leave the file out.")
        )
        return None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _list_batch_script_sources(
    file: str,
    text: str,
    mark: str,
    array: Callable[[str], str],
    filled: Mapping[str, str],
    findings: list[Finding],
    steps: Callable[[BatchScript], int],
) -> Iterator[SourceObject]:
    script = BatchScript(file, text, filled)
    lines = list(read_batch_directive_lines(script, mark))
    if not lines:
        return
    tasks: list[int] = []
    for begin, words, counts in lines:
        stated = array(" ".join(word for word, _, _ in words)) if counts else ""
        if stated:
            tasks = parse_job_array_numbers(stated) or []
            is_used = any(name in text for name in ("ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID"))
            if not is_used:
                tasks = []
            elif len(tasks) > _MOST_TRIALS:
                findings.append(
                    Finding(
                        IMPORT_SCRIPT,
                        script.where(begin),
                        f"the array has {len(tasks)} tasks, and a sweep has up to {_MOST_TRIALS} values of a parameter",
                        "Import a part at a time: correct the numbers.",
                    )
                )
                return
    for one in _split_batch_script(script, tasks, steps):
        account = Account(file, one.leaves, one)
        yield SourceObject(account, {}, ScriptComments(text, mark))


def _split_batch_script(
    script: BatchScript, tasks: Sequence[int], steps: Callable[[BatchScript], int]
) -> list[BatchScript]:
    """Return a script for each spec: tasks of its array, parallel steps, or the whole script."""
    if len(tasks) > _MOST_TASKS:
        return [replace(script, spreads=True, leaves={})]
    if tasks:
        return [replace(script, task=task, leaves={}) for task in tasks]
    count = steps(script) if len(_BESIDE.findall(script.text)) > 1 else 0
    return [replace(script, step=number, leaves={}) for number in range(count)] or [
        replace(script, leaves={})
    ]
