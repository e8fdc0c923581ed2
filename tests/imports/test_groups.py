"""`gangplan import jobset` and `volcano`: groups of pods, where only some train."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.account import Account
from gangplan.imports.batch import Batch
from gangplan.imports.groups import SourcePodGroup, group_imported_pods_into_roles
from gangplan.imports.pods import read_imported_pod_template
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SOURCE
from gangplan.source import load_document
from tests.imports.sources import JOBSET, VOLCANO, imported

TIDE = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from JobSet tide (job.yaml)"
image: tide
command: [python, ebb.py, --flood]
# one per node
workers: 4
gpus: 2
cpu: 8
memory: 64Gi
setup: [{name: fetch, image: fetch, command: [fetch, /sea]}]
sidecars: [{name: watch, command: [watch], cpu: 1, memory: 1Gi}]
retries: 1
labels: {migrated-from: jobset}
"""
LAVA = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from VolcanoJob lava (job.yaml)"
image: lava
command: [erupt]
workers: 2
slots: 2
cpu: 8
memory: 32Gi
data: {ash: /ash}
retries: 2
labels: {migrated-from: volcanojob}
"""


def asked(batch: Batch) -> str:
    return "\n".join(one.message for one in batch.everything if one.rule == IMPORT_ASKED)


def test_a_jobset_of_torchrun_becomes_a_spec(tmp_path: Path) -> None:
    batch = imported(tmp_path, "jobset", JOBSET)
    (one,) = batch.imported
    assert one.text == TIDE
    assert one.is_right
    assert {row.what for row in one.runs["lab"].differences} == {"MASTER_ADDR", "MASTER_PORT", "RANK"}
    assert all(row.why == "torchrun sets it for every rank" for row in one.runs["lab"].differences)
    assert "example.com/block" in asked(batch)


def test_a_volcano_job_with_mpi_becomes_a_spec(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "volcano", VOLCANO).imported
    assert one.text == LAVA
    assert one.runs["lab"].percent == 100
    entries = {entry.name: entry for entry in one.draft.work.entries()}
    assert entries["spec.tasks[1].template.spec.containers[0].command[0]"].why == (
        "gangplan starts the SSH server of the workers"
    )


def test_a_job_that_must_be_complete_first_is_a_step(tmp_path: Path) -> None:
    begin = JOBSET.index("  - name: workers")
    before = """\
  - name: dredge
    template:
      spec:
        activeDeadlineSeconds: 600
        template:
          spec:
            containers:
            - {name: dredge, image: "registry.example.com/sea/dredge:2", command: [dredge, --deep], env: [{name: DEPTH, value: "9"}]}
"""
    waits = JOBSET[begin:].replace(
        "  - name: workers\n",
        "  - name: workers\n    dependsOn: [{name: dredge, status: Complete}]\n",
    )
    (one,) = imported(tmp_path, "jobset", f"{JOBSET[:begin]}{before}{waits}").imported
    assert one.draft.values["steps"] == [
        {
            "name": "dredge",
            "command": ["dredge", "--deep"],
            "image": "dredge",
            "env": {"DEPTH": "9"},
            "timeout": "600s",
        }
    ]
    assert one.is_right
    (row,) = [row for row in one.runs["lab"].rows if row.what == "step dredge"]
    assert row.is_same


def test_steps_find_a_moved_cache(tmp_path: Path) -> None:
    cache = "/root/.cache/huggingface"
    begin = JOBSET.index("  - name: workers\n")
    before = f"""\
  - name: dredge
    template:
      spec:
        template:
          spec:
            containers:
            - {{name: dredge, image: "registry.example.com/sea/dredge:2", command: [dredge, --to, {cache}]}}
