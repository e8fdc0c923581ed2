"""Static types of CEL, written as the API server writes them (`list(string)`, `kubernetes.Quantity`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A type by name with its parameters: `int`, `list(T)`, `map(K, V)`, `optional_type(T)`, `type(T)`."""

    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True, slots=True)
class Parameter(Type):
    """A type parameter of a generic overload: `<T>`."""

    def __str__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class ObjectType(Type):
    """An object with declared fields: `request`, `namespaceObject`, `variables`, `self` of a CRD rule.

    An undeclared field is a compile error (`undefined field 'nope'`). Objects are equal by name.
    """

    fields: Mapping[str, Type] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and other.name == self.name and not other.parameters

    def __hash__(self) -> int:
        return hash((self.name, ()))


DYN = Type("dyn")
ERROR_TYPE = Type("!error!")
NULL = Type("null_type")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
DURATION = Type("google.protobuf.Duration")
TIMESTAMP = Type("google.protobuf.Timestamp")
QUANTITY_TYPE = Type("kubernetes.Quantity")
URL = Type("kubernetes.URL")
SEMVER = Type("kubernetes.Semver")
NAMED_FORMAT = Type("kubernetes.NamedFormat")
IP = Type("net.IP")
CIDR = Type("net.CIDR")


def list_of(element: Type) -> Type:
    """Return `list(element)`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return `map(key, value)`."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return `optional_type(value)`."""
    return Type("optional_type", (value,))


def metatype_of(value: Type) -> Type:
    """Return the type of a type: `type(value)`."""
    return Type("type", (value,))
