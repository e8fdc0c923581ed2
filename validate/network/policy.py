"""NetworkPolicy objects as values (networking.k8s.io/v1, Kubernetes v1.34 types.go and defaults.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import parse_cidr_like_api_server
from gangplan.validate.network.labels import PartialLabels, Selector, parse_label_selector
from gangplan.validate.network.ranges import EVERY_PORT, NO_PORT, Addresses, Ports, Spans

Direction = Literal["ingress", "egress"]
DIRECTIONS: tuple[Direction, Direction] = ("ingress", "egress")
NamedPorts = Mapping[tuple[str, str], Spans]  # (protocol, port name) -> numbers


@dataclass(frozen=True, slots=True)
class PolicyPeer:
    """Pods (of the policy's namespace if `namespaces` is None), or with `addresses` an address range."""

    pods: Selector
    namespaces: Selector | None = None
    addresses: Addresses | None = None


@dataclass(frozen=True, slots=True)
class TrafficRule:
    """What one entry opens: any of the peers (None: everyone) on the ports and the named ports."""

    peers: tuple[PolicyPeer, ...] | None
    ports: Ports
    names: tuple[tuple[str, str], ...] = ()
    at: int = 0

    def opened(self, named: NamedPorts) -> Ports:
        """Return its ports on pods whose named ports are known."""
        found = self.ports
        for name in self.names:
            for first, last in named.get(name, ()):
                found |= Ports.of(name[0], first, last)
        return found

    def opened_at_most(self) -> Ports:
        """Return its ports on pods that may call any of their ports by those names."""
        found = self.ports
        for protocol, _ in self.names:
            found |= Ports.of(protocol)
        return found


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """A policy. Rules of None leave a direction alone; empty rules close it.

    `index` is the position among the objects of the run, -1 for a policy of the cluster.
    """

    name: str
    namespace: str
    selects: Selector
    ingress: tuple[TrafficRule, ...] | None
    egress: tuple[TrafficRule, ...] | None
    index: int = -1

    def rules(self, direction: Direction) -> tuple[TrafficRule, ...] | None:
        """Return the rules of a direction."""
        return self.ingress if direction == "ingress" else self.egress


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods that no policy distinguishes: where they are, their labels, their named ports.

    `named` is None if the named ports are unknown, `count` 0 if the number is.
    """

    title: str
    namespace: str
    home: PartialLabels
    labels: PartialLabels
    named: NamedPorts | None = None
    count: int = 0


def read_network_policy(body: Body, index: int = -1) -> NetworkPolicy:
    """Return a NetworkPolicy that fits its schema and the rules as a value."""
    spec = body["spec"]
    types = spec.get("policyTypes")
    if not types:  # SetDefaults_NetworkPolicy
        types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    metadata = body["metadata"]
    return NetworkPolicy(
        metadata["name"],
        metadata.get("namespace", ""),
        parse_label_selector(spec.get("podSelector")),
        _parse_traffic_rules(spec.get("ingress"), "from") if "Ingress" in types else None,
        _parse_traffic_rules(spec.get("egress"), "to") if "Egress" in types else None,
        index,
    )


def _parse_traffic_rules(entries: list[Body] | None, side: str) -> tuple[TrafficRule, ...]:
    return tuple(_parse_network_policy_rule(entry, side, at) for at, entry in enumerate(entries or ()))


def _parse_network_policy_rule(entry: Body, side: str, at: int) -> TrafficRule:
    peers = tuple(_parse_network_policy_peer(peer) for peer in entry.get(side) or ()) or None
    ports, names = NO_PORT, []
    if not entry.get("ports"):
        ports = EVERY_PORT
    for port in entry.get("ports") or ():
        protocol, number = port.get("protocol") or "TCP", port.get("port")
        if isinstance(number, str):
            names.append((protocol, number))
        elif number is None:
            ports |= Ports.of(protocol)
        else:
            ports |= Ports.of(protocol, number, port.get("endPort") or number)
    return TrafficRule(peers, ports, tuple(names), at)


def _parse_network_policy_peer(peer: Body) -> PolicyPeer:
    block = peer.get("ipBlock")
    if block:
        whole = parse_cidr_like_api_server(block["cidr"])
        parts = [
            part
            for text in block.get("except") or ()
            if (part := parse_cidr_like_api_server(text)) is not None
        ]
        return PolicyPeer({}, addresses=Addresses.of(whole, parts) if whole is not None else Addresses())
    namespaces = peer.get("namespaceSelector")
    return PolicyPeer(
        parse_label_selector(peer.get("podSelector")),
        None if namespaces is None else parse_label_selector(namespaces),
    )
