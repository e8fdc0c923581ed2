"""Amounts as people read them: no canonical text of Kubernetes, no bytes, no thousandths of a core."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit, is_gpu
from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.validate.run_hours import compute_maximum_run_hours

AMOUNTS = [
    ("memory", "36507222016", "34 GiB of memory", "34Gi"),
    ("memory", "409664Mi", "400.063 GiB of memory", "409664Mi"),
    ("memory", "1900Gi", "1900 GiB of memory", "1900Gi"),
    ("memory", "64Ti", "64 TiB of memory", "64Ti"),
    ("memory", "512Mi", "512 MiB of memory", "512Mi"),
    ("memory", "64G", "59.605 GiB of memory", "62500000Ki"),
    ("memory", "100", "100 bytes of memory", "100"),
    ("cpu", "186500m", "186.5 CPU", "186.5"),
    ("cpu", "800100m", "800.1 CPU", "800.1"),
    ("cpu", "1k", "1000 CPU", "1000"),
    ("cpu", "500m", "0.5 CPU", "0.5"),
    ("nvidia.com/gpu", "8", "8 GPUs", "8"),
    ("nvidia.com/gpu", "1", "1 GPU", "1"),
    ("amd.com/gpu", "1k", "1000 GPUs", "1000"),
    ("nvidia.com/mig-1g.10gb", "7", "7 MIG slices (1g.10gb)", "7"),
    ("rdma/hca", "2", "2 rdma/hca", "2"),
    ("ephemeral-storage", "1Ti", "1024 GiB of scratch disk", "1Ti"),
]


@pytest.mark.parametrize(("resource", "amount", "said", "pasted"), AMOUNTS)
def test_each_amount_has_a_text_to_read_and_one_to_paste(
    resource: str, amount: str, said: str, pasted: str
) -> None:
    quantity = parse_quantity(amount)
    exact = Fraction(quantity.nano, 10**9)
    assert format_with_unit(resource, quantity) == format_with_unit(resource, exact) == said
    assert said.startswith(format_amount(resource, quantity))
    assert format_for_spec(resource, quantity) == pasted
    assert parse_quantity(pasted) == quantity


GPUS = "nvidia.com/gpu nvidia.com/gpu.shared nvidia.com/mig-1g.10gb amd.com/gpu gpu.intel.com/xe a.b/gpu"
OTHERS = "cpu memory rdma/hca nvidia.com/hostdev ephemeral-storage example.com/gpus-of-others"


def test_resources_of_all_vendors_count_as_gpus() -> None:
    assert all(map(is_gpu, GPUS.split()))
    assert not any(map(is_gpu, OTHERS.split()))


@pytest.mark.parametrize("resource", GPUS.split())
def test_hours_are_gpu_hours_for_every_kind_of_gpu(resource: str) -> None:
    """Two workers have four of them each, for an hour."""
    box = {"name": "node", "resources": {"limits": {resource: "4", "cpu": "8"}}}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": [box]}}}}
    pod = {"name": "node", "template": job}
    runtime = {"kind": "TrainingRuntime", "spec": {"template": {"spec": {"replicatedJobs": [pod]}}}}
    run = {"spec": {"trainer": {"numNodes": 2}, "activeDeadlineSeconds": 3600}}
    bodies = {("TrainJob", "a", "x"): run, ("TrainingRuntime", "a", "x"): runtime}
    assert compute_maximum_run_hours(bodies, ("TrainJob", "a", "x")) == (8, "GPU")


def test_an_amount_too_small_to_show_is_not_zero() -> None:
    assert format_amount("memory", Quantity.of(1)) == "1 byte"
    assert format_amount("cpu", Quantity(-1_500_000_000)) == "-1.5"
