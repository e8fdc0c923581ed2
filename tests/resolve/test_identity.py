"""The identity of pods in a cloud: service account, labels, sessions of ranks, opened policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_queues import CLUSTER, objects
from tests.resolve.test_workdir import pods, put
from tests.workspaces import gangplan, rendered

TEAM = "specs/nlp/team.yaml"
ROLE = "arn:aws:iam::123456789012:role/team-nlp"
ACCOUNT = "team-nlp@example-project.iam.gserviceaccount.com"
CLIENT, TENANT = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"
AWS = f'aws: {{role: "{ROLE}"}}'
GCP = f"gcp: {{serviceAccount: {ACCOUNT}}}"
AZURE = f"azure: {{clientId: {CLIENT}, tenantId: {TENANT}}}"
STS = "  sts: [{cidr: 10.60.0.0/24, ports: [443]}]\nteams:\n"


def cloud(
    root: Path, provider: str, identity: str, more: str = ", egress: [sts]", of_cluster: str = ""
) -> None:
    """Create a cluster of a cloud, and a team with an identity."""
    text = workspaces.CLUSTER.replace("teams:\n", STS)
    if provider:
        text += f"workloadIdentity: {{provider: {provider}{more}}}\n"
    if of_cluster:
        text = text.replace("nlp: {queue: training", f"nlp: {{queue: training, identity: {{{of_cluster}}}")
    team = workspaces.TEAM + (f"identity: {{{identity}}}\n" if identity else "")
    workspaces.write(root, {CLUSTER: text, TEAM: team})


def account(root: Path) -> dict[str, str]:
    """Return the cloud's annotations of the team's service account."""
    (found,) = objects(root, "ServiceAccount")
    assert found["automountServiceAccountToken"] is False
    clouds = ("eks.", "iam.gke.io", "azure.")
    return {key: value for key, value in found["metadata"]["annotations"].items() if key.startswith(clouds)}


CLOUDS = {
    "aws": (AWS, {"eks.amazonaws.com/role-arn": ROLE}),
    "gcp": (GCP, {"iam.gke.io/gcp-service-account": ACCOUNT}),
    "azure": (
        AZURE,
        {"azure.workload.identity/client-id": CLIENT, "azure.workload.identity/tenant-id": TENANT},
    ),
}


@pytest.mark.parametrize("provider", CLOUDS)
def test_the_account_has_the_annotations_of_its_cloud(provider: str, root: Path) -> None:
    identity, annotations = CLOUDS[provider]
    cloud(root, provider, identity)
    assert account(root) == annotations
    assert gangplan("validate", "-C", root).findings == []


def test_a_cluster_uses_the_identity_of_its_own_cloud(root: Path) -> None:
    cloud(root, "gcp", f"{AWS}, {GCP}")
    assert list(account(root)) == ["iam.gke.io/gcp-service-account"]
    cloud(root, "", f"{AWS}, {GCP}")
    assert account(root) == {}


def test_the_cluster_overrides_the_team(root: Path) -> None:
    other = "arn:aws:iam::999999999999:role/other"
    cloud(root, "aws", AWS, of_cluster=f'aws: {{role: "{other}"}}')
    assert account(root) == {"eks.amazonaws.com/role-arn": other}


@pytest.mark.parametrize(("provider", "labels"), [("aws", 0), ("gcp", 0), ("azure", 1)])
def test_pods_have_the_label_that_the_webhook_needs(provider: str, labels: int, root: Path) -> None:
    cloud(root, provider, CLOUDS[provider][0])
    (runtime,) = objects(root, "TrainingRuntime")
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]
        assert pod["spec"]["automountServiceAccountToken"] is False
        found = [key for key in pod["metadata"]["labels"] if key.startswith("azure.")]
        assert found == ["azure.workload.identity/use"] * labels


def opened(root: Path) -> set[tuple[str, tuple[int, ...]]]:
    """Return the addresses and ports that the run's policy opens."""
    policies = [
        one for one in objects(root, "NetworkPolicy") if one["metadata"]["name"].startswith("filings")
    ]
    return {
        (peer["ipBlock"]["cidr"], tuple(port["port"] for port in rule["ports"]))
        for policy in policies
        for rule in policy["spec"].get("egress") or ()
        for peer in rule["to"]
        if "ipBlock" in peer
    }


STS_OPEN = ("10.60.0.0/24", (443,))
METADATA = {("169.254.169.252/32", (987, 988)), ("169.254.169.254/32", (80, 8080))}


def test_runs_reach_the_service_that_exchanges_tokens(root: Path) -> None:
    cloud(root, "aws", AWS)
    assert opened(root) == {STS_OPEN}
    cloud(root, "gcp", GCP)
    assert opened(root) == {STS_OPEN, *METADATA}
    cloud(root, "gcp", AWS, of_cluster="")
    assert opened(root) == set()  # the identity is of another cloud


@pytest.mark.parametrize("posture", ["restricted", "isolated"])
def test_identities_work_in_every_posture(posture: str, root: Path) -> None:
    put(root, f"network: {{posture: {posture}}}\n")
    cloud(root, "gcp", GCP)
    assert opened(root) == {STS_OPEN, *METADATA}
    assert gangplan("validate", "-C", root).findings == []


def test_ranks_get_the_variables_that_the_webhook_adds_to_their_pod(root: Path) -> None:
    """An SSH session has no variables of the container, so those that exist are passed on."""
    cloud(root, "aws", AWS)
    worker = pods(root)["node"]["containers"][0]
    (given,) = [word for word in worker["command"] if word.startswith("--given=")]
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in given.split("=")[1].split()
    assert any("ForceCommand" in one for one in worker["args"])
    cloud(root, "gcp", GCP)
    assert not any("ForceCommand" in one for one in pods(root)["node"]["containers"][0]["args"])


