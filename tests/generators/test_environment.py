"""Variables that fields of the spec become: what each MPI reads, and which pod must see which devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.generators.test_laws import MPI, env_of, objects, roles

TCP = "network: {transport: tcp}"
OPEN_MPI = {"OMPI_MCA_pml": "ob1"}
NO_IB = {"NCCL_IB_DISABLE": "1"}
# Shared memory stays: over TCP alone, ranks of one worker would talk through the kernel's loopback.
TRANSPORTS = {
    "openmpi": {**OPEN_MPI, "OMPI_MCA_btl": "self,sm,tcp", **NO_IB},
    "openmpi4": {**OPEN_MPI, "OMPI_MCA_btl": "self,vader,tcp", **NO_IB},
    "mpich": {"FI_PROVIDER": "tcp", "UCX_TLS": "tcp,sm,self", **NO_IB},
    "intel": {"FI_PROVIDER": "tcp", **NO_IB},
}
NAMES = {name for variables in TRANSPORTS.values() for name in variables}


@pytest.mark.parametrize("image", TRANSPORTS)
def test_tcp_between_workers_keeps_shared_memory_inside_one(image: str, root: Path) -> None:
    env = env_of(roles(objects(root, image, TCP))["launcher"])
    assert {name: value for name, value in env.items() if name in NAMES} == TRANSPORTS[image]


@pytest.mark.parametrize("image", TRANSPORTS)
def test_without_the_field_the_mpi_chooses_its_transport(image: str, root: Path) -> None:
    assert not NAMES & set(env_of(roles(objects(root, image))["launcher"]))


# Devices. A dedicated launcher requests no GPU; with a CUDA image it would see all GPUs of its node.
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


@pytest.fixture
def only_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pool of plain nodes from the cluster, so that launchers run on GPU nodes."""
    pools = [line for line in workspaces.CLUSTER.splitlines() if not line.startswith("  cpu:")]
    monkeypatch.setattr(workspaces, "CLUSTER", "\n".join(pools) + "\n")


@pytest.mark.usefixtures("only_gpus")
@pytest.mark.parametrize("image", MPI)
def test_a_dedicated_launcher_on_a_gpu_node_sees_no_gpu(image: str, root: Path) -> None:
    found = roles(objects(root, image))
    assert env_of(found["launcher"])[VISIBLE] == "void"
    assert "nvidia.com/gpu" not in found["launcher"]["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.usefixtures("only_gpus")
@pytest.mark.parametrize("image", MPI)
def test_ranks_on_workers_do_not_inherit_the_hidden_gpus(image: str, root: Path) -> None:
    """Open MPI carries what `-x` names; Hydra carries everything, so its launcher unsets it first."""
    found = roles(objects(root, image))
    assert VISIBLE not in env_of(found["node"])
    assert env_of(found["launcher"])[VISIBLE] == "void"
    launcher = found["launcher"]["spec"]["containers"][0]
    assert not any(VISIBLE in word for word in launcher["args"])
    forgets = f"--unset={VISIBLE}" in launcher["command"]
    assert forgets == (image in ("mpich", "intel"))


@pytest.mark.parametrize("image", TRANSPORTS)
def test_a_launcher_that_runs_ranks_sees_its_gpus(image: str, root: Path) -> None:
    found = roles(objects(root, image, "launcher: {runsRanks: true}"))
    assert VISIBLE not in env_of(found["launcher"])
    command = found["launcher"]["spec"]["containers"][0]["command"]
    assert not any(VISIBLE in word for word in command)


@pytest.mark.usefixtures("only_gpus")
def test_a_variable_of_the_spec_overrides(root: Path) -> None:
    found = roles(objects(root, "openmpi", f"env: {{{VISIBLE}: none}}"))
    assert env_of(found["launcher"])[VISIBLE] == "none"
