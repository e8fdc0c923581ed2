"""What only the platform can provide, suggested or asked about: devices, fabrics, access to the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED
from tests.imports import sources
from tests.imports.sources import JOBSET, MPIJOB, PYTORCHJOB, imported
from tests.workspaces import WIDE_CLUSTER, gangplan, stock, write

GRANT = "podSecurity: {level: privileged, reason: GPUDirect needs it., until: 2099-01-31}"
PRIVILEGED = WIDE_CLUSTER.replace("nlp: {queue: training}", f"nlp: {{queue: training, {GRANT}}}")
EFA = PYTORCHJOB.replace("nvidia.com/gpu: 4", "nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32")
# The shape of gpudirect-tcpxo/nccl-test.yaml of GoogleCloudPlatform/container-engine-accelerators.
TCPXO = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: comet}
spec:
  replicatedJobs:
  - name: w
    template:
      spec:
        parallelism: 2
        template:
          metadata:
            annotations:
              networking.gke.io/default-interface: eth0
              networking.gke.io/interfaces: '[{"interfaceName":"eth0","network":"default"},{"interfaceName":"eth1","network":"vpc1"}]'
          spec:
            activeDeadlineSeconds: 3600
            volumes:
            - {name: nvidia, hostPath: {path: /home/kubernetes/bin/nvidia/lib64}}
            - {name: sys, hostPath: {path: /sys}}
            - {name: aperture, hostPath: {path: /dev/aperture_devices}}
            initContainers:
            - name: tcpxo-daemon
              restartPolicy: Always
              image: registry.example.com/fabric/daemon:1
              command: [/daemon]
              volumeMounts: [{name: sys, mountPath: /hostsysfs}]
            containers:
            - name: comet
              image: registry.example.com/sky/comet:1
              command: [torchrun, fly.py]
              volumeMounts:
              - {name: nvidia, mountPath: /usr/local/nvidia/lib64}
              - {name: aperture, mountPath: /dev/aperture_devices}
              resources: {limits: {cpu: 96, memory: 900Gi, nvidia.com/gpu: 8}}
"""


def asked(batch: Batch) -> str:
    return "\n".join(one.message for one in batch.everything if one.rule == IMPORT_ASKED)


def suggested(batch: Batch) -> dict[str, object]:
    return {".".join(one.path): one.value for one in batch.suggestions if one.file.startswith("overlays/")}


def on(monkeypatch: pytest.MonkeyPatch, cluster: str) -> None:
    monkeypatch.setattr(sources, "WIDE_CLUSTER", cluster)


def test_efa_becomes_devices_and_a_fabric(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", EFA)
    (one,) = batch.imported
    assert one.draft.values["network"] == {"rdma": 32}
    assert suggested(batch) == {
        "nodePools.a100.rdma": {"resource": "vpc.amazonaws.com/efa", "count": 32},
        "fabrics.efa": {"preset": "aws-efa"},
        "nodePools.a100.fabric": "efa",
    }
    assert one.is_right
    rows = {row.what: row for row in one.runs["lab"].rows}
    assert rows["vpc.amazonaws.com/efa of a worker"].is_same


def test_devices_that_the_pool_has_need_no_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = "labels: {pool: a100}, rdma: {resource: vpc.amazonaws.com/efa, count: 32}, fabric: efa}"
    on(
        monkeypatch,
        WIDE_CLUSTER.replace("labels: {pool: a100}}", pool) + "fabrics: {efa: {preset: aws-efa}}\n",
    )
    batch = imported(tmp_path, "pytorchjob", EFA)
    assert suggested(batch) == {}
    assert batch.imported[0].is_right


def test_gpudirect_of_google_becomes_its_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, PRIVILEGED)
    batch = imported(tmp_path, "jobset", TCPXO)
    (one,) = batch.imported
    assert one.is_right
    assert suggested(batch) == {
        "fabrics.tcpxo": {
            "preset": "gke-tcpxo",
            "sidecars": {"tcpxo-daemon": {"image": "registry.example.com/fabric/daemon:1"}},
        },
        "nodePools.a100.fabric": "tcpxo",
    }
    assert one.draft.values["network"] == {"rdma": "required"}
    assert "sidecars" not in one.draft.values
    assert one.draft.values["timeout"] == "1h"
    assert not [entry for entry in one.draft.work.entries() if entry.state == "asked"]
    assert one.runs["lab"].percent == 100


