"""Scratch: disk of the node, memory, or a local volume; counted where the platform counts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

CLUSTER = "overlays/lab/cluster.yaml"
OURS = "labels: {pool: a100}"
DISK = f"{OURS}, disk: 1600Gi"
LOCAL = f"{OURS}, localDisk: {{storageClass: topolvm-nvme, size: 7Ti}}"
ON_DISK = "scratch: 200Gi\n"
ON_NVME = "scratch: {size: 2Ti, medium: local}\n"
IN_MEMORY = "scratch: {size: 8Gi, medium: memory, path: /fast}\n"


def pool(root: Path, facts: str, more: str = "") -> None:
    """Set what the pool of the small workspace has, and add lines to its cluster."""
    text = workspaces.CLUSTER.replace(OURS, facts, 1).replace("topology:", f"{more}topology:", 1)
    workspaces.write(root, {CLUSTER: text})


def told(root: Path, lines: str, image: str = "openmpi") -> list[Any]:
    put(root, lines, image)
    return list(gangplan("validate", "-C", root).findings)


def seen(pod: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the scratch volume of a pod, its mount path, SCRATCH_DIR and the ephemeral storage."""
    (box,) = pod["containers"]
    volume = next((one for one in pod["volumes"] if one["name"] == "scratch"), None)
    path = next((one["mountPath"] for one in box["volumeMounts"] if one["name"] == "scratch"), None)
    folder = next((one["value"] for one in box["env"] if one["name"] == "SCRATCH_DIR"), None)
    amounts = {box["resources"][side].get("ephemeral-storage") for side in ("requests", "limits")}
    (amount,) = amounts
    return volume, path, folder, amount


def test_disk_is_requested_where_the_pool_counts_it(root: Path) -> None:
    pool(root, DISK)
    put(root, ON_DISK + "disk: 50Gi\n")
    found = pods(root)
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": "200Gi"}}
    assert seen(found["node"]) == (volume, "/scratch", "/scratch", "250Gi")
    # A launcher without ranks needs no scratch; Open MPI passes the variable on from its environment.
    assert seen(found["launcher"]) == (None, None, "/scratch", None)
    assert gangplan("validate", "-C", root).findings == []


def test_disk_that_the_pool_does_not_count_is_a_warning(root: Path) -> None:
    (found,) = told(root, ON_DISK)
    assert (found.rule, found.severity, found.place) == ("scratch-not-counted", "warning", f"{SPEC}:9:10")
    assert seen(pods(root)["node"])[3] is None


