"""The function library of a Kubernetes minor as signatures, from the table in functions.txt."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gangplan.cel.types import DURATION, TIMESTAMP, Parameter, Type, list_of, map_of, metatype_of
from gangplan.records import dataclass

# The first and last minor of functions.txt: older servers lack the environment, newer ones are not covered.
FIRST_MINOR, LAST_MINOR = 27, 37

_LINE = re.compile(r"(\d+)(?:-(\d+))? (\S+) (\S+) ([.-]) \((.*)\) (\S.*)")
_NAME = re.compile(r"<?([A-Za-z_][\w.]*)>?")
_DYN = Type("dyn")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. `parameters` are the names of its type parameters, sorted."""

    id: str
    is_member: bool
    arguments: tuple[Type, ...]
    result: Type
    parameters: tuple[str, ...]
    since: int
    until: int


@cache
def _read_cel_function_table() -> dict[str, list[str]]:
    """Return the lines of the table by function."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("functions.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            found.setdefault(line.split(" ", 2)[1], []).append(line)
    return found


@cache
def _list_function_overloads(function: str) -> tuple[Overload, ...]:
    return tuple(_parse_overload_line(line) for line in _read_cel_function_table().get(function, ()))


def _parse_overload_line(line: str) -> Overload:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"functions.txt: {line}")
    since, until, _, name, style, arguments, result = match.groups()
    types = tuple(parse_cel_type(part) for part in arguments.split("; ") if part)
    parameters = tuple(sorted(set(re.findall(r"<(\w+)>", line))))
    return Overload(
        name, style == ".", types, parse_cel_type(result), parameters, int(since), int(until or 99)
    )


def parse_cel_type(text: str) -> Type:
    """Parse a type from its written form, `map(string, list(<T>))`. Raises ValueError for anything else."""
    found, rest = _parse_cel_type_prefix(text.strip())
    if rest:
        raise ValueError(f"not a type: {text}")
    return found


def _parse_cel_type_prefix(text: str) -> tuple[Type, str]:
    match = _NAME.match(text)
    if match is None:
        raise ValueError(f"not a type: {text}")
    name, rest = match.group(1), text[match.end() :]
    if text.startswith("<"):
        return Parameter(name), rest
    inner: list[Type] = []
    if rest.startswith("("):
        while rest[0] in "(,":
            argument, rest = _parse_cel_type_prefix(rest[1:].lstrip())
            inner.append(argument)
        rest = rest[1:]
    return Type(name, tuple(inner)), rest


@cache
def find_overloads(function: str, minor: int) -> tuple[Overload, ...]:
    """Return the overloads of a function on a server of Kubernetes 1.`minor`; empty if it has no such
    function."""
    return tuple(
        overload
        for overload in _list_function_overloads(function)
        if overload.since <= minor <= overload.until
    )


@cache
def functions(minor: int) -> frozenset[str]:
    """Return all names of functions of Kubernetes 1.`minor`, including operators (`_+_`) and internals."""
    return frozenset(name for name in _read_cel_function_table() if find_overloads(name, minor))


def since(function: str) -> int | None:
    """Return the first minor of Kubernetes that has a function, or None."""
    known = _list_function_overloads(function)
    return min(overload.since for overload in known) if known else None


# Types that expressions can name as values: `type(x) == string`. google.protobuf.Timestamp and Duration have
# no short names (`timestamp` is a function; as a name, the API server accepts it but cannot run it).
_SIMPLE = ("bool", "bytes", "double", "int", "null_type", "string", "type", "uint")
_SINCE = {"optional_type": 28, "net.IP": 30, "net.CIDR": 30}


@cache
def list_cel_type_names(minor: int) -> dict[str, Type]:
    """Return the names of types with the static types that they have as values: `int` is of type
    `type(int)`."""
    found = {name: metatype_of(Type(name)) for name in _SIMPLE}
    found["list"] = metatype_of(list_of(_DYN))
    found["map"] = metatype_of(map_of(_DYN, _DYN))
    found |= {kind.name: metatype_of(kind) for kind in (DURATION, TIMESTAMP)}
    found |= {name: metatype_of(Type(name)) for name, first in _SINCE.items() if minor >= first}
    return found
