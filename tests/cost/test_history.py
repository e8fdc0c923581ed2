"""`gangplan cost --history`: which runs were in Git, between which commits, and what they cost at most."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.cost.test_budgets import PRICES
from tests.review.repository import Repository, begin
from tests.schedules import worlds
from tests.workspaces import gangplan, write

DAY = 86400
# 2026-11-01, a Sunday.
FIRST = 1793491200


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Commit filings on 1 November: 8 GPUs at 1.5625 for a day."""
    at(monkeypatch, 0)
    repo = begin(tmp_path / "repo", is_rendered=False)
    text = workspaces.CLUSTER
    for old, new in PRICES:
        text = text.replace(old, new, 1)
    write(repo.root, {"overlays/lab/cluster.yaml": text})
    repo.render()
    repo.commit()
    return repo


def at(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Set the time of the commits that follow."""
    moment = f"{FIRST + round(days * DAY)} +0000"
    monkeypatch.setenv("GIT_AUTHOR_DATE", moment)
    monkeypatch.setenv("GIT_COMMITTER_DATE", moment)


def history(repo: Repository, *flags: object, since: str = "2026-11-01") -> dict[str, Any]:
    """Return the document of the history."""
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", since, "--format", "json", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_a_run_in_git_costs_until_its_timeout(repo: Repository) -> None:
    (run,) = history(repo)["runs"]
    assert (run["entered"], run["left"], run["how"]) == ("2026-11-01T00:00:00Z", None, None)
    assert (run["gpuHours"], run["most"], run["currency"]) == ("192", "300.00", "USD")
    assert (run["cluster"], run["team"], run["job"], run["pool"]) == ("lab", "nlp", "filings", "a100")


def test_a_stopped_run_costs_only_the_time_until_it_was_stopped(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 0.25)
    repo.write(filings=workspaces.SPEC + "state: stopped\n")
    repo.render()
    repo.commit()
    (run,) = history(repo)["runs"]
    assert (run["left"], run["how"], run["most"]) == ("2026-11-01T06:00:00Z", "ended", "75.00")
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "2026-11-02")
    assert (outcome.code, "no runs" in outcome.err) == (Exit.INPUT, True)


def test_a_run_that_was_archived_from_its_beginning_costs_nothing(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine applies it; one that is archived after its beginning goes on."""
    at(monkeypatch, 0.25)
    repo.write(filings=workspaces.SPEC + "state: archived\n", other=workspaces.SPEC + "state: archived\n")
    repo.render()
    repo.commit()
    assert [(run["job"], run["left"]) for run in history(repo)["runs"]] == [("filings", None)]


def test_a_run_removed_from_git_costs_until_its_timeout(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines do not prune runs, so it may go on until its timeout."""
    at(monkeypatch, 0.25)
    for file in (repo.root / "rendered/lab/runs/nlp").glob("*-*.yaml"):
        file.unlink()
    repo.commit()
    (run,) = history(repo)["runs"]
    assert (run["how"], run["most"]) == ("removed", "300.00")


def test_months_add_up(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is still there on the first of a month belongs to the month in which Git got it."""
    at(monkeypatch, 3)
    repo.write(other=workspaces.SPEC)
    repo.render()
    repo.commit()
    jobs = {
        days: [run["job"] for run in history(repo, "--until", days[1], since=days[0])["runs"]]
        for days in [("2026-11-01", "2026-11-03"), ("2026-11-04", "2026-11-04"), ("2026-11-01", "2026-11-30")]
    }
    assert list(jobs.values()) == [["filings"], ["other"], ["filings", "other"]]
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "2026-12-01", "--until", "2026-12-31")
    assert (outcome.code, "got no runs" in outcome.err) == (Exit.INPUT, True)
    assert len(history(repo, since="2026-12-01")["runs"]) == 2
    assert len(history(repo, "--until", "9999-12-31")["runs"]) == 2
    outcome = gangplan("cost", "-C", repo.root, "--since", "2026-11-02", "--until", "2026-11-01")
    assert (outcome.code, "Write --until 2026-11-02 or later" in outcome.err) == (Exit.INPUT, True)


def test_prices_are_those_of_the_day(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 3)
    path = repo.root / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text().replace("{perGpuHour: 1.5625}", "{perGpuHour: 1.5625, discount: 50}"))
    repo.write(second=workspaces.SPEC)
    repo.render()
    repo.commit()
    assert [run["most"] for run in history(repo)["runs"]] == ["300.00", "150.00"]


