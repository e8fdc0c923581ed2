"""Cloud machine types and their contents, from machines.yaml, where each group has its source; names of GPUs.

They are only hints: the GPU model chooses a pool, and a machine type gives the GPUs of a job of a managed
service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gangplan.records import dataclass
from gangplan.source import load_document

_FILE = Path(__file__).with_name("machines.yaml")


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: virtual cores, memory in GiB, GPUs and their model as clusters usually name it."""

    cpu: int
    memory: float
    gpus: int = 0
    model: str = ""


def _load_machine_types() -> Iterator[tuple[str, Machine]]:
    """Yield all machines by their names in lower case; SageMaker's have `ml.` before EC2's."""
    document, findings = load_document(_FILE.read_bytes(), _FILE.name)
    if document is None:
        raise ValueError(findings[0].message)
    for cloud, group in document.value.items():
        for name, fields in group["machines"].items():
            machine = Machine(**fields)
            yield name.lower(), machine
            if cloud == "aws":
                yield f"ml.{name}", machine


INSTANCES: dict[str, Machine] = dict(_load_machine_types())

# A part of a GPU's name in lower case, and the model as clusters usually name it; longer parts come first.
GPU_MODELS = {
    "gb300": "gb300",
    "gb200": "gb200",
    "h200": "h200-141gb",
    "h100": "h100-80gb",
    "b300": "b300-270gb",
    "b200": "b200-180gb",
    "mi355x": "mi355x",
    "mi325x": "mi325x",
    "mi300x": "mi300x",
    "mi250x": "mi250x",
    "mi250": "mi250",
    "mi210": "mi210",
    "rtx-pro-6000": "rtx-pro-6000",
    "tesla-a100": "a100-40gb",
    "a100": "a100-80gb",
    "v100": "v100-16gb",
    "l40s": "l40s",
    "l40": "l40",
    "a40": "a40",
    "a30": "a30",
    "a10g": "a10g",
    "l4": "l4",
    "t4": "t4",
    "a10": "a10",
}
# Not the A40 in the name of an A4000.
_GPU_NAME = re.compile(rf"(?:{'|'.join(GPU_MODELS)})(?![0-9])")
_MEMORY = re.compile(r"(?<![0-9.])([0-9]{2,3})gb\b")


def find_gpu_model(text: str) -> str:
    """Return the model that a product's name means (NVIDIA-A100-PCIE-40GB: a100-40gb); empty for other texts.

    Memory that the name states goes before what its family usually has.
    """
    bare = text.lower()
    found = _GPU_NAME.search(bare)
    model = GPU_MODELS[found[0]] if found else ""
    stated = _MEMORY.search(bare)
    if stated and _MEMORY.search(model):
        return f"{model.partition('-')[0]}-{stated[0]}"
    return model
