"""The search for topology domains of one pod set, as in Kueue's scheduler.

Source: Kueue v0.19.2 pkg/cache/scheduler/tas_flavor_snapshot.go (findTopologyAssignment,
findLevelWithFitDomains, updateCountsToMinimumGeneric, consumeWithLeadersGeneric), compared with v0.15.2 and
v0.18.2, which differ only in the choice of domains for a leader pod. Feature gates have their defaults: no
balanced placement, preferred node affinity is ignored, least free capacity first for unconstrained requests
(TASProfileMixed, since 0.15).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gangplan.records import dataclass
from gangplan.validate.kueue.counting import (
    ExcludedNodes,
    PlacedShape,
    Slices,
    TakenAmounts,
    fill_topology_domain_counts,
    record_pods_on_topology_leaf,
)
from gangplan.validate.kueue.domains import TopologyDomain, TopologyTree


@dataclass(frozen=True, slots=True)
class TopologySearch:
    """A search for `count` pods in slices at `level`, which is required or just the first to be tried."""

    count: int
    level: int
    slices: Slices
    required: bool
    unconstrained: bool
    leaders: int
    layers: tuple[tuple[str, int], ...] = ()


class PlacementError(Exception):
    """The pods do not fit; `message` is Kueue's message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def place_pod_set_in_topology(
    tree: TopologyTree, search: TopologySearch, shape: PlacedShape, taken: TakenAmounts
) -> list[tuple[TopologyDomain, int, int]]:
    """Return (leaf, pods, leader pods) and record them in `taken`.

    Raises `PlacementError` if they do not fit.
    """
    stats = fill_topology_domain_counts(tree, shape, search.slices, taken)
    level, found = _find_fitting_topology_level(tree, search, search.level, stats)
    found = _select_fewest_topology_domains(
        found, search, search.count, search.leaders, search.slices.size, in_slices=True
    )
    last = len(tree.levels) - 1
    while level < min(last, search.slices.level):
        below = _sort_topology_domains([child for domain in found for child in domain.children], search)
        found = _select_fewest_topology_domains(
            below, search, search.count, search.leaders, search.slices.size, in_slices=True
        )
        level += 1
    while level < last:
        size = 1 if level < search.slices.level else search.slices.inner.get(level + 1, 1)
        found = [
            leaf for domain in found for leaf in _place_pods_in_topology_subdomains(domain, search, size)
        ]
        level += 1
    placed = [(leaf, leaf.pods, leaf.leaders) for leaf in found]
    for leaf, pods, leaders in placed:
        record_pods_on_topology_leaf(tree, taken, leaf, shape.each, pods)
        if leaders and shape.leader is not None:
            record_pods_on_topology_leaf(tree, taken, leaf, shape.leader, leaders)
    return placed


def _place_pods_in_topology_subdomains(
    domain: TopologyDomain, search: TopologySearch, size: int
) -> list[TopologyDomain]:
    """Spread the pods of a domain over the domains below it."""
    below = _sort_topology_domains(domain.children, search)
    if size > 1:
        for one in below:
            one.slices, one.slices_led = one.pods // size, one.pods_led // size
    return _select_fewest_topology_domains(
        below, search, domain.pods, domain.leaders, size, in_slices=size > 1
    )


def _sort_topology_domains(domains: Iterable[TopologyDomain], search: TopologySearch) -> list[TopologyDomain]:
    sign = 1 if search.unconstrained else -1
    return sorted(domains, key=lambda one: (sign * one.slices, one.pods, one.values))


def _sort_domains_for_leaders(
    domains: Iterable[TopologyDomain], search: TopologySearch
) -> list[TopologyDomain]:
    sign = 1 if search.unconstrained else -1
    return sorted(domains, key=lambda one: (-one.leaders, sign * one.slices_led, one.pods_led, one.values))


def _find_fitting_topology_level(
    tree: TopologyTree, search: TopologySearch, level: int, stats: ExcludedNodes
) -> tuple[int, list[TopologyDomain]]:
    """Return the level at which the pods fit, and the domains there."""
    if not tree.by_level[level]:
        raise PlacementError(f"no topology domains at level: {tree.levels[level]}")
    domains = _sort_domains_for_leaders(tree.by_level[level], search)
    count = search.count // search.slices.size
    top = domains[0]
    fits = top.slices_led >= count and top.leaders >= search.leaders
    if fits and not search.unconstrained:
        top = _find_tightest_topology_domain(domains, count, search.leaders, in_slices=True)
    if search.unconstrained:
        for one in domains:
            room = one.slices_led if search.leaders else one.slices
            if one.leaders >= search.leaders and room >= count:
                return level, [one]
        if search.required:
            raise PlacementError(
                _describe_topology_shortage(tree, search, level, domains[-1].pods, count, stats)
            )
    if top.slices_led >= count and top.leaders >= search.leaders:
        return level, [top]
    if search.required:
        raise PlacementError(_describe_topology_shortage(tree, search, level, top.slices, count, stats))
    if level > 0 and not search.unconstrained:
        return _find_fitting_topology_level(tree, search, level - 1, stats)
    return level, _combine_topology_domains(tree, search, level, domains, count, stats)


