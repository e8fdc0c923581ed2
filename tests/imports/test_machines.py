"""Machine types: their data with sources, and the names of their GPUs."""

from __future__ import annotations

import pytest

from gangplan.spec.machines import GPU_MODELS, INSTANCES
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
