"""Flux: its own types read what gangplan writes, and its own evaluator judges recorded statuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.gitops.cel import build_flux_health_expressions
from gangplan.gitops.health import KSTATUS_CURRENT, KSTATUS_FAILED, find_health_state
from gangplan.source import load_objects
from tests import workspaces
from tests.gitops.test_health import CASES, TABLE
from tests.lab import programs as lab
from tests.linters import programs
from tests.workspaces import gangplan

Object = dict[str, Any]
SOURCES = {
    "git": ("--repo", "ssh://git@git.example.com/ml/jobs.git"),
    "a tag": ("--repo", "oci://registry.example.com/ml/jobs", "--revision", "v1"),
    "a digest": ("--repo", "oci://registry.example.com/ml/jobs", "--revision", "sha256:" + "1" * 64),
    "a folder": ("--repo", "https://git.example.com/a/b.git", "--prefix", "ml/jobs", "--namespace", "sync"),
}
WORDS = {KSTATUS_CURRENT: "Current", KSTATUS_FAILED: "Failed"}


def asked(**questions: Any) -> dict[str, list[str]]:
    """Return the answers of Flux's code."""
    command = [programs.go(lab.FLUX_CHECK)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=True)
    answers: dict[str, list[str]] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("name", SOURCES)
def test_flux_reads_every_field(name: str, tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "jobs")
    workspaces.render(root)
    outcome = gangplan("gitops", "flux", "-C", root, "-o", tmp_path / "out", *SOURCES[name])
    assert outcome.code == 0, outcome.err
    bodies = load_objects((tmp_path / "out/lab.yaml").read_text())
    parts = [f"lab-{part}" for part in ("platform", "tenants", "runtimes", "runs")]
    assert [body["metadata"]["name"] for body in bodies[1:] if body["kind"] == "Kustomization"] == parts
    assert asked(objects=bodies)["objects"] == [""] * len(bodies)
    wrong = json.loads(json.dumps(bodies).replace('"interval"', '"intervall"'))
    assert all('unknown field "intervall"' in one for one in asked(objects=wrong)["objects"])
    # The health checks of these files are evaluated as they are written.
    for body in bodies[1:]:
        for check in body["spec"].get("healthCheckExprs", ()):
            cases = [case.values[1] for case in CASES if case.values[1]["kind"] == check["kind"]]
            questions = [{"check": check, "object": {"apiVersion": "a/v1", **one}} for one in cases]
            said = asked(checks=questions)["checks"]
            flux = [find_health_state(TABLE[check["kind"]], one).flux for one in cases]
            assert said == [WORDS.get(word, "InProgress") for word in flux]


def test_fluxs_evaluator_gives_every_recorded_status_its_word() -> None:
    bodies = [case.values[1] for case in CASES]
    checks = {kind: build_flux_health_expressions([table])[0] for kind, table in TABLE.items()}
    questions = [{"check": checks[body["kind"]], "object": {"apiVersion": "a/v1", **body}} for body in bodies]
    said = asked(checks=questions)["checks"]
    wanted = [WORDS.get(find_health_state(TABLE[body["kind"]], body).flux, "InProgress") for body in bodies]
    assert dict(zip([case.id for case in CASES], said, strict=True)) == dict(
        zip([case.id for case in CASES], wanted, strict=True)
    )
    assert set(said) == {"Current", "Failed", "InProgress"}
