"""Pod Security levels that a cluster file states for a team: rendered, shown, expired, needed by no run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import Shown, gangplan

CLUSTER = "overlays/lab/cluster.yaml"
LEVEL = "{{level: {0}, reason: The fabric's daemon needs the node., until: '{1}'}}"
TODAY = ("--today", "2026-11-01")
POD = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
HOST_PATH = f"{{op: add, path: {POD}/volumes/-, value: {{name: host, hostPath: {{path: /var/log}}}}}}"
AS_ROOT = f"{{op: add, path: {POD}/containers/0/securityContext/runAsUser, value: 0}}"


def raised(root: Path, level: str = "privileged", until: str = "2027-01-31") -> Path:
    """Create the small workspace whose team has a level."""
    team = f"nlp: {{queue: training, podSecurity: {LEVEL.format(level, until)}}}"
    text = workspaces.CLUSTER.replace("nlp: {queue: training}", team)
    assert team in text
    return workspaces.write(root, {CLUSTER: text})


def patched(root: Path, patch: str, kind: str = "TrainingRuntime") -> None:
    text = workspaces.KUSTOMIZATION.split("- target")[0]
    text += f"- target: {{kind: {kind}}}\n  patch: |-\n    - {patch}\n"
    workspaces.write(root, {"overlays/lab/kustomization.yaml": text})


def told(root: Path, *flags: str) -> list[Shown]:
    """Return the findings about levels and about what pods use of them."""
    words = ("pod-security", "host-access", "rights-too-wide")
    return [
        one for one in gangplan("validate", "-C", root, *TODAY, *flags).findings if one.rule.startswith(words)
    ]


def namespace(root: Path) -> dict[str, dict[str, str]]:
    text = workspaces.rendered(root)["lab/tenants/nlp/tenant.yaml"].decode()
    found = next(one for one in yaml.safe_load_all(text) if one["kind"] == "Namespace")
    metadata: dict[str, dict[str, str]] = found["metadata"]
    return metadata


@pytest.mark.parametrize("level", ["baseline", "privileged"])
def test_the_namespace_enforces_the_level_and_warns_about_restricted(level: str, root: Path) -> None:
    assert gangplan("render", "-C", raised(root, level)).code == Exit.CLEAN
    metadata = namespace(root)
    modes = {
        mode: metadata["labels"][f"pod-security.kubernetes.io/{mode}"]
        for mode in ("enforce", "audit", "warn")
    }
    assert modes == {"enforce": level, "audit": "restricted", "warn": "restricted"}
    assert (
        metadata["annotations"]["gangplan.dev/pod-security-reason"] == "The fabric's daemon needs the node."
    )
    assert metadata["annotations"]["gangplan.dev/pod-security-until"] == "2027-01-31"


def test_without_a_level_the_namespace_is_restricted(root: Path) -> None:
    gangplan("render", "-C", root)
    metadata = namespace(root)
    assert metadata["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert not [key for key in metadata["annotations"] if "pod-security" in key]


@pytest.mark.parametrize(("level", "severity"), [("baseline", "note"), ("privileged", "warning")])
def test_a_level_is_shown_with_its_reason(level: str, severity: str, root: Path) -> None:
    found = told(raised(root, level))
    assert {(one.rule, one.severity) for one in found} == {
        ("pod-security-raised", severity),
        ("pod-security-unneeded", "note"),
    }
    assert any("until 2027-01-31: The fabric's daemon needs the node" in one.message for one in found)


@pytest.mark.parametrize(("until", "is_over"), [("2026-10-31", True), ("2026-11-01", False)])
def test_a_level_is_valid_through_its_last_day(until: str, is_over: bool, root: Path) -> None:
    outcome = gangplan("validate", "-C", raised(root, until=until), *TODAY)
    assert [rule for _, rule in outcome.errors()] == (["pod-security-expired"] if is_over else [])
    assert outcome.code == (Exit.FINDINGS if is_over else Exit.CLEAN)


@pytest.mark.parametrize(
    ("patch", "level", "expected"),
    [
        # A privileged namespace admits the folder, and a warning says that no fabric asked for it.
        (HOST_PATH, "privileged", [("warning", "host-access"), ("warning", "pod-security-raised")]),
        # Like restricted, baseline refuses folders of the node.
        (
            HOST_PATH,
            "baseline",
            [("error", "pod-security"), ("note", "pod-security-raised")],
        ),
    ],
)
def test_a_patch_that_uses_a_level_is_reported(
    patch: str, level: str, expected: list[tuple[str, str]], root: Path
) -> None:
    patched(raised(root, level), patch)
    assert sorted((one.severity, one.rule) for one in told(root)) == expected


def test_a_run_as_root_needs_no_more_than_baseline(root: Path) -> None:
    patched(raised(root, "baseline"), AS_ROOT)
    (said,) = [one.message for one in told(root) if one.rule == "host-access"]
    assert "container 'node' runs as root, which no fabric declares; namespace 'nlp' admits it" in said


def test_a_part_of_the_specs_does_not_decide_what_is_needed(root: Path) -> None:
    files = [one.rule for one in told(raised(root), str(root / "specs/nlp/filings.yaml"))]
    assert "pod-security-unneeded" not in files


@pytest.mark.parametrize(
    ("label", "refused"), [("privileged", True), ("baseline", False), ("restricted", False)]
)
def test_a_patch_cannot_raise_a_level_further_than_stated(label: str, refused: bool, root: Path) -> None:
    key = "/metadata/labels/pod-security.kubernetes.io~1enforce"
    patched(raised(root, "baseline"), f"{{op: replace, path: {key}, value: {label}}}", "Namespace")
    assert ("rights-too-wide" in [one.rule for one in told(root)]) == refused


@pytest.mark.parametrize("reason", ["RDMA", "          ", "\u200b" * 12])
def test_a_reason_without_content_is_refused(reason: str, root: Path) -> None:
    raised(root)
    text = (root / CLUSTER).read_text().replace("The fabric's daemon needs the node.", f'"{reason}"')
    outcome = gangplan("validate", "-C", workspaces.write(root, {CLUSTER: text}))
    assert outcome.code == Exit.INPUT
    assert "is not a reason" in outcome.err


def test_why_leads_to_the_level(root: Path) -> None:
    gangplan("render", "-C", raised(root))
    file = "rendered/lab/tenants/nlp/tenant.yaml"
    lines = (root / file).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "security.kubernetes.io/enforce:" in text)
    outcome = gangplan("why", f"{root / file}:{line}", "-C", root)
    assert "teams.nlp.podSecurity.level" in outcome.out
