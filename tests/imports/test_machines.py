"""Machine types: their data with sources, and the names of their GPUs."""

from __future__ import annotations

import pytest

from gangplan.spec.machines import GPU_MODELS, INSTANCES, find_gpu_model
from tests import plain
from tests.workspaces import REPOSITORY

DATA = plain.load((REPOSITORY / "gangplan/spec/machines.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("cloud", DATA)
def test_every_group_has_its_source_and_notes_on_its_own_machines(cloud: str) -> None:
    group = DATA[cloud]
    assert len(group["source"]) > 40
    named = {name.strip() for names in group["notes"] for name in names.split(",")}
    assert named <= set(group["machines"])


@pytest.mark.parametrize(
    ("name", "cpu", "memory", "gpus", "model"),
    [
        ("ml.p4d.24xlarge", 96, 1152, 8, "a100-40gb"),
        ("p5en.48xlarge", 192, 2048, 8, "h200-141gb"),
        ("ml.m5.4xlarge", 16, 64, 0, ""),
        ("standard_nd96isr_h100_v5", 96, 1900, 8, "h100-80gb"),
        ("a3-highgpu-8g", 208, 1872, 8, "h100-80gb"),
    ],
)
def test_machines_have_their_cpu_memory_and_gpus(
    name: str, cpu: int, memory: int, gpus: int, model: str
) -> None:
    one = INSTANCES[name]
    assert (one.cpu, one.memory, one.gpus, one.model) == (cpu, memory, gpus, model)


def test_machines_with_gpus_name_the_model() -> None:
    assert [name for name, one in INSTANCES.items() if bool(one.gpus) != bool(one.model)] == []
    assert len(INSTANCES) > 250


def test_longer_names_of_gpus_come_first() -> None:
    names = list(GPU_MODELS)
    assert [
        (first, second)
        for place, first in enumerate(names)
        for second in names[place + 1 :]
        if first in second and first != second
    ] == []


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA-A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA-A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.10gb", "a100-40gb"),
        ("nvidia-a100-80gb", "a100-80gb"),
        ("nvidia-tesla-a100", "a100-40gb"),
        ("A100", "a100-80gb"),
        ("Tesla-V100-SXM2-32GB", "v100-32gb"),
        ("Tesla-V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA-H100-80GB-HBM3", "h100-80gb"),
        ("NVIDIA-H200", "h200-141gb"),
        ("NVIDIA-L4", "l4"),
        ("NVIDIA-L40", "l40"),
        ("NVIDIA-A40-48C", "a40"),
        ("NVIDIA-RTX-A4000", ""),
        ("GB200", "gb200"),
        ("NVIDIA-B200", "b200-180gb"),
        ("BM.GPU.MI355X.8", "mi355x"),
        ("tesla-t4", "t4"),
        ("gpu-8xh100", "h100-80gb"),
        ("NVIDIA-A10-24GB", "a10"),
        ("AMD-Instinct-MI300X-OAM", "mi300x"),
        ("m5.4xlarge", ""),
    ],
)
def test_memory_in_a_name_of_a_gpu_tells_its_model(product: str, model: str) -> None:
    assert find_gpu_model(product) == model
