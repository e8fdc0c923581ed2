"""PersistentVolumes that the platform states for a team: buckets, file systems, folders of NFS servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

CLUSTER, TEAM = "overlays/lab/cluster.yaml", "specs/nlp/team.yaml"
FILMS = "films: {bucket: example-films, prefix: 2026/q3, region: eu-central-1, mount: mountpoint-s3}"
SLIDES = "slides: {type: azure-blob, bucket: slides-2026, prefix: q3, mount: blob, readOnly: true}"
ROLE = 'identity: {aws: {role: "arn:aws:iam::123456789012:role/team-nlp"}}\n'
CLIENT = "identity: {azure: {clientId: 11111111-2222-3333-4444-555555555555}}\n"
FSX = "filings: {driver: fsx.csi.aws.com, handle: fs-1, attributes: {mountname: fsx}, size: 1Ti}"
NFS = "filings: {nfs: {server: nfs.example.com, path: /exports/filings}, size: 2Ti}"


def state(root: Path, volumes: str, connection: str = FILMS, cloud: str = "aws", more: str = "") -> None:
    """Write a cluster with these volumes of the team, and a team with one more connection."""
    identity = {"aws": ROLE, "azure": CLIENT, "": ""}[cloud]
    answers = f"workloadIdentity: {{provider: {cloud}}}\n" if cloud else ""
    queue = f"{{queue: training, persistentVolumes: {{{volumes}}}}}"
    cluster = workspaces.CLUSTER.replace("{queue: training}", queue).replace(
        "topology:", f"{answers}{more}topology:", 1
    )
    team = workspaces.TEAM.replace("connections:\n", f"{identity}connections:\n  {connection}\n")
    workspaces.write(root, {CLUSTER: cluster, TEAM: team})


def told(root: Path, lines: str = "") -> list[Any]:
    put(root, lines)
    return [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]


def made(root: Path, kind: str = "PersistentVolume") -> dict[str, Any]:
    """Render, and return the objects of a kind in the team's file, by name."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if path.endswith("tenant.yaml"))
    return {one["metadata"]["name"]: one for one in load_objects(text) if one["kind"] == kind}


def test_a_bucket_of_s3_is_mounted_by_volume_and_claim(root: Path) -> None:
    state(root, "films: {bucket: example-films, mountOptions: [uid=1000]}")
    assert told(root, "data: {films: /films}\n") == []
    volume = made(root)["gangplan-nlp.films"]["spec"]
    assert volume["csi"] == {
        "driver": "s3.csi.aws.com",
        "volumeHandle": "gangplan-nlp.films",
        "volumeAttributes": {"authenticationSource": "pod", "bucketName": "example-films"},
    }
    assert volume["mountOptions"] == [
        *("allow-other", "region eu-central-1", "prefix 2026/q3/", "allow-delete", "allow-overwrite"),
        "uid=1000",
    ]
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    claim = made(root, "PersistentVolumeClaim")["films"]
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == ("gangplan-nlp.films", "")
    assert volume["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": "films",
        "namespace": "nlp",
    }
    for pod in pods(root).values():
        mounted = [one for one in pod["volumes"] if "persistentVolumeClaim" in one]
        assert [one["persistentVolumeClaim"]["claimName"] for one in mounted] == ["films"]


def test_a_container_of_azure_is_mounted_by_volume_and_claim(root: Path) -> None:
    state(root, "slides: {bucket: slides-2026, account: exampleslides, size: 2Ti}", SLIDES, "azure")
    assert told(root, "data: {slides: /slides}\n") == []
    volume = made(root)["gangplan-nlp.slides"]["spec"]
    assert volume["csi"] == {
        "driver": "blob.csi.azure.com",
        "volumeHandle": "gangplan-nlp.slides",
        "volumeAttributes": {
            "clientID": "11111111-2222-3333-4444-555555555555",
            "containerName": "slides-2026",
            "protocol": "fuse2",
            "storageAccount": "exampleslides",
        },
    }
    assert volume["mountOptions"] == ["-o allow_other", "-o ro", "--subdirectory=q3/"]
    assert (volume["accessModes"], volume["capacity"]) == (["ReadOnlyMany"], {"storage": "2Ti"})
    found = [
        one for one in pods(root)["node"]["containers"][0]["volumeMounts"] if one["mountPath"] == "/slides"
    ]
    assert [one.get("readOnly") for one in found] == [True]


