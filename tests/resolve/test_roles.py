"""Roles in addition to the workers: pods of another shape, which know each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_containers import EXPORTER, REFERENCE
from tests.resolve.test_workdir import SPEC, pods
from tests.workspaces import gangplan, rendered

PS = "roles: {ps: {workers: 2, command: [python, serve.py], cpu: 2, memory: 4Gi, image: exporter}}\n"
ALL = "roles: {ps: {workers: 2, cpu: 2}, chief: {gpus: 2}, evaluator: {command: [python, judge.py]}}\n"


@pytest.fixture
def lab(root: Path) -> Path:
    """Create the small workspace with one more image, and a pool without GPUs that has its own label."""
    cluster = workspaces.CLUSTER.replace(
        "cpu: 60, memory: 240Gi}", "cpu: 60, memory: 240Gi, labels: {pool: cpu}}"
    )
    files = {"images/catalog.yaml": workspaces.CATALOG + EXPORTER, "overlays/lab/cluster.yaml": cluster}
    workspaces.write(root, files)
    return root


def put(root: Path, lines: str, framework: str = "tensorflow") -> None:
    text = workspaces.SPEC.replace("workers: 4", "workers: 2") + f"framework: {framework}\n{lines}"
    workspaces.write(root, {SPEC: text})


def told(root: Path, lines: str, framework: str = "tensorflow") -> list[Any]:
    put(root, lines, framework)
    return list(gangplan("validate", "-C", root).findings)


def jobs(root: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Render, and return the run's name, the JobSet's spec, and its replicated jobs by name."""
    assert gangplan("render", "-C", root).code == 0
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    (runtime,) = (body for body in load_objects(text) if body["kind"] == "TrainingRuntime")
    spec = runtime["spec"]["template"]["spec"]
    return runtime["metadata"]["name"], spec, {one["name"]: one for one in spec["replicatedJobs"]}


def env_of(pod: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}


