"""Fingerprints that stay the same, counts of findings, and the changes that come first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.findings import (
    Finding,
    Location,
    merge_findings_across_clusters,
    set_clusters,
    sort_findings,
)
from gangplan.report.changes import suggest_first_changes_for_findings
from gangplan.report.escape import escape_log_line, is_plain_log_line
from gangplan.report.model import format_check_summary, list_report_entries
from gangplan.report.text import text_report
from gangplan.rulebook import Rulebook
from gangplan.rules.model import Severity
from tests.report.samples import FINDINGS, WAIVER, all_kinds, finding, report


def prints(*findings: Finding) -> list[str]:
    return [entry.fingerprint for entry in list_report_entries(findings)]


@settings(max_examples=60, deadline=None)
@given(FINDINGS)
def test_fingerprints_are_unique_and_independent_of_lines(found: list[Finding]) -> None:
    assert len(set(prints(*found))) == len(prints(*found)) == len(set(found))
    moved = [replace(one, where=replace(one.where, line=one.where.line + 7)) for one in found]
    assert prints(*moved) == prints(*found)


def test_a_fingerprint_stays_when_numbers_change() -> None:
    old = finding("run filings-1a2b3c4d wants 12 GPUs, the pool has 8")
    new = finding("run filings-9f8e7d6c wants 16 GPUs, the pool has 8")
    assert prints(old) == prints(new)
    assert prints(old) != prints(finding("run notes-1a2b3c4d wants 12 GPUs, the pool has 8"))
    assert prints(old) != prints(replace(old, rule=Rulebook().policy("schema")))
    assert prints(old) != prints(replace(old, where=Location("specs/nlp/other.yaml", 8, 9)))


def test_the_field_of_an_object_decides_its_fingerprint() -> None:
    schema = all_kinds()[1]
    assert prints(schema) == prints(replace(schema, message="said otherwise"))
    assert prints(schema) != prints(replace(schema, path="spec.other"))


def test_one_change_may_resolve_many_findings() -> None:
    at = Location("overlays/lab/kustomization.yaml", 5, 3)
    broken = [
        Finding(
            Rulebook().policy("schema"),
            at,
            "unknown field 'sped'",
            "Correct the patch.",
            f"TrainJob/nlp/{name}",
        )
        for name in "abcdefghijklmn"
    ]
    alike = [
        finding("too many", Severity.WARNING, "slots-not-gpus", f"specs/nlp/{name}.yaml") for name in "abc"
    ]
    waived = [replace(one, waiver=WAIVER, rule=Rulebook().policy("image-digest")) for one in alike]
    first, second = suggest_first_changes_for_findings([*alike, *broken, *waived, finding("alone")])
    assert (first.words, first.places) == ("1 change resolves 14 findings", (at,))
    assert second.words == "the same change in 3 places resolves 3 findings"


def test_one_change_may_have_several_findings_at_each_place() -> None:
    """Two specs with a finding for each of three clusters and one of a single cluster need one change."""
    found = [
        finding(
            f"on {cluster}", Severity.WARNING, "slots-not-gpus", f"specs/nlp/{name}.yaml", help="Lower it."
        )
        for name, clusters in {"a": "xyz", "b": "xyz", "c": "x"}.items()
        for cluster in clusters
    ]
    assert [one.words for one in suggest_first_changes_for_findings(found)] == [
        "the same change in 3 places resolves 7 findings"
    ]


def many(help: str, rule: str = "spec-value", severity: Severity = Severity.ERROR) -> list[Finding]:
    """Return three findings in three files, with the same help."""
    return [finding(name, severity, rule, f"specs/nlp/{name}.yaml", help=help) for name in "abc"]


@pytest.mark.parametrize(
    "help",
    [
        "For example workers: 8.",
        "Say why, for example reason: The image cannot be rebuilt.",
        "Write a number and its unit, such as 32Gi.",
        "Name who did: approver: ml-platform@example.com.",
    ],
)
def test_an_example_is_not_a_change_for_many_places(help: str) -> None:
    assert suggest_first_changes_for_findings(many(help)) == []
    same = [replace(one, where=Location("specs/nlp/a.yaml", 1, 1)) for one in many(help)]
    assert [one.words for one in suggest_first_changes_for_findings(same)] == ["1 change resolves 3 findings"]


def test_a_command_is_run_once() -> None:
    found = many("Run gangplan render and commit.")
    twice = replace(found[0], message="on another cluster")
    (change,) = suggest_first_changes_for_findings([*found, twice])
    assert change.words == "1 command resolves 4 findings"
    assert len(change.places) == 3


def test_a_choice_is_not_a_change() -> None:
    assert (
        suggest_first_changes_for_findings(
            many("To keep runs: gangplan render --keep-runs.", "run-renamed", Severity.WARNING)
        )
        == []
    )


def test_the_summary_says_what_failed() -> None:
    warned = finding("w", Severity.WARNING)
    failed = "; failed by --fail-on "
    assert format_check_summary(report(warned, fail_on=Severity.WARNING)).endswith(
        f": 1 warning{failed}warning"
    )
    assert format_check_summary(report(warned, fail_on=Severity.NOTE)).endswith(f"{failed}note")
    for one in (report(warned), report(warned, finding("e"), fail_on=Severity.WARNING)):
        assert failed not in format_check_summary(one)
    waived = replace(warned, waiver=WAIVER)
    assert failed not in format_check_summary(report(waived, fail_on=Severity.WARNING))


def test_changes_that_resolve_errors_come_first() -> None:
    warnings = [
        finding("too many", Severity.WARNING, "slots-not-gpus", f"specs/{name}.yaml") for name in "abc"
    ]
    errors = [finding("wrong", file=f"specs/{name}.yaml") for name in "xy"]
    assert [one.rule for one in suggest_first_changes_for_findings([*warnings, *errors])] == [
        "spec-value",
        "slots-not-gpus",
    ]


def test_the_summary_counts_in_words() -> None:
    assert format_check_summary(report(*all_kinds())) == (
        "checked 2 specs, 2 runs, 31 objects, 1 policy (embedded validator): "
        "4 errors, 2 warnings, 1 note, 1 waived, 1 fixable with --fix"
    )
    assert format_check_summary(report()).endswith(": no findings")


def test_text_groups_files_the_worst_first() -> None:
    found = [
        finding("a", Severity.NOTE, file="specs/a.yaml"),
        finding("b", Severity.WARNING, file="specs/b.yaml"),
        finding("c1", Severity.WARNING, file="specs/c.yaml", line=1),
        finding("c2", file="specs/c.yaml", line=2),
    ]
    lines = text_report(found).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "specs/c.yaml", "  help", "specs/c.yaml", "  help", "",
        "specs/b.yaml", "  help", "", "specs/a.yaml", "  help",
    ]  # fmt: skip


def test_an_excerpt_points_at_the_column() -> None:
    text = text_report([finding()], line=lambda where: "memory: 32GB  ")
    assert text.splitlines()[1:3] == ["    8 | memory: 32GB", "      |         ^"]
    for hidden in (None, "memory: \x1b[31m", "short"):
        assert "|" not in text_report([finding()], line=lambda where, shown=hidden: shown)  # type: ignore[misc]


def test_findings_of_one_place_with_the_same_help_show_it_once() -> None:
    at = Location("specs/nlp/a.yaml", 2, 3)
    found = [
        replace(finding(f"on {cluster}", Severity.WARNING, "slots-not-gpus", help=help), where=at)
        for cluster, help in (("x", "Lower it."), ("y", "Lower it."), ("z", "Raise it."))
    ]
    assert text_report(found, line=lambda _: "  slots: 3").splitlines() == [
        "specs/nlp/a.yaml:2:3: warning[slots-not-gpus] on x",
        "    2 |   slots: 3",
        "      |   ^",
        "specs/nlp/a.yaml:2:3: warning[slots-not-gpus] on y",
        "  help: Lower it.",
        "specs/nlp/a.yaml:2:3: warning[slots-not-gpus] on z",
        "    2 |   slots: 3",
        "      |   ^",
        "  help: Raise it.",
    ]


@settings(max_examples=200, deadline=None)
@given(FINDINGS, st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", ""]), st.booleans())))
def test_sorted_findings_are_those_that_are_merged_and_then_sorted(
    found: list[Finding], picks: list[tuple[int, str, bool]]
) -> None:
    """Only those with the same key are compared, which may be few of thousands."""
    every = list(found)
    for index, cluster, is_waived in picks if found else ():
        one = set_clusters(found[index % len(found)], *([cluster] if cluster else []))
        every.append(replace(one, waiver=WAIVER if is_waived else None))
    merged = merge_findings_across_clusters(every)
    wanted = sorted(merged, key=lambda one: (one.sort_key, not one.counts))
    assert [(one, one.clusters) for one in sort_findings(every)] == [(one, one.clusters) for one in wanted]


@given(st.text() | st.text("#[]a\t \x7f~"))
def test_a_plain_line_is_one_that_stays_as_it_is(text: str) -> None:
    """A line that is not plain may stay as it is too, such as one with an umlaut."""
    assert not is_plain_log_line(text) or escape_log_line(text) == text
    assert is_plain_log_line(text) == (text.isascii() and text.isprintable() and "##" not in text)


def test_a_change_names_each_place_once_in_order() -> None:
    one = finding(help="Write x.")
    places = [replace(one.where, line=line, end=end) for line, end in ((3, 0), (12, 4), (3, 9), (12, 4))]
    (change,) = suggest_first_changes_for_findings([replace(one, where=where) for where in places])
    assert [(where.line, where.end) for where in change.places] == [(3, 0), (12, 4)]
