"""Budgets of teams: what counts, where a breach is reported, and what a change leaves of the budget."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.errors import Exit
from gangplan.model.months import count_starts, list_budget_months
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.budgets import TeamSpending, compute_team_spending
from tests import workspaces
from tests.review.repository import Repository, begin
from tests.schedules import worlds
from tests.sweeps.files import us_05
from tests.workspaces import gangplan, render, write

PRICES = (
    ("a100: {count: 4,", "a100: {count: 4, price: {perGpuHour: 1.5625},"),
    ("a100-spot: {count: 4,", "a100-spot: {count: 4, price: {perGpuHour: 0.6},"),
    ("memory: 240Gi", "memory: 240Gi, price: {perCpuHour: 0}"),
)


def budgeted(text: str, budget: str) -> str:
    """Return a cluster with prices, and a budget for its team."""
    for old, new in PRICES:
        assert old in text
        text = text.replace(old, new, 1)
    return text.replace("nlp: {queue: training", f"nlp: {{monthlyBudget: {{{budget}}}, queue: training", 1)


def told(root: Path) -> list[tuple[str, str, str, str]]:
    """Return place, severity, rule and message of the findings about budgets."""
    found = gangplan("validate", "-C", root).findings
    return [
        (one.place, one.severity, one.rule, one.message) for one in found if one.rule.startswith("budget")
    ]


# Budget, severity and rule of the finding for a run that costs 300.00, and exit code.
CASES = {
    "more than enough": ('amount: "1000"', "", "", Exit.CLEAN),
    "just below the share": ('amount: "375.01"', "", "", Exit.CLEAN),
    "exactly the share": ('amount: "375"', "warning", "budget-nearly", Exit.CLEAN),
    "another share": ('amount: "600", warnAt: 50', "warning", "budget-nearly", Exit.CLEAN),
    "exactly all of it": ('amount: "300"', "warning", "budget-nearly", Exit.CLEAN),
    "a cent too little": ('amount: "299.99"', "error", "budget-exceeded", Exit.FINDINGS),
    "only a warning": ('amount: "299.99", action: Warn', "warning", "budget-exceeded", Exit.CLEAN),
    "nothing at all": ("amount: 0", "error", "budget-exceeded", Exit.FINDINGS),
    "more than a float holds": ('amount: "999999999999.999999999"', "", "", Exit.CLEAN),
    "another currency": ('amount: "1", currency: EUR', "error", "budget-currency", Exit.INPUT),
    "an amount that is none": ("amount: many", "", "", Exit.INPUT),
    "less than nothing": ("amount: -1", "", "", Exit.INPUT),
    "no number": ('amount: "NaN"', "", "", Exit.INPUT),
    "endless": ('amount: "Infinity"', "", "", Exit.INPUT),
    "digits of another script, which are digits": ('amount: "٣٠٠"', "warning", "budget-nearly", Exit.CLEAN),
}


@pytest.mark.parametrize("name", CASES)
def test_each_budget_has_the_listed_finding_and_exit_code(name: str, root: Path) -> None:
    budget, severity, rule, code = CASES[name]
    write(root, {"overlays/lab/cluster.yaml": budgeted(workspaces.CLUSTER, budget)})
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == code, outcome.err
    assert [(one[1], one[2]) for one in told(root)] == ([(severity, rule)] if rule else [])


def test_the_message_names_the_amounts_and_the_most_expensive_runs(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": budgeted(workspaces.CLUSTER, 'amount: "250.5"')})
    ((place, _, _, message),) = told(root)
    assert place.startswith("specs/nlp/filings.yaml")
    assert message == (
        "active runs of nlp on lab can cost 300.00 USD in a month such as 2026-01, 49.50 more than"
        " its budget of 250.5; 300.00 of it for this spec; the most expensive: nlp/filings 300.00"
    )


def test_a_new_spec_is_where_an_exceeded_budget_is_reported(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": budgeted(workspaces.CLUSTER, 'amount: "400"')})
    render(root)
    write(root, {"specs/nlp/a.yaml": workspaces.SPEC + "timeout: 12h\n"})
    ((place, _, rule, message),) = told(root)
    assert (place.partition(":")[0], rule) == ("specs/nlp/a.yaml", "budget-exceeded")
    assert "450.00 USD" in message
    assert "50.00 more than" in message
    write(root, {"specs/nlp/a.yaml": workspaces.SPEC + "timeout: 12h\nstate: stopped\n"})
    assert [one[2] for one in told(root)] == [], "only active runs count"


def test_a_budget_counts_every_start_of_a_schedule(tmp_path: Path) -> None:
    """31 nights of 250.00, in any month with 31 days."""
    worlds.stock(tmp_path)
    write(tmp_path, {"overlays/lab/cluster.yaml": budgeted(worlds.CLUSTER, 'amount: "7749.99"')})
    ((_, _, rule, message),) = told(tmp_path)
    assert rule == "budget-exceeded"
    assert "can cost 7750.00 USD in a month such as 2026-01, 0.01 more" in message


def test_a_budget_counts_every_trial_of_a_sweep(tmp_path: Path) -> None:
    us_05(tmp_path)
    path = tmp_path / "overlays/lab/cluster.yaml"
    text = path.read_text().replace("nlp: {queue:", 'nlp: {monthlyBudget: {amount: "1000"}, queue:')
    path.write_text(text)
    (found,) = [one for one in told(tmp_path) if one[2] == "budget-exceeded"]
    assert "1200.00 USD" in found[3]
    assert found[0].startswith("specs/nlp/rates.yaml")


def test_a_team_cannot_set_its_own_budget(root: Path) -> None:
    write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "monthlyBudget: {amount: 1000000}\n"})
    assert gangplan("validate", "-C", root).code == Exit.INPUT


FACTS = RunFacts(
    *("specs/nlp/a.yaml", "lab", "nlp", "a", "a-1", "", "active", 1, 1, 8, 0, 3600, "1.00", "EUR", "a100"),
    *("gpu", "normal", "", "", ""),
)
RUNS = st.lists(
    st.builds(
        lambda cents, source, repeats, state, seconds: replace(
            FACTS,
            cost=f"{Decimal(cents) / 100:.2f}",
            source=source,
            repeats=repeats,
            state=state,
            seconds=seconds,
        ),
        st.integers(0, 10**12),
        st.sampled_from("abc"),
        st.sampled_from(("", "0 2 * * * Etc/UTC", "0 22 * * SUN Europe/Berlin", "0 0 1 6 * Etc/UTC")),
        st.sampled_from(("active", "stopped", "archived")),
        st.integers(1, 86400),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(RUNS, st.randoms())
def test_spending_does_not_depend_on_the_order_of_specs(runs: list[RunFacts], chance: object) -> None:
    shuffled = list(runs)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    found = compute_team_spending(runs)
    assert found == compute_team_spending(shuffled)
    assert sum(found.by_spec.values(), Decimal(0)) == found.total


@settings(max_examples=30, deadline=None)
@given(RUNS)
def test_no_month_costs_more_than_the_spending(runs: list[RunFacts]) -> None:
    """Counted one by one: every active run, times its starts in that month."""
    found: TeamSpending = compute_team_spending(runs)
    for month in list_budget_months()[::5]:
        cost = Decimal(0)
        for one in runs:
            expression, _, zone = one.repeats.rpartition(" ")
            if one.is_active:
                cost += Decimal(one.cost) * (count_starts(expression, zone, month) if one.repeats else 1)
        assert cost <= found.total


def test_work_grows_linearly_with_specs() -> None:
    def asked(count: int) -> int:
        crons = [f"{number % 60} {number // 60} * * * Europe/Berlin" for number in range(count)]
        runs = [replace(FACTS, source=f"s{number}", repeats=one) for number, one in enumerate(crons)]
        count_starts.cache_clear()
        assert len(compute_team_spending(runs).by_spec) == count
        return sum(count_starts.cache_info()[:2])

    few, many = asked(10), asked(80)
    assert few <= many <= 8 * few


# Only a warning: with an error, runs would not be rendered.
BUDGET = 'amount: "400", action: Warn'


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Commit a budget of 400 on main; 300 of it are planned."""
    repo = begin(tmp_path / "repo")
    write(repo.root, {"overlays/lab/cluster.yaml": budgeted(workspaces.CLUSTER, BUDGET)})
    repo.render()
    repo.commit()
    repo.git("branch", "-f", "main")
    return repo


