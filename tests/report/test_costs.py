"""`gangplan cost`: exact sums, expectations, currencies, and texts that a spreadsheet could run."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.errors import Exit
from gangplan.model.bill import CostItem, sum_costs
from gangplan.report.costs import render_costs_csv
from tests import workspaces
from tests.workspaces import Outcome, gangplan

PRICED = "price: {perGpuHour: 1.5625}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace with a price for its pools of GPUs."""
    root = workspaces.stock(tmp_path / "workspace")
    path = root / "overlays/lab/cluster.yaml"
    lines = path.read_text().splitlines()
    priced = [
        line.replace("{count:", f"{{{PRICED}, count:") if line.startswith("  a100") else line
        for line in lines
    ]
    path.write_text("\n".join(priced) + "\n")
    return root


def cost(root: Path, *flags: object) -> Outcome:
    """Run the command."""
    return gangplan("cost", "-C", root, *flags)


def runs(root: Path, *flags: object) -> list[dict[str, str]]:
    """Return the runs as JSON."""
    outcome = cost(root, "--format", "json", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    found: list[dict[str, str]] = json.loads(outcome.out)["runs"]
    return found


def test_the_most_is_the_cost_until_the_deadline(root: Path) -> None:
    """4 workers with 2 GPUs each at 1.5625, for the whole timeout."""
    (run,) = runs(root)
    hours = Decimal(run["gpuHours"]) / 8
    assert Decimal(run["most"]) >= hours * Decimal("12.5")  # plus the launcher, if its pool has a price
    assert (run["currency"], run["expected"]) == ("USD", None)
    text = cost(root).out
    assert run["run"] in text
    assert f"{run['most']} USD" in text


def test_expected_costs_follow_the_durations(root: Path, tmp_path: Path) -> None:
    durations = tmp_path / "durations.yaml"
    durations.write_text("nlp/*: 30m\n")
    (run,) = runs(root, "--durations", durations)
    assert Decimal(run["expected"]) == Decimal(run["perHour"]) / 2
    durations.write_text("nlp/filings: 5000h\n")
    (run,) = runs(root, "--durations", durations)
    assert run["expected"] == run["most"], "no run outlasts its timeout"
    durations.write_text("vision/x: 1h\n")
    outcome = cost(root, "--durations", durations)
    assert outcome.code == Exit.INPUT
    assert "no job is called vision/x" in outcome.err


def test_runs_without_a_price_are_named(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "workspace")
    outcome = cost(root)
    assert outcome.code == Exit.CLEAN
    assert "without a price: lab/" in outcome.out
    body = json.loads(cost(root, "--by", "team", "--format", "json").out)
    assert body["sums"][0]["most"] is None


def test_wrong_flags_are_refused_and_files_are_written(root: Path, tmp_path: Path) -> None:
    assert cost(root, "--by", "user").code == Exit.INPUT
    assert cost(root, "--format", "yaml").code == Exit.INPUT
    assert cost(root, "--durations", tmp_path / "no.yaml").code == Exit.INPUT
    assert cost(root, "--format", f"csv={tmp_path}/a.csv").code == Exit.CLEAN
    (row,) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert row["job"] == "filings"
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: four")})
    assert cost(root).code == Exit.INPUT
    (root / "specs/nlp/filings.yaml").unlink()
    assert cost(root).code == Exit.INPUT, "nothing added up is not a success"


def item(cluster: str, team: str, cents: int | None, currency: str = "EUR") -> CostItem:
    """Return a run with this cost."""
    money = None if cents is None else Decimal(cents) / 100
    return CostItem(cluster, team, "j", "j-1", "a", Decimal(1), Decimal(8), money, money, None, currency)


ITEMS = st.lists(
    st.builds(
        item,
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.none() | st.integers(0, 10**9),
        st.sampled_from(("EUR", "USD")),
    )
)


@settings(deadline=None)
@given(ITEMS)
def test_sums_by_any_key_have_the_same_total(items: list[CostItem]) -> None:
    wanted: dict[str, Decimal] = defaultdict(Decimal)
    for one in items:
        wanted[one.currency] += one.cost or Decimal(0)
    for key in (lambda one: one.team, lambda one: one.cluster, lambda _: "all"):
        found: dict[str, Decimal] = defaultdict(Decimal)
        for one in sum_costs(items, key):
            found[one.currency] += one.cost
        assert found == wanted
        assert sum(one.runs for one in sum_costs(items, key)) == len(items)
        assert sum(one.unpriced for one in sum_costs(items, key)) == sum(one.cost is None for one in items)


def test_csv_texts_are_never_formulas() -> None:
    assert "'=cmd" in render_costs_csv([item("=cmd|' /C calc'!A0", "x", 1)])
