"""The percentage of an import: a question about the command lowers it, other questions do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.sources import imported

SBATCH = "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8 --ntasks-per-node=8 --time=1:00:00\n"
POD = "containers: [{name: CONTAINER, image: 'registry.example.com/fit/boost:1', command: COMMAND, resources: {limits: {cpu: 2, memory: 4Gi}}}]"


def trains(kind: str, replicas: str, container: str, master: str, worker: str) -> str:
    pods = [
        POD.replace("CONTAINER", container).replace("COMMAND", command, 1) for command in (master, worker)
    ]
    return (
        f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: boost}}\nspec:\n  {replicas}:\n"
        f"    Master: {{replicas: 1, template: {{spec: {{{pods[0]}}}}}}}\n"
        f"    Worker: {{replicas: 2, template: {{spec: {{{pods[1]}}}}}}}\n"
    )


TORCH = ("PyTorchJob", "pytorchReplicaSpecs", "pytorch")
# Each with the kind of its source and what the row says.
OPEN = {
    "a script that a shell reads": ("slurm", SBATCH + "srun bash <<'EOF'\nhostname\nEOF\n", "reads its input from the script"),
    "a variable without a value": ("slurm", SBATCH + "srun ./x --k $K\n", "the command needs K"),
    "a pipe": ("slurm", SBATCH + "cat in.txt | srun ./x\n", "what is piped into the program"),
    "folders of the old cluster": ("slurm", SBATCH + "srun ./x /proj/in\n", "uses folders of the old cluster"),
    "an argument of the script": ("pbs", "#!/bin/bash\n#PBS -l select=2:ncpus=4:mpiprocs=4\nmpirun ./x $1\n", "takes an argument"),
    "a master with another script": ("pytorchjob", trains(*TORCH, "[bash, -c, 'python prep.py; torchrun train.py']", "[torchrun, train.py]"), "the master starts another command"),
    "a master with other arguments": ("pytorchjob", trains(*TORCH, "[python, m.py, --n=10]", "[python, m.py, --n=20]"), "the master starts another command"),
    "a variable that nothing sets": ("pytorchjob", trains(*TORCH, "[bash, -c, 'python m.py $WHAT']", "[bash, -c, 'python m.py $WHAT']"), "the command reads $WHAT"),
    "a blank": ("pytorchjob", trains(*TORCH, "[python, m.py, '<path>']", "[python, m.py, '<path>']"), "nothing has filled in path"),
}  # fmt: skip


@pytest.mark.parametrize("case", OPEN)
def test_a_question_about_the_command_lowers_the_percentage(case: str, tmp_path: Path) -> None:
    kind, text, said = OPEN[case]
    image = "openmpi" if kind == "pbs" else "pytorch"
    (one,) = imported(tmp_path, kind, text, "job.txt" if "#!" in text else "job.yaml", image=image).imported
    same = one.runs["lab"]
    (row,) = [row for row in same.rows if row.area == "command"]
    assert not row.is_same
    assert said in row.why
    assert same.percent < 100


SAME = {
    "equal commands": ("pytorchjob", trains(*TORCH, "[python, m.py]", "[python, m.py]")),
    "software of the old cluster": ("slurm", SBATCH + "module load gcc\nsrun ./x\n"),
    "another question of an option": ("slurm", SBATCH.replace("\n", " --reservation=tuesday\n", 2).replace("bash --reservation=tuesday", "bash") + "srun ./x\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_a_question_about_something_else_does_not_change_the_command(case: str, tmp_path: Path) -> None:
    kind, text = SAME[case]
    (one,) = imported(
        tmp_path, kind, text, "job.txt" if "#!" in text else "job.yaml", image="pytorch"
    ).imported
    (row,) = [row for row in one.runs["lab"].rows if row.area == "command"]
    assert row.is_same, row.why
