"""What the founding user stories want refused is refused: at the line, with their numbers and words.

US-01's sixth team is in test_five_teams.py, US-02 and US-03 are with the compliance packs. What is accepted,
with its figures: sweeps in tests/sweeps/test_plan.py, schedules in tests/schedules/test_stories.py, MPIJobs
in tests/mpijob.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from gangplan.errors import Exit
from tests.workspaces import CATALOG, Shown, gangplan, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}
region: eu-central
location: on-prem
nodePools:
  cpu: {count: 40, cpu: 64, memory: 240Gi, labels: {pool: cpu}}
  a100: {count: 40, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}, taints: [{key: gpu, effect: NoSchedule}]}
teams:
  nlp: {queue: training, quota: {cpu: {cpu: 400}, a100: {gpus: 32}}, borrow: {}, priorities: [low, normal, high]}
  vehicles: {queue: training, quota: {cpu: {cpu: 400}, a100: {gpus: 32}}, borrow: {}}
  risk: {queue: training, quota: {cpu: {cpu: 256}}, borrow: {}}
  chemistry: {queue: training, quota: {cpu: {cpu: 100}, a100: {gpus: 128}}, borrow: {}}
  research: {queue: training, quota: {cpu: {cpu: 100}, a100: {gpus: 16}}, borrow: {}, priorities: [low]}
  scale: {queue: training, quota: {cpu: {cpu: 100}, a100: {gpus: 100}}, borrow: {}}
"""  # noqa: E501  one line per pool
# 48 trials.
SWEEP = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters: {grid: {lr: [1, 2, 3, 4, 5, 6, 7, 8], batch: [1, 2, 3, 4, 5, 6]}}
maxConcurrent: 10
template:
  image: openmpi
  workers: 6
  command: "python train.py ${{ parameters.lr }} ${{ parameters.batch }}"
  gpus: 4
  cpu: 4
  memory: 16Gi
  timeout: 4h
  priority: low
  checkpoint: {to: research-data}
"""
CLAIMS = """\
claims:
  {team}-data: {{accessModes: [ReadWriteMany]}}
  {team}-notes: {{accessModes: [ReadWriteOnce]}}
secrets: [{team}-token]
"""
PATCHES = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: replace
      path: /spec/mlPolicy/mpi/mpiImplementation
      value: Intel
"""


@dataclass(frozen=True)
class Refused:
    """A spec (or a patch) that a story wants refused: where, by which rule, and in which words."""

    story: str
    team: str
    spec: str
    line: int
    rule: str
    words: tuple[str, ...]
    severity: str = "error"
    patch: str = ""


def job(image: str, *lines: str, command: str = "python, train.py") -> str:
    """Return a spec of these lines; `line` of a case counts from 1: 3 image, 4 command, then `lines`."""
    return HEAD + "".join(f"{line}\n" for line in (f"image: {image}", f"command: [{command}]", *lines))


