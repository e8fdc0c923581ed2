"""The most that a queue can ever get, by Kueue's own arithmetic."""

from __future__ import annotations

from gangplan.kueue.model import FlavorResource, Member
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import MOST_INT64, NANO, quantity_format_of
from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.site import Site, SiteCohort, SiteQueue


def resolve_queue_maximum_by_flavor(site: Site) -> dict[str, dict[str, dict[str, Quantity]]]:
    """Return the most that each queue can ever admit at once: queue -> flavor -> resource -> amount."""
    tree = _build_site_quota_tree(site)
    most: dict[str, dict[str, dict[str, Quantity]]] = {}
    for queue in site.queues:
        most[queue.name] = {
            quota.flavor: {
                resource: _build_resource_quantity(resource, tree.most(queue.name, (quota.flavor, resource)))
                for resource in site.covered
            }
            for quota in queue.quotas
        }
    return most


def sum_site_quotas_over_flavors(by_flavor: dict[str, dict[str, Quantity]]) -> dict[str, Quantity]:
    """Return one queue's amounts summed over all of its flavors."""
    total: dict[str, Quantity] = {}
    for amounts in by_flavor.values():
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, ZERO) + amount
    return total


def _build_resource_quantity(resource: str, nano: int) -> Quantity:
    return Quantity(nano, quantity_format_of(resource))


def _build_site_quota_tree(site: Site) -> QuotaTree:
    """Return the quota tree of a site in billionths; an unknown parent counts as no parent."""
    known = {cohort.name for cohort in site.cohorts}
    queues = [
        _build_site_quota_tree_member(one, one.cohort if one.cohort in known else "") for one in site.queues
    ]
    cohorts = [
        _build_site_quota_tree_member(one, one.parent if one.parent in known else "") for one in site.cohorts
    ]
    return QuotaTree(queues, cohorts, MOST_INT64 * NANO)


def _build_site_quota_tree_member(one: SiteQueue | SiteCohort, parent: str) -> Member:
    nominal: dict[FlavorResource, int] = {}
    borrowing: dict[FlavorResource, int] = {}
    lending: dict[FlavorResource, int] = {}
    for quota in one.quotas:
        for amount in quota.amounts:
            key = quota.flavor, amount.resource
            nominal[key] = amount.nominal.nano
            if amount.borrow is not None:
                borrowing[key] = amount.borrow.nano
            if amount.lend is not None:
                lending[key] = amount.lend.nano
    return Member(one.name, parent, nominal, borrowing, lending)
