"""Shapes of published jobs, rewritten for these tests: each was imported wrongly once, mostly silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.imports.batch import Batch
from gangplan.imports.sources import fill_envsubst_blanks
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SCRIPT, IMPORT_SOURCE, IMPORT_TEMPLATE
from tests.imports.sources import imported

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=%s --ntasks-per-node=1 --gpus-per-node=%s --time=1:00:00\n"
TWICE = """srun bash -c "
set -e
torchrun --standalone --nproc_per_node=%s train.py
torchrun --standalone --nproc_per_node=%s eval.py
"
"""
ARRAY = """#SBATCH --array=0-1
names=(small large)
name=${names[SLURM_ARRAY_TASK_ID]}
key=$(echo $name | cut -c 1)
uv run python probe.py --key $key
"""
PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=8\n#PBS -l walltime=0:10:00\n"
PALS = """#PBS -l select=2:system=blue
N=$(wc -l < $PBS_NODEFILE)
mpiexec -n $((N * 4)) --ppn 4 --depth=8 --cpu-bind depth --env OMP_NUM_THREADS=8 --no-vni ./solve --fast
"""
AZURE = """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
display_name: prepare
environment: azureml:tools@latest
compute: azureml:cluster
inputs: {machines: 2, processes: 8}
command: %s
distribution: {type: %s, process_count_per_instance: 1}
resources: {instance_count: 2}
"""
ACCELERATE = (
    "accelerate launch --num_machines ${{inputs.machines}} --num_processes ${{inputs.processes}} train.py"
)


def container(command: str = "[torchrun, train.py]", more: str = "", gpus: int = 1) -> str:
    return (
        f"{{name: pytorch, image: registry.example.com/t/lens:1, command: {command}, {more}"
        f"resources: {{limits: {{cpu: 8, memory: 32Gi, nvidia.com/gpu: {gpus}}}}}}}"
    )


def pytorchjob(worker: str, master: str = "", more: str = "", spec: str = "") -> str:
    """Return a PyTorchJob; worker and master are pod specs, flow style."""
    replicas = f"Worker: {{replicas: 2, template: {worker}}}"
    if master:
        replicas = f"Master: {{replicas: 1, template: {master}}}, {replicas}"
    return (
        f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: lens{more}}}\n"
        f"spec: {{{spec}pytorchReplicaSpecs: {{{replicas}}}}}\n"
    )


def pod(box: str, more: str = "", labels: str = "") -> str:
    return f"{{metadata: {{labels: {{{labels}}}}}, spec: {{{more}containers: [{box}]}}}}"


def mpijob(script: str, env: str = "") -> str:
    return (
        "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: reduce}\nspec:\n  mpiReplicaSpecs:\n"
        "    Launcher:\n      template: {spec: {containers: [{name: m, image: registry.example.com/t/nccl:1,"
        f" env: [{env}], command: [bash, -c, '{script}']}}]}}}}\n"
        "    Worker:\n      replicas: 2\n      template: {spec: {containers: [{name: w, image: registry.example.com/t/nccl:1,"
        " resources: {limits: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 2}}}]}}\n"
    )


def field(path: str) -> str:
    return f'env: [{{name: PLACE, valueFrom: {{fieldRef: {{fieldPath: "{path}"}}}}}}], '


INDEX = "metadata.labels['training.kubeflow.org/replica-index']"
NUMBER = {"PLACE": {"field": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: lens}
spec: {%sbackoffLimit: 2, template: {spec: {containers: [%s]}}}
"""
# Kind, source, image of the catalog; expected values of the spec, None where there must be none.
CASES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "several launches of torchrun keep their ranks": (
        "slurm", SCRIPT % (1, 8) + TWICE % (8, 8), "pytorch", {"slots": None, "gpus": 8}
    ),
    "no arguments make no word": (
        "slurm", SCRIPT % (2, 2) + 'srun torchrun --nnodes=2 --nproc_per_node=2 train.py "$@"\n', "pytorch",
        {"command": ["python", "train.py"]},
    ),
    "questions that one process answers": (
        "slurm",
        SCRIPT % (2, 4)
        + "nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )\n"
        + "ip=$(srun -N1 -n1 -w ${nodes[0]} bash -c \"hostname -I | cut -d' ' -f1\")\n"
        + "where=$(srun --ntasks=1 python -c 'import socket; print(socket.gethostname())')\n"
        + "srun torchrun --nnodes 2 --nproc_per_node 4 --rdzv_endpoint $ip:29500 train.py\n",
        "pytorch",
        {"command": ["python", "train.py"], "workers": 2, "gpus": 4},
    ),
    "a program that uv runs": (
        "slurm", SCRIPT % (1, 1) + "uv run python train.py\n", "pytorch", {"command": ["uv", "run", "python", "train.py"]}
    ),
    "a count that has a default": ("mpijob", mpijob("mpirun -np ${NP:-4} all_reduce"), "", {"slots": None}),
    "a count that a variable has": (
        "mpijob", mpijob("mpirun -np $NP all_reduce", '{name: NP, value: "2"}'), "", {"slots": 1}
    ),
    "GPUs for what the command starts": ("azureml", AZURE % (ACCELERATE, "pytorch"), "pytorch", {"gpus": 4, "slots": None}),
    "the number of a pod": ("pytorchjob", pytorchjob(pod(container(more=field(INDEX)))), "", {"env": NUMBER}),
    "a label of the pod's own": (
        "pytorchjob", pytorchjob(pod(container(more=field("metadata.labels['site']")), labels="site: north")), "",
        {"env": {"PLACE": "north"}},
    ),
    "a variable that mpirun hands on by its own value": (
        "mpijob", mpijob("true", '{name: KEY, valueFrom: {secretKeyRef: {name: keys, key: key}}}').replace(
            "[bash, -c, 'true']", "[mpirun, -np, '4', -x, KEY=$(KEY), -x, A=1, reduce]"
        ), "", {"env": {"A": "1"}, "secrets": {"env": {"KEY": "keys/key"}}},
    ),
    "a PATH that nothing completes": ("pytorchjob", pytorchjob(pod(container(more='env: [{name: PATH, value: "$PATH:/opt/tool/bin"}], '))), "", {"env": None}),
    "keys of the operator's own for SSH": (
        "mpijob", mpijob("mpirun -np 4 reduce").replace("spec: {containers: [{name: w,", "spec: {volumes: [{name: k, secret: "
        "{secretName: reduce-ssh}}], containers: [{name: w, volumeMounts: [{name: k, mountPath: /home/m/.ssh}],").replace(
            "  mpiReplicaSpecs", "  sshAuthMountPath: /home/m/.ssh\n  mpiReplicaSpecs"), "", {"secrets": None},
    ),
    "a program in the user's folder": (
        "slurm", SCRIPT % (1, 1) + "~/bin/train --fast '~/as it is'\n", "pytorch",
        {"command": ["bash", "-c", "\"$HOME\"/bin/train --fast '~/as it is'"]},
    ),
    "more words than a command has": (
        "azureml", AZURE % ("python prepare.py" + " --a b" * 70, "mpi"), "openmpi",
        {"command": ["bash", "-c", "exec python prepare.py" + " --a b" * 70]},
    ),
    "mpiexec of PALS": (
        "pbs", PALS, "openmpi",
        {"command": ["./solve", "--fast"], "workers": 2, "slots": 4, "cpu": 32, "env": {"OMP_NUM_THREADS": "8"}},
    ),
    "mpiexec of PALS for an image of torch": (
        "pbs", PBS + "mpiexec -n 4 --ppn 2 --cpu-bind list:0:8 python train.py\n", "pytorch", {"command": ["python", "train.py"], "slots": 2}
    ),
    "mpiexec of Hydra stays what it was": (
        "pbs", PBS + "mpiexec -n 16 -ppn 8 -genv A 1 ./solve\n", "mpich", {"command": ["./solve"], "slots": 8, "env": {"A": "1"}}
    ),
    "a Job of one pod": ("job", JOB % ("", container("[torchrun, --nproc_per_node=4, train.py]", gpus=4)), "", {"workers": 1, "gpus": 4, "retries": 2}),
    "a Job of numbered pods": (
        "job", JOB % ("completionMode: Indexed, parallelism: 3, completions: 3, ", container()), "", {"workers": 3}
    ),
}  # fmt: skip


