"""Volumes of each single pod: of CSI drivers inside pods, and of storage classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

CLUSTER = "overlays/lab/cluster.yaml"
OFFERED = """\
storageClasses:
  fast: {accessModes: [ReadWriteOnce, ReadWriteOncePod], encrypted: true, default: true}
  slow: {accessModes: [ReadWriteMany]}
volumes:
  vault: {driver: secrets-store.csi.k8s.io, attributes: {secretProviderClass: nlp-vault}, readOnly: true, podSecurity: restricted}
  certs: {driver: csi.cert-manager.io, attributes: {csi.cert-manager.io/issuer-name: ca}, settable: [csi.cert-manager.io/dns-names], fsType: tmpfs, secret: issuer}
  plain: {driver: plain.example.com, teams: [nlp]}
  work: {storageClass: fast, size: 100Gi, most: 1Ti}
  once: {storageClass: fast, accessMode: ReadWriteOncePod}
  open: {storageClass: slow, accessMode: ReadWriteMany, size: 1Gi}
"""  # noqa: E501  one line per volume
DNS = "certs: {path: /tls, attributes: {csi.cert-manager.io/dns-names: trainer.example.com}}"


def offer(root: Path, text: str = OFFERED, *changes: tuple[str, str]) -> None:
    """Write a cluster with these volumes."""
    whole = workspaces.CLUSTER.replace("topology:", f"{text}topology:", 1)
    for old, new in changes:
        assert old in whole, old
        whole = whole.replace(old, new)
    workspaces.write(root, {CLUSTER: whole})
    if "cv: {" in whole:
        workspaces.write(root, {"specs/cv/team.yaml": workspaces.TEAM.split("clusters:")[0]})


def told(root: Path, volumes: str, image: str = "openmpi", more: str = "") -> list[Any]:
    put(root, f"volumes: {{{volumes}}}\n{more}", image)
    return [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]


def seen(pod: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Return the volume and its mount in a pod."""
    volume = next((one for one in pod["volumes"] if one["name"] == name), None)
    mount = next((one for one in pod["containers"][0]["volumeMounts"] if one["name"] == name), None)
    return volume, mount


def test_an_inline_volume_is_as_the_platform_states_it(root: Path) -> None:
    offer(root)
    assert told(root, "vault: /mnt/secrets") == []
    found = pods(root)
    volume = {
        "name": "volume-vault",
        "csi": {
            "driver": "secrets-store.csi.k8s.io",
            "readOnly": True,
            "volumeAttributes": {"secretProviderClass": "nlp-vault"},
        },
    }
    mount = {"name": "volume-vault", "mountPath": "/mnt/secrets", "readOnly": True}
    assert seen(found["node"], "volume-vault") == (volume, mount)
    assert seen(found["launcher"], "volume-vault") == (None, None)


def test_a_spec_may_set_only_settable_attributes(root: Path) -> None:
    offer(root)
    assert told(root, DNS) == []
    volume, mount = seen(pods(root)["node"], "volume-certs")
    assert volume["csi"] == {
        "driver": "csi.cert-manager.io",
        "fsType": "tmpfs",
        "nodePublishSecretRef": {"name": "issuer"},
        "volumeAttributes": {
            "csi.cert-manager.io/dns-names": "trainer.example.com",
            "csi.cert-manager.io/issuer-name": "ca",
        },
    }
    assert mount == {"name": "volume-certs", "mountPath": "/tls"}


def test_a_driver_may_have_no_attributes(root: Path) -> None:
    offer(root)
    assert told(root, "plain: /plain") == []
    assert seen(pods(root)["node"], "volume-plain")[0]["csi"] == {"driver": "plain.example.com"}


