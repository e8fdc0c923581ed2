"""Workers in their node's network: the launcher's policies open exactly the nodes' addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import plain
from tests.promise.test_fabrics import told
from tests.workspaces import Shown

MAIN = '{kind: NetworkPolicy, name: "pretrain-[0-9a-z]+"}'
NODES = "10.0.16.0/20"


def patched(root: Path, patch: str) -> list[Shown]:
    return told(root, "host-network", plain.load(f"{{{patch}}}"), MAIN)


@pytest.mark.parametrize(
    ("patch", "rule", "words"),
    [
        (
            "op: remove, path: /spec/ingress/1",
            "network-unreachable",
            f"launcher cannot be reached from {NODES}",
        ),
        ("op: remove, path: /spec/egress/1", "network-unreachable", f"launcher cannot reach {NODES}"),
        (
            "op: replace, path: /spec/egress/1/to/0/ipBlock/cidr, value: 10.0.16.0/21",
            "network-unreachable",
            "launcher cannot reach 10.0.24.0/21",
        ),
        (
            "op: replace, path: /spec/egress/1/to/0/ipBlock/cidr, value: 10.0.0.0/16",
            "network-open",
            "launcher can connect to 10.0.",
        ),
        (
            "op: add, path: /spec/ingress/1/ports/-, value: {protocol: TCP, port: 2222}",
            "network-open",
            f"launcher accept connections from {NODES} on TCP 2222",
        ),
        # A repetition or a part of an open range opens nothing more.
        ("op: add, path: /spec/egress/1/to/-, value: {ipBlock: {cidr: 10.0.17.0/24}}", "", ""),
        ("op: add, path: /spec/egress/1/ports/-, value: {protocol: TCP, port: 2222}", "", ""),
    ],
)
def test_patches_that_close_or_open_node_addresses_are_reported(
    patch: str, rule: str, words: str, tmp_path: Path, builder: str
) -> None:
    found = [one for one in patched(tmp_path, patch) if one.rule.startswith("network-")]
    assert [one.rule for one in found] == ([rule] if rule else []), found
    assert all(words in one.message for one in found), found
