"""Policies make an exception only where a fabric needs what they refuse and the namespace admits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.policy.exempt import find_levels_exempt_by_policy
from gangplan.policy.export import export_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.resolve.test_fabrics import EFA, IB, IMAGE, LEVEL, ROCE, TCPXO, on_fabric, validate

PACKS = "policies: {packs: [baseline, restricted]}\n"
KEY = "pod-security.kubernetes.io/enforce"
BASELINE = LEVEL.replace("privileged", "baseline")
ROOT = ("rdma: {resource: rdma/ib, count: 8}", f"{{sidecars: {{d: {{image: '{IMAGE}', root: true}}}}}}")
CHOWN = ("rdma: {resource: rdma/ib, count: 8}", "{capabilities: [CHOWN]}")


@pytest.mark.parametrize(
    ("fabric", "team", "expected"),
    [
        (EFA, LEVEL, {}),
        (IB, LEVEL, {"capabilities-added": ("privileged",)}),
        (IB, BASELINE, {}),
        (IB, "", {}),
        (ROOT, BASELINE, {"non-root": ("baseline",)}),
        (ROOT, LEVEL, {"non-root": ("privileged",)}),
        (CHOWN, BASELINE, {"capabilities-dropped": ("baseline",)}),
        (
            ROCE,
            LEVEL,
            dict.fromkeys(
                ("host-namespaces", "host-ports", "host-path", "privileged", "privilege-escalation"),
                ("privileged",),
            ),
        ),
        (
            TCPXO,
            LEVEL,
            dict.fromkeys(("host-path", "capabilities-added", "non-root"), ("privileged",)),
        ),
    ],
)
def test_policies_except_only_namespaces_that_admit_the_fabric(
    fabric: tuple[str, str], team: str, expected: dict[str, tuple[str, ...]], root: Path
) -> None:
    workspace = load_workspace(on_fabric(root, *fabric, team, more=PACKS))
    assert find_levels_exempt_by_policy(workspace.clusters["lab"].spec) == expected
    found = {}
    for body in export_objects(workspace, "lab"):
        if body["kind"] == "ValidatingAdmissionPolicyBinding":
            selector: list[dict[str, Any]] = body["spec"]["matchResources"]["namespaceSelector"][
                "matchExpressions"
            ]
            levels = [
                tuple(one["values"]) for one in selector if one["key"] == KEY and one["operator"] == "NotIn"
            ]
            if levels:
                found[body["spec"]["policyName"].removeprefix("gangplan-")] = levels[0]
    assert found == expected


@pytest.mark.parametrize(
    ("fabric", "team", "expected"),
    [
        (EFA, LEVEL, None),
        (IB, "", None),
        (IB, LEVEL, {"capabilities": "IPC_LOCK", "paths": "", "writable": ""}),
        (ROCE, LEVEL, {"capabilities": "", "paths": "/dev/infiniband", "writable": "/dev/infiniband"}),
        (
            TCPXO,
            LEVEL,
            {
                "capabilities": "NET_ADMIN,NET_BIND_SERVICE",
                "paths": "/dev/aperture_devices,/home/kubernetes/bin/nvidia/lib64,/proc/sys,/sys",
                "writable": "/dev/aperture_devices,/proc/sys,/sys",
            },
        ),
    ],
)
def test_the_fabric_access_policy_allows_what_fabrics_need(
    fabric: tuple[str, str], team: str, expected: dict[str, str] | None, root: Path
) -> None:
    """The pack is added automatically where policies make an exception, with what the fabrics need."""
    workspace = load_workspace(on_fabric(root, *fabric, team, more=PACKS))
    bodies = {(one["kind"], one["metadata"]["name"]): one for one in export_objects(workspace, "lab")}
    params = bodies.get(("ConfigMap", "gangplan-fabric-access"))
    assert (("ValidatingAdmissionPolicy", "gangplan-fabric-access") in bodies) == (expected is not None)
    if expected is not None:
        assert params is not None
        assert {key: value for key, value in params["data"].items() if key != "allowed"} == expected


@pytest.mark.parametrize("packs", ["", "policies: {packs: [images]}\n"])
def test_without_such_packs_there_is_no_fabric_access_policy(packs: str, root: Path) -> None:
    workspace = load_workspace(on_fabric(root, *TCPXO, more=packs))
    assert not [one for one in export_objects(workspace, "lab") if "fabric-access" in one["metadata"]["name"]]


def test_a_patch_may_use_no_more_than_the_fabric(root: Path) -> None:
    on_fabric(root, *TCPXO, more=PACKS)
    pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
    operation = f"{{op: add, path: {pod}/volumes/-, value: {{name: host, hostPath: {{path: /}}}}}}"
    patch = f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n    - {operation}\n"
    text = workspaces.KUSTOMIZATION.split("- target")[0] + patch
    outcome = validate(workspaces.write(root, {"overlays/lab/kustomization.yaml": text}))
    (told,) = (one for one in outcome.findings if one.rule == "fabric-access")
    assert told.severity == "error"
    assert told.place.startswith("overlays/lab/kustomization.yaml:")
    assert "mounts the folder / of the node, which no fabric of this cluster gives" in told.message


@pytest.mark.parametrize(("level", "refused"), [("privileged", True), ("baseline", True), ("", True)])
def test_another_team_keeps_its_policies(level: str, refused: bool, root: Path) -> None:
    """A patch mounts a folder of the node into pods of a second team, next to one with a fabric."""
    on_fabric(root, *TCPXO, more=PACKS)
    own = LEVEL.replace("privileged", level) if level else ""
    team = f"  vision: {{queue: training{', ' + own if own else ''}}}\n"
    cluster = (root / "overlays/lab/cluster.yaml").read_text().replace("teams:\n", f"teams:\n{team}")
    pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
    value = "{name: host, hostPath: {path: /var/log}}"
    patch = f"    - {{op: add, path: {pod}/volumes/-, value: {value}}}\n"
    target = "- target: {kind: TrainingRuntime, namespace: vision}\n  patch: |-\n"
    workspaces.write(
        root,
        {
            "overlays/lab/cluster.yaml": cluster,
            "overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION.split("- target")[0] + target + patch,
            "specs/vision/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n",
            "specs/vision/other.yaml": workspaces.SPEC,
        },
    )
    outcome = validate(root)
    told = [one for one in outcome.findings if one.rule in ("host-path", "pod-security", "fabric-access")]
    assert bool(told) == refused, outcome.err
