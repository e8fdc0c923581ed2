"""Frameworks without a launcher: one rank per worker, which learns of the others as its framework expects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.frameworks import PADDLE_VARIABLES
from tests import plain, workspaces
from tests.workspaces import gangplan, stock, write

LAUNCH = "python, -m, paddle.distributed.launch"
SCRIPT = "python -m paddle.distributed.launch"
SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"


def workspace(root: Path, framework: str, command: str = "[python, train.py]", more: str = "") -> Path:
    """Write the stock workspace with a spec of this framework."""
    spec = workspaces.SPEC.replace("command: [python, train.py]", f"command: {command}")
    return write(stock(root), {SPEC: f"{spec}framework: {framework}\n{more}"})


def runtime(root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the policy of the run's runtime, and the container of its workers."""
    for body in plain.load_all(workspaces.render(root, "-o", "-", SPEC).out):
        if body and body["kind"] == "TrainingRuntime":
            (job,) = body["spec"]["template"]["spec"]["replicatedJobs"]
            return body["spec"]["mlPolicy"], job["template"]["spec"]["template"]["spec"]["containers"][0]
    raise AssertionError("no runtime")


@pytest.mark.parametrize(
    ("framework", "policy", "names"),
    [
        ("jax", {"numNodes": 1, "jax": {}}, set()),
        ("xgboost", {"numNodes": 1, "xgboost": {}}, set()),
        ("plain", {"numNodes": 1}, {"MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK"}),
        ("tensorflow", {"numNodes": 1}, {"NODE_RANK", "TF_CONFIG"}),
        ("paddle", {"numNodes": 1}, set(PADDLE_VARIABLES)),
    ],
)
def test_workers_get_the_variables_of_their_framework(
    tmp_path: Path, framework: str, policy: Any, names: set[str]
) -> None:
    root = workspace(tmp_path, framework)
    if framework == "xgboost":
        write(root, {SPEC: (root / SPEC).read_text().replace("gpus: 2", "gpus: 1")})
    found, container = runtime(root)
    assert found == policy
    assert {one["name"] for one in container["env"]} - {"OMP_NUM_THREADS"} == names
    assert container["args"][-1] == "train.py"
    assert container["args"][0] == "python"
    assert (len(container["args"]) == 2) == (framework != "paddle")


def test_tf_config_names_the_index_of_each_worker(tmp_path: Path) -> None:
    """Kubernetes expands $(NODE_RANK) only if the list defines that variable earlier."""
    _, container = runtime(workspace(tmp_path, "tensorflow"))
    names = [one["name"] for one in container["env"]]
    assert names.index("NODE_RANK") < names.index("TF_CONFIG")
    (told,) = [one["value"] for one in container["env"] if one["name"] == "TF_CONFIG"]
    config = json.loads(told.replace("$(NODE_RANK)", "3"))
    assert config["task"] == {"type": "worker", "index": 3}
    first = config["cluster"]["worker"][0]
    run = first.partition("-node-0-0.")[0]
    assert config["cluster"]["worker"] == [f"{run}-node-0-{n}.{run}:29500" for n in range(4)]


