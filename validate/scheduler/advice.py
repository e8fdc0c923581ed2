"""The smallest change that lets all pods find a node, found by asking again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape
from gangplan.validate.world import World

Good = Callable[[Fit], bool]
# Steps in which people write amounts: cores, GiB; devices one by one. Below one step: a tenth of it.
STEPS = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}


def fewer(world: World, pods: Sequence[PodShape], name: str, good: Good) -> int:
    """The most pods of a set with which the answer is good; 0 when there is no such number."""
    (count,) = [one.count for one in pods if one.name == name]
    return _most(count, lambda n: good(fit_pods(world, _with(pods, name, count=n))))


def less(world: World, pods: Sequence[PodShape], name: str, resource: str, good: Good) -> int:
    """The most of a resource per pod (thousandths of a core, bytes, devices) with which the answer is good.

    A multiple of a step that people write; 0 when no amount is small enough.
    """
    (need,) = [one.requests.get(resource, 0) for one in pods if one.name == name]
    step = STEPS.get(resource, 1)
    for grain in dict.fromkeys((step, max(1, step // 10))):

        def holds(number: int, grain: int = grain) -> bool:
            return good(fit_pods(world, _asking(pods, name, resource, number * grain)))

        found = _most(-(-need // grain), holds)
        if found:
            return found * grain
    return 0


def _most(above: int, holds: Callable[[int], bool]) -> int:
    """The greatest number from 1 to below `above` that something holds for, as for all smaller ones."""
    low, high = 0, above - 1
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low if low and holds(low) else 0


def _with(pods: Sequence[PodShape], name: str, count: int) -> list[PodShape]:
    return [replace(one, count=count) if one.name == name else one for one in pods]


def _asking(pods: Sequence[PodShape], name: str, resource: str, amount: int) -> list[PodShape]:
    return [
        replace(one, requests={**one.requests, resource: amount}) if one.name == name else one for one in pods
    ]