def test_access_that_the_team_does_not_have_is_asked_about(tmp_path: Path) -> None:
    batch = imported(tmp_path, "jobset", TCPXO)
    assert "the folder /home/kubernetes/bin/nvidia/lib64 of the node" in asked(batch)


def test_the_end_of_a_raised_pod_security_level_is_left_to_a_person(tmp_path: Path) -> None:
    batch = imported(tmp_path, "jobset", TCPXO)
    (open_one,) = [one for one in batch.suggestions if one.is_open]
    assert open_one.path == ("teams", "nlp", "podSecurity")
    assert (open_one.value["level"], open_one.value["until"]) == ("privileged", "YYYY-MM-DD")
    assert "/home/kubernetes/bin/nvidia/lib64" in open_one.value["reason"]
    assert "until: YYYY-MM-DD" in open_one.text()
    assert not [text for text in batch.after.values() if b"podSecurity" in text]
    assert "until when may team nlp run pods with" in asked(batch)


def test_access_without_a_fabric_raises_no_pod_security_level(tmp_path: Path) -> None:
    """A folder of the node with data belongs on a claim."""
    text = JOBSET.replace(
        "            - name: torch\n",
        "            - name: torch\n              securityContext: {privileged: true}\n",
    )
    batch = imported(tmp_path, "jobset", text)
    assert not [one for one in batch.suggestions if one.is_open]
    on_efa = imported(tmp_path / "efa", "pytorchjob", EFA)
    assert not [one for one in on_efa.suggestions if one.is_open]


def test_the_host_network_is_suggested_only_with_known_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fabric with hostNetwork states the addresses of nodes; the source does not."""
    text = JOBSET.replace("            containers:", "            hostNetwork: true\n            containers:")
    text = text.replace(
        "limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}",
        "limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 8, rdma/hca: 1}",
    )
    on(monkeypatch, PRIVILEGED)
    batch = imported(tmp_path / "without", "jobset", text)
    assert "fabrics.fabric" not in suggested(batch)
    assert "hostNetwork" in asked(batch)
    on(monkeypatch, PRIVILEGED + "fabrics: {old: {hostNetwork: true, nodeAddresses: [10.0.16.0/20]}}\n")
    batch = imported(tmp_path / "with", "jobset", text)
    assert suggested(batch)["fabrics.fabric"] == {"hostNetwork": True, "nodeAddresses": ["10.0.16.0/20"]}
    assert "hostNetwork" not in asked(batch)
    (one,) = batch.imported
    assert next(row for row in one.runs["lab"].rows if row.what == "hostNetwork").is_same


@pytest.mark.parametrize(
    ("amount", "path", "value"),
    [
        ("ephemeral-storage: 100Gi", "nodePools.a100.disk", "400Gi"),
        ("hugepages-2Mi: 1Gi", "nodePools.a100.hugePages.2Mi", "4Gi"),
        ("example.com/fpga: 1", "nodePools.a100.devices.example.com/fpga", 4),
        ("google.com/tpu: 4", "nodePools.a100.devices.google.com/tpu", 16),
    ],
)
def test_a_pool_gains_what_its_workers_need(tmp_path: Path, amount: str, path: str, value: object) -> None:
    """Four workers with two GPUs each share a node with eight."""
    batch = imported(
        tmp_path, "jobset", JOBSET.replace("nvidia.com/gpu: 2}", f"nvidia.com/gpu: 2, {amount}}}")
    )
    assert suggested(batch) == {path: value}
    assert batch.imported[0].is_right
    assert "keeps the place of what it has" in asked(batch)


def test_access_that_no_fabric_needs_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, PRIVILEGED)
    text = JOBSET.replace(
        "            - name: torch\n",
        "            - name: torch\n              securityContext: {privileged: true}\n",
    )
    batch = imported(tmp_path, "jobset", text)
    assert suggested(batch) == {}
    assert "the pods have privileged" in asked(batch)


def test_the_pool_with_the_fabric_of_the_source_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default, gangplan takes the first pool where a worker fits.

    A source that uses a fabric needs the pool that has it.
    """
    pool = "capacity: spot, rdma: {resource: vpc.amazonaws.com/efa, count: 32}, fabric: efa}"
    on(monkeypatch, WIDE_CLUSTER.replace("capacity: spot}", pool) + "fabrics: {efa: {preset: aws-efa}}\n")
    batch = imported(tmp_path, "pytorchjob", EFA)
    (one,) = batch.imported
    assert one.draft.values["placement"] == {"nodePool": "a100-spot"}
    assert suggested(batch) == {}


