"""The settings of Kueue's manager that a cluster file states."""

from __future__ import annotations

from gangplan.model.manager import UNCONFIGURED_MANAGER, ManagerSettings, Transformation
from gangplan.spec.cluster import Cluster


def manager_settings_of(cluster: Cluster) -> ManagerSettings:
    """Return the settings of the manager; `UNCONFIGURED_MANAGER` if the file states none that matter."""
    external = frozenset(name for name, check in cluster.admission_checks.items() if check.external)
    is_concurrent = any(team.concurrent_admission for team in cluster.teams.values())
    resources = cluster.kueue.resources
    classes = tuple(sorted(map_device_classes_to_resources(cluster).items()))
    if not external and not is_concurrent and resources is None and not classes:
        return UNCONFIGURED_MANAGER
    if resources is None:
        return ManagerSettings(external, is_concurrent, device_classes=classes)
    transformations = tuple(
        Transformation(
            name,
            tuple((output, factor.nano) for output, factor in sorted(stated.outputs.items())),
            stated.strategy == "Replace",
        )
        for name, stated in sorted(resources.transformations.items())
    )
    return ManagerSettings(
        external, is_concurrent, resources.exclude_resource_prefixes, transformations, classes
    )


def map_device_classes_to_resources(cluster: Cluster) -> dict[str, str]:
    """Return the resource under which quotas count the devices of each class that workers claim.

    Kueue's deviceClassMappings must say the same (Kueue v0.18.2 and v0.19.2, pkg/dra/claims.go).
    """
    return {
        rail.device_class: rail.resource
        for pool in cluster.node_pools.values()
        for rail in pool.rails
        if rail.device_class
    }
