"""Units and tenants in, Kubernetes objects out: one module per kind of thing emitted.

A generator is a function from a unit (or a tenant) to objects; it is pure: no file, no clock, no chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangplan.generators.alerts import alerts
from gangplan.generators.common import Writer, objects_of
from gangplan.generators.dashboards import dashboards
from gangplan.generators.files import run_files
from gangplan.generators.kueue import admission_checks, cluster_queues, cohorts, flavors, topology
from gangplan.generators.mpijob import mpi_job
from gangplan.generators.network import network_policies
from gangplan.generators.priorities import priorities
from gangplan.generators.roles import roles
from gangplan.generators.runtime import training_runtime
from gangplan.generators.tenants import (
    access,
    claims,
    isolation,
    local_queues,
    namespace,
    persistent_volumes,
    quota,
    secrets,
    service_account,
)
from gangplan.generators.trainjob import train_job
from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body
from gangplan.plan import Unit


def _schedule(unit: Unit, write: Writer) -> list[Body]:
    """What starts runs by itself; few jobs have it."""
    if not unit.job.is_dated:
        return []
    from gangplan.generators.schedules import cron_job

    return cron_job(unit, write)


def _waiting(unit: Unit, write: Writer) -> list[Body]:
    """What creates the run once others are complete; few runs come after any."""
    if unit.job.after is None:
        return []
    from gangplan.generators.after import waiting_job

    return waiting_job(unit, write)


def _scheduler(tenant: Tenant) -> list[Body]:
    """The account that schedules use, where the cluster has any."""
    if not tenant.schedules:
        return []
    from gangplan.generators.schedules import scheduler

    return scheduler(tenant)


# By the name of the backend, in the order in which they must be applied: the runtime before the job that
# names it (Trainer's webhook refuses the other order), and the policy before the pods exist.
RunGenerator = Callable[[Unit, Writer], list[Body]]
RUN_GENERATORS: dict[str, Mapping[str, RunGenerator]] = {
    TRAINJOB.name: {
        "network": network_policies,
        "files": run_files,
        "runtime": training_runtime,
        "trainjob": train_job,
        "schedule": _schedule,
        "after": _waiting,
    },
    # Its pods are in it, so that there is no runtime.
    MPIJOB.name: {"network": network_policies, "files": run_files, "mpijob": mpi_job},
}
TENANT_GENERATORS: dict[str, Callable[[Tenant], list[Body]]] = {
    "namespace": namespace,
    "quota": quota,
    "isolation": isolation,
    "serviceaccount": service_account,
    "access": access,
    "secrets": secrets,
    "volumes": persistent_volumes,
    "claims": claims,
    "localqueue": local_queues,
    "scheduler": _scheduler,
}
# By the file in platform/: who may do what, who goes first, and what teams get change apart.
PLATFORM_GENERATORS: dict[str, Mapping[str, Callable[[Site], list[Body]]]] = {
    "roles": {"roles": roles},
    "priorities": {"priorities": priorities},
    "queues": {
        "topology": topology,
        "flavors": flavors,
        "cohorts": cohorts,
        "admission-checks": admission_checks,
        "cluster-queues": cluster_queues,
    },
    "alerts": {"alerts": alerts},
    "dashboards": {"dashboards": dashboards},
}


def run_objects(unit: Unit, write: Writer = objects_of) -> list[Body]:
    """All objects of one run, in the order in which they must be applied; `write` makes them of templates."""
    return [body for generate in RUN_GENERATORS[unit.job.made_of].values() for body in generate(unit, write)]


def tenant_objects(tenant: Tenant) -> list[Body]:
    """All objects that a team needs on a cluster, in the order in which they must be applied."""
    return [body for generate in TENANT_GENERATORS.values() for body in generate(tenant)]


def platform_objects(site: Site, file: str) -> list[Body]:
    """The objects of one file of a cluster's platform, in the order in which they must be applied."""
    return [body for generate in PLATFORM_GENERATORS[file].values() for body in generate(site)]
