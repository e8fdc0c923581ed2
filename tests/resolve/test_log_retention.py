"""How long logs should stay: the layers, the bounds, and annotations that no run's name depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import plain, workspaces
from tests.mpijob.base import OPERATOR
from tests.mpijob.base import spec as mpi_spec
from tests.rules.worlds import commit
from tests.workspaces import gangplan

SPEC, TEAM, CLUSTER = "specs/nlp/filings.yaml", "specs/nlp/team.yaml", "overlays/lab/cluster.yaml"
OURS = "training.openshift.io/"


def written(root: Path, spec: str = "", team: str = "", cluster: str = "", whole: str = "") -> Path:
    """Write the small workspace with more lines in its files; `whole` replaces the cluster."""
    texts = {
        SPEC: workspaces.SPEC + spec,
        TEAM: workspaces.TEAM + team,
        CLUSTER: (whole or workspaces.CLUSTER) + cluster,
    }
    return workspaces.write(root, texts)


def rendered(root: Path) -> dict[str, Any]:
    """Render, and return the object of the only run."""
    outcome = gangplan("render", "-C", root, "--engine", "serial")
    assert outcome.code == 0, outcome.err
    (file,) = root.glob("rendered/lab/runs/nlp/*-*.yaml")
    bodies = plain.load_all(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = next(body for body in bodies if body and body["kind"] in ("TrainJob", "MPIJob"))
    return found


def of_tools(root: Path) -> dict[str, str]:
    """Return the annotations of the run that tools of the platform read."""
    found = rendered(root)["metadata"]["annotations"]
    return {name.removeprefix(OURS): value for name, value in found.items() if name.startswith(OURS)}


LAYERS = {
    "nothing is stated": ("", "", "", "7d"),
    "the cluster's default": ("", "", "defaults: {logRetention: 14d}\n", "14d"),
    "the team's default": ("", "defaults: {logRetention: 21d}\n", "defaults: {logRetention: 14d}\n", "21d"),
    "the spec": ("logRetention: 30d\n", "defaults: {logRetention: 21d}\n", "", "30d"),
    "near: as long as the cluster keeps any": ("logRetention: 30d\n", "", "retention: {logs: 30d}\n", "30d"),
    "near: a day": ("logRetention: 24h\n", "", "", "24h"),
    "a cluster that keeps less than a week": ("", "", "retention: {logs: 3d}\n", "3d"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_run_says_how_long_its_logs_should_stay(name: str, root: Path) -> None:
    *texts, expected = LAYERS[name]
    found = of_tools(written(root, *texts))
    assert found == {"log-retention": expected, "timeout": "24h", "timeout-action": "terminate"}


REFUSED = {
    "near: less than a day": ("logRetention: 86399s\n", "", "", SPEC, "must stay for 24h or more"),
    "near: longer than the cluster": (
        "logRetention: 2592001s\n", "", "retention: {logs: 30d}\n", SPEC, "cluster lab keeps logs for 30d",
    ),
    "the team's default": (
        "", "defaults: {logRetention: 40d}\n", "retention: {logs: 30d}\n", TEAM, "lab keeps logs for 30d",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_time_outside_the_bounds_is_refused(name: str, root: Path) -> None:
    spec, team, cluster, file, words = REFUSED[name]
    outcome = gangplan("validate", "-C", written(root, spec, team, cluster))
    ((place, rule),) = outcome.errors()
    assert (place.partition(":")[0], rule) == (file, "log-retention")
    (found,) = (one for one in outcome.findings if one.severity == "error")
    assert found.message.endswith(words)
    assert ("retention" not in cluster) or f"{CLUSTER}:" in found.help


CHANGES = {
    "the spec": {"spec": "logRetention: 30d\n"},
    "the team": {"team": "defaults: {logRetention: 30d}\n"},
    "the cluster": {"cluster": "defaults: {logRetention: 30d}\nretention: {logs: 60d}\n"},
}


@pytest.mark.parametrize("backend", ["TrainJob", "MPIJob"])
@pytest.mark.parametrize("name", CHANGES)
def test_another_retention_makes_no_new_run_and_no_step_that_is_refused(
    name: str, backend: str, root: Path
) -> None:
    whole = OPERATOR if backend == "MPIJob" else ""
    old = rendered(written(root, whole=whole))
    assert old["kind"] == backend
    commit(root)
    new = rendered(written(root, whole=whole, **CHANGES[name]))
    assert new["metadata"]["name"] == old["metadata"]["name"]
    assert new["spec"] == old["spec"]
    changed = {
        key
        for key in new["metadata"]["annotations"]
        if new["metadata"]["annotations"][key] != old["metadata"]["annotations"].get(key)
    }
    assert changed == {f"{OURS}log-retention"}
    outcome = gangplan("validate", "--base", "HEAD", "-C", root)
    rules = {one.rule for one in outcome.findings}
    assert not rules & {"immutable-changed", "runtime-edited", "run-started", "run-replaced", "run-renamed"}


def test_debug_mode_is_marked(root: Path) -> None:
    cluster = workspaces.CLUSTER + "environment: dev\n"
    found = of_tools(written(root, "debug: {until: 2026-12-01}\n", whole=cluster))
    assert found["debug-mode"] == "true"


def test_pods_carry_none_of_them(root: Path) -> None:
    """Their templates decide the run's name."""
    written(root, "logRetention: 30d\n")
    rendered(root)
    (file,) = root.glob("rendered/lab/runs/nlp/*-*.yaml")
    for body in plain.load_all(file.read_text(encoding="utf-8")):
        if body and body["kind"] != "TrainJob":
            assert "log-retention" not in str(body)


def test_mpijobs_have_the_same(root: Path) -> None:
    workspaces.write(root, {SPEC: mpi_spec("mpich", "timeout: 3h\n"), CLUSTER: OPERATOR})
    assert of_tools(root) == {"log-retention": "7d", "timeout": "3h", "timeout-action": "terminate"}


def test_plan_shows_the_description_in_one_line(root: Path) -> None:
    written(root, 'description: "Tunes the filings model\\n  ::error::every night"\n')
    out = gangplan("plan", "-C", root).out
    assert "about     Tunes the filings model" in out
    assert not any(line.lstrip().startswith("::error") for line in out.splitlines())
    written(root, f"description: {'x' * 200}\n")
    (line,) = (line for line in gangplan("plan", "-C", root).out.splitlines() if "about" in line)
    assert line.endswith("xxx...")
    assert len(line) < 140
