"""Types and checks of names and values that several checks share, as in apimachinery's validation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.quantity import Quantity, QuantityError, parse_quantity
from gangplan.objects import Body
from gangplan.rules.objects import OBJECT_INVALID
from gangplan.validate.problems import Problem

FoundProblems = Iterator[Problem]

DNS_1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
PORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
DOMAIN_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
HTTP_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+")


MOST = Quantity.of(10**40)


def report_invalid(path: FieldPath, message: str, help: str = "") -> Problem:
    """Return a problem of the rule object-invalid."""
    return Problem(path, message, help, OBJECT_INVALID)


def is_dns_1035_label(name: str) -> bool:
    """Return whether a name is a DNS-1035 label.

    It has lower-case letters, digits and '-', starts with a letter, and has at most 63 characters.
    """
    return len(name) <= 63 and LABEL_1035.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Return whether a name is DNS labels joined by dots, at most 253 characters."""
    return len(name) <= 253 and DNS_SUBDOMAIN.fullmatch(name) is not None


def is_qualified(name: str) -> bool:
    """Return whether a name has the form `name` or `prefix/name`."""
    prefix, slash, rest = name.rpartition("/")
    return NAME_PART.fullmatch(rest) is not None and (not slash or is_subdomain(prefix))


def is_port_name(name: str) -> bool:
    """Return whether a name has at most 15 lower-case letters, digits and single '-', and one letter."""
    return len(name) <= 15 and PORT_NAME.fullmatch(name) is not None and not name.replace("-", "").isdigit()


def is_domain_path(name: str) -> bool:
    """Return whether a name has the form `example.com/path`."""
    host, slash, path = name.partition("/")
    return bool(slash) and is_subdomain(host) and DOMAIN_PATH.fullmatch(path) is not None


def parse_accepted_amount(value: Any) -> Quantity:
    """Return a quantity that its schema has accepted."""
    return _parse_capped_quantity(str(value))


@lru_cache(maxsize=4096)
def _parse_capped_quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text.removeprefix("+"))
    except QuantityError:  # more than gangplan counts with; Kubernetes uses its maximum
        return MOST


@lru_cache(maxsize=4096)
def parse_cidr_like_api_server(text: str) -> IPv4Network | IPv6Network | None:
    """Parse an address range, or return None; like the API server, it accepts host bits and leading zeros."""
    address, _, length = text.partition("/")
    if ":" not in address:
        address = ".".join(part.lstrip("0") or "0" for part in address.split("."))
    try:
        return ip_network(f"{address}/{length}", strict=False)
    except ValueError:
        return None


def is_address(text: str) -> bool:
    """Return whether a text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def check_relative_volume_path(path: FieldPath, text: str, what: str) -> FoundProblems:
    """Check that a path below a volume is relative and has no '..'."""
    if text.startswith("/"):
        yield report_invalid(path, f"{what} '{text}' must be a relative path")
    if ".." in text.split("/"):
        yield report_invalid(path, f"{what} '{text}' must not contain '..'")


def check_duplicate_list_entries(
    path: FieldPath, values: Iterable[Any], key: Callable[[Any], Any], what: str, before: Iterable[Any] = ()
) -> FoundProblems:
    """Report each value whose key occurred earlier or is in `before`; None means no key."""
    seen = set(before)
    for index, value in enumerate(values):
        name = key(value)
        if name is not None and name in seen:
            yield report_invalid((*path, index), f"{what} '{name}' is there twice")
        seen.add(name)


def check_label_selector(path: FieldPath, body: Body | None) -> FoundProblems:
    """Check the expressions of a label selector."""
    for index, entry in enumerate((body or {}).get("matchExpressions") or ()):
        at = (*path, "matchExpressions", index, "values")
        values = entry.get("values") or []
        wants = entry.get("operator") in ("In", "NotIn")
        if wants and not values:
            yield report_invalid(at, f"operator {entry.get('operator')} needs values")
        if not wants and values:
            yield report_invalid(at, f"operator {entry.get('operator')} takes no values")
        for number, value in enumerate(values):
            if len(value) > 63 or not LABEL_VALUE.fullmatch(value):
                yield report_invalid((*at, number), f"'{value}' cannot be the value of a label")
