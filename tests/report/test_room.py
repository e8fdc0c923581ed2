"""`plan` on a team's quota: what other runs that Git has use of it, and what is left after this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.sweeps import files as sweeps
from tests.workspaces import gangplan, render

SPEC, OTHER, CLUSTER = "specs/nlp/filings.yaml", "specs/nlp/notes.yaml", "overlays/lab/cluster.yaml"
# 20 GPUs, 200 CPU and 2000 GiB for the team; a run has 4 workers of 2 GPUs.
QUOTA = workspaces.CLUSTER.replace(
    "nlp: {queue: training}",
    "nlp: {queue: training, quota: {a100: {gpus: 20, cpu: 200, memory: 2000Gi}, cpu: {cpu: 100}}}",
)


def room(root: Path, *flags: str) -> dict[str, Any]:
    """Return what the plan says about quota, by resource of the pool a100, and the count of runs."""
    outcome = gangplan("plan", SPEC, "-C", root, "--engine", "serial", "--format", "json", *flags)
    (run,) = json.loads(outcome.out)["runs"]
    return {
        "runs": run["quota"]["runs"]["used"],
        **{one["resource"]: one for one in run["quota"]["resources"] if one["pool"] == "a100"},
    }


def other(workers: int, more: str = "") -> str:
    """Return another job of the team."""
    return workspaces.SPEC.replace("workers: 4", f"workers: {workers}") + more


OTHERS = {
    "no other run": ({}, 1, "0", "12"),
    "another run": ({OTHER: other(3)}, 2, "6", "6"),
    "near: all of it": ({OTHER: other(6)}, 2, "12", "0"),
    "near: two GPUs more": ({OTHER: other(7)}, 2, "14", "-2"),
    "a stopped one": ({OTHER: other(3, "state: stopped\n")}, 2, "0", "12"),
    "an archived one": ({OTHER: other(3, "state: archived\n")}, 2, "0", "12"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_runs_that_git_has_use_quota(name: str, root: Path) -> None:
    files, runs, used, left = OTHERS[name]
    workspaces.write(root, {CLUSTER: QUOTA, OTHER: other(3), **files})
    render(root)
    if not files:
        (root / OTHER).unlink()
        render(root)
        files = {}
    found = room(root)
    gpus = found["nvidia.com/gpu"]
    assert (gpus["quota"], gpus["otherRuns"], gpus["thisRun"], gpus["left"]) == ("20", used, "8", left)
    assert found["runs"] == runs
    text = gangplan("plan", SPEC, "-C", root, "--engine", "serial").out
    words = f"{left} of 20 GPUs left" if not left.startswith("-") else f"{left[1:]} GPUs over the quota of 20"
    assert words in text
    assert (f"(other runs: {used})" in text) == (used != "0")


def test_the_rendered_run_of_the_job_itself_is_not_another(root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA})
    render(root)
    workspaces.write(root, {SPEC: other(5)})
    found = room(root)
    assert (found["nvidia.com/gpu"]["otherRuns"], found["nvidia.com/gpu"]["thisRun"]) == ("0", "10")
    assert found["runs"] == 1


def test_specs_that_are_not_rendered_count_for_nothing(root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA, OTHER: other(3)})
    assert room(root)["nvidia.com/gpu"]["otherRuns"] == "0"


def test_other_teams_count_for_nothing(root: Path) -> None:
    cluster = QUOTA.replace(
        "teams:\n", "teams:\n  vision: {queue: vision, quota: {a100: {gpus: 8}, cpu: {cpu: 9}}}\n"
    )
    files = {"specs/vision/team.yaml": workspaces.TEAM, "specs/vision/cars.yaml": workspaces.SPEC}
    workspaces.write(root, {CLUSTER: cluster, **files})
    render(root)
    assert room(root)["nvidia.com/gpu"]["otherRuns"] == "0"


def test_memory_and_cpu_are_counted_as_well(root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA, OTHER: other(3)})
    render(root)
    found = room(root)
    assert (found["cpu"]["otherRuns"], found["cpu"]["left"]) == ("24", "144")
    assert found["memory"]["otherRuns"] == "96Gi"


def test_without_kueue_there_is_no_quota_of_a_queue(root: Path) -> None:
    cluster = workspaces.CLUSTER.replace(', kueue: "0.19.2"', "") + "gang: none\nenvironment: dev\n"
    workspaces.write(root, {CLUSTER: cluster})
    outcome = gangplan("plan", SPEC, "-C", root, "--engine", "serial", "--format", "json")
    assert all("quota" not in run for run in json.loads(outcome.out)["runs"]), outcome.out


def test_a_stopped_run_has_no_line(root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA, SPEC: workspaces.SPEC + "state: stopped\n"})
    assert "  quota " not in gangplan("plan", SPEC, "-C", root, "--engine", "serial").out


ASKS = "support: {quota: https://portal.example.com/quota}\n"
SHORT = {
    "enough, with an address": (3, ASKS, False),
    "near: all of it, with an address": (6, ASKS, False),
    "short, with an address": (7, ASKS, True),
    "short, without one": (7, "", False),
}


@pytest.mark.parametrize("name", SHORT)
def test_the_plan_says_where_to_ask_when_quota_is_short(name: str, root: Path) -> None:
    workers, support, is_named = SHORT[name]
    workspaces.write(root, {CLUSTER: QUOTA + support, OTHER: other(workers)})
    render(root)
    out = gangplan("plan", SPEC, "-C", root, "--engine", "serial").out
    assert ("; more at https://portal.example.com/quota\n" in out) == is_named


@pytest.mark.parametrize("support", ["", ASKS])
def test_findings_about_quota_say_where_to_ask(support: str, root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA + support, SPEC: other(40)})
    outcome = gangplan("validate", "-C", root, "--engine", "serial")
    (found,) = (one for one in outcome.findings if one.rule == "over-quota")
    assert found.help.endswith("https://portal.example.com/quota is where to ask for more.") == bool(support)


@pytest.mark.parametrize("address", ["portal.example.com", "ftp://portal.example.com", '"https://a b"'])
def test_an_address_is_a_web_address(address: str, root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA + f"support: {{quota: {address}}}\n"})
    assert [rule for _, rule in gangplan("validate", "-C", root).errors()] == ["spec-value"]


SPOILT: dict[str, tuple[str, str]] = {
    "conflict markers": ("apiVersion: networking", "<<<<<<< HEAD\napiVersion: networking"),
    "no specs": ("\nspec:\n", "\nother:\n"),
    "a list for a spec": ("\nspec:\n", "\nspec: [1]\nother:\n"),
    "no metadata": ("\nmetadata:\n", "\nmetadata: null\nother:\n"),
    "workers in words": ("numNodes: 3", "numNodes: three"),
    "no groups of pods": ("replicatedJobs:\n", "replicatedJobs: null\n      others:\n"),
    "binary": ("spec", "\x00\x01"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_file_that_is_not_a_run_uses_nothing(name: str, root: Path) -> None:
    workspaces.write(root, {CLUSTER: QUOTA, OTHER: other(3)})
    render(root)
    (path,) = (root / "rendered/lab/runs/nlp").glob("notes-*.yaml")
    old, new = SPOILT[name]
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert room(root)["nvidia.com/gpu"]["left"] == "12"


def test_of_a_sweep_only_as_many_trials_count_as_run_at_once(root: Path) -> None:
    """Six trials of two GPUs, two of them at once: next to one of them is one other, and a job meets two."""
    workspaces.write(root, {CLUSTER: QUOTA, sweeps.FILE: sweeps.SWEEP})
    render(root)
    trials = gangplan("plan", sweeps.FILE, "-C", root, "--engine", "serial", "--format", "json")
    (found,) = {
        (one["otherRuns"], one["left"])
        for run in json.loads(trials.out)["runs"]
        for one in run["quota"]["resources"]
        if (one["pool"], one["resource"]) == ("a100", "nvidia.com/gpu")
    }
    assert found == ("10", "8"), "the job's eight, and another trial's two"
    assert room(root)["nvidia.com/gpu"]["otherRuns"] == "4"
    assert room(root)["runs"] == 7
