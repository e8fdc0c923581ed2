"""Checks of ResourceClaimTemplates that no schema can make: names of requests, and expressions of selectors.

Sources: Kubernetes v1.34, pkg/apis/resource/validation (validateDeviceClaim), and
k8s.io/dynamic-resource-allocation v0.36.1 (cel/compile.go, and structured: AllocationResultsMaxSize).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gangplan.findings import FieldPath
from gangplan.model.kinds import MOST_DEVICES_OF_CLAIM
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import FoundProblems, report_invalid
from gangplan.validate.apiserver.schema import SchemaVersions

if TYPE_CHECKING:
    from gangplan.cel.types import Type


def check_claim_template(body: Body, versions: SchemaVersions) -> FoundProblems:
    """Check what the API server checks of the requests of a template."""
    devices, base = body["spec"]["spec"].get("devices") or {}, ("spec", "spec", "devices")
    requests: Sequence[Body] = devices.get("requests") or ()
    names = set(_list_request_names(requests))
    for part in ("constraints", "config"):
        for index, one in enumerate(devices.get(part) or ()):
            for number, name in enumerate(one.get("requests") or ()):
                if name not in names:
                    yield report_invalid(
                        (*base, part, index, "requests", number), f"no request is called '{name}'"
                    )
    count = sum(int((one.get("exactly") or {}).get("count") or 1) for one in requests)
    if count > MOST_DEVICES_OF_CLAIM:
        most = f"a claim has at most {MOST_DEVICES_OF_CLAIM} devices"
        message = f"{most}, and this one asks for {count}: no pod would start"
        yield report_invalid((*base, "requests"), message)
    for index, request in enumerate(requests):
        at = (*base, "requests", index)
        yield from _check_selectors((*at, "exactly"), request.get("exactly") or {}, versions)
        for number, other in enumerate(request.get("firstAvailable") or ()):
            yield from _check_selectors((*at, "firstAvailable", number), other, versions)


def _list_request_names(requests: Sequence[Body]) -> Iterator[str]:
    for request in requests:
        yield request["name"]
        yield from (f"{request['name']}/{one['name']}" for one in request.get("firstAvailable") or ())


def _check_selectors(path: FieldPath, request: Body, versions: SchemaVersions) -> FoundProblems:
    for index, one in enumerate(request.get("selectors") or ()):
        if why := _explain_refused_selector(one["cel"]["expression"], versions):
            yield report_invalid((*path, "selectors", index, "cel", "expression"), why)


def _explain_refused_selector(text: str, versions: SchemaVersions) -> str:
    """Return why the API server refuses an expression about a device; empty if it does not.

    Expressions with the two functions that only those about devices have are parsed, and no more.
    """
    from gangplan.cel.admission import find_expressions_minor  # only patches bring selectors
    from gangplan.cel.ast import Call, walk_nodes
    from gangplan.cel.environment import Environment
    from gangplan.cel.errors import CompileError
    from gangplan.cel.parser import parse_cel_expression
    from gangplan.cel.types import BOOL, DYN

    minor = find_expressions_minor(int(versions.kubernetes.partition(".")[2]))
    try:
        nodes = walk_nodes(parse_cel_expression(text, minor))
        if any(isinstance(node, Call) and node.function in ("bind", "includes") for node in nodes):
            return ""
        found = Environment(minor=minor, variables={"device": _build_device_type()}).check(text).type
    except CompileError as problem:
        return f"the expression does not compile: {problem.issues[0].message}"
    return "" if found in (BOOL, DYN) else f"the expression is a {found}; it must be a bool"


def _build_device_type() -> Type:
    from gangplan.cel.types import BOOL, DYN, QUANTITY_TYPE, STRING, ObjectType, map_of

    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY_TYPE)),
        "allowMultipleAllocations": BOOL,
    }
    return ObjectType("kubernetes.DRADevice", fields=fields)