SHAPE_4x2 = ("workers: 4", "gpus: 2")
LOW_4x2 = ("workers: 4", "gpus: 2", "priority: low")
CASES = [
    Refused(
        "US-01 another team's queue",
        "research",
        job("openmpi", *LOW_4x2, "labels: {kueue.x-k8s.io/queue-name: nlp-training}"),
        8,
        "label-reserved",
        ("kueue.x-k8s.io/queue-name",),
    ),
    Refused(
        "US-01 another team's claim",
        "research",
        job("openmpi", *LOW_4x2, "data: {nlp-data: /data}"),
        8,
        "claim-unknown",
        ("nlp-data", "research"),
    ),
    Refused(
        "US-01 another team's secret",
        "research",
        job("openmpi", *LOW_4x2, "secrets: {env: {TOKEN: nlp-token/token}}"),
        8,
        "secret-unknown",
        ("nlp-token", "research"),
    ),
    Refused("US-04 latest", "nlp", job("deepspeed:latest", *SHAPE_4x2), 3, "spec-value", ("latest",)),
    Refused(
        "US-04 RWO",
        "nlp",
        job("deepspeed", "workers: 8", "gpus: 4", "data: {nlp-notes: /data}"),
        7,
        "claim-not-shared",
        ("nlp-notes", "ReadWriteOnce"),
    ),
    Refused(
        "US-04 32 workers for 32 GPUs",
        "nlp",
        job("deepspeed", "workers: 32", "gpus: 4"),
        5,
        "over-quota",
        ("Requested 128 GPUs, but project quota is 32. Contact admin or reduce workers.",),
    ),
    Refused(
        "US-05 np 48",
        "vehicles",
        job(
            "horovod", "workers: 16", "gpus: 4", "cpu: 16", command="horovodrun, -np, '48', python, train.py"
        ),
        4,
        "ranks-mismatch",
        ("48", "64"),
    ),
    Refused(
        "US-05 64 GPUs of 32",
        "vehicles",
        job("horovod", "workers: 16", "gpus: 4", "cpu: 16", "memory: 128Gi"),
        5,
        "over-quota",
        ("Requested 64 GPUs, but project quota is 32. Contact admin or reduce workers.",),
    ),
    Refused(
        "US-06 32GB",
        "risk",
        job("openmpi", "workers: 16", "cpu: 8", "memory: 32GB"),
        7,
        "spec-value",
        ("32GB", "32Gi"),
    ),
    Refused(
        "US-06 512 cores of 256",
        "risk",
        job("openmpi", "workers: 64", "cpu: 8", "memory: 8Gi"),
        5,
        "over-quota",
        ("Job requires 512 CPU cores, but project quota is 256 cores.", "Request quota increase or reduce"),
    ),
    Refused(
        "US-07 a sweep whose trials no quota holds",
        "research",
        SWEEP,
        7,
        "over-quota",
        ("Requested 24 GPUs, but project quota is 16. Contact admin or reduce workers.",),
    ),
    Refused(
        "US-08 research wants high",
        "research",
        job("openmpi", *SHAPE_4x2, "priority: high"),
        7,
        "priority-not-allowed",
        ("high", "research", "low"),
    ),
    Refused(
        "US-08 preempt without priority",
        "nlp",
        job("openmpi", *SHAPE_4x2, "preempt: true"),
        7,
        "spec-unknown-field",
        ("preempt", "priority"),
    ),
    Refused(
        "US-08 unqualified registry",
        "nlp",
        job("registry/nlp-model:v3", *SHAPE_4x2),
        3,
        "spec-value",
        ("registry/nlp-model:v3", "catalog"),
    ),
    Refused(
        "US-09 licence",
        "risk",
        job("intel", "workers: 8", "cpu: 8"),
        3,
        "licence-not-acknowledged",
        ("licenseAcknowledged",),
    ),
    Refused(
        "US-09 backend",
        "risk",
        job("openmpi", "workers: 8", "cpu: 8", "backend: mpijob"),
        7,
        "backend-missing",
        ("mpiOperator", "MPIJob"),
    ),
    Refused(
        "US-09 SpectrumMPI",
        "risk",
        job("openmpi", "workers: 8", "cpu: 8", "mpi: {implementation: SpectrumMPI}"),
        7,
        "spec-value",
        ("SpectrumMPI", "OpenMPI", "IntelMPI", "MPICH"),
    ),
    Refused(
        "US-09 a patch",
        "risk",
        job("openmpi", "workers: 8", "cpu: 8"),
        8,
        "schema",
        ("Intel", "OpenMPI"),
        patch=PATCHES,
    ),
    Refused(
        "US-10 101 workers",
        "scale",
        job("openmpi", "workers: 101", "gpus: 1", "cpu: 8", "memory: 64Gi"),
        5,
        "workers-over-limit",
        ("101", "100"),
    ),
    Refused(
        "US-10 65 workers",
        "scale",
        job("openmpi", "workers: 65", "gpus: 1", "cpu: 8", "memory: 64Gi"),
        5,
        "workers-many",
        ("65", "64"),
        severity="warning",
    ),
    Refused(
        "US-11 RWO",
        "nlp",
        job("openmpi", "workers: 16", "gpus: 2", "data: {nlp-notes: /mnt/data}"),
        7,
        "claim-not-shared",
        ("16", "ReadWriteOnce"),
    ),
    Refused(
        "US-11 200h",
        "nlp",
        job("openmpi", *SHAPE_4x2, "timeout: 200h"),
        7,
        "timeout-over-limit",
        ("200h", "7d"),
    ),
    Refused(
        "US-11 schedule",
        "nlp",
        job("openmpi", *SHAPE_4x2, 'schedule: "0 2 * * *"'),
        7,
        "spec-type",
        ("schedule", "cron: '0 2 * * *'"),
    ),
    Refused(
        "US-12 65 x 2",
        "chemistry",
        job("openmpi", "workers: 65", "gpus: 2"),
        5,
        "over-quota",
        ("Requested 130 GPUs, but project quota is 128. Contact admin or reduce workers.",),
    ),
    Refused(
        "US-12 33 x 4",
        "chemistry",
        job("openmpi", "workers: 33", "gpus: 4"),
        5,
        "over-quota",
        ("Requested 132 GPUs, but project quota is 128. Contact admin or reduce workers.",),
    ),
    Refused(
        "US-12 RDMA required",
        "chemistry",
        job("openmpi", "workers: 32", "gpus: 2", "network: {rdma: required}"),
        7,
        "rdma-missing",
        ("rdma", "a100", "TCP"),
    ),
    Refused(
        "US-12 RDMA wished",
        "chemistry",
        job("openmpi", "workers: 32", "gpus: 2", "network: {rdma: auto}"),
        7,
        "rdma-fallback",
        ("TCP",),
        severity="warning",
    ),
]


