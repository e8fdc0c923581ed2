"""Findings of policies are at the wrong value: in the spec, the team's or cluster's file, or a patch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.rules.model import Severity
from tests.workspaces import sample

CPU, NLP = "specs/research/quickstart-cpu.yaml", "specs/nlp/production-retrain.yaml"
TUMOR = "specs/radiology/tumor-segmentation-3dunet.yaml"
CLOUD, HALL = "overlays/us-cloud/cluster.yaml", "overlays/onprem-a100/cluster.yaml"
PATCHES = "overlays/us-cloud/kustomization.yaml"
PACKS = "  packs: [baseline, restricted, images, labels, lifecycle, priorities, network, data]\n"


@dataclass(frozen=True)
class Case:
    """A sound workspace made wrong, and the file and text where the rule must find it.

    `edits` are (file, old, new); an empty old text means the end of the file, an empty new one removes the
    old.
    """

    rule: str
    file: str
    text: str
    edits: tuple[tuple[str, str, str], ...]
    spec: str = ""  # the only spec that is checked


def params(text: str) -> tuple[str, str, str]:
    """Return an edit that sets parameters of policies in the cloud cluster's file."""
    return CLOUD, PACKS, f"{PACKS}  params: {{{text}}}\n"


def patch(text: str, kind: str = "TrainJob", name: str = "quickstart-cpu-.*") -> tuple[str, str, str]:
    """Return an edit that adds a patch of the cloud cluster."""
    return PATCHES, "", f"- target: {{kind: {kind}, name: {name}}}\n  patch: |-\n    - {text}\n"


LABEL = "{op: remove, path: /metadata/labels/gangplan.dev~1cost-centre}"
CASES = {
    "cost-centre": Case(
        "cost-centre",
        "specs/research/team.yaml",
        "apiVersion",
        (("specs/research/team.yaml", "costCentre: cc-9000\n", ""),),
    ),
    "cost-centre of another form": Case(
        "cost-centre",
        "specs/research/team.yaml",
        "cc-9000",
        (params("cost-centre: {pattern: '^cc-[1-8]'}"),),
    ),
    "contact": Case(
        "team-contact",
        "specs/research/team.yaml",
        "apiVersion",
        (("specs/research/team.yaml", "contact: research-compute@example.com\n", ""),),
    ),
    "deadline": Case(
        "run-deadline", CPU, "4h", (params("run-deadline: {seconds: 3600}"), (CPU, "", "timeout: 4h\n")), CPU
    ),
    "deadline by a patch": Case(
        "run-deadline",
        PATCHES,
        "8640000",
        (patch("{op: replace, path: /spec/activeDeadlineSeconds, value: 8640000}"),),
        CPU,
    ),
    "label by a patch": Case("owner-labels", PATCHES, "/metadata/labels/", (patch(LABEL),), CPU),
    "namespace label by a patch": Case(
        "cost-centre", PATCHES, "/metadata/labels/", (patch(LABEL, "Namespace", "research"),)
    ),
    "restarts by a patch": Case(
        "run-restarts",
        PATCHES,
        "9",
        (
            patch(
                "{op: add, path: /spec/template/spec/failurePolicy, value: {maxRestarts: 9}}",
                "TrainingRuntime",
            ),
        ),
        CPU,
    ),
    "restarts": Case(
        "run-restarts", CPU, "2", (params("run-restarts: {most: 1}"), (CPU, "", "retries: 2\n")), CPU
    ),
    "posture": Case(
        "network-posture", TUMOR, "default", ((TUMOR, "", "network: {posture: default}\n"),), TUMOR
    ),
    "posture of the team": Case(
        "network-posture",
        "specs/radiology/team.yaml",
        "default",
        (("specs/radiology/team.yaml", "posture: isolated", "posture: default"),),
        TUMOR,
    ),
    "a claim": Case(
        "claims-encrypted",
        "specs/nlp/team.yaml",
        "{accessModes",
        ((NLP, "", "compliance: [gdpr]\nresidency: eu\n"),),
        NLP,
    ),
    "data without an end": Case(
        "data-retained",
        NLP,
        "checkpoints}",
        ((NLP, "", "compliance: [gdpr]\nresidency: eu\n"),),
        NLP,
    ),
    "a named claim": Case(
        "claims-encrypted",
        "specs/radiology/team.yaml",
        "mri-dataset-encrypted",
        (("specs/radiology/team.yaml", ", encrypted: true", ""),),
        TUMOR,
    ),
    "residency": Case("data-residency", NLP, "us", ((NLP, "", "residency: us\n"),), NLP),
    "location": Case("on-premises", HALL, "cloud", ((HALL, "location: on-prem", "location: cloud"),)),
    "audit": Case("audit-retention", HALL, "7d", ((HALL, "audit: 90d", "audit: 7d"),)),
    "no audit": Case("audit-retention", HALL, "apiVersion", ((HALL, "retention: {audit: 90d}\n", ""),)),
    "certified": Case("cluster-certified", HALL, "[iso", ((HALL, "[hipaa, iso-27001]", "[iso-27001]"),)),
    "audit by a parameter": Case(
        "audit-retention",
        HALL,
        "90d",
        ((HALL, "gdpr]\n", "gdpr]\n  params: {audit-retention: {least: 400}}\n"),),
    ),
    "logs as they are printed": Case(
        "logs-unredacted", HALL, "false", ((HALL, "logsRedacted: true", "logsRedacted: false"),)
    ),
    "open transport": Case("transport-open", HALL, "apiVersion", ((HALL, "networkEncrypted: true\n", ""),)),
    "networks that are not encrypted": Case(
        "transport-open", HALL, "false", ((HALL, "networkEncrypted: true", "networkEncrypted: false"),)
    ),
    "a rented pool": Case(
        "on-premises",
        TUMOR,
        "a100-40gb",
        (
            (HALL, "a100-40gb:\n", "a100-40gb:\n    location: cloud\n"),
            (TUMOR, "", "placement: {nodePool: a100-40gb}\n"),
        ),
        TUMOR,
    ),
    "internet": Case(
        "network-internet",
        CPU,
        "internet",
        (params("network-internet: {allowed: false}"), (CPU, "", "network: {egress: [internet]}\n")),
        CPU,
    ),
    "internet below an isolated floor": Case(
        "network-posture",
        CPU,
        "internet",
        (
            params("network-posture: {floor: isolated}"),
            (CPU, "", "network: {posture: restricted, egress: [internet]}\n"),
        ),
        CPU,
    ),
    "internet by a patch": Case(
        "network-internet",
        PATCHES,
        "0.0.0.0/0",
        (
            params("network-internet: {allowed: false}"),
            patch(
                "{op: add, path: /spec/egress/-, value: {to: [{ipBlock: {cidr: 0.0.0.0/0}}]}}",
                "NetworkPolicy",
            ),
        ),
        CPU,
    ),
}


