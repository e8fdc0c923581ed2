"""AppProjects and Applications for Argo CD: platform, tenants, and the runs of each team of a cluster.

platform and tenants are guardrails: pruned and healed. runs are created once: never pruned, never healed,
never waited for. Options and reasons: docs/gitops.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from gangplan.gitops.guardrails import NO_POLICIES, Guardrails
from gangplan.gitops.source import RepositorySource
from gangplan.model.backend import BACKENDS, MPIJOB, TRAINJOB, Backend
from gangplan.model.kinds import RenderedKind, find_kinds_of_parts
from gangplan.objects import ADMISSION_API, Body
from gangplan.records import dataclass
from gangplan.source import load_objects
from gangplan.spec.root import RENDERED
from gangplan.template import render_yaml

GroupKind = tuple[str, str]

# Kinds that Argo CD shows below runs: a project that does not list a child hides it from people.
CHILD_KINDS = (
    ("", "Pod"),
    ("", "Service"),
    ("batch", "Job"),
)
OF_KUEUE = (("kueue.x-k8s.io", "Workload"),)
# The MPI operator creates nothing for people to see but what CHILD_KINDS lists; its Secret holds keys.
MADE_BY = {TRAINJOB.stated: (("jobset.x-k8s.io", "JobSet"),), MPIJOB.stated: ()}
# Retries of a failed sync: 10 s, 20 s, 40 s, ... apart, at most five minutes.
RETRIES = 5
NOTIFICATION_TRIGGERS = ("gangplan-sync-failed", "gangplan-degraded")
PLUGIN_NAME = "gangplan"


@dataclass(frozen=True, slots=True)
class ArgoCluster:
    """A cluster as Argo CD needs it.

    `teams` maps the names of teams to their namespaces. `override_field` is the field that Kueue writes in a
    TrainJob that it starts. It depends on Trainer's version (`model/support.py`); an Argo CD that does not
    know it would show the run as drifted. `others` are other namespaces of the platform that something is
    rendered into: that of the cluster's Prometheus. `destination` is the cluster in Argo CD: its name, or the
    address of its server. `policies` is what the cluster's policies need in addition. `controllers` are those
    that start runs there, as `versions` calls them. `has_volumes`: teams have PersistentVolumes.
    `has_cronjobs`: schedules start runs. `has_claims`: workers claim devices. `has_retry_refresh`: Argo CD
    3.2 and later know `retry.refresh` (3.1 does not). `has_names_in_projects`: Argo CD 3.3 and later know
    `name` in a project's `clusterResourceWhitelist` (the CRD of 3.2 does not have it, that of 3.3.0 has).
    """

    name: str
    teams: Mapping[str, str]
    override_field: str
    others: Sequence[str] = ()
    destination: str = ""
    policies: Guardrails = NO_POLICIES
    controllers: Sequence[str] = (TRAINJOB.stated,)
    has_volumes: bool = False
    has_cronjobs: bool = False
    has_claims: bool = False
    has_retry_refresh: bool = True
    has_names_in_projects: bool = True


@dataclass(frozen=True, slots=True)
class ArgoOptions:
    """What the installation decides: retries of a failed sync, recipients by notification service, and
    whether the plugin of `settings.py` reads the tree."""

    retries: int = RETRIES
    recipients: tuple[tuple[str, str], ...] = ()
    has_plugin: bool = False


def build_argocd_objects(
    cluster: ArgoCluster, source: RepositorySource, parts: Sequence[str], options: ArgoOptions | None = None
) -> list[Body]:
    """Build the projects and applications of one cluster.

    `parts` lists which of platform, tenants and runs are rendered: an application without its folder would
    never sync. Each team has its own application and project for runs, so that a fault of one team stops no
    other, and a file in the wrong folder cannot reach the namespace of another team. The application reads
    from the folder of the cluster, which exists even when the team has no run left; otherwise the record of
    its last run would stay.
    """
    options = options or ArgoOptions()
    homes = sorted({*cluster.teams.values(), *cluster.others}) or ["default"]
    policies = cluster.policies
    values = {
        "cluster": cluster.name,
        "homes": homes,
        "source": source,
        "options": options,
        "triggers": NOTIFICATION_TRIGGERS,
        "plugin": PLUGIN_NAME,
        "teams": cluster.teams if "runs" in parts else {},
        "policy_homes": sorted({*policies.namespaces} - {*homes}),
        "policy_kinds": _list_argocd_kinds_limited_by_name(cluster),
        "policy_names": f"{policies.prefix}*" if cluster.has_names_in_projects else "",
        "platform_kinds": sorted({*wide_kinds(), *policies.wide}),
        "tenant_kinds": sorted({*spaced_kinds(), *policies.spaced}),
        "run_kinds": _list_argocd_run_kinds(cluster),
        "drifts": _list_ignored_run_drifts(cluster),
        "destination": _resolve_argocd_destination(cluster),
        "refresh": cluster.has_retry_refresh,
    }
    bodies = load_objects(render_yaml("gitops/argocd-projects.yaml.j2", values))
    for part in parts:
        for team, home in cluster.teams.items() if part == "runs" else (("", homes[0]),):
            bodies += _build_argocd_application(values, source, part, team, home)
    return bodies


def wide_kinds() -> tuple[GroupKind, ...]:
    """Return the cluster-scoped kinds of the platform."""
    return _convert_to_group_kinds(one for one in find_kinds_of_parts("platform") if one.is_wide)


def spaced_kinds() -> tuple[GroupKind, ...]:
    """Return the kinds in the namespaces of teams and of the cluster's Prometheus."""
    return _convert_to_group_kinds(
        one for one in find_kinds_of_parts("platform", "tenants") if not one.is_wide
    )


