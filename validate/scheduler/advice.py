"""Searches for the smallest change with which all pods find a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape
from gangplan.validate.world import World

Good = Callable[[Fit], bool]
# Steps in which people write amounts: cores, GiB, single devices. Amounts below one step use a tenth of it.
STEPS = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}


def find_largest_pod_count_fitting_nodes(
    world: World, pods: Sequence[PodShape], name: str, good: Good
) -> int:
    """Return the largest number of pods of a pod set for which `good` is true, or 0."""
    (count,) = [one.count for one in pods if one.name == name]
    return _find_largest_that_holds(
        count, lambda n: good(fit_pods(world, _replace_pod_count(pods, name, count=n)))
    )


def find_largest_pod_request_fitting_nodes(
    world: World, pods: Sequence[PodShape], name: str, resource: str, good: Good
) -> int:
    """Return the largest request per pod (thousandths of a core, bytes, devices) for which `good` is true.

    The result is a multiple of a step that people write, or 0 if no amount is small enough.
    """
    (need,) = [one.requests.get(resource, 0) for one in pods if one.name == name]
    step = STEPS.get(resource, 1)
    for grain in dict.fromkeys((step, max(1, step // 10))):

        def holds(number: int, grain: int = grain) -> bool:
            return good(fit_pods(world, _replace_pod_request(pods, name, resource, number * grain)))

        found = _find_largest_that_holds(-(-need // grain), holds)
        if found:
            return found * grain
    return 0


def _find_largest_that_holds(above: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number below `above` for which a monotonic condition holds, or 0."""
    low, high = 0, above - 1
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low if low and holds(low) else 0


def _replace_pod_count(pods: Sequence[PodShape], name: str, count: int) -> list[PodShape]:
    return [replace(one, count=count) if one.name == name else one for one in pods]


def _replace_pod_request(pods: Sequence[PodShape], name: str, resource: str, amount: int) -> list[PodShape]:
    return [
        replace(one, requests={**one.requests, resource: amount}) if one.name == name else one for one in pods
    ]
