"""US-03: data with residency eu is processed only in the EU, and a place that is not stated is not inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.source import load_objects
from tests.workspaces import CATALOG, gangplan, rendered, write

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: horovod
command: [python, train_lidar.py]
workers: 4
gpus: 4
cpu: 16
memory: 128Gi
data: {lidar: env}
clusters: [eu-dc-1]
residency: eu
"""
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
costCentre: cc-3100
contact: perception@example.com
connections:
  lidar: {endpoint: "https://s3.example.com", bucket: lidar-data, region: eu-central-1, secret: lidar-s3}
secrets: [lidar-s3]
"""
CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {{kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}}
region: {region}
location: on-prem
policies: {{packs: [baseline, restricted, residency]}}
nodePools:
  cpu: {{count: 8, cpu: 60, memory: 240Gi, labels: {{pool: cpu, topology.kubernetes.io/region: {region}}}}}
  a100: {{count: 8, cpu: 124, memory: 1900Gi, gpu: {{model: a100-80gb, count: 8}}, labels: {{pool: a100, topology.kubernetes.io/region: {region}}}}}
egress:
  s3: [{{cidr: 10.40.8.0/24, ports: [443]}}]
teams:
  vision: {{queue: gpu}}
"""  # noqa: E501  one line per pool
JOB, OWNER = "specs/vision/lidar.yaml", "specs/vision/team.yaml"
EU, US = "overlays/eu-dc-1/cluster.yaml", "overlays/us-west-rosa/cluster.yaml"
FILES = {
    JOB: SPEC,
    OWNER: TEAM,
    EU: CLUSTER.format(region="eu"),
    US: CLUSTER.format(region="us"),
    "images/catalog.yaml": CATALOG,
}

Changes = tuple[tuple[str, str, str], ...]
CASES: dict[str, tuple[Changes, dict[str, str], str]] = {
    "at home": ((), {}, ""),
    "in the US": (
        ((JOB, "[eu-dc-1]", "[us-west-rosa]"),),
        {"data-residency": JOB},
        "data of residency 'eu' must not be worked on in region 'us' (cluster us-west-rosa)",
    ),
    "in both": (((JOB, "[eu-dc-1]", "[eu-dc-1, us-west-rosa]"),), {"data-residency": JOB}, "us-west-rosa"),
    "in London": (((EU, "region: eu\n", "region: eu-west-2\n"),), {"data-residency": JOB}, "eu-west-2"),
    "nodes in the US": (
        ((EU, "a100, topology.kubernetes.io/region: eu", "a100, topology.kubernetes.io/region: us"),),
        {"data-residency": EU},
        "nodes in region 'us'",
    ),
    "bucket in the US": (
        ((OWNER, "eu-central-1", "us-west-2"),),
        {"bucket-residency": OWNER},
        "connection 'lidar' lies in region 'us-west-2'",
    ),
    "bucket anywhere": (
        ((OWNER, "region: eu-central-1, ", ""),),
        {"bucket-residency": OWNER},
        "connection 'lidar' states no region",
    ),
    "cluster without a region": (((EU, "region: eu\n", ""),), {"spec-missing-field": EU}, "region"),
    "cluster that holds nobody to it": (
        ((EU, "restricted, residency]", "restricted]"),),
        {"compliance-not-enforced": JOB},
        "must stay in eu",
    ),
    "no residency": (((JOB, "[eu-dc-1]\nresidency: eu", "[us-west-rosa]"),), {}, ""),
    "American data in the US": (
        (
            (JOB, "[eu-dc-1]\nresidency: eu", "[us-west-rosa]\nresidency: us"),
            (OWNER, "eu-central-1", "us-west-2"),
        ),
        {},
        "",
    ),
}  # fmt: skip


def build(root: Path, changes: Changes = ()) -> Path:
    """Write the workspace with some texts replaced."""
    files = dict(FILES)
    for file, old, new in changes:
        assert old in files[file], (file, old)
        files[file] = files[file].replace(old, new, 1)
    return write(root, files)


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_must_be_refused_is_refused(name: str, tmp_path: Path) -> None:
    changes, errors, words = CASES[name]
    outcome = gangplan("validate", "-C", build(tmp_path, changes))
    assert {rule: place.split(":")[0] for place, rule in outcome.errors()} == errors, outcome.err
    told = [shown for shown in outcome.findings if shown.rule in errors]
    assert not words or any(words in shown.message for shown in told), outcome.err
    if not errors:
        assert outcome.code == Exit.CLEAN


def test_rendered_objects_show_where_the_data_is(tmp_path: Path) -> None:
    """The region selects nodes of both roles; the data sets and their regions are recorded."""
    root = build(tmp_path)
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    (text,) = [text for name, text in rendered(root).items() if is_run_file(name)]
    by_kind = {body["kind"]: body for body in load_objects(text)}
    jobs = by_kind["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    assert [job["name"] for job in jobs] == ["node", "launcher"]
    for job in jobs:
        selector = job["template"]["spec"]["template"]["spec"]["nodeSelector"]
        assert selector["topology.kubernetes.io/region"] == "eu"
    metadata = by_kind["TrainJob"]["metadata"]
    assert metadata["labels"]["gangplan.dev/residency"] == "eu"
    assert metadata["annotations"]["gangplan.dev/datasets"] == "lidar"
    assert metadata["annotations"]["gangplan.dev/data-regions"] == "lidar=eu-central-1"
