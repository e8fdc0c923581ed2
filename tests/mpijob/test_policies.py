"""The packs apply to MPIJobs as they do to TrainJobs if the cluster has the MPI operator.

On other clusters, policies do not mention MPIJobs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.policies import BUILTIN_PACKS
from tests import plain
from tests.mpijob.base import MIXED, OPERATOR, Body, run, spec, workspace
from tests.workspaces import CLUSTER, KUSTOMIZATION, gangplan

PACK_LINE = "policies: {packs: [baseline, restricted, images, lifecycle, priorities, data, network]}\n"


def policies(root: Path) -> dict[str, Body]:
    """Return the rendered ValidatingAdmissionPolicies by name."""
    text = (root / "rendered/lab/platform/policies.yaml").read_text(encoding="utf-8")
    every = [body for body in plain.load_all(text) if body]
    return {one["metadata"]["name"]: one for one in every if one["kind"] == "ValidatingAdmissionPolicy"}


def resources(policy: Body) -> set[str]:
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    return {name for rule in rules for name in rule["resources"]}


def test_policies_about_runs_match_mpijobs(tmp_path: Path) -> None:
    workspace(tmp_path / "mpi", spec(), OPERATOR + PACK_LINE)
    workspace(tmp_path / "mixed", spec(), MIXED + PACK_LINE)
    workspace(tmp_path / "train", spec(), CLUSTER + PACK_LINE)
    found = {}
    for name in ("mpi", "mixed", "train"):
        run(tmp_path / name)
        found[name] = policies(tmp_path / name)
    of_runs = {"trainjobs", "trainingruntimes"}
    for name, policy in found["train"].items():
        plain_one = resources(policy)
        assert "mpijobs" not in plain_one
        gains = {"mpijobs"} if plain_one & of_runs else set()
        assert resources(found["mixed"][name]) == plain_one | gains
        assert resources(found["mpi"][name]) == (plain_one - of_runs) | gains


BREAKS = {
    "scratch-limit": """\
    - op: add
      path: /spec/mpiReplicaSpecs/Launcher/template/spec/volumes/-
      value: {name: more, emptyDir: {}}
""",
    "run-deadline": """\
    - op: remove
      path: /spec/runPolicy/activeDeadlineSeconds
""",
    "run-restarts": """\
    - op: replace
      path: /spec/runPolicy/backoffLimit
      value: 50
""",
    "image-digest": """\
    - op: replace
      path: /spec/mpiReplicaSpecs/Worker/template/spec/containers/0/image
      value: registry.example.com/training/openmpi:v1
""",
    "retention": """\
    - op: remove
      path: /metadata/annotations/argocd.argoproj.io~1sync-options
""",
    "service-token": """\
    - op: remove
      path: /spec/mpiReplicaSpecs/Worker/template/spec/automountServiceAccountToken
""",
}


@pytest.mark.parametrize("rule", BREAKS)
@pytest.mark.parametrize("cluster", [OPERATOR, MIXED], ids=["alone", "mixed"])
def test_each_breach_of_a_policy_by_an_mpijob_is_reported(
    rule: str, cluster: str, tmp_path: Path, builder: str
) -> None:
    head = KUSTOMIZATION.partition("patches:")[0]
    patch = f"{head}patches:\n- target: {{kind: MPIJob}}\n  patch: |-\n{BREAKS[rule]}"
    files = {"overlays/lab/kustomization.yaml": patch}
    workspace(tmp_path, spec(more="backend: mpijob\n"), cluster + PACK_LINE, **files)
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    # A rule reports what this policy would only say again.
    told = {"retention": "sync-destroys"}.get(rule, rule)
    assert told in {shown.rule for shown in outcome.findings}, outcome.err


def test_a_good_run_breaks_none_of_the_packs(tmp_path: Path) -> None:
    names = [
        name
        for name in BUILTIN_PACKS
        if name not in ("fedramp", "hipaa", "gdpr", "pci-dss", "sox", "residency", "labels")
    ]
    line = f"policies: {{packs: [{', '.join(names)}]}}\n"
    workspace(tmp_path, spec(), OPERATOR + line)
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    assert [shown for shown in outcome.findings if shown.severity == "error"] == [], outcome.err