def test_a_role_has_pods_of_its_own_shape_and_pool(lab: Path) -> None:
    assert told(lab, PS) == []
    _, spec, found = jobs(lab)
    assert list(found) == ["node", "ps"]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["node"]
    job = found["ps"]["template"]["spec"]
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (2, 2, 0)
    (box,) = job["template"]["spec"]["containers"]
    assert (box["image"], box["args"]) == (REFERENCE, ["python", "serve.py"])
    assert box["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    # A role without GPUs stays off the pool of the workers.
    assert job["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "cpu"}


COMMANDS = {
    "another launcher": (
        "[mpirun, -np, 4, python, serve.py]",
        "command-launcher",
        "mpirun would start ranks",
    ),
    "by a script": ("[bash, -c, 'mpirun python serve.py']", "command-launcher", "mpirun would start ranks"),
    "another host": ("[ssh, db, python, serve.py]", "command-hosts", "ssh names a host"),
    "a container": ("[docker, run, serve]", "command-prefix", "docker needs a daemon"),
    "a program": ("[python, serve.py]", "", ""),
    "a program called like one": ("[python, mpirun.py]", "", ""),
    "on one line": ("ssh db python serve.py", "command-hosts", "ssh names a host"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_of_roles_are_checked_like_those_of_workers(case: str, lab: Path) -> None:
    command, rule, words = COMMANDS[case]
    found = told(lab, f"roles: {{ps: {{command: {command}}}}}\n".replace("-np, 4", "-np, '4'"))
    assert [(one.rule, words in one.message, one.place.split(":")[1]) for one in found] == (
        [(rule, True, "10")] if rule else []
    )


def test_tf_config_lists_all_roles_but_the_evaluator(lab: Path) -> None:
    assert told(lab, ALL) == []
    run, spec, found = jobs(lab)
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["chief"]
    cluster = {
        "chief": [f"{run}-chief-0-0.{run}:29500"],
        "ps": [f"{run}-ps-0-{n}.{run}:29500" for n in range(2)],
        "worker": [f"{run}-node-0-{n}.{run}:29500" for n in range(2)],
    }
    for name, kind in (("node", "worker"), ("chief", "chief"), ("ps", "ps"), ("evaluator", "evaluator")):
        pod = found[name]["template"]["spec"]["template"]["spec"]
        config = json.loads(env_of(pod)["TF_CONFIG"].replace("$(NODE_RANK)", "0"))
        assert config == {"cluster": cluster, "task": {"type": kind, "index": 0}}
    chief = found["chief"]["template"]["spec"]["template"]["spec"]
    assert chief["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert chief["nodeSelector"]["pool"] == "a100"
    assert chief["containers"][0]["args"] == ["python", "train.py"]


def test_plain_programs_get_the_hosts_of_each_role(lab: Path) -> None:
    lines = "roles: {data-loader: {workers: 2, command: [python, load.py], env: {LEVEL: 7}}}\n"
    assert told(lab, lines, "plain") == []
    run, _, found = jobs(lab)
    for name, role in (("node", "worker"), ("data-loader", "data-loader")):
        env = env_of(found[name]["template"]["spec"]["template"]["spec"])
        assert env["DATA_LOADER_HOSTS"] == ",".join(f"{run}-data-loader-0-{n}.{run}" for n in range(2))
        assert (env["MASTER_ADDR"], env["NNODES"]) == (f"{run}-node-0-0.{run}", "2")
        assert env["ROLE"] == role
    assert env["LEVEL"] == "7"


def test_roles_have_the_mounts_of_the_job_but_no_scratch(lab: Path) -> None:
    more = "data: {filings: /data}\nscratch: {size: 1Gi, medium: memory}\nsetup: [{command: [a]}]\n"
    assert told(lab, PS + more) == []
    found = {name: job["template"]["spec"]["template"]["spec"] for name, job in jobs(lab)[2].items()}
    mounts = {
        name: [one["mountPath"] for one in pod["containers"][0]["volumeMounts"][:-1]]
        for name, pod in found.items()
    }
    assert mounts == {"node": ["/dev/shm", "/data", "/scratch"], "ps": ["/dev/shm", "/data"]}
    assert "initContainers" not in found["ps"]


def test_quota_and_plan_count_the_roles(lab: Path) -> None:
    put(lab, PS)
    (run,) = json.loads(gangplan("plan", "-C", lab, "--format", "json").out)["runs"]
    assert run["totals"] == {"cpu": "20", "memory": "72Gi", "nvidia.com/gpu": "4"}
    assert "ps: 2 pods (2 CPU, 4 GiB of memory each), pool cpu" in gangplan("plan", "-C", lab).out


CASES = {
    "by MPI": (PS, "mpi", "role-unusable", "framework mpi has only workers"),
    "a name of Trainer's": ("roles: {launcher: {}}\n", "plain", "role-unusable", "called 'launcher'"),
    "no role of TensorFlow": ("roles: {loader: {}}\n", "tensorflow", "role-unusable", "no role 'loader'"),
    "two chiefs": ("roles: {chief: {workers: 2}}\n", "tensorflow", "role-unusable", "has one chief"),
    "an image that is not there": ("roles: {ps: {image: x}}\n", "tensorflow", "image-unknown", "'x'"),
    "more than a node": ("roles: {ps: {cpu: 61}}\n", "tensorflow", "pool-no-fit", "60 CPU, it needs 61"),
    "as much as a node": ("roles: {ps: {cpu: 60}}\n", "tensorflow", "", ""),
    "more GPUs than a node has": ("roles: {chief: {gpus: 9}}\n", "tensorflow", "pool-no-fit", "8 GPUs"),
    "too many roles": (
        f"roles: {{{', '.join(f'r{n}: {{}}' for n in range(7))}}}\n", "plain", "spec-value", "6"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_role_breaks_one_rule(name: str, lab: Path) -> None:
    lines, framework, rule, words = CASES[name]
    found = told(lab, lines, framework)
    assert [one.rule for one in found] == ([rule] if rule else [])
    if rule:
        assert found[0].place.startswith(f"{SPEC}:10:")
        assert words in found[0].message
        assert found[0].help


def test_why_leads_to_the_role(lab: Path) -> None:
    put(lab, PS)
    assert gangplan("render", "-C", lab).code == 0
    (path,) = (one for one in rendered(lab) if is_run_file(one))
    lines = rendered(lab)[path].decode().splitlines()
    for words, field in (("serve.py", "roles.ps.command"), ("parallelism", "roles.ps.workers")):
        line = next(n for n, one in enumerate(lines, 1) if words in one)
        out = gangplan("why", "-C", lab, f"rendered/{path.removeprefix('rendered/')}:{line}").out
        assert field in out, words


def test_without_roles_no_role_variable_is_set(lab: Path) -> None:
    put(lab, "", "plain")
    assert "ROLE" not in env_of(pods(lab)["node"])