def test_the_review_shows_what_a_change_adds_to_a_budget(repo: Repository) -> None:
    repo.write(a=workspaces.SPEC + "timeout: 12h\n")
    first = repo.review()
    assert first["budgets"] == [
        {
            "team": "nlp",
            "cluster": "lab",
            "currency": "USD",
            "before": {"amount": "400", "spent": "300.00"},
            "after": {"amount": "400", "spent": "450.00"},
            "added": "150.00",
            "left": "-50.00",
        }
    ]
    (told,) = [one for one in first["newFindings"]["findings"] if one["rule"] == "budget-exceeded"]
    assert told["file"] == "specs/nlp/a.yaml"
    out = repo.plan().out
    assert "Monthly budgets" in out
    assert "50.00 USD too much" in out
    repo.render()
    second = repo.review()
    assert second["budgets"] == first["budgets"]
    assert told in second["newFindings"]["findings"], "the same before rendering and after"


def test_an_unchanged_budget_has_no_row(repo: Repository) -> None:
    assert "Monthly budgets" not in repo.plan().out
    assert repo.review()["budgets"][0]["left"] == "100.00"


def test_without_budgets_the_review_has_none(tmp_path: Path) -> None:
    assert "budgets" not in begin(tmp_path / "repo").review()


def test_a_plan_shows_the_monthly_cost_of_a_schedule(tmp_path: Path) -> None:
    worlds.stock(tmp_path)
    write(tmp_path, {"overlays/lab/cluster.yaml": budgeted(worlds.CLUSTER, 'amount: "9000"')})
    assert "; 7750.00 USD in a month with 31 starts\n" in gangplan("plan", "-C", tmp_path).out


