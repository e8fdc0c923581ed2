"""Pod Security admission: a case for each check and version of it, and all fixtures of the module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.validate.apiserver.pod_security import (
    POD_SECURITY_CHECKS,
    find_pod_security_level_of_namespace,
    find_pod_security_violations,
)
from tests import plain
from tests.sources import go_module

MODULE = "k8s.io/pod-security-admission"
VERSIONS = ("0.33.13", "0.34.4")
REPLACED = {check.replaces.lower(): check.name.lower() for check in POD_SECURITY_CHECKS if check.replaces}


def refused(pod: dict[str, Any], level: str, minor: int, server: int = 37) -> set[str]:
    return {name for name, _, _ in find_pod_security_violations(pod, level == "restricted", minor, server)}


@pytest.mark.e2e
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_every_fixture_of_the_module_has_its_verdict(level: str, version: str) -> None:
    """A fixture is refused by the check that it is named after, or it passes."""
    server = int(version.split(".")[1])
    folder = go_module(MODULE, version) / "test" / "testdata" / level
    files = sorted(folder.glob("v1.*/*/*.yaml"))
    assert len(files) > 1000
    wrong = [words for file in files if (words := _differs(file, level, server))]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(files)}", *wrong[:20]])


def _differs(file: Path, level: str, server: int) -> str:
    minor, verdict = int(file.parent.parent.name.removeprefix("v1.")), file.parent.name
    pod = plain.load(file.read_text(encoding="utf-8"))
    names = {name.lower() for name in refused(pod, level, minor, server)}
    asked = file.stem.rstrip("0123456789")
    if verdict == "pass":
        return f"{file.parent}/{file.name}: refused by {names}" if names else ""
    return "" if names & {asked, REPLACED.get(asked)} else f"{file.parent}/{file.name}: refused by {names}"


CASES = plain.load((Path(__file__).parent / "pod_security.yaml").read_text(encoding="utf-8"))


def _pod(case: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that `restricted` admits, with the case's changes."""
    strict = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        **(case.get("context") or {}),
    }
    container = {"name": "main", "image": "example.com/a:1", "securityContext": strict}
    spec = {
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **(case.get("pod context") or {}),
        },
        "containers": [{**container, **(case.get("container") or {})}],
        **(case.get("pod") or {}),
    }
    return {"metadata": {"annotations": case.get("annotations")}, "spec": spec}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_each_check_refuses_its_case(case: dict[str, Any]) -> None:
    """`baseline` and `restricted` list the refusing checks by minor version of a level; [] means none."""
    assert refused(_pod({}), "restricted", 37) == set()
    for level in ("baseline", "restricted"):
        for minor, names in case[level].items():
            assert refused(_pod(case), level, minor) == set(names), (level, minor)


def test_every_check_has_a_refused_case_and_a_near_miss() -> None:
    said = {
        name
        for case in CASES
        for level in ("baseline", "restricted")
        for found in case[level].values()
        for name in found
    }
    passed = {
        str(case["check"])
        for case in CASES
        if any(not found for level in ("baseline", "restricted") for found in case[level].values())
    }
    assert said == {check.name for check in POD_SECURITY_CHECKS}
    assert passed == {check.name for check in POD_SECURITY_CHECKS}


@pytest.mark.parametrize(
    ("labels", "server", "expected"),
    [
        ({}, 34, ("privileged", 34)),
        ({"enforce": "baseline"}, 34, ("baseline", 34)),
        ({"enforce": "restricted", "enforce-version": "v1.30"}, 34, ("restricted", 30)),
        ({"enforce": "restricted", "enforce-version": "v1.36"}, 34, ("restricted", 34)),
        ({"enforce": "restricted", "enforce-version": "latest"}, 33, ("restricted", 33)),
        ({"enforce": "restricted", "enforce-version": "1.30"}, 33, ("restricted", 33)),
        ({"enforce": "strict"}, 33, ("restricted", 33)),
    ],
)
def test_labels_of_a_namespace_set_level_and_version(
    labels: dict[str, str], server: int, expected: tuple[str, int]
) -> None:
    full = {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}
    assert find_pod_security_level_of_namespace(full, server) == expected


def test_the_server_version_decides_about_image_volumes_at_any_level() -> None:
    pod = _pod({"pod": {"volumes": [{"name": "model", "image": {"reference": "example.com/model:1"}}]}})
    assert refused(pod, "restricted", 30, server=32) == {"restrictedVolumes"}
    assert refused(pod, "restricted", 30, server=33) == set()
