"""The formats of a review: within the limits of forges, safe for their readers, complete as data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.report.review_markdown import GITHUB_MAX_BYTES, GITLAB
from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import SPEC, gangplan

SMALL = SPEC.replace("workers: 4", "workers: 1").replace("gpus: 2", "gpus: 1")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Write a change of 150 new runs, with texts that Markdown and terminals would interpret."""
    repo = begin(tmp_path_factory.mktemp("large"))
    evil = "description: '](x) | `@everybody` <script> #1'\n"
    repo.write(**{f"job-{number:03}": SMALL + evil for number in range(150)})
    repo.render()
    return repo


@pytest.mark.parametrize("most", [1000, 3000, 10_000, GITHUB_MAX_BYTES, GITLAB])
def test_markdown_keeps_the_limit_and_says_what_is_left_out(large: Repository, most: int) -> None:
    outcome = large.plan("--format", "markdown", "--limit", str(most))
    size = len(outcome.out.encode())
    assert size <= most
    assert outcome.out.startswith("<!-- gangplan plan -->\n### gangplan plan: 150 runs start")
    shown = len(re.findall(r"^\| new \| nlp/job-", outcome.out, re.MULTILINE))
    left = re.search(r"\*\*Left out.*?\*\* (.*)", outcome.out)
    if shown == 150:
        assert left is None
        assert most >= GITHUB_MAX_BYTES
    else:
        assert left is not None
        assert f"{150 - shown} runs of “Runs”" in left[1]
        assert "--format json" in left[1]
    assert outcome.out.count("<details") == outcome.out.count("</details>")


def test_the_limit_of_github_is_the_default(large: Repository) -> None:
    assert (
        large.plan("--format", "markdown").out
        == large.plan("--format", "markdown", "--limit", str(GITHUB_MAX_BYTES)).out
    )


def test_texts_of_users_are_escaped_in_markdown(large: Repository) -> None:
    text = large.plan("--format", "markdown", "--limit", str(GITLAB)).out
    for words in ("<script>", "@everybody", "](x)"):
        assert words not in text


def test_text_shows_the_first_rows(large: Repository) -> None:
    outcome = large.plan()
    assert "90 more runs: --format json has all" in outcome.out
    assert len(large.review()["runs"]) == 150


def test_reports_are_the_same_bytes_each_time(large: Repository) -> None:
    for format in ("text", "markdown", "json"):
        first = large.plan("--format", format)
        assert large.plan("--format", format, "--engine", "process", "-j", "2") == first


def test_reports_have_no_paths_of_this_machine(large: Repository) -> None:
    for format in ("text", "markdown", "json"):
        for name in ("plan", "diff"):
            out = gangplan(name, "-C", large.root, "--base", "main", "--format", format).out
            assert str(large.top) not in out
            assert "/tmp" not in out


def test_the_document_has_its_fields_in_order(large: Repository) -> None:
    document = large.review()
    assert document["version"] == 1
    assert list(document) == [
        "version",
        "command",
        "base",
        "notes",
        "specs",
        "runs",
        "totals",
        "quotas",
        "newFindings",
        "goneFindings",
        "sameFindings",
        "policies",
        "waivers",
        "reach",
        "objects",
        "meanings",
        "kinds",
    ]


def test_diff_groups_by_meaning(tmp_path: Path) -> None:
    repo = begin(tmp_path / "repo")
    cluster = workspaces.CLUSTER.replace("nlp: {queue: training}", "nlp: {queue: training, weight: 2}")
    workspaces.write(repo.root, {"overlays/lab/cluster.yaml": cluster.replace("10.40.8.0", "10.40.9.0")})
    repo.write(filings=SPEC.replace("memory: 32Gi", "memory: 48Gi") + "timeout: 2h\n")
    repo.render()
    outcome = gangplan("diff", "-C", repo.root, "--base", "main")
    assert outcome.code == Exit.CLEAN
    document = json.loads(gangplan("diff", "-C", repo.root, "--base", "main", "--format", "json").out)
    rows = {(one["meaning"], one["field"]): (one["before"], one["after"]) for one in document["meanings"]}
    meanings = {meaning for meaning, _ in rows}
    assert {"resources", "quota", "lifecycle"} <= meanings
    assert "other" not in meanings
    assert any(before == '"32Gi"' and after == '"48Gi"' for (meaning, _), (before, after) in rows.items())
    of_run = [
        one for one in document["objects"] if one["job"] == "filings" and one["kind"] == "TrainingRuntime"
    ]
    assert [one["change"] for one in of_run] == ["changed"], "a run is compared with the one that it replaces"


def test_diff_raw_shows_the_lines_of_files(tmp_path: Path) -> None:
    repo = begin(tmp_path / "repo")
    repo.write(filings=f"{SPEC}description: Other words\n")
    repo.render()
    outcome = gangplan("diff", "-C", repo.root, "--base", "main", "--raw")
    assert '+    gangplan.dev/description: "Other words"' in outcome.out
    assert "--- rendered/lab/runs/nlp/filings-" in outcome.out
    assert (
        gangplan("diff", "-C", repo.root, "--base", "main", "--raw", "specs/nlp/team.yaml").code == Exit.CLEAN
    )
    refused = gangplan("diff", "-C", repo.root, "--base", "main", "--raw", "--format", "json")
    assert refused.code == Exit.INPUT
