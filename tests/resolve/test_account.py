"""A team's own service accounts, where the platform allows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.resolve.test_queues import CLUSTER, objects, state
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan

LISTED = (
    "serviceAccounts: {sweeps: {token: true, reason: It starts runs of its own},"
    " reader: {reason: Its image pulls need it}}"
)


def used(root: Path) -> set[tuple[str, bool]]:
    """Return the account of each pod of the run, and whether its token is mounted."""
    return {(pod["serviceAccountName"], pod["automountServiceAccountToken"]) for pod in pods(root).values()}


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_all_pods_have_the_account_of_the_spec(image: str, root: Path) -> None:
    state(root, LISTED)
    for line, expected in (
        ("", ("training", False)),
        ("serviceAccount: training\n", ("training", False)),
        ("serviceAccount: reader\n", ("reader", False)),
        ("serviceAccount: sweeps\n", ("sweeps", True)),
    ):
        put(root, line, image)
        assert used(root) == {expected}


def test_gangplan_does_not_create_the_account(root: Path) -> None:
    state(root, LISTED)
    put(root, "serviceAccount: reader\n")
    assert [one["metadata"]["name"] for one in objects(root, "ServiceAccount")] == ["training"]
    assert gangplan("validate", "-C", root).findings == []


# The cluster's list for the team, a line of the spec, the only broken rule.
CASES = {
    "as it should be": (LISTED, "serviceAccount: reader\n", ""),
    "with a token": (LISTED, "serviceAccount: sweeps\n", "token-mounted"),
    "another name": (LISTED, "serviceAccount: sweep\n", "service-account-unknown"),
    "none listed": ("weight: 1", "serviceAccount: sweeps\n", "service-account-unknown"),
    "the default of the namespace": (LISTED, "serviceAccount: default\n", "service-account-unknown"),
    "a token that nobody uses": (LISTED, "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_account_breaks_one_rule(name: str, root: Path) -> None:
    fields, line, rule = CASES[name]
    state(root, fields)
    put(root, line)
    found = gangplan("validate", "-C", root).findings
    assert [(one.rule, one.place) for one in found] == ([(rule, f"{SPEC}:9:17")] if rule else [])
    assert all(one.help for one in found)


def test_the_pack_restricted_refuses_tokens(root: Path) -> None:
    state(root, LISTED, "policies: {packs: [restricted]}\n")
    put(root, "serviceAccount: sweeps\n")
    assert "service-token" in {one.rule for one in gangplan("validate", "-C", root).findings}
    put(root, "serviceAccount: reader\n")
    assert "service-token" not in {one.rule for one in gangplan("validate", "-C", root).findings}


@pytest.mark.parametrize("account", ["sweeps: {token: true}", "sweeps: {reason: why}", "sweeps: true"])
def test_an_account_with_a_token_needs_a_reason(account: str, root: Path) -> None:
    state(root, f"serviceAccounts: {{{account}}}")
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    assert all(one.place.startswith(CLUSTER) for one in outcome.findings)


def test_a_new_job_takes_the_account_from_its_flag(root: Path) -> None:
    state(root, LISTED)
    words = ("--image", "openmpi", "--command", "python train.py", "--service-account", "reader", "-n")
    outcome = gangplan("new", "job", "reading", "-C", root, *words)
    assert outcome.code == 0, outcome.err
    assert "serviceAccount: reader" in outcome.out


def test_without_an_account_runs_keep_their_names(root: Path) -> None:
    before = {one["metadata"]["name"] for one in objects(root, "TrainJob")}
    state(root, LISTED)
    assert {one["metadata"]["name"] for one in objects(root, "TrainJob")} == before
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER})