"""
    waits = JOBSET[begin:].replace(
        "  - name: workers\n",
        "  - name: workers\n    dependsOn: [{name: dredge, status: Complete}]\n",
    )
    waits += f"              volumeMounts: [{{name: models, mountPath: {cache}}}]\n"
    waits += "            volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]\n"
    (one,) = imported(tmp_path, "jobset", f"{JOBSET[:begin]}{before}{waits}").imported
    assert one.draft.values["steps"][0]["command"] == ["dredge", "--to", "/mnt/huggingface"]


def test_several_jobs_of_one_template_become_one(tmp_path: Path) -> None:
    batch = imported(tmp_path, "jobset", JOBSET.replace("replicas: 1", "replicas: 3"))
    (one,) = batch.imported
    assert one.draft.values["workers"] == 12
    assert "3 jobs of 4 pods become 12 workers" in asked(batch)


def test_a_leader_that_runs_the_same_program_is_a_worker(tmp_path: Path) -> None:
    begin = JOBSET.index("  - name: workers")
    leader = JOBSET[begin:].replace("name: workers", "name: leader").replace(": 4 ", ": 1 ")
    text = JOBSET + leader.replace("completions: 4", "completions: 1")
    (one,) = imported(tmp_path, "jobset", text).imported
    assert one.draft.values["workers"] == 5
    assert one.is_right


def test_names_of_the_source_s_pods_become_those_of_the_run(tmp_path: Path) -> None:
    text = JOBSET.replace(
        "$MASTER_ADDR:$MASTER_PORT --rdzv_id=tide ebb.py", "x:1 ebb.py --log tide-workers-0-0.moon | tee log"
    )
    (one,) = imported(tmp_path, "jobset", text).imported
    assert "--log $PET_MASTER_ADDR" in one.draft.values["command"][2]


def test_names_of_other_pods_are_asked_about(tmp_path: Path) -> None:
    text = JOBSET.replace("ebb.py --flood", "ebb.py --peer tide-workers-0-1.moon")
    assert "names pods of the source" in asked(imported(tmp_path, "jobset", text))


def test_variables_of_volcano_have_other_names_in_a_run(tmp_path: Path) -> None:
    begin = VOLCANO.index("  tasks:")
    tasks = """\
  tasks:
  - replicas: 2
    name: worker
    template:
      spec:
        containers:
        - name: worker
          image: registry.example.com/fire/lava:2
          command: [bash, -c, "solve --of $VC_WORKER_NUM --me $VC_TASK_INDEX --hosts /etc/volcano/worker.host"]
"""
    batch = imported(tmp_path, "volcano", VOLCANO[:begin] + tasks)
    (one,) = batch.imported
    script = one.draft.values["command"][2]
    assert script.startswith('export VC_WORKER_NUM="$NNODES" VC_TASK_INDEX="$JOB_COMPLETION_INDEX"\nsolve')
    assert "reads /etc/volcano/worker.host" in asked(batch)
    assert one.is_right


def test_pods_of_another_shape_become_roles_of_a_plain_run(tmp_path: Path) -> None:
    """Two groups start different programs, and neither is a launcher."""
    pod = "{{containers: [{{name: a, image: 'registry.example.com/sea/{0}:1', command: [{0}], env: [{{name: DEPTH, value: {1}}}], resources: {{limits: {{cpu: 2, memory: 4Gi}}}}}}]}}"
    jobs = "\n".join(
        f"  - {{name: {name}, template: {{spec: {{parallelism: {count}, template: {{spec: {pod.format(name, depth)}}}}}}}}}"
        for name, count, depth in (("feed", 2, "'1'"), ("swim", 4, "'2'"))
    )
    text = f"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: fish}}\nspec:\n  replicatedJobs:\n{jobs}\n"
    (one,) = imported(tmp_path, "jobset", text).imported
    assert one.is_right
    assert one.draft.values["workers"] == 4
    assert one.draft.values["roles"] == {
        "feed": {
            "workers": 2, "command": ["feed"], "image": "feed", "cpu": 2, "memory": "4Gi", "env": {"DEPTH": "1"}
        }
    }  # fmt: skip
    assert one.runs["lab"].percent == 100


def test_other_pods_next_to_torch_workers_are_refused(tmp_path: Path) -> None:
    begin = JOBSET.index("  - name: workers")
    other = """\
  - name: feed
    template: {spec: {parallelism: 1, template: {spec: {containers: [{name: a, image: b, command: [feed]}]}}}}
