"""Fabrics of node pools: presets overridden by own values, what runs get, and the level that they need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.resolve.fabric_presets import FABRIC_PRESETS, complete_fabric
from gangplan.spec.fabrics import Fabric
from tests import workspaces
from tests.workspaces import Outcome, gangplan

CLUSTER = "overlays/lab/cluster.yaml"
SPEC = workspaces.SPEC.replace("gpus: 2", "gpus: 8") + "network: {rdma: required}\n"
IMAGE = "registry.example.com/fabric/daemon@sha256:" + "2c1f8d75f1b40f3e" * 4
LEVEL = "podSecurity: {level: privileged, reason: The fabric needs the node, until: '2027-01-31'}"
EFA = ("rdma: {resource: vpc.amazonaws.com/efa, count: 4}", "{preset: aws-efa}")
IB = ("rdma: {resource: rdma/ib, count: 8}", "{preset: azure-infiniband}")
TCPXO = ("", f"{{preset: gke-tcpxo, sidecars: {{tcpxo-daemon: {{image: '{IMAGE}'}}}}}}")
TCPX = ("", f"{{preset: gke-tcpx, sidecars: {{tcpx-daemon: {{image: '{IMAGE}'}}}}}}")
ROCE = ("", "{preset: oci-roce, nodeAddresses: [10.0.16.0/20]}")
# The Pod Security level that each preset needs.
PRESET_LEVELS = {
    "aws-efa": "restricted",
    "azure-infiniband": "privileged",
    "gke-rdma": "privileged",
    "gke-tcpx": "privileged",
    "gke-tcpxo": "privileged",
    "oci-roce": "privileged",
    "oci-roce-vf": "privileged",
    "sriov": "privileged",
}


def on_fabric(
    root: Path, pool: str, fabric: str, team: str = LEVEL, spec: str = SPEC, more: str = ""
) -> Path:
    """Create the small workspace whose pool has a fabric."""
    text = workspaces.CLUSTER.replace(
        "labels: {pool: a100}}", f"labels: {{pool: a100}}, {pool + ', ' if pool else ''}fabric: quick}}"
    )
    text = text.replace("teams:\n", f"fabrics: {{quick: {fabric}}}\nteams:\n")
    text = (
        text.replace("nlp: {queue: training}", f"nlp: {{queue: training{', ' + team if team else ''}}}")
        + more
    )
    return workspaces.write(root, {CLUSTER: text, "specs/nlp/filings.yaml": spec})


def validate(root: Path) -> Outcome:
    return gangplan("validate", "-C", root, "--today", "2026-11-01")


def errors(outcome: Outcome) -> list[str]:
    return sorted({rule for _, rule in outcome.errors()})


def pods(root: Path) -> dict[str, dict[str, Any]]:
    """Return the pod templates of the run by the name of their job."""
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    (text,) = (data for name, data in workspaces.rendered(root).items() if is_run_file(name))
    runtime = next(one for one in yaml.safe_load_all(text) if one["kind"] == "TrainingRuntime")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {one["name"]: one["template"]["spec"]["template"] for one in jobs}


def test_every_preset_is_complete_and_names_its_source() -> None:
    assert sorted(FABRIC_PRESETS) == sorted(PRESET_LEVELS)
    for name, preset in FABRIC_PRESETS.items():
        fabric = complete_fabric(Fabric.model_validate({"preset": name}))
        assert fabric.preset == name
        assert re.search(r"^[^ ]+/[^ ]+ [^ ]+/[^ ]+[.]ya?ml", preset.source), "a repository and a file"
        assert not [one for one in (*fabric.sidecars.values(), *fabric.setup.values()) if one.image]


def test_own_values_extend_and_override_a_preset() -> None:
    stated = Fabric.model_validate(
        {
            "preset": "gke-tcpxo",
            "wholeNode": False,
            "env": {"NCCL_DEBUG": "INFO", "LD_LIBRARY_PATH": "/opt/lib"},
            "hostPaths": {"nvidia": {"path": "/opt/nvidia"}},
            "sidecars": {"tcpxo-daemon": {"image": IMAGE}},
        }
    )
    fabric = complete_fabric(stated)
    assert not fabric.whole_node
    assert fabric.env["NCCL_DEBUG"] == "INFO"
    assert fabric.env["LD_LIBRARY_PATH"] == "/opt/lib"
    assert fabric.env["NCCL_FASTRAK_CTRL_DEV"] == "eth0", "the rest of the preset stays"
    assert fabric.host_paths["nvidia"].path == "/opt/nvidia"
    assert fabric.host_paths["nvidia"].mount == "/usr/local/nvidia/lib64", "field by field"
    daemon = fabric.sidecars["tcpxo-daemon"]
    assert daemon.image == IMAGE
    assert daemon.root
    assert daemon.capabilities == ("NET_ADMIN", "NET_BIND_SERVICE")


@pytest.mark.parametrize("preset", sorted(PRESET_LEVELS))
def test_a_preset_needs_its_level_and_no_more(preset: str, root: Path) -> None:
    devices = FABRIC_PRESETS[preset].devices
    pool = f"rdma: {{resource: {devices}, count: 8}}" if devices else ""
    daemon = {"gke-tcpx": "tcpx-daemon", "gke-tcpxo": "tcpxo-daemon"}.get(preset)
    own = f", sidecars: {{{daemon}: {{image: '{IMAGE}'}}}}" if daemon else ""
    own += ", nodeAddresses: [10.0.16.0/20]" if preset == "oci-roce" else ""
    fabric, packs = (
        f"{{preset: {preset}{own}}}",
        "policies: {packs: [baseline, restricted, network]}\n",
    )
    plain = validate(on_fabric(root, pool, fabric, "", more=packs))
    is_tight = PRESET_LEVELS[preset] == "restricted"
    assert errors(plain) == ([] if is_tight else ["host-access-refused"]), plain.err
    raised = validate(on_fabric(root, pool, fabric, LEVEL, more=packs))
    assert errors(raised) == [], raised.err
    told = {one.rule: one.severity for one in raised.findings}
    assert told["pod-security-unneeded" if is_tight else "host-access"] == "note"


@pytest.mark.parametrize(
    ("fabric", "level", "refused"),
    [
        (
            "{hostPaths: {ib: {path: /dev/infiniband, mount: /dev/infiniband}}}",
            "privileged",
            ["baseline", ""],
        ),
        ("{capabilities: [IPC_LOCK]}", "privileged", ["baseline", ""]),
        ("{capabilities: [IPC_LOCK], memlock: unlimited}", "restricted", []),
        ("{capabilities: [NET_BIND_SERVICE]}", "restricted", []),
        ("{capabilities: [CHOWN]}", "baseline", [""]),
        (f"{{sidecars: {{d: {{image: '{IMAGE}', root: true}}}}}}", "baseline", [""]),
        (f"{{sidecars: {{d: {{image: '{IMAGE}'}}}}}}", "restricted", []),
        ("{shared: {sockets: /run/fabric}}", "restricted", []),
        ("{env: {NCCL_IB_TC: 41}}", "restricted", []),
    ],
)
def test_each_setting_needs_its_pod_security_level(
    fabric: str, level: str, refused: list[str], root: Path
) -> None:
    for stated in ("", "baseline", "privileged"):
        team = LEVEL.replace("privileged", stated) if stated else ""
        outcome = validate(on_fabric(root, IB[0], fabric, team))
        assert errors(outcome) == (["host-access-refused"] if stated in refused else []), (
            stated,
            outcome.err,
        )
        if stated in refused:
            (told,) = (one for one in outcome.findings if one.rule == "host-access-refused")
            assert f"podSecurity: {{level: {level}," in told.help
            assert told.place.startswith("specs/nlp/filings.yaml:")


def test_only_runs_with_rdma_get_the_fabric(root: Path) -> None:
    spec = SPEC.replace("network: {rdma: required}\n", "")
    on_fabric(root, EFA[0], TCPXO[1], spec=spec)
    for pod in pods(root).values():
        text = yaml.safe_dump(pod)
        assert not [word for word in ("fabric-", "NCCL_", "initContainers") if word in text]


def test_a_launcher_without_ranks_gets_only_the_environment(root: Path) -> None:
    made = pods(on_fabric(root, *TCPXO))
    launcher, workers = made["launcher"]["spec"], made["node"]["spec"]
    assert "initContainers" not in launcher
    assert [one["name"] for one in launcher["volumes"]] == ["shm", "gangplan-launch"]
    assert [one["name"] for one in workers["initContainers"]] == ["tcpxo-daemon"]
    names = {one["name"] for one in launcher["containers"][0]["env"]}
    assert "NCCL_FASTRAK_IFNAME" in names
    words = launcher["containers"][0]["args"]
    assert words[words.index("NCCL_FASTRAK_IFNAME") - 1] == "-x", "mpirun hands it to the ranks"


def test_a_launcher_with_ranks_gets_the_whole_fabric(root: Path) -> None:
    made = pods(on_fabric(root, *TCPXO, spec=SPEC + "launcher: {runsRanks: true}\n"))
    for pod in made.values():
        assert [one["name"] for one in pod["spec"]["initContainers"]] == ["tcpxo-daemon"]


def test_a_sidecar_runs_as_long_as_the_program_with_the_least_privileges(root: Path) -> None:
    (daemon,) = pods(on_fabric(root, *TCPXO))["node"]["spec"]["initContainers"]
    assert daemon["restartPolicy"] == "Always"
    assert daemon["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": False,
        "runAsUser": 0,
        "capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE"], "drop": ["ALL"]},
    }
    assert daemon["resources"]["limits"] == {"cpu": "500m", "memory": "512Mi"}
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in daemon["volumeMounts"]}
    assert mounts == {"/hostprocsysfs": False, "/hostsysfs": False, "/usr/local/nvidia/lib64": True}


def test_setup_runs_before_the_program_and_ends(root: Path) -> None:
    own = f"{{image: '{IMAGE}', command: [prepare, 8], mounts: {{sockets: /sockets}}}}"
    fabric = f"{{shared: {{sockets: /run/fabric}}, setup: {{prepare: {own}}}, sidecars: {{daemon: {own}}}}}"
    spec = pods(on_fabric(root, IB[0], fabric, ""))["node"]["spec"]
    prepare, daemon = spec["initContainers"]
    assert ("restartPolicy" in prepare, daemon["restartPolicy"]) == (False, "Always")
    assert prepare["command"] == ["prepare", "8"]
    assert prepare["securityContext"]["runAsNonRoot"] is True
    assert [one["mountPath"] for one in prepare["volumeMounts"]] == ["/sockets"]
    assert {"name": "fabric-sockets", "emptyDir": {}} in spec["volumes"]


@pytest.mark.parametrize(("cpu", "fits"), [(120, True), (121, False)])
def test_a_worker_shares_its_node_with_the_sidecars(cpu: int, fits: bool, root: Path) -> None:
    daemon = TCPXO[1].replace("image:", "cpu: 4, memory: 4Gi, image:")
    outcome = validate(on_fabric(root, "", daemon, spec=SPEC.replace("cpu: 8", f"cpu: {cpu}")))
    assert errors(outcome) == ([] if fits else ["pool-no-fit"]), outcome.err
    if not fits:
        (told,) = (one for one in outcome.findings if one.rule == "pool-no-fit")
        assert "which take 4 CPU, a worker with 121 CPU does not fit on a node with 124 CPU" in told.message
        assert told.help == "Write cpu: 120 or less."


def test_folders_of_the_node_are_read_only_unless_stated(root: Path) -> None:
    fabric = (
        "{hostPaths: {a: {path: /opt/a, mount: /opt/a}, b: {path: /opt/b, mount: /opt/b, readOnly: false}}}"
    )
    spec = pods(on_fabric(root, IB[0], fabric))["node"]["spec"]
    mounts = {one["name"]: one.get("readOnly", False) for one in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"shm": False, "fabric-a": True, "fabric-b": False, "gangplan-launch": True}


VAULT = "volumes: {vault: {driver: a.b, readOnly: true}}\n"
# A path of the node in the fabric, lines of the spec, and the rule that they break, or nothing.
MEETING = {
    "a folder in a folder of the node": ("mount: /opt/lib", "files: {tuning: /opt/lib/x}", "mount-point"),
    "a folder in a writable one": ("mount: /opt/lib, readOnly: false", "files: {tuning: /opt/lib/x}", ""),
    "a folder next to it": ("mount: /opt/lib", "files: {tuning: /opt/libx}", ""),
    "a folder in a file of the node": (
        "mount: /opt/lib, type: File",
        "files: {tuning: /opt/lib/x}",
        "mount-inside",
    ),
    "at the same path": ("mount: /opt/lib", "files: {tuning: /opt/lib}", "mount-collision"),
    "a folder of the node in a ConfigMap": ("mount: /etc/tuning/lib", "files: {tuning: /etc/tuning}", ""),
    "a file of the node in a ConfigMap": (
        "mount: /etc/tuning/lib, type: File",
        "files: {tuning: /etc/tuning}",
        "mount-inside",
    ),
    "a folder of the node in a read-only volume": ("mount: /v/lib", "volumes: {vault: /v}", "mount-point"),
    "a folder of the node in scratch": ("mount: /scratch/lib", "scratch: 9Gi", ""),
    "a folder that only containers see": ("type: Directory", "files: {tuning: /opt/lib/x}", ""),
}


@pytest.mark.parametrize("name", MEETING)
def test_mounts_of_the_spec_and_of_the_fabric_do_not_exclude_each_other(name: str, root: Path) -> None:
    folder, lines, rule = MEETING[name]
    own = f"{{hostPaths: {{lib: {{path: /opt/lib, {folder}}}}}}}"
    on_fabric(root, IB[0], own, spec=f"{SPEC}{lines}\n", more=VAULT)
    workspaces.write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "configMaps: [tuning]\n"})
    found = [(one.rule, one.place) for one in validate(root).findings if one.rule.startswith("mount-")]
    assert [one for one, _ in found] == ([rule] if rule else [])
    assert all(place.startswith("specs/nlp/filings.yaml:") for _, place in found)


# Paths of the node and shared folders of one fabric, and the rule that they break, or nothing.
OWN_MOUNTS = {
    "a shared folder in a read-only one": ("mount: /opt/lib", "shared: {run: /opt/lib/run}", "mount-point"),
    "in a writable one": ("mount: /opt/lib, readOnly: false", "shared: {run: /opt/lib/run}", ""),
    "next to it": ("mount: /opt/lib", "shared: {run: /opt/libs}", ""),
    "in a file": ("mount: /opt/lib, type: File", "shared: {run: /opt/lib/run}", "mount-inside"),
    "a folder of the node in itself": (
        "mount: /opt/lib}, run: {path: /opt/lib/run, mount: /opt/lib/run",
        "shared: {}",
        "",
    ),
    "another folder of the node": (
        "mount: /opt/lib}, run: {path: /run/lib, mount: /opt/lib/run",
        "shared: {}",
        "mount-point",
    ),
    "around it": ("mount: /opt/run/lib", "shared: {run: /opt/run}", ""),
    "in one that workers do not see": ("type: Directory", "shared: {run: /opt/lib/run}", ""),
    "in one that only a container sees": (
        "type: Directory",
        f"shared: {{run: /run}}, sidecars: {{d: {{image: '{IMAGE}', mounts: {{lib: /l, run: /l/run}}}}}}",
        "mount-point",
    ),
}


@pytest.mark.parametrize("name", OWN_MOUNTS)
def test_mounts_of_a_fabric_find_their_place_inside_each_other(name: str, root: Path) -> None:
    folder, lines, rule = OWN_MOUNTS[name]
    own = f"{{hostPaths: {{lib: {{path: /opt/lib, {folder}}}}}, {lines}}}"
    found = [one for one in validate(on_fabric(root, IB[0], own)).findings if one.rule.startswith("mount-")]
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert all(one.place.startswith(f"{CLUSTER}:") for one in found)


@pytest.mark.parametrize(
    ("env", "image"),
    [("PET_STANDALONE", "pytorch"), ("PATH", "openmpi"), ("OMPI_MCA_plm_rsh_agent", "openmpi")],
)
def test_a_variable_of_a_fabric_that_the_launch_owns_is_reported_at_the_fabric(
    env: str, image: str, root: Path
) -> None:
    on_fabric(
        root,
        IB[0],
        f"{{env: {{FI_PROVIDER: efa, {env}: /opt/bin}}}}",
        spec=SPEC.replace("openmpi", image),
    )
    found = {(one.rule, one.place) for one in validate(root).findings if env in one.message}
    lines = (root / CLUSTER).read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if "fabrics:" in text)
    assert found
    assert {place.rpartition(":")[0] for _, place in found} == {f"{CLUSTER}:{line}"}


@pytest.mark.parametrize(
    ("pages", "asked", "expected"),
    [
        ("", "", None),
        ("{2Mi: 10Gi}", "", "5Gi"),
        ("{2Mi: 10Gi}", "hugePages: {2Mi: 2Gi}\n", "2Gi"),
        ("{1Gi: 8Gi}", "", None),
    ],
)
def test_huge_pages_are_requested_where_nodes_have_them(
    pages: str, asked: str, expected: str | None, root: Path
) -> None:
    pool = EFA[0] + (f", hugePages: {pages}" if pages else "")
    spec = pods(on_fabric(root, pool, EFA[1], "", SPEC + asked))["node"]["spec"]
    assert spec["containers"][0]["resources"]["limits"].get("hugepages-2Mi") == expected


def test_the_environment_of_spec_team_and_cluster_wins(root: Path) -> None:
    on_fabric(root, EFA[0], EFA[1], "", SPEC + "env: {FI_PROVIDER: tcp}\n")
    env = {one["name"]: one.get("value") for one in pods(root)["launcher"]["spec"]["containers"][0]["env"]}
    assert (env["FI_PROVIDER"], env["FI_EFA_FORK_SAFE"]) == ("tcp", "1")


def test_workers_in_the_host_network_are_reached_by_addresses(root: Path) -> None:
    made = pods(on_fabric(root, *ROCE))
    assert made["node"]["spec"]["hostNetwork"] is True
    assert made["node"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "hostNetwork" not in made["launcher"]["spec"]
    text = next(data for name, data in workspaces.rendered(root).items() if is_run_file(name))
    policy = next(one for one in yaml.safe_load_all(text) if one["kind"] == "NetworkPolicy")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        assert policy["spec"][direction][-1] == {side: [{"ipBlock": {"cidr": "10.0.16.0/20"}}]}


def test_torch_in_the_host_network_opens_nothing(root: Path) -> None:
    on_fabric(root, *ROCE, spec=SPEC.replace("openmpi", "pytorch"))
    pods(root)
    assert not any(
        b"ipBlock" in data for name, data in workspaces.rendered(root).items() if is_run_file(name)
    )


@pytest.mark.parametrize(
    ("pool", "fabric", "gpus", "rule"),
    [
        (*ROCE, 8, ""),
        (*ROCE, 4, "fabric-node-shared"),
        (IB[0], "{wholeNode: true}", 7, "fabric-node-shared"),
        (IB[0], "{}", 1, ""),
    ],
)
def test_a_worker_must_have_its_node_to_itself_where_the_fabric_needs_it(
    pool: str, fabric: str, gpus: int, rule: str, root: Path
) -> None:
    outcome = validate(on_fabric(root, pool, fabric, spec=SPEC.replace("gpus: 8", f"gpus: {gpus}")))
    assert errors(outcome) == ([rule] if rule else []), outcome.err


@pytest.mark.parametrize(("cpu", "is_alone"), [(31, True), (30, False)])
def test_without_gpus_more_than_half_of_a_node_is_a_whole_node(cpu: int, is_alone: bool, root: Path) -> None:
    on_fabric(root, *ROCE, spec=SPEC.replace("gpus: 8", "gpus: 0").replace("cpu: 8", f"cpu: {cpu}"))
    text = (root / CLUSTER).read_text().replace("memory: 240Gi}", "memory: 240Gi, fabric: quick}")
    outcome = validate(workspaces.write(root, {CLUSTER: text}))
    assert errors(outcome) == ([] if is_alone else ["fabric-node-shared"]), outcome.err


@pytest.mark.parametrize(
    ("pool", "fabric", "words"),
    [
        ("", "{preset: aws-efa}", "has no rdma"),
        ("", "{env: {FI_PROVIDER: efa}}", "nothing gives workers a card of fabric 'quick'"),
        ("rdma: {resource: rdma/ib, count: 8, network: default/ib}", ROCE[1], "attach to no other"),
        ("", "{hostNetwork: true}", "states no nodeAddresses"),
        ("", "{preset: gke-tcpxo}", "has no image"),
        ("", "{shared: {s: /x}, hostPaths: {s: {path: /opt/x}}}", "a path of the node and a shared folder"),
        ("", "{env: {PET_NNODES: 3}}", "'PET_NNODES' is set for every run"),
        ("", "{env: {CHECKPOINT_DIR: /x}}", "'CHECKPOINT_DIR' is what checkpoint sets"),
        ("", f"{{sidecars: {{node: {{image: '{IMAGE}'}}}}}}", "the program's container"),
        (
            "",
            f"{{sidecars: {{d: {{image: '{IMAGE}', mounts: {{sys: /x}}}}}}}}",
            "folder 'sys' is not declared",
        ),
        (
            "",
            f"{{setup: {{d: {{image: '{IMAGE}'}}}}, sidecars: {{d: {{image: '{IMAGE}'}}}}}}",
            "another container",
        ),
    ],
)
def test_parts_of_a_fabric_that_do_not_fit_are_refused(
    pool: str, fabric: str, words: str, root: Path
) -> None:
    outcome = validate(on_fabric(root, pool, fabric))
    assert [one for one in outcome.findings if one.severity == "error" and words in one.message], outcome.err


@pytest.mark.parametrize(
    "fabric",
    [
        "{hostPaths: {a: {path: etc}}}",
        "{hostPaths: {a: {path: /a/../etc}}}",
        "{annotations: {kueue.x-k8s.io/queue-name: other}}",
        "{annotations: {k8s.v1.cni.cncf.io/networks: other}}",
        f"{{shared: {{{'a' * 57}: /x}}}}",
        "{capabilities: [ALL]}",
        "{capabilities: [CAP_SYS_ADMIN]}",
        "{preset: aws-elastic}",
        "{sidecars: {d: {image: 'registry.example.com/a b'}}}",
    ],
)
def test_invalid_values_of_a_fabric_are_refused(fabric: str, root: Path) -> None:
    assert validate(on_fabric(root, "", fabric)).code == Exit.INPUT


def test_a_capability_without_effect_is_reported(root: Path) -> None:
    told = {one.rule: one.message for one in validate(on_fabric(root, *IB)).findings}
    assert (
        "IPC_LOCK of fabric 'quick' does not reach the program, which runs as user 1000"
        in told["capability-idle"]
    )
    roce = {one.rule for one in validate(on_fabric(root, *ROCE)).findings}
    assert "capability-idle" not in roce, "privileged containers are another matter"


@pytest.mark.parametrize("wanted", ["per-gpu", "2"])
def test_devices_are_counted_only_where_pools_have_them(wanted: str, root: Path) -> None:
    spec = SPEC.replace("required", wanted)
    assert errors(validate(on_fabric(root, *TCPXO, spec=spec))) == ["rdma-devices"]
    assert errors(validate(on_fabric(root, *EFA, team="", spec=spec.replace("per-gpu", "4")))) == []


def test_the_page_lists_every_preset_with_its_source() -> None:
    text = (workspaces.REPOSITORY / "docs/fabrics.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    assert rows.keys() == FABRIC_PRESETS.keys()
    for name, preset in FABRIC_PRESETS.items():
        repository, _, files = preset.source.partition(" ")
        assert f"{repository}, {files}" in rows[name]
        assert PRESET_LEVELS[name] in rows[name]


def test_lists_show_fabrics_and_levels(root: Path) -> None:
    on_fabric(root, *TCPXO)
    pools = {row.split()[0]: row.split() for row in gangplan("list", "pools", "-C", root).out.splitlines()}
    assert pools["pool"][-2:] == ["rdma", "fabric"]
    assert pools["a100"][-2:] == ["yes", "quick"]
    assert pools["cpu"][-2:] == ["-", "-"]
    assert "lab: privileged" in gangplan("list", "teams", "-C", root).out
