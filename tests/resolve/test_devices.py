"""GPUs of two vendors, RDMA devices per worker, and launchers that reach their own host by SSH."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import plain, workspaces
from tests.workspaces import gangplan, write

SPEC = "specs/nlp/filings.yaml"
OURS = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
AMD = "  %s: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: mi300x, count: 8, resource: amd.com/gpu}, labels: {pool: amd}}\n"  # noqa: E501
FAST = f"{OURS}, rdma: {{resource: rdma/ib, count: 8}}"


def workspace(root: Path, spec: str, image: str = "", amd: str = "", ours: str = OURS) -> Path:
    """Create a workspace whose image has `image`, with an AMD pool named `amd` next to the stock ones."""
    cluster = workspaces.CLUSTER.replace(OURS, ours)
    if amd:
        cluster = cluster.replace("  cpu: {", AMD % amd + "  cpu: {")
    catalog = workspaces.CATALOG
    if image:
        catalog = catalog.replace('version: "5.0.8"}\n', f'version: "5.0.8"}}\n    {image}\n', 1)
    return write(root, {SPEC: spec, "overlays/lab/cluster.yaml": cluster, "images/catalog.yaml": catalog})


def limits(root: Path) -> dict[str, str]:
    """Return the limits of a worker's container."""
    for body in plain.load_all(workspaces.render(root, "-o", "-", SPEC).out):
        if body and body["kind"] == "TrainingRuntime":
            worker = body["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
            found: dict[str, str] = worker["spec"]["containers"][0]["resources"]["limits"]
            return found
    raise AssertionError("no runtime")


@pytest.mark.parametrize(
    ("image", "resource"),
    [('cuda: "12.8"', "nvidia.com/gpu"), ('rocm: "6.4"', "amd.com/gpu"), ("", "amd.com/gpu")],
)
def test_a_run_goes_to_the_vendor_of_its_image(image: str, resource: str, root: Path) -> None:
    """The AMD pool comes first; an image without a known vendor goes there."""
    assert resource in limits(workspace(root, workspaces.SPEC, image, "aaa"))


def test_a_pool_of_another_vendor_is_refused(root: Path) -> None:
    spec = workspaces.SPEC + "placement: {nodePool: amd}\n"
    outcome = gangplan("validate", "-C", workspace(root, spec, 'cuda: "12.8"', "amd"))
    (one,) = [one for one in outcome.findings if one.severity == "error"]
    assert (one.place, one.rule) == (f"{SPEC}:9:23", "pool-no-fit")
    assert "its GPUs are amd.com/gpu, and the image is built for CUDA" in one.message


@pytest.mark.parametrize(
    ("asked", "gpus", "count"),
    [
        *[("required", 1, 1), ("required", 2, 2), ("auto", 4, 4), ("required", 8, 8)],
        *[("4", 2, 4), ("all", 2, 8), ("8", 2, 8), ("per-gpu", 3, 3)],
    ],
)
def test_a_worker_gets_its_rdma_devices(asked: str, gpus: int, count: int, root: Path) -> None:
    """By default, its share of the node's devices equals its share of the GPUs."""
    spec = workspaces.SPEC.replace("gpus: 2", f"gpus: {gpus}") + f"network: {{rdma: {asked}}}\n"
    assert int(limits(workspace(root, spec, ours=FAST))["rdma/ib"]) == count


@pytest.mark.parametrize("asked", ["all", "2"])
def test_rdma_devices_that_no_pool_has_are_refused(asked: str, root: Path) -> None:
    spec = workspaces.SPEC + f"network: {{rdma: {asked}}}\n"
    outcome = gangplan("validate", "-C", workspace(root, spec))
    assert [(one.place, one.rule) for one in outcome.findings] == [(f"{SPEC}:9:17", "rdma-missing")]


@pytest.mark.parametrize("asked", ["0", "true", "some", "1.5"])
def test_an_invalid_number_of_rdma_devices_is_refused(asked: str, root: Path) -> None:
    spec = workspaces.SPEC + f"network: {{rdma: {asked}}}\n"
    outcome = gangplan("validate", "-C", workspace(root, spec, ours=FAST))
    assert {one.place for one in outcome.findings if one.severity == "error"} == {f"{SPEC}:9:17"}


@pytest.mark.parametrize(
    "command",
    ["[deepspeed, train.py]", "[/opt/bin/deepspeed, train.py]", '[bash, -c, "deepspeed train.py"]'],
)
@pytest.mark.parametrize("runs_ranks", [True, False])
def test_deepspeed_in_a_launcher_that_runs_ranks_is_refused(
    command: str, runs_ranks: bool, root: Path
) -> None:
    spec = workspaces.SPEC.replace("[python, train.py]", command).replace(
        "image: openmpi", "image: deepspeed"
    )
    spec += "launcher: {runsRanks: true}\n" if runs_ranks else ""
    outcome = gangplan("validate", "-C", workspace(root, spec))
    errors = [one.rule for one in outcome.findings if one.severity == "error"]
    assert errors == ["launcher-deepspeed"] * runs_ranks
