"""Checks of resources that Kueue's manager counts: every pool keeps a quota, and nothing is stated in vain."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.counted import list_counted_resources
from gangplan.resolve.shares import find_measure, list_resources_of_cluster_pools
from gangplan.rules.queues import COUNTING_UNUSED, OUTPUT_NOT_ITS_OWN, QUOTA_NOT_COUNTED
from gangplan.spec.admission import ManagedResources, UsageSharing
from gangplan.spec.manager import manager_settings_of
from gangplan.spec.near import suggest_nearest


def check_cluster_file_counted_resources(notes: ClusterCheck, stated: ManagedResources) -> None:
    """Check kueue.resources."""
    path: FieldPath = ("kueue", "resources")
    offered = list_resources_of_cluster_pools(notes.spec)
    manager = manager_settings_of(notes.spec)
    for index, prefix in enumerate(stated.exclude_resource_prefixes):
        if not any(name.startswith(prefix) for name in offered):
            notes.report(
                COUNTING_UNUSED,
                (*path, "excludeResourcePrefixes", index),
                f"no pool offers a resource that begins with '{prefix}'",
                "Remove it, unless pods outside of runs ask for such resources.",
            )
    for name, rule in stated.transformations.items():
        at: FieldPath = (*path, "transformations", name)
        if name not in offered or manager.is_excluded(name):
            why = "is excluded" if name in offered else "is offered by no pool"
            notes.report(COUNTING_UNUSED, at, f"{name} {why}, so this never applies", "Remove it.", key=True)
        for output in rule.outputs:
            if output in offered or output in stated.transformations:
                notes.report(
                    OUTPUT_NOT_ITS_OWN,
                    (*at, "outputs", output),
                    f"{output} is a resource of its own that pods ask for",
                    "Choose a name that no node and no pod has, such as example.com/credits.",
                    key=True,
                )
    for name, pool in notes.spec.node_pools.items():
        if not list_counted_resources((find_measure(pool),), manager):
            notes.report(
                QUOTA_NOT_COUNTED,
                path,
                f"quotas of pool '{name}' are shares of its {find_measure(pool)}, which Kueue does not count: runs"
                " would be admitted without limit and wait for nodes",
                f"Count {find_measure(pool)}, or another resource in its place.",
                key=True,
            )


def check_cluster_file_usage_weights(notes: ClusterCheck, stated: UsageSharing) -> None:
    """Check that quota counts each resource that kueue.admissionFairSharing gives a weight.

    Kueue adds up what a queue used of what its quota counts, and looks weights up by these names
    (`CalculateUsage` of pkg/util/admissionfairsharing). `pods` are counted in queues of sweeps.
    """
    offered, manager = list_resources_of_cluster_pools(notes.spec), manager_settings_of(notes.spec)
    counted = list_counted_resources(offered, manager)
    for name in stated.resource_weights:
        if name not in (*counted, "pods"):
            notes.report(
                COUNTING_UNUSED,
                ("kueue", "admissionFairSharing", "resourceWeights", name),
                f"no quota counts {name}, so its weight never applies",
                suggest_nearest(name, counted),
                key=True,
            )
