"""`gangplan import trainjob`: a TrainJob with its runtime and patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import read_import_batch
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_ENTRYPOINT, IMPORT_SOURCE
from tests.imports import sources
from tests.imports.sources import TRAINJOB, home, imported
from tests.workspaces import WIDE_CLUSTER, write

BEES = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from TrainJob bees (job.yaml)"
image: bees
command: [python, fly.py, --far]
workers: 3
gpus: 2
cpu: 8
memory: 64Gi
data: {nectar: /nectar}
env: {WINGS: "4", STINGS: "1"}
placement: {nodePool: a100}
timeout: 2h
retries: 2
labels: {migrated-from: trainjob}
"""
JOB, RUNTIME = TRAINJOB.split("---\n")
# The shape of deepspeed_distributed.yaml of kubeflow/trainer v2.3.0.
MPI = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: hive}
spec:
  mlPolicy:
    numNodes: 1
    mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpiuser/.ssh, runLauncherAsNode: true}
  template:
    spec:
      network: {publishNotReadyAddresses: true}
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers:
                - {name: node, image: "registry.example.com/hive/base:1", command: [/usr/sbin/sshd], args: [-De]}
      - name: launcher
        dependsOn: [{name: node, status: Ready}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers:
                - {name: node, image: "registry.example.com/hive/base:1"}
"""


def test_the_spec_combines_trainer_runtime_and_patches(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "trainjob", TRAINJOB).imported
    assert one.text == BEES
    assert one.is_right
    assert one.runs["lab"].percent == 100


def test_the_account_includes_the_runtime(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "trainjob", TRAINJOB).imported
    entries = {(entry.name, entry.where.line): entry for entry in one.draft.work.entries()}
    by_value = {str(entry.value): entry for entry in entries.values()}
    assert by_value["infinity"].why == "the TrainJob has another one"
    assert by_value["infinity"].where.line > TRAINJOB.count("\n", 0, TRAINJOB.index("---"))
    assert not [entry for entry in entries.values() if entry.state == "asked"]


def test_the_command_is_expanded_with_all_variables(tmp_path: Path) -> None:
    """The runtime, the TrainJob and a patch set them; the kubelet knows them all."""
    job = JOB.replace("--far]", "--far, $(WINGS), $(STINGS), $$]")
    assert job != JOB
    (one,) = imported(tmp_path, "trainjob", f"{job}---\n{RUNTIME}").imported
    assert one.draft.values["command"] == ["python", "fly.py", "--far", "4", "1", "$"]


def test_older_patches_are_read_too(tmp_path: Path) -> None:
    """These are podTemplateOverrides of Trainer 2.0 and 2.1."""
    begin = JOB.index("  runtimePatches:")
    older = """\
  podTemplateOverrides:
  - targetJobs: [{name: node}]
    spec:
      nodeSelector: {pool: a100}
      volumes:
      - {name: nectar, persistentVolumeClaim: {claimName: nectar}}
      containers:
      - {name: node, volumeMounts: [{name: nectar, mountPath: /nectar}]}
"""
    (one,) = imported(tmp_path, "trainjob", f"{JOB[:begin]}{older}---\n{RUNTIME}").imported
    assert one.text == BEES


def test_a_runtime_of_mpi_has_a_launcher(tmp_path: Path) -> None:
    job = JOB.replace("command: [torchrun]", "command: [mpirun]").replace("[fly.py", "[python, fly.py")
    (one,) = imported(tmp_path, "trainjob", f"{job}---\n{MPI}").imported
    values = one.draft.values
    assert values["command"] == ["python", "fly.py", "--far"]
    assert values["launcher"] == {"runsRanks": True}
    assert values["workers"] == 3
    assert "slots" not in values  # one for each GPU, as in Trainer where the runtime says 1
    assert one.draft.work.ranks == 6
    assert one.is_right


def test_ranks_without_gpus_are_one_per_core(tmp_path: Path) -> None:
    """Without GPUs, Trainer starts a rank for each core (v2.3.0, plugins/torch/torch.go)."""
    (one,) = imported(tmp_path, "trainjob", TRAINJOB.replace(", nvidia.com/gpu: 2", "")).imported
    assert one.draft.values["slots"] == 8
    assert one.runs["lab"].percent == 100


def test_trainers_own_runtimes_are_known_and_asked_about(tmp_path: Path) -> None:
    batch = imported(tmp_path, "trainjob", JOB.replace("name: hive", "name: torch-distributed"))
    (one,) = batch.imported
    assert one.draft.values["command"] == ["python", "fly.py", "--far"]
    asked = [each for each in batch.everything if each.rule == IMPORT_ASKED]
    assert any("torch-distributed is not among the sources" in each.message for each in asked)
    assert any("kubectl get clustertrainingruntime torch-distributed" in each.help for each in asked)


def test_the_command_decides_the_kind_of_an_unknown_runtime(tmp_path: Path) -> None:
    batch = imported(tmp_path, "trainjob", JOB)
    assert [one.is_right for one in batch.imported] == [True]
    assert any("one of torch" in each.message for each in batch.everything)


@pytest.mark.parametrize(
    ("old", "new", "rule", "message"),
    [
        ("    image: registry.example.com/hive/bees:3\n", "", IMPORT_SOURCE, "runtime hive is not among"),
        (
            "    command: [torchrun]\n    args: [fly.py, --far]\n",
            "",
            IMPORT_SOURCE,
            "runtime hive is not among",
        ),
        ("    command: [torchrun]\n", "", IMPORT_ENTRYPOINT, ""),
    ],
)
def test_missing_parts_are_refused_with_a_help(
    tmp_path: Path, old: str, new: str, rule: object, message: str
) -> None:
    job = JOB.replace(old, new)
    assert job != JOB
    if rule == IMPORT_ENTRYPOINT:
        job = job.replace("name: hive", "name: torch-distributed").replace("[fly.py, --far]", "[--far]")
    batch = imported(tmp_path, "trainjob", job)
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.rule == rule
    assert message in error.message
    if rule == IMPORT_SOURCE:
        assert "kubectl get clustertrainingruntime hive -o yaml" in error.help


# The shape of torchtune/llama3_2 of kubeflow/trainer v2.3.0.
FETCHING = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: hive}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      volumeClaimPolicies:
      - templates:
        - metadata: {name: initializer}
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers:
                - name: dataset-initializer
                  image: ghcr.io/kubeflow/trainer/dataset-initializer
                  env: [{name: STORAGE_URI, value: "hf://bees/wings"}]
                  volumeMounts: [{mountPath: /workspace, name: initializer}]
      - name: model-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
          spec:
            template:
              spec:
                containers:
                - name: model-initializer
                  image: ghcr.io/kubeflow/trainer/model-initializer
                  env: [{name: STORAGE_URI, value: "hf://bees/queen"}]
                  volumeMounts: [{name: initializer, mountPath: /workspace}]
      - name: comb
        dependsOn: [{name: model-initializer, status: Complete}]
        template:
          spec:
            template:
              spec:
                containers:
                - {name: comb, image: "registry.example.com/hive/bees:3", command: [build, /workspace/comb], resources: {limits: {cpu: 2, memory: 4Gi}}}
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}, {name: comb, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers:
                - {name: node, image: "registry.example.com/hive/bees:3", volumeMounts: [{mountPath: /workspace, name: initializer}]}
"""
INITIALIZED = JOB[: JOB.index("  runtimePatches:")].replace(
    "  suspend: true\n",
    "  suspend: true\n  initializer:\n    model: {storageUri: 'hf://bees/drone', secretRef: {name: honey}}\n",
)


def test_initializers_and_jobs_before_the_workers_become_steps(tmp_path: Path) -> None:
    batch = imported(tmp_path, "trainjob", f"{INITIALIZED}---\n{FETCHING}")
    (one,) = batch.imported
    values = one.draft.values
    assert values["steps"] == [
        {"name": "dataset", "fetch": "hf://datasets/bees/wings", "to": "/workspace/dataset"},
        {
            "name": "model",
            "fetch": "hf://bees/drone",
            "to": "/workspace/model",
            "secret": "honey/ACCESS_TOKEN",
        },
        {"name": "comb", "command": ["build", "/workspace/comb"], "cpu": 2, "memory": "4Gi"},
    ]
    assert values["data"] == {"hive-data": "/workspace"} or list(values["data"].values()) == ["/workspace"]
    suggested = {one.path: one.value for one in one.draft.suggestions}
    (claim,) = values["data"]
    assert suggested["claims", claim] == {
        "accessModes": ["ReadWriteMany"]
    }  # the cluster has no storage class for a claim of its own
    assert suggested["secrets",] == ("honey",)
    assert next(v for path, v in suggested.items() if path[0] == "images")["fetches"] == ["hf"]
    asked = "\n".join(each.message for each in batch.everything if each.rule == IMPORT_ASKED)
    assert "offers no endpoint huggingface" in asked
    assert "volume of the run's own" in asked


def test_a_bucket_of_an_initializer_becomes_a_connection(tmp_path: Path) -> None:
    text = FETCHING.replace("hf://bees/wings", "s3://swarm/2026/wings")
    (one,) = imported(tmp_path, "trainjob", f"{INITIALIZED}---\n{text}").imported
    step = one.draft.values["steps"][0]
    assert step == {"name": "dataset", "fetch": "swarm/2026/wings", "to": "/workspace/dataset"}
    suggested = {one.path: one.value for one in one.draft.suggestions}
    assert suggested["connections", "swarm"] == {"bucket": "swarm"}


def test_an_initializer_without_its_runtime_fetches_to_trainers_folder(tmp_path: Path) -> None:
    job = INITIALIZED.replace("name: hive", "name: torch-distributed")
    (one,) = imported(tmp_path, "trainjob", job).imported
    assert one.draft.values["steps"][0]["to"] == "/workspace/model"


def test_several_pods_before_the_workers_are_asked_about(tmp_path: Path) -> None:
    text = FETCHING.replace("  - name: comb\n", "  - name: comb\n        replicas: 2\n")
    assert text != FETCHING
    batch = imported(tmp_path, "trainjob", f"{INITIALIZED}---\n{text}")
    assert any("no step of several pods" in entry.why for entry in batch.imported[0].draft.work.entries())


def test_a_cluster_with_a_default_class_creates_the_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = "storageClasses: {shared: {accessModes: [ReadWriteMany], default: true}}\n"
    monkeypatch.setattr(sources, "WIDE_CLUSTER", WIDE_CLUSTER + classes)
    (one,) = imported(tmp_path, "trainjob", f"{INITIALIZED}---\n{FETCHING}").imported
    suggested = {one.path: one.value for one in one.draft.suggestions}
    assert [value for path, value in suggested.items() if path[0] == "claims"] == [
        {"accessModes": ["ReadWriteMany"], "size": "20Gi"}
    ]


def test_steps_named_like_trainers_initializers_are_renamed(tmp_path: Path) -> None:
    text = FETCHING.replace("name: comb\n", "name: model-initializer\n", 1)
    assert text != FETCHING
    (one,) = imported(tmp_path, "trainjob", f"{INITIALIZED}---\n{text}").imported
    assert "model-initializer" not in [step.get("name") for step in one.draft.values["steps"]]


def test_a_runtime_may_be_in_another_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "sources", {"a/job.yaml": JOB, "b/runtime.yaml": RUNTIME})
    batch = read_import_batch(SOURCE_KINDS["trainjob"], [folder], home(tmp_path / "workspace"), {})
    (one,) = batch.imported
    assert one.draft.values["gpus"] == 2
    assert not batch.findings


