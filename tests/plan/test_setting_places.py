"""A variable that contradicts the plan is found in the file that sets it: the spec's, the team's, the cluster's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan

TEAM, CLUSTER, SPEC = "specs/nlp/team.yaml", "overlays/lab/cluster.yaml", "specs/nlp/filings.yaml"
END = {
    TEAM: workspaces.TEAM.count("\n") + 1,
    CLUSTER: workspaces.CLUSTER.count("\n") + 1,
    SPEC: workspaces.SPEC.count("\n") + 1,
}
STOCK = {TEAM: workspaces.TEAM, CLUSTER: workspaces.CLUSTER, SPEC: workspaces.SPEC}
WRONG = "NCCL_SOCKET_IFNAME: eno1"


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ({SPEC: f"env: {{{WRONG}}}\n"}, f"{SPEC}:{END[SPEC]}:27"),
        ({TEAM: f"defaults: {{env: {{{WRONG}}}}}\n"}, f"{TEAM}:{END[TEAM]}:38"),
        ({CLUSTER: f"defaults: {{env: {{{WRONG}}}}}\n"}, f"{CLUSTER}:{END[CLUSTER]}:38"),
        ({CLUSTER: f"env: {{{WRONG}}}\n"}, f"{CLUSTER}:{END[CLUSTER]}:27"),
        # The setting nearest to the spec wins, and is reported.
        (
            {CLUSTER: f"env: {{{WRONG}}}\n", TEAM: f"defaults: {{env: {{{WRONG}}}}}\n"},
            f"{TEAM}:{END[TEAM]}:38",
        ),
        ({CLUSTER: f"env: {{{WRONG}}}\n", SPEC: "env: {NCCL_SOCKET_IFNAME: eth0}\n"}, ""),
    ],
)
def test_a_wrong_variable_is_reported_in_the_file_that_sets_it(
    lines: dict[str, str], place: str, tmp_path: Path
) -> None:
    files = {name: STOCK[name] + text for name, text in lines.items()}
    root = workspaces.write(workspaces.stock(tmp_path), files)
    found = [
        one.place for one in gangplan("validate", "-C", root).findings if one.rule == "interface-unknown"
    ]
    assert found == ([place] if place else [])


OVERLAY = "overlays/lab/kustomization.yaml"
PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: TrainingRuntime}}
  patch: |-
    - op: add
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/env/-
      value: {{name: {name}, value: {value}}}
"""


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("NCCL_SOCKET_IFNAME", "eno1", "interface-unknown"),
        ("GLOO_SOCKET_IFNAME", "ib0", "interface-unknown"),
        ("CUDA_VISIBLE_DEVICES", '"0"', "gpus-hidden"),
        ("NVIDIA_VISIBLE_DEVICES", "all", "gpus-unasked"),
        ("NCCL_SOCKET_IFNAME", "eth0", ""),
        ("NCCL_DEBUG", "INFO", ""),
    ],
)
def test_a_wrong_variable_is_reported_in_the_patch_that_sets_it(
    name: str, value: str, rule: str, tmp_path: Path
) -> None:
    files = {OVERLAY: PATCH.format(name=name, value=value)}
    root = workspaces.write(workspaces.stock(tmp_path), files)
    found = [(one.rule, one.place) for one in gangplan("validate", "-C", root).findings]
    assert found == ([(rule, f"{OVERLAY}:8:14")] if rule else [])
