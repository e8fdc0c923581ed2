"""What plan shows about jobs that come after others: their order, and the longest path through them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.pipelines.worlds import CHAIN, PREPARE, TRAIN, stock
from tests.workspaces import SPEC, gangplan

JOBS = {
    "prepare": PREPARE + "timeout: 4h\n",
    "check": PREPARE + "timeout: 1h\nafter: [prepare]\n",
    "filings": TRAIN + "timeout: 20h\n",
    "judge": SPEC + "after: [check, filings]\ntimeout: 2h\n",
    "alone": PREPARE,
}


def test_plan_shows_the_order_and_the_critical_path(root: Path) -> None:
    stock(root, JOBS)
    out = gangplan("plan", "-C", root).out
    assert out.partition("nlp on lab: jobs in their order\n")[2].partition("totals\n")[0] == (
        "  prepare at most 4h\n"
        "  check   at most 1h, waits for prepare\n"
        "  filings at most 20h, waits for prepare\n"
        "  judge   at most 2h, waits for check and filings\n"
        "  critical path: prepare → filings → judge, at most 26h, not counting queues\n"
        "\n"
    )


def test_the_json_plan_has_the_chain(root: Path) -> None:
    stock(root, JOBS)
    (chain,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["chains"]
    assert chain["criticalPath"] == ["prepare", "filings", "judge"]
    assert chain["atMost"] == 26 * 3600
    assert [step["after"] for step in chain["steps"]] == [[], ["prepare"], ["prepare"], ["check", "filings"]]


def test_a_plan_of_one_spec_names_jobs_outside_it(root: Path) -> None:
    stock(root, CHAIN)
    out = gangplan("plan", "-C", root, "specs/nlp/filings.yaml").out
    assert "waits for prepare (prepare not in this plan)" in out


def test_a_plan_without_after_has_no_chains(root: Path) -> None:
    stock(root, {"filings": SPEC})
    assert "chains" not in json.loads(gangplan("plan", "-C", root, "--format", "json").out)
    assert "in their order" not in gangplan("plan", "-C", root).out


def test_simulated_runs_arrive_once_those_before_them_could_be_complete(root: Path, tmp_path: Path) -> None:
    stock(root, JOBS)
    lines = "nlp/prepare: 2h\nnlp/filings: 10h\nnlp/check: 30m\nnlp/judge: 1h\nnlp/alone: 1h\n"
    (tmp_path / "durations.yaml").write_text(lines)
    asked = ("simulate", "--cluster", "lab", "--durations", tmp_path / "durations.yaml", "--format", "json")
    outcome = gangplan(*map(str, asked), "-C", root)
    assert outcome.code == 0, outcome.err
    events = json.loads(outcome.out)["events"]
    at = {one["run"]: one["time"] / 3600 for one in events if one["what"] == "admitted"}
    assert at == {"nlp/alone": 0, "nlp/prepare": 0, "nlp/check": 2, "nlp/filings": 2, "nlp/judge": 12}
