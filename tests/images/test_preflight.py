"""The GPUs that the preflight counts: device files in a made-up root, and variables that hide them."""

from __future__ import annotations

import runpy
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.workspaces import REPOSITORY

ID = "GPU-8f6d0a3e"


@pytest.fixture
def preflight(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the functions of the preflight, without an MPI."""
    module, mpi = ModuleType("mpi4py"), ModuleType("mpi4py.MPI")
    mpi.SUM, module.MPI = None, mpi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py", module)
    return runpy.run_path(str(REPOSITORY / "images/preflight/preflight.py"))


@pytest.fixture
def count(preflight: dict[str, Any], tmp_path: Path) -> Callable[..., int]:
    """Return a function that counts the GPUs of a root with these files, in an environment."""

    def counted(files: dict[str, str], **env: str) -> int:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return len(preflight["gpus_here"](f"{tmp_path}/", env))

    return counted


NVIDIA = {f"dev/{name}": "" for name in ("nvidia0", "nvidia3", "nvidia10", "nvidiactl", "nvidia-uvm")}


@pytest.mark.parametrize(
    ("env", "gpus"),
    [
        ({}, 3),
        ({"CUDA_VISIBLE_DEVICES": "0"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, 2),  # numbers of the runtime, not of files
        ({"CUDA_VISIBLE_DEVICES": "0,3,1"}, 1),  # CUDA ends at the first that does not exist
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, 1),
        ({"CUDA_VISIBLE_DEVICES": ID}, 1),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, 3),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, 3),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, 0),
        ({"NVIDIA_VISIBLE_DEVICES": f"{ID}1,{ID}2", "CUDA_VISIBLE_DEVICES": "0,1,2"}, 2),
        ({"NVIDIA_VISIBLE_DEVICES": "MIG-a,MIG-b,MIG-c,MIG-d"}, 4),  # slices share device files
        ({"HIP_VISIBLE_DEVICES": "0"}, 3),
    ],
)
def test_gpus_of_nvidia_are_those_that_no_variable_hides(
    count: Callable[..., int], env: dict[str, str], gpus: int
) -> None:
    assert count(NVIDIA, **env) == gpus


KFD = "sys/class/kfd/kfd/topology/nodes"
AMD = {
    "dev/kfd": "",
    "dev/dri/renderD128": "",  # the display card
    "sys/class/drm/renderD128/device/vendor": "0x1a03\n",
    "dev/dri/renderD129": "",
    "dev/dri/renderD130": "",
    f"{KFD}/0/properties": "cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n",
    f"{KFD}/1/properties": "simd_count 416\ndrm_render_minor 129\n",
    f"{KFD}/2/properties": "simd_count 416\ndrm_render_minor 130\n",
    f"{KFD}/3/properties": "simd_count 416\ndrm_render_minor 131\n",  # of another pod
}


@pytest.mark.parametrize(
    ("env", "gpus"),
    [
        ({}, 2),
        ({"ROCR_VISIBLE_DEVICES": "1"}, 1),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, 1),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}, 0),
        ({"HIP_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": "0"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "0"}, 1),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, 2),
    ],
)
def test_gpus_of_amd_are_those_that_compute(
    count: Callable[..., int], env: dict[str, str], gpus: int
) -> None:
    assert count(AMD, **env) == gpus


def test_a_display_card_is_not_a_gpu(count: Callable[..., int]) -> None:
    display = {name: text for name, text in AMD.items() if "renderD128" in name}
    assert count(display) == 0
    assert count({"sys/class/drm/renderD128/device/vendor": "0x8086\n"}) == 1, "Intel's"


@pytest.mark.parametrize(
    ("ranks", "seen"),
    [
        ([["0", "1"], ["0", "1"]], "2"),
        ([["0"], ["1"]], "2"),
        ([["0"], ["0"]], "a: 1 of 2"),
        ([["0", "1"], []], "rank 1 on a: 0 of 1"),
        ([[], []], "a: 0 of 2"),
    ],
)
def test_gpus_are_judged_rank_by_rank(preflight: dict[str, Any], ranks: list[list[str]], seen: str) -> None:
    known = [
        {"rank": rank, "host": "a", "mpi": "m", "gpus": len(gpus), "devices": gpus, "memlock": -1}
        for rank, gpus in enumerate(ranks)
    ]
    plan = Namespace(workers=1, slots=2, gpus=2, memlock=False, storage=[], skew=1.0)
    (one,) = (one for one in preflight["judge"](plan, known, [], [], {}) if one["check"] == "gpus")
    assert (one["ok"], one["seen"]) == (seen == "2", seen)
    plan.gpus = 0
    (one,) = (one for one in preflight["judge"](plan, known, [], [], {}) if one["check"] == "gpus")
    assert one["ok"]
