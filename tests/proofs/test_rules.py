"""The cause of a finding is found by repeating one proof in worlds with one object changed back.

Each rule is reported by one proof, so no other is repeated; what a proof does not read is not changed back.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gangplan
from benchmarks.workspace import write_workspace
from gangplan.validate.proofs import PROOFS, may_read
from tests.proofs.pool import Judged, changed, judged, outcome

VALIDATE = Path(gangplan.__file__).parent / "validate"
# Proof -> the modules that make its problems.
PLACES = {
    "admission": ("kueue/proof.py", "kueue/elsewhere.py"),
    "claims": ("shared_claims.py",),
    "contention": ("kueue/contention.py",),
    "fit": ("scheduler",),
    "launching": ("trainer/launching.py",),
    "dispatch": ("dispatch.py",),
    "meshes": ("meshes.py",),
    "network": ("network",),
    "plan": ("promise",),
    "pod security": ("podsecurity.py",),
    "quotas": ("quotas.py",),
}


def rules_of(place: Path) -> set[str]:
    """Return the rules that a module, or the modules of a folder, import."""
    files = place.rglob("*.py") if place.is_dir() else [place]
    return {
        name.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gangplan.rules.")
        for name in node.names
        if name.name.isupper() and name.name != "NOTE"
    }


def test_no_two_proofs_report_the_same_rule() -> None:
    assert PLACES.keys() == PROOFS.keys()
    found = {
        name: {rule for place in places for rule in rules_of(VALIDATE / place)}
        for name, places in PLACES.items()
    }
    assert all(found.values())
    assert [pair for pair in combinations(found, 2) if found[pair[0]] & found[pair[1]]] == []


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    root = tmp_path_factory.mktemp("pool") / "workspace"
    write_workspace(root, 6, 1, 3, 3)
    return judged(root)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_change_of_an_object_that_a_proof_does_not_read_has_no_effect(
    pool: list[Judged], data: st.DataObject
) -> None:
    world, run = data.draw(st.sampled_from(pool))
    name = data.draw(st.sampled_from(sorted(PROOFS)))
    home = run.unit.job.namespace
    unread = [at for at, body in enumerate(world.standing) if not may_read(name, body, home)]
    at = data.draw(st.sampled_from(unread))
    body = data.draw(changed(world.standing[at]))
    other = replace(world, standing=(*world.standing[:at], body, *world.standing[at + 1 :]))
    found = outcome(lambda: list(PROOFS[name](other, run)))
    assert isinstance(found, type) or found == list(PROOFS[name](world, run))  # or it is not a valid object


def test_proofs_read_only_queues_of_other_teams(pool: list[Judged]) -> None:
    """Otherwise the cause of a finding in a patch of every team would cost a proof for each team."""
    for world, run in pool:
        home = run.unit.job.namespace
        for name in {*PROOFS} - {"network"}:
            others = [
                body["kind"]
                for body in world.standing
                if body["metadata"].get("namespace", home) == home
                and may_read(name, body, home)
                and body["metadata"]["name"].startswith("team-")
                and body["metadata"]["name"] != home
            ]
            assert {*others} <= {"ClusterQueue"}
