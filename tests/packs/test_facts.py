"""Facts for policies: from the cluster's file, teams, the catalog, scan reports and waivers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.resolve.facts import resolve_cluster_facts_for_policies
from gangplan.resolve.scans import Scan, read_image_scan_results
from gangplan.workspace import load_workspace
from tests.workspaces import CATALOG, CLUSTER, STOCK, TEAM, gangplan, write

DIGEST = "sha256:" + "ab" * 32
OPENMPI = "registry.example.com/training/openmpi"
CVE = "CVE-2026-1234"
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: image-digest
scope: {team: nlp, job: "film*", cluster: "l?b"}
reason: The build cannot be repeated before spring.
approver: platform@example.com
expires: 2027-01-31
"""


def of(root: Path, **files: str) -> dict[str, str]:
    """Return the facts of the small workspace, with files replaced."""
    workspace = load_workspace(write(root, {**STOCK, **files}))
    findings = workspace.findings
    assert not findings
    return resolve_cluster_facts_for_policies(workspace, "lab")


def test_nothing_is_assumed_about_a_cluster(tmp_path: Path) -> None:
    """Facts that the file does not state are empty, or the worse of both values."""
    found = of(tmp_path)
    empty = ("auditDays", "certifications", "encryptedClasses", "encryptedClaims", "fipsImages", "scans")
    assert {found[name] for name in empty} == {""}
    assert {found[name] for name in ("fips", "networkEncrypted", "logsRedacted", "internet")} == {"false"}
    assert found["approved-hipaa"] == found["waivers"] == found["ownPools"] == ""


def test_facts_come_from_the_cluster_file(tmp_path: Path) -> None:
    text = CLUSTER.replace(
        "location: on-prem",
        "location: on-prem\nfips: true\nretention: {audit: 400d}\n"
        "certifications: [sox, hipaa]\nregistries: [b.example.com, a.example.com]",
    )
    found = of(tmp_path, **{"overlays/lab/cluster.yaml": text})
    assert found["cluster"] == "lab"
    assert (found["region"], found["location"]) == ("eu-central", "on-prem")
    assert (found["fips"], found["auditDays"]) == ("true", "400")
    assert found["certifications"] == "hipaa,sox"
    assert found["registries"] == "a.example.com,b.example.com"
    assert found["egressRanges"] == "10.40.8.0/24"
    assert found["priorities"] == "training-low,training-normal,training-high"


def test_identities_of_google_open_the_metadata_server(tmp_path: Path) -> None:
    """The policies of runs with an identity open it: network-endpoints must know it as an endpoint."""
    text = CLUSTER.replace("location: on-prem", "location: cloud\nworkloadIdentity: {provider: gcp}")
    found = of(tmp_path, **{"overlays/lab/cluster.yaml": text})
    assert found["egressRanges"] == "10.40.8.0/24,169.254.169.252/32,169.254.169.254/32"
    aws = text.replace("provider: gcp", "provider: aws, egress: [s3]")
    assert of(tmp_path / "aws", **{"overlays/lab/cluster.yaml": aws})["egressRanges"] == "10.40.8.0/24"


@pytest.mark.parametrize(("trainer", "kueue", "kind"), [("2.3.0", "0.19.2", "TrainJob"), ("2.1.0", "0.15.2", "TrainingRuntime")])  # fmt: skip  # noqa: E501
def test_versions_decide_which_kind_has_the_deadline(
    tmp_path: Path, trainer: str, kueue: str, kind: str
) -> None:
    text = CLUSTER.replace("2.3.0", trainer).replace("0.19.2", kueue)
    assert of(tmp_path, **{"overlays/lab/cluster.yaml": text})["deadlineKind"] == kind


def test_own_pools_are_distinguished_from_rented_ones(tmp_path: Path) -> None:
    text = CLUSTER.replace("labels: {pool: spot}", "labels: {pool: spot}, location: cloud")
    assert of(tmp_path, **{"overlays/lab/cluster.yaml": text})["ownPools"] == "pool=a100"
    bare = text.replace(", labels: {pool: a100}", "")
    # No own pool can be distinguished from the rented one: nothing in a pod leads to it.
    assert of(tmp_path, **{"overlays/lab/cluster.yaml": bare})["ownPools"] == "none=none"


