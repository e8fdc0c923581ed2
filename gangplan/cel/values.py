"""Values at run time. JSON values are Python's own (None, bool, int, float, str, list, dict).

The other types are defined here. A list may be any Python list or tuple, a map any dict. Keys keep their CEL
kind, because bool differs from int by its class, and a double key can't be made in CEL. A value without a
literal in CEL (`kubernetes.Quantity`, `net.IP` ...) is an `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from ipaddress import IPv4Address, IPv6Address
from types import NoneType
from typing import ClassVar

from gangplan.cel import types
from gangplan.cel.types import Type
from gangplan.records import dataclass


class Uint(int):
    """An unsigned 64-bit integer. Python's arithmetic returns a plain int, and the operators restore Uint."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """Nanoseconds as a signed 64-bit integer, like Go's time.Duration."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970-01-01T00:00:00Z, between the years 1 and 9999.

    `offset` (seconds east of UTC) is the zone in which it was written; only `string()` shows it.
    """

    nanoseconds: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional.of(value)` when `present`, else `optional.none()`."""

    present: bool
    value: object = None


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(x)`, and names such as `int`."""

    type: Type


class Opaque:
    """A value of a library type, comparable only with its own kind."""

    __slots__ = ()
    cel_type: ClassVar[Type] = types.DYN

    def same(self, other: Opaque) -> bool:
        """Return whether `==` holds for two values of one class."""
        return self == other


@dataclass(frozen=True, slots=True)
class Address(Opaque):
    """A `net.IP`."""

    cel_type: ClassVar[Type] = types.IP
    ip: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class CidrValue(Opaque):
    """A `net.CIDR`: the address as written, including host bits, and the length of the network's prefix."""

    cel_type: ClassVar[Type] = types.CIDR
    ip: IPv4Address | IPv6Address
    prefix: int


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """The value of `format.<name>()`. `size` is the length of the regular expression that determines its
    cost."""

    cel_type: ClassVar[Type] = types.NAMED_FORMAT
    name: str
    size: int = field(compare=False)
    problems: Callable[[str], list[str]] = field(compare=False)


OPTIONAL_NONE = Optional(False)

_KINDS: dict[type, Type] = {
    NoneType: types.NULL,
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: Type("list"),
    tuple: Type("list"),
    dict: Type("map"),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: Type("optional_type"),
    TypeValue: Type("type"),
}


def runtime_kind_of(value: object) -> str:
    """Return the name of a value's type at run time, as the API server writes it (`int`, `null_type`,
    `list`)."""
    return cel_runtime_type_of(value).name


def cel_runtime_type_of(value: object) -> Type:
    """Return a value's type at run time, without parameters. Raises TypeError for what is not a CEL value."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Opaque):
        return value.cel_type
    if isinstance(value, Mapping):
        return _KINDS[dict]
    raise TypeError(f"{type(value).__name__} is not a CEL value")


# Go's %T of the values of cel-go 0.26, which appears in a few messages.
_GO_NAMES = {
    "null_type": "types.Null",
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.URL": "cel.URL",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


def go_type_of(value: object) -> str:
    """Return the Go type of a value."""
    return _GO_NAMES[runtime_kind_of(value)]
