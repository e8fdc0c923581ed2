"""Checks of LimitRange and ResourceQuota in addition to their schemas: resource names and amounts.

Sources: pkg/apis/core/validation/validation.go (ValidateLimitRange, ValidateResourceQuota) and
pkg/apis/core/helper/helpers.go of Kubernetes v1.34.
"""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import FoundProblems, is_qualified, report_invalid

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
COMPUTE = ("cpu", "memory", "ephemeral-storage")
QUOTA_RESOURCES = frozenset(
    {
        *COMPUTE,
        *(f"requests.{name}" for name in (*COMPUTE, "storage")),
        *(f"limits.{name}" for name in COMPUTE),
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.loadbalancers", "services.nodeports"),
    }
)
COUNTS = QUOTA_RESOURCES - {
    name for name in QUOTA_RESOURCES if name.rpartition(".")[2] in (*COMPUTE, "storage")
}
# In a LimitRange each of these is at most the next, if both are given.
ORDER = ("min", "defaultRequest", "default", "max")


def check_limit_range(body: Body) -> FoundProblems:
    """Check a LimitRange: each type once, names of resources that containers have, bounds in order."""
    seen: set[str] = set()
    for index, limit in enumerate(body["spec"].get("limits") or ()):
        at: FieldPath = ("spec", "limits", index)
        if limit["type"] in seen:
            yield report_invalid((*at, "type"), f"there are two entries of type {limit['type']}")
        seen.add(limit["type"])
        for field in (*ORDER, "maxLimitRequestRatio"):
            for resource in sorted(limit.get(field) or {}):
                if limit["type"] in ("Container", "Pod") and not _is_container_resource(resource):
                    yield report_invalid(
                        (*at, field, resource), f"'{resource}' is not a resource of containers"
                    )
        yield from _check_limit_range_bounds_order(at, limit)


def _check_limit_range_bounds_order(at: FieldPath, limit: Body) -> FoundProblems:
    amounts = {field: limit.get(field) or {} for field in ORDER}
    for place, lower in enumerate(ORDER):
        for upper in ORDER[place + 1 :]:
            for resource in sorted(set(amounts[lower]) & set(amounts[upper])):
                low, high = amounts[lower][resource], amounts[upper][resource]
                try:
                    is_wrong = parse_quantity(str(low)) > parse_quantity(str(high))
                except QuantityError:
                    continue
                if is_wrong:
                    yield report_invalid(
                        (*at, lower, resource), f"{lower} of {resource} is {low}, above {upper} ({high})"
                    )


def check_resource_quota(body: Body) -> FoundProblems:
    """Check a ResourceQuota: names that a quota can count, and whole numbers for counts of objects."""
    for resource, amount in sorted((body["spec"].get("hard") or {}).items()):
        at: FieldPath = ("spec", "hard", resource)
        if not _is_quota_resource(resource):
            yield report_invalid(at, f"'{resource}' is not a resource that a quota can count")
        elif (resource in COUNTS or resource.startswith("count/")) and parse_quantity(
            str(amount)
        ).nano % 10**9:
            yield report_invalid(at, f"{resource} is {amount}; only whole objects can be counted")


def _is_container_resource(name: str) -> bool:
    return (
        name in CONTAINER_RESOURCES or name.startswith("hugepages-") or ("/" in name and is_qualified(name))
    )


def _is_quota_resource(name: str) -> bool:
    if name in QUOTA_RESOURCES or name.removeprefix("requests.").startswith("hugepages-"):
        return True
    return "/" in name and is_qualified(name)
