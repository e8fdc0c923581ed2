"""The requests of one pod as Kueue counts them, and the errors that Kueue finds before it looks at quota.

Sources: Kueue v0.19.2 pkg/workload/resources.go (AdjustResources, ValidateResources, ValidateLimitRange),
pkg/util/limitrange; k8s.io/component-helpers v0.36.2 resource/helpers.go (PodRequests); Kubernetes v1.34
pkg/apis/core/v1/defaults.go (defaults of a LimitRange). v0.15.2 is the same except for pod-level resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gangplan.kueue.counting import apply_kueue_resource_transformations
from gangplan.kueue.units import round_to_kueue_count
from gangplan.model.manager import ManagerSettings
from gangplan.model.support import KueueLine
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.kueue.model import MISCONFIGURED, CountedAmounts, NeverError, PodSet

Nanos = dict[str, int]  # resource -> billionths
POD_LEVEL = ("cpu", "memory")


def adjust_workload_pod_spec(spec: Body, ranges: LimitRanges, overheads: Mapping[str, Body]) -> Body:
    """Add overhead, LimitRange defaults and, for missing requests, the limits to a pod's spec.

    `overheads` is the overhead of each RuntimeClass.
    """
    out = {**spec}
    name = spec.get("runtimeClassName")
    if name and not spec.get("overhead") and overheads.get(name):
        out["overhead"] = overheads[name]
    for kind in ("initContainers", "containers"):
        out[kind] = [
            {
                **container,
                "resources": _apply_limit_range_defaults(
                    container.get("resources") or {}, ranges.of("Container")
                ),
            }
            for container in spec.get(kind) or ()
        ]
    if spec.get("resources"):
        out["resources"] = _apply_limit_range_defaults(spec["resources"], ranges.of("Pod"))
    return out


def _apply_limit_range_defaults(resources: Body, item: Body) -> Body:
    limits = {**(item.get("default") or {}), **(resources.get("limits") or {})}
    requests = {**limits, **(item.get("defaultRequest") or {}), **(resources.get("requests") or {})}
    return {"limits": limits, "requests": requests}


def requests_of(spec: Body) -> CountedAmounts:
    """Return the requests of one pod of an adjusted spec."""
    return {
        name: max(0, round_to_kueue_count(name, nano))
        for name, nano in _sum_workload_pod_requests(spec).items()
    }


def count_requests(spec: Body, manager: ManagerSettings, kueue: KueueLine) -> CountedAmounts:
    """Return the requests that count against quota, by the settings of Kueue's manager."""
    found = apply_kueue_resource_transformations(_sum_workload_pod_requests(spec), manager, kueue)
    return {name: max(0, round_to_kueue_count(name, nano)) for name, nano in found.items()}


def resolve_claimed_resources(pods: PodSet, manager: ManagerSettings) -> CountedAmounts:
    """Return what quota counts for the claims of one pod, by the resources of their classes.

    Raises `NeverError` for a class that has none, and for claims that Kueue cannot count: it finds the
    workload inadmissible.
    """
    if pods.uncountable:
        raise NeverError(MISCONFIGURED, pods.uncountable)
    classes, found = dict(manager.device_classes), dict[str, int]()
    for device_class, count in pods.claimed:
        if device_class not in classes:
            message = f"DeviceClass {device_class} is not mapped in DRA configuration for podset {pods.name}"
            raise NeverError(MISCONFIGURED, message)
        resource = classes[device_class]
        found[resource] = found.get(resource, 0) + count
    return found


def _sum_workload_pod_requests(spec: Body) -> Nanos:
    """Return the sum of the containers, or the peak of the init containers if larger, plus the overhead."""
    total: Nanos = {}
    for container in spec["containers"]:
        _add_amounts_to_total(total, _parse_amounts_to_nanos(container["resources"]["requests"]))
    sidecars: Nanos = {}
    start: Nanos = {}
    for container in spec["initContainers"]:
        wanted = _parse_amounts_to_nanos(container["resources"]["requests"])
        if container.get("restartPolicy") == "Always":
            _add_amounts_to_total(total, wanted)
            _add_amounts_to_total(sidecars, wanted)
            wanted = sidecars
        else:
            _add_amounts_to_total(wanted, sidecars)
        _merge_chosen_amounts(start, wanted, max)
    _merge_chosen_amounts(total, start, max)
    for name, nano in _parse_amounts_to_nanos((spec.get("resources") or {}).get("requests") or {}).items():
        if name in POD_LEVEL or name.startswith("hugepages-"):
            total[name] = nano
    _add_amounts_to_total(total, _parse_amounts_to_nanos(spec.get("overhead") or {}))
    return total


def _parse_amounts_to_nanos(written: Mapping[str, Any]) -> Nanos:
    return {name: parse_accepted_amount(value).nano for name, value in written.items()}


def _add_amounts_to_total(total: Nanos, more: Nanos) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _merge_chosen_amounts(total: Nanos, other: Nanos, choose: Callable[[int, int], int]) -> None:
    for name, nano in other.items():
        total[name] = choose(total[name], nano) if name in total else nano