@pytest.mark.parametrize(
    ("annotation", "network"),
    [
        ("rdma-net", "rdma-net"),
        ("default/ib@net1, default/ib@net2", ["default/ib"]),
        ('[{"name": "a", "namespace": "b"}, {"name": "c"}]', ["b/a", "c"]),
    ],
)
def test_networks_of_multus_become_those_of_the_pools_devices(
    tmp_path: Path, annotation: str, network: object
) -> None:
    text = PYTORCHJOB.replace(
        'sidecar.istio.io/inject: "false"', f"k8s.v1.cni.cncf.io/networks: '{annotation}'"
    )
    text = text.replace("nvidia.com/gpu: 4", "nvidia.com/gpu: 4, rdma/rdma_shared_device_a: 1")
    batch = imported(tmp_path, "pytorchjob", text)
    value = suggested(batch)["nodePools.a100.rdma"]
    wanted = network[0] if isinstance(network, list) and len(network) == 1 else network
    assert value == {"resource": "rdma/rdma_shared_device_a", "count": 2, "network": wanted}
    assert batch.imported[0].is_right


def test_gpus_named_after_their_model_are_gpus(tmp_path: Path) -> None:
    """NVIDIA's plugin can name GPUs after their model."""
    text = PYTORCHJOB.replace("nvidia.com/gpu: 4", "nvidia.com/a100: 4")
    (one,) = imported(tmp_path, "pytorchjob", text).imported
    assert one.draft.values["gpus"] == 4
    assert one.draft.values["gpu"] == {"model": "a100-80gb"}
    assert one.is_right


