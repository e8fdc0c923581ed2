"""Interface variables of a pool's fabric: which families and names, and how they reach the ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import plain, workspaces
from tests.workspaces import render, write

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
OURS = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
CARDS = "[{resource: rdma/a, count: 1, network: f/a, interface: net1, hcas: [mlx5_0]}, {resource: rdma/b, count: 1, network: f/b, interface: net2, hcas: ['mlx5_1:2']}]"
NCCL = {"NCCL_IB_HCA": "=mlx5_0,mlx5_1:2", "NCCL_SOCKET_IFNAME": "=net1,net2"}
UCX = {"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:2"}
BTL = {"OMPI_MCA_btl_tcp_if_include": "net1,net2"}
FIVE, FOUR = {"PRTE_MCA_prte_if_include": "eth0"}, {"OMPI_MCA_oob_tcp_if_include": "eth0"}
TCP = {"FI_TCP_IFACE": "net1"}
NAMES = {*TCP, *NCCL, *UCX, *BTL, *FIVE, *FOUR, "GLOO_SOCKET_IFNAME"}


def rendered(
    root: Path,
    image: str,
    rdma: str = CARDS,
    extra: str = "",
    network: str = "{rdma: required}",
    gpus: int = 8,
    command: str = "[python, train.py]",
) -> tuple[dict[str, str], list[str]]:
    """Return the variables of the fabric where ranks are started, and the command there."""
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}").replace("gpus: 2", f"gpus: {gpus}")
    spec = (
        spec.replace("[python, train.py]", command)
        + f"network: {network}\nplacement: {{nodePool: a100}}\n{extra}"
    )
    if image == "intel":
        spec += "mpi: {licenseAcknowledged: true}\n"
    cluster = workspaces.CLUSTER.replace(OURS, f"{OURS}, rdma: {rdma}", 1)
    outcome = render(write(root, {SPEC: spec, CLUSTER: cluster}), "-o", "-", SPEC)
    for body in plain.load_all(outcome.out):
        if body and body["kind"] == "TrainingRuntime":
            jobs = body["spec"]["template"]["spec"]["replicatedJobs"]
            (container,) = jobs[-1]["template"]["spec"]["template"]["spec"]["containers"]
            env = [(one["name"], one.get("value", "")) for one in container["env"]]
            assert len(dict(env)) == len(env)
            words = [*container.get("command", []), *container.get("args", [])]
            return {name: value for name, value in env if name in NAMES | {"NCCL_IB_DISABLE"}}, words
    raise AssertionError(outcome.err)


def carried(words: list[str]) -> set[str]:
    """Return the variables that mpirun carries to the ranks."""
    return {words[at + 1] for at, word in enumerate(words) if word == "-x"} & (NAMES | {"NCCL_IB_DISABLE"})


@pytest.mark.parametrize(
    ("image", "env"),
    [
        ("openmpi", NCCL | UCX | BTL | FIVE),
        ("openmpi4", NCCL | UCX | BTL | FOUR),
        ("horovod", NCCL | UCX | BTL | FOUR),
        ("intel", NCCL | UCX | TCP),
        ("mpich", NCCL | UCX | TCP),
        ("pytorch", NCCL),
    ],
)
def test_cards_and_interfaces_reach_the_ranks(image: str, env: dict[str, str], root: Path) -> None:
    """Open MPI carries its own parameters and needs -x for others; Hydra carries all; torch has them in its pods."""
    found, words = rendered(root, image)
    assert found == env
    is_open_mpi = image in ("openmpi", "openmpi4", "horovod")
    assert carried(words) == ({*NCCL, *UCX} if is_open_mpi else set())


@pytest.mark.parametrize(
    ("rdma", "env"),
    [
        ("{resource: rdma/ib, count: 8}", {}),  # nothing is known, and the pod has no other interface
        ("{resource: rdma/ib, count: 8, network: f/ib}", {"NCCL_SOCKET_IFNAME": "=eth0", "OMPI_MCA_btl_tcp_if_include": "eth0", **FIVE}),
        ("{resource: rdma/ib, count: 8, hcas: [mlx5_0]}", {"NCCL_IB_HCA": "=mlx5_0", "UCX_NET_DEVICES": "mlx5_0:1"}),
    ],
)  # fmt: skip
def test_only_facts_of_the_pool_become_variables(rdma: str, env: dict[str, str], root: Path) -> None:
    """An interface must never be in UCX_NET_DEVICES: alone there it would mean TCP."""
    assert rendered(root, "openmpi", rdma)[0] == env


def test_without_rdma_there_are_no_variables(root: Path) -> None:
    assert rendered(root, "openmpi", network='{rdma: "off"}')[0] == {}


def test_without_gpus_there_are_no_nccl_variables(root: Path) -> None:
    assert rendered(root, "openmpi", gpus=0)[0] == UCX | BTL | FIVE


@pytest.mark.parametrize("image", ["openmpi", "intel", "pytorch"])
def test_the_users_own_variables_override(image: str, root: Path) -> None:
    found, words = rendered(root, image, extra="env: {NCCL_IB_HCA: mlx5_7, NCCL_SOCKET_IFNAME: eth}\n")
    assert (found["NCCL_IB_HCA"], found["NCCL_SOCKET_IFNAME"]) == ("mlx5_7", "eth")
    assert words.count("NCCL_IB_HCA") == (image == "openmpi")


def test_a_variable_among_the_options_of_mpirun_is_carried_once(root: Path) -> None:
    _, words = rendered(root, "openmpi", extra='mpi: {flags: [-x, "UCX_NET_DEVICES=mlx5_9:1"]}\n')
    assert [word for word in words if "UCX_NET_DEVICES" in word] == ["UCX_NET_DEVICES=mlx5_9:1"]


@pytest.mark.parametrize(
    ("extra", "left_out"),
    [
        ("mpi: {flags: [--mca, btl_tcp_if_exclude, net1]}\n", BTL),
        ("env: {PRTE_MCA_prte_if_exclude: net1}\n", FIVE),
    ],
)
def test_interfaces_are_not_named_where_the_user_excludes_some(
    extra: str, left_out: dict[str, str], root: Path
) -> None:
    """Open MPI ends a run if both lists, interfaces to use and interfaces to exclude, are set."""
    found, _ = rendered(root, "openmpi", extra=extra)
    assert not left_out.items() & found.items()
    assert (BTL | FIVE).items() - left_out.items() <= found.items()


def test_a_kept_mpirun_carries_the_variables_too(root: Path) -> None:
    spec = "[mpirun, -np, '32', python, train.py]"
    found, words = rendered(root, "openmpi", command=spec)
    assert found == NCCL | UCX | BTL | FIVE
    assert carried(words) == {*NCCL, *UCX}


def test_nccl_ib_disable_is_carried_to_the_ranks(root: Path) -> None:
    """A quantity is read exactly, rounded away from zero to billionths; its text is read as itself."""
    found, words = rendered(root, "openmpi", network="{transport: tcp}")
    assert found == {"NCCL_IB_DISABLE": "1"}
    assert carried(words) == {"NCCL_IB_DISABLE"}