def test_scratch_in_memory_is_part_of_the_pods_memory(root: Path) -> None:
    assert told(root, IN_MEMORY) == []
    found = pods(root)["node"]
    volume = {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
    assert seen(found) == (volume, "/fast", "/fast", None)
    assert found["containers"][0]["resources"]["limits"]["memory"] == "32Gi"


def test_local_scratch_is_a_volume_of_the_pools_class(root: Path) -> None:
    pool(root, LOCAL)
    assert told(root, ON_NVME) == []
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "topolvm-nvme",
        "resources": {"requests": {"storage": "2Ti"}},
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    assert seen(pods(root)["node"]) == (volume, "/scratch", "/scratch", None)


@pytest.mark.parametrize("image", ["pytorch", "openmpi"])
def test_every_pod_that_runs_ranks_has_scratch(image: str, root: Path) -> None:
    put(root, IN_MEMORY + ("launcher: {runsRanks: true}\n" if image == "openmpi" else ""), image)
    assert {seen(pod)[1:3] for pod in pods(root).values()} == {("/fast", "/fast")}


# What the spec requests, what the pool has, and the only broken rule.
CASES = {
    "a node has it": (ON_DISK, DISK, ""),
    "all of a node": ("scratch: 1600Gi\n", DISK, ""),
    "more than a node": ("scratch: 1601Gi\n", DISK, "pool-no-fit"),
    "more with disk": ("scratch: 1600Gi\ndisk: 1Gi\n", DISK, "pool-no-fit"),
    "as memory leaves 1 GiB": ("scratch: {size: 31Gi, medium: memory}\n", OURS, ""),
    "as memory leaves less": ("scratch: {size: 31745Mi, medium: memory}\n", OURS, "scratch-memory"),
    "as memory leaves nothing": ("scratch: {size: 32Gi, medium: memory}\n", OURS, "scratch-memory"),
    "no local disks": (ON_NVME, OURS, "pool-no-fit"),
    "as large as a local disk": ("scratch: {size: 7Ti, medium: local}\n", LOCAL, ""),
    "larger than a local disk": ("scratch: {size: 7169Gi, medium: local}\n", LOCAL, "pool-no-fit"),
    "two on a local disk": ("scratch: {size: 3584Gi, medium: local}\nworkers: 8\n", LOCAL, ""),
    "one too many": ("scratch: {size: 3585Gi, medium: local}\nworkers: 8\n", LOCAL, "nodes-too-few"),
    "two on a disk": ("scratch: 800Gi\nworkers: 8\n", DISK, ""),
    "one too many on a disk": ("scratch: 801Gi\nworkers: 7\n", DISK, "nodes-too-few"),
    "at the folder of temporary files": ("scratch: {size: 9Gi, path: /tmp}\n", DISK, ""),
    "over programs": ("scratch: {size: 9Gi, path: /usr/bin}\n", DISK, "mount-hides"),
    "over shared memory": ("scratch: {size: 9Gi, path: /dev/shm}\n", DISK, "mount-collision"),
    "over data": ("scratch: {size: 9Gi, path: /data}\ndata: {filings: /data}\n", DISK, "mount-collision"),
    "a variable of its own": ("scratch: 9Gi\nenv: {SCRATCH_DIR: /x}\n", DISK, "env-reserved"),
    "the variable without scratch": ("env: {SCRATCH_DIR: /x}\n", DISK, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_scratch_that_does_not_fit_is_refused(name: str, root: Path) -> None:
    lines, facts, rule = CASES[name]
    pool(root, facts)
    put(root, lines)
    if "workers:" in lines:
        text = (root / SPEC).read_text().replace("workers: 4\n", "", 1)
        workspaces.write(root, {SPEC: text})
    found = gangplan("validate", "-C", root).findings
    assert {one.rule for one in found if one.severity == "error"} == ({rule} if rule else set()), found
    assert all(one.place.startswith(SPEC) and one.help for one in found)


def test_one_worker_too_many_is_explained_by_local_disks(root: Path) -> None:
    pool(root, LOCAL)
    (found,) = [
        one
        for one in told(root, "scratch: {size: 5Ti, medium: local}\nlauncher: {runsRanks: true}\n")
        if one.severity == "error"
    ] or [None]
    assert found is None
    put(root, "scratch: {size: 5Ti, medium: local}\n")
    workspaces.write(root, {SPEC: (root / SPEC).read_text().replace("workers: 4", "workers: 5")})
    (found,) = gangplan("validate", "-C", root).findings
    assert "local disks of topolvm-nvme" in found.message
    assert "at most 4 workers" in found.help


def test_claims_of_scratch_are_counted_in_the_namespace(root: Path) -> None:
    pool(root, LOCAL, "limits: {objects: {claims: 3}}\n")
    (found,) = told(root, ON_NVME)
    assert (found.rule, found.place) == ("scratch-claims", f"{SPEC}:9:10")
    pool(root, LOCAL, "limits: {objects: {claims: 4}}\n")
    assert told(root, ON_NVME) == []


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_regime_with_encryption_needs_an_encrypted_class(encrypted: bool, root: Path) -> None:
    facts = f"accessModes: [ReadWriteOnce], encrypted: {str(encrypted).lower()}"
    classes = f"storageClasses: {{topolvm-nvme: {{{facts}}}}}\n"
    pool(root, LOCAL, f"policies: {{packs: [hipaa]}}\n{classes}")
    found = {one.rule for one in told(root, ON_NVME + "compliance: [hipaa]\n")}
    assert ("scratch-not-encrypted" in found) == (not encrypted)


def test_the_plan_and_quotas_count_scratch(root: Path) -> None:
    pool(root, DISK)
    put(root, ON_DISK)
    (run,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    assert (run["worker"]["ephemeral-storage"], run["totals"]["ephemeral-storage"]) == ("200Gi", "800Gi")
    assert "  scratch   200 GiB on disk at /scratch in each worker\n" in gangplan("plan", "-C", root).out
    share = workspaces.CLUSTER.replace(OURS, DISK, 1)
    share = share.replace(
        "{queue: training", "{queue: training, quota: {a100: {gpus: 16}, cpu: {cpu: 100}}, borrow: {}"
    )
    workspaces.write(root, {CLUSTER: share})
    put(root, "scratch: 1000Gi\n")
    outcome = gangplan("validate", "-C", root)
    assert "requires 4000 GiB of ephemeral-storage, but project quota is 3200 GiB" in outcome.err
    assert "at most 3 workers" in outcome.err


def test_the_first_pool_with_room_for_scratch_is_chosen(root: Path) -> None:
    """Two pools exist, and only one takes all workers with their scratch."""
    other = (
        "  big: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: big}"
    )
    other += ", disk: 8Ti}\n"
    text = workspaces.CLUSTER.replace(OURS, DISK, 1).replace("topology:", f"{other}topology:", 1)
    workspaces.write(root, {CLUSTER: text})
    put(root, "scratch: 2Ti\n")
    assert gangplan("validate", "-C", root).findings == []
    assert pods(root)["node"]["nodeSelector"]["pool"] == "big"


@pytest.mark.parametrize(
    ("lines", "word", "field"),
    [
        (ON_DISK, "sizeLimit: 200Gi", "scratch"),
        (ON_NVME, "storage: 2Ti", "scratch.size"),
        (IN_MEMORY, "mountPath: /fast", "scratch.path"),
        (ON_NVME, "storageClassName", "nodePools.a100.localDisk.storageClass"),
    ],
)
def test_why_leads_to_the_field(lines: str, word: str, field: str, root: Path) -> None:
    pool(root, f"{DISK}, localDisk: {{storageClass: topolvm-nvme, size: 7Ti}}")
    put(root, lines)
    pods(root)
    (path,) = (one for one in rendered(root) if is_run_file(one))
    line = next(n for n, one in enumerate(rendered(root)[path].decode().splitlines(), 1) if word in one)
    assert field in gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out


@pytest.mark.parametrize("value", ["200Gi", "{size: 2Ti, medium: local}"])
def test_a_new_job_takes_scratch_from_its_flag(value: str, root: Path) -> None:
    pool(root, f"{DISK}, localDisk: {{storageClass: topolvm-nvme, size: 7Ti}}")
    words = ("--image", "openmpi", "--command", "python train.py", "--gpus", "1", "--scratch", value, "-n")
    outcome = gangplan("new", "job", "room", "-C", root, *words)
    assert outcome.code == 0, outcome.err
    assert f"scratch: {value}" in outcome.out or "medium: local" in outcome.out


def test_another_size_is_another_run(root: Path) -> None:
    pool(root, DISK)
    names = set()
    for size in ("200Gi", "201Gi"):
        put(root, f"scratch: {size}\n")
        pods(root)
        names |= {path for path in rendered(root) if is_run_file(path)}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("200", "200Gi"),
        ("{medium: local}", "scratch.size"),
        ("{size: 2Ti, medium: nvme}", "local"),
        ("[2Ti]", "scratch"),
    ],
)
def test_invalid_scratch_is_refused(value: str, words: str, root: Path) -> None:
    put(root, f"scratch: {value}\n")
    outcome = gangplan("validate", "-C", root)
    (found,) = outcome.findings
    assert (outcome.code, found.place.rpartition(":")[0]) == (2, f"{SPEC}:9")
    assert words in found.message + found.help
