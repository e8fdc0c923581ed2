"""Every format of a report: its shape and its limits, and that all formats have the same findings."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import Phase, given, settings

from gangplan.findings import Finding
from gangplan.reference.schemas import build_editor_schema_of_format
from gangplan.report import sarif as sarif_module
from gangplan.report.escape import escape_log_line, escape_xml, make_visible, replace_surrogates
from gangplan.report.github import MOST_OF_A_LEVEL, github_report, render_step_summary
from gangplan.report.gitlab import gitlab_report
from gangplan.report.json import report_json
from gangplan.report.junit import junit_report
from gangplan.report.markdown import COMMENT_MARKER, MOST_BYTES, markdown_report
from gangplan.report.model import Report, describe_waiver, format_title, is_waived
from gangplan.report.sarif import FINGERPRINT, sarif_report
from gangplan.report.text import whole_text
from gangplan.rules.model import Severity
from tests.report import readers
from tests.report.samples import FINDINGS, NASTY, WAIVER, all_kinds, finding, report

GOLDEN = Path(__file__).with_name("golden")
MAKERS = {
    "text.txt": whole_text,
    "json.json": report_json,
    "sarif.json": sarif_report,
    "junit.xml": junit_report,
    "github.txt": github_report,
    "gitlab.json": gitlab_report,
    "markdown.md": markdown_report,
}


@pytest.mark.parametrize("name", MAKERS)
def test_each_format_equals_its_golden_file(name: str, is_updating: bool) -> None:
    text = MAKERS[name](report(*all_kinds(), folder="ml"))
    if is_updating:
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert (GOLDEN / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", MAKERS)
def test_the_order_of_findings_changes_nothing(name: str) -> None:
    assert MAKERS[name](report(*reversed(all_kinds()))) == MAKERS[name](report(*sorted_like(all_kinds())))


def test_the_worst_findings_come_first_for_programs() -> None:
    found = (
        finding("a", Severity.NOTE, file="specs/a.yaml", help=""),
        finding("b", Severity.WARNING, file="specs/b.yaml", help=""),
        finding("c", file="specs/c.yaml", help=""),
        replace(finding("0", file="specs/0.yaml", help=""), waiver=WAIVER),
    )
    wanted = ["c", "b", "a", "0"]
    assert [one["message"] for one in json.loads(report_json(report(*found)))["findings"]] == wanted
    lines = sarif_report(report(*found)), gitlab_report(report(*found)), markdown_report(report(*found))
    for text in lines:
        places = [text.index(f"specs/{one}.yaml") for one in wanted]
        assert places == sorted(places)


def sorted_like(findings: tuple[Finding, ...]) -> list[Finding]:
    return sorted(findings, key=lambda one: one.sort_key, reverse=True)


@pytest.mark.parametrize("name", MAKERS)
def test_a_clean_run_gives_a_complete_report(name: str) -> None:
    text = MAKERS[name](report())
    if name == "sarif.json":
        assert readers.sarif(text)["results"] == []
    elif name == "gitlab.json":
        assert text == "[]\n"
    elif name == "junit.xml":
        cases = readers.junit(text)
        assert [case.is_passed for case in cases] == [True, True]
    else:
        assert "no findings" in text or '"findings": []' in text


def test_a_platform_without_specs_has_a_passing_case() -> None:
    (case,) = readers.junit(junit_report(Report((), {"objects": 3})))
    assert case.is_passed


def seen_lines(text: str) -> str:
    """Return a text of several lines as SARIF shows it, with invisible characters written out."""
    return "\n".join(map(make_visible, text.split("\n")))


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(FINDINGS)
def test_all_formats_have_the_same_findings(found: list[Finding]) -> None:
    whole_report = report(*found, folder="ml/jobs")
    held = [entry.finding for entry in whole_report.entries]
    wanted = Counter(
        (one.rule, f"ml/jobs/{one.where.file}", one.where.line, replace_surrogates(format_title(one)))
        for one in held
    )
    document = json.loads(report_json(whole_report))
    jsonschema.validate(document, build_editor_schema_of_format("findings"))
    assert wanted == Counter(
        (one["rule"], f"{document['folder']}/{one['file']}", one["line"],
         f"{one['object']}: {one['message']}" if one["object"] else one["message"])
        for one in document["findings"]
    )  # fmt: skip
    results = readers.sarif(sarif_report(whole_report))["results"]
    with_help = Counter(
        (
            one.rule,
            f"ml/jobs/{one.where.file}",
            one.where.line,
            (f"{format_title(one)} ({describe_waiver(one)})" if is_waived(one) else format_title(one))
            + (f"\n{one.help}" if one.help else ""),
        )
        for one in held
    )
    assert Counter({(*key[:3], seen_lines(key[3])): count for key, count in with_help.items()}) == Counter(
        (one["ruleId"], readers.sarif_file(one), readers.sarif_line(one), readers.sarif_message(one))
        for one in results
    )
    waived = [one for one in results if "suppressions" in one]
    assert len(waived) == sum(map(is_waived, held))
    quality = readers.gitlab(gitlab_report(whole_report))
    assert sum(wanted.values()) == len(quality)
    assert all(
        any(make_visible(format_title(one)) in told["description"] for told in quality) for one in held
    )
    prints = {one["partialFingerprints"][FINGERPRINT] for one in results}
    assert (
        prints
        == {one["fingerprint"] for one in quality}
        == {one["fingerprint"] for one in document["findings"]}
    )
    assert len(prints) == len(held)
    cases = [case for case in readers.junit(junit_report(whole_report)) if case.name != "no findings"]
    assert len(cases) == len(held)
    assert sum(case.is_skipped for case in cases) == len(waived)
    assert sum(case.is_failure for case in cases) == sum(one.is_error for one in held)
    shown = readers.annotations(github_report(whole_report))
    assert Counter(
        (one.properties["title"], one.properties["file"], int(one.properties["line"])) for one in shown
    ) == Counter(
        (one.rule, f"ml/jobs/{make_visible(one.where.file)}", one.where.line)
        for one in held
        if not is_waived(one)
    )
    seen = readers.markdown_text(markdown_report(whole_report))
    lines = whole_text(whole_report).splitlines()
    for one in held:
        assert make_visible(format_title(one)).split() == [] or " ".join(
            make_visible(format_title(one)).split()
        ) in " ".join(seen.split())
        assert any(
            f"{one.severity.word}[{one.rule}] {escape_log_line(format_title(one))}" in line for line in lines
        )


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
@pytest.mark.parametrize("name", MAKERS)
def test_texts_of_users_stay_texts(nasty: str, name: str) -> None:
    one = finding(
        f"value '{nasty}'", help=f"Not {nasty}.", file=f"specs/nlp/{nasty.replace(chr(0), '')}.yaml"
    )
    text = MAKERS[name](report(one, finding()))
    text.encode("utf-8")
    if name in ("text.txt", "github.txt", "markdown.md", "junit.xml"):
        assert not [char for char in text if char != "\n" and make_visible(char) != char]
    if name in ("text.txt", "github.txt"):
        readers.annotations(text)
    elif name == "markdown.md":
        readers.markdown_text(text)
    elif name == "junit.xml":
        assert sum(case.is_failure for case in readers.junit(text)) == 2
    elif name == "sarif.json":
        assert len(readers.sarif(text)["results"]) == 2
    else:
        json.loads(text)


def test_markdown_shows_messages_as_they_are() -> None:
    for nasty in NASTY:
        seen = readers.markdown_text(markdown_report(report(finding(f"value {nasty} end"))))
        assert " ".join(make_visible(nasty).split()) in " ".join(seen.split())


def test_xml_escapes_what_it_cannot_contain() -> None:
    assert escape_xml("a\x00b\ufffec\n<&>") == "a\\x00b\\ufffec\\n<&>"


def test_github_shows_the_worst_ten_first() -> None:
    many = [finding(f"error {number}", line=number) for number in range(1, 15)]
    many += [finding(f"warning {number}", Severity.WARNING, line=number) for number in range(1, 13)]
    many += [finding(f"note {number}", Severity.NOTE, line=number) for number in range(1, 15)]
    log = readers.annotations(github_report(report(*reversed(many))))
    assert [one.name for one in log] == ["error"] * 10 + ["warning"] * 10 + ["notice"] * MOST_OF_A_LEVEL
    assert [one.data.splitlines()[0] for one in log[:10]] == [f"error {number}" for number in range(1, 11)]
    assert log[-1].data.startswith("11 more findings: ")
    summary = readers.markdown_text(render_step_summary(report(*many)))
    assert all(one.message in summary for one in many)


def test_a_waived_finding_has_no_annotation() -> None:
    log = readers.annotations(github_report(report(*all_kinds())))
    assert "image-digest" not in {one.properties["title"] for one in log}
    assert "image-latest" in {one.properties["title"] for one in log}  # its waiver has expired


def test_a_comment_stays_within_its_limit() -> None:
    many = [
        finding(f"東京 {number} {'@<x>' * 40}", line=number, file=f"specs/a/{number}.yaml")
        for number in range(1, 900)
    ]
    text = markdown_report(report(*many))
    assert MOST_BYTES * 0.9 < len(text.encode()) <= MOST_BYTES
    seen = readers.markdown_text(text)
    shown = seen.count("spec-value")
    assert f"{899 - shown} more do not fit here" in seen
    assert text.startswith(COMMENT_MARKER)
    assert text.count("<details") == text.count("</details>") == 1


def test_sarif_leaves_out_results_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif_module, "MOST_RESULTS", 3)
    many = [finding(f"note {letter}", Severity.NOTE) for letter in "abc"] + [finding("worst")]
    run = readers.sarif(sarif_report(report(*many)))
    assert [one["level"] for one in run["results"]] == ["error", "note", "note"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("1 findings are left out")


def test_sarif_describes_findings_of_all_kinds() -> None:
    run = readers.sarif(sarif_report(report(*all_kinds(), folder="ml")))
    by_rule = {one["ruleId"]: one for one in run["results"]}
    assert by_rule["image-digest"]["level"] == "note"  # GitHub knows no suppressions
    assert by_rule["image-digest"]["suppressions"][0]["justification"].startswith(
        "waived until 2027-01-31: moves"
    )
    assert "suppressions" not in by_rule["image-latest"]
    change = by_rule["spec-value"]["fixes"][0]["artifactChanges"][0]
    assert change["artifactLocation"]["uri"] == "ml/specs/nlp/filings.yaml"
    assert by_rule["catalog-missing"]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1,
    }  # fmt: skip
    assert by_rule["schema"]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].endswith(
        "/spec.sped"
    )
    pages = {one["id"]: one for one in run["tool"]["driver"]["rules"]}
    assert pages["spec-value"]["help"]["markdown"]


@pytest.mark.parametrize(("level", "failed"), [("error", 4), ("warning", 6), ("note", 7)])
def test_junit_fails_as_the_command_does(level: str, failed: int) -> None:
    fail_on = next(one for one in Severity if one.word == level)
    cases = readers.junit(junit_report(report(*all_kinds(), fail_on=fail_on)))
    assert sum(case.is_failure for case in cases) == failed
    assert sum(case.is_skipped for case in cases) == 1


def test_the_schema_of_findings_has_every_key() -> None:
    """The schema describes every field: it accepts the document even without additional properties."""

    def closed(value: object) -> object:
        if isinstance(value, dict):
            shut = {key: closed(item) for key, item in value.items()}
            return shut | (
                {"additionalProperties": False} if isinstance(value.get("properties"), dict) else {}
            )
        return [closed(item) for item in value] if isinstance(value, list) else value

    schema = closed(build_editor_schema_of_format("findings"))
    jsonschema.validate(json.loads(report_json(report(*all_kinds()))), schema)  # type: ignore[arg-type]


def test_a_case_of_junit_keeps_its_name_from_day_to_day() -> None:
    """Otherwise a CI system reports one failure fixed and another one new each day."""
    names = set()
    for days in (20, 19, 1):
        today = datetime.date(2026, 12, 31) - datetime.timedelta(days)
        message = (
            f"the waiver ends in {days} day{'s' * (days > 1)}, on 2026-12-31, and today is {today}; 4 GPUs"
        )
        text = junit_report(report(replace(finding(), message=message)))
        assert str(today) in text  # what the case says has it all
        names.update(case.name for case in readers.junit(text) if case.name != "no findings")
    assert len(names) == 1
    assert all(name.endswith("the waiver ends in …, on …, and today is …; 4 GPUs") for name in names), names
