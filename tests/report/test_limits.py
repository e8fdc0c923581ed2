"""The demands and limits of the readers of reports, met by findings of every size and number."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.findings import Finding, Fix, Location
from gangplan.report.github import github_report, render_step_summary
from gangplan.report.gitlab import gitlab_report
from gangplan.report.json import build_findings_json
from gangplan.report.junit import junit_report
from gangplan.report.markdown import MOST_BYTES, markdown_report
from gangplan.report.sarif import sarif_report
from gangplan.rulebook import Rulebook
from tests import workspaces
from tests.report import readers
from tests.report.samples import all_kinds, finding, report
from tests.workspaces import REPOSITORY, gangplan, write

FAULTS: tuple[Callable[[str], str], ...] = (
    lambda spec: spec.replace("32Gi", "32GB"),
    lambda spec: spec.replace("gpus: 2", "gpus: two"),
    lambda spec: spec.replace("workers: 4", "workers: -1"),
    lambda spec: spec.replace("image: openmpi", "image: [::error::x]"),
    lambda spec: spec.replace("kind: TrainingJob", "kind: TrainingJbo"),
    lambda spec: spec + "wrokers: 3\n",
    lambda spec: spec + "slots: 4\n",
    lambda spec: spec + "timeout: 3 weeks\n",
    lambda spec: spec + "cpu: 9\n",
    lambda spec: spec + 'labels: {"a b": "::x,y:%0A", "[a](b)": "<b>"}\n',
    lambda spec: spec + 'retries: "##[group] @all `x` |"\n',
)
NAMES = ("job-{}", "job {}", "jöb-{}", "job,{}:x", "job%{}#?", "[job](x{})", "作業{}")


def bad_specs(count: int, head: str = "") -> dict[str, str]:
    """Return spec files with one to four faults each, the same every time."""
    dice = random.Random(7)
    files = {}
    for number in range(count):
        spec = workspaces.SPEC
        for fault in dice.sample(FAULTS, dice.randint(1, 4)):
            spec = fault(spec)
        name = NAMES[number % len(NAMES)].format(number)
        files[f"specs/nlp/{name}.yaml"] = head + spec
    return files


# The schema


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["results"][0]["locations"][0]["physicalLocation"].update(region={"startColumn": 2}),
        lambda run: run["results"][0]["locations"][0]["physicalLocation"].pop("artifactLocation"),
        lambda run: run["results"][0].update(level="critical"),
        lambda run: run["results"][0].update(severity="error"),
        lambda run: run["results"][0].pop("message"),
        lambda run: run["results"][0].update(suppressions=[{"justification": "no kind"}]),
        lambda run: run["tool"]["driver"].pop("name"),
        lambda run: run["invocations"][0].pop("executionSuccessful"),
    ],
)
def test_the_oasis_schema_refuses_invalid_sarif(spoil: Callable[[dict[str, object]], object]) -> None:
    document = json.loads(sarif_report(report(*all_kinds())))
    assert readers.oasis_errors(document) == []
    spoilt = copy.deepcopy(document)
    spoil(spoilt["runs"][0])
    assert readers.oasis_errors(spoilt)


def test_the_oasis_schema_is_that_of_errata_01() -> None:
    schema = readers.oasis_schema()
    assert schema["id"].endswith("/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
    assert {"required": ["startLine"]} in schema["definitions"]["region"]["anyOf"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' type="spec-value"', ' kind="x"'),
        ("<testcase ", '<testcase file="a" '),
        (' name="gangplan"', ' skipped="0"'),
    ],
)
def test_the_schema_of_junit_refuses_other_attributes(old: str, new: str) -> None:
    text = junit_report(report(*all_kinds()))
    readers.junit(text)
    with pytest.raises(AssertionError):
        readers.junit(text.replace(old, new, 1))


# SARIF for GitHub


def test_a_policy_of_the_workspace_has_all_texts_that_github_needs() -> None:
    long = "long-" * 400 + "name"
    run = readers.sarif(sarif_report(report(finding(rule="few-workers"), finding(rule=long))))
    few, other = run["tool"]["driver"]["rules"]
    assert few["fullDescription"]["text"] == "few-workers, a policy of this workspace."
    assert (other["id"], len(other["name"]), len(other["shortDescription"]["text"])) == (long, 255, 1024)


def test_every_rule_names_a_page_that_exists() -> None:
    """`helpUri` would have to be absolute (OASIS: format uri), and the address of a repository is unknown."""
    rules = readers.sarif(sarif_report(report(*all_kinds())))["tool"]["driver"]["rules"]
    places = {rule["id"]: re.findall(r"docs/(\w+\.md)#([\w-]+)", rule["help"]["text"]) for rule in rules}
    assert {page for found in places.values() for page, _ in found} == {"rules.md", "policies.md"}
    for rule, found in places.items():
        ((page, anchor),) = found
        assert anchor == rule
        assert f"### {rule}\n" in (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
        assert all("helpUri" not in one for one in rules)


def test_a_site_can_set_the_address_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_RULE_PAGES", "https://docs.example.com/gangplan/{page}.html#{rule}")
    rules = readers.sarif(sarif_report(report(*all_kinds())))["tool"]["driver"]["rules"]
    for rule in rules:
        page = re.findall(r"docs/(\w+)\.md#", rule["help"]["text"])[0]
        assert rule["helpUri"] == f"https://docs.example.com/gangplan/{page}.html#{rule['id']}"


@pytest.mark.parametrize(
    "address",
    ["docs/rules.md", "https://docs.example.com", "https://d/{rule} x", "https://d/{0}{rule}", "{rule}"],
)
def test_a_wrong_address_is_refused_before_any_work(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GANGPLAN_RULE_PAGES", address)
    root = workspaces.stock(tmp_path / "jobs")
    outcome = gangplan("validate", "-C", root, "--format", "sarif")
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "does not say where the page of a rule is" in outcome.err
    assert gangplan("validate", "-C", root).code != Exit.INPUT


def test_a_region_has_both_ends() -> None:
    fix = Fix("specs/nlp/filings.yaml", 8, 9, 8, 13, "32Gi", "GB is not a unit of Kubernetes")
    where = Location("specs/nlp/filings.yaml", 8, 9)
    elsewhere = Fix(where.file, 3, 1, 4, 2, "x", "y")
    cases = {
        (8, 9, 8, 10): finding("a"),
        (1, 1, 1, 1): finding("b", line=0),
        (8, 9, 8, 13): Finding(Rulebook().policy("spec-value"), where, "c", fix=fix),
        (8, 9, 8, 10, 0): Finding(Rulebook().policy("spec-value"), where, "d", fix=elsewhere),
        (7, 1, 7, 1): Finding(Rulebook().policy("spec-value"), Location(where.file, 7, 0), "e"),
    }
    for ends, one in cases.items():
        (result,) = readers.sarif(sarif_report(report(one)))["results"]
        region = result["locations"][0]["physicalLocation"]["region"]
        names = ("startLine", "startColumn", "endLine", "endColumn")
        assert region == dict(zip(names, ends[:4], strict=True))


def test_paths_are_percent_encoded() -> None:
    found = [finding(file=f"specs/nlp/{name.format(1)}.yaml") for name in NAMES]
    results = readers.sarif(sarif_report(report(*found, folder="a b")))["results"]
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results}
    assert uris == {
        "a%20b/specs/nlp/job-1.yaml",
        "a%20b/specs/nlp/job%201.yaml",
        "a%20b/specs/nlp/j%C3%B6b-1.yaml",
        "a%20b/specs/nlp/job%2C1%3Ax.yaml",
        "a%20b/specs/nlp/job%251%23%3F.yaml",
        "a%20b/specs/nlp/%5Bjob%5D%28x1%29.yaml",
        "a%20b/specs/nlp/%E4%BD%9C%E6%A5%AD1.yaml",
    }


def test_25_000_results_stay_below_the_size_limit() -> None:
    many = [finding(f"error {number} of a value", line=number) for number in range(1, 25_011)]
    text = sarif_report(report(*many))
    assert len(gzip.compress(text.encode(), 1)) < 5_000_000  # GitHub refuses more than 10 MB
    (run,) = json.loads(text)["runs"]
    assert len(run["results"]) == 25_000
    assert "10 findings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


# Long texts


def test_one_long_text_does_not_hide_the_other_findings() -> None:
    long = finding("a" + "@" * 90_000, help="<" * 90_000, line=1)
    found = [long, *(finding(f"number {count}", line=count) for count in range(2, 30))]
    text = markdown_report(report(*found))
    assert len(text.encode()) <= MOST_BYTES
    seen = readers.markdown_text(text)
    assert all(one.message in seen for one in found[1:])
    assert "do not fit" not in seen
    first = readers.annotations(github_report(report(*found)))[0]
    assert len(first.data.encode()) < 64 * 1024


def test_long_advice_leaves_room_for_findings() -> None:
    found = [
        finding(f"finding {number}", rule=f"rule-{number % 5}", help="@" * 999 + str(number % 5), line=number)
        for number in range(1, 30)
    ]
    text = markdown_report(report(*found))
    assert len(text.encode()) <= MOST_BYTES
    assert readers.markdown_text(text).count("finding ") >= 4


def test_invisible_characters_are_written_out_in_sarif() -> None:
    hidden = "a\u202eb\u200bc\u2028d\u0085e"
    run = readers.sarif(sarif_report(report(finding(hidden, help=""))))
    assert run["results"][0]["message"]["text"] == "a\\u202eb\\u200bc\\u2028d\\x85e"


@pytest.mark.parametrize("room", [0, 1, 250, 500, 4000])
def test_a_summary_stays_within_the_room_left_in_the_step(room: int) -> None:
    text = render_step_summary(
        report(*[finding(f"a {number}", line=number) for number in range(1, 60)]), room
    )
    assert len(text.encode()) <= room
    assert readers.markdown_text(text) if room >= 500 else text == "" or room == 250


# Fingerprints


def test_workspaces_of_one_repository_share_no_fingerprint() -> None:
    reports = [gitlab_report(report(*all_kinds(), folder=folder)) for folder in ("", "ml/a", "ml/b")]
    prints = [one["fingerprint"] for text in reports for one in readers.gitlab(text)]
    assert len(prints) == len(set(prints)) == 3 * len(all_kinds())
    part = build_findings_json(all_kinds(), "ml/b")
    assert {one["fingerprint"] for one in part["findings"]} == set(prints[2 * len(all_kinds()) :])


def test_equal_findings_keep_their_fingerprints_when_lines_move() -> None:
    def prints(*lines: int) -> dict[int, str]:
        one = report(*[finding("the same", line=line) for line in lines])
        return {entry.finding.where.line: entry.fingerprint for entry in one.entries}

    before, after = prints(4, 9), prints(5, 12)
    assert (before[4], before[9]) == (after[5], after[12])
    assert before[4] != before[9]
    assert prints(5, 12, 20)[12] == after[12]


# A bad workspace


def test_a_bad_workspace_is_reported_in_every_format(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".git").mkdir()
    write(root, bad_specs(120))
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    formats = ("json", "sarif", "junit", "github", "gitlab", "markdown")
    flags = [flag for name in formats for flag in ("--format", f"{name}={tmp_path}/{name}")]
    assert gangplan("validate", "-C", root, *flags).code == Exit.INPUT
    text = {name: (tmp_path / name).read_text(encoding="utf-8") for name in formats}
    document = json.loads(text["json"])
    assert document["counts"]["error"] > 200

    results = readers.sarif(text["sarif"])["results"]
    quality = readers.gitlab(text["gitlab"])
    cases = [case for case in readers.junit(text["junit"]) if case.name != "no findings"]
    assert len(document["findings"]) == len(results) == len(quality) == len(cases)
    shown = readers.annotations(text["github"])
    assert [one.name for one in shown[:10]] == ["error"] * 10
    assert max(sum(one.name == name for one in shown) for name in ("error", "warning", "notice")) <= 10
    files = {readers.sarif_file(one) for one in results} | {one["location"]["path"] for one in quality}
    files |= {one.properties["file"] for one in shown if "file" in one.properties}
    assert [file for file in sorted(files) if not os.path.exists(root / file)] == []
    assert len(text["markdown"].encode()) <= MOST_BYTES
    readers.markdown_text(text["markdown"])
    assert readers.markdown_text(summary.read_text()).count("specs/nlp/") >= 120

    write(root, bad_specs(120, head="# a line more\n\n"))
    moved = json.loads(gangplan("validate", "-C", root, "--format", "json").out)["findings"]
    assert [one["fingerprint"] for one in moved] == [one["fingerprint"] for one in document["findings"]]
    assert [one["line"] for one in moved] != [one["line"] for one in document["findings"]]