@pytest.mark.parametrize(
    ("framework", "command", "more", "rule"),
    [
        ("plain", "[torchrun, --nproc-per-node, 2, train.py]", "", ""),
        ("plain", "[accelerate, launch, train.py]", "", ""),
        ("plain", "[bash, -c, 'exec solver --rank $NODE_RANK']", "", ""),
        ("plain", "[bash, -c, 'export NNODES=4; exec solver']", "", ""),
        ("jax", "[bash, -c, 'export JAX_NUM_PROCESSES=1; python train.py']", "", "command-reserved"),
        ("jax", "[env, 'JAX_COORDINATOR_ADDRESS=localhost:1', python, train.py]", "", "command-reserved"),
        ("jax", "[env, JAX_NUM_PROCESSES=4, python, train.py]", "", ""),
        ("tensorflow", "[bash, -c, 'TF_CONFIG={} python train.py']", "", "command-reserved"),
        ("paddle", f"[bash, -c, 'unset PADDLE_MASTER; {SCRIPT} train.py']", "", "command-reserved"),
        ("plain", "[mpirun, -np, 8, solver]", "", "command-launcher"),
        ("plain", "[bash, -c, 'deepspeed --no_ssh --node_rank $NODE_RANK train.py']", "", ""),
        ("plain", "[deepspeed, --num_gpus, 2, train.py]", "", "command-launcher"),
        ("jax", "[torchrun, train.py]", "", "command-launcher"),
        ("jax", "[mpirun, train]", "", "command-launcher"),
        ("jax", "[python, train.py]", "slots: 1\n", ""),
        ("jax", "[python, train.py]", "slots: 2\n", "framework-one-rank"),
        ("xgboost", "[python, train.py]", "", "framework-one-rank"),
        ("tensorflow", "[python, train.py]", "env: {TF_CONFIG: x}\n", "env-reserved"),
        ("jax", "[python, train.py]", "env: {JAX_PROCESS_ID: 1}\n", "env-reserved"),
        ("jax", "[python, train.py]", "mpi: {bindTo: core}\n", "mpi-without-effect"),
        ("plain", "[python, train.py]", "launcher: {runsRanks: true}\n", "launcher-torch"),
        ("plain", "[python, train.py]", "env: {MASTER_PORT: 4000}\n", ""),
        ("paddle", f"[{LAUNCH}, train.py]", "", ""),
        ("paddle", f"[{LAUNCH}, --log_dir, logs, --job_id, a, train.py, --master, b]", "", ""),
        ("paddle", f"[{LAUNCH}, --nnodes, '4', --nproc_per_node=2, train.py]", "", ""),
        ("paddle", f"[{LAUNCH}, --devices, '0,1', train.py]", "", ""),
        ("paddle", f"[{LAUNCH}, --run_mode, collective, --elastic_level, '-1', train.py]", "", ""),
        ("paddle", f"[{LAUNCH}, --master, 'host:1', train.py]", "", "command-rendezvous"),
        ("paddle", f"[{LAUNCH}, --master, 'etcd://host:2379', train.py]", "", "command-rendezvous"),
        ("paddle", f"[{LAUNCH}, --rank, '1', train.py]", "", "command-rendezvous"),
        ("paddle", f"[{LAUNCH}, --nnodes, '2:4', train.py]", "", "ranks-mismatch"),
        ("paddle", f"[{LAUNCH}, --nproc_per_node, '1', train.py]", "", "ranks-mismatch"),
        ("paddle", f"[{LAUNCH}, --gpus, '0', train.py]", "", "ranks-mismatch"),
        ("paddle", f"[{LAUNCH}, --run_mode, ps, train.py]", "", "ranks-mismatch"),
        ("paddle", f"[{LAUNCH}, --server_num, '1', train.py]", "", "ranks-mismatch"),
        ("paddle", f"[{LAUNCH}, --ips, 'a,b', train.py]", "", "command-hosts"),
        ("paddle", f"[{LAUNCH}, --nosuch, train.py]", "", "command-option"),
        ("paddle", f"[{LAUNCH}]", "", "command-no-program"),
        ("paddle", f"[{LAUNCH}, torchrun, train.py]", "", "command-nested"),
        ("paddle", f"[bash, -c, '{SCRIPT} --nnodes $PADDLE_NNODES --rank $PADDLE_RANK train.py']", "", ""),
        ("paddle", f"[bash, -c, '{SCRIPT} --rank $SLURM_NODEID train.py']", "", "command-rendezvous"),
        ("paddle", f"[bash, -c, 'PADDLE_MASTER=a:1 {SCRIPT} train.py']", "", "command-reserved"),
        ("paddle", f"[bash, -c, 'export PADDLE_TRAINER_ID=0; {SCRIPT} train.py']", "", "command-reserved"),
        ("paddle", f"[env, -u, PADDLE_RANK, {LAUNCH}, train.py]", "", "command-reserved"),
        ("paddle", "[torchrun, train.py]", "", "command-launcher"),
        ("paddle", "[mpirun, train]", "", "command-launcher"),
        ("jax", f"[{LAUNCH}, train.py]", "", "command-launcher"),
        ("plain", f"[{LAUNCH}, train.py]", "", ""),
        ("paddle", "[python, train.py]", "env: {PADDLE_RANK: 0}\n", "env-reserved"),
        ("paddle", "[python, train.py]", "env: {PADDLE_TRAINER_ID: 0}\n", "env-reserved"),
        ("paddle", "[python, train.py]", "env: {PADDLE_LOG_LEVEL: DEBUG}\n", ""),
        ("plain", "[python, train.py]", "env: {PADDLE_NNODES: 2}\n", ""),
        ("paddle", "[python, train.py]", "slots: 3\n", "ranks-share-gpus"),
        ("paddle", "[python, train.py]", "mpi: {bindTo: core}\n", "mpi-without-effect"),
    ],
)
def test_commands_and_fields_that_do_not_fit_a_framework_are_refused(
    tmp_path: Path, framework: str, command: str, more: str, rule: str
) -> None:
    outcome = gangplan("validate", "-C", str(workspace(tmp_path, framework, command, more)))
    found = {one.rule for one in outcome.findings if one.severity == "error"}
    assert found == ({rule} if rule else set()), outcome.err


