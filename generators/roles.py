"""ClusterRoles of the personas: what each may do in a namespace where a RoleBinding grants it.

A ClusterRole grants nothing by itself; gangplan binds these only in a team's own namespace (tenants.py). None
has a wildcard, reads or writes Secrets, or may grant rights (bind, escalate, impersonate). Three of them are
also aggregated into the built-in view, edit and admin roles, so that members of a project see and create runs
as they do Jobs (founding requirements).
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from gangplan.generators.common import LABEL_PREFIX, generate_platform_annotations, render_to_objects
from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.model.job import Platform
from gangplan.model.kinds import RENDERED_KINDS
from gangplan.model.site import Site
from gangplan.objects import Body
from gangplan.records import dataclass

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleShape:
    """A ClusterRole; `joins` is the built-in role that it is aggregated into."""

    name: str
    meaning: str
    rules: tuple[Permission, ...]
    joins: str = ""


def generate_cluster_roles(site: Site) -> list[Body]:
    """Return the ClusterRoles of a cluster."""
    found = generate_cluster_role_values(site.platform, site.is_gitops_only)
    if site.has_cronjobs:
        found.append(SCHEDULER)
    return [body for role in found for body in _render_cluster_role(site, role)]


def generate_cluster_role_values(platform: Platform, is_gitops_only: bool = False) -> list[RoleShape]:
    """Return the roles as values; each but the debugger's includes the one before it.

    If runs come from Git alone, no role writes runs: a role aggregated into the built-in edit or admin would
    let everyone with that built-in role write them.
    """
    viewer = (
        *_generate_job_permissions_of_cluster_role(platform, READ),
        *_generate_watch_permissions_of_cluster_role(platform),
    )
    creator = (
        *_generate_job_permissions_of_cluster_role(platform, ("create", *READ)),
        *_generate_watch_permissions_of_cluster_role(platform),
    )
    editor = (
        *_generate_job_permissions_of_cluster_role(platform, WRITE),
        *_generate_watch_permissions_of_cluster_role(platform),
    )
    mlops = (*editor, Permission("metrics.k8s.io", ("pods",), ("get", "list")))
    admin = (*mlops, *_GUARDRAILS)
    look = RoleShape("mpijob-viewer", "Sees runs, their pods and logs", viewer, "view")
    debug = RoleShape("mpijob-debugger", "Opens a shell in pods", _DEBUGGING)
    if is_gitops_only:
        return [look, debug]
    return [
        look,
        RoleShape("mpijob-creator", "Starts runs, and sees them", creator),
        RoleShape("mpijob-editor", "Makes, changes and removes runs", editor, "edit"),
        RoleShape("mpijob-mlops", "Maintains runs and reads what their pods use", mlops),
        RoleShape("mpijob-admin", "Also sees quota, policies, claims and who has access", admin, "admin"),
        debug,
    ]


def _generate_job_permissions_of_cluster_role(
    platform: Platform, verbs: tuple[str, ...]
) -> tuple[Permission, ...]:
    """Return permissions on what people write: runs and runtimes with Trainer, MPIJobs with its operator."""
    rules = []
    if platform.has_trainer:
        rules.append(Permission(TRAINJOB.group, ("trainingruntimes", TRAINJOB.plural), verbs))
    if platform.mpi_operator is not None:
        rules.append(Permission(MPIJOB.group, (MPIJOB.plural,), verbs))
    return tuple(rules)


def _generate_watch_permissions_of_cluster_role(platform: Platform) -> tuple[Permission, ...]:
    """Return permissions on what controllers write: status, JobSets, queued workloads, pods, logs, events."""
    rules = []
    if platform.has_trainer:
        rules.append(Permission(TRAINJOB.group, (f"{TRAINJOB.plural}/status",), READ))
    if platform.mpi_operator is not None:
        rules.append(Permission(MPIJOB.group, (f"{MPIJOB.plural}/status",), READ))
    if platform.has_trainer:
        rules.append(Permission("jobset.x-k8s.io", ("jobsets",), READ))
    else:
        rules.append(Permission("batch", ("jobs",), READ))
    if platform.kueue is not None:
        rules.append(Permission("kueue.x-k8s.io", ("localqueues", "workloads"), READ))
        # A run's place in its queue; same as Kueue's own role pending-workloads-lq-viewer-role (since 0.6).
        rules.append(Permission("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)))
    return (*rules, Permission("", ("events", "pods"), READ), Permission("", ("pods/log",), ("get",)))


_SEEN = sorted((one.group, one.seen_as) for one in RENDERED_KINDS if one.seen_as)
_GUARDRAILS = tuple(
    Permission(group, tuple(plural for _, plural in kinds), READ)
    for group, kinds in groupby(_SEEN, key=itemgetter(0))
)
# The account that creates scheduled runs lists earlier ones and creates the next. Joins no built-in role.
SCHEDULER = RoleShape(
    "gangplan-scheduler",
    "Creates the runs of schedules",
    (Permission(TRAINJOB.group, (TRAINJOB.plural,), ("create", "get", "list")),),
)
# A shell is `create` over SPDY. Over a WebSocket it is `get`, and from Kubernetes 1.35 on `create` as well
# (feature AuthorizePodWebsocketUpgradeCreatePermission): kubectl tries the WebSocket first.
_DEBUGGING = (
    Permission("", ("pods",), ("get", "list")),
    Permission("", ("pods/exec",), ("create", "get")),
    Permission("", ("pods/log",), ("get",)),
)


def _render_cluster_role(site: Site, role: RoleShape) -> list[Body]:
    annotations = generate_platform_annotations(
        site, "ClusterRole", (f"{LABEL_PREFIX}description", role.meaning)
    )
    return render_to_objects("platform/clusterrole.yaml.j2", {"role": role, "annotations": annotations})