US = "overlays/us/cluster.yaml"


def two_clusters(root: Path, budget: str) -> Path:
    """Write two clusters with prices and a run of 300.00 on each; the budget is in the file of lab."""
    lab = budgeted(workspaces.CLUSTER, budget)
    other = lab.replace(f"monthlyBudget: {{{budget}}}, ", "")
    spec = workspaces.SPEC + "clusters: [lab, us]\n"
    team = workspaces.TEAM.replace("clusters: [lab]", "clusters: [lab, us]")
    files = {"overlays/lab/cluster.yaml": lab, US: other, "specs/nlp/filings.yaml": spec}
    return write(root, {**files, "specs/nlp/team.yaml": team})


def test_a_budget_can_cover_two_clusters(root: Path) -> None:
    two_clusters(root, 'amount: "500", clusters: [us]')
    ((place, _, rule, message),) = told(root)
    assert (place.partition(":")[0], rule) == ("specs/nlp/filings.yaml", "budget-exceeded")
    assert "active runs of nlp on lab and us can cost 600.00 USD" in message
    two_clusters(root, 'amount: "500"')
    assert told(root) == [], "each cluster counts by itself"


def test_the_three_most_expensive_are_named(root: Path) -> None:
    """They are named in this order, and no others."""
    write(root, {"overlays/lab/cluster.yaml": budgeted(workspaces.CLUSTER, 'amount: "1"')})
    for hours, name in ((4, "d"), (3, "c"), (2, "b")):
        write(root, {f"specs/nlp/{name}.yaml": workspaces.SPEC + f"timeout: {hours}h\n"})
    ((_, _, _, message),) = told(root)
    assert message.endswith("the most expensive: nlp/filings 300.00, nlp/d 50.00, nlp/c 37.50")


# What the budget of lab covers, the currency of us, and the rule that it breaks.
COVERED = {
    "no such cluster": ("clusters: [uk]", "", "budget-cluster"),
    "another currency": ("clusters: [us]", "EUR", "budget-currency"),
    "the same currency": ("clusters: [us]", "", ""),
    "itself": ("clusters: [lab]", "", ""),
}


@pytest.mark.parametrize("name", COVERED)
def test_a_budget_covers_only_clusters_that_exist_with_its_currency(name: str, root: Path) -> None:
    covers, currency, rule = COVERED[name]
    two_clusters(root, f'amount: "5000", {covers}')
    if currency:
        text = (root / US).read_text().replace("region:", f"currency: {currency}\nregion:", 1)
        write(root, {US: text})
    assert [one[2] for one in told(root)] == ([rule] if rule else [])


def test_cost_shows_what_is_left_of_a_budget(root: Path) -> None:
    two_clusters(root, 'amount: "1000.50", clusters: [us]')
    out = gangplan("cost", "-C", root).out
    assert "nlp        lab and us  2026-01  1000.50 USD  600.00 USD  400.50 USD" in out
    out = gangplan("cost", "-C", root, "--month", "2027-03", "--format", "json").out
    assert json.loads(out)["budgets"] == [
        {
            "team": "nlp",
            "clusters": ["lab", "us"],
            "month": "2027-03",
            "budget": "1000.50",
            "most": "600.00",
            "left": "400.50",
            "currency": "USD",
        }
    ]
    assert "budget" not in gangplan("cost", "-C", root, "--cluster", "lab").out, "half of it says nothing"
    assert "budget of" in gangplan("cost", "-C", root, "--team", "nlp").out
    two_clusters(root, 'amount: "100"')
    assert "200.00 USD too much" in gangplan("cost", "-C", root).out


@pytest.mark.parametrize("by", ["run", "team", "cluster", "month"])
def test_two_currencies_are_never_added_up(by: str, root: Path) -> None:
    two_clusters(root, 'amount: "5000"')
    text = (root / US).read_text().replace("region:", "currency: EUR\nregion:", 1)
    write(root, {US: text})
    out = json.loads(gangplan("cost", "-C", root, "--by", by, "--format", "json").out)
    assert sorted((one["most"], one["currency"]) for one in out["sums"]) == [
        ("300.00", "EUR"),
        ("300.00", "USD"),
    ]
    assert "600" not in gangplan("cost", "-C", root, "--by", by).out