def test_deepspeed_on_one_worker_is_the_programs_own_affair(tmp_path: Path) -> None:
    root = workspace(tmp_path, "plain", "deepspeed --num_gpus 2 train.py")
    one = (root / SPEC).read_text().replace("workers: 4", "workers: 1")
    assert gangplan("validate", "-C", str(write(root, {SPEC: one}))).findings == []


@pytest.mark.parametrize(
    ("framework", "gpus", "help"),
    [
        (
            "jax",
            2,
            "Write only the program; gangplan starts it once on every worker. Write command: [./train].",
        ),
        (
            "plain",
            1,
            "Write only the program; gangplan starts it once on every worker. Write command: [./train].",
        ),
        ("plain", 2, "Use an image whose framework starts ranks, such as torch, deepspeed or mpi."),
    ],
)
def test_a_launcher_is_only_removed_where_one_process_takes_its_place(
    framework: str, gpus: int, help: str, tmp_path: Path
) -> None:
    """A plain program would otherwise start once, and leave all GPUs but one of the worker idle."""
    root = workspace(tmp_path, framework, "mpirun ./train")
    text = (root / SPEC).read_text().replace("gpus: 2", f"gpus: {gpus}")
    found = gangplan("validate", "-C", str(write(root, {SPEC: text}))).findings
    assert [one.help for one in found if one.rule == "command-launcher"] == [help]


def test_a_variable_of_the_spec_overrides_that_of_the_framework(tmp_path: Path) -> None:
    _, container = runtime(workspace(tmp_path, "plain", more="env: {MASTER_PORT: 4000}\n"))
    assert {one["name"]: one.get("value") for one in container["env"]}["MASTER_PORT"] == "4000"


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_other_frameworks_do_not_start_paddles_launcher_in_every_rank(tmp_path: Path, image: str) -> None:
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}")
    root = write(stock(tmp_path), {SPEC: text.replace("[python, train.py]", f"[{LAUNCH}, train.py]")})
    outcome = gangplan("validate", "-C", str(root))
    assert {one.rule for one in outcome.findings if one.severity == "error"} == {"command-launcher"}
    assert "starts ranks for Paddle" in outcome.err


@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_first_worker_gets_its_own_address_in_numbers(tmp_path: Path, rank: str) -> None:
    """Paddle's launcher serves the others only at an address that it can compare with its own."""
    _, container = runtime(workspace(tmp_path, "paddle"))
    words = container["command"][container["command"].index("--") + 1 :]
    env = {one["name"]: one.get("value", rank) for one in container["env"]}
    show = [*words, "/bin/sh", "-c", 'echo "$PADDLE_MASTER" "$@"', "sh", "a b"]
    done = subprocess.run(show, env=env, capture_output=True, text=True, check=True)
    first = "127.0.0.1" if rank == "0" else env["PADDLE_MASTER"].partition(":")[0]
    assert done.stdout == f"{first}:29500 a b\n"


@pytest.mark.parametrize(
    ("command", "started"),
    [
        ("[python3, train.py, --lr, '1']", "python3 -m {launch} train.py --lr 1"),
        ("[python, -u, train.py]", "python -m {launch} python -u train.py"),
        ("[python, -m, a.b]", "python -m {launch} python -m a.b"),
        ("[./train, -x]", "python -m {launch} ./train -x"),
        ("[fleetrun, train.py]", "fleetrun {logs} train.py"),
        ("[fleetrun, --log_dir, a, train.py]", "fleetrun --log_dir a train.py"),
    ],
)
def test_paddles_launcher_starts_what_the_command_says(tmp_path: Path, command: str, started: str) -> None:
    _, container = runtime(workspace(tmp_path, "paddle", command))
    logs = "--log_dir /tmp/paddle-log"
    expected = started.format(launch=f"paddle.distributed.launch {logs}", logs=logs)
    assert container["args"] == expected.split()


def test_paddle_starts_one_rank_on_each_gpu(tmp_path: Path) -> None:
    _, container = runtime(workspace(tmp_path, "paddle"))
    told = {one["name"]: one.get("value") for one in container["env"]}
    assert (told["PADDLE_NPROC_PER_NODE"], told["PADDLE_NNODES"]) == ("2", "4")
    assert (
        "schedule"
        in gangplan(
            "validate", "-C", workspace(tmp_path, "paddle", more='schedule: {cron: "0 3 * * *"}\n')
        ).err
    )
