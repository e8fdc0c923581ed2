"""Other jobs of the team that workers are near to, or apart from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

LABELS = {"gangplan.dev/team": "nlp"}


@pytest.fixture
def team(root: Path) -> Path:
    """Create the small workspace with two more jobs."""
    small = workspaces.SPEC.replace("workers: 4", "workers: 1").replace("gpus: 2\n", "")
    workspaces.write(root, {f"specs/nlp/{name}.yaml": small for name in ("bench", "store")})
    return root


def told(root: Path, lines: str) -> list[Any]:
    put(root, lines)
    return list(gangplan("validate", "-C", root, SPEC).findings)


def workers(root: Path, lines: str, image: str = "openmpi") -> dict[str, Any]:
    """Render, and return the affinity of the run by role."""
    for name in ("bench", "store"):
        (root / f"specs/nlp/{name}.yaml").unlink()
    put(root, lines, image)
    return {role: pod.get("affinity") for role, pod in pods(root).items()}


def test_near_is_as_close_as_the_cluster_can_tell(team: Path) -> None:
    found = workers(team, "placement: {near: [store]}\n")
    terms = found["node"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [(one["weight"], one["podAffinityTerm"]["topologyKey"]) for one in terms] == [
        (100, "kubernetes.io/hostname"),
        (80, "topology.example.com/rack"),
    ]
    labels = {**LABELS, "gangplan.dev/job": "store"}
    assert {str(one["podAffinityTerm"]["labelSelector"]["matchLabels"]) for one in terms} == {
        str(dict(sorted(labels.items())))
    }
    assert found["launcher"] is None


def test_apart_shares_no_node(team: Path) -> None:
    found = workers(team, "placement: {apart: [bench]}\nlauncher: {runsRanks: true}\n")
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"gangplan.dev/job": "bench", **LABELS}},
    }
    wanted = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert found == {"node": wanted, "launcher": wanted}


def test_neighbours_are_added_to_the_run_s_own_affinity(team: Path) -> None:
    found = workers(team, "placement: {spread: pack, near: [store], apart: [bench]}\n", "pytorch")["node"]
    terms = found["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert len(terms) == 3
    assert "jobset.sigs.k8s.io/jobset-name" in terms[0]["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert set(found) == {"podAffinity", "podAntiAffinity"}


CASES = {
    "two jobs": ("placement: {near: [store], apart: [bench]}\n", "", 0),
    "no such job": ("placement: {near: [stor]}\n", "neighbour-unknown", 20),
    "itself": ("placement: {near: [filings]}\n", "neighbour-unusable", 20),
    "near and apart": ("placement: {near: [store], apart: [store]}\n", "neighbour-unusable", 36),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_neighbour_breaks_one_rule(name: str, team: Path) -> None:
    lines, rule, column = CASES[name]
    found = told(team, lines)
    assert [one.rule for one in found] == ([rule] if rule else [])
    if rule:
        assert found[0].place == f"{SPEC}:9:{column}"
        assert found[0].help


def test_neighbours_are_refused_where_kueue_chooses_the_nodes(team: Path) -> None:
    pool = "labels: {pool: a100}"
    cluster = workspaces.CLUSTER.replace(pool, f"{pool}, topology: true", 1)
    workspaces.write(team, {"overlays/lab/cluster.yaml": cluster})
    (found,) = told(team, "placement: {apart: [bench]}\n")
    assert (found.rule, found.place) == ("neighbour-unusable", f"{SPEC}:9:20")
    assert "Kueue chooses the nodes of pool 'a100'" in found.message


def test_a_neighbour_that_is_added_later_is_known(team: Path) -> None:
    """The spec itself has not changed."""
    (team / "specs/nlp/bench.yaml").rename(team / "bench.yaml")
    (found,) = told(team, "placement: {apart: [bench]}\n")
    assert found.rule == "neighbour-unknown"
    assert gangplan("render", "-C", team).code == 0
    (team / "bench.yaml").rename(team / "specs/nlp/bench.yaml")
    assert [one.rule for one in gangplan("validate", "-C", team, SPEC).findings] == []


def test_why_leads_to_the_job(team: Path) -> None:
    put(team, "placement: {near: [store], apart: [bench]}\n")
    assert gangplan("render", "-C", team).code == 0
    (path,) = (one for one in rendered(team) if "/filings-" in one)
    lines = rendered(team)[path].decode().splitlines()
    for words, field in (("dev/job: store", "placement.near[0]"), ("dev/job: bench", "placement.apart[0]")):
        line = next(n for n, one in enumerate(lines, 1) if words in one)
        out = gangplan("why", "-C", team, f"rendered/{path.removeprefix('rendered/')}:{line}").out
        assert field in out, words


def test_a_new_job_takes_neighbours_from_its_flags(team: Path) -> None:
    words = ("--image", "openmpi", "--command", "python train.py", "--placement-apart", "bench", "-n")
    outcome = gangplan("new", "job", "alone", "-C", team, *words)
    assert outcome.code == 0, outcome.err
    assert "placement: {apart: [bench]}" in outcome.out
