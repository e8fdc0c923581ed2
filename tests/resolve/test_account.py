"""Service accounts of a team's own, where the platform allows them."""

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
    """Account and whether its token is mounted, of all pods of the run."""
    return {(pod["serviceAccountName"], pod["automountServiceAccountToken"]) for pod in pods(root).values()}


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_the_account_of_all_pods(image: str, root: Path) -> None:
    state(root, LISTED)
    for line, expected in (
        ("", ("training", False)),
        ("serviceAccount: training\n", ("training", False)),
        ("serviceAccount: reader\n", ("reader", False)),
        ("serviceAccount: sweeps\n", ("sweeps", True)),
    ):
        put(root, line, image)
        assert used(root) == {expected}


def test_gangplan_does_not_make_it(root: Path) -> None:
    state(root, LISTED)
    put(root, "serviceAccount: reader\n")
    assert [one["metadata"]["name"] for one in objects(root, "ServiceAccount")] == ["training"]
    assert gangplan("validate", "-C", root).findings == []


# What the cluster lists for the team, a line of the spec, the only rule that is broken.
CASES = {
    "as it should be": (LISTED, "serviceAccount: reader\n", ""),
    "with a token": (LISTED, "serviceAccount: sweeps\n", "token-mounted"),
    "another name": (LISTED, "serviceAccount: sweep\n", "service-account-unknown"),
    "none listed": ("weight: 1", "serviceAccount: sweeps\n", "service-account-unknown"),
    "the default of the namespace": (LISTED, "serviceAccount: default\n", "service-account-unknown"),
    "a token that nobody uses": (LISTED, "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong(name: str, root: Path) -> None:
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
def test_the_platform_says_why(account: str, root: Path) -> None:
    state(root, f"serviceAccounts: {{{account}}}")
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    assert all(one.place.startswith(CLUSTER) for one in outcome.findings)


def test_a_new_job_from_flags(root: Path) -> None:
    state(root, LISTED)
    words = ("--image", "openmpi", "--command", "python train.py", "--service-account", "reader", "-n")
    outcome = gangplan("new", "job", "reading", "-C", root, *words)
    assert outcome.code == 0, outcome.err
    assert "serviceAccount: reader" in outcome.out


def test_without_it_runs_keep_their_names(root: Path) -> None:
    before = {one["metadata"]["name"] for one in objects(root, "TrainJob")}
    state(root, LISTED)
    assert {one["metadata"]["name"] for one in objects(root, "TrainJob")} == before
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER})