def test_a_volume_can_use_the_driver_s_credentials_and_a_secret(root: Path) -> None:
    entry = "slides: {bucket: slides-2026, account: a123, authentication: driver, secret: blob-key}"
    state(root, entry, SLIDES, "")
    assert told(root, "data: {slides: /slides}\n") == []
    volume = made(root)["gangplan-nlp.slides"]["spec"]["csi"]
    assert volume["nodeStageSecretRef"] == {"name": "blob-key", "namespace": "nlp"}
    assert "clientID" not in volume["volumeAttributes"]


@pytest.mark.parametrize("entry", [FSX, NFS])
def test_a_file_system_is_bound_to_a_claim(entry: str, root: Path) -> None:
    state(root, entry)
    workspaces.write(root, {TEAM: (root / TEAM).read_text().replace(f"  {FILMS}\n", "")})
    assert told(root, "data: {filings: /data}\n") == []
    volume = made(root)["gangplan-nlp.filings"]["spec"]
    assert volume["accessModes"] == ["ReadWriteMany"]
    if entry == NFS:
        assert volume["nfs"] == {"server": "nfs.example.com", "path": "/exports/filings"}
    else:
        assert volume["csi"]["volumeHandle"] == "fs-1"
    assert made(root, "PersistentVolumeClaim")["filings"]["spec"]["volumeName"] == "gangplan-nlp.filings"


def test_checkpoints_go_to_a_bucket(root: Path) -> None:
    state(root, "films: {bucket: example-films}")
    assert told(root, "checkpoint: {to: films, path: /ckpt}\n") == []
    box = pods(root)["node"]["containers"][0]
    assert {one["name"]: one.get("value") for one in box["env"]}["CHECKPOINT_DIR"] == "/ckpt/filings"
    state(root, "films: {bucket: example-films}", FILMS.replace("mount:", "readOnly: true, mount:"))
    assert [one.rule for one in told(root, "checkpoint: {to: films, path: /ckpt}\n")] == ["claim-read-only"]


