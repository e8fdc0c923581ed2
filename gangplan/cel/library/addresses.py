"""Parse IP addresses as Go's `net/netip` does, with its messages (Go 1.24)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from gangplan.cel.numbers import quote_as_go

_HEX = frozenset("0123456789abcdefABCDEF")


class AddressError(ValueError):
    """The text is not an address; the message is Go's."""

    def __init__(self, text: str, message: str, rest: str = "") -> None:
        where = f" (at {quote_as_go(rest)})" if rest else ""
        super().__init__(f"ParseAddr({quote_as_go(text)}): {message}{where}")


def parse_cel_ip_with_zone(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """Parse an address and its zone. Raises `AddressError`."""
    for letter in text:
        if letter == ".":
            return IPv4Address(bytes(_parse_ipv4_octets(text, text))), ""
        if letter == ":":
            return _parse_ipv6_address(text)
        if letter == "%":
            raise AddressError(text, "missing IPv6 address")
    raise AddressError(text, "unable to parse IP")


def _parse_ipv4_octets(whole: str, text: str) -> list[int]:
    """Return the four numbers of `text`, which may be the end of an IPv6 address `whole`."""
    fields: list[int] = []
    value = digits = 0
    for at, letter in enumerate(text):
        if letter in "0123456789":
            if digits == 1 and value == 0:
                raise AddressError(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(letter), digits + 1
            if value > 255:
                raise AddressError(whole, "IPv4 field has value >255")
        elif letter == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise AddressError(whole, "IPv4 field must have at least one digit", text[at:])
            if len(fields) == 3:
                raise AddressError(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise AddressError(whole, "unexpected character", text[at:])
    if len(fields) < 3:
        raise AddressError(whole, "IPv4 address too short")
    return [*fields, value]


def _parse_ipv6_address(text: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise AddressError(text, "zone must be a non-empty string")
    data: list[int] = []
    gap = -1
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(0), zone
    while len(data) < 16:
        size = _count_group_hex_digits(text, rest)
        if rest[size : size + 1] == ".":
            data += _parse_embedded_ipv4(text, rest, len(data), gap)
            rest = ""
            break
        value = int(rest[:size], 16)
        data += (value >> 8, value & 255)
        rest = rest[size:]
        if not rest:
            break
        rest = _skip_ipv6_colon(text, rest)
        if rest[0] == ":":
            if gap >= 0:
                raise AddressError(text, "multiple :: in address", rest)
            gap, rest = len(data), rest[1:]
            if not rest:
                break
    if rest:
        raise AddressError(text, "trailing garbage after address", rest)
    return IPv6Address(bytes(_expand_ipv6_gap(text, data, gap))), zone


def _count_group_hex_digits(whole: str, rest: str) -> int:
    """Return how many hexadecimal digits `rest` begins with."""
    size = 0
    while size < len(rest) and rest[size] in _HEX:
        if size > 3:
            raise AddressError(whole, "each group must have 4 or less digits", rest)
        size += 1
    if not size:
        raise AddressError(whole, "each colon-separated field must have at least one digit", rest)
    return size


def _skip_ipv6_colon(whole: str, rest: str) -> str:
    if rest[0] != ":":
        raise AddressError(whole, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise AddressError(whole, "colon must be followed by more characters", rest)
    return rest[1:]


def _parse_embedded_ipv4(whole: str, rest: str, used: int, gap: int) -> list[int]:
    if gap < 0 and used != 12:
        message = "embedded IPv4 address must replace the final 2 fields of the address"
        raise AddressError(whole, message, rest)
    if used + 4 > 16:
        message = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise AddressError(whole, message, rest)
    return _parse_ipv4_octets(whole, rest)


def _expand_ipv6_gap(whole: str, data: list[int], gap: int) -> list[int]:
    if len(data) < 16:
        if gap < 0:
            raise AddressError(whole, "address string too short")
        return data[:gap] + [0] * (16 - len(data)) + data[gap:]
    if gap >= 0:
        raise AddressError(whole, "the :: must expand to at least one field of zeros")
    return data


def is_mapped(address: IPv4Address | IPv6Address) -> bool:
    """Return whether it is an IPv4 address written as IPv6 (`::ffff:10.0.0.1`)."""
    return address.version == 6 and int(address) >> 32 == 0xFFFF


def write_address(address: IPv4Address | IPv6Address) -> str:
    """Return the canonical text."""
    return str(address)
