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


def told(
    root: Path,
    zone: str,
    classes: str = IN_A,
    claim: str = "size: 1Gi",
    cpu: str = "",
    lines: str = "data: {filings: /data}\n",
    image: str = "openmpi",
) -> list[str]:
    """Return the findings of a run that mounts a claim; its workers are in a zone, other pods in `cpu`."""
    label = ", topology.kubernetes.io/zone: %s"
    cluster = workspaces.CLUSTER + classes
    if zone:
        cluster = cluster.replace("labels: {pool: a100}", f"labels: {{pool: a100{label % zone}}}")
    if cpu:
        cluster = cluster.replace("memory: 240Gi}", f"memory: 240Gi, labels: {{pool: cpu{label % cpu}}}}}")
    more = f", {claim}" if claim else ""
    team = workspaces.TEAM.replace("[ReadWriteMany]}", f"[ReadWriteMany]{more}}}", 1)
    spec = workspaces.SPEC.replace("openmpi", image) + lines
    write(root, {SPEC: spec, "specs/nlp/team.yaml": team, "overlays/lab/cluster.yaml": cluster})
    return [f"{one.place} {one.severity} {one.rule}" for one in gangplan("validate", "-C", root).findings]


WRONG = [f"{SPEC}:9:17 error claim-zone"]
VOLUME = IN_A + "volumes: {work: {storageClass: disk, accessMode: ReadWriteMany, size: 1Gi}}\n"
ROLE = "data: {filings: /data}\nframework: tensorflow\nroles: {ps: {workers: 1, cpu: 2}}\n"
STEP = "data: {filings: /data}\nsteps: [{command: [ls], cpu: 1}]\n"
CASES = {
    "another zone": ({"zone": "eu-1b"}, WRONG),
    "the same zone": ({"zone": "eu-1a"}, []),
    "a pool that states none": ({"zone": ""}, []),
    "a class of all zones": ({"zone": "eu-1b", "claim": "size: 1Gi, storageClass: all"}, []),
    "a class that states none": ({"zone": "eu-1b", "classes": CLASSES % ""}, []),
    "a claim that exists already": ({"zone": "eu-1b", "claim": ""}, []),
    "the launcher in another zone": ({"zone": "eu-1a", "cpu": "eu-1b"}, WRONG),
    "a role in another zone": ({"zone": "eu-1a", "cpu": "eu-1b", "image": "pytorch", "lines": ROLE}, WRONG),
    "a role in the zone": ({"zone": "eu-1a", "cpu": "eu-1a", "image": "pytorch", "lines": ROLE}, []),
    "a step in another zone": ({"zone": "eu-1a", "cpu": "eu-1b", "image": "pytorch", "lines": STEP}, WRONG),
    "a step in the zone": ({"zone": "eu-1a", "cpu": "eu-1a", "image": "pytorch", "lines": STEP}, []),
    "a volume of the pod's own": (
        {"zone": "eu-1b", "classes": VOLUME, "lines": "volumes: {work: /w}\n"},
        WRONG,
    ),
    "a volume of its own in the zone": (
        {"zone": "eu-1a", "classes": VOLUME, "lines": "volumes: {work: /w}\n"},
        [],
    ),
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


def test_the_message_names_the_pods(root: Path) -> None:
    told(root, "eu-1a", cpu="eu-1b", image="pytorch", lines=STEP)
    (found,) = gangplan("validate", "-C", root).findings
    assert "step 'step-1' runs in pool 'cpu', in zone eu-1b" in found.message