HIVE = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: hive}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: trainer
        template:
          spec:
            parallelism: 4
            completions: 4
            template:
              spec:
                containers:
                - name: trainer
                  image: registry.example.com/hive/base:1
                  command: [torchrun, own.py]
                  resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}}
"""


@pytest.mark.parametrize("name", ["trainer", "node"])
def test_a_runtime_whose_only_job_lacks_the_label_runs_its_own_container(name: str, tmp_path: Path) -> None:
    """Trainer v2.3 gives what a TrainJob says to the job with its label (jobset.go); this one runs as it is."""
    job = JOB[: JOB.index("  runtimePatches:")]
    batch = imported(tmp_path, "trainjob", f"{job}---\n{HIVE.replace('- name: trainer', f'- name: {name}')}")
    (one,) = batch.imported
    assert one.is_right, one.findings
    assert (one.draft.values["command"], one.draft.values["workers"]) == (["python", "own.py"], 4)
    (found,) = [each for each in batch.everything if "the job with the label" in each.message]
    assert f"{name} lacks it" in found.message
    assert "add the label" in found.help
    told = {entry.state for entry in one.draft.work.entries() if entry.name.startswith("spec.trainer.")}
    assert told == {"asked"}


@pytest.mark.parametrize("name", ["trainer", "node"])
def test_a_job_without_the_label_keeps_its_replicas(name: str, tmp_path: Path) -> None:
    """Trainer v2.3 sets 1 only for a job with its label, and JobSet makes all the others (seen on a lab)."""
    runtime = HIVE.replace("name: trainer\n        t", f"name: {name}\n        replicas: 3\n        t")
    job = JOB[: JOB.index("  runtimePatches:")]
    batch = imported(tmp_path, "trainjob", f"{job}---\n{runtime}")
    (one,) = batch.imported
    assert one.draft.values["workers"] == 12
    assert [each for each in batch.everything if "3 jobs of 4 pods become 12 workers" in each.message]
    (entry,) = [each for each in one.draft.work.entries() if each.name.endswith("[0].replicas")]
    assert (entry.state, entry.to) == ("mapped", "workers")


def test_a_job_of_no_replicas_has_no_pods(tmp_path: Path) -> None:
    runtime = HIVE.replace("name: trainer\n        t", "name: trainer\n        replicas: 0\n        t")
    batch = imported(tmp_path, "trainjob", f"{JOB[: JOB.index('  runtimePatches:')]}---\n{runtime}")
    assert [each.message for each in batch.everything] == [
        "this TrainJob cannot be imported: its runtime has no pods: replicas of the job trainer is 0"
    ]
