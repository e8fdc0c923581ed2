"""Variables that gangplan sets in the pods of a run: a value of the user's own would win in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

SPEC, TEAM, CLUSTER = "specs/nlp/filings.yaml", "specs/nlp/team.yaml", "overlays/lab/cluster.yaml"
LOADER = "roles: {data-loader: {command: [python, load.py], cpu: 2%s}}\n"
STEP = "steps: [{name: prepare, command: [python, prepare.py]%s}]\n"
SIDE = "%s: [{command: [python, beside.py]%s}]\n"
INDEX = "\"metadata.annotations['batch.kubernetes.io/job-completion-index']\""
SCRATCH = "scratch: 9Gi\n"
SAVED = "checkpoint: {to: filings}\n"
MODEL = "model: {name: tide, version: '1'}\n"
# What is written, for which framework: the line of the finding, or an empty text.
CASES = {
    "the number of a worker": ("plain", 'env: {NODE_RANK: "3"}\n', "10"),
    "how many workers": ("plain", 'env: {NNODES: "7"}\n', "10"),
    "the first worker": ("plain", "env: {MASTER_ADDR: foo}\n", "10"),
    "the number by a field of the pod": ("plain", "env: {NODE_RANK: {field: metadata.name}}\n", "10"),
    "the number from a secret": ("plain", "secrets: {env: {NODE_RANK: huggingface/token}}\n", "10"),
    "the number from a ConfigMap": ("plain", "env: {NODE_RANK: {configMap: tuning/rank}}\n", "10"),
    "a port that all workers read": ("plain", "env: {MASTER_PORT: 4000}\n", ""),
    "a port of each pod's own": ("plain", "env: {MASTER_PORT: {field: metadata.name}}\n", "10"),
    "the number of a TensorFlow worker": ("tensorflow", "env: {NODE_RANK: 1}\n", "10"),
    "how many, which TensorFlow does not read": ("tensorflow", "env: {NNODES: 1}\n", ""),
    "the number, which JAX does not read": ("jax", "env: {NODE_RANK: 1}\n", ""),
    "the index by Kubernetes": ("plain", "env: {JOB_COMPLETION_INDEX: '0'}\n", "10"),
    "the index by Kubernetes for JAX": ("jax", "env: {JOB_COMPLETION_INDEX: '0'}\n", "10"),
    "the index by the pod's own field": ("plain", f"env: {{JOB_COMPLETION_INDEX: {{field: {INDEX}}}}}\n", ""),
    "the number by the pod's index": ("plain", f"env: {{NODE_RANK: {{field: {INDEX}}}}}\n", ""),
    "how many by the pod's index": ("plain", f"env: {{NNODES: {{field: {INDEX}}}}}\n", "10"),
    "the index of a role by the pod's field": (
        "plain",
        LOADER % f", env: {{JOB_COMPLETION_INDEX: {{field: {INDEX}}}}}",
        "",
    ),
    "the index of a role": ("plain", LOADER % ", env: {JOB_COMPLETION_INDEX: '0'}", "10"),
    "the index of no pod of an MPI run": ("mpi", "env: {JOB_COMPLETION_INDEX: '0'}\n", ""),
    "torchrun alone": ("torch", "env: {PET_STANDALONE: '1'}\n", "10"),
    "torchrun not alone": ("torch", "env: {PET_STANDALONE: '0'}\n", ""),
    "another backend of torchrun": ("torch", "env: {PET_RDZV_BACKEND: c10d}\n", "10"),
    "the usual backend of torchrun": ("torch", "env: {PET_RDZV_BACKEND: static}\n", ""),
    "another backend of an elastic run": (
        "torch",
        "elastic: {min: 2, max: 4}\ncheckpoint: {to: filings}\nenv: {PET_RDZV_BACKEND: static}\n",
        "12",
    ),
    "another endpoint of an elastic run": (
        "torch",
        "elastic: {min: 2, max: 4}\ncheckpoint: {to: filings}\nenv: {PET_RDZV_ENDPOINT: 'foo:29400'}\n",
        "12",
    ),
    "another meeting point": ("torch", "env: {PET_RDZV_ENDPOINT: 'foo:29400'}\n", "10"),
    "the same address everywhere": ("torch", "env: {PET_LOCAL_ADDR: 127.0.0.1}\n", "10"),
    "an address of each pod": ("torch", "env: {PET_LOCAL_ADDR: {field: status.podIP}}\n", ""),
    "a module instead of a script": ("torch", "env: {PET_MODULE: '1'}\n", "10"),
    "how long workers wait": ("torch", "env: {PET_RDZV_CONF: timeout=1800}\n", ""),
    "logs of torchrun": ("torch", "env: {PET_LOG_DIR: /tmp/logs}\n", ""),
    "what torchrun reads in a run without it": ("jax", "env: {PET_STANDALONE: '1'}\n", ""),
    "a role without roles": ("plain", "env: {ROLE: train}\n", ""),
    "a role with roles": ("plain", "env: {ROLE: train}\n" + LOADER % "", "10"),
    "the hosts of a role": ("plain", "env: {DATA_LOADER_HOSTS: a}\n" + LOADER % "", "10"),
    "the hosts of no role": ("plain", "env: {PS_HOSTS: a}\n" + LOADER % "", ""),
    "the number in a role": ("plain", LOADER % ", env: {NODE_RANK: 1}", "10"),
    "the port in a role": ("plain", LOADER % ", env: {MASTER_PORT: 4000}", "10"),
    "the name of a role in it": ("plain", LOADER % ", env: {ROLE: x}", "10"),
    "the cluster in a role": ("tensorflow", "roles: {ps: {cpu: 2, env: {TF_CONFIG: x}}}\n", "10"),
    "checkpoints": ("plain", SAVED + "env: {CHECKPOINT_DIR: /x}\n", "11"),
    "checkpoints without a checkpoint": ("plain", "env: {CHECKPOINT_DIR: /x}\n", ""),
    "checkpoints in a role": ("plain", SAVED + LOADER % ", env: {CHECKPOINT_INTERVAL: '5'}", "11"),
    "checkpoints in a role without": ("plain", LOADER % ", env: {CHECKPOINT_INTERVAL: '5'}", ""),
    "a variable of Trainer in a step": ("plain", STEP % ", env: {PET_NNODES: '4'}", "10"),
    "the number in a step, which has none": ("plain", STEP % ", env: {NODE_RANK: '1'}", ""),
    "checkpoints in a sidecar": ("plain", SAVED + SIDE % ("sidecars", ", env: {CHECKPOINT_DIR: /x}"), "11"),
    "checkpoints from a secret": (
        "plain",
        SAVED + "secrets: {env: {CHECKPOINT_RESUME: huggingface/token}}\n",
        "11",
    ),
    "scratch in a sidecar": ("plain", SCRATCH + SIDE % ("sidecars", ", env: {SCRATCH_DIR: /x}"), "11"),
    "scratch in setup": ("plain", SCRATCH + SIDE % ("setup", ", env: {SCRATCH_DIR: /x}"), "11"),
    "scratch in setup of a run without": ("plain", SIDE % ("setup", ", env: {SCRATCH_DIR: /x}"), ""),
    "scratch in a role, which has none": ("plain", SCRATCH + LOADER % ", env: {SCRATCH_DIR: /x}", ""),
    "the model's name": ("plain", MODEL + "env: {GANGPLAN_MODEL_NAME: ebb}\n", "11"),
    "the model's name in a sidecar": (
        "plain",
        MODEL + SIDE % ("sidecars", ", env: {GANGPLAN_MODEL_VERSION: '2'}"),
        "11",
    ),
    "the model's name without a model": ("plain", "env: {GANGPLAN_MODEL_NAME: ebb}\n", ""),
}
# The same in a layer below the spec: the file, the line, and the rest of it.
LAYERS = {
    "team": (TEAM, "defaults: {env: {%s: x}}\n", workspaces.TEAM),
    "cluster": (CLUSTER, "env: {%s: x}\n", workspaces.CLUSTER),
    "cluster defaults": (CLUSTER, "defaults: {env: {%s: x}}\n", workspaces.CLUSTER),
}
NAMES = {
    "NODE_RANK": ("plain", True),
    "MASTER_ADDR": ("plain", True),
    "NNODES": ("tensorflow", False),
    "TF_CONFIG": ("tensorflow", True),
    "PET_NNODES": ("torch", True),
    "NODE_NAME": ("plain", False),
    "CHECKPOINT_DIR": ("plain", False),
}


def told(root: Path) -> list[tuple[str, str]]:
    """Return the line and the message of each variable that is refused; there is no other error."""
    outcome = workspaces.gangplan("validate", "-C", root)
    errors = [one for one in outcome.findings if one.severity == "error"]
    errors = [one for one in errors if one.rule != "model-alone"]
    assert {one.rule for one in errors} <= {"env-reserved"}, outcome.err
    return [(":".join(one.place.split(":")[:2]), one.message) for one in errors]


def put(root: Path, framework: str, lines: str = "") -> None:
    image = "pytorch" if framework == "torch" else "openmpi"
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}").replace("gpus: 2", "gpus: 1")
    team = workspaces.TEAM + "configMaps: [tuning]\n"
    workspaces.write(root, {SPEC: f"{text}framework: {framework}\n{lines}", TEAM: team})


@pytest.mark.parametrize("case", CASES)
def test_a_variable_that_the_run_sets_itself_is_refused(case: str, root: Path) -> None:
    framework, lines, place = CASES[case]
    put(root, framework, lines)
    found = told(root)
    assert [where for where, _ in found] == ([f"{SPEC}:{place}"] if place else [])


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_read_as_well(name: str, layer: str, root: Path) -> None:
    framework, is_refused = NAMES[name]
    put(root, framework)
    file, line, text = LAYERS[layer]
    workspaces.write(root, {file: text + line % name})
    found = told(root)
    assert [place for place, _ in found] == [f"{file}:{text.count(chr(10)) + 1}"] * is_refused
    assert all(name in message for _, message in found)


@pytest.mark.parametrize(
    "command",
    [
        "[bash, -c, 'CHECKPOINT_DIR=/x; mpirun python train.py --to $CHECKPOINT_DIR']",
        "[bash, -c, 'export CHECKPOINT_INTERVAL=5; mpirun python train.py']",
        "[env, CHECKPOINT_RESUME=false, mpirun, python, train.py]",
        "[mpirun, -x, CHECKPOINT_DIR=/x, python, train.py]",
    ],
)
@pytest.mark.parametrize("saved", ["", SAVED])
def test_a_command_may_set_what_no_checkpoint_does(saved: str, command: str, root: Path) -> None:
    text = workspaces.SPEC.replace("[python, train.py]", command)
    workspaces.write(root, {SPEC: text + saved})
    errors = [one for one in workspaces.gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert [one.rule for one in errors] == ["command-reserved"] * bool(saved)
    assert all("; checkpoint sets it, and a value of your own" in one.message for one in errors)


@pytest.mark.parametrize("option", ["CHECKPOINT_DIR", "OMPI_MCA_plm_rsh_args"])
def test_a_command_may_hand_on_what_the_run_sets(option: str, root: Path) -> None:
    text = workspaces.SPEC.replace("[python, train.py]", f"[mpirun, -x, {option}, python, train.py]")
    workspaces.write(root, {SPEC: text + SAVED})
    assert not [
        one for one in workspaces.gangplan("validate", "-C", root).findings if one.severity == "error"
    ]


def test_all_variables_of_a_worker_are_refused_at_once(root: Path) -> None:
    put(root, "plain", 'env: {NNODES: "7", NODE_RANK: "3", MASTER_ADDR: foo}\n')
    assert [message.split("'")[1] for _, message in told(root)] == ["NNODES", "NODE_RANK", "MASTER_ADDR"]


@pytest.mark.parametrize(
    ("image", "lines", "place"),
    [
        ("openmpi4", "env: {SLURM_JOBID: '7'}\n", "9"),
        ("openmpi", "secrets: {env: {SLURM_JOBID: huggingface/token}}\n", "9"),
        ("openmpi", "command: [bash, -c, 'export SLURM_JOBID=7; mpirun ./a']\n", "8"),
        ("openmpi", "command: [env, SLURM_JOBID=7, mpirun, ./a]\n", "8"),
        ("openmpi", "command: [env, PBS_ENVIRONMENT=PBS_BATCH, mpirun, ./a]\n", ""),
        ("openmpi", "command: [env, PBS_ENVIRONMENT=PBS_BATCH, PBS_JOBID=7, mpirun, ./a]\n", "8"),
        ("openmpi4", "command: [env, PBS_ENVIRONMENT=PBS_BATCH, PBS_JOBID=7, mpirun, ./a]\n", ""),
        ("openmpi", "command: [bash, -c, 'export SLURM_JOBID=7; ./a']\n", ""),  # of the ranks alone
        ("mpich", "env: {SLURM_JOBID: '7', PBS_JOBID: '7', PBS_ENVIRONMENT: PBS_BATCH}\n", ""),
        ("pytorch", "env: {SLURM_JOBID: '7'}\n", ""),
    ],
)
def test_variables_that_send_open_mpi_to_a_scheduler_are_refused(
    image: str, lines: str, place: str, root: Path
) -> None:
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}")
    if lines.startswith("command"):
        spec = spec.replace("command: [python, train.py]\n", "")
    workspaces.write(root, {SPEC: spec + lines})
    outcome = workspaces.gangplan("validate", "-C", root)
    found = {
        ":".join(one.place.split(":")[:2])
        for one in outcome.findings
        if "for its hosts, which a run does not have" in one.message
    }
    assert found == ({f"{SPEC}:{place}"} if place else set())
