"""Read the options of a batch script: lines before its first command that begin with the scheduler's mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from gangplan.findings import FieldPath, Location
from gangplan.imports.account import Account, SourceNode
from gangplan.plan.launchers.shell import ShellReader, UnreadableError
from gangplan.records import dataclass


@dataclass(slots=True)
class BatchScript:
    """A batch script: its text with plain line ends, its account, and the values known before it runs.

    `leaves` are filled in as it is read; `task` is the number in an array for which it is imported, `step`
    the number of the step if several run side by side; `spreads` is set if its array becomes a sweep.
    """

    file: str
    text: str
    filled: Mapping[str, str] = field(default_factory=dict)
    task: int | None = None
    step: int | None = None
    spreads: bool = False
    leaves: dict[FieldPath, tuple[Location, object]] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)

    def where(self, begin: int, end: int | None = None) -> Location:
        """Return the place of a stretch of the text."""
        if not self._starts:
            self._starts = [0, *(found.end() for found in re.finditer("\n", self.text))]
        from bisect import bisect_right

        line = bisect_right(self._starts, begin)
        column = begin - self._starts[line - 1] + 1
        is_short = end is not None and "\n" not in self.text[begin:end]
        return Location(
            self.file, line, column, column + (end - begin) if is_short and end is not None else 0
        )

    def leaf(self, name: str, begin: int, end: int, value: object) -> FieldPath:
        """Add a leaf to the account, by its name, with a number if there are several."""
        path: FieldPath = (name,)
        number = 2
        while path in self.leaves:
            path = (f"{name}#{number}",)
            number += 1
        self.leaves[path] = (self.where(begin, end), value)
        return path

    def lines(self, name: str, begin: int, end: int) -> list[FieldPath]:
        """Add a leaf for every line of a stretch that is not blank or a comment."""
        found = []
        at = begin
        while at < end:
            stop = self.text.find("\n", at, end)
            stop = end if stop < 0 else stop
            line = self.text[at:stop]
            bare = line.strip()
            if bare and not bare.startswith("#"):
                lead = len(line) - len(line.lstrip())
                shown = bare.removesuffix("\\").rstrip() or bare
                found.append(self.leaf(name, at + lead, at + lead + len(shown), shown))
            at = stop + 1
        return found


@dataclass(frozen=True, slots=True)
class ScriptOption:
    """An option as it is written: its name without dashes, its value, and its place in the account."""

    name: str
    value: str
    path: FieldPath
    has_value: bool = True

    def node(self, account: Account) -> SourceNode:
        """Return the node of the option."""
        return SourceNode(account, self.path, self.value)


def read_batch_directive_lines(
    script: BatchScript, mark: str
) -> Iterator[tuple[int, list[tuple[str, int, int]], bool]]:
    """Yield lines with options: where each begins, its words with their places, and whether it counts.

    A scheduler reads no options after the first command (sbatch(1), Slurm 25.05; qsub(1B), PBS 2022.1).
    """
    counts, at = True, 0
    rule = re.compile(rf"#{mark}(?=\s)")
    for line in script.text.split("\n"):
        found = rule.match(line)
        if found:
            yield at, _split_batch_directive_line(line, found.end(), at), counts
        elif line.strip() and not line.lstrip().startswith("#"):
            counts = False
        at += len(line) + 1


def _split_batch_directive_line(line: str, begin: int, offset: int) -> list[tuple[str, int, int]]:
    """Return the words of an option line; ` #` begins a comment."""
    reader, found = ShellReader(line), list[tuple[str, int, int]]()
    reader.at = begin
    while True:
        while reader.at < len(line) and line[reader.at] in " \t\r":
            reader.at += 1
        if reader.at >= len(line) or line[reader.at] == "#":
            return found
        start = reader.at
        try:
            while reader.at < len(line) and line[reader.at] not in " \t\r":
                mark = line[reader.at]
                if mark in "'\"":
                    end = line.find(mark, reader.at + 1)
                    reader.at = end + 1 if end >= 0 else len(line)
                else:
                    reader.at += 1
        except UnreadableError:
            reader.at = len(line)
        found.append(
            (line[start : reader.at].replace('"', "").replace("'", ""), offset + start, offset + reader.at)
        )
