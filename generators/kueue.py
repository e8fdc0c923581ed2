"""Kueue's cluster-scoped objects: topology, flavors, cohorts, admission checks and one queue per team.

Defaults that the API server would persist are written out, so that Git and cluster agree byte for byte.
"""

from __future__ import annotations

from typing import Any

from gangplan.generators.common import KUEUE_API, generate_platform_annotations, render_to_objects
from gangplan.model import syncing
from gangplan.model.site import Site
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve.counted import resolve_counted_site_quotas

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class CheckReference:
    """An admission check; if `kind` is set, an object of that kind and the same name has its parameters."""

    name: str
    controller: str
    kind: str = ""


def generate_topology(site: Site) -> list[Body]:
    """Return the topology, if any pool uses it for placement."""
    if site.topology is None:
        return []
    return _render_kueue_objects(site, "platform/topology.yaml.j2", "Topology", topology=site.topology)


def generate_resource_flavors(site: Site) -> list[Body]:
    """Return one flavor per node pool, without tolerations.

    Kueue up to 0.19 replaces the pod's own tolerations by the flavor's (kueue#15161), and our pods tolerate
    the taints of their pool.
    """
    return [
        body
        for flavor in site.flavors
        for body in _render_kueue_objects(site, "platform/flavor.yaml.j2", "ResourceFlavor", flavor=flavor)
    ]


def generate_cohorts(site: Site) -> list[Body]:
    """Return the cohorts.

    Kueue would accept implicit cohorts, but a name without an object cannot be checked.
    """
    site = resolve_counted_site_quotas(site)
    made_for_sweeps = {queue.cohort for queue in site.sweeps}
    return [
        body
        for cohort in site.cohorts
        for body in _render_kueue_objects(
            site, "platform/cohort.yaml.j2", "Cohort", cohort.name not in made_for_sweeps, cohort=cohort
        )
    ]


def generate_admission_checks(site: Site) -> list[Body]:
    """Return the checks for growing pools, for dispatch to worker clusters, and those that the file names."""
    bodies: list[Body] = []
    for item in site.provisioning:
        check = CheckReference(item.name, PROVISIONING, "ProvisioningRequestConfig")
        bodies += _render_kueue_objects(
            site, "platform/provisioning.yaml.j2", "ProvisioningRequestConfig", provisioning=item
        )
        bodies += _render_kueue_objects(
            site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check
        )
    for name, controller in site.controllers:
        check = CheckReference(name, controller)
        bodies += _render_kueue_objects(
            site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check
        )
    if site.workers:
        check = CheckReference("multikueue", MULTIKUEUE, "MultiKueueConfig")
        for worker in site.workers:
            bodies += _render_kueue_objects(
                site, "platform/multikueuecluster.yaml.j2", "MultiKueueCluster", worker=worker
            )
        bodies += _render_kueue_objects(
            site,
            "platform/multikueueconfig.yaml.j2",
            "MultiKueueConfig",
            name=check.name,
            workers=site.workers,
        )
        bodies += _render_kueue_objects(
            site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check
        )
    return bodies


def generate_cluster_queues(site: Site) -> list[Body]:
    """Return one queue per team and per sweep, open to the team's own namespace only."""
    site = resolve_counted_site_quotas(site)
    return [
        body
        for queue in (*site.queues, *site.sweeps)
        for body in _render_kueue_objects(
            site, "platform/clusterqueue.yaml.j2", "ClusterQueue", queue not in site.sweeps, queue=queue
        )
    ]


def _render_kueue_objects(
    site: Site, template: str, kind: str, is_confirmed: bool = True, **values: Any
) -> list[Body]:
    # Removing one of these objects from Git stops the runs that use it, so a person has to confirm. Until
    # then, Argo CD applies nothing of the platform, so what leaves with a sweep whose runs are over does not
    # ask (v3.5.1, gitops-engine, sync_context.go); Kueue keeps a queue until no run holds quota in it.
    confirmed = syncing.build_confirmed_annotations() if is_confirmed else {}
    annotations = (*confirmed.items(), *generate_platform_annotations(site, kind))
    shared = {"kueue_api": KUEUE_API, "annotations": annotations, "site": site}
    return render_to_objects(template, {**shared, **values})