def told(tmp_path: Path, case: Case) -> tuple[Path, list[Finding]]:
    """Return the workspace of a case, and the warnings and errors of its rule."""
    root = sample(tmp_path, "specs", "overlays", "images")
    for file, old, new in case.edits:
        text = (root / file).read_text(encoding="utf-8")
        assert old in text, (file, old)
        (root / file).write_text(text.replace(old, new) if old else f"{text}{new}", encoding="utf-8")
    found = preview_render(
        Request(root, specs=(str(root / case.spec),) if case.spec else (), engine="serial")
    )
    return root, [one for one in found.findings if one.rule == case.rule and one.severity > Severity.NOTE]


def at(root: Path, finding: Finding) -> str:
    """Return the text from the reported place on."""
    assert finding.where.line, finding
    assert finding.where.column
    line = (root / finding.where.file).read_text(encoding="utf-8").splitlines()[finding.where.line - 1]
    return line[finding.where.column - 1 :].lstrip("'\"")


@pytest.mark.parametrize("name", CASES)
def test_a_policy_is_reported_at_the_value(name: str, tmp_path: Path) -> None:
    """Each finding is in the right file, at the value, and reported once."""
    case = CASES[name]
    root, found = told(tmp_path, case)
    assert [(one.where.file, at(root, one)[: len(case.text)]) for one in found] == [(case.file, case.text)], (
        found
    )


def test_a_finding_about_a_cluster_is_reported_once(tmp_path: Path) -> None:
    """Two runs of a regime use one cluster in the cloud: only the first is reported."""
    root = sample(tmp_path, "specs", "overlays", "images")
    (root / TUMOR.replace(".yaml", "-2.yaml")).write_bytes((root / TUMOR).read_bytes())
    text = (root / HALL).read_text(encoding="utf-8").replace("location: on-prem", "location: cloud")
    (root / HALL).write_text(text, encoding="utf-8")
    found = [
        one for one in preview_render(Request(root, engine="serial")).findings if one.rule == "on-premises"
    ]
    assert [one.object_ref for one in found] == ["TrainingRuntime/radiology/tumor-segmentation-3dunet"]
