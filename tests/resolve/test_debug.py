"""Runs that keep their pods after a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_workdir import SPEC
from tests.workspaces import gangplan, rendered

UNTIL = 'debug: {until: "2026-12-01"}\n'
END_S = 1796169600  # 2026-12-02 00:00:00 UTC
DEV = {"overlays/lab/cluster.yaml": workspaces.CLUSTER.replace("region:", "environment: dev\nregion:")}
# Lines -> image, rule, and words of the message.
REFUSED = {
    "a run that is tried again": (f"{UNTIL}retries: 2\n", "openmpi", "debug-unusable", "retries is 2"),
    "an elastic run": (
        f"{UNTIL}elastic: {{min: 2, max: 4}}\ncheckpoint: {{to: filings}}\n",
        *("pytorch", "debug-unusable", "an elastic run goes on without a failed worker"),
    ),
    "no day": ("debug: {}\n", "openmpi", "spec-missing-field", "until"),
    "no such day": ('debug: {until: "2026-02-30"}\n', "openmpi", "spec-value", "not a valid date"),
    "a length": ("debug: {until: 3d}\n", "openmpi", "spec-value", "3d"),
}


def put(root: Path, lines: str, image: str = "openmpi", files: dict[str, str] | None = None) -> None:
    """Write the spec of the small workspace with more lines, on a cluster that is not for production."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + lines
    if "elastic" in lines:
        text = text.replace("workers: 4\n", "")
    workspaces.write(root, {SPEC: text, **(DEV if files is None else files)})


def jobs(root: Path) -> dict[str, Any]:
    """Render, and return the Jobs of the run by role."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    (runtime,) = (body for body in load_objects(text) if body["kind"] == "TrainingRuntime")
    entries = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {entry["name"]: entry["template"]["spec"] for entry in entries}


def said(root: Path, day: str) -> dict[str, str]:
    """Return the messages of a day's findings by rule."""
    return {one.rule: one.message for one in gangplan("validate", "-C", root, "--today", day).findings}


@pytest.mark.parametrize(
    ("image", "more", "limits"),
    [
        ("openmpi", "", {"node": 5, "launcher": 2}),
        ("openmpi", "launcher: {runsRanks: true}\n", {"node": 4, "launcher": 2}),
        ("pytorch", "", {"node": 5}),
    ],
)
def test_each_pod_may_fail_once_and_stays(image: str, more: str, limits: dict[str, int], root: Path) -> None:
    put(root, UNTIL + more, image)
    found = jobs(root)
    assert {role: job["backoffLimit"] for role, job in found.items()} == limits
    pods = {role: job["template"]["spec"] for role, job in found.items()}
    assert {pod["restartPolicy"] for pod in pods.values()} == {"OnFailure"}
    # A worker of MPI serves again; the pod that starts the program waits for the end of the day.
    option = f"--keep-until={END_S}:2026-12-01"
    waits = {role for role, pod in pods.items() if option in pod["containers"][0]["command"]}
    assert waits == {"launcher" if image == "openmpi" else "node"}
    assert all("podFailurePolicy" not in job for job in found.values())


def test_pods_of_roles_are_kept_too(root: Path) -> None:
    put(
        root,
        f"framework: tensorflow\nroles: {{ps: {{workers: 2, cpu: 2}}, chief: {{cpu: 2}}}}\n{UNTIL}",
        "pytorch",
    )
    found = jobs(root)
    assert {role: job["backoffLimit"] for role, job in found.items()} == {"node": 5, "ps": 3, "chief": 2}
    assert all(job["template"]["spec"]["restartPolicy"] == "OnFailure" for job in found.values())


def test_without_debug_no_container_is_started_again(root: Path) -> None:
    put(root, "")
    found = jobs(root)
    assert {job["backoffLimit"] for job in found.values()} == {0}
    assert {job["template"]["spec"]["restartPolicy"] for job in found.values()} == {"Never"}


def test_another_day_is_another_run(root: Path) -> None:
    names = set()
    for lines in ("", UNTIL, UNTIL.replace("12-01", "12-02")):
        put(root, lines)
        gangplan("render", "-C", root)
        names |= {path for path in rendered(root) if is_run_file(path)}
    assert len(names) == 3


def test_debug_in_production_is_refused(root: Path) -> None:
    put(root, UNTIL, files={})
    assert said(root, "2026-11-30")["debug-in-prod"].startswith("cluster lab has environment: prod")
    assert gangplan("validate", "-C", root, "--today", "2026-11-30").code == 2


@pytest.mark.parametrize("name", REFUSED)
def test_debug_is_refused_where_pods_cannot_be_kept(name: str, root: Path) -> None:
    lines, image, rule, words = REFUSED[name]
    put(root, lines, image)
    assert words in said(root, "2026-11-30")[rule]


def test_an_mpijob_cannot_keep_its_pods(root: Path) -> None:
    cluster = DEV["overlays/lab/cluster.yaml"].replace("versions: {", 'versions: {mpiOperator: "0.8.2", ')
    put(root, f"{UNTIL}backend: mpijob\n", files={"overlays/lab/cluster.yaml": cluster})
    assert said(root, "2026-11-30")["backend-field"].startswith("debug: the MPI operator deletes the workers")


# Day -> the rule of its finding.
DAYS = {
    "2026-11-16": "debug-too-long",
    "2026-11-17": "debug-kept",
    "2026-12-01": "debug-kept",
    "2026-12-02": "debug-over",
}


@pytest.mark.parametrize("day", DAYS)
def test_each_day_has_its_own_finding_also_from_the_cache(day: str, root: Path) -> None:
    """A kept answer about one day must not answer about another."""
    put(root, UNTIL)
    assert set(said(root, "2026-11-30")) == {"debug-kept"}
    assert set(said(root, day)) == {DAYS[day]}
    assert gangplan("validate", "-C", root, "--today", day).code == (DAYS[day] != "debug-kept")
    before = rendered(root)
    gangplan("render", "-C", root)
    assert before in ({}, rendered(root))


@pytest.mark.parametrize("state", ["stopped", "archived"])
def test_debug_of_an_ended_run_has_no_finding(state: str, root: Path) -> None:
    put(root, f"{UNTIL}state: {state}\n")
    assert not {rule for rule in said(root, "2027-01-01") if rule.startswith("debug")}


def test_why_leads_to_debug(root: Path) -> None:
    put(root, UNTIL)
    jobs(root)
    path = next(path for path in rendered(root) if is_run_file(path))
    lines = rendered(root)[path].decode().splitlines()
    for words in ("restartPolicy: OnFailure", "backoffLimit: 5"):
        number = next(number for number, line in enumerate(lines, 1) if words in line)
        outcome = gangplan("why", "-C", root, f"rendered/{path}:{number}")
        assert "debug" in outcome.out, outcome.out


def test_a_new_job_takes_debug_from_its_flag(root: Path) -> None:
    workspaces.write(root, DEV)
    words = ("--team", "nlp", "--image", "openmpi", "--command", "python train.py")
    outcome = gangplan("new", "job", "look", "-C", root, *words, "--debug-until", "2026-12-01")
    assert outcome.code == 0, outcome.err
    assert "2026-12-01" in (root / "specs/nlp/look.yaml").read_text()