def _workspace(root: Path, case: Refused) -> Path:
    files = {"overlays/lab/cluster.yaml": CLUSTER, "images/catalog.yaml": CATALOG}
    for team in ("nlp", "vehicles", "risk", "chemistry", "research", "scale"):
        head = f"apiVersion: gangplan.dev/v1\nkind: Team\nnamespace: team-{team}\nclusters: [lab]\n"
        files[f"specs/{team}/team.yaml"] = head + CLAIMS.format(team=team)
    files[f"specs/{case.team}/story.yaml"] = case.spec
    if case.patch:
        files["overlays/lab/kustomization.yaml"] = case.patch
    return write(root, files)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.story)
def test_each_story_is_refused_in_its_words(case: Refused, tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", _workspace(tmp_path, case), "--today", "2026-11-01")
    found = [shown for shown in outcome.findings if shown.severity == case.severity]
    assert [shown.rule for shown in found] == [case.rule], outcome.err
    shown: Shown = found[0]
    file = "overlays/lab/kustomization.yaml" if case.patch else f"specs/{case.team}/story.yaml"
    assert shown.place.startswith(f"{file}:{case.line}:"), shown.place
    text = f"{shown.message} {shown.help}"
    assert all(words in text for words in case.words), text
    refused = case.severity == "error"
    assert (outcome.code != Exit.CLEAN) == refused, outcome.err


def test_jobs_within_the_limits_of_a_cluster_are_accepted(tmp_path: Path) -> None:
    """US-10: 500 workers where the cluster allows them; US-12: 64 x 2 GPUs fill a quota of 128 exactly."""
    case = CASES[0]
    root = _workspace(tmp_path, case)
    wide = CLUSTER.replace("a100: {gpus: 100}}", "a100: {gpus: 500}}").replace(
        "a100: {count: 40", "a100: {count: 400"
    )
    (root / "overlays/lab/cluster.yaml").write_text(f"{wide}limits: {{workers: 500}}\n")
    (root / "specs/research/story.yaml").unlink()
    exact = job("openmpi", "workers: 64", "gpus: 2")
    write(
        root,
        {
            "specs/chemistry/exact.yaml": exact,
            "specs/scale/wide.yaml": job("openmpi", "workers: 500", "gpus: 1"),
        },
    )

    outcome = gangplan("validate", "-C", root, "--today", "2026-11-01")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert {shown.rule for shown in outcome.findings if shown.severity == "warning"} <= {"workers-many"}


# Image, more of the spec -> variables of the launcher.
CUSTOM_MPI = {
    "IntelMPI": (
        "intel",
        "mpi: {implementation: IntelMPI, licenseAcknowledged: true}",
        {"I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_PERHOST": "8", "I_MPI_DEBUG": "5"},
    ),
    "MPICH": ("mpich", "mpi: {implementation: MPICH}", {"HYDRA_LAUNCHER": "ssh", "I_MPI_DEBUG": "5"}),
}


@pytest.mark.parametrize("family", CUSTOM_MPI)
def test_us_09_a_custom_image_with_another_mpi_is_started(family: str, tmp_path: Path) -> None:
    """Eight workers of 8 CPU and a licence; Trainer knows only Open MPI, and the launch translates."""
    image, mpi, variables = CUSTOM_MPI[family]
    more = ["slots: 8", "cpu: 8", mpi, 'env: {I_MPI_DEBUG: "5"}']
    case = Refused("", "risk", job(image, "workers: 8", *more), 0, "", ())
    root = _workspace(tmp_path, case)
    team, file = root / "specs/risk/team.yaml", root / "specs/risk/story.yaml"
    text = team.read_text(encoding="utf-8")
    team.write_text(text.replace("secrets: [", "secrets: [intel-license, "), encoding="utf-8")
    licence = "secrets: {files: {intel-license: /opt/intel/licenses}}\n"
    file.write_text(file.read_text(encoding="utf-8") + licence, encoding="utf-8")
    rendered = gangplan("render", "-C", root)
    assert rendered.code == Exit.CLEAN, rendered.err
    (path,) = (root / "rendered/lab/runs/risk").glob("story-*.yaml")
    bodies = {one["kind"]: one for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))}
    runtime = bodies["TrainingRuntime"]["spec"]
    assert runtime["mlPolicy"]["mpi"]["mpiImplementation"] == "OpenMPI"
    assert bodies["TrainJob"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"
    pods = {
        one["name"]: one["template"]["spec"]["template"]["spec"]
        for one in runtime["template"]["spec"]["replicatedJobs"]
    }
    for pod in pods.values():
        (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if "licenses" in one["mountPath"]]
        assert mount["readOnly"] is True
    given = {one["name"]: one.get("value") for one in pods["launcher"]["containers"][0]["env"]}
    given |= {one["name"]: one.get("value") for one in bodies["TrainJob"]["spec"]["trainer"].get("env", ())}
    assert {name: given.get(name) for name in variables} == variables, given
    hosts = gangplan("plan", "specs/risk/story.yaml", "-C", root, "--hostfile").out.splitlines()
    lines = [line.strip() for line in hosts if "-node-0-" in line]
    assert len(lines) == 16  # as Trainer writes it, and as Hydra reads it
    assert all(line.endswith(" slots=8") for line in lines[:8]), lines
    assert all(line.endswith(":8") for line in lines[8:]), lines
