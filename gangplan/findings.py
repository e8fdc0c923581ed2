"""A problem, and a finding: one problem at its place in a file. Findings sort by file, line and rule."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from operator import lt
from typing import Any, NamedTuple

from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.rules.objects import SCHEMA

# A plain word of English at the beginning of a sentence; names of programs keep their small letter.
_FIRST_WORD = re.compile(r"[a-z]+(?=[ ,])")
_NAMES = frozenset(("gangplan", "kubectl", "mpirun", "torchrun", "kustomize", "git"))


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file of the workspace. Lines and columns start at 1; 0 means the whole file.

    `end` is the first column behind the word or value there, 0 where it is not known or ends on another line;
    two places that differ only in it are the same.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = field(default=0, compare=False)

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Fix:
    """A mechanical repair: one stretch of one file, and the text that takes its place.

    Lines and columns start at 1 and count code points as YAML does (a line ends at LF, CR LF or CR; a byte
    order mark counts for nothing). The end is the first place behind the stretch.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str
    why: str


@dataclass(frozen=True, slots=True)
class Waived:
    """The waiver that excuses a finding: its file and line, its last day (as 2027-01-31), reason, approver.

    One that is over excuses nothing any more: the finding is shown with it and counts.
    """

    where: Location
    until: str
    reason: str
    approver: str
    is_over: bool = False


# The kind of a field that may not stand where it does.
UNKNOWN_FIELD = "extra_forbidden"


class Clue(NamedTuple):
    """What a problem is about, as data: code reads it here, for message and help are read by people alone.

    `path` is the field of the file, `kind` the kind of error as pydantic calls it, `given` what stands there.
    `meant` is the field that the message asks for, `known` are those that the help lists, and `follows` those
    that the help writes, so that they need no finding of their own where they are missing. `gpu` is how a
    help begins that ends in a GPU model, and that model. `until` is the last day on which this is so.
    """

    path: tuple[str | int, ...] = ()
    kind: str = ""
    given: Any = None
    meant: str = ""
    known: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    gpu: tuple[str, str] = ("", "")
    until: str = ""


NO_CLUE = Clue()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an object or a command, before its place in a file is known.

    `path` leads to the field, or to where a missing one belongs; `field` names the field of the spec that is
    to blame (as in `Job.origins`), where a proof knows it; `level` is the severity if it is not the rule's.
    """

    path: tuple[str | int, ...]
    message: str
    help: str = ""
    rule: Rule = SCHEMA
    field: str = ""
    level: Severity | None = None
    clue: Clue = dataclasses.field(default=NO_CLUE, compare=False)

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity if self.level is None else self.level

    def found(self, where: Location) -> Finding:
        """The problem as a finding at a place."""
        return Finding(self.rule, where, self.message, self.help, level=self.level, clue=self.clue)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem.

    `rule` is the rule that is broken; `where` the place in a user's file that is to blame;
    `object_ref` and `path` name the rendered object and its field when one is involved;
    `help` is one sentence that can be followed or pasted; `waiver` excuses it; `fix` repairs it;
    `clusters` are those that it was found for, empty where it is about none in particular; `level` is its
    severity where that is not the rule's: that of a policy is its binding's to say; `clue` is
    what code may know of it.
    """

    rule: Rule
    where: Location
    message: str
    help: str = ""
    object_ref: str = ""
    path: str = ""
    waiver: Waived | None = None
    fix: Fix | None = field(default=None, compare=False)
    clusters: tuple[str, ...] = field(default=(), compare=False)
    level: Severity | None = None
    clue: Clue = field(default=NO_CLUE, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "help", sentence(self.help))

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity if self.level is None else self.level

    @property
    def counts(self) -> bool:
        """Whether it stands: no waiver that still holds excuses it."""
        return self.waiver is None or self.waiver.is_over

    @property
    def is_error(self) -> bool:
        """Whether it is an error that stands."""
        level = self.rule.severity if self.level is None else self.level
        return level is Severity.ERROR and (self.waiver is None or self.waiver.is_over)

    @property
    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """File, line, column, rule, object, message: the order of every report."""
        return (
            self.where.file,
            self.where.line,
            self.where.column,
            self.rule,
            self.object_ref,
            self.message,
        )


@lru_cache(4096)
def sentence(text: str) -> str:
    """A help as a sentence: a capital letter, unless it begins with a name or a `field:`, and a full stop."""
    text = text.strip()
    if not text:
        return ""
    word = _FIRST_WORD.match(text)
    if word and word[0].strip(" ,") not in _NAMES:
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings sorted and without exact repeats (one cause is reported once, for all its clusters).

    Where one place breaks a rule twice and only one breach is waived, the one that counts comes first.
    """
    every = list(findings)
    keys = [finding.sort_key for finding in every]
    if all(map(lt, keys, keys[1:])):
        return every  # they are in order already, and no two are the same
    return sorted(without_copies(every), key=lambda finding: (finding.sort_key, not finding.counts))


def with_more(ordered: list[Finding], *more: Iterable[Finding]) -> list[Finding]:
    """Findings that are in order already, with others put among them."""
    others = [one for some in more for one in some]
    return in_order([*ordered, *others]) if others else ordered


def without_copies(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without exact repeats, each about all clusters that it was found for."""
    merged: dict[Finding, Finding] = {}
    clusters: dict[Finding, list[str]] = {}
    for finding in findings:
        first = merged.setdefault(finding, finding)
        if first.clusters != finding.clusters:
            clusters.setdefault(first, [*first.clusters]).extend(finding.clusters)
    for first, names in clusters.items():
        merged[first] = on_clusters(first, *names)
    return list(merged.values())


def about(cluster: str, findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those that name no cluster as ones about this."""
    return [one if one.clusters else on_clusters(one, cluster) for one in findings]


def on_clusters(finding: Finding, *clusters: str) -> Finding:
    """The finding as one about these clusters."""
    return _like(finding, finding.message, tuple(sorted(set(clusters))))


def reword(finding: Finding, change: Callable[[str], str]) -> Finding:
    """The finding with its words and the name of its object changed, such as without names of runs."""
    message, help, ref = map(change, (finding.message, finding.help, finding.object_ref))
    return _like(finding, message, finding.clusters, help, ref)


def _like(
    finding: Finding, message: str, clusters: tuple[str, ...], help: str | None = None, ref: str | None = None
) -> Finding:
    """The finding in other words or about other clusters. `replace` takes four times as long, and large
    workspaces have tens of thousands of findings."""
    one = finding
    return Finding(
        one.rule,
        one.where,
        message,
        one.help if help is None else help,
        one.object_ref if ref is None else ref,
        one.path,
        one.waiver,
        one.fix,
        clusters,
        one.level,
        one.clue,
    )


def told_apart(findings: Iterable[Finding], runs: Mapping[str, Collection[str]]) -> list[Finding]:
    """Findings about a run that hold on some of its clusters alone, each with their names in front.

    `runs` are the clusters of each run, by the reference of its object.
    """
    return [_apart(one, runs.get(one.object_ref, ())) for one in findings]


def _apart(finding: Finding, clusters: Collection[str]) -> Finding:
    if not finding.clusters or set(finding.clusters) >= set(clusters):
        return finding
    return _like(finding, f"on {', '.join(finding.clusters)}: {finding.message}", finding.clusters)


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings that count, or None when there is none."""
    return max((finding.severity for finding in findings if finding.counts), default=None)
