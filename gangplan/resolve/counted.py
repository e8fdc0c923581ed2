"""Quotas as Kueue counts them if its manager excludes or transforms resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gangplan.kueue.units import NANO, quantity_format_of
from gangplan.model.manager import ManagerSettings
from gangplan.model.quantity import Quantity
from gangplan.model.site import FlavorQuota, QuotaAmount, Site, SiteQueue


def resolve_counted_site_quotas(site: Site) -> Site:
    """Return the site with the quotas to render: outputs of transformations replace their inputs."""
    manager = site.manager
    if manager.counts_as_written:
        return site
    covered = list_counted_resources(site.covered, manager)
    return replace(
        site,
        covered=covered,
        queues=tuple(
            replace(
                one,
                quotas=tuple(_resolve_counted_flavor_quota(quota, covered, manager) for quota in one.quotas),
            )
            for one in site.queues
        ),
        sweeps=tuple(_resolve_counted_sweep_queue(one, covered, manager) for one in site.sweeps),
        cohorts=tuple(
            replace(
                one,
                quotas=tuple(_resolve_counted_flavor_quota(quota, covered, manager) for quota in one.quotas),
            )
            for one in site.cohorts
        ),
    )


def _resolve_counted_sweep_queue(
    one: SiteQueue, covered: tuple[str, ...], manager: ManagerSettings
) -> SiteQueue:
    """Return the queue of a sweep with counted quotas; its quota of pods does not change."""
    quotas = tuple(
        replace(counts, amounts=(*counts.amounts, quota.amounts[-1]))
        for quota in one.quotas
        for counts in [
            _resolve_counted_flavor_quota(replace(quota, amounts=quota.amounts[:-1]), covered, manager)
        ]
    )
    return replace(one, quotas=quotas, covered=(*covered, one.covered[-1]))


def list_counted_resources(names: Iterable[str], manager: ManagerSettings) -> tuple[str, ...]:
    """Return the resources that quotas count instead of nodes' own: kept ones, then outputs by name."""
    known = [name for name in names if not manager.is_excluded(name)]
    rules = [rule for name in known if (rule := manager.of(name)) is not None]
    gone = {rule.resource for rule in rules if rule.replaces}
    outputs = sorted({output for rule in rules for output, _ in rule.outputs})
    return (*(name for name in known if name not in gone), *outputs)


def resolve_counted_amounts(amounts: Mapping[str, Quantity], manager: ManagerSettings) -> dict[str, Quantity]:
    """Convert amounts of nodes' resources to the amounts that quotas count."""
    covered = list_counted_resources(amounts, manager)
    made = dict.fromkeys(covered, 0) | {name: amounts[name].nano for name in covered if name in amounts}
    for name, amount in amounts.items():
        rule = None if manager.is_excluded(name) else manager.of(name)
        for output, factor in rule.outputs if rule else ():
            made[output] += amount.nano * factor // NANO
    return {
        name: amounts.get(name) or Quantity(nano, quantity_format_of(name)) for name, nano in made.items()
    }


def _resolve_counted_flavor_quota(
    quota: FlavorQuota, covered: tuple[str, ...], manager: ManagerSettings
) -> FlavorQuota:
    nominal = resolve_counted_amounts({one.resource: one.nominal for one in quota.amounts}, manager)
    borrow, lend = (
        resolve_counted_amounts(
            {one.resource: limit for one in quota.amounts if (limit := getattr(one, field))}, manager
        )
        for field in ("borrow", "lend")
    )
    has_borrow, has_lend = (
        any(getattr(one, field) is not None for one in quota.amounts) for field in ("borrow", "lend")
    )
    zero = Quantity(0)
    return replace(
        quota,
        amounts=tuple(
            QuotaAmount(
                name,
                nominal.get(name, zero),
                borrow.get(name, zero) if has_borrow else None,
                lend.get(name, zero) if has_lend else None,
            )
            for name in covered
        ),
    )
