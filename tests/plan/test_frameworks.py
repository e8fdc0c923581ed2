"""Frameworks without a launcher: one rank per worker, which learns of the others as its framework expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import plain, workspaces
from tests.workspaces import gangplan, stock, write

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
    assert container["args"] == ["python", "train.py"]


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
        ("plain", "[mpirun, -np, 8, solver]", "", "command-launcher"),
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
    ],
)
def test_commands_and_fields_that_do_not_fit_a_framework_are_refused(
    tmp_path: Path, framework: str, command: str, more: str, rule: str
) -> None:
    outcome = gangplan("validate", "-C", str(workspace(tmp_path, framework, command, more)))
    found = {one.rule for one in outcome.findings if one.severity == "error"}
    assert found == ({rule} if rule else set()), outcome.err


def test_a_variable_of_the_spec_overrides_that_of_the_framework(tmp_path: Path) -> None:
    _, container = runtime(workspace(tmp_path, "plain", more="env: {MASTER_PORT: 4000}\n"))
    assert {one["name"]: one.get("value") for one in container["env"]}["MASTER_PORT"] == "4000"
