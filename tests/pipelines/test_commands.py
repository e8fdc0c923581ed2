"""Commands about jobs that come after others: new, why, validate and render."""

from __future__ import annotations

from pathlib import Path

from tests.pipelines.worlds import CHAIN, PREPARE, runs, stock
from tests.schedules.worlds import one
from tests.workspaces import SPEC, gangplan, write


def test_new_job_has_the_flag_after(root: Path) -> None:
    stock(root)
    made = gangplan(
        *("new", "job", "judge", "--team", "nlp", "--image", "openmpi", "--workers", "1"),
        *("--after", "filings", "--after", "prepare", "-C", root, "--command", "python judge.py"),
    )
    assert made.code == 0, made.err
    assert "after: [filings, prepare]" in (root / "specs/nlp/judge.yaml").read_text(encoding="utf-8")


def test_why_leads_from_the_job_to_the_spec(root: Path) -> None:
    stock(root)
    name = one(runs(root)["filings"], "Job")["metadata"]["name"]
    (path,) = (root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"  name: {name}")
    waited = next(index for index in range(begin, len(lines)) if "prepare-" in lines[index])
    told = gangplan("why", f"rendered/lab/runs/nlp/{path.name}:{waited + 1}", "-C", root)
    assert told.code == 0, told.err
    assert "specs/nlp/filings.yaml:9" in told.out
    client = next(index for index in range(begin, len(lines)) if "image: " in lines[index])
    told = gangplan("why", f"rendered/lab/runs/nlp/{path.name}:{client + 1}", "-C", root)
    assert "overlays/lab/cluster.yaml" in told.out


def test_a_cycle_is_reported_at_each_of_its_jobs(root: Path) -> None:
    jobs = {"filings": SPEC + "after: [judge]\n", "judge": SPEC + "after: [check]\n"}
    stock(root, {**jobs, "check": SPEC + "after: [filings]\n", "late": SPEC + "after: [judge]\n"})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "after-cycle"]
    assert {one.place.partition(":")[0]: one.message.partition(": ")[2] for one in found} == {
        "specs/nlp/check.yaml": "check → filings → judge → check",
        "specs/nlp/filings.yaml": "filings → judge → check → filings",
        "specs/nlp/judge.yaml": "judge → check → filings → judge",
    }


def test_a_job_cannot_come_after_itself(root: Path) -> None:
    stock(root, {"filings": SPEC + "after: [filings]\n"})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "after-cycle"]
    assert [one.message.partition(": ")[2] for one in found] == ["filings → filings"]


def test_a_predecessor_with_errors_is_reported_once(root: Path) -> None:
    stock(root, {**CHAIN, "prepare": PREPARE.replace("workers: 2", "workers: two")})
    outcome = gangplan("validate", "-C", root)
    assert {one.place.partition(":")[0] for one in outcome.findings} == {"specs/nlp/prepare.yaml"}


def test_without_after_the_engine_creates_the_run(root: Path) -> None:
    stock(root)
    held = runs(root)["filings"]
    write(root, {"specs/nlp/filings.yaml": SPEC})
    plain = runs(root)["filings"]
    assert one(plain, "TrainJob")["metadata"]["name"] == one(held, "TrainingRuntime")["metadata"]["name"]
    assert [body["kind"] for body in plain] == ["NetworkPolicy", "TrainingRuntime", "TrainJob"]