"""
    batch = imported(tmp_path, "jobset", JOBSET[:begin] + other + JOBSET[begin:])
    assert "1 pods of the role feed start next to the workers; runs of torch have workers alone" in asked(
        batch
    )


def test_exit_codes_that_fail_a_job_are_kept_with_retries(tmp_path: Path) -> None:
    rule = "{action: FailJob, onExitCodes: {containerName: torch, operator: In, values: [42]}}"
    text = JOBSET.replace(
        "          - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}\n", f"          - {rule}\n"
    )
    begin, end = text.index("              - bash\n"), text.index("              resources:")
    plain = text[:begin] + "              - solve\n" + text[end:]
    plain = plain.replace(
        "- {name: MASTER_ADDR, value: tide-workers-0-0.moon}", "- {name: DEPTH, value: '1'}"
    )
    (one,) = imported(tmp_path, "jobset", plain).imported
    assert one.draft.values["exitCodes"] == {"fail": [42]}
    (torch,) = imported(tmp_path / "torch", "jobset", text).imported
    assert "exitCodes" not in torch.draft.values
    assert any("torchrun ends with 1" in entry.why for entry in torch.draft.work.entries())


@pytest.mark.parametrize(("kind", "text"), [("jobset", JOBSET), ("volcano", VOLCANO)])
def test_a_source_without_pods_is_refused(tmp_path: Path, kind: str, text: str) -> None:
    batch = imported(
        tmp_path, kind, text.replace("containers:", "others:").replace("initContainers:", "more:")
    )
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.rule == IMPORT_SOURCE


@pytest.mark.parametrize(
    ("commands", "start", "roles", "aside"),
    [
        ((["mpirun", "a"], ["/usr/sbin/sshd", "-D"]), "mpi", ["launcher", "one"], []),
        ((["mpirun", "a"],), "mpi", ["zero"], []),
        ((["torchrun", "a.py"], ["sleep", "9"]), "torch", ["zero"], ["one"]),
        (
            (["torchrun", "--node_rank=0", "a.py"], ["torchrun", "--node_rank=1", "a.py"]),
            "torch",
            ["one", "zero"],
            [],
        ),
        ((["python", "a.py"],), "plain", ["zero"], []),
    ],
)
def test_the_commands_decide_the_kind_and_the_roles(
    commands: tuple[list[str], ...], start: str, roles: list[str], aside: list[str]
) -> None:

    groups = []
    for name, command in zip(("zero", "one"), commands, strict=False):
        data = f"spec: {{containers: [{{name: a, image: b, command: {command!r}}}]}}".encode()
        document, _ = load_document(data, "a.yaml")
        assert document is not None
        node = Account.of(document).root()
        pod = read_imported_pod_template(node)
        assert pod is not None
        groups.append(SourcePodGroup(name, 1 if name == "one" else 2, pod, node))
    found = group_imported_pods_into_roles(groups)
    assert found.start == start
    assert [role.name for role in found.roles] == roles
    assert [role.name for role in found.aside] == aside


_NUMBERS = {
    "SLICE": "jobset.sigs.k8s.io/job-index",
    "ALL": "jobset.sigs.k8s.io/job-global-index",
    "OF_GROUP": "jobset.sigs.k8s.io/job-group-index",
    "POD": "batch.kubernetes.io/job-completion-index",
    "SLICES": "jobset.sigs.k8s.io/replicatedjob-replicas",
    "JOBS": "jobset.sigs.k8s.io/global-replicas",
    "GROUP": "jobset.sigs.k8s.io/group-name",
    "OWN": "jobset.sigs.k8s.io/replicatedjob-name",
    "TRY": "jobset.sigs.k8s.io/restart-attempt",
}
_INDEX = {"field": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
_TRY = {"field": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}
_POD = {"field": "metadata.labels['batch.kubernetes.io/job-completion-index']"}


def numbered(*jobs: tuple[str, int, int, str]) -> str:
    """Return a JobSet of jobs (name, replicas, pods of each, program) whose pods read all of their numbers."""
    env = ", ".join(
        f"{{name: {name}, valueFrom: {{fieldRef: {{fieldPath: \"metadata.labels['{label}']\"}}}}}}"
        for name, label in _NUMBERS.items()
    )
    text = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: fish}\nspec:\n  replicatedJobs:\n"
    for name, replicas, pods, program in jobs:
        container = (
            f"{{name: a, image: 'registry.example.com/sea/fish:1', command: [{program}], env: [{env}]}}"
        )
        text += (
            f"  - {{name: {name}, replicas: {replicas}, template: {{spec: {{parallelism: {pods}, completions: {pods}, completionMode: Indexed,"
            f" template: {{spec: {{containers: [{container}]}}}}}}}}}}\n"
        )
    return text


@pytest.mark.parametrize(
    ("jobs", "env"),
    [
        (  # one job: its pods are numbered as those of the run
            [("swim", 1, 4, "swim")],
            {"SLICE": "0", "ALL": "0", "OF_GROUP": "0", "POD": _POD, "SLICES": "1", "JOBS": "1", "GROUP": "default", "OWN": "swim", "TRY": _TRY},
        ),
        (  # a pod in each job: the number of the job is that of the pod in the run
            [("swim", 3, 1, "swim")],
            {"SLICE": _INDEX, "ALL": _INDEX, "OF_GROUP": _INDEX, "POD": "0", "SLICES": "3", "JOBS": "3", "GROUP": "default", "OWN": "swim", "TRY": _TRY},
        ),
        (  # pods of one job, and of another, have no such number in the run
            [("swim", 3, 2, "swim")],
            {"SLICES": "3", "JOBS": "3", "GROUP": "default", "OWN": "swim", "TRY": _TRY},
        ),
        (  # two jobs that start one program become one
            [("lead", 1, 1, "swim"), ("swim", 1, 3, "swim")],
            {"SLICE": "0", "SLICES": "1", "JOBS": "2", "GROUP": "default", "TRY": _TRY},
        ),
    ],
)  # fmt: skip
def test_numbers_of_jobs_and_pods_are_those_of_the_source(
    tmp_path: Path, jobs: list[tuple[str, int, int, str]], env: dict[str, object]
) -> None:
    """A run has one job, in which job-index is always 0 and the completion index counts all pods."""
    batch = imported(tmp_path, "jobset", numbered(*jobs))
    (one,) = batch.imported
    assert one.is_right
    assert one.draft.values["env"] == env
    for name in _NUMBERS.keys() - env.keys():
        assert f"{name} reads label {_NUMBERS[name]}, and numbers" in asked(batch)


def test_numbers_of_a_role_are_those_of_its_own_job(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "jobset", numbered(("feed", 2, 1, "feed"), ("swim", 1, 4, "swim"))).imported
    values = one.draft.values
    assert values["env"]["ALL"] == "2"
    assert values["roles"]["feed"]["env"] == {
        "SLICE": _INDEX, "ALL": _INDEX, "OF_GROUP": _INDEX, "POD": "0", "SLICES": "2", "OWN": "feed"
    }  # fmt: skip


def test_setup_reads_the_numbers_of_its_pod(tmp_path: Path) -> None:
    text = JOBSET.replace("replicas: 1", "replicas: 4").replace(": 4   # one per node", ": 1").replace("completions: 4", "completions: 1")  # fmt: skip
    read = "env: [{name: SLICE, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['jobset.sigs.k8s.io/job-index']\"}}}]"
    text = text.replace("command: [fetch, /sea]", f"command: [fetch, /sea], {read}")
    (one,) = imported(tmp_path, "jobset", text).imported
    assert one.draft.values["setup"][0]["env"] == {"SLICE": _INDEX}


def test_a_script_counts_the_pods_of_each_job_of_the_source(tmp_path: Path) -> None:
    text = numbered(("swim", 3, 2, "bash, -c, 'swim --pod $JOB_COMPLETION_INDEX | tee log'"))
    (one,) = imported(tmp_path, "jobset", text).imported
    assert one.draft.values["command"][2].splitlines() == [
        'export JOB_COMPLETION_INDEX="$((JOB_COMPLETION_INDEX % 2))"',
        "swim --pod $JOB_COMPLETION_INDEX | tee log",
    ]


@pytest.mark.parametrize("is_spot", [True, False])
def test_slices_of_tpus_get_a_pool_of_their_own(tmp_path: Path, is_spot: bool) -> None:
    """GKE's labels say which nodes have the TPUs: no pool of the cluster, least of all one of GPUs."""
    spot = ', cloud.google.com/gke-spot: "true"' if is_spot else ""
    selector = f"nodeSelector: {{cloud.google.com/gke-tpu-accelerator: tpu-v5p-slice{spot}}}"
    container = "{name: a, image: 'registry.example.com/sea/fish:1', command: [swim], resources: {limits: {google.com/tpu: 4}}}"
    text = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: fish}\nspec:\n  replicatedJobs:\n"
        f"  - {{name: swim, replicas: 2, template: {{spec: {{parallelism: 1, template: {{spec: {{{selector}, containers: [{container}]}}}}}}}}}}\n"
    )
    batch = imported(tmp_path, "jobset", text)
    (one,) = batch.imported
    wrong = {each.rule for each in batch.everything if each.is_error}
    assert wrong == ({"spot-without-retry"} if is_spot else set())
    pools = [each for each in one.draft.suggestions if each.path[0] == "nodePools"]
    made = next(each.value for each in pools if "labels" in each.value)
    assert made["labels"]["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5p-slice"
    assert made.get("capacity") == ("spot" if is_spot else None)
    (devices,) = [each for each in pools if "devices" in each.path]
    assert devices.path[1] == one.draft.values["placement"]["nodePool"]
