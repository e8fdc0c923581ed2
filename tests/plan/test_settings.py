"""Variables and options, compared with what the plan provides, wherever they are set: 4 workers of 2 GPUs."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.findings import Problem
from gangplan.model.fabric import FabricAccess, WorkerFabric
from gangplan.model.job import Egress, EnvVar, ResolvedRole
from gangplan.plan.others import check_role_and_step_commands
from tests import plain, workspaces
from tests.plan.asking import job_of, problems

OURS = {"interface-unknown", "gpus-unasked", "gpus-hidden", "rank-constant", "command-rendezvous",
        "command-unset", "command-downloads", "transport-unavailable",
        "binding-shared"}  # fmt: skip

# image | how it is written | rule, or nothing
# A line of env is NAME=value; `flags` are those of mpi.flags; anything else is the command.
TABLE = r"""
pytorch    | env NCCL_SOCKET_IFNAME=eno1                  | interface-unknown
pytorch    | env NCCL_SOCKET_IFNAME=lo                    | interface-unknown
pytorch    | bash -c 'export NCCL_SOCKET_IFNAME=lo; torchrun t.py' | interface-unknown
pytorch    | env GLOO_SOCKET_IFNAME=lo                    | interface-unknown
pytorch    | env NCCL_SOCKET_IFNAME=lo,eth0               |
openmpi    | env OMPI_MCA_btl_tcp_if_include=lo           |
pytorch    | env NCCL_SOCKET_IFNAME==eth0                 |
pytorch    | env NCCL_SOCKET_IFNAME=eth                   |
pytorch    | env NCCL_SOCKET_IFNAME==eth                  | interface-unknown
pytorch    | env NCCL_SOCKET_IFNAME=ib0,eth0              |
pytorch    | env NCCL_SOCKET_IFNAME=^docker0,lo           |
pytorch    | env NCCL_SOCKET_IFNAME=^eth                  | interface-unknown
pytorch    | env NCCL_SOCKET_IFNAME=^=eth                 |
pytorch    | env RCCL_SOCKET_IFNAME=ens1f0                | interface-unknown
pytorch    | env GLOO_SOCKET_IFNAME=ib0                   | interface-unknown
pytorch    | env GLOO_SOCKET_IFNAME=eth0                  |
pytorch    | env TP_SOCKET_IFNAME=bond0                   | interface-unknown
horovod    | env HOROVOD_GLOO_IFACE=ens5                  | interface-unknown
openmpi    | env UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1        |
openmpi    | env UCX_NET_DEVICES=all                      |
openmpi    | env UCX_NET_DEVICES=ib0                      | interface-unknown
openmpi    | env OMPI_MCA_btl_tcp_if_include=10.0.0.0/8   |
openmpi    | env OMPI_MCA_btl_tcp_if_include=ens5         | interface-unknown
openmpi    | env OMPI_MCA_btl_tcp_if_exclude=lo,docker0   |
openmpi    | env OMPI_MCA_btl_tcp_if_exclude=lo,eth0      | interface-unknown
openmpi    | flags --mca btl_tcp_if_include ens5          | interface-unknown
openmpi    | flags --mca btl_tcp_if_include eth0          |
openmpi    | flags -x NCCL_SOCKET_IFNAME=eno1             | interface-unknown
openmpi    | flags -x NCCL_SOCKET_IFNAME                  |
mpich      | env HYDRA_IFACE=ens5                         | interface-unknown
mpich      | env FI_TCP_IFACE=ib0                         | interface-unknown
openmpi    | mpirun --mca btl_tcp_if_include ib0 python t.py   | interface-unknown
openmpi    | mpirun -x GLOO_SOCKET_IFNAME=ens5 python t.py     | interface-unknown
horovod    | horovodrun -np 8 --network-interfaces ens5 python t.py  | interface-unknown
horovod    | horovodrun -np 8 --network-interface=lo,ens5 python t.py | interface-unknown
horovod    | horovodrun -np 8 --network-interface eth0 python t.py   |
horovod    | horovodrun -np 8 --mpi-args='--mca btl_tcp_if_include ens5' python t.py | interface-unknown
horovod    | horovodrun -np 8 --mpi-args='-mca btl_tcp_if_include eth0 -mca btl ^openib' python t.py |
mpich      | flags -iface ens5                            | interface-unknown
mpich      | flags -iface eth0                            |
pytorch    | env NCCL_SOCKET_IFNAME=eno1 python t.py      | interface-unknown
pytorch    | bash -c 'NCCL_SOCKET_IFNAME=eno1 python t.py'     | interface-unknown
pytorch    | bash -c 'export NCCL_SOCKET_IFNAME=eno1; python t.py' | interface-unknown
pytorch    | bash -c 'NCCL_SOCKET_IFNAME=$(first) python t.py' |

