"""What a source says about its hardware and a run does not keep: it is asked about, and lowers the percentage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.imports.batch import judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.workspace import load_workspace
from tests.imports.sources import MPIJOB, SAGEMAKER, SLURM, imported
from tests.workspaces import STOCK, WIDE_CLUSTER, write

POOLS = "nodePools:\n"
AMD = (
    "  amd: {count: 400, cpu: 200, memory: 1500Gi, labels: {pool: amd},"
    " gpu: {model: mi300x, count: 8, resource: amd.com/gpu}}\n"
)
OTHER_AMD = AMD.replace("amd:", "older:", 1).replace("mi300x", "mi250x").replace("pool: amd", "pool: older")

SAND = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: sand}
spec:
  replicatedJobs:
  - name: grains
    template:
      spec:
        parallelism: 2
        template:
          spec:
            containers:
            - name: sand
              image: registry.example.com/sea/sand:1
              command: [count, --all]
              resources: {limits: {cpu: 4, memory: 8Gi}}
              volumeMounts: [{name: plan, mountPath: /plan}]
            - name: scales
              image: registry.example.com/sea/scales:1
              command: [weigh]
              resources: {limits: {cpu: 1, memory: 1Gi}}
            volumes: [{name: plan, configMap: {name: plan, items: [{key: beach, path: beach}]}}]
"""

# Kind, source, what is replaced in it -> the message of the question, and the row of the comparison.
ROOM_OF_CLAIM = (
    "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: fast,"
    " resources: {requests: {storage: 20Gi}}}}}"
)
LAUNCHER = "            resources: {limits: {cpu: 2, memory: 4Gi}}\n"
ROOM = """\
            volumeMounts: [{name: room, mountPath: /room}]
          volumes: [{name: room, emptyDir: {}}]
"""
UNMET = {
    "a volume of the launcher's own": (
        "mpijob",
        MPIJOB,
        (LAUNCHER, LAUNCHER + ROOM),
        "the launcher of a run has no scratch space",
        ("/room", "emptyDir", None),
    ),
    "a generic volume of the launcher's own": (
        "mpijob",
        MPIJOB,
        (LAUNCHER, LAUNCHER + ROOM.replace("emptyDir: {}", ROOM_OF_CLAIM)),
        "the launcher of a run has no scratch space",
        ("/room", "ephemeral", None),
    ),
    "an image that no registry can have": (
        "jobset",
        SAND,
        ("registry.example.com/sea/sand:1", "registry.example.com/Sea/sand:1"),
        "registry.example.com/Sea/sand is not a valid name: repositories are in lower case",
        ("image", "registry.example.com/Sea/sand:1", f"registry.example.com/sea/sand@sha256:{'0' * 64}"),
    ),
    "an unknown machine type": (
        "sagemaker",
        SAGEMAKER,
        ("ml.p4de.24xlarge", "ml.zz9.big"),
        "does not know the machine type ml.zz9.big",
        ("machine type", "ml.zz9.big", None),
    ),
    "GPUs with less memory": (
        "sagemaker",
        SAGEMAKER,
        ("ml.p4de.24xlarge", "ml.p4d.24xlarge"),
        "ml.p4d.24xlarge has a100-40gb; the closest that a pool has is a100-80gb",
        ("GPU model", "a100-40gb", "a100-80gb"),
    ),
    "another image of the launcher": (
        "mpijob",
        MPIJOB,
        ("registry.example.com/physics/heat:1.4", "registry.example.com/physics/heat:1.3"),
        "the launcher has another image",
        (
            "image of a launcher",
            "registry.example.com/physics/heat:1.3",
            "registry.example.com/physics/heat:1.4",
        ),
    ),
    "an SSH server with keys of root": (
        "mpijob",
        MPIJOB,
        ("sshAuthMountPath: /home/mpiuser/.ssh", "sshAuthMountPath: /root/.ssh"),
        "the user of a run cannot read /root/.ssh",
        ("folder of the SSH keys", "/root/.ssh", "/home/mpiuser/.ssh"),
    ),
    "a part of a volume": (
        "jobset",
        SAND,
        ("mountPath: /plan}", "mountPath: /plan, subPath: beach}"),
        "a run mounts whole volumes, not a part of one",
        ("/plan", "configMap plan only beach", "configMap plan"),
    ),
    "a part of a volume, by a variable": (
        "jobset",
        SAND,
        ("mountPath: /plan}", "mountPath: /plan, subPathExpr: $(POD)}"),
        "a run mounts whole volumes, not a part of one",
        ("/plan", "configMap plan only $(POD)", "configMap plan"),
    ),
    "a key that is a file of another name": (
        "jobset",
        SAND,
        ("path: beach}", "path: beach.csv}"),
        "the file is called beach there, not beach.csv",
        ("/plan", "configMap plan beach as beach.csv", "configMap plan"),
    ),
    "devices of another container": (
        "jobset",
        SAND,
        ("{cpu: 1, memory: 1Gi}", "{cpu: 1, memory: 1Gi, google.com/tpu: 2}"),
        "setup and sidecars have CPU and memory, and no devices",
        ("google.com/tpu of container scales", "2", None),
    ),
}