def _combine_topology_domains(
    tree: TopologyTree,
    search: TopologySearch,
    level: int,
    domains: list[TopologyDomain],
    count: int,
    stats: ExcludedNodes,
) -> list[TopologyDomain]:
    """Return several domains that fit the pods together, those of the leaders first."""
    domains = _put_leader_topology_domain_first(
        domains, search.count, search.leaders, search.slices.size, in_slices=True
    )
    results: list[TopologyDomain] = []
    left, leaders, at = count, search.leaders, 0
    while leaders > 0 and at < len(domains) and domains[at].leaders > 0:
        one = domains[at]
        if not search.unconstrained and one.slices_led >= left:
            one = _find_tightest_topology_domain(domains[at:], left, leaders, in_slices=True)
        results.append(one)
        leaders -= one.leaders
        left -= one.slices_led
        at += 1
    if leaders > 0:
        raise PlacementError(
            _describe_topology_shortage(tree, search, level, search.leaders - leaders, count, stats)
        )
    rest = _sort_topology_domains(domains[at:], search)
    for at, one in enumerate(rest):
        if left <= 0:
            break
        if not search.unconstrained and one.slices >= left:
            one = _find_tightest_topology_domain(rest[at:], left, 0, in_slices=True)
        results.append(one)
        left -= one.slices
    if left > 0:
        raise PlacementError(_describe_topology_shortage(tree, search, level, count - left, count, stats))
    return results


def _find_tightest_topology_domain(
    domains: Sequence[TopologyDomain], needed: int, leaders: int, *, in_slices: bool
) -> TopologyDomain:
    """Return the domain with the least sufficient room, or the first if no domain has enough."""
    best, room = domains[0], 0
    for one in domains:
        if one.leaders < leaders:
            continue
        if in_slices:
            have = one.slices_led if leaders else one.slices
        else:
            have = one.pods_led if leaders else one.pods
        if have >= needed and (not room or have < room):
            best, room = one, have or 1
    return best


def _put_leader_topology_domain_first(
    domains: list[TopologyDomain], count: int, leaders: int, size: int, *, in_slices: bool
) -> list[TopologyDomain]:
    """Move the first domain that takes the leaders and leaves room for the rest to the front (0.19)."""
    if not leaders or len(domains) < 2:
        return domains
    needed = count // size if in_slices else count
    room = sum(one.slices if in_slices else one.pods for one in domains)
    for at, one in enumerate(domains):
        loss = one.slices - one.slices_led if in_slices else one.pods - one.pods_led
        if one.leaders >= leaders and room - loss >= needed:
            return [one, *domains[:at], *domains[at + 1 :]]
    return domains


def _select_fewest_topology_domains(
    domains: list[TopologyDomain],
    search: TopologySearch,
    count: int,
    leaders: int,
    size: int,
    *,
    in_slices: bool,
) -> list[TopologyDomain]:
    """Return the fewest domains that suffice, with their counts set to what each takes."""
    domains = _put_leader_topology_domain_first(domains, count, leaders, size, in_slices=in_slices)
    result: list[TopologyDomain] = []
    left = count // size if in_slices else count
    unit = size if in_slices else 1
    for at, one in enumerate(domains):
        if leaders > 0:
            led = one.slices_led if in_slices else one.pods_led
            if not search.unconstrained and led >= left and one.leaders >= leaders:
                one = _find_tightest_topology_domain(domains[at:], left, leaders, in_slices=in_slices)
                led = one.slices_led if in_slices else one.pods_led
            is_last = led >= left and one.leaders >= leaders
            takes, one.leaders = min(led, left), min(one.leaders, leaders)
            leaders -= one.leaders
        else:
            room = one.slices if in_slices else one.pods
            if not search.unconstrained and room >= left:
                one = _find_tightest_topology_domain(domains[at:], left, 0, in_slices=in_slices)
                room = one.slices if in_slices else one.pods
            is_last, takes, one.leaders = room >= left, min(room, left), 0
        one.pods = takes * unit
        if in_slices:
            one.slices = takes
        left -= takes
        result.append(one)
        if is_last:
            return result
    return result


def _describe_topology_shortage(
    tree: TopologyTree, search: TopologySearch, level: int, fit: int, count: int, stats: ExcludedNodes
) -> str:
    if len(search.layers) > 1:
        return _describe_layered_topology_shortage(tree, search, level, stats)
    unit = "pod" if search.slices.size == 1 else "slice"
    if fit == 0:
        said = f"doesn't allow to fit any of {count} {unit}(s)"
    else:
        said = f"allows to fit only {fit} out of {count} {unit}(s)"
    return f'topology "{tree.topology}" {said}{stats.text()}'


def _describe_layered_topology_shortage(
    tree: TopologyTree, search: TopologySearch, level: int, stats: ExcludedNodes
) -> str:
    best = min(tree.by_level[level], key=lambda one: (-one.slices, one.values))
    said = f'topology "{tree.topology}" doesn\'t allow to fit'
    for label, size in search.layers:
        fit = _count_slices_below(best, tree.levels.index(label) - level, size)
        said += f"; {fit}/{search.count // size} slice(s) fit on level {label}"
    return said + stats.text()


def _count_slices_below(domain: TopologyDomain, depth: int, size: int) -> int:
    if depth <= 0:
        return domain.pods // size
    return sum(_count_slices_below(child, depth - 1, size) for child in domain.children)