openmpi    | env OMPI_MCA_btl=self,sm                     | transport-unavailable
openmpi4   | env OMPI_MCA_btl=self,vader,openib           | transport-unavailable
openmpi    | env OMPI_MCA_btl=self,vader,tcp              |
openmpi    | env OMPI_MCA_btl=^tcp                        | transport-unavailable
openmpi    | env OMPI_MCA_btl=^openib                     |
openmpi    | env OMPI_MCA_btl_base_verbose=0              |
openmpi    | env OMPI_MCA_pml=ob1                         |
openmpi    | env OMPI_MCA_pml=ucx                         |
openmpi    | flags --mca btl self,vader,openib            | transport-unavailable
openmpi    | flags --mca pml ob1 --mca btl self,sm        | transport-unavailable
openmpi    | flags --mca pml ucx --mca btl ^tcp           |
openmpi    | flags --mca pml cm --mca mtl psm2            | transport-unavailable
openmpi    | flags --mca pml cm --mca mtl ofi             |
openmpi    | mpirun --mca btl ^tcp python t.py            | transport-unavailable
openmpi    | mpirun --mca btl ^uct python t.py            |
openmpi    | bash -c 'export OMPI_MCA_btl=self,sm; python t.py' | transport-unavailable
openmpi    | env I_MPI_FABRICS=shm                        |
openmpi    | env UCX_TLS=rc,self,sm                       |
mpich      | env OMPI_MCA_btl=self,sm                     |
pytorch    | env OMPI_MCA_btl=self,sm                     |
intel      | env I_MPI_FABRICS=shm                        | transport-unavailable
intel      | env I_MPI_FABRICS=shm:ofi                    |
intel      | env FI_PROVIDER=mlx                          | transport-unavailable
intel      | env FI_PROVIDER=psm3                         |
mpich      | env FI_PROVIDER=verbs;ofi_rxm                | transport-unavailable
mpich      | env FI_PROVIDER=verbs,tcp                    |
mpich      | env FI_PROVIDER=tcp;ofi_rxm                  |
mpich      | env FI_PROVIDER=^verbs                       |
mpich      | env FI_PROVIDER=shm                          | transport-unavailable
mpich      | env UCX_TLS=rc,self,sm                       | transport-unavailable
mpich      | env UCX_TLS=tcp,sm,self                      |
mpich      | env UCX_TLS=all                              |
mpich      | env UCX_TLS=^rc                              |
pytorch    | env FI_PROVIDER=efa                          |
pytorch    | env NCCL_NET=IB                              | transport-unavailable
pytorch    | env NCCL_NET=Socket                          |
pytorch    | bash -c 'NCCL_NET="AWS Libfabric" python t.py' | transport-unavailable
pytorch    | env NCCL_IB_DISABLE=1                        |

openmpi    | env OMP_PROC_BIND=close                      | binding-shared
openmpi    | env OMP_PROC_BIND=false                      |
openmpi    | env OMP_PLACES=cores                         | binding-shared
openmpi    | env OMP_NUM_THREADS=4                        |
openmpi    | env GOMP_CPU_AFFINITY=0-3                    | binding-shared
intel      | env KMP_AFFINITY=granularity=fine,compact    | binding-shared
intel      | env KMP_AFFINITY=verbose,none                |
intel      | env KMP_AFFINITY=granularity=fine            |
pytorch    | env OMP_PROC_BIND=true                       | binding-shared
openmpi    | mpirun -x OMP_PROC_BIND=close ./a            | binding-shared
openmpi    | mpirun --bind-to none -x OMP_PROC_BIND=close ./a | binding-shared
openmpi    | mpirun --bind-to core -x OMP_PROC_BIND=close ./a |
openmpi    | mpirun --map-by slot:PE=4 --bind-to core -x OMP_PROC_BIND=close ./a |
openmpi    | flags --map-by slot:PE=4 --bind-to core -x OMP_PLACES=cores |
openmpi    | bash -c 'OMP_PROC_BIND=spread numactl --localalloc ./a' |
intel      | mpirun -genv I_MPI_PIN_DOMAIN omp -genv OMP_PROC_BIND close ./a |
openmpi    | bash -c 'OMP_PROC_BIND=false OMP_PLACES=cores ./a' |

