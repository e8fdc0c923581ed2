"""Kept runs: taken back only as far as their name vouches for them, and checked like new ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import CATALOG, CLUSTER, gangplan, render, rendered, write

OTHER_BUILD = CATALOG.replace("332211ffee", "332211ffef")
RUN = "rendered/lab/runs/nlp"
BINDING = """\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: everybody
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: system:authenticated
"""


@pytest.fixture
def moved(root: Path) -> Path:
    """Render, then change the catalog: without --keep-runs the run would become another one."""
    render(root)
    write(root, {"images/catalog.yaml": OTHER_BUILD})
    return root


def the_run(root: Path) -> Path:
    [path] = (root / RUN).glob("*-*.yaml")
    return path


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


# What the name vouches for: any change of it is a forgery.
FORGED: dict[str, Callable[[str], str]] = {
    "another image": replaced("registry.example.com/training/openmpi@", "evil.example.com/miner@"),
    "another digest": replaced("332211ffee", "332211ffed"),
    "another command": replaced("train.py", "steal.py"),
    "privileged": replaced("allowPrivilegeEscalation: false", "privileged: true"),
    "root": replaced("runAsNonRoot: true", "runAsNonRoot: false"),
    "the host's network": replaced("automountServiceAccountToken: false", "hostNetwork: true"),
    "a token": replaced("automountServiceAccountToken: false", "automountServiceAccountToken: true"),
    "another account": replaced("serviceAccountName: training", "serviceAccountName: default"),
    "another runtime": replaced("kind: TrainingRuntime, name: ", "kind: ClusterTrainingRuntime, name: "),
    "no runtime": lambda text: "---\n".join(
        part for part in text.split("---\n") if "kind: TrainingRuntime\nmetadata" not in part
    ),
    "two jobs": lambda text: text + "---\n" + text.rpartition("---\n")[2],
    "a key twice": replaced(
        "  activeDeadlineSeconds: 86400\n", "  activeDeadlineSeconds: 86400\n  suspend: true\n"
    ),
    "no YAML": replaced("kind: TrainJob\nmetadata", "kind: [TrainJob\nmetadata"),
    "a tag": replaced("activeDeadlineSeconds: 86400", "activeDeadlineSeconds: 2026-11-22"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_run_is_reported_and_nothing_is_written(moved: Path, name: str) -> None:
    path = the_run(moved)
    path.write_text(FORGED[name](path.read_text()))
    before = rendered(moved)
    for command in (("validate",), ("render", "--check"), ("render",)):
        outcome = gangplan(*command, "-C", moved, "--keep-runs")
        assert outcome.code == Exit.FINDINGS
        file = path.relative_to(moved).as_posix()
        assert (f"{file}:1:1", "run-forged") in outcome.errors(), outcome.err
    assert rendered(moved) == before


def test_a_renamed_run_is_a_forgery(moved: Path) -> None:
    """The run is renamed inside, too: the hash covers the content, so the name is not free."""
    path = the_run(moved)
    name = f"filings-{'0' * 8}"
    (path.parent / f"{name}.yaml").write_text(path.read_text().replace(path.stem, name))
    path.unlink()
    for command in (("validate",), ("render", "--check")):
        outcome = gangplan(*command, "-C", moved, "--keep-runs")
        assert outcome.code == Exit.FINDINGS
        assert "run-forged" in {shown.rule for shown in outcome.findings}


# What the name does not vouch for is rendered as it would be today: none of it is kept.
UNTAKEN: dict[str, Callable[[str], str]] = {
    "another namespace": replaced("namespace: nlp", "namespace: kube-system"),
    "another priority": replaced(
        "kueue.x-k8s.io/priority-class: training-normal", "kueue.x-k8s.io/priority-class: training-high"
    ),
    "another queue": replaced("kueue.x-k8s.io/queue-name: training", "kueue.x-k8s.io/queue-name: vision"),
    "another team": replaced("gangplan.dev/team: nlp", "gangplan.dev/team: vision"),
    "a hook": replaced("  annotations:\n", "  annotations:\n    argocd.argoproj.io/hook: PreSync\n"),
    "a finalizer": replaced("  annotations:\n", "  finalizers: [example.com/never]\n  annotations:\n"),
    "an open network": replaced("  egress: [{", "  egress: [{}, {"),
    "a waiver": replaced("  annotations:\n", "  annotations:\n    gangplan.dev/waived-privileged: forever\n"),
    "an object more": lambda text: text + BINDING,
    "another group": replaced("apiVersion: trainer.kubeflow.org/v1alpha1", "apiVersion: example.com/v1"),
    "a comment": lambda text: text + "# by hand\n",
}


@pytest.mark.parametrize("name", UNTAKEN)
def test_changes_that_the_name_does_not_vouch_for_are_undone(moved: Path, name: str) -> None:
    path = the_run(moved)
    right = path.read_text()
    path.write_text(UNTAKEN[name](right))
    outcome = gangplan("render", "--check", "-C", moved, "--keep-runs")
    assert outcome.code == Exit.FINDINGS
    render(moved, "--keep-runs")
    assert path.read_text() == right
    assert gangplan("render", "--check", "-C", moved, "--keep-runs").code == Exit.CLEAN


@pytest.mark.parametrize("name", ["another namespace", "an object more"])
def test_validate_reports_changes_that_a_name_does_not_vouch_for(moved: Path, name: str) -> None:
    path = the_run(moved)
    path.write_text(UNTAKEN[name](path.read_text()))
    outcome = gangplan("validate", "-C", moved, "--keep-runs")
    assert outcome.code == Exit.FINDINGS
    assert {shown.rule for shown in outcome.findings if shown.severity == "error"} == {"rendered-foreign"}


def test_a_link_is_not_followed(moved: Path, tmp_path: Path) -> None:
    path = the_run(moved)
    path.rename(tmp_path / "outside.yaml")
    path.symlink_to(tmp_path / "outside.yaml")
    outcome = gangplan("validate", "-C", moved, "--keep-runs")
    assert outcome.errors() == [(f"{path.relative_to(moved).as_posix()}:1:1", "rendered-foreign")]
    assert "run-kept" not in {shown.rule for shown in outcome.findings}


def test_policies_are_evaluated_for_kept_runs(moved: Path) -> None:
    """The catalog names another build: the policy refuses a retry's pods unless the catalog lists both."""
    packs = CLUSTER.replace("teams:", "policies: {packs: [images], actions: {image-scan: Audit}}\nteams:")
    write(moved, {"overlays/lab/cluster.yaml": packs})
    outcome = gangplan("validate", "-C", moved, "--keep-runs")
    assert [rule for _, rule in outcome.errors()] == ["image-catalog"]
    digest = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
    line = "    digest: sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffef\n"
    write(moved, {"images/catalog.yaml": OTHER_BUILD.replace(line, f"{line}    earlier: ['{digest}']\n")})
    outcome = gangplan("validate", "-C", moved, "--keep-runs")
    assert outcome.errors() == [], outcome.err
    before = workspaces.rendered(moved)
    assert gangplan("render", "-C", moved, "--keep-runs").code == Exit.CLEAN
    after = workspaces.rendered(moved)
    assert {name for name in after if before.get(name) != after[name]} == {"lab/platform/policies.yaml"}


def test_new_runs_do_not_use_an_earlier_build(root: Path) -> None:
    line = "    framework: torch\n"
    text = CATALOG.replace(line, f"{line}    earlier: ['sha256:{'0' * 64}']\n")
    write(root, {"images/catalog.yaml": text})
    render(root)
    assert b"sha256:" + b"0" * 64 not in b"".join(workspaces.rendered(root).values())
