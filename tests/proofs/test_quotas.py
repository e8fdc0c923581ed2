"""ResourceQuotas that one run alone exceeds, and near misses: of a run with a launcher and two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces import begin, gangplan, write

HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
PATCH = HEAD + "- target: {{kind: ResourceQuota, name: {}}}\n  patch: |-\n    - {}\n"
PLACE = "overlays/lab/kustomization.yaml"
# A key, what one run needs of it, and a little less.
NEEDED = {
    "pods": ("3", "2", "this run alone has 3 pods"),
    "count~1pods": ("3", "2", "this run alone has 3 pods"),
    "count~1jobs.batch": ("2", "1", "this run alone has 2 Jobs"),
    "services": ("1", "0", "this run alone has 1 Service"),
    "count~1services": ("1", "0", "this run alone has 1 Service"),
    "limits.cpu": ("9", "8999m", "the limits of this run's pods are 9 CPU cores"),
    "limits.memory": ("18Gi", "17Gi", "the limits of this run's pods are 18 GiB of memory"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a new workspace: two workers of 4 cores and 8 GiB, and a launcher of 1 core and 2 GiB."""
    return begin(tmp_path / "w")


@pytest.mark.parametrize("key", NEEDED)
def test_a_quota_below_one_run_is_reported_at_the_patch(key: str, root: Path) -> None:
    enough, less, says = NEEDED[key]
    add = f"{{op: add, path: /spec/hard/{key}, value: "
    write(root, {PLACE: PATCH.format("training", f'{add}"{enough}"}}')})
    assert not gangplan("render", "-C", root).findings
    write(root, {PLACE: PATCH.format("training", f'{add}"{less}"}}')})
    outcome = gangplan("render", "-C", root)
    ((where, rule),) = outcome.errors()
    assert (where.startswith(f"{PLACE}:6:"), rule) == (True, "hard-quota-below-run")
    assert says in outcome.findings[0].message
    assert "or remove" in outcome.findings[0].help


def test_a_ban_on_priorities_without_its_scope_bans_every_pod(root: Path) -> None:
    write(root, {PLACE: PATCH.format("priorities", "{op: remove, path: /spec/scopeSelector}")})
    outcome = gangplan("render", "-C", root)
    assert [rule for _, rule in outcome.errors()] == ["hard-quota-below-run"]
    assert "scopeSelector" in outcome.findings[0].help
    write(root, {PLACE: PATCH.format("priorities", '{op: replace, path: /spec/hard/pods, value: "1"}')})
    assert [rule for _, rule in gangplan("render", "-C", root).errors()] == ["rights-too-wide"]


@pytest.mark.parametrize("amount", ["999", "1000", "5000m"])
def test_how_an_amount_is_written_hides_nothing_that_is_wrong_with_it(amount: str, root: Path) -> None:
    """1000 is stored as 1k, which is a warning of its own."""
    add = f'{{op: replace, path: /spec/hard/services.loadbalancers, value: "{amount}"}}'
    write(root, {PLACE: PATCH.format("training", add)})
    outcome = gangplan("render", "-C", root)
    assert [rule for _, rule in outcome.errors()] == ["rights-too-wide"]
    assert ("quantity-drift" in {one.rule for one in outcome.findings}) == (amount != "999")


@pytest.mark.parametrize(
    ("scope", "is_refused"),
    [
        ("scopes: [NotTerminating]", True),
        ("scopes: [NotBestEffort]", True),
        ("scopes: [NotTerminating, BestEffort]", False),
        ("scopes: [Terminating]", False),
        ("scopes: [BestEffort]", False),
        ("scopes: [PriorityClass]", False),
        ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", True),
        (
            "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [a]}]}",
            True,
        ),
        ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [a]}]}", False),
    ],
)
def test_a_quota_with_a_scope_counts_the_pods_in_it(scope: str, is_refused: bool, root: Path) -> None:
    """None of the run's pods has a priority class or a deadline of its own, and all have requests."""
    patch = f'{{op: replace, path: /spec, value: {{hard: {{pods: "0"}}, {scope}}}}}'
    write(root, {PLACE: PATCH.format("training", patch)})
    found = [rule for _, rule in gangplan("render", "-C", root).errors()]
    assert ("hard-quota-below-run" in found) is is_refused


def test_two_runs_under_one_small_quota_are_one_finding(root: Path) -> None:
    spec = (root / "specs/nlp/quickstart.yaml").read_text()
    add = '{op: add, path: /spec/hard/services, value: "0"}'
    write(root, {"specs/nlp/again.yaml": spec, PLACE: PATCH.format("training", add)})
    assert len(gangplan("validate", "-C", root).errors()) == 1