pytorch    | env NVIDIA_VISIBLE_DEVICES=all               | gpus-unasked
pytorch    | env NVIDIA_VISIBLE_DEVICES=0,1               | gpus-unasked
pytorch    | env NVIDIA_VISIBLE_DEVICES=void              | gpus-hidden
pytorch    | env NVIDIA_DRIVER_CAPABILITIES=all           |
pytorch    | bash -c 'NVIDIA_VISIBLE_DEVICES=all python t.py'  |

pytorch    | env CUDA_VISIBLE_DEVICES=0                   | gpus-hidden
pytorch    | env CUDA_VISIBLE_DEVICES=0,1                 |
pytorch    | env CUDA_VISIBLE_DEVICES=1,0                 |
pytorch    | env CUDA_VISIBLE_DEVICES=0,0                 | gpus-hidden
pytorch    | env CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7     | gpus-hidden
pytorch    | env CUDA_VISIBLE_DEVICES=                    | gpus-hidden
pytorch    | env CUDA_VISIBLE_DEVICES=-1                  | gpus-hidden
pytorch    | env CUDA_VISIBLE_DEVICES=GPU-8932f937        |
pytorch    | env ROCR_VISIBLE_DEVICES=1                   | gpus-hidden
openmpi    | flags -x CUDA_VISIBLE_DEVICES=0              | gpus-hidden
openmpi    | bash -c 'CUDA_VISIBLE_DEVICES=0 python t.py' | gpus-hidden
openmpi    | bash -c 'exec env CUDA_VISIBLE_DEVICES=0 python t.py' | gpus-hidden
openmpi    | bash -c 'command env CUDA_VISIBLE_DEVICES=0 python t.py' | gpus-hidden
openmpi    | bash -c 'exec python t.py CUDA_VISIBLE_DEVICES=0' |
openmpi    | bash -c 'exec'                               |
openmpi    | bash -c 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK python t.py' |
pytorch    | env CUDA_DEVICE_MAX_CONNECTIONS=1            |

deepspeed  | env RANK=0                                   | rank-constant
deepspeed  | env LOCAL_RANK=0                             | rank-constant
deepspeed  | env WORLD_SIZE=1                             | rank-constant
deepspeed  | env WORLD_SIZE=8                             |
deepspeed  | env RANK=rank0                               |
deepspeed  | env RANK=64                                  |
deepspeed  | env RANK=0 WORLD_SIZE=1                      | rank-constant
deepspeed  | bash -c 'RANK=0'                             | rank-constant
pytorch    | env                                          |
deepspeed  | env RANKS=1                                  |
pytorch    | env RANK=0                                   |
pytorch    | bash -c 'RANK=0 WORLD_SIZE=1 python t.py'    | rank-constant
pytorch    | env RANK=0 python t.py                       | rank-constant
pytorch    | bash -c 'RANK=0 torchrun t.py'               |
deepspeed  | bash -c 'export MASTER_ADDR=localhost; python t.py' | command-rendezvous
deepspeed  | env MASTER_ADDR=127.0.0.1 python t.py        | command-rendezvous
deepspeed  | env MASTER_ADDR=tracker.example.com          |

pytorch    | bash -c 'torchrun --master-port=$MASTER_PORT t.py'           | command-unset
pytorch    | bash -c 'torchrun --master_port $MASTER_PORT t.py'           | command-unset
pytorch    | bash -c 'torchrun --master-port=${MASTER_PORT:-29500} t.py'  |
pytorch    | bash -c 'torchrun --master-port=$PET_MASTER_PORT t.py'       |
pytorch    | bash -c 'MASTER_PORT=1; torchrun --master-port=$MASTER_PORT t.py' |
pytorch    | bash -c 'torchrun --max-restarts=$SLURM_RESTART_COUNT t.py'  | command-unset
pytorch    | bash -c 'torchrun --max-restarts=$RESTARTS t.py'             |
deepspeed  | bash -c 'deepspeed --master_port $MASTER_PORT t.py'          | command-unset

