"""Disks in one zone and pools in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan, write

SPEC = "specs/nlp/filings.yaml"
CLASSES = """\
storageClasses:
  disk: {accessModes: [ReadWriteMany], default: true%s}
  all: {accessModes: [ReadWriteMany]}
"""
IN_A = CLASSES % ", zone: eu-1a"


def told(root: Path, zone: str, classes: str = IN_A, claim: str = "size: 1Gi", cpu: str = "") -> list[str]:
    """Return the findings of a run that mounts a claim; its workers are in a zone, its launcher in `cpu`."""
    label = ", topology.kubernetes.io/zone: %s"
    cluster = workspaces.CLUSTER + classes
    if zone:
        cluster = cluster.replace("labels: {pool: a100}", f"labels: {{pool: a100{label % zone}}}")
    if cpu:
        cluster = cluster.replace("memory: 240Gi}", f"memory: 240Gi, labels: {{pool: cpu{label % cpu}}}}}")
    more = f", {claim}" if claim else ""
    team = workspaces.TEAM.replace("[ReadWriteMany]}", f"[ReadWriteMany]{more}}}", 1)
    spec = workspaces.SPEC + "data: {filings: /data}\n"
    write(root, {SPEC: spec, "specs/nlp/team.yaml": team, "overlays/lab/cluster.yaml": cluster})
    return [f"{one.place} {one.severity} {one.rule}" for one in gangplan("validate", "-C", root).findings]


WRONG = [f"{SPEC}:9:17 error claim-zone"]
CASES = {
    "another zone": ({"zone": "eu-1b"}, WRONG),
    "the same zone": ({"zone": "eu-1a"}, []),
    "a pool that states none": ({"zone": ""}, []),
    "a class of all zones": ({"zone": "eu-1b", "claim": "size: 1Gi, storageClass: all"}, []),
    "a class that states none": ({"zone": "eu-1b", "classes": CLASSES % ""}, []),
    "a claim that exists already": ({"zone": "eu-1b", "claim": ""}, []),
    "the launcher in another zone": ({"zone": "eu-1a", "cpu": "eu-1b"}, WRONG),
    "both in the zone": ({"zone": "eu-1a", "cpu": "eu-1a"}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_claims_in_another_zone_are_refused(name: str, root: Path) -> None:
    given, expected = CASES[name]
    assert told(root, **given) == expected  # type: ignore[arg-type]


def test_the_help_names_a_pool_of_the_zone(root: Path) -> None:
    told(root, "eu-1b", cpu="eu-1a")
    (found,) = gangplan("validate", "-C", root).findings
    assert found.message == (
        "claim 'filings' uses storage class 'disk', whose volumes are in zone eu-1a;"
        " workers run in pool 'a100', in zone eu-1b"
    )
    assert "use a claim of a storage class that pool 'a100' can mount" in (found.help or "")
