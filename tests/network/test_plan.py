"""On the command line: the table of connections, and patches of an overlay that break or open them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests.network.base import workspace
from tests.workspaces import gangplan

PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: Namespace}
  patch: |-
    - op: add
      path: /metadata/labels/site.example.com~1monitoring
      value: "true"
- target: %s
  patch: |-
    - op: %s
      path: %s
      value: %s
"""
ANYONE = "[{namespaceSelector: {}}]"
RUN_POLICY = "{kind: NetworkPolicy, name: wide-.*}"
PATCHES = {
    "opens a run": ((RUN_POLICY, "replace", "/spec/ingress/0/from", ANYONE), "network-open"),
    "opens other runs": ((RUN_POLICY, "replace", "/spec/podSelector", "{}"), "network-open"),
    "opens the runs of a team": (
        (RUN_POLICY, "replace", "/spec/podSelector", "{matchLabels: {gangplan.dev/team: nlp}}"),
        "network-open",
    ),
    "opens a namespace": (
        ("{kind: NetworkPolicy, name: allow-dns}", "replace", "/spec/egress/0/to", ANYONE),
        "network-open",
    ),
    "closes a run": (
        (RUN_POLICY, "replace", "/spec/podSelector/matchLabels/jobset.sigs.k8s.io~1jobset-name", "other"),
        "network-unreachable",
    ),
    "moves the SSH port": (
        ("{kind: NetworkPolicy, name: tight-.*-node-ssh}", "replace", "/spec/ingress/0/ports/0/port", "22"),
        "network-unreachable",
    ),
}


def patched(root: Path, target: str, op: str, path: str, value: str) -> Path:
    """Write the workspace with one more patch on its cluster."""
    return workspace(root, **{"overlays/lab/kustomization.yaml": PATCH % (target, op, path, value)})


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_that_breaks_or_opens_connections_is_reported_once(
    name: str, tmp_path: Path, builder: str
) -> None:
    patch, rule = PATCHES[name]
    root = patched(tmp_path, *patch)

    outcome = gangplan("validate", "-C", root)

    assert outcome.code == Exit.FINDINGS, outcome.err
    errors = outcome.errors()
    assert {found for _, found in errors} == {rule}
    # Reported once, however many runs it affects: what it opens at its value, what it closes at the patch.
    assert len(errors) == 1
    assert re.fullmatch(r"overlays/lab/kustomization.yaml:1[0-3]:[0-9]+", errors[0][0])
    assert "zq7xk0vj" not in outcome.err


def test_a_patch_of_labels_alone_is_not_reported(tmp_path: Path, builder: str) -> None:
    root = patched(tmp_path, RUN_POLICY, "add", "/metadata/labels/site.example.com~1zone", '"a"')
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    told = [(shown.rule, shown.place) for shown in outcome.findings if shown.rule != "workers-one"]
    assert told == [("rdma-bypasses-policy", "specs/nlp/fabric.yaml:9:38")]


def table(root: Path, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each run, by spec."""
    outcome = gangplan("plan", "--network", "--format", "json", "-C", root, *arguments)
    assert outcome.code == Exit.CLEAN, outcome.err
    document = json.loads(outcome.out)
    assert document["version"] == 1
    return {Path(run["spec"]).stem: run["flows"] for run in document["runs"]}


def rows(flows: list[dict[str, Any]], source: str, target: str) -> dict[str, str]:
    """Return the ports by verdict, from a source to a target."""
    return {row["verdict"]: row["ports"] for row in flows if (row["from"], row["to"]) == (source, target)}


def test_the_table_has_the_ports_of_every_connection(tmp_path: Path) -> None:
    tables = table(workspace(tmp_path))
    assert set(tables) == {"wide", "tight", "sealed", "torch", "lone", "fabric"}
    tight = tables["tight"]
    other = "TCP 1-1023; all of UDP; all of SCTP"
    assert rows(tight, "launcher", "workers") == {"allowed": "TCP 1024-65535", "denied": other}
    among = {"allowed": "TCP 1024-2221, 2223-65535", "denied": other.replace("1023", "1023, 2222")}
    assert rows(tight, "workers", "workers") == rows(tight, "workers", "launcher") == among
    assert rows(tables["wide"], "workers", "workers") == {"allowed": "every port"}
    assert rows(tables["lone"], "workers", "workers") == {}  # one pod
    assert rows(tables["torch"], "workers", "workers")["allowed"] == "TCP 1024-65535"
    for flows in tables.values():
        assert rows(flows, "all pods", "DNS") == {"allowed": "TCP 53; UDP 53"}
        for outsider in ("other pods of namespace 'nlp'", "pods of other namespaces", "any address"):
            closed = [row for row in flows if row["from"] == outsider]
            assert [(row["to"], row["ports"], row["verdict"]) for row in closed] == [
                ("all pods", "every port", "denied")
            ]
            assert "default-deny" in closed[0]["takenBy"]
    assert rows(tables["wide"], "all pods", "s3 (10.40.8.0/24)") == {"allowed": "TCP 443"}
    assert rows(tables["sealed"], "all pods", "s3 (10.40.8.0/24)") == {}
    assert rows(tables["fabric"], "workers", "device rdma/ib") == {"unseen": "all"}


def test_the_table_names_the_policies_that_allow(tmp_path: Path) -> None:
    flows = table(workspace(tmp_path), "specs/nlp/tight.yaml")["tight"]
    (launch,) = (row for row in flows if row["from"] == "launcher" and row["verdict"] == "allowed")
    names = [name.rpartition("tight-")[2][8:] for name in (*launch["sentBy"], *launch["takenBy"])]
    assert names == ["", "-launcher-ssh", "", "-node-ssh"]


def test_the_table_as_text_has_names_and_verdicts(tmp_path: Path) -> None:
    outcome = gangplan("plan", "--network", "-C", workspace(tmp_path), "specs/nlp/tight.yaml")
    head, columns, *lines = outcome.out.splitlines()
    assert head.startswith("specs/nlp/tight.yaml on lab: nlp/tight-")
    assert columns.split() == ["from", "to", "ports", "verdict", "by"]
    shown = [" ".join(line.split()) for line in lines]
    assert "launcher workers TCP 1024-65535 allowed out: *, *-launcher-ssh; in: *, *-node-ssh" in shown
    assert "any address all pods every port denied in: default-deny, *" in shown
    assert "zq7xk0vj" not in outcome.out


def test_an_open_policy_shows_in_the_table(tmp_path: Path, builder: str) -> None:
    patch = PATCHES["opens a run"][0]
    outcome = gangplan(
        "plan", "--network", "--format", "json", "-C", patched(tmp_path, *patch), "specs/nlp/wide.yaml"
    )
    assert outcome.code == Exit.FINDINGS
    flows = json.loads(outcome.out)["runs"][0]["flows"]
    assert rows(flows, "pods of other namespaces", "all pods") == {"allowed": "every port"}
    assert rows(flows, "other pods of namespace 'nlp'", "all pods") == {"allowed": "every port"}
    assert rows(flows, "any address", "all pods") == {"denied": "every port"}