@pytest.mark.parametrize("case", UNMET)
def test_what_the_run_does_not_keep_lowers_the_percentage(case: str, tmp_path: Path) -> None:
    kind, text, (old, new), message, row = UNMET[case]
    assert old in text
    batch = imported(tmp_path, kind, text.replace(old, new, 1))
    (one,) = batch.imported
    assert any(message in question.message for question in one.draft.questions), one.draft.questions
    same = one.runs["lab"]
    assert row in [(found.what, found.source, found.run) for found in same.differences]
    assert same.percent < 100


def test_launcher_and_workers_with_volumes_at_one_folder(tmp_path: Path) -> None:
    """The workers' volume is the run's scratch; the launcher's is asked about all the same."""
    mount = "            - {name: shm, mountPath: /dev/shm}\n"
    assert mount in MPIJOB
    source = MPIJOB.replace(mount, f"{mount}            - {{name: room, mountPath: /room}}\n").replace(
        LAUNCHER, LAUNCHER + ROOM
    )
    (one,) = imported(
        tmp_path, "mpijob", f"{source}          - {{name: room, emptyDir: {{sizeLimit: 5Gi}}}}\n"
    ).imported
    assert one.draft.values["scratch"] == {"size": "5Gi", "medium": "disk", "path": "/room"}
    assert [(row.what, row.run) for row in one.runs["lab"].differences] == [("/room of a launcher", None)]


def test_a_launcher_that_trains_has_scratch(tmp_path: Path) -> None:
    source = MPIJOB.replace("  slotsPerWorker", "  runLauncherAsWorker: true\n  slotsPerWorker")
    (one,) = imported(tmp_path, "mpijob", source.replace(LAUNCHER, LAUNCHER + ROOM)).imported
    assert one.draft.values["scratch"] == {"size": "10Gi", "medium": "disk", "path": "/room"}


# The flag and the folder of keys in the source -> the rows about it.
KEYS: dict[str, tuple[str, str | None, list[tuple[str, str]]]] = {
    "of another image": ("openmpi", "/home/other/.ssh", [("/home/other/.ssh", "/home/mpiuser/.ssh")]),
    "of root, with another image": ("openmpi", "/root/.ssh", [("/root/.ssh", "/home/mpiuser/.ssh")]),
    "as in another image": ("openmpi", "/home/mpiuser/.ssh/", []),
    "of the image": ("", "/home/other/.ssh", []),
    "left out": ("", None, [("/root/.ssh", "/home/mpiuser/.ssh")]),
    "left out, with another image": ("openmpi", None, [("/root/.ssh", "/home/mpiuser/.ssh")]),
    "of an API without keys": ("v1", None, []),
}


@pytest.mark.parametrize("case", KEYS)
def test_the_image_says_where_its_keys_are(case: str, tmp_path: Path) -> None:
    image, folder, rows = KEYS[case]
    source = MPIJOB.replace("/home/mpiuser/.ssh\n", f"{folder}\n")
    if folder is None:  # as the controller completes it
        source = source.replace("  sshAuthMountPath: None\n", "")
        assert "sshAuthMountPath" not in source
    if image == "v1":
        source, image = source.replace("kubeflow.org/v2beta1", "kubeflow.org/v1"), ""
    (one,) = imported(tmp_path, "mpijob", source, image=image).imported
    is_said = any("cannot read /root/.ssh" in question.message for question in one.draft.questions)
    assert is_said == (case == "left out")
    what = "folder of the SSH keys"
    assert [(row.source, row.run) for row in one.runs["lab"].differences if row.what == what] == rows


def test_the_first_source_says_where_the_keys_of_an_image_are(tmp_path: Path) -> None:
    """Of two sources with one image and several folders, the second is asked about."""
    second = MPIJOB.replace("name: heat\n", "name: cold\n").replace(
        "/home/mpiuser/.ssh\n", "/home/other/.ssh\n"
    )
    first, other = imported(tmp_path, "mpijob", f"{MPIJOB}---\n{second}").imported
    assert not [one for one in first.draft.questions if "keys" in one.message]
    assert [one.message for one in other.draft.questions if "keys" in one.message] == [
        "spec.sshAuthMountPath: the image heat has its keys in /home/mpiuser/.ssh"
    ]


