"""US-02: a HIPAA job runs on premises, isolated, encrypted, in an approved image; anything else is
refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.source import load_objects
from tests.workspaces import gangplan, rendered, write

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: unet
command: [horovodrun, -np, 12, python, train_3dunet.py]
workers: 12
gpus: 1
cpu: 16
memory: 128Gi
data: {mri: /data}
"""
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
costCentre: cc-8200
contact: radiology@example.com
compliance: [hipaa]
clusters: [hall]
claims:
  mri: {accessModes: [ReadWriteMany], size: 2Ti, storageClass: rwx-encrypted}
  old: {accessModes: [ReadWriteMany]}
defaults: {posture: isolated}
"""
CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}
region: eu-central
location: on-prem
certifications: [hipaa]
retention: {audit: 90d}
policies: {packs: [baseline, restricted, images, labels, lifecycle, network, hipaa]}
registries: [registry.example.com]
nodePools:
  cpu: {count: 40, cpu: 60, memory: 240Gi, labels: {pool: cpu}}
  a100: {count: 16, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}
storageClasses:
  rwx: {accessModes: [ReadWriteMany], default: true}
  rwx-encrypted: {accessModes: [ReadWriteMany], encrypted: true}
egress:
  internet: [{cidr: 0.0.0.0/0, ports: [443]}]
teams:
  radiology: {queue: gpu}
  vision: {queue: gpu}
"""
CATALOG = """\
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  unet:
    repository: registry.example.com/clinical/3dunet-horovod
    tag: "1.2-hipaa"
    digest: sha256:4e3fa09713d62152415a2d7ebd6a24262826d5e4f3ccbbaa9988776655442233
    approved: [hipaa]
    framework: horovod
    mpi: {implementation: OpenMPI, version: "4.1.8"}
  horovod:
    repository: registry.example.com/training/horovod
    digest: sha256:3d2e9e8602c51041304f1c6dac5913151715c4d3e2bbaa998877665544331122
    framework: horovod
    mpi: {implementation: OpenMPI, version: "4.1.8"}
"""
JOB, OWNER, HALL, IMAGES = (
    "specs/radiology/tumor.yaml",
    "specs/radiology/team.yaml",
    "overlays/hall/cluster.yaml",
    "images/catalog.yaml",
)
FILES = {JOB: SPEC, OWNER: TEAM, HALL: CLUSTER, IMAGES: CATALOG}
CPU_POOL = "  cpu: {count: 40, cpu: 60, memory: 240Gi, labels: {pool: cpu}}\n"
RENTED = "  rented: {count: 16, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: rented}, location: cloud}\n"  # noqa: E501  one line per pool
IMAGE_PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: replace
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image
      value: docker.io/horovod/horovod:0.28
