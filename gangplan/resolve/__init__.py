"""Specs and workspace in, jobs out: defaults applied, names looked up, every value's origin kept."""

from gangplan.resolve.job import resolve, target_clusters
from gangplan.resolve.site import resolve_site
from gangplan.resolve.tenant import resolve_tenants

__all__ = ["resolve", "resolve_site", "resolve_tenants", "target_clusters"]
