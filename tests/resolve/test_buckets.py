"""Buckets of a cloud, mounted as folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.resolve.test_identity import ACCOUNT, STS
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

TEAM, CLUSTER = "specs/nlp/team.yaml", "overlays/lab/cluster.yaml"
SCANS = "  scans: {type: gcs, bucket: example-scans, prefix: 2026/q3, mount: gcsfuse}\n"
GCS = "  gcs: [{cidr: 199.36.153.8/30, ports: [443]}]\n"


@pytest.fixture
def google(root: Path) -> Path:
    """Create the small workspace on a cluster of Google Cloud, whose team has an identity and a bucket."""
    declare(root, SCANS)
    return root


def declare(root: Path, connections: str, provider: str = "gcp") -> None:
    """Declare connections in addition to those of the small workspace."""
    team = workspaces.TEAM.replace("connections:\n", f"connections:\n{connections}")
    identity = f"identity: {{gcp: {{serviceAccount: {ACCOUNT}}}}}\n" if provider else ""
    cluster = workspaces.CLUSTER.replace("teams:\n", GCS + STS)
    cluster += f"workloadIdentity: {{provider: {provider}}}\n" if provider else ""
    workspaces.write(root, {TEAM: team + identity, CLUSTER: cluster})


def volume(pod: dict[str, Any], name: str = "bucket-scans") -> Any:
    return next((one for one in pod["volumes"] if one["name"] == name), None)


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_every_pod_has_the_folder(image: str, google: Path) -> None:
    put(google, "data: {scans: /scans}\n", image)
    for pod in pods(google).values():
        csi = volume(pod)["csi"]
        uid, gid = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
        options = f"implicit-dirs,uid={uid},gid={gid},only-dir=2026/q3"
        assert csi == {
            "driver": "gcsfuse.csi.storage.gke.io",
            "volumeAttributes": {"bucketName": "example-scans", "mountOptions": options},
        }
        assert {"name": "bucket-scans", "mountPath": "/scans"} in pod["containers"][0]["volumeMounts"]
    (text,) = (text.decode() for path, text in rendered(google).items() if is_run_file(path))
    assert 'gke-gcsfuse/volumes: "true"' in text
    assert "199.36.153.8/30" in text
    assert gangplan("validate", "-C", google).findings == []


def test_a_read_only_bucket_is_mounted_for_reading_only(google: Path) -> None:
    declare(google, SCANS.replace("gcsfuse}", "gcsfuse, readOnly: true}"))
    put(google, "data: {scans: /scans}\n")
    for pod in pods(google).values():
        assert volume(pod)["csi"]["readOnly"] is True
        (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["mountPath"] == "/scans")
        assert mount["readOnly"] is True


def test_checkpoints_can_be_in_a_bucket(google: Path) -> None:
    put(google, "checkpoint: {to: scans, path: /ckpt}\n")
    pod = pods(google)["node"]
    assert volume(pod) is not None
    env = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert env["CHECKPOINT_DIR"] == "/ckpt/filings"
    assert gangplan("validate", "-C", google).findings == []


def test_without_a_bucket_pods_have_no_trace_of_gcsfuse(google: Path) -> None:
    put(google, "")
    pods(google)
    assert all(b"gcsfuse" not in text for text in rendered(google).values())


# Connections, the cluster's cloud, a line of the spec, the only broken rule.
CASES = {
    "as it should be": (SCANS, "gcp", "data: {scans: /scans}\n", ""),
    "in no cloud": (SCANS, "", "data: {scans: /scans}\n", "bucket-without-identity"),
    "in another cloud": (SCANS, "aws", "data: {scans: /scans}\n", "bucket-without-identity"),
    "declared and not used": (SCANS, "", "", ""),
    "in the environment": (SCANS, "gcp", "data: {scans: env}\n", "connection-not-addressed"),
    "over programs": (SCANS, "gcp", "data: {scans: /usr}\n", "mount-hides"),
    "another driver": (SCANS.replace("gcsfuse", "blob"), "gcp", "", "connection-incomplete"),
    "no driver": (SCANS.replace(", mount: gcsfuse", ""), "gcp", "", "connection-incomplete"),
    "Mountpoint without a claim": (
        "  logs: {bucket: example-logs, mount: mountpoint-s3}\n",
        *("gcp", "", "connection-incomplete"),
    ),
    "Mountpoint with a claim": (
        "  logs: {bucket: example-logs, mount: mountpoint-s3, claim: lidar-files}\n",
        *("gcp", "data: {logs: /logs}\n", ""),
    ),
    "Azure with a claim": (
        "  logs: {type: azure-blob, bucket: example-logs, mount: blob, claim: lidar-files}\n",
        *("gcp", "data: {logs: /logs}\n", ""),
    ),
    "S3 without keys": (
        '  logs: {endpoint: "https://s3.example.com", bucket: logs}\n',
        "gcp",
        "",
        "connection-incomplete",
    ),
    "S3 without an address": (
        "  logs: {bucket: logs, secret: lidar-s3}\n",
        "gcp",
        "",
        "connection-incomplete",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_bucket_breaks_one_rule(name: str, root: Path) -> None:
    connections, provider, line, rule = CASES[name]
    declare(root, connections, provider)
    put(root, line)
    ignored = ("identity-unused", "identity-unreachable")
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule not in ignored]
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert all(one.help and one.place.startswith((SPEC, TEAM)) for one in found)


def test_why_leads_to_the_connection(google: Path) -> None:
    put(google, "data: {scans: /scans}\n")
    pods(google)
    ((path, text),) = ((path, text) for path, text in rendered(google).items() if is_run_file(path))
    lines = text.decode().splitlines()
    for words, field in (
        ("bucketName:", "connections.scans.bucket"),
        ("only-dir=", "connections.scans.prefix"),
        ("gke-gcsfuse/volumes", "connections.scans.mount"),
        ("mountPath: /scans", "data.scans"),
    ):
        line = next(number for number, one in enumerate(lines, 1) if words in one)
        out = gangplan("why", "-C", google, f"rendered/{path.removeprefix('rendered/')}:{line}").out
        assert field in out, words


def test_another_bucket_is_another_run(google: Path) -> None:
    names = set()
    for bucket in ("example-scans", "other-scans"):
        declare(google, SCANS.replace("example-scans", bucket))
        put(google, "data: {scans: /scans}\n")
        pods(google)
        names |= {path for path in rendered(google) if is_run_file(path)}
    assert len(names) == 2
