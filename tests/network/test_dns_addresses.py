"""DNS that is not a pod: NodeLocal DNSCache answers from the node's own network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan, rendered, write

LOCAL = "169.254.20.10/32"
DNS = "dns: {namespace: kube-system, labels: {k8s-app: kube-dns}, ports: [53]%s}\n"
POSTURES = ("default", "restricted", "isolated")


def policies(root: Path, posture: str, dns: str) -> dict[str, Any]:
    """Return the NetworkPolicies of the namespace and of its run by name, without the run's hash."""
    spec = workspaces.SPEC + f"network: {{posture: {posture}}}\n"
    write(root, {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": workspaces.CLUSTER + dns})
    outcome = gangplan("validate", "-C", root)
    assert not outcome.findings, outcome.err
    assert gangplan("render", "-C", root).code == 0
    found = {}
    for text in rendered(root).values():
        for body in load_objects(text):
            if body["kind"] == "NetworkPolicy":
                name = body["metadata"]["name"]
                found[name if "-" in name and not name.startswith("filings") else "run"] = body["spec"]
    return found


def opened(policy: Any) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the address rules of a policy."""
    return [
        (peer["ipBlock"]["cidr"], [(port["protocol"], port["port"]) for port in rule["ports"]])
        for rule in policy["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
    ]


@pytest.mark.parametrize("posture", POSTURES)
def test_a_dns_address_is_open_to_the_namespace(posture: str, root: Path) -> None:
    found = policies(root, posture, DNS % f", addresses: [{LOCAL}]")
    assert opened(found["allow-dns"]) == [(LOCAL, [("UDP", 53), ("TCP", 53)])]


@pytest.mark.parametrize("posture", POSTURES)
def test_without_a_dns_address_no_address_is_open(posture: str, root: Path) -> None:
    assert opened(policies(root, posture, DNS % "")["allow-dns"]) == []


def test_a_patch_that_closes_a_dns_address_is_reported(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + DNS % f", addresses: [{LOCAL}]"})
    patch = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: NetworkPolicy, name: allow-dns}
  patch: |-
    - {op: remove, path: /spec/egress/1}
"""
    write(root, {"overlays/lab/kustomization.yaml": patch})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "network-unreachable"]
    assert found
    assert "169.254.20.10/32 on TCP 53; UDP 53 (DNS)" in found[0].message


def test_a_dns_address_is_a_row_of_the_plan(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + DNS % f", addresses: [{LOCAL}]"})
    assert f"DNS ({LOCAL})" in gangplan("plan", "--network", "-C", root).out


def test_a_dns_address_must_be_a_range(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + DNS % ", addresses: [node-local]"})
    assert [one.rule for one in gangplan("validate", "-C", root).findings] == ["spec-value"]