def read(root: Path, kind: str, source: str, image: str = "") -> Batch:
    return imported(root, kind, source, "job.yaml", **({"image": image} if image else {}))


def asked(batch: Batch) -> list[str]:
    return [one.message for one in batch.everything if one.rule == IMPORT_ASKED]


@pytest.mark.parametrize("name", CASES)
def test_each_shape_is_imported_as_expected(name: str, tmp_path: Path) -> None:
    kind, source, image, wanted = CASES[name]
    batch = read(tmp_path, kind, source, image)
    (one,) = batch.imported
    assert {key: one.draft.values.get(key) for key in wanted} == wanted
    assert one.is_right, one.findings


# Kind, source; how often the question is asked.
SAID: dict[str, tuple[str, str, str, int]] = {
    "launches that differ": ("slurm", SCRIPT % (1, 8) + TWICE % (8, 1), "this launch starts 1 rank, others of the command 8", 1),
    "a count that only the script knows": ("mpijob", mpijob("mpirun -np $(cat n) all_reduce"), "only the script knows", 1),
    "a label that no pod has": (
        "pytorchjob", pytorchjob(pod(container(more=field("metadata.labels['site']")))), "it would be empty", 1
    ),
    "numbers of two roles": (
        "pytorchjob", pytorchjob(pod(container(more=field(INDEX))), pod(container(more=field(INDEX)))), "it would be empty", 2
    ),
    "a master on other nodes": (
        "pytorchjob", pytorchjob(pod(container()), pod(container(), more="nodeSelector: {disk: fast}, ")), "other nodes than the workers", 1
    ),
    "processes that Azure ML starts": ("azureml", AZURE % ("python prepare.py", "mpi"), "nothing in the command starts ranks", 0),
    "processes that MPT starts": ("pbs", PBS + "module load mpt\nmpiexec_mpt ./pi 100\n", "nothing in the command starts ranks", 0),
    "hosts of the scheduler": (
        "pbs", PBS + "NP=$(wc -l < $PBS_NODEFILE)\nmpirun -machinefile $PBS_NODEFILE -np $NP ./solve\n", "PBS_NODEFILE", 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_each_question_is_asked_as_often_as_expected(name: str, tmp_path: Path) -> None:
    kind, source, words, count = SAID[name]
    image = {"slurm": "pytorch", "pbs": "openmpi", "azureml": "openmpi"}.get(kind, "")
    assert sum(words in one for one in asked(read(tmp_path, kind, source, image))) == count


# Kind, source; the line, message and help of the refusal.
REFUSED: dict[str, tuple[str, str, int, str, str]] = {
    "a loop reads what launches print": (
        "pbs", PBS + "for n in 2 4; do\n  t=$(mpirun -n $n ./par | grep Time)\n  echo $t\ndone\n", 5,
        "a loop starts it several times", "Write the launch of one run without it.",
    ),
    "a variable holds what a launch prints": (
        "pbs", PBS + "t=$(mpirun ./par | grep Time)\necho $t\n", 4, "the script reads what the launch prints",
        "let its program write",
    ),
    "arguments that nobody gave": (
        "slurm", SCRIPT % (1, 1) + 'if [ "$#" -ne 2 ]; then\n  exit 1\nfi\npython train.py "$1" --seed "$2"\n', 6,
        "the script ends before this", "--set 1=VALUE --set 2=VALUE.",
    ),
    "a template's variable in words": (
        "pytorchjob", pytorchjob(pod(container("[torchrun, train.py, '--epochs=${EPOCHS}', --lr, $LR]"))), 4,
        "nothing has filled in $EPOCHS and $LR, and no shell reads the command", "--set EPOCHS=VALUE --set LR=VALUE.",
    ),
    "a template's own forms of a variable": (
        "pytorchjob", pytorchjob(pod(container())).replace("registry.example.com/t/lens:1", "'r.example.com/${build:lens,.}'"), 4,
        "nothing has filled in ${build:lens,.}", "--set build=VALUE",
    ),
    "blanks": (
        "pytorchjob", pytorchjob(pod(container(), more="volumes: [{name: d, persistentVolumeClaim: {claimName: REPLACE_WITH_YOUR_PVC}}], ")),
        4, "nothing has filled in REPLACE_WITH_YOUR_PVC", "--set REPLACE_WITH_YOUR_PVC=VALUE.",
    ),
    "a blank with spaces": (
        "pytorchjob", pytorchjob(pod(container())).replace("registry.example.com/t", "'<MY HOST>/t").replace("lens:1", "lens:1'"),
        4, "nothing has filled in <MY HOST>", "--set 'MY HOST=VALUE'",
    ),
    "a Job of another group": ("volcano", JOB % ("", container()), 0, "but a Job of batch/v1", "Write gangplan import job."),
    "an API that was": (
        "trainjob", "apiVersion: kubeflow.org/v2alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec: {}\n", 0,
        "but a TrainJob of kubeflow.org/v2alpha1", "gangplan reads no TrainJob of that API",
    ),
    "an API without replicas": (
        "mpijob", "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec: {gpus: 8}\n", 1,
        "no operator reads any more", "kubeflow.org/v2beta1",
    ),
    "no job at all": (
        "pytorchjob", "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {}\n", 0, "but a RayJob of ray.io/v1",
        "A run has no Ray cluster",
    ),
    "pods one after the other": (
        "job", JOB % ("parallelism: 2, completions: 9, ", container()), 1, "9 pods, 2 at a time", "Sweep",
    ),
    "a Job without pods": ("job", JOB % ("parallelism: 0, ", container()), 1, "it has no pods", "how many pods"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_each_refusal_has_its_line_message_and_help(name: str, tmp_path: Path) -> None:
    kind, source, line, message, help = REFUSED[name]
    batch = read(tmp_path, kind, source)
    assert not batch.imported
    (found,) = batch.everything
    assert found.rule in (IMPORT_SCRIPT, IMPORT_SOURCE, IMPORT_TEMPLATE)
    assert (found.where.line if line else 0) == line
    assert message in found.message
    assert help in (found.help or "")


def test_tasks_of_an_array_know_their_number_in_subscripts(tmp_path: Path) -> None:
    """A script that stays would have started task 0 ten times: nothing in a run sets SLURM_ARRAY_TASK_ID."""
    batch = imported(tmp_path, "slurm", SCRIPT % (1, 1) + ARRAY, "job.sbatch", image="pytorch")
    scripts = [one.draft.values["command"][-1] for one in batch.imported]
    assert [f"${{names[{number}]}}" in script for number, script in enumerate(scripts)] == [True, True]
    assert not any("TASK_ID" in script for script in scripts)


def test_fields_without_meaning_for_a_run_are_not_asked_about(tmp_path: Path) -> None:
    sources = {
        "pytorchjob": pytorchjob(
            pod(container(), more="nodeSelector: {}, "),
            more=", clusterName: '', annotations: {}",
            spec="cleanPodPolicy: None, ",
        ),
        "trainjob": "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec: {runtimeRef: {name:"
        " torch-distributed}, podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 300}}, trainer: {numNodes: 2, image:"
        " registry.example.com/t/lens:1, command: [torchrun, train.py]}}\n",
    }
    for kind, source in sources.items():
        (tmp_path / kind).mkdir()
        (one,) = read(tmp_path / kind, kind, source).imported
        assert [entry.name for entry in one.draft.work.entries() if entry.state == "asked"] == []


def test_each_attribute_of_pbs_has_its_own_reason(tmp_path: Path) -> None:
    text = (
        PBS + "#PBS -W group_list=physics\n#PBS -W depend=afterok:12\n#PBS -W stagein=a@b:c\nmpirun ./solve\n"
    )
    (one,) = read(tmp_path, "pbs", text, "openmpi").imported
    told = {
        entry.value: (entry.state, entry.why)
        for entry in one.draft.work.entries()
        if entry.name.startswith("-W")
    }
    assert told["group_list=physics"][0] == "dropped"
    assert told["depend=afterok:12"] == ("asked", "after: says which runs come before this one")
    assert "claims" in told["stagein=a@b:c"][1]


def test_folders_of_nfs_become_volumes_of_the_team(tmp_path: Path) -> None:
    """The platform states them in the cluster file; one folder is one volume, however often it is mounted."""
    volumes = "{name: Sheets, nfs: {server: nfs.example.com, path: /sheets}}, {name: x, nfs: {server: nfs.example.com, path: /x, readOnly: true}}"
    mounts = "volumeMounts: [{name: Sheets, mountPath: /data}, {name: x, mountPath: /x}], "
    worker = pod(container(more=mounts), more=f"volumes: [{volumes}], ")
    batch = read(tmp_path, "pytorchjob", pytorchjob(worker, worker))
    (one,) = batch.imported
    assert one.draft.values["data"] == {"sheets": "/data", "x": "/x"}
    assert one.is_right, one.findings
    told = {one.path: one.value for one in batch.suggestions}
    entry = {"nfs": {"server": "nfs.example.com", "path": "/sheets"}, "size": "1Ti"}
    assert told["teams", "nlp", "persistentVolumes", "sheets"] == entry
    assert told["claims", "x"] == {"accessModes": ["ReadWriteMany"], "readOnly": True}
    assert len([path for path in told if "persistentVolumes" in path]) == 2
    assert {row.why for row in one.runs["lab"].differences} == {"a claim of the team shows the same folder"}


def test_a_key_whose_file_has_another_name_is_asked_about(tmp_path: Path) -> None:
    """The program would not find its file; a mount at a folder with a slash behind is the same folder."""
    items = "items: [{key: cert, path: curve.cert}, {key: same, path: same}], defaultMode: 420"
    box = container(more="volumeMounts: [{name: c, mountPath: /keys/}], ")
    batch = read(
        tmp_path, "pytorchjob",
        pytorchjob(pod(box, more=f"volumes: [{{name: c, configMap: {{name: curve, {items}}}}}], ")),
    )  # fmt: skip
    (one,) = batch.imported
    assert one.is_right, one.findings
    assert [found for found in asked(batch) if "the file is called cert there, not curve.cert" in found]
    states = {entry.name.rpartition("configMap.")[2]: entry.state for entry in one.draft.work.entries()}
    assert (states["items[0].path"], states["items[1].path"]) == ("asked", "dropped")
    assert states["defaultMode"] == "defaulted"
    (row,) = [row for row in one.runs["lab"].differences if row.area == "volumes"]
    assert (row.what, row.source, row.run) == (
        "/keys",
        "configMap curve cert as curve.cert",
        "configMap curve",
    )
    assert "under their own names" in row.why


def test_a_secret_is_asked_about_and_never_copied(tmp_path: Path) -> None:
    key = "9b1f7e52c0d84a63bf21" + "e07d5c9a8b3640fe712d"
    box = container(more=f"env: [{{name: WANDB_API_KEY, value: {key}}}, {{name: DEPTH, value: '4'}}], ")
    batch = read(tmp_path, "pytorchjob", pytorchjob(pod(box)))
    (one,) = batch.imported
    assert one.is_right, one.findings
    assert one.draft.values["env"] == {"DEPTH": "4"}
    (question,) = [
        found for found in batch.everything if found.rule == IMPORT_ASKED and "secret" in found.message
    ]
    assert "WANDB_API_KEY looks like a secret, and is not copied" in question.message
    assert "secrets: {env: {WANDB_API_KEY: SECRET/KEY}}" in (question.help or "")
    (row,) = [row for row in one.runs["lab"].differences if row.what == "WANDB_API_KEY"]
    assert (row.source, row.run) == ("(hidden)", None)


def test_placeholders_are_filled_in() -> None:
    text = "image: <account>.example.com/<my tag>, claim: YOUR_CLAIM, <other>, $A, MY_YOUR_CLAIM_2, ${A:b,c} ${A,b} ${A:0:1} ${A,,}"
    assert fill_envsubst_blanks(
        text, {"account": "123", "my tag": "x:1", "YOUR_CLAIM": "data", "A": "1"}
    ) == ("image: 123.example.com/x:1, claim: data, <other>, 1, MY_YOUR_CLAIM_2, 1 1 ${A:0:1} ${A,,}")


def test_how_ranks_are_started_is_removed_from_a_script(tmp_path: Path) -> None:
    """The run sets it for its own hosts, and refuses a value of the script (`command-reserved`)."""
    lines = "export I_MPI_HYDRA_BOOTSTRAP=ssh\n\n      export DEPTH=4\n\n      cd /opt && mpirun -n 4 ./x"
    (one,) = read(tmp_path, "mpijob", mpijob(lines), "mpich").imported
    assert one.draft.values["command"][-1] == "export DEPTH=4\ncd /opt && mpirun ./x"
    assert any("I_MPI_HYDRA_BOOTSTRAP" in note for note in one.draft.work.notes)
    assert "command-reserved" not in {str(finding.rule) for finding in one.findings}