class LimitRanges:
    """The LimitRanges of a namespace, merged: the tightest bounds and the first defaults."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        """Read the LimitRanges in the order of their names, as the API server lists them."""
        self.items: dict[str, Body] = {}  # by type
        for body in sorted(bodies, key=lambda one: str(one["metadata"]["name"])):
            for item in body["spec"].get("limits") or ():
                self._take(fill_limit_range_item_defaults(item))

    def _take(self, item: Body) -> None:
        known = self.items.setdefault(item["type"], {})
        for field, choose in (("max", min), ("min", max)):
            both = known.setdefault(field, {})
            _merge_chosen_amounts(both, _parse_amounts_to_nanos(item.get(field) or {}), choose)
        for field in ("default", "defaultRequest"):
            known[field] = {**(item.get(field) or {}), **known.get(field, {})}

    def of(self, kind: str) -> Body:
        """Return the item of a type (Container, Pod), or an empty one."""
        return self.items.get(kind, {})

    def above(self, kind: str, amounts: Nanos) -> list[str]:
        """Return the resources above the maximum."""
        most = self.of(kind).get("max") or {}
        return _list_greater_resources(amounts, most)

    def below(self, kind: str, amounts: Nanos) -> list[str]:
        """Return the resources below the minimum; resources without a request are not compared."""
        least = self.of(kind).get("min") or {}
        return _list_greater_resources(least, amounts)


def fill_limit_range_item_defaults(item: Body) -> Body:
    """Add the API server's defaults to a LimitRange item."""
    if item["type"] != "Container":
        return item
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    return {**item, "default": default, "defaultRequest": request}


def _list_greater_resources(one: Nanos, other: Nanos) -> list[str]:
    """Return the names in both for which the first is greater, compared as Kueue counts them."""
    return sorted(
        name
        for name, nano in one.items()
        if name in other and round_to_kueue_count(name, nano) > round_to_kueue_count(name, other[name])
    )


def refuse_workload_beyond_limit_ranges(pod_sets: Iterable[PodSet], ranges: LimitRanges) -> None:
    """Raise `NeverError` for requests above limits, else for amounts out of the bounds of the LimitRanges."""
    pods = list(pod_sets)
    _raise_resource_refusal(
        "resources validation failed",
        [said for at, one in enumerate(pods) for said in _find_pod_set_requests_above_limits(at, one)],
    )
    bounds = [
        said for at, one in enumerate(pods) for said in _find_pod_set_limit_range_breaches(at, one, ranges)
    ]
    _raise_resource_refusal("resources didn't satisfy LimitRange constraints", bounds)


def _raise_resource_refusal(what: str, said: list[str]) -> None:
    if said:
        listed = said[0] if len(said) == 1 else f"[{', '.join(dict.fromkeys(said))}]"
        raise NeverError(MISCONFIGURED, f"{what}: {listed}")


def _iterate_container_resources(at: int, pods: PodSet) -> Iterable[tuple[str, Body]]:
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(pods.spec[kind]):
            yield f"spec.podSets[{at}].template.spec.{kind}[{number}]", container["resources"]


def _find_pod_set_requests_above_limits(at: int, pods: PodSet) -> Iterable[str]:
    pairs = [*_iterate_container_resources(at, pods)]
    if pods.spec.get("resources"):
        pairs.append((f"spec.podSets[{at}].template.spec.resources", pods.spec["resources"]))
    for path, resources in pairs:
        names = _list_greater_resources(
            _parse_amounts_to_nanos(resources["requests"]), _parse_amounts_to_nanos(resources["limits"])
        )
        if names:
            yield _format_invalid_resources(path, names, "requests must not exceed its limits")


def _find_pod_set_limit_range_breaches(at: int, pods: PodSet, ranges: LimitRanges) -> Iterable[str]:
    above, below = (
        "requests must not be above the limitRange max",
        "requests must not be below the limitRange min",
    )
    for path, resources in _iterate_container_resources(at, pods):
        least, most = (
            _parse_amounts_to_nanos(resources["requests"]),
            _parse_amounts_to_nanos(resources["requests"]),
        )
        _merge_chosen_amounts(least, _parse_amounts_to_nanos(resources["limits"]), min)
        _merge_chosen_amounts(most, _parse_amounts_to_nanos(resources["limits"]), max)
        for names, words in (
            (ranges.above("Container", most), above),
            (ranges.below("Container", least), below),
        ):
            if names:
                yield _format_invalid_resources(path, names, words)
    total = _sum_workload_pod_requests(pods.spec)
    for names, words in ((ranges.above("Pod", total), above), (ranges.below("Pod", total), below)):
        if names:
            yield _format_invalid_resources(f"spec.podSets[{at}].template.spec", names, words)


def _format_invalid_resources(path: str, names: list[str], words: str) -> str:
    """Format a list of names as field.Invalid does."""
    listed = ",".join(f'"{name}"' for name in names)
    return f"{path}: Invalid value: [{listed}]: {words}"