def test_a_volume_of_a_storage_class_gets_a_claim_for_each_pod(root: Path) -> None:
    offer(root)
    assert told(root, "work: {path: /work, size: 500Gi}") == []
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "500Gi"}},
    }
    volume = {"name": "volume-work", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    assert seen(pods(root)["node"], "volume-work") == (volume, {"name": "volume-work", "mountPath": "/work"})


@pytest.mark.parametrize("image", ["pytorch", "openmpi"])
def test_every_pod_that_runs_ranks_has_the_volume(image: str, root: Path) -> None:
    offer(root)
    more = "launcher: {runsRanks: true}\n" if image == "openmpi" else ""
    assert told(root, "work: /work", image, more) == []
    assert all(seen(pod, "volume-work")[0] for pod in pods(root).values())


# What a spec requests, changes of the cluster, and the only broken rule.
LOCKED = ('kubernetes: "1.34.4"', 'kubernetes: "1.34.4", openshift: "4.21.0"')
RAISED = "podSecurity: {level: baseline, reason: A driver needs it., until: '2030-01-31'}"
TWO = "work: /x, once: {path: /y, size: 1Gi}"
OTHERS = (("teams: [nlp]", "teams: [cv]"),)
CV = ("  nlp: {queue", "  cv: {queue: cv}\n  nlp: {queue")


def claims(most: int) -> tuple[str, str]:
    """Return the change that sets how many claims a namespace may have."""
    return "region:", f"limits: {{objects: {{claims: {most}}}}}\nregion:"


def storage(cap: str) -> tuple[str, str]:
    """Return the change that sets what claims of a class may request."""
    return "{queue: training}", f"{{queue: training, hardQuota: {{storage: {{{cap}}}}}}}"


CASES: dict[str, tuple[str, tuple[tuple[str, str], ...], str]] = {
    "unknown": ("vaults: /x", (), "volume-unknown"),
    "a claim of the team": ("filings: /x", (), "volume-unknown"),
    "another team's": ("plain: /x", (*OTHERS, CV), "volume-unknown"),
    "an attribute that is the platform's": ("vault: {path: /x, attributes: {a: cv}}", (), "volume-unusable"),
    "a size for a driver": ("vault: {path: /x, size: 1Gi}", (), "volume-unusable"),
    "an attribute for a class": ("work: {path: /x, attributes: {a: b}}", (), "volume-unusable"),
    "no size at all": ("once: /x", (), "volume-unusable"),
    "the most": ("work: {path: /x, size: 1Ti}", (), ""),
    "more than the most": ("work: {path: /x, size: 1025Gi}", (), "volume-unusable"),
    "any size where none is stated": ("once: {path: /x, size: 20Ti}", (), ""),
    "as many claims as there may be": (TWO, (claims(8),), ""),
    "one claim too many": (TWO, (claims(7),), "volume-over-quota"),
    "as much storage as there may be": ("work: /x", (storage("fast: 400Gi"),), ""),
    "too much storage": ("work: /x", (storage("fast: 399Gi"),), "volume-over-quota"),
    "storage of another class": ("work: /x", (storage("slow: 1Gi"),), ""),
    "drivers take no claims": ("vault: /x", (claims(1),), ""),
    "a driver that OpenShift admits": ("vault: /x", (LOCKED,), ""),
    "a driver that OpenShift does not": ("certs: /x", (LOCKED,), "volume-not-admitted"),
    "a class on OpenShift": ("work: /x", (LOCKED,), ""),
    "on one folder with data": ("work: /x}\ndata: {filings: /x", (), "mount-collision"),
    "over shared memory": ("work: /dev/shm", (), "mount-collision"),
    "over programs": ("work: /usr/bin", (), "mount-hides"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_volumes_that_a_run_cannot_have_are_refused(name: str, root: Path) -> None:
    asked, changes, rule = CASES[name]
    offer(root, OFFERED, *changes)
    found = told(root, asked)
    assert {one.rule for one in found} == ({rule} if rule else set()), found
    assert all(one.place.startswith(SPEC) and one.help for one in found)


@pytest.mark.parametrize(("level", "is_admitted"), [("baseline", False), ("privileged", True)])
def test_a_weaker_level_admits_more(level: str, is_admitted: bool, root: Path) -> None:
    raised = RAISED.replace("baseline", level)
    offer(root, OFFERED, LOCKED, ("{queue: training}", f"{{queue: training, {raised}}}"))
    assert ("volume-not-admitted" in {one.rule for one in told(root, "certs: /x")}) == (not is_admitted)


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_regime_with_encryption_needs_an_encrypted_class(encrypted: bool, root: Path) -> None:
    offer(
        root,
        OFFERED.replace("encrypted: true", f"encrypted: {str(encrypted).lower()}"),
        ("region:", "policies: {packs: [hipaa]}\nregion:"),
    )
    found = {one.rule for one in told(root, "work: /x", more="compliance: [hipaa]\n")}
    assert ("volume-unusable" in found) == (not encrypted)


# A volume of a cluster file, and words of the message.
WRONG = {
    "{readOnly: true}": "states neither driver nor storageClass",
    "{driver: a.example.com, storageClass: fast}": "states both driver and storageClass",
    "{driver: a.example.com, size: 1Gi}": "is made by a driver, which takes no size",
    "{driver: a.example.com, accessMode: ReadWriteMany}": "takes no accessMode",
    "{storageClass: fast, secret: key}": "is made by a storage class, which takes no secret",
    "{storageClass: fast, fsType: ext4}": "takes no fsType",
    "{storageClass: fast, settable: [a]}": "takes no settable",
    "{storageClass: fats}": "is of storage class 'fats', which is not declared here",
    "{storageClass: fast, accessMode: ReadWriteMany}": "asks for ReadWriteMany, and class 'fast' offers",
    "{storageClass: fast, size: 2Gi, most: 1Gi}": "is larger than the most",
    "{driver: a.example.com, teams: [cv]}": "is for team 'cv', which has no queue here",
}


@pytest.mark.parametrize("volume", WRONG)
def test_wrong_volumes_of_a_cluster_file_are_refused(volume: str, root: Path) -> None:
    offer(root, "storageClasses: {fast: {accessModes: [ReadWriteOnce]}}\nvolumes: {odd: " + volume + "}\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.place.partition(":")[0]) == ("cluster-volume-wrong", CLUSTER)
    assert WRONG[volume] in found.message
    assert found.help


def test_local_disks_of_a_pool_need_no_entry(root: Path) -> None:
    local = ("labels: {pool: a100}", "labels: {pool: a100}, localDisk: {storageClass: nvme, size: 1Ti}")
    offer(root, "volumes: {fast: {storageClass: nvme, size: 500Gi}}\n", local)
    assert told(root, "fast: /fast") == []
    assert [one.rule for one in told(root, "fast: {path: /fast, size: 1100Gi}")] == ["no-node-fits"]


def test_the_resource_quota_has_the_storage_of_classes(root: Path) -> None:
    offer(root, OFFERED, ("{queue: training}", "{queue: training, hardQuota: {storage: {fast: 10Ti}}}"))
    assert told(root, "work: /work") == []
    assert pods(root)
    (text,) = (text for path, text in rendered(root).items() if path.endswith("tenant.yaml"))
    (quota,) = (
        body["spec"]["hard"]
        for body in load_objects(text)
        if body["kind"] == "ResourceQuota" and body["metadata"]["name"] == "training"
    )
    assert quota["fast.storageclass.storage.k8s.io/requests.storage"] == "10Ti"


@pytest.mark.parametrize(
    ("asked", "word", "field"),
    [
        ("vault: /mnt/secrets", "mountPath: /mnt/secrets", "volumes.vault"),
        ("vault: /mnt/secrets", "driver:", "volumes.vault.driver"),
        ("vault: /mnt/secrets", "secretProviderClass", "volumes.vault.attributes.secretProviderClass"),
        (DNS, "dns-names", "volumes.certs.attributes['csi.cert-manager.io/dns-names']"),
        (DNS, "fsType", "volumes.certs.fsType"),
        ("work: {path: /work, size: 500Gi}", "storage: 500Gi", "volumes.work.size"),
        ("work: /work", "storage: 100Gi", "volumes.work.size"),
        ("work: /work", "storageClassName", "volumes.work.storageClass"),
        ("once: {path: /work, size: 1Gi}", "[ReadWriteOncePod]", "volumes.once.accessMode"),
    ],
)
def test_why_leads_to_the_field(asked: str, word: str, field: str, root: Path) -> None:
    offer(root)
    put(root, f"volumes: {{{asked}}}\n")
    pods(root)
    (path,) = (one for one in rendered(root) if is_run_file(one))
    line = next(n for n, one in enumerate(rendered(root)[path].decode().splitlines(), 1) if word in one)
    assert field in gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out


@pytest.mark.parametrize("value", ["vault=/mnt/secrets", "work={path: /work, size: 500Gi}"])
def test_a_new_job_takes_volumes_from_its_flags(value: str, root: Path) -> None:
    offer(root)
    words = ("--image", "openmpi", "--command", "python train.py", "--gpus", "1", "--volumes", value, "-n")
    outcome = gangplan("new", "job", "room", "-C", root, *words)
    assert outcome.code == 0, outcome.err
    assert "volumes:" in outcome.out


def test_the_plan_shows_the_volumes(root: Path) -> None:
    offer(root)
    put(root, "volumes: {vault: /mnt/secrets, work: /work}\n")
    words = "  volumes   vault: secrets-store.csi.k8s.io at /mnt/secrets; work: 100 GiB of fast at /work\n"
    assert words in gangplan("plan", "-C", root).out


def test_the_schema_of_a_team_has_only_its_volumes(root: Path) -> None:
    offer(root, OFFERED, *OTHERS, CV)
    printed = gangplan("schema", "print", "spec", "-C", root, "--team", "nlp").out
    assert "secrets-store.csi.k8s.io" in printed
    assert "plain.example.com" not in printed
