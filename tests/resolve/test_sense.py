"""Workers that could not train: ranks, memory and CPU that do not fit their GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.workspaces import gangplan, rendered

GPU = "gpu: {model: a100-80gb, mig: 1g.10gb, count: 56}"
MIG = f"  mig: {{count: 4, cpu: 124, memory: 1900Gi, {GPU}, labels: {{pool: mig}}}}\n"
CLUSTER = workspaces.CLUSTER.replace("topology:\n", f"{MIG}topology:\n")
OURS = ("ranks-share-gpus", "mig-slices", "memory-tiny", "cpu-tiny", "slots-not-gpus")

# Fields of the spec, by image: the rule, or nothing; and words of its help.
CASES: list[tuple[str, str, str, str]] = [
    ("pytorch", "slots: 4", "ranks-share-gpus", "Omit slots"),
    ("horovod", "slots: 8", "ranks-share-gpus", "Omit slots"),
    ("deepspeed", "slots: 4", "ranks-share-gpus", "Omit slots"),
    ("openmpi", "slots: 4", "slots-not-gpus", "Omit slots"),
    ("pytorch", "slots: 1", "slots-not-gpus", "Omit slots"),
    ("pytorch", "slots: 2", "", ""),
    ("pytorch", 'slots: 4\nenv: {NCCL_MULTI_RANK_GPU_ENABLE: "1"}', "slots-not-gpus", ""),
    ("pytorch", "gpu: {model: a100-80gb, mig: 1g.10gb}", "mig-slices", "Write gpus: 1 and workers: 8,"),
    ("pytorch", "gpus: 1\ngpu: {model: a100-80gb, mig: 1g.10gb}", "", ""),
    ("openmpi", "gpu: {model: a100-80gb, mig: 1g.10gb}\nslots: 1", "mig-slices", "Write gpus: 1"),
    ("pytorch", "memory: 512M", "memory-tiny", "Write memory: 512Gi."),
    ("pytorch", "memory: 64Mi", "memory-tiny", "Write memory: 64Gi."),
    ("pytorch", "memory: 1900M", "memory-tiny", "Write memory: 1900Gi."),
    ("pytorch", "memory: 1950M", "memory-tiny", "Write memory: 475Gi."),
    ("pytorch", "memory: 2Gi", "", ""),
    ("pytorch", "cpu: 200m", "cpu-tiny", "Write cpu: 31."),
    ("pytorch", "cpu: 1999m", "cpu-tiny", "Write cpu: 31."),
    ("pytorch", "cpu: 2", "", ""),
    ("openmpi", "gpus: 0\nmemory: 512Mi\ncpu: 200m", "", ""),
]


def written(image: str, fields: str) -> str:
    """Return the spec of the small workspace with some fields replaced."""
    names = {line.partition(":")[0] for line in fields.splitlines()}
    kept = [line for line in workspaces.SPEC.splitlines() if line.partition(":")[0] not in names]
    return "\n".join([*kept, fields, ""]).replace("image: openmpi", f"image: {image}")


@pytest.mark.parametrize(("image", "fields", "rule", "help"), CASES)
def test_amounts_that_do_not_fit_the_gpus_are_reported(
    image: str, fields: str, rule: str, help: str, root: Path
) -> None:
    files = {"specs/nlp/filings.yaml": written(image, fields), "overlays/lab/cluster.yaml": CLUSTER}
    outcome = gangplan("validate", "-C", workspaces.write(root, files))
    found = [one for one in outcome.findings if one.rule in OURS]
    assert {one.rule for one in found} == {rule} - {""}, outcome.err
    assert all(help in one.help for one in found)


def test_default_amounts_are_not_reported(root: Path) -> None:
    spec = workspaces.SPEC.replace("cpu: 8\n", "").replace("gpus: 2", "gpus: 8")
    outcome = gangplan("validate", "-C", workspaces.write(root, {"specs/nlp/filings.yaml": spec}))
    assert "cpu-tiny" not in outcome.err


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_workers_without_gpus_see_none_of_their_node(image: str, root: Path) -> None:
    """CUDA images set NVIDIA_VISIBLE_DEVICES=all."""
    fields = "gpus: 0\nslots: 1\nplacement: {nodePool: a100}"
    workspaces.write(root, {"specs/nlp/filings.yaml": written(image, fields)})
    workspaces.render(root)
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert text.count(b"name: NVIDIA_VISIBLE_DEVICES") == 1
    workspaces.write(root, {"specs/nlp/filings.yaml": written(image, "gpus: 2")})
    workspaces.render(root)
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert text.count(b"name: NVIDIA_VISIBLE_DEVICES") == 0


def test_workers_with_other_nvidia_devices_see_them(root: Path) -> None:
    """The container's own value would override that of the device plugin."""
    pool = "labels: {pool: a100}, devices: {nvidia.com/gpu.shared: 4}}"
    cluster = workspaces.CLUSTER.replace("labels: {pool: a100}}", pool)
    fields = "gpus: 0\nslots: 1\nplacement: {nodePool: a100}\ndevices: {nvidia.com/gpu.shared: 1}"
    files = {"specs/nlp/filings.yaml": written("pytorch", fields), "overlays/lab/cluster.yaml": cluster}
    workspaces.render(workspaces.write(root, files))
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert b"nvidia.com/gpu.shared" in text
    assert b"NVIDIA_VISIBLE_DEVICES" not in text


SHARED = "gpu: {model: slice, resource: nvidia.com/gpu.shared, count: 32}"
STATED = "gpu: {model: slice, shared: true, count: 32}"


@pytest.mark.parametrize(
    ("pool", "image", "fields", "is_told"),
    [
        (SHARED, "pytorch", "gpus: 4", True),
        (STATED, "pytorch", "gpus: 1", True),  # two workers on one node
        (STATED, "horovod", "gpus: 2", True),
        (STATED, "pytorch", "gpus: 1\nworkers: 1", False),
        (STATED, "openmpi", "gpus: 2", False),
        (STATED.replace("true", "false"), "pytorch", "gpus: 4", False),
        (STATED, "pytorch", 'gpus: 4\nenv: {NCCL_MULTI_RANK_GPU_ENABLE: "1"}', False),
    ],
)
def test_ranks_on_shared_gpus_are_reported(
    pool: str, image: str, fields: str, is_told: bool, root: Path
) -> None:
    more = f"  slices: {{count: 4, cpu: 124, memory: 1900Gi, {pool}, labels: {{pool: slices}}}}\n"
    cluster = workspaces.CLUSTER.replace("topology:\n", f"{more}topology:\n")
    text = written(image, fields + "\ngpu: {model: slice}")
    files = {"specs/nlp/filings.yaml": text, "overlays/lab/cluster.yaml": cluster}
    outcome = gangplan("validate", "-C", workspaces.write(root, files))
    found = [one for one in outcome.findings if one.rule == "ranks-share-gpus"]
    assert len(found) == is_told, outcome.err
    assert all("the GPUs of pool 'slices' are shared" in one.message for one in found)
    assert all("Use a pool with whole GPUs (a100, a100-spot), or" in one.help for one in found)