openmpi    | bash -c 'pip install wandb && python t.py'   | command-downloads
openmpi    | bash -c 'python3 -m pip install -r r.txt; python t.py' | command-downloads
openmpi    | bash -c 'conda install -y faiss; python t.py'          | command-downloads
openmpi    | bash -c 'apt-get update && python t.py'                | command-downloads
openmpi    | bash -c 'git clone https://example.com/x && python t.py' | command-downloads
openmpi    | bash -c 'hf download org/model; python t.py'           | command-downloads
openmpi    | bash -c 'curl -LO https://example.com/x; python t.py'  | command-downloads
openmpi    | bash -c 'wget -q http://example.com/x; python t.py'    | command-downloads
openmpi    | bash -c 'uv sync && python t.py'                       | command-downloads
openmpi    | bash -c 'pip install --no-deps -e . && python t.py'    |
openmpi    | bash -c 'pip list && python t.py'                      |
openmpi    | bash -c 'uv pip list && python t.py'                   |
openmpi    | bash -c 'uv pip install x && python t.py'              | command-downloads
openmpi    | bash -c 'conda env list && python t.py'                |
openmpi    | bash -c 'conda env update -f e.yml && python t.py'     | command-downloads
openmpi    | bash -c 'git clone /data/code && python t.py'          |
openmpi    | bash -c 'git clone git@example.com:x && python t.py'   | command-downloads
openmpi    | bash -c 'uv sync --offline && python t.py'             |
openmpi    | bash -c 'git log; python t.py'                         |
openmpi    | bash -c 'curl -s localhost:9090/metrics; python t.py'  |
openmpi    | bash -c 'curl http://store.nlp.svc/x; python t.py'     |
openmpi    | bash -c 'curl "$URL"; python t.py'                     |
openmpi    | bash -c 'aws s3 cp s3://bucket/x /data; python t.py'   | command-downloads
openmpi    | bash -c 'aws --endpoint-url http://minio.store.svc:9000 s3 cp s3://b/x /data; python t.py' |
openmpi    | bash -c 'aws --version; python t.py'                   |
openmpi    | bash -c 'aws s3 sync $SOURCE /data; python t.py'       |
openmpi    | bash -c 'gsutil -m cp -r gs://bucket/x /data && python t.py' | command-downloads
openmpi    | bash -c 'gcloud storage cp gs://bucket/x /data && python t.py' | command-downloads
openmpi    | bash -c 's5cmd cp "s3://bucket/*" /data && python t.py' | command-downloads
openmpi    | bash -c 'python t.py && azcopy copy /data/out https://a.blob.core.windows.net/x' | command-downloads
openmpi    | bash -c 'rclone copy lake:bucket/x /data && python t.py' | command-downloads
openmpi    | bash -c 'rclone copy /data/x /tmp && python t.py'      |
openmpi    | bash -c 'wandb agent org/project/abc'                  | command-downloads
openmpi    | bash -c 'wandb offline; python t.py'                   |
openmpi    | bash -c 'dvc pull && python t.py'                      | command-downloads
"""
CASES = [tuple(map(str.strip, line.split("|"))) for line in TABLE.splitlines() if line]


def judged(root: Path, image: str, written: str) -> tuple[Problem, ...]:
    """Return the problems of a line of the table."""
    words = shlex.split(written)
    if len(words) == 2 and words[0] == "env":
        name, _, value = words[1].partition("=")
        return problems(root, image, ["python", "t.py"], env=(EnvVar(name, value),))
    if words[0] == "flags":
        return problems(root, image, ["python", "t.py"], mpi_flags=tuple(words[1:]))
    return problems(root, image, words)


@pytest.mark.parametrize(("image", "written", "rule"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_each_setting_breaks_the_rule_listed_or_none(image: str, written: str, rule: str, root: Path) -> None:
    found = [one for one in judged(root, image, written) if one.rule in OURS]
    assert {str(one.rule) for one in found} == {rule} - {""}
    place = {"env": "env", "flags": "mpi"}.get(written.split()[0], "command")
    if place == "env" and len(shlex.split(written)) > 2:
        place = "command"
    assert all(one.path[0] == place for one in found)


@pytest.mark.parametrize(("image", "written", "rule"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_a_proposed_command_has_no_problems(image: str, written: str, rule: str, root: Path) -> None:
    for one in judged(root, image, written):
        if found := re.search(r"Write command: (\[.*\])\.$", one.help):
            command = plain.load(found[1])
            assert problems(root, image, command) == ()


def test_the_proposed_command_removes_every_wrong_variable(root: Path) -> None:
    script = "export RANK=0; MASTER_ADDR=localhost WORLD_SIZE=1 SEED=1 python t.py"
    found = problems(root, "deepspeed", ["bash", "-c", script])
    assert {one.help for one in found} == {"Remove it. Write command: [bash, -c, 'SEED=1 python t.py']."}


def test_an_option_is_named_as_it_is_written(root: Path) -> None:
    (one,) = judged(root, "openmpi", "flags --mca btl_tcp_if_include ens5")
    assert one.message == (
        "btl_tcp_if_include names ens5, but pods of this run have eth0; ens5 is a name on the node"
    )


@pytest.mark.parametrize(
    ("fabric", "value", "is_wrong"),
    [
        (WorkerFabric(networks=("default/ib",)), "net1", False),
        (WorkerFabric(networks=("default/ib",)), "net2", True),
        (WorkerFabric(networks=("default/ib",), interfaces=("rail0",)), "rail0", False),
        (WorkerFabric(access=FabricAccess(host_network=True)), "eno1", False),
    ],
    ids=["attached", "not attached", "named by the pool", "the node's own"],
)
def test_interfaces_are_those_of_the_fabric(
    fabric: WorkerFabric, value: str, is_wrong: bool, root: Path
) -> None:
    env = (EnvVar("GLOO_SOCKET_IFNAME", value),)
    found = problems(root, "pytorch", ["python", "t.py"], env=env, fabric=fabric)
    assert bool([one for one in found if one.rule == "interface-unknown"]) is is_wrong


@pytest.mark.parametrize("other", [{"slots": 1}, {"bind_to": "core"}], ids=["one rank", "bound"])
def test_threads_of_a_rank_with_cores_of_its_own_may_be_bound(other: dict[str, Any], root: Path) -> None:
    env = (EnvVar("OMP_PROC_BIND", "close"), EnvVar("OMP_PLACES", "cores"))
    assert problems(root, "openmpi", ["./a"], env=env, **other) == ()


def test_bound_threads_are_reported_once_with_a_binding_of_ranks(root: Path) -> None:
    env = (EnvVar("OMP_PROC_BIND", "close"), EnvVar("OMP_PLACES", "cores"))
    (found,) = problems(root, "openmpi", ["./a"], env=env)
    assert found.path == ("env", "OMP_PROC_BIND")
    assert "--map-by slot:PE=4 --bind-to core" in found.help
    flags = ("--map-by", "slot:PE=4", "--bind-to", "core")
    assert problems(root, "openmpi", ["./a"], env=env, mpi_flags=flags) == ()


FABRIC: dict[str, Any] = {"fabric": WorkerFabric(resources=("rdma/ib",))}


@pytest.mark.parametrize(
    "other",
    [
        FABRIC,
        {"fabric": WorkerFabric(access=FabricAccess(name="efa"))},
        {"workers": 1},
        {"gpus": 0},
    ],
    ids=["devices", "a fabric", "one host", "no GPUs"],
)
def test_devices_of_a_fabric_carry_what_needs_them(other: dict[str, Any], root: Path) -> None:
    env = (EnvVar("NCCL_NET", "IB"),)
    found = problems(root, "pytorch", ["python", "t.py"], env=env, **other)
    assert [one for one in found if one.rule == "transport-unavailable"] == []


def test_shared_memory_ends_at_the_host_with_devices_too(root: Path) -> None:
    env = (EnvVar("I_MPI_FABRICS", "shm"),)
    assert [one.rule for one in problems(root, "intel", ["./a"], env=env, **FABRIC)] == [
        "transport-unavailable"
    ]


@pytest.mark.parametrize(("more", "is_wrong"), [("", True), (" --mca pml_ucx_tls any", False)])
def test_ucx_needs_devices_unless_any_will_do(more: str, is_wrong: bool, root: Path) -> None:
    flags = ("--mca", "pml", "ucx", *more.split())
    found = problems(root, "openmpi", ["./a"], mpi_flags=flags, gpus=0)
    assert [one.rule for one in found] == ["transport-unavailable"] * is_wrong


@pytest.mark.parametrize(
    ("image", "written", "gpus", "is_wrong"),
    [
        ("pytorch", "NCCL_IB_DISABLE=1", 2, True),
        ("pytorch", "NCCL_IB_DISABLE=0", 2, False),
        ("pytorch", "NCCL_NET=Socket", 2, True),
        ("pytorch", "NCCL_NET=IB", 2, False),
        ("pytorch", "NCCL_IB_DISABLE=1", 0, False),
        ("horovod", "NCCL_IB_DISABLE=1", 2, True),
        ("openmpi", "NCCL_IB_DISABLE=1", 2, False),
        ("openmpi4", "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp", 0, True),
        ("openmpi4", "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp", 2, False),
        ("openmpi4", "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp NCCL_NET=socket", 2, True),
        ("openmpi4", "OMPI_MCA_pml=ob1 OMPI_MCA_btl=^openib", 0, False),
        ("openmpi4", "OMPI_MCA_btl=self,vader,tcp", 0, False),
        ("openmpi4", "OMPI_MCA_pml=ucx", 0, False),
        ("mpich", "FI_PROVIDER=tcp", 0, True),
        ("mpich", "FI_PROVIDER=tcp,verbs", 0, False),
        ("mpich", "FI_PROVIDER=^tcp", 0, False),
    ],
)
def test_devices_that_no_traffic_uses_are_reported(
    image: str, written: str, gpus: int, is_wrong: bool, root: Path
) -> None:
    env = tuple(EnvVar(*one.split("=", 1)) for one in written.split())
    found = problems(root, image, ["./a"], env=env, gpus=gpus, **FABRIC)
    assert [one.rule for one in found] == ["rdma-unused"] * is_wrong
    assert [one.rule for one in problems(root, image, ["./a"], env=env, gpus=gpus)].count("rdma-unused") == 0


def test_libraries_of_a_fabric_do_without_infiniband(root: Path) -> None:
    fabric = WorkerFabric(resources=("vpc.amazonaws.com/efa",), access=FabricAccess(name="efa"))
    env = (EnvVar("NCCL_IB_DISABLE", "1"),)
    assert problems(root, "pytorch", ["python", "t.py"], env=env, fabric=fabric) == ()


@pytest.mark.parametrize(("name", "is_told"), [("internet", False), ("s3", True)])
def test_downloads_that_the_egress_allows_are_not_reported(name: str, is_told: bool, root: Path) -> None:
    words = ["bash", "-c", "pip install wandb && python t.py"]
    found = problems(root, "openmpi", words, egress=(Egress(name, "0.0.0.0/0", (), (443,)),))
    assert bool([one for one in found if one.rule == "command-downloads"]) is is_told


def test_rank_0_is_right_for_a_single_rank(root: Path) -> None:
    found = problems(root, "deepspeed", ["python", "t.py"], workers=1, slots=1, env=(EnvVar("RANK", "0"),))
    assert [one for one in found if one.rule == "rank-constant"] == []


WORDS = st.sampled_from(
    ["env", "RANK=0", "CUDA_VISIBLE_DEVICES=0", "A=1", "-u", "A", "timeout", "9", "bash", "-c", "python", "t.py",
     "", "export RANK=0", "RANK=0", "export A=1 RANK=0; python t.py", "MASTER_ADDR=localhost", "mpirun", "-x"]
)  # fmt: skip


@given(image=st.sampled_from(["pytorch", "deepspeed"]), words=st.lists(WORDS, min_size=1, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_command_fails_the_check_and_proposals_remove_the_settings(
    image: str, words: list[str], root: Path
) -> None:
    """A command to paste has none of the settings that it is to remove."""
    for one in problems(root, image, words):
        found = re.search(r"Write command: (\[.*\])\.$", one.help)
        if one.rule in ("rank-constant", "gpus-hidden") and found:
            left = {str(each.rule) for each in problems(root, image, plain.load(found[1]))}
            assert str(one.rule) not in left


@pytest.mark.parametrize(("devices", "is_told"), [((), False), ((("nvidia.com/gpu", 2),), True)])
def test_a_role_without_gpus_hides_none(
    devices: tuple[tuple[str, int], ...], is_told: bool, root: Path
) -> None:
    job = job_of(root, "pytorch")
    amounts = dataclasses.replace(job.resources, devices=devices)
    argv = ("env", "CUDA_VISIBLE_DEVICES=0", "python", "load.py")
    role = ResolvedRole("loader", 1, job.image.name, argv, (), amounts, job.worker_pool)
    found = check_role_and_step_commands(dataclasses.replace(job, roles=(role,)))
    assert bool([one for one in found if one.rule == "gpus-hidden"]) is is_told


# Where a variable is set, with 2 GPUs for a loader | the variable | rule, or nothing
BESIDE = """
setup: [{command: [python, a.py], env: {%s}}]    | NVIDIA_VISIBLE_DEVICES: all     | gpus-unasked
setup: [{command: [python, a.py], env: {%s}}]    | NVIDIA_VISIBLE_DEVICES: void    |
sidecars: [{command: [python, a.py], env: {%s}}] | NVIDIA_VISIBLE_DEVICES: "0"     | gpus-unasked
sidecars: [{command: [python, a.py], env: {%s}}] | CUDA_VISIBLE_DEVICES: ""        |
sidecars: [{command: [python, a.py], env: {%s}}] | GLOO_SOCKET_IFNAME: ens5        | interface-unknown
steps: [{command: [python, a.py], env: {%s}}]    | NVIDIA_VISIBLE_DEVICES: all     | gpus-unasked
steps: [{command: [python, a.py], env: {%s}}]    | RANK: "0"                       |
steps: [{command: [python, a.py], env: {%s}}]    | MASTER_ADDR: localhost          |
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | NVIDIA_VISIBLE_DEVICES: all     | gpus-unasked
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | NVIDIA_VISIBLE_DEVICES: void    | gpus-hidden
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | CUDA_VISIBLE_DEVICES: "0"       | gpus-hidden
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | CUDA_VISIBLE_DEVICES: "0,1"     |
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | CUDA_VISIBLE_DEVICES: "0,1,2,3" | gpus-hidden
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | NCCL_SOCKET_IFNAME: eno1        | interface-unknown
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | NCCL_SOCKET_IFNAME: eth0        |
framework: plain, roles: {loader: {env: {%s}}}                     | CUDA_VISIBLE_DEVICES: "0"       |
framework: plain, roles: {loader: {env: {%s}}}                     | NVIDIA_VISIBLE_DEVICES: all     | gpus-unasked
framework: plain, roles: {loader: {gpus: 2, env: {%s}}}            | LEVEL: info                     |
setup: [{command: [bash, -c, pip install wandb], env: {%s}}]    | LEVEL: info                     | command-downloads
sidecars: [{command: [bash, -c, pip list], env: {%s}}]          | LEVEL: info                     |
sidecars: [{command: [pip, install, wandb], env: {%s}}]         | LEVEL: info                     | command-downloads
steps: [{command: [git, clone, "https://example.com/x"], env: {%s}}] | LEVEL: info                | command-downloads
steps: [{command: [python, a.py], env: {%s}}]                   | LEVEL: info                     |
"""
BESIDE_CASES = [tuple(map(str.strip, line.split("|"))) for line in BESIDE.splitlines() if line]


@pytest.mark.parametrize(("where", "variable", "rule"), BESIDE_CASES, ids=[" ".join(c) for c in BESIDE_CASES])
def test_settings_of_setup_sidecars_steps_and_roles_are_checked(
    where: str, variable: str, rule: str, root: Path
) -> None:
    lines = where.replace(", roles", "\nroles") % variable + "\n"
    text = workspaces.SPEC.replace("image: openmpi", "image: pytorch").replace("gpus: 2", "gpus: 4") + lines
    workspaces.write(root, {"specs/nlp/filings.yaml": text})
    outcome = workspaces.gangplan("validate", "-C", root)
    found = [one for one in outcome.findings if one.rule in OURS]
    assert {one.rule for one in found} == {rule} - {""}, outcome.err
    words = (*variable.split(": "), "pip", "git")  # the name or the value, or the program that downloads
    for one in found:
        line, column = map(int, one.place.split(":")[1:])
        assert text.splitlines()[line - 1][column - 1 :].startswith(words)
        assert "worker" not in one.message
