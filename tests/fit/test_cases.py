"""The table of runs that find no nodes: the finding, its line and words, and a near miss without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.report.plan import build_plan_json, render_plan_text
from tests import plain, workspaces

CASES: list[dict[str, Any]] = plain.load((Path(__file__).parent / "cases.yaml").read_text())
RULES = {"no-node-fits", "nodes-too-few", "nodes-tight", "nodes-unjudged"}
POD = "/spec/template/spec/replicatedJobs/{}/template/spec/template/spec"
ROLES = {"worker": 0, "launcher": 1}


def changed(text: str, changes: dict[str, str]) -> str:
    """Return a text with its changes; each old text must occur."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def patches(case: dict[str, Any]) -> dict[str, str]:
    """Return the overlay that patches the pods of the runs."""
    operations = [
        {**one, "path": POD.format(index) + one["path"]}
        for role, index in ROLES.items()
        for one in case.get(role) or ()
    ]
    place = "/metadata/annotations/openshift.io~1node-selector"
    annotated = [{"op": "add", "path": place, "value": case["project"]}] if "project" in case else []
    found = [
        {"target": {"kind": kind}, "patch": yaml.safe_dump(patch)}
        for kind, patch in (("TrainingRuntime", operations), ("Namespace", annotated))
        if patch
    ]
    if not found:
        return {}
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": found,
    }
    return {"overlays/lab/kustomization.yaml": yaml.safe_dump(body)}


def judged(root: Path, case: dict[str, Any]) -> tuple[Result, str]:
    """Return the result of a case, and the spec in it."""
    spec = changed(workspaces.SPEC, case.get("spec") or {})
    workspaces.stock(root)
    cluster = changed(workspaces.CLUSTER, case.get("cluster") or {})
    workspaces.write(
        root, {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster, **patches(case)}
    )
    return preview_render(Request(root, engine="serial")), spec


def of_fit(result: Result) -> list[Finding]:
    """Return the findings of node fit, and check that there are no other errors."""
    errors = [one for one in result.findings if one.severity.word == "error" and one.rule not in RULES]
    assert errors == []
    return [one for one in result.findings if one.rule in RULES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_run_without_nodes_is_reported_at_its_line(case: dict[str, Any], tmp_path: Path) -> None:
    result, spec = judged(tmp_path, case)
    (finding,) = of_fit(result)
    assert finding.rule == case["rule"]
    for words in case["says"]:
        assert words in finding.message
    assert finding.help.startswith(case["help"])
    if case["line"] == "patch":
        assert finding.where.file == "overlays/lab/kustomization.yaml"
    else:
        assert finding.where.file == "specs/nlp/filings.yaml"
        assert spec.splitlines()[finding.where.line - 1] == case["line"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_near_miss_has_no_finding(case: dict[str, Any], tmp_path: Path) -> None:
    result, _ = judged(tmp_path, {**case, **case["near"]})
    assert of_fit(result) == []
    (run,) = result.runs
    assert run.fit is not None
    assert run.fit.verdict == "sure"


def test_proposed_numbers_fit_and_one_more_does_not(tmp_path: Path) -> None:
    """Every proposed number of workers and every proposed amount is enough, and one more is not."""
    for workers, cpu, expected in ((12, 36, 0), (13, 36, 1), (13, 31, 0), (13, 32, 1)):
        case = {"spec": {"workers: 4": f"workers: {workers}", "cpu: 8": f"cpu: {cpu}"}}
        result, _ = judged(tmp_path / f"{workers}-{cpu}", case)
        assert len(of_fit(result)) == expected, (workers, cpu)


def test_a_run_that_is_never_admitted_has_no_finding_of_node_fit(tmp_path: Path) -> None:
    """More GPUs than the quota are a finding of admission, and node fit adds none."""
    result, _ = judged(tmp_path, {"spec": {"workers: 4": "workers: 17"}})
    errors = [one.rule for one in result.findings if one.severity.word == "error"]
    assert errors == ["over-quota"]
    assert result.runs[0].fit is None


def test_plan_shows_the_nodes(tmp_path: Path) -> None:
    result, _ = judged(tmp_path, {})
    assert "nodes     4 workers need 1 node of a100, launcher on cpu\n" in render_plan_text(result.runs)
    told = build_plan_json(result.runs)["runs"][0]["nodes"]
    assert told["verdict"] == "sure"
    assert (told["pods"], told["bound"], told["sure"], told["reasons"]) == (5, 5, 5, [])
    assert told["placements"] == {"node": {"a100": 4}, "launcher": {"cpu": 1}}
    assert told["nodes"] == {"node": {"a100": 1}, "launcher": {"cpu": 1}}


def test_plan_shows_pods_that_do_not_fit(tmp_path: Path) -> None:
    result, _ = judged(tmp_path, CASES[0])
    line = next(line for line in render_plan_text(result.runs).splitlines() if line.startswith("  nodes"))
    assert "only 12 of 13 workers fit on 4 nodes of a100" in line
    assert "4 Insufficient cpu" in line
