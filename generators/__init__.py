"""Generate Kubernetes objects from planned runs, tenants and sites: one module per kind of object.

A generator is a pure function: it reads no files and no clock, and uses no random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangplan.generators.alerts import generate_prometheus_rules
from gangplan.generators.common import TemplateRenderer, render_to_objects
from gangplan.generators.dashboards import generate_dashboards
from gangplan.generators.files import generate_run_files_config_map
from gangplan.generators.kueue import (
    generate_admission_checks,
    generate_cluster_queues,
    generate_cohorts,
    generate_resource_flavors,
    generate_topology,
)
from gangplan.generators.mpijob import generate_mpi_job
from gangplan.generators.network import generate_network_policies
from gangplan.generators.priorities import generate_priority_classes
from gangplan.generators.roles import generate_cluster_roles
from gangplan.generators.runtime import generate_training_runtime
from gangplan.generators.tenants import (
    generate_external_secrets,
    generate_local_queues,
    generate_persistent_volume_claims,
    generate_persistent_volumes,
    generate_resource_quota_and_limit_range,
    generate_tenant_namespace,
    generate_tenant_network_policies,
    generate_tenant_role_bindings,
    generate_training_service_account,
)
from gangplan.generators.trainjob import generate_train_job
from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body
from gangplan.plan import RunPlan


def _generate_schedule_objects(unit: RunPlan, write: TemplateRenderer) -> list[Body]:
    """Return the CronJob of a scheduled run; few jobs have a schedule."""
    if not unit.job.is_dated:
        return []
    from gangplan.generators.schedules import generate_cron_job

    return generate_cron_job(unit, write)


def _generate_claim_objects(unit: RunPlan, write: TemplateRenderer) -> list[Body]:
    """Return the ResourceClaimTemplates of a run; few pools have devices by claim."""
    if not unit.job.resources.claims:
        return []
    from gangplan.generators.claims import generate_resource_claim_templates

    return generate_resource_claim_templates(unit, write)


def _generate_waiting_objects(unit: RunPlan, write: TemplateRenderer) -> list[Body]:
    """Return the Job that creates the run once the runs before it are complete; few runs have one."""
    if unit.job.after is None:
        return []
    from gangplan.generators.after import generate_waiting_job

    return generate_waiting_job(unit, write)


def _generate_scheduler_objects(tenant: Tenant) -> list[Body]:
    """Return the account that schedules use, if the cluster has any schedules."""
    if not tenant.schedules:
        return []
    from gangplan.generators.schedules import generate_scheduler_account_and_access

    return generate_scheduler_account_and_access(tenant)


# Generators by the name of the backend, in the order in which their objects must be applied: the runtime
# before the job that names it (Trainer's webhook refuses the other order), the network policy before pods.
RunGenerator = Callable[[RunPlan, TemplateRenderer], list[Body]]
RUN_GENERATORS: dict[str, Mapping[str, RunGenerator]] = {
    TRAINJOB.name: {
        "network": generate_network_policies,
        "files": generate_run_files_config_map,
        "claims": _generate_claim_objects,
        "runtime": generate_training_runtime,
        "trainjob": generate_train_job,
        "schedule": _generate_schedule_objects,
        "after": _generate_waiting_objects,
    },
    # An MPIJob contains its pods, so there is no runtime.
    MPIJOB.name: {
        "network": generate_network_policies,
        "files": generate_run_files_config_map,
        "claims": _generate_claim_objects,
        "mpijob": generate_mpi_job,
    },
}
TENANT_GENERATORS: dict[str, Callable[[Tenant], list[Body]]] = {
    "namespace": generate_tenant_namespace,
    "quota": generate_resource_quota_and_limit_range,
    "isolation": generate_tenant_network_policies,
    "serviceaccount": generate_training_service_account,
    "access": generate_tenant_role_bindings,
    "secrets": generate_external_secrets,
    "volumes": generate_persistent_volumes,
    "claims": generate_persistent_volume_claims,
    "localqueue": generate_local_queues,
    "scheduler": _generate_scheduler_objects,
}
# Generators by the file in platform/. Permissions, priorities and queues of teams change independently.
PLATFORM_GENERATORS: dict[str, Mapping[str, Callable[[Site], list[Body]]]] = {
    "roles": {"roles": generate_cluster_roles},
    "priorities": {"priorities": generate_priority_classes},
    "queues": {
        "topology": generate_topology,
        "flavors": generate_resource_flavors,
        "cohorts": generate_cohorts,
        "admission-checks": generate_admission_checks,
        "cluster-queues": generate_cluster_queues,
    },
    "alerts": {"alerts": generate_prometheus_rules},
    "dashboards": {"dashboards": generate_dashboards},
}


def generate_run_objects(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return all objects of a run in the order in which they must be applied; `write` renders templates."""
    return [body for generate in RUN_GENERATORS[unit.job.made_of].values() for body in generate(unit, write)]


def generate_tenant_objects(tenant: Tenant) -> list[Body]:
    """Return all objects that a team needs on a cluster, in the order in which they must be applied."""
    return [body for generate in TENANT_GENERATORS.values() for body in generate(tenant)]


def generate_platform_objects(site: Site, file: str) -> list[Body]:
    """Return the objects of one file of a cluster's platform, in the order in which they must be applied."""
    return [body for generate in PLATFORM_GENERATORS[file].values() for body in generate(site)]
