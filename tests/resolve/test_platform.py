"""Valid files whose result a platform would refuse, waste or handle in a surprising way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan import policies
from gangplan.resolve.image import FIPS_PACK
from gangplan.rulebook import load_shipped_rules
from tests import plain, workspaces
from tests.workspaces import gangplan

SPEC, TEAM, CLUSTER = "specs/nlp/filings.yaml", "specs/nlp/team.yaml", "overlays/lab/cluster.yaml"


def told(
    root: Path, spec: str = "", cluster: str = "", team: str = "", change: tuple[str, str] | None = None
) -> list[str]:
    """Return `FILE:LINE:COLUMN severity rule` of all findings, with more lines in the small workspace."""
    text = workspaces.CLUSTER + cluster
    if change is not None:
        assert change[0] in text
        text = text.replace(*change)
    workspaces.write(root, {SPEC: workspaces.SPEC + spec, TEAM: workspaces.TEAM + team, CLUSTER: text})
    outcome = gangplan("validate", "-C", root)
    return [f"{one.place} {one.severity} {one.rule}" for one in outcome.findings]


LONG = "timeout: 48h\nextendedTimeout: true\n"
CHECKPOINTS = {
    "two days and nothing saved": (LONG, [f"{SPEC}:9:10 warning checkpoint-missing"]),
    "two days with a checkpoint": (LONG + "checkpoint: {to: filings}\n", []),
    "a day": ("timeout: 24h\n", []),
    "a claim to write": (LONG + "data: {filings: /data}\n", [f"{SPEC}:9:10 note checkpoint-missing"]),
    "a claim to read": (LONG + "data: {archive: /data}\n", [f"{SPEC}:9:10 warning checkpoint-missing"]),
    "a bucket": (
        LONG + "data: {lidar: env}\nnetwork: {egress: [s3]}\n",
        [f"{SPEC}:9:10 note checkpoint-missing"],
    ),
    "a day with the default": ("", []),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_long_runs_without_a_checkpoint_are_reported(name: str, root: Path) -> None:
    lines, expected = CHECKPOINTS[name]
    assert told(root, lines) == expected


def test_the_help_names_a_claim_that_all_can_write(root: Path) -> None:
    workspaces.write(root, {SPEC: workspaces.SPEC + LONG})
    (found,) = gangplan("validate", "-C", root).findings
    assert "checkpoint: {to: filings}" in (found.help or "")
    assert told(root, LONG + "checkpoint: {to: filings}\n") == []


SAVED = "checkpoint: {to: filings}\nretries: 2\nplacement: {capacity: spot}\n"
SPOT = {
    "production": (SAVED, "", [f"{SPEC}:11:23 warning spot-in-prod"]),
    "a pool by name": (
        "checkpoint: {to: filings}\nretries: 2\nplacement: {nodePool: a100-spot}\n",
        "",
        [f"{SPEC}:11:23 warning spot-in-prod"],
    ),
    "can wait": (SAVED + "priority: low\n", "", []),
    "a dev cluster": (SAVED, "environment: dev\n", []),
    "on-demand": (SAVED.replace("spot", "on-demand"), "", []),
    "an error says it all": (
        "placement: {capacity: spot}\n",
        "",
        [f"{SPEC}:9:23 error spot-without-retry"],
    ),
}


@pytest.mark.parametrize("name", SPOT)
def test_spot_in_production_is_a_warning(name: str, root: Path) -> None:
    lines, cluster, expected = SPOT[name]
    assert told(root, lines, cluster) == expected


def weights(**stated: str) -> tuple[str, str]:
    """Return a change of the cluster's teams, each with what it states."""
    lines = "".join(f"  {team}: {{queue: training{more}}}\n" for team, more in stated.items())
    return "  nlp: {queue: training}\n", lines