# What the cluster file states, and words of the message.
NFS_AT = "{server: a, path: /b}"
HANDLED = "driver: a.b, handle: h, size: 1Gi"
FILMS_OF = "films: {bucket: example-films}"
WRONG = {
    "another bucket": ("films: {bucket: example-film}", "states bucket 'example-film', and"),
    "no bucket": ("films: {size: 1Gi}", "states no bucket, and"),
    "an account of S3": ("films: {bucket: example-films, account: a123}", "has no storage account"),
    "an NFS bucket": ("films: {bucket: example-films, nfs: {server: a, path: /b}}", "no NFS server exports"),
    "of nobody": (f"{FILMS_OF}, fils: {{driver: a.example.com, handle: h, size: 1Gi}}", "is neither a claim"),
    "a bucket in the environment": (f"{FILMS_OF}, lidar: {{bucket: lidar}}", "is neither a claim"),
    "no driver": (f"{FILMS_OF}, filings: {{size: 1Gi}}", "states neither driver nor nfs"),
    "two ways": (f"{FILMS_OF}, filings: {{driver: a.b, nfs: {NFS_AT}, size: 1Gi}}", "states both driver"),
    "no handle": (f"{FILMS_OF}, filings: {{driver: a.b, size: 1Gi}}", "states no handle"),
    "no size": (f"{FILMS_OF}, filings: {{driver: a.b, handle: h}}", "states no size"),
    "a claim with a bucket": (f"{FILMS_OF}, filings: {{{HANDLED}, bucket: abc}}", "takes no bucket"),
    "one handle twice": (
        f"{FILMS_OF}, filings: {{{HANDLED}}}, notes: {{{HANDLED}}}",
        "has the handle of nlp/filings",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_volumes_that_cannot_be_created_are_refused(name: str, root: Path) -> None:
    volumes, words = WRONG[name]
    state(root, volumes)
    (found,) = [one for one in told(root) if one.rule == "persistent-volume-wrong"]
    assert found.place.startswith(CLUSTER)
    assert words in found.message
    assert found.help


def test_handles_with_separators_of_blob_csi_are_refused(root: Path) -> None:
    state(root, "slides: {bucket: slides-2026, account: a123, handle: rg#a#b}", SLIDES, "azure")
    assert [one.rule for one in told(root)] == ["persistent-volume-wrong"]


@pytest.mark.parametrize(
    ("cloud", "authentication", "is_wrong"),
    [("", "pod", True), ("", "driver", False), ("azure", "pod", True), ("aws", "pod", False)],
)
def test_a_bucket_needs_credentials_that_can_open_it(
    cloud: str, authentication: str, is_wrong: bool, root: Path
) -> None:
    state(root, f"films: {{bucket: example-films, authentication: {authentication}}}", cloud=cloud)
    assert ("persistent-volume-wrong" in {one.rule for one in told(root)}) == is_wrong


def test_a_claim_with_a_storage_class_cannot_have_a_volume(root: Path) -> None:
    state(root, f"{FILMS_OF}, {FSX}", more="storageClasses: {fast: {accessModes: [ReadWriteMany]}}\n")
    text = (root / TEAM).read_text()
    sized = "filings: {accessModes: [ReadWriteMany], size: 1Ti, storageClass: fast}"
    workspaces.write(root, {TEAM: text.replace("filings: {accessModes: [ReadWriteMany]}", sized)})
    (found,) = [one for one in told(root) if one.rule == "persistent-volume-wrong"]
    assert "for which a storage class makes the volume" in found.message


@pytest.mark.parametrize(("most", "is_wrong"), [(2, False), (1, True)])
def test_claims_of_volumes_are_counted(most: int, is_wrong: bool, root: Path) -> None:
    state(root, f"{FILMS_OF}, {FSX}", more=f"limits: {{objects: {{claims: {most}}}}}\n")
    assert ("persistent-volume-wrong" in {one.rule for one in told(root)}) == is_wrong


def test_without_a_volume_the_connection_is_incomplete(root: Path) -> None:
    state(root, "", FILMS)
    assert [one.rule for one in told(root)] == ["connection-incomplete"]


def test_the_source_of_a_volume_is_immutable(root: Path) -> None:
    """`validate --base` compares with what is rendered at a revision (tests/validate/test_transition.py)."""
    from gangplan.model.kinds import FIXED_FIELDS_BY_KIND

    assert {("spec", "csi"), ("spec", "nfs")} <= {*FIXED_FIELDS_BY_KIND["PersistentVolume"]}
    assert ("spec", "volumeName") in FIXED_FIELDS_BY_KIND["PersistentVolumeClaim"]


def test_argo_cds_project_allows_volumes_by_name(root: Path) -> None:
    state(root, FILMS_OF)
    put(root, "")
    argo = ("gitops", "argocd", "-C", root, "--repo", "https://git.example.com/jobs.git", "-o", "-")
    assert gangplan("render", "-C", root).code == 0
    outcome = gangplan(*argo)
    assert outcome.code == 0, outcome.err
    projects = [one for one in load_objects(outcome.out) if one["kind"] == "AppProject"]
    listed = {"group": "", "kind": "PersistentVolume", "name": "gangplan-*"}
    assert [listed in one["spec"].get("clusterResourceWhitelist", ()) for one in projects] == [
        one["metadata"]["name"].endswith("-guardrails") for one in projects
    ]
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER, TEAM: workspaces.TEAM})
    assert gangplan("render", "-C", root).code == 0
    assert "PersistentVolume\n" not in gangplan(*argo).out


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("bucketName:", "connections.films.bucket"),
        ("region eu-central-1", "connections.films.region"),
        ("prefix 2026/q3/", "connections.films.prefix"),
        ("storage: 1Ti", "teams.nlp.persistentVolumes.filings.size"),
        ("volumeHandle: fs-1", "teams.nlp.persistentVolumes.filings.handle"),
        ("mountname:", "teams.nlp.persistentVolumes.filings.attributes.mountname"),
    ],
)
def test_why_leads_to_the_field(word: str, field: str, root: Path) -> None:
    state(root, f"{FILMS_OF}, {FSX}")
    assert made(root)
    (path,) = (one for one in rendered(root) if one.endswith("tenant.yaml"))
    line = next(n for n, one in enumerate(rendered(root)[path].decode().splitlines(), 1) if word in one)
    assert field in gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out


def test_why_leads_from_a_run_to_the_volume_of_its_claim(root: Path) -> None:
    state(root, FILMS_OF)
    put(root, "data: {films: /films}\n")
    assert pods(root)
    (path,) = (one for one in rendered(root) if is_run_file(one))
    lines = rendered(root)[path].decode().splitlines()
    line = next(n for n, one in enumerate(lines, 1) if "claimName: films" in one)
    out = gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out
    assert "teams.nlp.persistentVolumes.films" in out
    assert SPEC in out