def test_networks_that_the_pool_gives_are_not_asked_about(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace('sidecar.istio.io/inject: "false"', "k8s.v1.cni.cncf.io/networks: a/b")
    text = text.replace("nvidia.com/gpu: 4", "nvidia.com/gpu: 4, rdma/hca: 1")
    batch = imported(tmp_path, "pytorchjob", text)
    assert "networks" not in asked(batch).replace("nodePools", "")
    entries = [entry for entry in batch.imported[0].draft.work.entries() if entry.value == "a/b"]
    assert {entry.to for entry in entries} == {"nodePools.rdma.network"}


def test_workers_with_anti_affinity_are_spread(tmp_path: Path) -> None:
    rule = "{labelSelector: {matchLabels: {app: a}}, topologyKey: kubernetes.io/hostname}"
    affinity = f"affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{rule}]}}}}"
    text = JOBSET.replace("            restartPolicy: Never\n", f"            {affinity}\n")
    (one,) = imported(tmp_path, "jobset", text).imported
    assert one.draft.values["placement"] == {"spread": "spread"}
    assert one.is_right


BIG = PYTORCHJOB.replace("nvidia.com/gpu: 4", "nvidia.com/gpu: 8").replace(
    "cpu: 16, memory: 128Gi, ", "cpu: 180, memory: 128Gi, "
)


def test_workers_larger_than_any_node_get_a_pool(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", BIG)
    (one,) = batch.imported
    (path, value), (label, of_cpu) = sorted(suggested(batch).items(), key=lambda one: "labels" in one[0])
    assert path.startswith("nodePools.migrated-8-")
    assert isinstance(value, dict)
    assert (label, of_cpu) == ("nodePools.cpu.labels", {"pool": "cpu"})
    assert one.draft.values["placement"] == {"nodePool": path.partition(".")[2]}
    assert (value["count"], value["cpu"], value["gpu"]["count"]) == (one.draft.values["workers"], 184, 8)
    assert value["labels"] == {"pool": path.partition(".")[2]}
    assert "keeps the place of nodes that have it" in asked(batch)
    assert one.is_right, one.findings


def test_no_pool_is_suggested_where_one_has_room_or_quotas_name_pools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suggested(imported(tmp_path / "a", "pytorchjob", PYTORCHJOB)) == {}
    on(monkeypatch, WIDE_CLUSTER.replace("queue: training", "queue: training, quota: {a100: {gpus: 32}}"))
    assert suggested(imported(tmp_path / "b", "pytorchjob", BIG)) == {}


@pytest.mark.parametrize("gpus", [0, 8])
def test_a_suggested_pool_takes_its_workers(tmp_path: Path, gpus: int) -> None:
    """Kueue takes the first pool with quota whose labels the pod's selector does not contradict, with room or
    not.

    After --apply, render and validate have no error.
    """
    amount = f"#SBATCH --gpus-per-node={gpus}\n" if gpus else ""
    text = f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=8 --cpus-per-task=24 --mem=2200G\n{amount}srun ./x\n"
    write(tmp_path, {"job.sh": text})
    stock(tmp_path / "w", "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml")
    write(tmp_path / "w", {"overlays/lab/cluster.yaml": WIDE_CLUSTER})
    flags = ("-C", tmp_path / "w", "--team", "nlp", "--image", "openmpi", "--apply")
    done = gangplan("import", "slurm", tmp_path / "job.sh", *flags)
    assert done.code == 0, done.err
    for step in ("render", "validate"):
        done = gangplan(step, "-C", tmp_path / "w")
        assert done.code == 0, done.err
        assert "admitted-elsewhere" not in done.err


def test_a_launcher_has_no_access_that_workers_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fabric is for workers, so that the comparison names what a launcher asked for, too."""
    on(monkeypatch, PRIVILEGED)
    image = "            image: registry.example.com/physics/heat:1.4\n"
    access = "            securityContext: {capabilities: {add: [IPC_LOCK]}}\n"
    assert MPIJOB.count(image) == 2
    source = MPIJOB.replace(image, image + access)
    source = source.replace("nvidia.com/gpu: 2}", "nvidia.com/gpu: 2, rdma/hca: 1}", 1)
    (one,) = imported(tmp_path, "mpijob", source).imported
    found = {row.what: (row.source, row.run) for row in one.runs["lab"].rows if "IPC_LOCK" in row.what}
    assert found == {
        "capability IPC_LOCK": ("added", "added"),
        "capability IPC_LOCK of a launcher": ("added", None),
    }


_OF_LAUNCHER, _OF_WORKER = "privileged of a launcher", "privileged of a worker"


@pytest.mark.parametrize(
    ("pods", "is_given", "rows"),
    [
        ((0,), True, {_OF_LAUNCHER: ("true", None), _OF_WORKER: (None, "true")}),
        ((0, 1), False, {_OF_LAUNCHER: ("true", None), _OF_WORKER: ("true", None)}),
        ((0, 1), True, {_OF_LAUNCHER: ("true", None), _OF_WORKER: ("true", "true")}),
    ],
)
def test_privileged_pods_are_compared_by_role(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pods: tuple[int, ...],
    is_given: bool,
    rows: dict[str, tuple[str | None, str | None]],
) -> None:
    """A fabric makes workers privileged, and never a launcher."""
    if is_given:
        cluster = PRIVILEGED.replace("labels: {pool: a100}", "labels: {pool: a100}, fabric: ib")
        on(monkeypatch, f"{cluster}fabrics: {{ib: {{privileged: true}}}}\n")
    image = "            image: registry.example.com/physics/heat:1.4\n"
    source, *parts = MPIJOB.split(image)
    for number, part in enumerate(parts):
        access = "            securityContext: {privileged: true}\n" if number in pods else ""
        source += image + access + part
    (one,) = imported(tmp_path, "mpijob", source).imported
    found = [row for row in one.runs["lab"].rows if "privileged" in row.what]
    assert {row.what: (row.source, row.run) for row in found} == rows
    assert all(row.why for row in found if row.source and not row.is_same)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("{privileged: true, runAsUser: 0}", "'tune' is privileged; setup, sidecars and steps"),
        ("{capabilities: {add: [NET_ADMIN, SYS_ADMIN]}}", "'tune' has NET_ADMIN, SYS_ADMIN; setup"),
        ("{privileged: false, capabilities: {add: [], drop: [ALL]}}", ""),
    ],
)
@pytest.mark.parametrize("always", ["", ", restartPolicy: Always"])
def test_access_to_the_node_of_setup_and_sidecars_is_asked_about(
    tmp_path: Path, context: str, message: str, always: str
) -> None:
    """Such containers set something on the node, which no container of a run can."""
    box = f"{{name: tune, image: busybox, command: [sysctl, -w, a=1], securityContext: {context}{always}}}"
    text = JOBSET.replace(
        "            initContainers:\n", f"            initContainers:\n            - {box}\n"
    )
    assert box in text
    batch = imported(tmp_path, "jobset", text)
    (one,) = batch.imported
    states = {
        entry.path[-1]: entry.state for entry in one.draft.work.entries() if "securityContext" in entry.path
    }
    assert ("asked" in states.values()) == bool(message)
    assert ("'tune' " in asked(batch)) == bool(message)
    assert message in asked(batch)
