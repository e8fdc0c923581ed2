"""Units and tenants in, Kubernetes objects out: one module per kind of thing emitted.

A generator is a function from a unit (or a tenant) to objects; it is pure: no file, no clock, no chance.
"""

from __future__ import annotations

from collections.abc import Callable

from gangplan.generators.access import access
from gangplan.generators.alerts import alerts
from gangplan.generators.claims import claims
from gangplan.generators.dashboards import dashboards
from gangplan.generators.isolation import isolation
from gangplan.generators.kueue import admission_checks, cluster_queues, cohorts, flavors, topology
from gangplan.generators.localqueue import local_queue
from gangplan.generators.namespace import namespace
from gangplan.generators.network import network_policies
from gangplan.generators.priorities import priorities
from gangplan.generators.quota import quota
from gangplan.generators.roles import roles
from gangplan.generators.runtime import training_runtime
from gangplan.generators.secrets import secrets
from gangplan.generators.serviceaccount import service_account
from gangplan.generators.trainjob import train_job
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body
from gangplan.plan import Unit

# In the order in which they must be applied: the runtime before the job that names it (Trainer's webhook
# refuses the other order), and the policy before the pods exist.
RUN_GENERATORS: dict[str, Callable[[Unit], list[Body]]] = {
    "network": network_policies,
    "runtime": training_runtime,
    "trainjob": train_job,
}
TENANT_GENERATORS: dict[str, Callable[[Tenant], list[Body]]] = {
    "namespace": namespace,
    "quota": quota,
    "isolation": isolation,
    "serviceaccount": service_account,
    "access": access,
    "secrets": secrets,
    "claims": claims,
    "localqueue": local_queue,
}
PLATFORM_GENERATORS: dict[str, Callable[[Site], list[Body]]] = {
    "priorities": priorities,
    "roles": roles,
    "topology": topology,
    "flavors": flavors,
    "cohorts": cohorts,
    "admission-checks": admission_checks,
    "cluster-queues": cluster_queues,
    "alerts": alerts,
    "dashboards": dashboards,
}


def run_objects(unit: Unit) -> list[Body]:
    """All objects of one run, in the order in which they must be applied."""
    return [body for generate in RUN_GENERATORS.values() for body in generate(unit)]


def tenant_objects(tenant: Tenant) -> list[Body]:
    """All objects that a team needs on a cluster, in the order in which they must be applied."""
    return [body for generate in TENANT_GENERATORS.values() for body in generate(tenant)]


def platform_objects(site: Site) -> list[Body]:
    """All cluster-scoped objects of a cluster, in the order in which they must be applied."""
    return [body for generate in PLATFORM_GENERATORS.values() for body in generate(site)]
