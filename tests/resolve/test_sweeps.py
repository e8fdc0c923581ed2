"""Queues of sweeps next to those of teams: guarantees stay the same, and no team gets more than before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.kueue.tree import QuotaTree
from gangplan.model.quantity import ZERO
from gangplan.model.site import Site, SiteCohort, SiteQueue
from gangplan.resolve import resolve_site
from gangplan.resolve.tree import _build_site_quota_tree_member, resolve_queue_maximum_by_flavor
from gangplan.workspace import load_workspace
from tests.sweeps.files import FILE, SWEEP, workspace
from tests.workspaces import CLUSTER, gangplan, render, write

VISION = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
SHARES = "quota: {a100: {gpus: 12}, cpu: {cpu: 60}}"
TEAMS = {
    "all": ("", ""),
    "a quota": (SHARES, ""),
    "limits": (f"{SHARES}, borrow: {{a100: {{gpus: 4}}}}, lend: {{a100: {{gpus: 6}}}}", ""),
    "no borrowing": (f"{SHARES}, borrow: {{}}", ""),
    "no lending": (f"{SHARES}, lend: {{}}, weight: 3", ""),
    "cohorts": (f"{SHARES}, cohort: left", "cohorts:\n  top: {}\n  left: {parent: top}\n"),
}


def site_of(root: Path, team: str, more: str, has_sweep: bool) -> Site:
    """Return the site of two teams, the first with or without a sweep."""
    others = ", quota: {a100: {gpus: 8}, cpu: {cpu: 60}}" + (", cohort: top" if more else "")
    entries = f"nlp: {{queue: training{', ' if team else ''}{team}}}\n  vision: {{queue: training{others}}}"
    cluster = more + CLUSTER.replace("nlp: {queue: training}", entries)
    files = {"overlays/lab/cluster.yaml": cluster, "specs/vision/team.yaml": VISION}
    workspace(root, SWEEP, **files)
    if not has_sweep:
        (root / FILE).unlink()
    return resolve_site(load_workspace(root), "lab")


def nominal(one: SiteQueue | SiteCohort) -> dict[tuple[str, str], int]:
    """Return the nominal quota of each flavor and resource, without pods."""
    return {
        (quota.flavor, amount.resource): amount.nominal.nano
        for quota in one.quotas
        for amount in quota.amounts
        if amount.nominal != ZERO and amount.resource != "pods"
    }


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_with_a_sweep_has_the_quota_of_the_team_alone(name: str, tmp_path: Path) -> None:
    team, more = TEAMS[name]
    plain = site_of(tmp_path / "plain", team, more, has_sweep=False)
    swept = site_of(tmp_path / "swept", team, more, has_sweep=True)
    assert not plain.sweeps
    (sweep,) = swept.sweeps
    # Guarantees stay the same: the sweep and the team's cohort have none.
    assert nominal(sweep) == {}
    assert {one.name: nominal(one) for one in swept.queues} == {
        one.name: nominal(one) for one in plain.queues
    }
    assert not any(nominal(one) for one in swept.cohorts if one.name == "nlp.team")
    # Each team can get as much as before.
    assert resolve_queue_maximum_by_flavor(swept) == resolve_queue_maximum_by_flavor(plain)
    # The sweep alone gets no more than its team, and neither do both together, as their cohort limits them.
    members = [_build_site_quota_tree_member(one, one.cohort) for one in (*swept.queues, *swept.sweeps)]
    tree = QuotaTree(members, [_build_site_quota_tree_member(one, one.parent) for one in swept.cohorts])
    for key in nominal(next(one for one in swept.queues if one.team == "nlp")):
        if key[0] in {quota.flavor for quota in sweep.quotas}:
            assert tree.most(sweep.name, key) == tree.most("nlp", key)
            above = tree.parent[tree.numbers[sweep.name]]
            assert tree.potential[above][tree.index[key]] == tree.most("nlp", key)


def test_usage_of_trials_counts_for_their_team(tmp_path: Path) -> None:
    """`cluster quota --usage` adds the queues of sweeps to that of their team."""
    render(workspace(tmp_path))
    used = [
        {
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "status": {
                "flavorsUsage": [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": gpus}]}]
            },
        }
        for name, gpus in (("nlp", "3"), ("nlp.sweep-rates", "4"))
    ]
    write(tmp_path, {"usage.json": json.dumps({"kind": "List", "items": used})})
    outcome = gangplan("cluster", "quota", "-C", tmp_path, "--usage", tmp_path / "usage.json")
    assert outcome.code == 0, outcome.err
    (row,) = [line for line in outcome.out.splitlines() if "nlp" in line and "a100 " in line]
    assert "7" in row.split()
