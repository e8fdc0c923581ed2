"""A sample of every cause, and near misses: tests/diagnose/cases.yaml."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.diagnose.cause import ROOT_CAUSE
from gangplan.diagnose.causes import list_diagnosis_causes
from gangplan.diagnose.read import read_evidence
from gangplan.diagnose.verdict import RunDiagnosis, diagnose_runs
from gangplan.reference.causes import render_cause_reference, render_causes_docs_page
from gangplan.rulebook import load_shipped_rules
from tests.workspaces import REPOSITORY

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
RUN = "train-1a2b3c4d"


def pod(case: dict[str, Any]) -> dict[str, Any]:
    """Return worker 3 of the run."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": RUN,
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": "3",
    }
    metadata = {"name": f"{RUN}-node-0-3-abcde", "namespace": "nlp", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": case.get("spec", {}),
        "status": case["pod"],
    }


def event(reason: str, message: str) -> dict[str, Any]:
    """Return an event of a Job of the run."""
    of = {"kind": "Job", "name": f"{RUN}-node-0", "namespace": "nlp"}
    metadata = {"name": "e", "namespace": "nlp"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": of,
        "reason": reason,
        "message": message,
    }


def saved(folder: Path, case: dict[str, Any]) -> Path:
    """Write the case as files, as kubectl writes them."""
    items = [{"apiVersion": "v1", **one} for one in case.get("objects", ())]
    items += [pod(case)] if "pod" in case else []
    items += [event(*case["event"])] if "event" in case else []
    if items:
        body = {"apiVersion": "v1", "kind": "List", "items": items}
        (folder / "objects.json").write_text(json.dumps(body, indent=4))
    if "log" in case:
        (folder / "run.log").write_text(case["log"] + "\n")
    return folder


def judged(folder: Path) -> tuple[RunDiagnosis, ...]:
    """Return the verdicts on a folder."""
    return diagnose_runs(read_evidence([str(folder)], lambda: io.BytesIO(b"")))


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_the_cause_comes_first(case: dict[str, Any], tmp_path: Path) -> None:
    (verdict,) = judged(saved(tmp_path, case)) or (None,)
    assert verdict is not None
    if case["cause"] is None:
        assert [one.cause.id for one in verdict.found] == []
        return
    assert [one.cause.id for one in verdict.found][:1] == [case["cause"]], verdict.found
    first = verdict.found[0].seen[0]
    assert case.get("who", first.who.words) == first.who.words
    assert case.get("fact", {}).items() <= first.facts.items()
    assert case.get("says", "") in first.text
    behind = {one.cause.id for one in verdict.found[1:] if one.follows}
    assert set(case.get("follows", ())) <= behind


def test_every_cause_has_a_sample() -> None:
    told = {one["cause"] for one in CASES} | {name for one in CASES for name in one.get("follows", ())}
    assert set(list_diagnosis_causes()) == told - {None}


def test_rules_named_by_causes_exist() -> None:
    named = {rule for cause in list_diagnosis_causes().values() for rule in cause.rules}
    assert named <= set(load_shipped_rules()), named - set(load_shipped_rules())
    assert not set(list_diagnosis_causes()) & set(load_shipped_rules()), "explain has one page for a name"


def test_every_root_has_a_rule_or_says_why_there_is_none() -> None:
    for cause in list_diagnosis_causes().values():
        if cause.depth == ROOT_CAUSE:
            assert bool(cause.rules) != bool(cause.unforeseen), cause.id
        else:
            assert not cause.unforeseen, cause.id


def test_the_page_states_the_number_of_causes() -> None:
    page = (REPOSITORY / "docs/diagnose.md").read_text()
    assert f"Each of [{len(list_diagnosis_causes())} causes](causes.md)" in page


def test_every_cause_without_a_rule_says_why_on_its_page() -> None:
    page = render_causes_docs_page()
    for section in page.split("\n### ")[1:]:
        assert ("\nRules: " in section) != ("\nNo rule can tell: " in section), section
    for cause in list_diagnosis_causes().values():
        assert ("In CI: " in render_cause_reference(cause.id)) != (
            "No rule can tell: " in render_cause_reference(cause.id)
        )
