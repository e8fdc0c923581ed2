"""`gangplan cost` by month: schedules by their starts, sweeps by their trials, all other runs once."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.schedules import worlds
from tests.sweeps.files import us_05
from tests.workspaces import gangplan, write

PRICED = worlds.CLUSTER.replace("a100: {count: 4,", "a100: {count: 4, price: {perGpuHour: 1.5625},")
# 8 GPUs at 1.5625 for 20 h.
NIGHT = Decimal("250.00")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write a job that runs every night in Berlin, and one that runs once."""
    worlds.stock(tmp_path, **{"specs/nlp/once.yaml": workspaces.SPEC + "timeout: 10h\n"})
    write(tmp_path, {"overlays/lab/cluster.yaml": PRICED})
    return tmp_path


def document(root: Path, *flags: object) -> dict[str, Any]:
    """Return the figures as JSON."""
    outcome = gangplan("cost", "-C", root, "--format", "json", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_a_month_has_all_starts_of_a_schedule(root: Path) -> None:
    found = document(root, "--month", "2026-12")
    assert {run["job"]: (run["month"], run["starts"], run["most"]) for run in found["runs"]} == {
        "filings": ("2026-12", 31, str(31 * NIGHT)),
        "once": ("once", 1, "125.00"),
    }
    assert found["months"] == ["2026-12"]
    text = gangplan("cost", "-C", root, "--by", "team", "--month", "2026-12").out
    assert "7875.00 USD" in text
    assert "months are those of UTC" in text


def test_months_add_up_to_the_year(root: Path) -> None:
    year = document(root, "--month", "2026", "--by", "team")["sums"]
    months = document(root, "--month", "2026", "--by", "month")["sums"]
    assert [one["name"] for one in months] == [*(f"2026-{month:02}" for month in range(1, 13)), "once"]
    assert sum(Decimal(one["most"]) for one in months) == Decimal(year[0]["most"]) == 365 * NIGHT + 125
    assert sum(one["runs"] for one in months) == year[0]["runs"] == 366


def test_without_a_month_the_year_begins_with_the_current_month(root: Path) -> None:
    found = document(root, "--by", "month", "--today", "2026-11-23")
    assert (found["months"][0], found["months"][-1]) == ("2026-11", "2027-10")


def test_expected_costs_use_the_given_durations(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "durations.yaml"
    path.write_text("nlp/filings: 2h\n")
    found = document(root, "--month", "2026-02", "--durations", path)
    (night,) = [run for run in found["runs"] if run["job"] == "filings"]
    assert (night["expected"], night["most"]) == (str(28 * NIGHT / 10), str(28 * NIGHT))


def test_runs_of_a_schedule_never_overlap(root: Path) -> None:
    """With hourly starts of 20 h runs most are skipped, and a month has only as many hours as it has."""
    write(root, {"specs/nlp/filings.yaml": worlds.SPEC.replace("0 4 * * *", "0 * * * *")})
    (hourly,) = [run for run in document(root, "--month", "2026-12")["runs"] if run["job"] == "filings"]
    assert hourly["starts"] == 744
    assert Decimal(hourly["most"]) == (744 + 20) * Decimal("12.50")


def test_trials_count_once(tmp_path: Path) -> None:
    us_05(tmp_path)
    assert document(tmp_path, "--month", "2026-12", "--by", "team")["sums"][0]["most"] == "1200.00"


def test_wrong_months_and_flags_are_refused(root: Path) -> None:
    outcome = gangplan("cost", "-C", root, "--month", "December")
    assert (outcome.code, "is not a month" in outcome.err) == (Exit.INPUT, True)
    (root / "specs/nlp/once.yaml").unlink()
    write(root, {"specs/nlp/filings.yaml": worlds.SPEC.replace("0 4 * * *", "0 4 1 1 *")})
    outcome = gangplan("cost", "-C", root, "--month", "2026-12")
    assert (outcome.code, "no schedule starts a run" in outcome.err) == (Exit.INPUT, True)
    assert gangplan("cost", "-C", root, "--month", "2026-12", "--format", "csv").code == Exit.INPUT


def test_a_discount_is_exact(root: Path) -> None:
    """A spot pool at 65.5 percent off the list price."""
    write(
        root,
        {
            "overlays/lab/cluster.yaml": PRICED.replace(
                "{perGpuHour: 1.5625}", "{perGpuHour: 1.5625, discount: 65.5}"
            )
        },
    )
    assert document(root)["runs"][0]["perHour"] == "4.3125"
    write(root, {"overlays/lab/cluster.yaml": PRICED.replace("1.5625", "0.0000125")})
    assert document(root)["runs"][0]["perHour"] == "0.0001"
    write(root, {"overlays/lab/cluster.yaml": PRICED.replace("1.5625", "0.00000125")})
    assert document(root)["runs"][0]["perHour"] == "0.00001"


@pytest.mark.parametrize("price", ["-1", "101", ".nan", "1e400", "true", "'10%'", "0.00000000001", "[]"])
def test_invalid_discounts_are_refused(root: Path, price: str) -> None:
    write(root, {"overlays/lab/cluster.yaml": PRICED.replace("1.5625}", f"1.5625, discount: {price}}}")})
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.INPUT
    assert "percentage" in outcome.err or "nine decimal places" in outcome.err or price == ".nan"


def test_a_launcher_without_a_price_is_named(root: Path) -> None:
    assert "without a price: lab/cpu;" in gangplan("cost", "-C", root).out