def test_facts_about_claims_come_from_the_team(tmp_path: Path) -> None:
    """A policy on pods knows claims by their own names, one on runs by those that specs use."""
    text = TEAM.replace(
        "filings: {accessModes",
        "filings: {encrypted: true, claimName: filings-v2, dataSize: 800Gi, retention: 365d, accessModes",
    )
    text = text.replace("bucket: radar,", "bucket: radar, retention: 90d,")
    found = of(tmp_path, **{"specs/nlp/team.yaml": text})
    assert found["encryptedClaims"] == "nlp/filings-v2"
    assert found["claimData"] == "nlp/filings-v2=800Gi"
    assert found["retainedData"] == "nlp/filings,nlp/radar"
    assert found["singleClaims"] == "nlp/notes"


def test_a_bucket_is_kept_as_long_as_the_claim_it_is_read_through(tmp_path: Path) -> None:
    """The bucket radar is read through lidar-files; lidar, by its keys alone, is another one."""
    text = TEAM.replace("lidar-files: {", "lidar-files: {retention: 365d, ")
    found = of(tmp_path, **{"specs/nlp/team.yaml": text})
    assert found["retainedData"] == "nlp/lidar-files,nlp/radar"


@pytest.mark.parametrize(
    ("storage", "compliance", "is_known"),
    [
        ("safe", "", True),
        ("open", "", False),
        ("open", "hipaa", True),
        ("open", "sox", False),
        ("", "", False),
    ],
)
def test_new_claims_are_encrypted_by_class_or_regime(
    tmp_path: Path, storage: str, compliance: str, is_known: bool
) -> None:
    """Their class decides; claims of a team under a regime are refused where they are created, and reported
    once."""
    chosen = f", storageClass: {storage}" if storage else ""
    team = TEAM.replace("ReadWriteMany]}", f"ReadWriteMany], size: 1Ti{chosen}}}", 1)
    classes = "storageClasses: {open: {accessModes: [ReadWriteMany], default: true}, safe: {accessModes: [ReadWriteMany], encrypted: true}}\n"  # noqa: E501
    files = {
        "specs/nlp/team.yaml": team + f"compliance: [{compliance}]\n",
        "overlays/lab/cluster.yaml": CLUSTER + classes,
    }
    assert (of(tmp_path, **files)["encryptedClaims"] == "nlp/filings") == is_known


def test_images_are_those_that_the_cluster_pulls(tmp_path: Path) -> None:
    text = CATALOG.replace("ffee\n    mpi", "ffee\n    fips: true\n    approved: [hipaa, sox]\n    mpi", 1)
    cluster = CLUSTER.replace(
        "location:", "mirrors: [{source: registry.example.com, mirror: mirror.example.eu/up}]\nlocation:"
    )
    found = of(tmp_path, **{"images/catalog.yaml": text, "overlays/lab/cluster.yaml": cluster})
    assert found["fipsImages"] == found["approved-hipaa"] == found["approved-sox"]
    assert re.fullmatch(
        r"mirror\.example\.eu/up/training/openmpi@sha256:1b0f[0-9a-f]{60}", found["fipsImages"]
    )
    assert found["approved-gdpr"] == ""
    assert len(found["catalogImages"].split(",")) == CATALOG.count("digest:")


def test_priorities_of_teams_are_facts(tmp_path: Path) -> None:
    text = CLUSTER.replace("nlp: {queue: training}", "nlp: {queue: training, priorities: [low]}")
    assert of(tmp_path, **{"overlays/lab/cluster.yaml": text})["teamPriorities"] == "nlp=training-low"


def test_a_waiver_of_a_rule_is_granted_to_equivalent_policies(tmp_path: Path) -> None:
    """Otherwise the guard waiver-granted would refuse rendered objects that are marked for network-anyone."""
    text = WAIVER.replace("image-digest", "network-open")
    found = of(tmp_path, **{"policies/waivers/films.yaml": text})["waivers"]
    assert [one.rpartition("/")[2] for one in found.split(",")] == ["network-anyone$"]


def test_waivers_become_regular_expressions(tmp_path: Path) -> None:
    found = of(tmp_path, **{"policies/waivers/films.yaml": WAIVER})["waivers"]
    assert re.match(found, "nlp/film-7/image-digest")
    assert not re.match(found, "nlp/radio/image-digest")
    assert not re.match(found, "nlp/film/x/image-digest")
    elsewhere = WAIVER.replace("l?b", "hall")
    assert of(tmp_path, **{"policies/waivers/films.yaml": elsewhere})["waivers"] == ""


