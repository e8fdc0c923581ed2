"""Problems, and findings: problems with their place in a file. Findings sort by file, line and rule."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from operator import lt
from typing import Any, NamedTuple

from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.rules.objects import SCHEMA

# A plain English word at the beginning of a sentence; names of programs keep their lower case.
_FIRST_WORD = re.compile(r"[a-z]+(?=[ ,])")
_NAMES = frozenset(("gangplan", "kubectl", "mpirun", "torchrun", "kustomize", "git"))


# Keys and indexes from the top of a document to a value in it.
FieldPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file of the workspace. Lines and columns start at 1; 0 means the whole file.

    `end` is the first column after the word or value there, 0 where it is unknown or on another line; two
    places that differ only in `end` are equal.
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
    """A mechanical fix: one range of one file, and the text that replaces it.

    Lines and columns start at 1 and count code points as YAML does (a line ends at LF, CR LF or CR; a byte
    order mark is not counted). The end is the first position after the range.
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

    An expired waiver (`is_over`) no longer excuses: the finding is shown with it, and counts.
    """

    where: Location
    until: str
    reason: str
    approver: str
    is_over: bool = False


# The kind of error for a field that is not allowed in its place.
UNKNOWN_FIELD = "extra_forbidden"


class Clue(NamedTuple):
    """What a problem is about, as data for code; message and help are only for people.

    `path` is the field of the file, `kind` the kind of error as pydantic calls it, `given` the value there.
    `meant` is the field that the message asks for, `known` are those that the help lists, and `follows` those
    that the help writes, so that their absence needs no finding of its own. `gpu` is the beginning of a help
    that ends with a GPU model, and that model. `until` is the last day on which the problem exists.
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
    """One breach of a rule by an object or a command, before its place in a file is known.

    `path` leads to the field, or to where a missing one belongs; `field` names the field of the spec that
    caused it (as in `Job.origins`), where a proof knows it; `level` is the severity if it is not the rule's.
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
        """Return the problem as a finding at this place."""
        return Finding(self.rule, where, self.message, self.help, level=self.level, clue=self.clue)


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule at one place.

    `rule` is the rule that is broken; `where` the place in a user's file that causes it;
    `object_ref` and `path` name the rendered object and its field when one is involved;
    `help` is one sentence that can be followed or pasted; `waiver` excuses it; `fix` removes it;
    `clusters` are those that it was found for, empty where it concerns no particular one; `level` is its
    severity where that is not the rule's, since the binding of a policy decides that; `clue` is
    what code may read about it.
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
        object.__setattr__(self, "help", format_sentence(self.help))

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity if self.level is None else self.level

    @property
    def counts(self) -> bool:
        """Whether no waiver that is still valid excuses it."""
        return self.waiver is None or self.waiver.is_over

    @property
    def is_error(self) -> bool:
        """Whether it is an error that counts."""
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
def format_sentence(text: str) -> str:
    """Return a help as a sentence: a capital, unless it begins with a name or `field:`, and a full stop."""
    text = text.strip()
    if not text:
        return ""
    word = _FIRST_WORD.match(text)
    if word and word[0].strip(" ,") not in _NAMES:
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings and drop exact repeats (one cause is reported once, for all its clusters).

    Where one place breaks a rule twice and only one breach is waived, the one that counts comes first.
    """
    every = list(findings)
    keys = [finding.sort_key for finding in every]
    if all(map(lt, keys, keys[1:])):
        return every  # already in order, and all different
    found: list[Finding] = []
    for _, numbers in groupby(sorted(range(len(every)), key=keys.__getitem__), keys.__getitem__):
        same = [every[number] for number in numbers]  # only these can be exact repeats
        if len(same) > 1:
            same = sorted(merge_findings_across_clusters(same), key=lambda finding: not finding.counts)
        found += same
    return found


def merge_sorted_findings(ordered: list[Finding], *more: Iterable[Finding]) -> list[Finding]:
    """Return findings that are already in order, with others sorted in among them."""
    others = [one for some in more for one in some]
    return sort_findings([*ordered, *others]) if others else ordered


def merge_findings_across_clusters(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without exact repeats, each with all clusters that it was found for."""
    merged: dict[Finding, Finding] = {}
    clusters: dict[Finding, list[str]] = {}
    for finding in findings:
        first = merged.setdefault(finding, finding)
        if first.clusters != finding.clusters:
            clusters.setdefault(first, [*first.clusters]).extend(finding.clusters)
    for first, names in clusters.items():
        merged[first] = set_clusters(first, *names)
    return list(merged.values())


def assign_cluster(cluster: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings; those that name no cluster now name this one."""
    return [one if one.clusters else set_clusters(one, cluster) for one in findings]


def set_clusters(finding: Finding, *clusters: str) -> Finding:
    """Return a copy of the finding with exactly these clusters."""
    return _copy_finding_with_changes(finding, finding.message, tuple(sorted(set(clusters))))


def reword_finding(finding: Finding, change: Callable[[str], str]) -> Finding:
    """Return the finding with its texts and its object's name changed, for example without names of runs."""
    message, help, ref = map(change, (finding.message, finding.help, finding.object_ref))
    return _copy_finding_with_changes(finding, message, finding.clusters, help, ref)


def _copy_finding_with_changes(
    finding: Finding, message: str, clusters: tuple[str, ...], help: str | None = None, ref: str | None = None
) -> Finding:
    """Return a copy of the finding with another message, help, object or clusters.

    `replace` takes four times as long, and large workspaces have tens of thousands of findings.
    """
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


def name_differing_clusters(
    findings: Iterable[Finding], runs: Mapping[str, Collection[str]]
) -> list[Finding]:
    """Name the clusters at the start of each finding that concerns only some clusters of its run.

    `runs` are the clusters of each run, by the reference of its object.
    """
    return [_add_clusters_to_finding_message(one, runs.get(one.object_ref, ())) for one in findings]


def _add_clusters_to_finding_message(finding: Finding, clusters: Collection[str]) -> Finding:
    if not finding.clusters or not clusters or set(finding.clusters) >= set(clusters):
        return finding
    return _copy_finding_with_changes(
        finding, f"on {', '.join(finding.clusters)}: {finding.message}", finding.clusters
    )


def find_worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """Return the highest severity among findings that count, or None if none counts."""
    return max((finding.severity for finding in findings if finding.counts), default=None)
