"""One mistake, one finding: a patched object of a cluster is reported once, not once per run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from tests.standing import base
from tests.workspaces import write

HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
ALLOW_DNS = """\
- target: {kind: NetworkPolicy, name: allow-dns}
  patch: |-
    - {op: remove, path: /spec/egress/0/to}
"""
QUEUE = """\
- target: {kind: LocalQueue}
  patch: |-
    - {op: replace, path: /spec/clusterQueue, value: vision}
"""
SECURITY = """\
- target: {kind: TrainingRuntime, namespace: team-cv}
  patch: |-
    - op: replace
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/securityContext/runAsUser
      value: 0
"""


def found(root: Path, patches: str, *specs: str) -> list[tuple[str, str, str]]:
    """Return place, rule and object of each finding with some patches; there are four runs of two teams."""
    base.workspace(root)
    write(root, {"specs/cv/second.yaml": base.SPEC, "specs/cv/third.yaml": base.SPEC})
    write(root, {"overlays/lab/kustomization.yaml": HEAD + patches})
    asked = tuple(str(root / spec) for spec in specs)
    result = preview_render(Request(root, specs=asked, engine="serial"))
    return [(str(one.where), one.rule, one.object_ref) for one in result.findings]


def test_a_patched_policy_of_the_cluster_is_reported_once(tmp_path: Path) -> None:
    """allow-dns without its peers opens every run of every team: one finding, at the patch."""
    told = found(tmp_path, ALLOW_DNS)
    assert told == [("overlays/lab/kustomization.yaml:6:26", "network-open", "NetworkPolicy/allow-dns")]


@pytest.mark.parametrize("specs", [(), ("specs/cv/train.yaml",)], ids=["all", "one"])
def test_a_patched_queue_is_reported_once_per_object(specs: tuple[str, ...], tmp_path: Path) -> None:
    """The queues of three teams are reported and their runs are not; a check of one run alone reports the
    run."""
    told = found(tmp_path, QUEUE, *specs)
    assert {place for place, _, _ in told} == {"overlays/lab/kustomization.yaml:6:54"}
    rules = sorted(rule for _, rule, _ in told)
    assert rules == (["never-admitted"] if specs else ["queue-invalid"] * 3)


def test_the_operation_that_causes_the_finding_is_reported(tmp_path: Path) -> None:
    """The first operation writes the field that spoils the run; the last changes nothing."""
    more = "    - {op: replace, path: /spec/stopPolicy, value: None}\n"
    told = found(tmp_path, QUEUE + more, "specs/cv/train.yaml")
    assert told == [("overlays/lab/kustomization.yaml:6:54", "never-admitted", "LocalQueue/training")]


def test_the_patch_of_a_run_is_reported_at_its_value(tmp_path: Path) -> None:
    """The namespace refuses the user, who is also not the planned one."""
    told = found(tmp_path, SECURITY)
    assert {(place, rule) for place, rule, _ in told} == {
        ("overlays/lab/kustomization.yaml:8:14", "pod-security"),
        ("overlays/lab/kustomization.yaml:8:14", "plan-broken"),
    }


APPENDED = """\
- target: {kind: TrainingRuntime, namespace: team-cv}
  patch: |-
    - {op: add, path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/tolerations, value: []}
    - op: add
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/tolerations/-
      value: {key: a, operator: Exists}
    - op: replace
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/tolerations/0
      value: {key: a, operator: Likes}
"""


def test_the_last_operation_that_writes_an_entry_is_reported(tmp_path: Path) -> None:
    """`-` adds the entry and its number then replaces it, so the replacement is what wrote it."""
    (told,) = {(place, rule) for place, rule, _ in found(tmp_path, APPENDED)}
    place, rule = told
    assert rule in ("schema", "object-invalid")
    assert place.startswith("overlays/lab/kustomization.yaml:12:")
