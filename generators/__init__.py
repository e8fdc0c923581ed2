"""Generate Kubernetes objects from planned runs, tenants and sites: one module per kind of object.

A generator is a pure function: it reads no files and no clock, and uses no random numbers.
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
    """Return the CronJob of a scheduled run; few jobs have a schedule."""
    if not unit.job.is_dated:
        return []
    from gangplan.generators.schedules import cron_job

    return cron_job(unit, write)


def _waiting(unit: Unit, write: Writer) -> list[Body]:
    """Return the Job that creates the run once the runs before it are complete; few runs have one."""
    if unit.job.after is None:
        return []
    from gangplan.generators.after import waiting_job

    return waiting_job(unit, write)


def _scheduler(tenant: Tenant) -> list[Body]:
    """Return the account that schedules use, if the cluster has any schedules."""
    if not tenant.schedules:
        return []
    from gangplan.generators.schedules import scheduler

    return scheduler(tenant)


# Generators by the name of the backend, in the order in which their objects must be applied: the runtime
# before the job that names it (Trainer's webhook refuses the other order), the network policy before pods.
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
    # An MPIJob contains its pods, so there is no runtime.
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
# Generators by the file in platform/. Permissions, priorities and queues of teams change independently.
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
    """Return all objects of a run in the order in which they must be applied; `write` renders templates."""
    return [body for generate in RUN_GENERATORS[unit.job.made_of].values() for body in generate(unit, write)]


def tenant_objects(tenant: Tenant) -> list[Body]:
    """Return all objects that a team needs on a cluster, in the order in which they must be applied."""
    return [body for generate in TENANT_GENERATORS.values() for body in generate(tenant)]


def platform_objects(site: Site, file: str) -> list[Body]:
    """Return the objects of one file of a cluster's platform, in the order in which they must be applied."""
    return [body for generate in PLATFORM_GENERATORS[file].values() for body in generate(site)]