"""


@dataclass(frozen=True)
class Case:
    """Changes, as (file, old, new), and exactly the errors that follow: rule -> file or folder."""

    changes: tuple[tuple[str, str, str], ...]
    errors: dict[str, str]
    words: str = ""
    files: dict[str, str] = field(default_factory=dict)


CASES = {
    "as it should be": Case((), {}),
    "cluster in the cloud": Case(
        ((HALL, "location: on-prem", "location: cloud"),),
        {"on-premises": HALL},
        "cluster hall stands in the cloud",
    ),
    "rented pool": Case(
        ((HALL, CPU_POOL, CPU_POOL + RENTED), (JOB, "gpus: 1", "gpus: 1\nplacement: {nodePool: rented}")),
        {"on-premises": JOB},
        "rented nodes",
    ),
    "own pool next to a rented one": Case(
        ((HALL, CPU_POOL, CPU_POOL + RENTED), (JOB, "gpus: 1", "gpus: 1\nplacement: {nodePool: a100}")), {}
    ),
    "storage class without encryption": Case(
        ((OWNER, "storageClass: rwx-encrypted", "storageClass: rwx"),),
        {"storage-encrypted": OWNER},
        "storage class 'rwx', which does not encrypt; use rwx-encrypted",
    ),
    "claim that nobody calls encrypted": Case(
        ((JOB, "{mri: /data}", "{old: /data}"),), {"claims-encrypted": OWNER}, "claim 'old'"
    ),
    "claim that is called encrypted": Case(
        (
            (JOB, "{mri: /data}", "{old: /data}"),
            (OWNER, "  old: {", "  old: {encrypted: true, "),
        ),
        {},
    ),
    "image of docker.io": Case(
        ((IMAGES, "registry.example.com/clinical", "docker.io/clinical"),),
        {"registry-untrusted": JOB},
        "docker.io",
    ),
    "image that is not approved": Case(
        ((JOB, "image: unet", "image: horovod"),), {"approved-image": JOB}, "is not approved for hipaa"
    ),
    "way to the internet": Case(
        ((JOB, "gpus: 1", "gpus: 1\nnetwork: {posture: restricted, egress: [internet]}"),),
        {"network-internet": JOB},
        "0.0.0.0/0",
    ),
    "way to the internet in posture isolated": Case(
        ((JOB, "gpus: 1", "gpus: 1\nnetwork: {egress: [internet]}"),), {"egress-internet": JOB}
    ),
    "posture default": Case(
        ((JOB, "gpus: 1", "gpus: 1\nnetwork: {posture: default}"),), {"network-posture": JOB}, "restricted"
    ),
    "password in the environment": Case(
        ((JOB, "gpus: 1", "gpus: 1\nenv: {DB_PASSWORD: hunter2-hunter2}"),), {"secret-literal": JOB}
    ),
    "audit log of a month": Case(
        ((HALL, "audit: 90d", "audit: 30d"),), {"audit-retention": HALL}, "for 30 days"
    ),
    "cluster without the certification": Case(
        ((HALL, "certifications: [hipaa]", "certifications: [iso-27001]"),), {"cluster-certified": HALL}
    ),
    "cluster without the pack": Case(
        ((HALL, "network, hipaa]", "network]"),), {"compliance-not-enforced": OWNER}, "falls under hipaa"
    ),
}  # fmt: skip


def build(root: Path, case: Case) -> Path:
    """Write the workspace of a case."""
    files = {**FILES, **case.files}
    files["specs/vision/team.yaml"] = TEAM.replace("compliance: [hipaa]\n", "").replace(
        "radiology@", "vision@"
    )
    for file, old, new in case.changes:
        assert files[file].count(old) >= 1, (file, old)
        files[file] = files[file].replace(old, new, 1)
    return write(root, files)


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_must_be_refused_is_refused(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    outcome = gangplan("validate", "-C", build(tmp_path, case))
    errors = {rule: place for place, rule in outcome.errors()}
    assert set(errors) == set(case.errors), outcome.err
    assert all(errors[rule].startswith(place) for rule, place in case.errors.items()), outcome.err
    told = [shown for shown in outcome.findings if shown.rule in case.errors]
    assert all(shown.help for shown in told)
    assert not case.words or any(case.words in shown.message for shown in told), outcome.err
    if not case.errors:
        assert outcome.code == Exit.CLEAN
        # What no object can fix is reported, and does not refuse the run.
        assert [shown.severity for shown in outcome.findings if shown.rule == "transport-open"] == ["warning"]


def test_an_image_from_a_patch_is_refused(tmp_path: Path, builder: str) -> None:
    root = build(tmp_path, Case((), {}))
    write(root, {"overlays/hall/kustomization.yaml": IMAGE_PATCH})
    errors = {rule: place for place, rule in gangplan("validate", "-C", root).errors()}
    told = {"image-registry", "image-digest", "image-catalog", "approved-image"}
    assert told <= set(errors)
    assert all(errors[rule].startswith("overlays/hall/kustomization.yaml:") for rule in told)


def test_objects_of_the_regime_have_its_label(tmp_path: Path) -> None:
    root = build(tmp_path, Case((), {}))
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    texts = {name: text.decode() for name, text in rendered(root).items()}
    (run,) = [load_objects(text) for name, text in texts.items() if is_run_file(name)]
    by_kind = {body["kind"]: body for body in run}
    for kind in ("TrainJob", "TrainingRuntime", "NetworkPolicy"):
        assert by_kind[kind]["metadata"]["labels"]["gangplan.dev/hipaa"] == "true"
    jobs = by_kind["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    for job in jobs:
        pods = job["template"]["spec"]["template"]
        assert pods["metadata"]["labels"]["gangplan.dev/hipaa"] == "true"
    assert by_kind["TrainJob"]["metadata"]["annotations"]["gangplan.dev/datasets"] == "mri"
    homes = {
        body["metadata"]["name"]: body["metadata"]["labels"].get("gangplan.dev/hipaa")
        for name, text in texts.items()
        if "/tenants/" in name
        for body in load_objects(text)
        if body["kind"] == "Namespace"
    }
    assert homes == {"radiology": "true", "vision": None}


def test_other_teams_of_the_cluster_are_left_alone(tmp_path: Path) -> None:
    """On the same cluster, a team without the regime chooses its image, claim and posture itself."""
    root = build(tmp_path, Case((), {}))
    own = SPEC.replace("image: unet", "image: horovod").replace("{mri: /data}", "{old: /data}")
    write(root, {"specs/vision/train.yaml": own.replace("workers: 12", "workers: 4").replace("12", "4")})
    open_team = (root / "specs/vision/team.yaml").read_text().replace("rwx-encrypted", "rwx")
    write(root, {"specs/vision/team.yaml": open_team.replace("posture: isolated", "posture: default")})
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    told = [shown.message for shown in outcome.findings if shown.rule == "transport-open"]
    assert len(told) == 1
    assert told[0].startswith("TrainingRuntime/radiology/tumor: ")


def test_a_single_job_can_fall_under_the_regime(tmp_path: Path) -> None:
    """`compliance` of a spec applies to that job, in a namespace without the label."""
    root = build(tmp_path, Case((), {}))
    text = SPEC.replace("image: unet", "image: horovod").replace("12", "4")
    write(root, {"specs/vision/train.yaml": text + "compliance: [hipaa]\n"})
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [("specs/vision/train.yaml:3:8", "approved-image")], outcome.err


def test_totals_include_workers_and_launcher(tmp_path: Path) -> None:
    """There are 12 workers with 1 GPU, 16 cores and 128Gi each."""
    root = build(tmp_path, Case((), {}))
    outcome = gangplan("plan", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    words = " ".join(outcome.out.split())
    # The launcher, with 1 core and 2Gi, comes on top of the 192 cores and 1536Gi of the workers.
    assert "totals hall: 193 CPU, 1538 GiB of memory, 12 GPUs" in words
    assert "ranks 12 = 12 workers x 1 slots" in words