def trivy(*severities: str, digest: str = DIGEST) -> dict[str, Any]:
    """Return a report in Trivy's form; a vulnerability that is in two packages counts once."""
    found = [{"VulnerabilityID": f"{CVE}{n}", "Severity": one} for n, one in enumerate(severities)]
    return {
        "SchemaVersion": 2,
        "ArtifactName": f"{OPENMPI}:1.0",
        "Metadata": {"RepoDigests": [f"{OPENMPI}@{digest}"]},
        "Results": [{"Vulnerabilities": found}, {"Target": "python", "Vulnerabilities": found[:1]}, {}],
    }  # fmt: skip


CLAIR = {
    "manifest_hash": DIGEST,
    "vulnerabilities": {
        "1": {"name": CVE, "normalized_severity": "Critical"},
        "2": {"name": f"{CVE}5", "normalized_severity": "High"},
        "3": {"name": CVE, "normalized_severity": "Critical"},
    },
}


@pytest.mark.parametrize(
    ("report", "critical", "high"),
    [
        (trivy("CRITICAL", "HIGH", "HIGH", "LOW"), 1, 2),
        (trivy(), 0, 0),
        ({"SchemaVersion": 2, "Metadata": trivy()["Metadata"]}, 0, 0),
        (CLAIR, 1, 1),
    ],
)
def test_vulnerabilities_in_reports_are_counted(
    tmp_path: Path, report: Any, critical: int, high: int
) -> None:
    write(tmp_path, {"images/scans/one.json": json.dumps(report)})
    assert read_image_scan_results(tmp_path) == (Scan(DIGEST, critical, high),)


def test_the_worst_report_of_an_image_counts(tmp_path: Path) -> None:
    reports = {"a": trivy("HIGH"), "b": trivy("CRITICAL"), "c": trivy()}
    write(tmp_path, {f"images/scans/{name}.json": json.dumps(one) for name, one in reports.items()})
    assert read_image_scan_results(tmp_path) == (Scan(DIGEST, 1, 0),)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"SchemaVersion": 2}', json.dumps({**CLAIR, "manifest_hash": ""})])  # fmt: skip  # noqa: E501
def test_an_unreadable_report_is_an_error(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {**STOCK, "images/scans/one.json": text})
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [("images/scans/one.json:1:1", "scan-unreadable")], outcome.err
    assert outcome.code == Exit.INPUT


@pytest.mark.parametrize(
    "report",
    [
        {**trivy(), "Metadata": OPENMPI},
        {**trivy(), "Metadata": {"RepoDigests": 3}},
        {**trivy(), "Results": {"Vulnerabilities": []}},
        {**trivy(), "Results": ["python"]},
        {**trivy(), "Results": [{"Vulnerabilities": {CVE: "CRITICAL"}}]},
        {**trivy(), "Results": [{"Vulnerabilities": [CVE]}]},
        {**CLAIR, "vulnerabilities": {"1": CVE}},
        {**CLAIR, "vulnerabilities": [CVE]},
        {**CLAIR, "vulnerabilities": None},
    ],
)
def test_a_report_of_another_form_is_not_evidence(tmp_path: Path, report: Any) -> None:
    root = write(tmp_path, {**STOCK, "images/scans/one.json": json.dumps(report)})
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [("images/scans/one.json:1:1", "scan-unreadable")], outcome.err
    assert outcome.code == Exit.INPUT


@pytest.mark.parametrize(("severity", "told"), [("CRITICAL", [("specs/nlp/filings.yaml:3:8", "image-scan")]), ("HIGH", [])])  # fmt: skip  # noqa: E501
def test_a_report_refuses_the_runs_of_its_image(tmp_path: Path, severity: str, told: list[Any]) -> None:
    digest = re.findall(r"sha256:1b0f[0-9a-f]{60}", CATALOG)[0]
    cluster = CLUSTER.replace("region:", "policies: {packs: [images]}\nregion:")
    files = {**STOCK, "overlays/lab/cluster.yaml": cluster}
    report = json.dumps(trivy(severity, digest=digest))
    outcome = gangplan("validate", "-C", write(tmp_path, {**files, "images/scans/one.json": report}))
    assert outcome.errors() == told, outcome.err
    assert not told or "has 1 critical and 0 high vulnerabilities, 0 critical are allowed" in outcome.err
