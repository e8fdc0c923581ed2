"""`gangplan import pytorchjob` and the training operator's other kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_ENTRYPOINT, IMPORT_SOURCE
from tests.imports.sources import JAXJOB, PADDLEJOB, PYTORCHJOB, TFJOB, XGBOOSTJOB, imported

LENS = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from PyTorchJob lens (job.yaml)"
image: lens
command:
  - bash
  - "-c"
  - |
    export RANK="$PET_NODE_RANK" WORLD_SIZE="$PET_NNODES"
    cd /opt/lens
    echo "node $RANK of $WORLD_SIZE"
    torchrun \\
      train.py --epochs 3
workers: 3
gpus: 4
cpu: 16
memory: 128Gi
data: {images: /images}
env: {FI_PROVIDER: efa}
timeout: 24h
labels: {migrated-from: pytorchjob}
"""


def asked(batch: Batch) -> str:
    return "\n".join(one.message for one in batch.everything if one.rule == IMPORT_ASKED)


def test_master_and_workers_become_workers(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", PYTORCHJOB)
    (one,) = batch.imported
    assert one.text == LENS
    assert one.is_right
    (different,) = one.runs["lab"].differences
    assert different.area == "command"
    assert "RANK, WORLD_SIZE by other names" in different.why


def test_a_script_that_only_starts_torchrun_is_removed(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace("              cd /opt/lens\n", "").replace(
        '              echo "node $RANK of $WORLD_SIZE"\n', ""
    )
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert one.draft.values["command"] == ["python", "train.py", "--epochs", "3"]
    assert one.runs["lab"].percent == 100


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('nprocPerNode: "4"', 'nprocPerNode: "2"', "slots", None),  # torchrun's own option decides
        ("--nproc_per_node=4", "", "slots", None),
        ("--nproc_per_node=4", "--nproc_per_node=2", "slots", 2),
        ("--nproc_per_node=4", "--nproc_per_node=gpu", "slots", None),
        ("      replicas: 2\n", "", "workers", 2),
    ],
)
def test_ranks_come_from_torchrun_or_the_gpus(
    tmp_path: Path, old: str, new: str, field: str, value: object
) -> None:
    assert old in PYTORCHJOB
    (one,) = imported(tmp_path, "pytorchjob", PYTORCHJOB.replace(old, new, 1)).imported
    assert one.draft.values.get(field) == value


def test_without_a_launcher_each_pod_is_one_rank(tmp_path: Path) -> None:
    """Without torchrun, each of the operator's pods is one rank, not one per GPU (envvar.go: WORLD_SIZE)."""
    text = PYTORCHJOB.replace('  nprocPerNode: "4"\n', "")
    head, _, tail = text.partition("            command: [bash, -c]\n")
    rest = tail[tail.index("            env:") :]
    (one,) = imported(
        tmp_path, "pytorchjob", f"{head}            command: [python, train.py]\n{rest}"
    ).imported
    assert one.draft.values["slots"] == 1
    assert one.draft.work.ranks == 3
    assert one.runs["lab"].percent == 100


