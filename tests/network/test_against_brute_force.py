"""The relation equals a packet-by-packet evaluation on random worlds, or errs on the safe side."""

from __future__ import annotations

import itertools
from ipaddress import ip_address
from random import Random

import pytest

from gangplan.validate.network import policy as values
from gangplan.validate.network.labels import (
    ANY_LABELS,
    ANYTHING,
    PRESENT,
    PartialLabels,
    build_exact_labels,
    build_label_values,
)
from gangplan.validate.network.ranges import NO_PORT, Ports, subtract_network_region
from gangplan.validate.network.relation import (
    build_namespace_labels,
    find_network_address_grants,
    find_network_openings,
    find_reachable_ports,
    list_pods_outside_run,
)
from tests.network import worlds
from tests.network.brute import Body, Pod, allowed, one_way

CHUNKS, WORLDS = 8, 400
PROBES = worlds.probes()
FRESH = "fresh"  # stands for every value that no selector names


def known(pod: Pod) -> values.PodGroup:
    """Return a concrete pod as the solver sees it."""
    named = {(protocol, name): ((number, number),) for protocol, name, number in pod.ports}
    return values.PodGroup(
        "pod", pod.namespace, build_exact_labels(pod.home), build_exact_labels(pod.labels), named, 1
    )


def grouped(bodies: list[Body]) -> dict[str, tuple[values.NetworkPolicy, ...]]:
    """Return the policies by namespace."""
    found: dict[str, tuple[values.NetworkPolicy, ...]] = {}
    for body in bodies:
        one = values.read_network_policy(body)
        found[one.namespace] = (*found.get(one.namespace, ()), one)
    return found


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_connections_between_pods_equal_brute_force(chunk: int) -> None:
    open_ports = closed_ports = 0
    for seed in range(chunk * WORLDS, (chunk + 1) * WORLDS):
        random = Random(seed)
        homes = worlds.homes(random)
        bodies = [worlds.policy(random, number) for number in range(random.randrange(5))]
        policies = grouped(bodies)
        pods = [worlds.pod(random, homes) for _ in range(3)]
        for source, target in itertools.permutations(pods, 2):
            found = find_reachable_ports(policies, known(source), known(target))
            assert found == find_reachable_ports(policies, known(source), known(target), sure=False), seed
            for protocol, port in PROBES:
                expected = allowed(bodies, source, target, protocol, port)
                assert found.has(protocol, port) is expected, (seed, source, target, protocol, port)
                open_ports += expected
                closed_ports += not expected
    assert min(open_ports, closed_ports) > 50_000  # neither answer is rare


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_connections_with_addresses_equal_brute_force(chunk: int) -> None:
    seen = set()
    for seed in range(chunk * WORLDS, (chunk + 1) * WORLDS):
        random = Random(seed)
        homes = worlds.homes(random)
        bodies = [worlds.policy(random, number) for number in range(random.randrange(4))]
        policies = grouped(bodies)
        pod = worlds.pod(random, homes)
        probes = random.sample(PROBES, 12)
        for direction in values.DIRECTIONS:
            region = [
                (addresses, grant.ports)
                for addresses, grant in find_network_address_grants(
                    policies.get(pod.namespace, ()), direction, known(pod), True
                )
            ]
            for text in worlds.addresses(bodies):
                address = ip_address(text)
                for protocol, port in probes:
                    source, target = (pod, text) if direction == "egress" else (text, pod)
                    expected = allowed(bodies, source, target, protocol, port)
                    found = any(
                        ports.has(protocol, port)
                        and any(
                            first <= int(address) <= last
                            for first, last in (inside.v4 if address.version == 4 else inside.v6)
                        )
                        for inside, ports in region
                    )
                    assert found is expected, (seed, direction, text, protocol, port)
                    seen.add(expected)
    assert seen == {True, False}