QUOTA = ", quota: {a100: {gpus: 8}}"
WEIGHTS = {
    "beside 32, 32 and 16": (
        weights(a=", weight: 32", b=", weight: 32", c=", weight: 16", nlp=""),
        ["weight-omitted"],
    ),
    "nobody states one": (weights(a="", nlp=""), []),
    "everybody does": (weights(a=", weight: 32", nlp=", weight: 1"), []),
    "twice the others": (weights(a=", weight: 2", b="", nlp=""), []),
    "one of the others is 1": (weights(a=", weight: 32", b=", weight: 1", nlp=""), []),
    "a weight of none": (weights(a=", weight: 0", nlp=""), []),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_an_omitted_weight_next_to_large_ones_is_reported(name: str, root: Path) -> None:
    change, expected = WEIGHTS[name]
    for team in "abc":
        workspaces.write(
            root, {f"specs/{team}/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"}
        )
    found = [one.split()[-1] for one in told(root, "", change=change)]
    assert [rule for rule in found if rule.startswith("weight")] == expected


def test_weights_are_compared_only_within_a_cohort(root: Path) -> None:
    other = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
    workspaces.write(root, {"specs/a/team.yaml": other})
    apart = weights(a=", weight: 32, cohort: two" + QUOTA, nlp=", cohort: one" + QUOTA)
    found = told(root, "", "cohorts: {one: {}, two: {}}\n", change=apart)
    assert not [one for one in found if "weight-omitted" in one]
    together = weights(a=", weight: 32" + QUOTA, nlp=QUOTA)
    assert any("weight-omitted" in one for one in told(root, "", change=together))
    assert not any("weight-omitted" in one for one in told(root, "", "fairSharing: false\n", change=together))


FIPS = {
    "an image that is not built for it": ("fips: true\n", [f"{SPEC}:3:8 warning image-not-fips"]),
    "no FIPS mode": ("fips: false\n", []),
    "a pack says it": ("fips: true\npolicies: {packs: [images]}\n", [f"{SPEC}:3:8 error image-fips"]),
}


@pytest.mark.parametrize("name", FIPS)
def test_images_without_fips_on_nodes_in_fips_mode_are_reported(name: str, root: Path) -> None:
    cluster, expected = FIPS[name]
    found = [one for one in told(root, "", cluster) if "fips" in one]
    assert found == expected


def test_an_image_built_for_fips_has_no_finding(root: Path) -> None:
    catalog = workspaces.CATALOG.replace('version: "5.0.8"}\n', 'version: "5.0.8"}\n    fips: true\n')
    workspaces.write(root, {"images/catalog.yaml": catalog})
    assert told(root, "", "fips: true\n") == []


def test_only_one_pack_checks_fips_images_of_every_run() -> None:
    (pack,) = (
        name
        for name in policies.BUILTIN_PACKS
        for written in [plain.load((Path(str(policies.__file__)).parent / name / "pack.yaml").read_text())]
        if "image-fips" in written["policies"] and written["scope"] == "teams"
    )
    assert pack == FIPS_PACK


LOCK = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: add
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/securityContext/capabilities/add
      value: [IPC_LOCK]
"""  # noqa: E501  the path of a capability
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: capabilities-added
scope: {team: nlp}
reason: An older RDMA stack locks memory.
approver: ml-platform@example.com
expires: "2027-01-31"
"""


@pytest.mark.parametrize("files", [{}, {"policies/waivers/lock.yaml": WAIVER}], ids=["plain", "waived"])
def test_a_capability_that_the_namespace_refuses_stays_refused(files: dict[str, str], root: Path) -> None:
    # The page of capabilities-added promised a waiver for IPC_LOCK, but pod-security knows no waivers.
    workspaces.write(root, {**files, "overlays/lab/kustomization.yaml": LOCK})
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER + "policies: {packs: [baseline]}\n"})
    outcome = gangplan("validate", "-C", root, "--today", "2026-07-01")
    assert {one.rule for one in outcome.findings if one.severity == "error"} == {"pod-security"}
    helps = {one.help for one in outcome.findings if one.rule == "pod-security"}
    assert all("no waiver changes what a namespace enforces" in (help or "") for help in helps)
    page = load_shipped_rules()["capabilities-added"]
    assert "given by waiver" not in page.why
    assert "whatever is waived" in " ".join(page.why.split())


POOLS = {
    "no labels": ("", f"{CLUSTER}:7:3 warning admitted-elsewhere"),
    "labels of its own": (", labels: {pool: cpu}", f"{SPEC}:5:10 error over-quota"),
}


@pytest.mark.parametrize("name", POOLS)
def test_a_run_admitted_to_another_pool_than_planned_is_reported(name: str, root: Path) -> None:
    # 40 workers with 8 CPUs need more than the pool has: Kueue tries the next flavor, that of the GPU nodes.
    labels, expected = POOLS[name]
    spec = workspaces.SPEC.replace("workers: 4\ngpus: 2\n", "workers: 40\n")
    cluster = workspaces.CLUSTER.replace("memory: 240Gi}", f"memory: 240Gi{labels}}}")
    workspaces.write(root, {SPEC: spec, CLUSTER: cluster})
    found = [f"{one.place} {one.severity} {one.rule}" for one in gangplan("validate", "-C", root).findings]
    assert expected in found
    assert ("admitted-elsewhere" in str(found)) is (not labels)
