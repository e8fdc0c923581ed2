"""GPUs by dynamic resource allocation: which versions allocate them, and where a run would wait forever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.resolve.test_workdir import pods, put
from tests.workspaces import gangplan

CLUSTER = "overlays/lab/cluster.yaml"
PLAIN = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
DYNAMIC = "gpu: {model: a100-80gb, count: 8, deviceClass: gpu.nvidia.com}, labels: {pool: a100}"
OTHER = "8, resource: other.com/gpu, deviceClass: gpu.other.com}"
SPOT = "gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}"


def offer(root: Path, kubernetes: str = "1.36.0", *changes: tuple[str, str]) -> None:
    """Create the small cluster whose pool a100 has GPUs of a device class."""
    text = workspaces.CLUSTER.replace('"1.34.4"', f'"{kubernetes}"').replace(PLAIN, DYNAMIC)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    workspaces.write(root, {CLUSTER: text})


def errors(root: Path) -> list[Any]:
    return [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]


def test_a_device_class_changes_no_pod(root: Path) -> None:
    """The class serves the resource, so a run is the same (tests/e2e/test_dra.py tries a scheduler)."""
    put(root, "")
    offer(root)
    assert errors(root) == []
    dynamic = pods(root)
    offer(root, "1.36.0", (DYNAMIC, PLAIN))
    assert pods(root) == dynamic
    assert dynamic["node"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "resourceClaims" not in dynamic["node"]


@pytest.mark.parametrize(
    ("kubernetes", "words"),
    [
        ("1.33.0", "Kubernetes 1.33 does not have DRAExtendedResource"),
        ("1.34.4", "Kubernetes 1.34 switches off DRAExtendedResource"),
        ("1.35.0", "Kubernetes 1.35 switches off DRAExtendedResource"),
        ("1.36.0", ""),
        ("1.37.0", ""),
    ],
)
def test_only_some_versions_allocate_device_classes(kubernetes: str, words: str, root: Path) -> None:
    offer(root, kubernetes)
    found = [one for one in errors(root) if one.rule == "device-class-version"]
    assert bool(found) == bool(words)
    assert all(words in one.message and one.help and one.place.startswith(CLUSTER) for one in found)


# Further changes of the cluster, and the broken rule.
CASES = {
    "one class of a resource": ((SPOT, SPOT.replace("8}", "8, deviceClass: gpu.nvidia.com}")), ""),
    "two classes of a resource": ((SPOT, SPOT.replace("8}", "8, deviceClass: b.com}")), "device-class-twice"),
    "two classes of two resources": (
        (SPOT, SPOT.replace("8}", OTHER)),
        "",
    ),
    "a pool next to it with a plugin": ((SPOT, SPOT), ""),
    "placed by topology": ((DYNAMIC, f"{DYNAMIC}, topology: true"), "device-class-unusable"),
    "of another scheduler": (("region:", "gang: volcano\nregion:"), "device-class-unusable"),
    "without gangs": (("region:", "gang: none\nenvironment: dev\nregion:"), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_device_class_is_refused_where_nothing_allocates_it(name: str, root: Path) -> None:
    change, rule = CASES[name]
    offer(root, "1.36.0", change)
    found = {one.rule for one in errors(root) if one.rule.startswith("device-class")}
    assert found == ({rule} if rule else set())


def test_a_pool_with_a_device_class_needs_no_gpu_operator(root: Path) -> None:
    """NVIDIA's GPU operator brings the device plugin, which such a pool does not need."""
    gpus = ', gpuOperator: "25.10.0"', ""
    offer(root, "1.36.0", gpus, (SPOT, "labels: {pool: spot}"))
    assert "gpu-operator-unstated" not in {one.rule for one in gangplan("validate", "-C", root).findings}
    offer(root, "1.36.0", gpus)
    assert "gpu-operator-unstated" in {one.rule for one in gangplan("validate", "-C", root).findings}


def test_more_devices_than_a_node_has_are_refused(root: Path) -> None:
    """Devices are counted as for a device plugin: the class's own selectors are ignored."""
    offer(root)
    put(root, "")
    spec = root / "specs/nlp/filings.yaml"
    workspaces.write(root, {"specs/nlp/filings.yaml": spec.read_text().replace("gpus: 2", "gpus: 9")})
    (found,) = errors(root)
    assert "8 GPUs" in found.message + found.help


def test_a_claim_in_a_spec_is_refused_with_a_help(root: Path) -> None:
    put(root, "resourceClaims: [gpu]\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert "deviceClass" in found.help