def _list_argocd_kinds_limited_by_name(cluster: ArgoCluster) -> tuple[GroupKind, ...]:
    """Return the kinds that are allowed only under names that gangplan gives them: objects with other names
    are not ours to change."""
    volumes = (
        one for one in find_kinds_of_parts("tenants") if one.needs == "volumes" and cluster.has_volumes
    )
    policies = (
        one for one in find_kinds_of_parts("policies") if one.group == ADMISSION_API.partition("/")[0]
    )
    return _convert_to_group_kinds((*policies, *volumes))


def _list_argocd_run_kinds(cluster: ArgoCluster) -> tuple[GroupKind, ...]:
    """Return the kinds in the files of runs, and the kinds that controllers create from them."""
    needs = (
        *(("schedules",) if cluster.has_cronjobs else ()),
        "",
        *(("claims",) if cluster.has_claims else ()),
        *cluster.controllers,
    )
    there = (one for need in needs for one in find_kinds_of_parts("runs") if one.needs == need)
    children = (kind for name in cluster.controllers for kind in MADE_BY[name])
    return (*_convert_to_group_kinds(there), *CHILD_KINDS, *children, *OF_KUEUE)


def _list_argocd_trainjob_drift_fields(override_field: str) -> Drift:
    own = ("/spec/suspend", "/spec/managedBy")
    if override_field == "runtimePatches":
        placed = '.spec.runtimePatches[]? | select(.manager == "kueue.x-k8s.io/manager")'
        return own, (placed, ".spec.runtimePatches[]?.time")
    # Trainer 2.1: a list without keys, and labels for the JobSet; Kueue writes both, gangplan renders
    # neither.
    return (*own, f"/spec/{override_field}", "/spec/labels"), ()


def _list_argocd_mpijob_drift_fields(_: str) -> Drift:
    """Return what Kueue writes into an MPIJob: the placement of its pods. Tolerations are a list without
    keys."""
    pod = ".spec.mpiReplicaSpecs[].template"
    written = ("metadata.annotations", "metadata.labels")
    placed = ("spec.nodeSelector", "spec.schedulingGates", "spec.tolerations")
    own = ("/spec/runPolicy/suspend", "/spec/runPolicy/managedBy")
    return own, tuple(f"{pod}.{name}" for name in (*written, *placed))


# What Kueue writes into a run, which does not count as drift: JSON pointers, and jq expressions.
Drift = tuple[tuple[str, ...], tuple[str, ...]]
DRIFTS: Mapping[str, Callable[[str], Drift]] = {
    TRAINJOB.name: _list_argocd_trainjob_drift_fields,
    MPIJOB.name: _list_argocd_mpijob_drift_fields,
}


def _list_ignored_run_drifts(cluster: ArgoCluster) -> list[tuple[Backend, tuple[str, ...], tuple[str, ...]]]:
    made = sorted(
        (one for one in BACKENDS.values() if one.stated in cluster.controllers), key=attrgetter("kind")
    )
    return [(one, *DRIFTS[one.name](cluster.override_field)) for one in made]


def _convert_to_group_kinds(kinds: Iterable[RenderedKind]) -> tuple[GroupKind, ...]:
    return tuple((one.group, one.name) for one in kinds)


def _build_argocd_application(
    values: Mapping[str, object], source: RepositorySource, part: str, team: str, home: str
) -> list[Body]:
    cluster = str(values["cluster"])
    more = {
        "part": part,
        "team": team,
        "home": home,
        "wave": {"platform": "-2", "tenants": "-1", "runs": "0"}[part],
        "path": source.path(RENDERED, cluster, *(() if team else (part,))),
        "workspace": source.path(),
        "files": f"runs/{team}/*" if team else "",
        "changes": f"runs/{team}" if team else ".",
        # The plugin renders from all of the workspace.
        "inputs": f"/{source.prefix}" if source.prefix else "/",
    }
    return load_objects(render_yaml("gitops/argocd-application.yaml.j2", {**values, **more}))


def _resolve_argocd_destination(cluster: ArgoCluster) -> tuple[str, str]:
    """Return the field of a destination and its value: the name of the cluster in Argo CD, or its server."""
    there = cluster.destination or cluster.name
    return ("server", there) if there.startswith(("https://", "http://")) else ("name", there)
