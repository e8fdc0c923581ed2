"""Variables that a command reads and that only a field of the spec sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

SPEC = "specs/nlp/filings.yaml"
READS = """[bash, -c, 'python train.py --out "$CHECKPOINT_DIR/a"']"""
# The command, what else the spec says; and the variables that are said to be empty.
CASES = {
    "a checkpoint": (READS, "", ["CHECKPOINT_DIR"]),
    "a checkpoint that is there": (READS, "checkpoint: {to: filings}\n", []),
    "a value of its own": (READS, "env: {CHECKPOINT_DIR: /data}\n", []),
    "a value in the script": ("""[bash, -c, 'CHECKPOINT_DIR=/data; ls "$CHECKPOINT_DIR"']""", "", []),
    "a default": ("""[bash, -c, 'ls "${CHECKPOINT_DIR:-/data}"']""", "", []),
    "a look": ("""[bash, -c, 'if [ -n "$CHECKPOINT_DIR" ]; then ls "$CHECKPOINT_DIR"; fi']""", "", []),
    "a script that loads another": ("""[bash, -c, '. ./env; ls "$CHECKPOINT_DIR"']""", "", []),
    "no expansion": ("""[bash, -c, "echo '$CHECKPOINT_DIR'"]""", "", []),
    "another name": ("""[bash, -c, 'ls "$CHECKPOINT_DIRS"']""", "", []),
    "each once": (
        """[bash, -c, 'ls $SCRATCH_DIR $SCRATCH_DIR; echo "${GANGPLAN_MODEL_NAME}"']""",
        "",
        ["SCRATCH_DIR", "GANGPLAN_MODEL_NAME"],
    ),
    "scratch": ("[bash, -c, 'ls $SCRATCH_DIR']", "scratch: 9Gi\n", []),
    "a launcher in the script": (
        "[bash, -c, 'mpirun python train.py --every $CHECKPOINT_INTERVAL']",
        "",
        ["CHECKPOINT_INTERVAL"],
    ),
    "a sidecar": (
        "[python, train.py]",
        "sidecars: [{command: [bash, -c, 'ls $CHECKPOINT_DIR']}]\n",
        ["CHECKPOINT_DIR"],
    ),
    "a sidecar of a job with a checkpoint": (
        "[python, train.py]",
        "checkpoint: {to: filings}\nsidecars: [{command: [bash, -c, 'ls $CHECKPOINT_DIR']}]\n",
        [],
    ),
    "setup with a value of its own": (
        "[python, train.py]",
        "setup: [{command: [bash, -c, 'ls $CHECKPOINT_DIR'], env: {CHECKPOINT_DIR: /x}}]\n",
        [],
    ),
    "scratch in a sidecar": (
        "[python, train.py]",
        "scratch: 9Gi\nsidecars: [{command: [bash, -c, 'ls $SCRATCH_DIR']}]\n",
        [],
    ),
    "scratch in a step, which has none": (
        "[python, train.py]",
        "scratch: 9Gi\nsteps: [{command: [bash, -c, 'ls $SCRATCH_DIR'], cpu: 1, memory: 1Gi}]\n",
        ["SCRATCH_DIR"],
    ),
    "a step": (
        "[python, train.py]",
        "steps: [{command: [bash, -c, 'ls $CHECKPOINT_DIR'], cpu: 1, memory: 1Gi}]\n",
        ["CHECKPOINT_DIR"],
    ),
    "a step with a value of its own": (
        "[python, train.py]",
        "steps: [{command: [bash, -c, 'ls $CHECKPOINT_DIR'], cpu: 1, memory: 1Gi, env: {CHECKPOINT_DIR: /x}}]\n",
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_variables_of_absent_fields_are_reported(case: str, root: Path) -> None:
    command, more, names = CASES[case]
    workspaces.write(root, {SPEC: workspaces.SPEC.replace("[python, train.py]", command) + more})
    outcome = workspaces.gangplan("validate", "-C", root)
    assert not [one for one in outcome.findings if one.severity == "error"], outcome.err
    found = [one for one in outcome.findings if one.rule == "command-needs-field"]
    assert [one.message.split()[3] for one in found] == sorted(f"${name}," for name in names)
    assert all(one.place.startswith(SPEC) and "Add " in (one.help or "") for one in found)


# The image, the command, what else the spec says; and the variables that another system would set.
OTHERS = {
    "Slurm's": (
        "openmpi",
        "[bash, -c, 'rm -rf $SLURM_TMPDIR/*; mpirun ./a --id ${SLURM_JOB_ID}']",
        "",
        "SLURM_TMPDIR SLURM_JOB_ID",
    ),
    "PBS's": ("openmpi", "[bash, -c, 'cd $PBS_O_WORKDIR && ./a']", "", "PBS_O_WORKDIR"),
    "one with a value": (
        "openmpi",
        "[bash, -c, './a $SLURM_ARRAY_TASK_ID']",
        "env: {SLURM_ARRAY_TASK_ID: '1'}\n",
        "",
    ),
    "a look": ("openmpi", "[bash, -c, 'if [ -n \"$SLURM_JOB_ID\" ]; then echo slurm; fi; ./a']", "", ""),
    "a default": ("openmpi", "[bash, -c, './a ${SLURM_NTASKS:-8}']", "", ""),
    "no expansion": ("openmpi", "[bash, -c, \"./a '$SLURM_NTASKS'\"]", "", ""),
    "all words of a script": (
        "openmpi",
        "[bash, -c, './a $SLURM_NTASKS $* $? $# \"$@\" $- $$', x]",
        "",
        "SLURM_NTASKS",
    ),
    "a name alike": ("openmpi", "[bash, -c, './a $MY_SLURM_NTASKS']", "", ""),
    "a rank's in the launcher's script": (
        "openmpi",
        "[bash, -c, 'mpirun ./a $OMPI_COMM_WORLD_RANK']",
        "",
        "OMPI_COMM_WORLD_RANK",
    ),
    "a rank's in its script": ("openmpi", "[bash, -c, './a $OMPI_COMM_WORLD_RANK']", "", ""),
    "a rank's of another MPI": ("openmpi", "[bash, -c, './a $MPI_LOCALRANKID']", "", "MPI_LOCALRANKID"),
    "torchrun's before it": (
        "pytorch",
        "[bash, -c, 'torchrun train.py --rank $LOCAL_RANK']",
        "",
        "LOCAL_RANK",
    ),
    "torchrun's behind it": ("pytorch", "[bash, -c, 'python train.py --rank $LOCAL_RANK']", "", ""),
    "a step's": (
        "openmpi",
        "./a",
        "steps: [{command: [bash, -c, 'ls $SLURM_TMPDIR'], cpu: 1, memory: 1Gi}]\n",
        "SLURM_TMPDIR",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_variables_of_other_systems_are_reported(case: str, root: Path) -> None:
    image, command, more, names = OTHERS[case]
    spec = workspaces.SPEC.replace("[python, train.py]", command).replace("image: openmpi", f"image: {image}")
    assert f"image: {image}" in spec
    workspaces.write(root, {SPEC: spec + more})
    outcome = workspaces.gangplan("validate", "-C", root)
    assert not [one for one in outcome.findings if one.severity == "error"], outcome.err
    found = [one for one in outcome.findings if one.rule == "script-variable-unset"]
    assert sorted(one.message.split()[3] for one in found) == sorted(f"${name}," for name in names.split())
