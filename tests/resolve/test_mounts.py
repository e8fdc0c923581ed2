"""Where claims and secrets may be mounted, and which pods mount a claim that only one pod can mount."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan, rendered

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
HIDES = {
    "/home": "/home/mpiuser/.sshd_config",
    "/home/mpiuser": "/home/mpiuser/.sshd_config",
    "/usr": "/usr/sbin/sshd",
    "/usr/sbin": "/usr/sbin/sshd",
    "/usr/bin": "programs",
    "/usr/local": "programs and libraries",
    "/usr/lib": "libraries",
    "/lib64": "libraries",
    "/bin": "programs",
    "/etc": "users, names",
    "/var": "packages",
    "/run": "sockets",
    "/tmp": "all pods would share them",
    "/root": "only root may enter",
    "/root/.ssh": "only root may enter",
    "/root/data": "only root may enter",
}
TAKEN = [
    "/dev",
    "/dev/shm",
    "/proc/1",
    "/sys/fs",
    "/etc/mpi",
    "/etc/mpi/hosts",
    "/home/mpiuser/.ssh",
    "/home/mpiuser/.ssh/extra",
    "/var/run/secrets/tokens",
    "/run/secrets",
]
FREE = [
    "/data",
    "/mnt",
    "/opt/x",
    "/srv/data",
    "/workspace",
    "/home/mpiuser/data",
    "/home/mpiuser/.cache",
    "/home/mpiuser/.ssh-keys",
    "/home/other",
    "/usr/share/data",
    "/usr/local/share/models",
    "/usr/src",
    "/etc/myapp",
    "/etc/mpich",
    "/var/lib/data",
    "/tmp/data",
    "/devices",
    "/rooted",
    "/libdata",
]


def told(root: Path, spec: str, name: str = "filings", image: str = "openmpi") -> list[Any]:
    """Return the findings of the small workspace with more lines in its spec."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + spec
    workspaces.write(root, {SPEC: text})
    return list(gangplan("validate", "-C", root).findings)


@pytest.mark.parametrize("path", HIDES)
def test_a_mount_over_what_the_run_needs_is_refused(path: str, root: Path) -> None:
    (found,) = told(root, f"data: {{filings: {path}}}\n")
    assert (found.place, found.severity, found.rule) == (f"{SPEC}:9:17", "error", "mount-hides")
    assert HIDES[path] in found.message
    assert found.help == "Choose a folder of its own, such as /mnt/filings."


@pytest.mark.parametrize("path", TAKEN)
def test_a_mount_on_the_run_s_own_folders_is_refused(path: str, root: Path) -> None:
    (found,) = told(root, f"data: {{filings: {path}}}\n")
    assert (found.place, found.severity, found.rule) == (f"{SPEC}:9:17", "error", "mount-collision")


@pytest.mark.parametrize("path", [*FREE, "/mnt/filings"])
def test_other_folders_are_accepted(path: str, root: Path) -> None:
    assert told(root, f"data: {{filings: {path}}}\n") == []


def test_only_mpi_keeps_files_of_one_host_in_tmp(root: Path) -> None:
    assert told(root, "data: {filings: /tmp}\n", image="pytorch") == []


def test_mounts_of_checkpoints_and_secrets_are_checked_too(root: Path) -> None:
    found = told(root, "checkpoint: {to: filings, path: /usr}\nsecrets: {files: {huggingface: /etc}}\n")
    assert [(one.place, one.rule) for one in found] == [
        (f"{SPEC}:9:33", "mount-hides"),
        (f"{SPEC}:10:32", "mount-hides"),
    ]


def test_the_catalog_decides_where_the_image_has_its_ssh(root: Path) -> None:
    ssh = "    ssh: {config: /opt/ssh/sshd_config, server: /opt/ssh/sshd, keys: /opt/keys}\n"
    version = '    mpi: {implementation: OpenMPI, version: "5.0.8"}\n'
    workspaces.write(root, {"images/catalog.yaml": workspaces.CATALOG.replace(version, version + ssh)})
    assert [one.rule for one in told(root, "data: {filings: /home/mpiuser}\n")] == []
    assert [one.rule for one in told(root, "data: {filings: /opt/ssh}\n")] == ["mount-hides"]
    assert [one.rule for one in told(root, "data: {filings: /opt/keys/x}\n")] == ["mount-collision"]
    assert [one.rule for one in told(root, "data: {filings: /opt/data}\n")] == []


def test_a_mount_over_the_setup_of_an_mpi_is_refused(root: Path) -> None:
    licence = "mpi: {licenseAcknowledged: true}\n"
    over = "data: {filings: /opt/intel}\n"
    (found,) = told(root, licence + over, image="intel")
    assert "/opt/intel/oneapi/setvars.sh" in found.message
    assert told(root, over) == []


def test_a_torch_run_may_mount_over_the_folder_of_ssh(root: Path) -> None:
    command = "placement: {spread: pack}\ndata: {filings: /home/mpiuser}\n"
    assert told(root, command, image="pytorch") == []


def mounts(root: Path) -> dict[str, list[str]]:
    """Render, and return the paths of the run by role, without shared memory and launch scripts."""
    assert gangplan("render", "-C", root).code == 0
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    (runtime,) = (body for body in load_objects(text) if body["kind"] == "TrainingRuntime")
    found = {}
    for entry in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = entry["template"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        found[entry["name"]] = [one["mountPath"] for one in container["volumeMounts"][1:-1]]
        assert len(pod["volumes"]) == 2 + len(found[entry["name"]])
    return found


ONE = workspaces.SPEC.replace("workers: 4", "workers: 1")
ONCE = workspaces.TEAM.replace("[ReadWriteOnce]", "[ReadWriteOncePod]")


@pytest.mark.parametrize("team", [workspaces.TEAM, ONCE], ids=["ReadWriteOnce", "ReadWriteOncePod"])
def test_a_single_worker_mounts_a_claim_for_one_and_its_launcher_does_not(team: str, root: Path) -> None:
    # The launcher once mounted it, too: on another node it stays in ContainerCreating, and with
    # ReadWriteOncePod it is never scheduled, while the worker keeps the claim until the deadline.
    spec = ONE + "data: {notes: /notes, filings: /data}\n"
    workspaces.write(root, {SPEC: spec, "specs/nlp/team.yaml": team})
    assert [one.rule for one in gangplan("validate", "-C", root).findings] == ["workers-one"]
    assert mounts(root) == {"node": ["/notes", "/data"], "launcher": ["/data"]}


def test_the_pack_about_shared_claims_allows_a_single_worker(root: Path) -> None:
    workspaces.write(root, {SPEC: ONE + "data: {notes: /notes}\n"})
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER + "policies: {packs: [data]}\n"})
    assert [one.rule for one in gangplan("validate", "-C", root).findings] == ["workers-one"]


def test_several_workers_cannot_mount_a_claim_for_one(root: Path) -> None:
    (found,) = told(root, "data: {notes: /notes}\n")
    assert (found.rule, found.severity) == ("claim-not-shared", "error")
    assert found.help == "Use a claim with ReadWriteMany, or workers: 1 (the launcher does without it)."
    # With a launcher that runs ranks, one worker is refused, so the help does not suggest it.
    (found,) = told(root, "data: {notes: /notes}\nlauncher: {runsRanks: true}\n")
    assert found.help == "Use a claim with ReadWriteMany."


def test_a_claim_for_one_pod_is_refused_even_on_one_node(root: Path) -> None:
    workspaces.write(root, {"specs/nlp/team.yaml": ONCE})
    (found,) = told(root, "data: {notes: /notes}\n")
    assert "only one pod can mount it" in found.message