def completions(homes: dict[str, dict[str, str]], mine: str) -> list[tuple[int, Pod]]:
    """Return every other pod that selectors can tell apart, with the number of its group.

    The groups are pods of the same namespace, of `three`, of `two`, and of unknown namespaces.
    """
    options = [None, *worlds.VALUES, FRESH]
    own = [None, FRESH]
    found: list[tuple[int, Pod]] = []
    for a, b in itertools.product(options, options):
        labels = {key: value for key, value in zip(worlds.KEYS, (a, b), strict=True) if value is not None}
        for value in own:
            found.append((0, Pod("one", homes["one"], {**labels, **({mine: value} if value else {})})))
        found += [(group, Pod(name, homes[name], labels)) for group, name in ((1, "three"), (2, "two"))]
        for c, d in itertools.product(options, options):
            pairs = zip(worlds.KEYS, (c, d), strict=True)
            home = {worlds.NAME: FRESH, **{key: value for key, value in pairs if value is not None}}
            found.append((3, Pod(FRESH, home, labels)))
    return found


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_openings_to_other_pods_equal_brute_force(chunk: int) -> None:
    """A port is open to other pods exactly if some other pod could use it."""
    seen = set()
    for seed in range(chunk * 30, (chunk + 1) * 30):
        random = Random(seed)
        homes = worlds.homes(random)
        bodies = [worlds.policy(random, number) for number in range(1, random.randrange(2, 5))]
        pod = worlds.pod(random, homes)
        pod = Pod("one", homes["one"], {**pod.labels, "run": "mine"}, pod.ports)
        policies = grouped(bodies)
        groups = list_pods_outside_run("one", "run", "mine", homes)
        everyone = completions(homes, "run")
        probes = random.sample(PROBES, 6)
        for direction, kind in (("ingress", "Ingress"), ("egress", "Egress")):
            for number, group in enumerate(groups):
                found = NO_PORT
                for opening in find_network_openings(policies.get("one", ()), direction, known(pod), group):  # type: ignore[arg-type]
                    found |= opening.grant.ports
                for protocol, port in probes:
                    names = [(protocol, name, port) for name in ("web", "ssh", "none")]
                    expected = any(
                        one_way(
                            bodies,
                            kind,
                            pod,
                            other,
                            pod
                            if kind == "Ingress"
                            else Pod(other.namespace, other.home, other.labels, names),
                            protocol,
                            port,
                        )
                        for at, other in everyone
                        if at == number
                    )
                    assert found.has(protocol, port) is expected, (
                        seed,
                        direction,
                        group.title,
                        protocol,
                        port,
                    )
                    seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_reach_of_partly_known_pods_has_sure_bounds(chunk: int) -> None:
    """With unknown labels, the sure reach is part of every completion, and the possible reach has all."""
    strict = 0
    for seed in range(chunk * 100, (chunk + 1) * 100):
        random = Random(seed)
        homes = worlds.homes(random)
        bodies = [worlds.policy(random, number) for number in range(1, random.randrange(2, 5))]
        policies = grouped(bodies)
        first, second = worlds.pod(random, homes), worlds.pod(random, homes)
        unknown = random.choice((PRESENT, ANYTHING, build_label_values("x", FRESH)))
        vague = PartialLabels({**build_exact_labels(first.labels).known, "a": unknown})
        blurred = values.PodGroup(
            "pod", first.namespace, build_exact_labels(first.home), vague, known(first).named, 1
        )
        options = [
            value
            for value in ("x", "y", FRESH, None)
            if unknown & (build_label_values(value) if value else ABSENT)
        ]
        ways = []
        for value in options:
            labels = {key: text for key, text in first.labels.items() if key != "a"}
            one = Pod(first.namespace, first.home, {**labels, **({"a": value} if value else {})}, first.ports)
            ways.append(find_reachable_ports(policies, known(one), known(second)))
        sure, maybe = (
            find_reachable_ports(policies, blurred, known(second), sure=sure) for sure in (True, False)
        )
        for way in ways:
            assert not sure - way, seed
            assert not way - maybe, seed
        strict += sure != maybe
    assert strict  # some labels matter


ABSENT = ~PRESENT


def test_pods_of_an_unknown_namespace_have_its_name() -> None:
    home = build_namespace_labels("kube-system", {})
    assert home.always({worlds.NAME: build_label_values("kube-system")})
    assert not home.maybe({worlds.NAME: build_label_values("one")})
    assert home.maybe({"a": build_label_values("x")})
    assert not home.always({"a": build_label_values("x")})
    assert ANY_LABELS.maybe({"a": ABSENT})


@pytest.mark.parametrize("seed", range(200))
def test_regions_subtract_exactly(seed: int) -> None:
    random = Random(seed)
    bodies = [{"to": [worlds.peer(random) for _ in range(3)]} for _ in range(2)]

    def region(body: Body) -> tuple[tuple[values.Addresses, Ports], ...]:
        peers = [values._parse_network_policy_peer(one) for one in body["to"]]
        return tuple(
            (
                one.addresses,
                Ports.of("TCP", low := random.choice(worlds.NUMBERS), low + random.choice((0, 30))),
            )
            for one in peers
            if one.addresses is not None
        )

    one, two = region(bodies[0]), region(bodies[1])
    rest = subtract_network_region(one, two)

    def has(where: tuple[tuple[values.Addresses, Ports], ...], address: str, port: int) -> bool:
        parsed = ip_address(address)
        return any(
            ports.has("TCP", port)
            and any(
                first <= int(parsed) <= last
                for first, last in (inside.v4 if parsed.version == 4 else inside.v6)
            )
            for inside, ports in where
        )

    for address in worlds.addresses([]):
        for port in (1, 31, 80, 81, 1024, 1054, 1055, 65535):
            assert has(rest, address, port) is (has(one, address, port) and not has(two, address, port))