# Pools with GPUs of AMD, resource of the source -> gpu.model of the spec, and the question.
VENDORS = {
    "AMD where there is one such pool": (AMD, "amd.com/gpu", "mi300x", ""),
    "AMD where there are two": (AMD + OTHER_AMD, "amd.com/gpu", None, "Write gpu.model: mi250x, mi300x."),
    "AMD where there is none": (
        "",
        "amd.com/gpu",
        None,
        "Give a pool of cluster.yaml gpu: {model: MODEL, count: 8, resource: amd.com/gpu}, and the spec its gpu.model.",
    ),
    "NVIDIA next to AMD": (AMD, "nvidia.com/gpu", "a100-80gb", ""),
    "near: NVIDIA alone": ("", "nvidia.com/gpu", None, ""),
}


@pytest.mark.parametrize("case", VENDORS)
def test_gpus_of_a_vendor_stay_with_it(case: str, tmp_path: Path) -> None:
    """A spec counts GPUs, whatever a pool calls them, so the model decides among pools of several vendors."""
    pools, resource, model, help = VENDORS[case]
    assert POOLS in WIDE_CLUSTER
    cluster = WIDE_CLUSTER.replace(POOLS, POOLS + pools)
    write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": cluster})
    write(tmp_path / "sources", {"heat.yaml": MPIJOB.replace("nvidia.com/gpu", resource)})
    target = ImportTarget(load_workspace(tmp_path / "workspace"), "nlp", ImportAnswers())
    batch = read_import_batch(SOURCE_KINDS["mpijob"], [tmp_path / "sources/heat.yaml"], target, {})
    judge_import_batch(batch, tmp_path / "workspace")
    (one,) = batch.imported
    assert one.draft.values.get("gpu", {}).get("model") == model
    asked = [question for question in one.draft.questions if "the run may get GPUs of" in question.message]
    assert [question.help for question in asked] == ([help] if help else [])
    assert any(row.what == "vendor of the GPUs" for row in one.runs["lab"].differences) == bool(help)


SLICED = "  sliced: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-40gb, count: 24, mig: 2g.10gb}}\n"


@pytest.mark.parametrize(
    ("resource", "gpu"),
    [("nvidia.com/gpu", None), ("nvidia.com/mig-2g.10gb", {"mig": "2g.10gb", "model": "a100-40gb"})],
)
def test_slices_are_not_whole_gpus_of_their_model(
    resource: str, gpu: dict[str, str] | None, tmp_path: Path
) -> None:
    cluster = WIDE_CLUSTER.replace(POOLS, POOLS + SLICED)
    write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": cluster})
    source = MPIJOB.replace("nvidia.com/gpu", resource).replace(
        "          volumes:\n",
        "          nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-PCIE-40GB}\n          volumes:\n",
    )
    write(tmp_path / "sources", {"heat.yaml": source})
    target = ImportTarget(load_workspace(tmp_path / "workspace"), "nlp", ImportAnswers())
    batch = read_import_batch(SOURCE_KINDS["mpijob"], [tmp_path / "sources/heat.yaml"], target, {})
    assert batch.imported[0].draft.values.get("gpu") == gpu


def test_a_pool_that_is_proposed_has_the_gpus_of_the_source(tmp_path: Path) -> None:
    source = MPIJOB.replace("nvidia.com/gpu", "amd.com/gpu").replace(
        "cpu: 8, memory: 64Gi", "cpu: 800, memory: 64Gi"
    )
    (one,) = imported(tmp_path, "mpijob", source).imported
    pools = [
        each.value["gpu"]
        for each in one.draft.suggestions
        if each.path[0] == "nodePools" and "gpu" in each.value
    ]
    assert pools == [{"model": "gpu", "count": 2, "resource": "amd.com/gpu"}]


def test_a_scheduler_that_names_a_model_which_no_pool_has(tmp_path: Path) -> None:
    gpus = re.search(r"#SBATCH --gpus-per-node=\S+|#SBATCH --gres=\S+", SLURM)
    assert gpus
    source = SLURM.replace(gpus[0], "#SBATCH --gpus-per-node=h100:4")
    (one,) = imported(tmp_path, "slurm", source, "job.sbatch", image="pytorch").imported
    assert ("GPU model", "h100", None) in [
        (row.what, row.source, row.run) for row in one.runs["lab"].differences
    ]