def test_every_grouping_has_the_same_sum(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        at(monkeypatch, number + 1)
        repo.write(**{f"job{number}": workspaces.SPEC + f"timeout: {number + 1}h\n"})
        repo.render()
        repo.commit()
    sums = [
        sum(Decimal(one["most"]) for one in history(repo, "--by", by)["sums"])
        for by in ("run", "team", "cluster", "pool")
    ]
    assert sums == [Decimal("300.00") + 6 * Decimal("12.50")] * 4
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert sum(Decimal(row["most"]) for row in rows) == sums[0]
    assert (
        "Git knows when runs came and went"
        in gangplan("cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--by", "team").out
    )


def test_a_run_that_comes_after_another_costs_what_it_asks_for(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has a template of it, and a Job that waits."""
    at(monkeypatch, 1)
    late = f"{workspaces.SPEC}after: [once]\nretries: 2\n"
    worlds.stock(repo.root, **{"specs/nlp/once.yaml": workspaces.SPEC, "specs/nlp/late.yaml": late})
    repo.render()
    repo.commit()
    hours = {one["job"]: one["gpuHours"] for one in history(repo)["runs"]}
    assert (hours["once"], hours["late"]) == ("192", "192")


def test_a_wrong_day_is_reported_with_its_flag(repo: Repository) -> None:
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "yesterday")
    assert outcome.code == Exit.INPUT
    assert "Write --since 2026-12-31." in outcome.err


def test_unreadable_files_have_no_cost(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 1)
    folder = repo.root / "rendered/lab/runs/nlp"
    (folder / "odd-00000001.yaml").write_bytes(b"\xff\xfe{]: \x00")
    (folder / "odd-00000002.yaml").write_text("kind: TrainJob\nmetadata: {name: x}\nspec: {trainer: [1]}\n")
    (folder / "odd-00000003.yaml").write_text("- 1\n---\nnull\n")
    (repo.root / "overlays/lab/cluster.yaml").write_text("nodePools: {a100: {price: {perGpuHour: NaN}}}\n")
    repo.commit()
    found = history(repo)["runs"]
    assert len(found) == 4
    assert {run["most"] for run in found} == {"300.00", None}


def test_runs_of_schedules_are_counted_as_missing_from_git(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 1)
    worlds.stock(repo.root, **{"specs/nlp/once.yaml": workspaces.SPEC})
    repo.render()
    repo.commit()
    assert history(repo)["schedules"] == 1


def export(path: Path, *hours: tuple[str, str]) -> Path:
    """Write an answer of Prometheus with the hours of runs of team nlp."""
    series = [
        {"metric": {"measured": "hours", "namespace": "nlp", "run": run}, "value": [FIRST, value]}
        for run, value in hours
    ]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}))
    return path


def test_a_measured_run_costs_the_hours_in_which_it_ran(repo: Repository, tmp_path: Path) -> None:
    (run,) = history(repo)["runs"]
    file = export(tmp_path / "used.json", (run["run"], "6.0"), ("gone-00000000", "9"))
    found = history(repo, "--measured", file)
    (used,) = found["runs"]
    assert {key: used[key] for key in run} == run
    assert (used["measuredHours"], used["usedGpuHours"], used["used"]) == ("6.0", "48.0", "75.00")
    (total,) = found["used"]
    assert (total["runs"], total["gpuHours"], total["most"]) == (1, "48.0", "75.00")
    text = gangplan("cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--measured", file).out
    assert "75.00 USD" in text.splitlines()[1]
    assert text.endswith("used: by the hours of 1 of 1 run that were measured\n")
    by_team = gangplan(
        "cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--measured", file, "--by", "team"
    )
    assert by_team.out.splitlines()[1].split() == ["nlp", "1", "192", "300.00", "USD", "48", "75.00", "USD"]


def test_measured_runs_of_schedules_are_counted(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that started while the schedule was in Git, at its price and shape then."""
    at(monkeypatch, 1)
    worlds.stock(repo.root, **{"specs/nlp/once.yaml": workspaces.SPEC})
    repo.render()
    repo.commit()
    job = next(
        path.stem.rpartition("-")[0]
        for path in repo.root.glob("rendered/lab/runs/nlp/*-*.yaml")
        if "kind: CronJob" in path.read_text()
    )
    runs = [(f"{job}-20261103-0200", "2"), (f"{job}-20261104-0200", "3"), (f"{job}-20261101-0200", "4")]
    odd = [(f"{job}-20261399-0200", "5"), (f"{job}-2", "6")]
    found = history(repo, "--measured", export(tmp_path / "used.json", *runs, *odd))
    assert found["schedules"] == 0
    dated = {one["run"]: one["measuredHours"] for one in found["runs"] if one["measuredHours"]}
    assert dated == {f"{job}-20261103-0200": "2", f"{job}-20261104-0200": "3"}
    assert {one["name"] for one in found["used"]} == set(dated)
    later = history(repo, "--measured", tmp_path / "used.json", since="2026-11-04")
    assert [one["run"] for one in later["runs"] if one["measuredHours"]] == [f"{job}-20261104-0200"]
    day = history(repo, "--measured", tmp_path / "used.json", "--until", "2026-11-03", since="2026-11-03")
    assert [one["run"] for one in day["runs"]] == [f"{job}-20261103-0200"]


def test_hours_of_a_run_that_came_back_count_once(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (before,) = history(repo)["runs"]
    for day, state in ((1, "state: stopped\n"), (2, "")):
        at(monkeypatch, day)
        repo.write(filings=workspaces.SPEC + state)
        repo.render()
        repo.commit()
    found = history(repo, "--measured", export(tmp_path / "used.json", (before["run"], "6")))
    assert [one["run"] for one in found["runs"]] == [before["run"]] * 2
    assert [one["used"] for one in found["runs"]] == ["75.00", None]


def test_an_export_of_one_cluster_is_not_used_for_two(repo: Repository, tmp_path: Path) -> None:
    text = (repo.root / "overlays/lab/cluster.yaml").read_text()
    write(repo.root, {"overlays/two/cluster.yaml": text.replace("name: lab", "name: two")})
    repo.write(filings=workspaces.SPEC + "clusters: [lab, two]\n")
    repo.render()
    repo.commit()
    names = {one["run"] for one in history(repo)["runs"] if one["cluster"] == "two"}
    file = export(tmp_path / "used.json", *((name, "1") for name in names))
    flags = ("cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--measured", file)
    outcome = gangplan(*flags)
    assert (outcome.code, "which is on lab and on two" in outcome.err) == (Exit.INPUT, True)
    assert gangplan(*flags, "--cluster", "two").code == Exit.CLEAN


def test_an_export_without_hours_is_refused(repo: Repository, tmp_path: Path) -> None:
    file = tmp_path / "used.json"
    file.write_text('{"data": {"resultType": "vector", "result": []}}')
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "2026-11-01", "--measured", file)
    assert (outcome.code, "has no hours of runs" in outcome.err) == (Exit.INPUT, True)


def test_wrong_flags_of_the_history_are_refused(repo: Repository, tmp_path: Path) -> None:
    for flags in (
        ["--history"],
        ["--since", "yesterday"],
        ["--history", "--since", "2026-11-01", "--by", "month"],
    ):
        assert gangplan("cost", "-C", repo.root, *flags).code == Exit.INPUT
    assert gangplan("cost", "-C", repo.root, "--since", "2026-11-01", "--team", "nlp").code == Exit.CLEAN
    other = workspaces.stock(tmp_path / "plain")
    assert gangplan("cost", "-C", other, "--history", "--since", "2026-11-01").code == Exit.ENVIRONMENT
