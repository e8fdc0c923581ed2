"""Kueue's cluster-scoped objects: topology, flavors, cohorts, admission checks and one queue per team.

Defaults that the API server would persist are written out, so that Git and cluster agree byte for byte.
"""

from __future__ import annotations

from typing import Any

from gangplan.generators.common import KUEUE_API, objects_of, site_annotations
from gangplan.model import syncing
from gangplan.model.site import Site
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve.counted import counted

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """An admission check; its parameters are an object of the same name, of a kind that may be empty."""

    name: str
    controller: str
    kind: str = ""


def topology(site: Site) -> list[Body]:
    """The topology, where some pool is placed by it."""
    if site.topology is None:
        return []
    return _objects(site, "platform/topology.yaml.j2", "Topology", topology=site.topology)


def flavors(site: Site) -> list[Body]:
    """One flavor per node pool. Without tolerations: Kueue up to 0.19 puts a flavor's in the place of the
    pod's own (kueue#15161), and our pods carry what their pool's taints ask for."""
    return [
        body
        for flavor in site.flavors
        for body in _objects(site, "platform/flavor.yaml.j2", "ResourceFlavor", flavor=flavor)
    ]


def cohorts(site: Site) -> list[Body]:
    """The cohorts; an implicit one would do, but a name without an object cannot be checked."""
    site = counted(site)
    return [
        body
        for cohort in site.cohorts
        for body in _objects(site, "platform/cohort.yaml.j2", "Cohort", cohort=cohort)
    ]


def admission_checks(site: Site) -> list[Body]:
    """Checks for pools that grow, for handing runs to worker clusters, and those that the file names."""
    bodies: list[Body] = []
    for item in site.provisioning:
        check = AdmissionCheck(item.name, PROVISIONING, "ProvisioningRequestConfig")
        bodies += _objects(
            site, "platform/provisioning.yaml.j2", "ProvisioningRequestConfig", provisioning=item
        )
        bodies += _objects(site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check)
    for name, controller in site.controllers:
        check = AdmissionCheck(name, controller)
        bodies += _objects(site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check)
    if site.workers:
        check = AdmissionCheck("multikueue", MULTIKUEUE, "MultiKueueConfig")
        for worker in site.workers:
            bodies += _objects(site, "platform/multikueuecluster.yaml.j2", "MultiKueueCluster", worker=worker)
        bodies += _objects(
            site,
            "platform/multikueueconfig.yaml.j2",
            "MultiKueueConfig",
            name=check.name,
            workers=site.workers,
        )
        bodies += _objects(site, "platform/admissioncheck.yaml.j2", "AdmissionCheck", check=check)
    return bodies


def cluster_queues(site: Site) -> list[Body]:
    """One queue per team and per sweep, open to the team's own namespace only."""
    site = counted(site)
    return [
        body
        for queue in (*site.queues, *site.sweeps)
        for body in _objects(site, "platform/clusterqueue.yaml.j2", "ClusterQueue", queue=queue)
    ]


def _objects(site: Site, template: str, kind: str, **values: Any) -> list[Body]:
    # Removing one of these from Git stops runs that use it: a person has to confirm.
    annotations = (*syncing.of_confirmed().items(), *site_annotations(site, kind))
    shared = {"kueue_api": KUEUE_API, "annotations": annotations, "site": site}
    return objects_of(template, {**shared, **values})
