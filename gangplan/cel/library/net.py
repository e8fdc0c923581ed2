"""`net.IP` and `net.CIDR` (k8s.io/apiserver v0.34 `pkg/cel/library/ip.go`, `cidr.go`)."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.addresses import AddressError, is_mapped, parse_cel_ip_with_zone, write_address
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.numbers import quote_as_go
from gangplan.cel.operators import NO_OVERLOAD
from gangplan.cel.values import Address, CidrValue

# The longest prefix of each family.
_BITS = {4: 32, 6: 128}


@lru_cache(maxsize=1024)
def parse_cel_ip(text: str) -> Address:
    """Evaluate `ip(text)`. Raises `EvalError`."""
    shown = quote_as_go(text)
    try:
        address, zone = parse_cel_ip_with_zone(text)
    except AddressError as problem:
        raise EvalError(
            f"IP Address {shown} parse error during conversion from string: {problem}"
        ) from problem
    if zone:
        raise EvalError(f"IP address {shown} with zone value is not allowed")
    if is_mapped(address):
        raise EvalError(f"IPv4-mapped IPv6 address {shown} is not allowed")
    return Address(address)


@lru_cache(maxsize=1024)
def parse_cel_cidr(text: str) -> CidrValue:
    """Evaluate `cidr(text)`; bits after the prefix are kept. Raises `EvalError`."""
    wrong = "network address parse error during conversion from string: "
    try:
        address, length = _parse_cidr_prefix(text)
    except AddressError as problem:
        raise EvalError(f"{wrong}{wrong}netip.ParsePrefix({quote_as_go(text)}): {problem}") from problem
    except ValueError as problem:
        raise EvalError(f"{wrong}{wrong}netip.ParsePrefix({quote_as_go(text)}): {problem}") from problem
    if is_mapped(address):
        raise EvalError(f"{wrong}IPv4-mapped IPv6 address {quote_as_go(text)} is not allowed")
    return CidrValue(address, length)


def _parse_cidr_prefix(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    written, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address, zone = parse_cel_ip_with_zone(written)
    if zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    # In Go, too, a single character may be a sign, which is then not a number.
    if not re.fullmatch(r"[0-9]|[1-9][0-9]{1,17}", bits, re.ASCII):
        raise ValueError(f"bad bits after slash: {quote_as_go(bits)}")
    if int(bits) > _BITS[address.version]:
        raise ValueError("prefix length out of range")
    return address, int(bits)


def is_ip(text: str) -> bool:
    """Evaluate `isIP(text)`."""
    try:
        parse_cel_ip(text)
    except EvalError:
        return False
    return True


def is_cidr(text: str) -> bool:
    """Evaluate `isCIDR(text)`."""
    try:
        parse_cel_cidr(text)
    except EvalError:
        return False
    return True


def is_canonical(text: str) -> bool:
    """Evaluate `ip.isCanonical(text)`: whether it is written in the shortest form."""
    return write_address(parse_cel_ip(text).ip) == text


def is_unspecified(address: Address) -> bool:
    """Return whether an address is `0.0.0.0` or `::`."""
    return int(address.ip) == 0


def is_loopback(address: Address) -> bool:
    """Return whether an address is in `127.0.0.0/8` or is `::1`."""
    number = int(address.ip)
    return number >> 24 == 127 if address.ip.version == 4 else number == 1


def is_link_local_multicast(address: Address) -> bool:
    """Return whether an address is in `224.0.0.0/24`, or in `ff02::/16` with any flags."""
    number = int(address.ip)
    return number >> 8 == 0xE00000 if address.ip.version == 4 else number >> 112 & 0xFF0F == 0xFF02


def is_link_local_unicast(address: Address) -> bool:
    """Return whether an address is in `169.254.0.0/16` or `fe80::/10`."""
    number = int(address.ip)
    return number >> 16 == 0xA9FE if address.ip.version == 4 else number >> 118 == 0xFE80 >> 6


def is_global_unicast(address: Address) -> bool:
    """Return whether an address is neither special nor multicast; private ranges count as global,
    as in Go."""
    number = int(address.ip)
    if address.ip.version == 4:
        multicast = number >> 28 == 0xE or number == 2**32 - 1
    else:
        multicast = number >> 120 == 0xFF
    return not (
        multicast or is_unspecified(address) or is_loopback(address) or is_link_local_unicast(address)
    )


def contains_ip(network: CidrValue, address: Address) -> bool:
    """Evaluate `cidr.containsIP(ip)`."""
    if network.ip.version != address.ip.version:
        return False
    shift = _BITS[address.ip.version] - network.prefix
    return int(network.ip) >> shift == int(address.ip) >> shift


def contains_ip_text(network: CidrValue, text: str) -> bool:
    """Evaluate `cidr.containsIP(text)`; the API server hides what is wrong with the text."""
    try:
        address = parse_cel_ip(text)
    except EvalError as problem:
        raise EvalError(NO_OVERLOAD) from problem
    return contains_ip(network, address)


def contains_cidr(network: CidrValue, other: CidrValue) -> bool:
    """Evaluate `cidr.containsCIDR(cidr)`."""
    if network.prefix > other.prefix:
        return False
    return contains_ip(network, Address(other.ip))


def masked(network: CidrValue) -> CidrValue:
    """Evaluate `cidr.masked()`: the network without the bits after the prefix."""
    beyond = _BITS[network.ip.version] - network.prefix
    return CidrValue(type(network.ip)(int(network.ip) >> beyond << beyond), network.prefix)


def _write_cidr(network: CidrValue) -> str:
    return f"{write_address(network.ip)}/{network.prefix}"


_IP, _CIDR = types.IP, types.CIDR
TABLE = (
    Implementation("string_to_ip", "ip", (S,), parse_cel_ip),
    Implementation("cidr_ip", "ip", (_CIDR,), lambda network: Address(network.ip)),
    Implementation("ip_family", "family", (_IP,), lambda address: address.ip.version),
    Implementation("ip_is_canonical", "ip.isCanonical", (S,), is_canonical),
    Implementation("is_ip", "isIP", (S,), is_ip),
    Implementation("ip_is_unspecified", "isUnspecified", (_IP,), is_unspecified),
    Implementation("ip_is_loopback", "isLoopback", (_IP,), is_loopback),
    Implementation("ip_is_link_local_multicast", "isLinkLocalMulticast", (_IP,), is_link_local_multicast),
    Implementation("ip_is_link_local_unicast", "isLinkLocalUnicast", (_IP,), is_link_local_unicast),
    Implementation("ip_is_global_unicast", "isGlobalUnicast", (_IP,), is_global_unicast),
    Implementation("ip_to_string", "string", (_IP,), lambda address: write_address(address.ip)),
    Implementation("string_to_cidr", "cidr", (S,), parse_cel_cidr),
    Implementation("is_cidr", "isCIDR", (S,), is_cidr),
    Implementation("cidr_contains_ip_string", "containsIP", (_CIDR, S), contains_ip_text),
    Implementation("cidr_contains_ip_ip", "containsIP", (_CIDR, _IP), contains_ip),
    Implementation(
        "cidr_contains_cidr_string",
        "containsCIDR",
        (_CIDR, S),
        lambda network, text: contains_cidr(network, parse_cel_cidr(text)),
    ),
    Implementation("cidr_contains_cidr", "containsCIDR", (_CIDR, _CIDR), contains_cidr),
    Implementation("cidr_prefix_length", "prefixLength", (_CIDR,), lambda network: network.prefix),
    Implementation("cidr_masked", "masked", (_CIDR,), masked),
    Implementation("cidr_to_string", "string", (_CIDR,), _write_cidr),
)
