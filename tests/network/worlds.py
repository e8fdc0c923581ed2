"""Small random worlds of namespaces, pods and policies; labels and ports are few, so they often match."""

from __future__ import annotations

import ipaddress
from random import Random
from typing import Any

from tests.network.brute import Body, Pod

NAME = "kubernetes.io/metadata.name"
KEYS, VALUES = ("a", "b"), ("x", "y")
HOMES = ("one", "two", "three")
NUMBERS = (1, 2, 53, 80, 81, 1023, 1024, 2222, 65534, 65535)
NAMED = (("TCP", "web", 80), ("UDP", "web", 53), ("TCP", "ssh", 2222))
PROTOCOLS = ("TCP", "UDP", "SCTP")
RANGES = ("0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/30", "10.1.2.3/32", "::/0", "2001:db8::/126", "128.0.0.0/1")


def labels(random: Random) -> dict[str, str]:
    """Draw some labels."""
    return {key: random.choice(VALUES) for key in KEYS if random.random() < 0.6}


def homes(random: Random) -> dict[str, dict[str, str]]:
    """Draw namespaces with labels, their names among them."""
    return {name: {**labels(random), NAME: name} for name in HOMES}


def pod(random: Random, known: dict[str, dict[str, str]]) -> Pod:
    """Draw a pod in one of the namespaces."""
    name = random.choice(HOMES[:2])
    return Pod(name, known[name], labels(random), [one for one in NAMED if random.random() < 0.5])


def selector(random: Random, names: bool = False) -> Body:
    """Draw a label selector, sometimes empty."""
    found: Body = {}
    if random.random() < 0.5:
        found["matchLabels"] = {random.choice(KEYS): random.choice(VALUES)}
    if names and random.random() < 0.3:
        found.setdefault("matchLabels", {})[NAME] = random.choice(HOMES)
    if random.random() < 0.4:
        found["matchExpressions"] = [expression(random) for _ in range(random.choice((1, 1, 2)))]
    return found


def expression(random: Random) -> Body:
    """Draw one matchExpression."""
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    found: Body = {"key": random.choice(KEYS), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = random.sample(VALUES, random.choice((1, 1, 2)))
    return found


def peer(random: Random) -> Body:
    """Draw one peer of a rule: pods, namespaces, both, or a range of addresses."""
    kind = random.randrange(4)
    if kind == 0:
        return {"podSelector": selector(random)}
    if kind == 1:
        return {"namespaceSelector": selector(random, names=True)}
    if kind == 2:
        return {"podSelector": selector(random), "namespaceSelector": selector(random, names=True)}
    whole = ipaddress.ip_network(random.choice(RANGES))
    block: Body = {"cidr": str(whole)}
    if whole.prefixlen <= whole.max_prefixlen - 2 and random.random() < 0.5:
        parts = [part for part in map(ipaddress.ip_network, RANGES) if part.version == whole.version]
        inside: list[Any] = [part for part in parts if part != whole and part.subnet_of(whole)]  # type: ignore[arg-type]
        block["except"] = [str(part) for part in random.sample(inside, min(len(inside), 2))]
    return {"ipBlock": block}


def port(random: Random) -> Body:
    """Draw one port entry."""
    found: Body = {}
    if random.random() < 0.8:
        found["protocol"] = random.choice(PROTOCOLS)
    if random.random() < 0.3:
        found["port"] = random.choice(("web", "ssh", "none"))
    elif random.random() < 0.9:
        found["port"] = random.choice(NUMBERS)
        if random.random() < 0.5:
            found["endPort"] = random.choice([number for number in NUMBERS if number >= found["port"]])
    return found


def rule(random: Random, side: str) -> Body:
    """Draw one rule; peers or ports may be missing or empty."""
    found: Body = {}
    if random.random() < 0.85:
        found[side] = [peer(random) for _ in range(random.choice((0, 1, 1, 2)))]
    if random.random() < 0.85:
        found["ports"] = [port(random) for _ in range(random.choice((0, 1, 1, 2)))]
    return found


def policy(random: Random, number: int) -> Body:
    """Draw one NetworkPolicy."""
    spec: Body = {}
    if random.random() < 0.9:
        spec["podSelector"] = selector(random) if random.random() < 0.7 else {}
    types = random.choice((None, [], ["Ingress"], ["Egress"], ["Ingress", "Egress"], ["Egress", "Ingress"]))
    if types is not None:
        spec["policyTypes"] = types
    for direction, side in (("ingress", "from"), ("egress", "to")):
        if random.random() < 0.7:
            spec[direction] = [rule(random, side) for _ in range(random.choice((0, 1, 1, 2)))]
    metadata = {"name": f"policy-{number}", "namespace": random.choice(HOMES[:2])}
    return {"kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def addresses(bodies: list[Body]) -> list[str]:
    """Return both ends of every range that a policy names, and their neighbours outside."""
    found = {"0.0.0.0", "255.255.255.255", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "192.0.2.1"}
    for text in RANGES:
        whole = ipaddress.ip_network(text)
        for number in (int(whole[0]) - 1, int(whole[0]), int(whole[-1]), int(whole[-1]) + 1):
            if 0 <= number < 2**whole.max_prefixlen:
                kind = ipaddress.IPv4Address if whole.version == 4 else ipaddress.IPv6Address
                found.add(str(kind(number)))
    return sorted(found)


def probes() -> list[tuple[str, int]]:
    """Return every port at which anything can change, and its neighbours."""
    numbers = {number + step for number in NUMBERS for step in (-1, 0, 1)} & set(range(1, 65536))
    return [(protocol, number) for protocol in PROTOCOLS for number in sorted(numbers)]