@pytest.mark.parametrize("image", ["pytorch"])
def test_without_ssh_no_variable_is_passed_on(image: str, root: Path) -> None:
    put(root, "", image)
    cloud(root, "aws", AWS)
    assert "AWS_" not in str(pods(root)["node"]["containers"][0]["command"])


# Provider, the team's identity, the cluster file's for the team, endpoints, the only broken rule.
CASES: dict[str, tuple[str, str, str, str, str]] = {
    "as it should be": ("aws", AWS, "", ", egress: [sts]", ""),
    "nowhere to exchange tokens": ("aws", AWS, "", "", "identity-unreachable"),
    "the metadata server needs none": ("gcp", GCP, "", "", ""),
    "an endpoint that nobody offers": ("gcp", GCP, "", ", egress: [stss]", "identity-unreachable"),
    "another cloud": ("aws", GCP, "", ", egress: [sts]", "identity-unused"),
    "no cloud": ("", AWS, "", "", "identity-unused"),
    "another cloud in the cluster's file": ("aws", "", GCP, ", egress: [sts]", "identity-unused"),
    "two clouds, one of them here": ("aws", f"{AWS}, {GCP}", "", ", egress: [sts]", "identity-unused"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_identity_breaks_one_rule(name: str, root: Path) -> None:
    provider, identity, of_cluster, more, rule = CASES[name]
    cloud(root, provider, identity, more, of_cluster)
    found = gangplan("validate", "-C", root).findings
    assert {one.rule for one in found if one.rule != "egress-unknown"} == ({rule} if rule else set())
    assert all(one.help for one in found)


@pytest.mark.parametrize(
    "identity",
    [
        "aws: {role: team-nlp}",
        "aws: {role: 'arn:aws:iam::12:role/x'}",
        "gcp: {serviceAccount: a@b.com}",
        "azure: {clientId: me}",
        "oci: {user: me}",
        "aws: {}",
    ],
)
def test_invalid_identities_are_refused(identity: str, root: Path) -> None:
    cloud(root, "aws", identity)
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    assert all(one.place.startswith(TEAM) and one.help for one in outcome.findings)


def test_the_plan_shows_the_identity_that_the_cloud_must_trust(root: Path) -> None:
    cloud(root, "aws", AWS)
    out = gangplan("plan", "-C", root).out
    assert f"  identity  {ROLE} of aws, as system:serviceaccount:nlp:training\n" in out


def test_why_leads_to_the_identity(root: Path) -> None:
    cloud(root, "azure", AZURE)
    gangplan("render", "-C", root)
    for path, text in rendered(root).items():
        for number, line in enumerate(text.decode().splitlines(), 1):
            if "azure.workload.identity/" in line:
                out = gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{number}").out
                assert "identity.azure" in out


def test_another_account_is_not_the_teams_identity(root: Path) -> None:
    """The cloud knows an account by its annotations, and gangplan creates only its own account."""
    cloud(root, "azure", AZURE)
    cluster = (
        (root / CLUSTER)
        .read_text()
        .replace(
            "nlp: {queue: training",
            "nlp: {queue: training, serviceAccounts: {sweeps: {reason: The sweep controller reads runs}}",
        )
    )
    workspaces.write(root, {CLUSTER: cluster})
    label = "azure.workload.identity/use"
    for line, expected in (
        ("", True),
        ("serviceAccount: training\n", True),
        ("serviceAccount: sweeps\n", False),
    ):
        put(root, line)
        text = "".join(rendered_runs(root).values())
        assert (label in text) is expected
        assert ("10.60.0.0/24" in text) is expected
        assert ("identity " in gangplan("plan", "-C", root).out) is expected


def test_a_bucket_is_closed_to_another_account(root: Path) -> None:
    cloud(root, "gcp", GCP, more="")
    cluster = (
        (root / CLUSTER)
        .read_text()
        .replace(
            "nlp: {queue: training",
            "nlp: {queue: training, serviceAccounts: {sweeps: {reason: The sweep controller reads runs}}",
        )
        .replace("egress:\n", "egress:\n  gcs: [{cidr: 199.36.153.8/30, ports: [443]}]\n")
    )
    team = (
        (root / TEAM)
        .read_text()
        .replace(
            "connections:\n", "connections:\n  scans: {type: gcs, bucket: example-scans, mount: gcsfuse}\n"
        )
    )
    workspaces.write(root, {CLUSTER: cluster, TEAM: team})
    put(root, "data: {scans: /scans}\n")
    assert gangplan("validate", "-C", root).findings == []
    put(root, "data: {scans: /scans}\nserviceAccount: sweeps\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, "not to 'sweeps'" in found.message) == ("bucket-without-identity", True)


def rendered_runs(root: Path) -> dict[str, str]:
    """Render, and return the files of the runs, by path."""
    assert gangplan("render", "-C", root).code == 0
    return {path: text.decode() for path, text in rendered(root).items() if is_run_file(path)}


def test_without_identity_nothing_changes(root: Path) -> None:
    before = load(root)
    cloud(root, "aws", "", "")
    text = (root / CLUSTER).read_text().replace("  sts: [{cidr: 10.60.0.0/24, ports: [443]}]\n", "")
    workspaces.write(root, {CLUSTER: text})
    assert load(root) == before


def load(root: Path) -> list[Any]:
    """Return all rendered objects."""
    assert gangplan("render", "-C", root).code == 0
    return [body for text in rendered(root).values() for body in load_objects(text)]
