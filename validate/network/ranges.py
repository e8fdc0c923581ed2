"""Sets of whole numbers as intervals, and sets of ports by protocol and of addresses by family built on them.

A range is one interval, however many numbers it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, summarize_address_range

from gangplan.records import dataclass

# Sorted, disjoint intervals that do not touch; both ends are included.
Spans = tuple[tuple[int, int], ...]
Network = IPv4Network | IPv6Network

PROTOCOLS = ("TCP", "UDP", "SCTP")
FIRST_PORT, LAST_PORT = 1, 65535


def build_address_or_port_spans(pairs: Iterable[tuple[int, int]]) -> Spans:
    """Return any intervals as Spans, dropping empty ones (first > last)."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(pair for pair in pairs if pair[0] <= pair[1]):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


def intersect_address_ranges(one: Spans, two: Spans) -> Spans:
    """Return the numbers that are in both."""
    found, left, right = [], 0, 0
    while left < len(one) and right < len(two):
        first, last = max(one[left][0], two[right][0]), min(one[left][1], two[right][1])
        if first <= last:
            found.append((first, last))
        if one[left][1] < two[right][1]:
            left += 1
        else:
            right += 1
    return tuple(found)


def subtract_address_ranges(one: Spans, two: Spans) -> Spans:
    """Return the numbers of `one` that are not in `two`."""
    out = []
    for first, last in one:
        at = first
        for begin, end in two:
            if end < at or begin > last:
                continue
            if begin > at:
                out.append((at, begin - 1))
            at = end + 1
        if at <= last:
            out.append((at, last))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports 1 to 65535 of TCP, UDP and SCTP, in this order.

    The API knows these protocols (networking/v1, v1.34).
    """

    by_protocol: tuple[Spans, Spans, Spans] = ((), (), ())

    @classmethod
    def of(cls, protocol: str, first: int = FIRST_PORT, last: int = LAST_PORT) -> Ports:
        """Return one range of ports of one protocol, by default all its ports."""
        empty: list[Spans] = [(), (), ()]
        empty[PROTOCOLS.index(protocol)] = build_address_or_port_spans([(first, last)])
        return cls((empty[0], empty[1], empty[2]))

    def __or__(self, other: Ports) -> Ports:
        """Return the union."""
        if not self or self == other:
            return other
        tcp, udp, sctp = (
            build_address_or_port_spans([*a, *b])
            for a, b in zip(self.by_protocol, other.by_protocol, strict=True)
        )
        return Ports((tcp, udp, sctp))

    def __and__(self, other: Ports) -> Ports:
        """Return the intersection."""
        tcp, udp, sctp = (
            intersect_address_ranges(a, b) for a, b in zip(self.by_protocol, other.by_protocol, strict=True)
        )
        return Ports((tcp, udp, sctp))

    def __sub__(self, other: Ports) -> Ports:
        """Return the ports of `self` that are not in `other`."""
        tcp, udp, sctp = (
            subtract_address_ranges(a, b) for a, b in zip(self.by_protocol, other.by_protocol, strict=True)
        )
        return Ports((tcp, udp, sctp))

    def __bool__(self) -> bool:
        """Return whether there is any port."""
        return any(self.by_protocol)

    def has(self, protocol: str, port: int) -> bool:
        """Return whether a port is included."""
        return any(first <= port <= last for first, last in self.by_protocol[PROTOCOLS.index(protocol)])

    def __str__(self) -> str:
        """Format the ports: `TCP 1024-2221, 2223-65535; UDP 53`, `every port`."""
        if self == EVERY_PORT:
            return "every port"
        parts = []
        for protocol, found in zip(PROTOCOLS, self.by_protocol, strict=True):
            if found == ((FIRST_PORT, LAST_PORT),):
                parts.append(f"all of {protocol}")
            elif found:
                ranges = (str(first) if first == last else f"{first}-{last}" for first, last in found)
                parts.append(f"{protocol} {', '.join(ranges)}")
        return "; ".join(parts) or "no port"


NO_PORT = Ports()
EVERY_PORT = Ports((((FIRST_PORT, LAST_PORT),),) * 3)


@dataclass(frozen=True, slots=True)
class Addresses:
    """IPv4 and IPv6 addresses as numbers."""

    v4: Spans = ()
    v6: Spans = ()

    @classmethod
    def of(cls, network: Network, without: Sequence[Network] = ()) -> Addresses:
        """Return an address range without some parts of it."""
        whole = _convert_network_to_spans(network)
        rest = subtract_address_ranges(
            whole,
            build_address_or_port_spans(pair for part in without for pair in _convert_network_to_spans(part)),
        )
        return cls(v4=rest) if network.version == 4 else cls(v6=rest)

    def __and__(self, other: Addresses) -> Addresses:
        """Return the intersection."""
        return Addresses(
            intersect_address_ranges(self.v4, other.v4), intersect_address_ranges(self.v6, other.v6)
        )

    def __sub__(self, other: Addresses) -> Addresses:
        """Return the addresses of `self` that are not in `other`."""
        return Addresses(
            subtract_address_ranges(self.v4, other.v4), subtract_address_ranges(self.v6, other.v6)
        )

    def __bool__(self) -> bool:
        """Return whether there is any address."""
        return bool(self.v4 or self.v6)

    def networks(self) -> Iterator[Network]:
        """Yield the same addresses as the fewest CIDR ranges."""
        for first, last in self.v4:
            yield from summarize_address_range(IPv4Address(first), IPv4Address(last))
        for first, last in self.v6:
            yield from summarize_address_range(IPv6Address(first), IPv6Address(last))

    def __str__(self) -> str:
        """Format up to four ranges; `any address` for all, `any IPv4 address` for all of IPv4 alone."""
        if self.v4 == EVERY_ADDRESS.v4 and self.v6 in ((), EVERY_ADDRESS.v6):
            return "any address" if self.v6 else "any IPv4 address"
        found = [str(network) for network in self.networks()]
        more = f" and {len(found) - 4} more ranges" if len(found) > 4 else ""
        return ", ".join(found[:4]) + more or "no address"


def _convert_network_to_spans(network: Network) -> Spans:
    return ((int(network.network_address), int(network.broadcast_address)),)


EVERY_ADDRESS = Addresses(((0, 2**32 - 1),), ((0, 2**128 - 1),))

# Addresses with the ports that may be reached there; a region is the union of its entries.
Region = tuple[tuple[Addresses, Ports], ...]


def subtract_network_region(one: Region, two: Region) -> Region:
    """Return what the first region contains and the second does not."""
    pieces = list(one)
    for taken, ports in two:
        left = []
        for addresses, opened in pieces:
            outside, rest = addresses - taken, opened - ports
            if outside:
                left.append((outside, opened))
            if rest and (inside := addresses & taken):
                left.append((inside, rest))
        pieces = left
    return tuple(pieces)