def test_an_elastic_range_ends_at_the_workers_of_the_source(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace(
        '  nprocPerNode: "4"\n',
        "  elasticPolicy: {rdzvBackend: etcd, rdzvHost: etcd, rdzvPort: 2379, minReplicas: 1, maxReplicas: 8, maxRestarts: 10}\n",
    )
    batch = imported(tmp_path / "script", "pytorchjob", text)
    assert batch.imported[0].draft.values["workers"] == 3
    assert "from 1 to 8 workers may train" in asked(batch)  # a script's own torchrun would not get the range
    head, _, tail = text.partition("              cd /opt/lens\n")
    text = head + tail.replace('              echo "node $RANK of $WORLD_SIZE"\n', "")
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert one.draft.values["elastic"] == {"min": 1, "max": 3, "restarts": 10}
    assert "workers" not in one.draft.values
    assert one.is_right
    entries = {entry.name: entry for entry in one.draft.work.entries()}
    assert entries["spec.elasticPolicy.rdzvHost"].state == "dropped"
    assert "etcd" in entries["spec.elasticPolicy.rdzvBackend"].why


def test_a_range_of_one_number_is_fixed(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace('  nprocPerNode: "4"\n', "  elasticPolicy: {minReplicas: 3, maxReplicas: 3}\n")
    batch = imported(tmp_path, "pytorchjob", text)
    assert batch.imported[0].draft.values["workers"] == 3
    assert "workers may train" not in asked(batch)


def test_chief_and_parameter_servers_become_roles(tmp_path: Path) -> None:
    batch = imported(tmp_path, "tfjob", TFJOB)
    (one,) = batch.imported
    assert one.is_right
    assert one.draft.values["workers"] == 3
    assert one.draft.values["roles"] == {"chief": {"workers": 1, "cpu": 8}, "ps": {"workers": 2, "cpu": 2}}
    pods = {row.what: (row.source, row.run) for row in one.runs["lab"].rows if row.area == "pods"}
    assert pods == {"worker": ("3", "3"), "chief": ("1", "1"), "ps": ("2", "2")}
    assert one.runs["lab"].percent == 100


_READ = "command: [python, read.py], resources: {limits: {cpu: 2}}"


@pytest.mark.parametrize(
    "left", ["resources: {limits: {cpu: 2}}", "args: [--fast], resources: {limits: {cpu: 2}}"]
)
def test_a_role_without_a_command_does_not_get_that_of_the_workers(tmp_path: Path, left: str) -> None:
    """Its image's own entrypoint starts it, and only the image knows that."""
    assert _READ in TFJOB
    batch = imported(tmp_path, "tfjob", TFJOB.replace(_READ, left))
    assert not batch.imported
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.rule == IMPORT_ENTRYPOINT
    assert error.message.startswith("the ps has no command: ")
    assert error.where.line == TFJOB[: TFJOB.index("    PS:")].count("\n") + 6


def test_a_role_with_the_entrypoint_of_the_workers_gets_their_command(tmp_path: Path) -> None:
    """`--command` states the entrypoint of an image, which all pods with the same arguments start."""
    bare = TFJOB.replace("command: [python, read.py], ", "")
    batch = imported(tmp_path / "one", "tfjob", bare, command="python read.py")
    (one,) = batch.imported
    assert one.draft.values["roles"] == {"chief": {"workers": 1, "cpu": 8}, "ps": {"workers": 2, "cpu": 2}}
    other = bare.replace("reader:2, resources: {limits: {cpu: 2}}", "shelf:2, resources: {limits: {cpu: 2}}")
    assert other != bare
    batch = imported(tmp_path / "other", "tfjob", other, command="python read.py")
    assert [one.rule for one in batch.everything if one.is_error] == [IMPORT_ENTRYPOINT]


def test_arguments_that_name_a_program_are_the_command_of_a_role(tmp_path: Path) -> None:
    """A role whose arguments are the workers' is not left out; one with others starts its own program."""
    text = TFJOB.replace("command: [python", "args: [python")
    (one,) = imported(tmp_path / "same", "tfjob", text).imported
    assert one.draft.values["roles"] == {"chief": {"workers": 1, "cpu": 8}, "ps": {"workers": 2, "cpu": 2}}
    text = text.replace("[python, read.py], resources: {limits: {cpu: 2}}", "[python, serve.py], resources: {limits: {cpu: 2}}")  # fmt: skip
    batch = imported(tmp_path / "own", "tfjob", text)
    assert batch.imported[0].draft.values["roles"]["ps"]["command"] == ["python", "serve.py"]
    assert asked(batch).count("there is no command: the image's own entrypoint is given python") == 2


def test_roles_stay_with_their_framework_whatever_the_image_has(tmp_path: Path) -> None:
    """An image with MPI starts a program once on every worker, too: its framework is only the default."""
    batch = imported(tmp_path, "tfjob", TFJOB, image="openmpi")
    assert [one.message for one in batch.everything if one.is_error] == []
    assert batch.imported[0].draft.values["framework"] == "tensorflow"


def test_a_chief_without_workers_is_a_worker(tmp_path: Path) -> None:
    text = TFJOB[: TFJOB.index("    Worker:")]
    (one,) = imported(tmp_path, "tfjob", text).imported
    assert one.draft.values["workers"] == 1
    assert "roles" not in one.draft.values


def test_xgboost_gets_its_rank(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "xgboostjob", XGBOOSTJOB).imported
    assert one.is_right
    assert one.draft.values["env"]["WORLD_SIZE"] == "3"
    rows = {row.what: row.run for row in one.runs["lab"].rows}
    assert rows["RANK"] == "field metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert rows["MASTER_ADDR"]


def test_a_jax_script_gets_the_coordinator_under_its_old_names(tmp_path: Path) -> None:
    batch = imported(tmp_path, "jaxjob", JAXJOB)
    (one,) = batch.imported
    assert one.is_right
    script = one.draft.values["command"][2]
    assert script.startswith('export COORDINATOR_ADDRESS="${JAX_COORDINATOR_ADDRESS%:*}"')
    assert 'PROCESS_ID="$JAX_PROCESS_ID"' in script
    assert "the program gives the last two to jax.distributed.initialize()" in asked(batch)


_ROW = "[python, -m, paddle.distributed.launch, row.py]"


def imported_framework(batch: Batch) -> str:
    """Return the framework of the catalog's entry that the import suggests."""
    (entry,) = (one.value for one in batch.suggestions if one.path[:1] == ("images",))
    assert isinstance(entry, dict)
    return str(entry["framework"])


def test_workers_that_start_paddles_launcher_become_a_run_of_paddle(tmp_path: Path) -> None:
    batch = imported(tmp_path, "paddlejob", PADDLEJOB)
    (one,) = batch.imported
    assert one.is_right
    assert one.draft.values["retries"] == 2
    assert one.draft.values["command"] == ["python", "-m", "paddle.distributed.launch", "row.py"]
    assert imported_framework(batch) == "paddle"
    assert "what tells the pods of each other" not in asked(batch)


def test_what_only_the_run_knows_is_removed_from_paddles_launcher(tmp_path: Path) -> None:
    long = "[python, -m, paddle.distributed.launch, --master, 'a:1', --rank, '0', --nnodes, '2', --devices, '0,1', row.py]"
    text = PADDLEJOB.replace(_ROW, f"{long}, resources: {{limits: {{nvidia.com/gpu: 2}}}}")
    (one,) = imported(tmp_path, "paddlejob", text).imported
    assert one.is_right
    assert one.draft.values["command"][3:] == ["--devices", "0,1", "row.py"]
    assert "slots" not in one.draft.values


def test_a_paddlejob_without_its_launcher_stays_plain(tmp_path: Path) -> None:
    batch = imported(tmp_path, "paddlejob", PADDLEJOB.replace(_ROW, "[python, row.py]"))
    assert imported_framework(batch) == "plain"
    assert "only framework: paddle starts Paddle's launcher" in asked(batch)


def test_parameter_servers_of_paddle_are_asked_about(tmp_path: Path) -> None:
    head, _, pods = PADDLEJOB.partition("    Worker:\n")
    batch = imported(tmp_path, "paddlejob", f"{head}    Master:\n{pods}    Worker:\n{pods}")
    assert batch.imported[0].draft.values["workers"] == 4
    assert "starts parameter servers" in asked(batch)


def test_a_variable_that_the_kubelet_expands_becomes_one_of_the_shell(tmp_path: Path) -> None:
    """The kubelet expands `$(RANK)` before the shell reads the script; in a run nothing would."""
    text = PYTORCHJOB.replace("node $RANK of", "node $(RANK) of")
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert "node ${RANK} of $WORLD_SIZE" in one.draft.values["command"][2]


def test_a_job_without_pods_is_refused(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", PYTORCHJOB.replace("containers:", "others:"))
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.rule == IMPORT_SOURCE
    assert "spec.pytorchReplicaSpecs.Worker" in error.message


def test_a_worker_without_a_command_starts_the_master_s(tmp_path: Path) -> None:
    """People omit the worker's command, and its image's entrypoint would start instead."""
    begin = PYTORCHJOB.index("    Worker:")
    worker = """\
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: pytorch, image: "registry.example.com/optics/lens:7"}
"""
    batch = imported(tmp_path, "pytorchjob", PYTORCHJOB[:begin] + worker)
    (one,) = batch.imported
    assert one.draft.values["workers"] == 3
    assert "the worker has no command" in asked(batch)


def test_an_image_placeholder_needs_an_image_name(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace("registry.example.com/optics/lens:7", "<image name>:<tag>")
    batch = imported(tmp_path / "open", "pytorchjob", text)
    (error, *_) = [one for one in batch.everything if one.is_error]
    assert "--image NAME" in error.help
    assert imported(tmp_path / "named", "pytorchjob", text, image="pytorch").imported[0].is_right


def test_every_difference_has_a_reason(tmp_path: Path) -> None:
    """The source has GPUs of another name, and an elastic run sets its own options of torchrun."""
    text = PYTORCHJOB.replace('  nprocPerNode: "4"\n', "  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n")
    text = text.replace("nvidia.com/gpu: 4", "nvidia.com/a100: 4").replace("              cd /opt/lens\n", "")
    text = text.replace('              echo "node $RANK of $WORLD_SIZE"\n', "")
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    rows = one.runs["lab"].differences
    assert [row.what for row in rows] == ["nvidia.com/a100 of a worker"]
    assert all(row.why for row in rows)


CACHED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: tune}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          initContainers:
          - name: fetch
            image: registry.example.com/nlp/tune:1
            command: [fetch, --to, /root/.cache/huggingface/models]
            volumeMounts: [{name: models, mountPath: /root/.cache/huggingface}]
          containers:
          - name: pytorch
            image: registry.example.com/nlp/tune:1
            command: [python, tune.py, --models, /root/.cache/huggingface/models, --old, /root/.cache/huggingface2]
            env: [{name: OUT, value: /root/.cache/huggingface/out}]
            volumeMounts: [{name: models, mountPath: /root/.cache/huggingface/}]
            resources: {limits: {nvidia.com/gpu: 1, cpu: 4, memory: 16Gi}}
          volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
"""


def test_a_cache_in_the_home_of_root_moves_where_the_run_may_enter(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", CACHED)
    (one,) = batch.imported
    values = one.draft.values
    assert values["data"] == {"models": "/mnt/huggingface"}
    assert values["env"] == {"OUT": "/mnt/huggingface/out", "HF_HOME": "/mnt/huggingface"}
    assert values["command"][2:] == [
        "--models",
        "/mnt/huggingface/models",
        "--old",
        "/root/.cache/huggingface2",
    ]
    (fetch,) = values["setup"]
    assert fetch["command"] == ["fetch", "--to", "/mnt/huggingface/models"]
    assert "env" not in fetch  # it has the job's
    assert "only root may enter /root: this cache is at /mnt/huggingface, and HF_HOME says so" in asked(batch)
    assert one.is_right, one.findings
    (moved,) = [each for each in one.runs["lab"].differences if each.area == "volumes"]
    assert (moved.what, moved.run) == ("/root/.cache/huggingface", None)
    assert moved.why == "only root may enter /root: it is at /mnt/huggingface"


def test_roles_find_a_moved_cache(tmp_path: Path) -> None:
    pods = """
      replicas: {count}
      template:
        spec:
          containers:
          - name: tensorflow
            image: registry.example.com/text/reader:2
            command: [python, {program}, --models, /root/.cache/huggingface/base]
            env: [{{name: OUT, value: /root/.cache/huggingface/{program}}}]
            volumeMounts: [{{name: models, mountPath: /root/.cache/huggingface}}]
            resources: {{limits: {{cpu: 2, memory: 4Gi}}}}
          volumes: [{{name: models, persistentVolumeClaim: {{claimName: models}}}}]
"""
    head = TFJOB[: TFJOB.index("    Chief:")]
    text = f"{head}    Worker:{pods.format(count=3, program='read.py')}    PS:{pods.format(count=2, program='serve.py')}"
    (one,) = imported(tmp_path, "tfjob", text).imported
    assert one.draft.values["command"] == ["python", "read.py", "--models", "/mnt/huggingface/base"]
    served = one.draft.values["roles"]["ps"]
    assert served["command"] == ["python", "serve.py", "--models", "/mnt/huggingface/base"]
    assert served["env"] == {"OUT": "/mnt/huggingface/serve.py"}
    same = text.replace("serve.py", "read.py")
    (one,) = imported(tmp_path, "tfjob", same).imported
    assert not {"command", "env"} & one.draft.values["roles"]["ps"].keys()


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HF_HOME", "/root/.cache/huggingface", "/mnt/huggingface"),
        ("HF_HOME", "/models", "/models"),
        ("HF_HUB_CACHE", "/root/.cache/huggingface/hub", "/mnt/huggingface/hub"),
    ],
)
def test_a_cache_that_the_source_names_is_kept(variable: str, value: str, told: str, tmp_path: Path) -> None:
    text = CACHED.replace(
        "name: OUT, value: /root/.cache/huggingface/out", f"name: {variable}, value: {value}"
    )
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert one.draft.values["env"][variable] == told
    (fetch,) = one.draft.values["setup"]
    has_own = variable == "HF_HOME" and told != "/mnt/huggingface"
    assert fetch.get("env") == ({"HF_HOME": "/mnt/huggingface"} if has_own else None)


def test_where_a_source_saves_is_kept(tmp_path: Path) -> None:
    """A run sets CHECKPOINT_DIR only for `checkpoint`, which this source does not become."""
    text = CACHED.replace("name: OUT", "name: CHECKPOINT_DIR").replace("/root/.cache/huggingface", "/models")
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert one.draft.values["env"] == {"CHECKPOINT_DIR": "/models/out"}
    assert one.is_right, one.findings


def test_a_folder_of_roots_home_that_no_variable_names_is_refused(tmp_path: Path) -> None:
    """Nothing tells the program where its own folder has gone."""
    (one,) = imported(
        tmp_path, "pytorchjob", CACHED.replace("/root/.cache/huggingface", "/root/models")
    ).imported
    assert {each.rule for each in one.findings if each.is_error} == {"mount-hides"}


# Resources of the master and of workers, and of the workers' pods -> cpu, memory and GPUs of the run, and what is asked.
POD = "{limits: {cpu: 64, memory: 800Gi}}"
ASKED_AMOUNTS = {
    "of the pod alone": ("{limits: {nvidia.com/gpu: 2}}", "{limits: {nvidia.com/gpu: 2}}", POD, (64, "800Gi", 2), []),
    "of the pod and its container": (
        "{limits: {memory: 4Gi}}", "{limits: {memory: 4Gi}}", POD, (64, "4Gi", None), ["Master.template.spec.resources.limits.memory: the pod has 800Gi in all", "Worker.template.spec.resources.limits.memory"],
    ),
    "more of the master": (
        "{limits: {cpu: 8, memory: 500Gi, nvidia.com/gpu: 8}}", "{limits: {cpu: 4, memory: 50Gi, nvidia.com/gpu: 2}}", "{}",
        (4, "50Gi", 2), ["cpu: these pods have 8, others 4", "memory: these pods have 500Gi", "gpus: these pods have 8"],
    ),
    "less of the master": ("{limits: {cpu: 1, nvidia.com/gpu: 1}}", "{limits: {cpu: 4, nvidia.com/gpu: 2}}", "{}", (4, None, 2), ["gpus: these pods have 1, others 2"]),
    "more than a node": ("{limits: {nvidia.com/gpu: 32}}", "{}", "{}", (None, None, None), ["a worker has up to 16 GPUs"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED_AMOUNTS)
def test_no_amount_is_lost_in_silence(name: str, tmp_path: Path) -> None:
    master, worker, pod, wanted, asked = ASKED_AMOUNTS[name]
    container = "name: pytorch, image: 'registry.example.com/optics/lens:7', command: [torchrun, train.py]"
    text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: lens}\nspec:\n  pytorchReplicaSpecs:\n"
    for role, resources in (("Master", master), ("Worker", worker)):
        box = f"{{{container}, resources: {resources}}}"
        text += (
            f"    {role}: {{replicas: 1, template: {{spec: {{resources: {pod}, containers: [{box}]}}}}}}\n"
        )
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert tuple(one.draft.values.get(field) for field in ("cpu", "memory", "gpus")) == wanted
    told = {ask.message for ask in one.draft.questions if "digest" not in ask.message}
    assert len(told) == len(asked), told
    assert all(any(said in message for message in told) for said in asked), told
