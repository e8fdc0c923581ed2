"""NetworkPolicy packet by packet: from one concrete pod or address to another, on one port.

Written only from the text of networking/v1 (Kubernetes v1.34, types.go): plain dictionaries, no sets of
ports, no intervals. It shares nothing with gangplan.validate.network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Pod:
    """A pod: its namespace with labels, its own labels, its named ports (protocol, name, number)."""

    namespace: str
    home: Mapping[str, str]
    labels: Mapping[str, str]
    ports: Sequence[tuple[str, str, int]] = field(default_factory=tuple)


Peer = Pod | str  # a pod, or an address outside the cluster


def allowed(policies: list[Body], source: Peer, target: Peer, protocol: str, port: int) -> bool:
    """Return whether a connection is allowed in both directions."""
    out = isinstance(source, str) or one_way(policies, "Egress", source, target, target, protocol, port)
    into = isinstance(target, str) or one_way(policies, "Ingress", target, source, target, protocol, port)
    return out and into


def one_way(
    policies: list[Body], kind: str, subject: Pod, other: Peer, target: Peer, protocol: str, port: int
) -> bool:
    """Return whether the policies of one pod allow a connection in one direction."""
    selecting = [
        body
        for body in policies
        if body["metadata"]["namespace"] == subject.namespace
        and kind in policy_types(body["spec"])
        and matches(body["spec"].get("podSelector"), subject.labels)
    ]
    if not selecting:
        return True
    section, side = ("ingress", "from") if kind == "Ingress" else ("egress", "to")
    for body in selecting:
        for rule in body["spec"].get(section) or []:
            peers = rule.get(side) or []
            fits = not peers or any(peer_fits(peer, subject.namespace, other) for peer in peers)
            ports = rule.get("ports") or []
            if fits and (not ports or any(port_fits(one, target, protocol, port) for one in ports)):
                return True
    return False


def policy_types(spec: Body) -> list[str]:
    """Return the policy types as given, or their default."""
    if spec.get("policyTypes"):
        return list(spec["policyTypes"])
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def peer_fits(peer: Body, namespace: str, other: Peer) -> bool:
    """Return whether one entry of from or to matches the other side."""
    block = peer.get("ipBlock")
    if block is not None:
        if not isinstance(other, str):
            return False
        address = ipaddress.ip_address(other)
        if address not in ipaddress.ip_network(block["cidr"]):
            return False
        return all(address not in ipaddress.ip_network(part) for part in block.get("except") or [])
    if isinstance(other, str):
        return False
    if peer.get("namespaceSelector") is None:
        if other.namespace != namespace:
            return False
    elif not matches(peer["namespaceSelector"], other.home):
        return False
    return matches(peer.get("podSelector"), other.labels)


def port_fits(entry: Body, target: Peer, protocol: str, port: int) -> bool:
    """Return whether one entry of ports matches a port."""
    if entry.get("protocol", "TCP") != protocol:
        return False
    wanted = entry.get("port")
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return not isinstance(target, str) and (protocol, wanted, port) in target.ports
    return bool(wanted <= port <= entry.get("endPort", wanted))


def matches(selector: Body | None, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector matches labels."""
    if not selector:
        return True
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for entry in selector.get("matchExpressions") or []:
        key, values = entry["key"], entry.get("values") or []
        fits = {
            "In": key in labels and labels[key] in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not fits[entry["operator"]]:
            return False
    return True
