"""What the platform, not the team, decides for a team: its namespace, its regimes, the weakest posture."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import CLUSTER, SPEC, TEAM, gangplan, render, write

TEAM_FILE, CLUSTER_FILE, SPEC_FILE = (
    "specs/nlp/team.yaml",
    "overlays/lab/cluster.yaml",
    "specs/nlp/filings.yaml",
)
GIVEN = "nlp: {queue: training}"
# Tried by hand before this check existed: fifteen of these were accepted.
PLATFORM = (
    *(
        "vault",
        "external-secrets",
        "cert-manager",
        "kubeflow-system",
        "kubeflow",
        "istio-system",
        "gpu-operator",
    ),
    *("mpi-operator", "volcano-system", "gatekeeper-system", "kyverno", "calico-system", "ingress-nginx"),
    *(
        "rook-ceph",
        "redhat-ods-applications",
        "kube-system",
        "kube-public",
        "openshift",
        "openshift-monitoring",
    ),
    *(
        "default",
        "argocd",
        "kueue-system",
        "trainer-system",
        "jobset-system",
        "flux-system",
        "nvidia-gpu-operator",
    ),
)


def asking(namespace: str) -> str:
    return TEAM.replace("kind: Team", f"kind: Team\nnamespace: {namespace}")


def giving(words: str) -> str:
    return CLUSTER.replace(GIVEN, f"nlp: {{queue: training, {words}}}")


@pytest.mark.parametrize("namespace", PLATFORM)
def test_a_team_cannot_take_a_namespace_of_the_platform(root: Path, namespace: str) -> None:
    write(root, {TEAM_FILE: asking(namespace)})
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [(f"{TEAM_FILE}:3:12", "namespace-reserved")]
    assert outcome.code == Exit.INPUT


@pytest.mark.parametrize("namespace", PLATFORM)
def test_the_platform_cannot_give_away_a_reserved_namespace(root: Path, namespace: str) -> None:
    write(root, {CLUSTER_FILE: giving(f"namespace: {namespace}")})
    [(place, rule)] = gangplan("validate", "-C", root).errors()
    assert (place.split(":")[0], rule) == (CLUSTER_FILE, "namespace-reserved")


@pytest.mark.parametrize(
    "namespace", ["recommender-system", "ml-tools", "nlp-system", "nlp-prod", "team-vision"]
)
def test_a_namespace_without_a_grant_is_refused(root: Path, namespace: str) -> None:
    write(root, {TEAM_FILE: asking(namespace)})
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [(f"{TEAM_FILE}:3:12", "namespace-not-given")]
    # The help is right: what it asks the platform to write makes the workspace valid.
    [shown] = outcome.findings
    assert f"namespace: {namespace} at teams.nlp in {CLUSTER_FILE}" in shown.help
    write(root, {CLUSTER_FILE: giving(f"namespace: {namespace}")})
    render(root)
    write(root, {TEAM_FILE: TEAM})
    assert gangplan("render", "--check", "-C", root).code == Exit.CLEAN  # it follows from the cluster alone


@pytest.mark.parametrize("namespace", ["nlp", "team-nlp"])
def test_namespaces_named_after_the_team_need_no_grant(root: Path, namespace: str) -> None:
    write(root, {TEAM_FILE: asking(namespace)})
    render(root)
    assert f"  namespace: {namespace}\n".encode() in b"".join(workspaces.rendered(root).values())


def test_a_namespace_other_than_the_granted_one_is_refused(root: Path) -> None:
    write(root, {TEAM_FILE: asking("team-nlp"), CLUSTER_FILE: giving("namespace: language")})
    [shown] = gangplan("validate", "-C", root).findings
    assert (shown.place, shown.rule) == (f"{TEAM_FILE}:3:12", "namespace-not-given")
    assert "its namespace is 'language'" in shown.message


def test_the_error_is_at_the_team_that_takes_the_namespace(root: Path) -> None:
    """It is there whatever the order of the names."""
    for victim, thief in (("vision", "nlp"), ("apes", "nlp")):
        write(root, {f"specs/{victim}/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\n"})
        write(root, {TEAM_FILE: asking(victim)})
        assert gangplan("validate", "-C", root).errors() == [
            (f"specs/{thief}/team.yaml:3:12", "namespace-twice")
        ]


def test_two_grants_of_one_namespace_are_refused(root: Path) -> None:
    both = CLUSTER + "  vision: {queue: training, namespace: nlp}\n"
    write(root, {CLUSTER_FILE: both, "specs/vision/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\n"})
    [(place, rule)] = gangplan("validate", "-C", root).errors()
    line = both.splitlines().index("  vision: {queue: training, namespace: nlp}") + 1
    assert (place.rsplit(":", 1)[0], rule) == (f"{CLUSTER_FILE}:{line}", "namespace-twice")


def test_why_names_the_grant(root: Path) -> None:
    write(root, {CLUSTER_FILE: giving("namespace: language")})
    render(root)
    [run] = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    line = run.read_text().splitlines().index("  namespace: language") + 1
    outcome = gangplan("why", f"{run.relative_to(root)}:{line}", "-C", root)
    assert f"{CLUSTER_FILE}:16:37: the platform gives the namespace" in outcome.out


def test_a_team_cannot_drop_a_regime(root: Path) -> None:
    """The regime applies although neither the team's file nor a spec names it, and breaches are reported."""
    pinned = giving("compliance: [hipaa]")
    write(root, {CLUSTER_FILE: pinned})
    outcome = gangplan("validate", "-C", root)
    assert [
        (shown.place.split(":")[0], shown.rule) for shown in outcome.findings if shown.severity == "error"
    ] == [(CLUSTER_FILE, "compliance-not-enforced")]
    packs = pinned.replace("teams:", "policies: {packs: [baseline, hipaa]}\nteams:")
    write(root, {CLUSTER_FILE: packs, SPEC_FILE: SPEC + "data: {filings: /data}\n"})
    rules = {rule: place for place, rule in gangplan("validate", "-C", root).errors()}
    # Where the team would fix it: `encrypted: true` of its claim, the posture of its spec.
    assert rules["claims-encrypted"].startswith((SPEC_FILE, TEAM_FILE))
    assert rules["network-posture"].startswith(SPEC_FILE)


def test_a_posture_cannot_be_weakened(root: Path) -> None:
    write(root, {CLUSTER_FILE: giving("posture: restricted")})
    for weak, strong in (("default", "isolated"), ("default", "restricted")):
        write(root, {SPEC_FILE: f"{SPEC}network: {{posture: {weak}}}\n"})
        [(place, rule)] = gangplan("validate", "-C", root).errors()
        assert (place, rule) == (f"{SPEC_FILE}:9:20", "posture-too-weak")
        write(root, {SPEC_FILE: f"{SPEC}network: {{posture: {strong}}}\n"})
        render(root)


def test_a_default_of_the_team_cannot_weaken_the_posture(root: Path) -> None:
    write(
        root,
        {CLUSTER_FILE: giving("posture: restricted"), TEAM_FILE: f"{TEAM}defaults: {{posture: default}}\n"},
    )
    assert gangplan("validate", "-C", root).errors() == [(f"{TEAM_FILE}:13:21", "posture-too-weak")]


def test_the_default_posture_is_the_pinned_one(root: Path) -> None:
    write(root, {CLUSTER_FILE: giving("posture: isolated")})
    outcome = gangplan("plan", "--format", "json", "-C", root)
    assert '"posture": "isolated"' in outcome.out, outcome.out
