"""Argo CD: projects and applications of each cluster, and settings of Argo CD itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gangplan.delivery.checks import check_argocd_destinations, check_delivery_notification_recipients
from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import NAMESPACE_OPTION, PREFIX_OPTION, REPO_OPTION, REVISION_OPTION
from gangplan.errors import UserError

if TYPE_CHECKING:
    from gangplan.gitops.argocd import ArgoCluster
    from gangplan.workspace import Workspace

_IMAGE = "registry.example.com/gangplan@sha256:DIGEST"


def _build_argocd_delivery_files(given: EngineInput) -> Mapping[str, str]:
    """Build a file per cluster, and `settings/` for Argo CD itself. Raises UserError for an unknown
    Trainer."""
    from gangplan.delivery.clusters import (
        build_repository_source,
        list_deliverable_cluster_parts,
        list_synced_clusters,
        require_workspace_for_delivery,
    )
    from gangplan.gitops.argocd import ArgoOptions, build_argocd_objects
    from gangplan.gitops.settings import build_argocd_settings
    from gangplan.objects import dump_all

    workspace, source = require_workspace_for_delivery(given), build_repository_source(given)
    options = ArgoOptions(given["retries"], tuple(given["notify"].items()), bool(given["plugin"]))
    files, places = {}, dict[str, str]()
    for name in list_synced_clusters(given, "argocd"):
        there = given["destination"].get(name, name)
        if other := places.get(there):
            raise UserError(
                f"clusters {other} and {name} have one destination, {there}: both name objects there alike",
                "Give each another destination, or keep one of the two clusters.",
            )
        places[there] = name
        cluster = _build_argocd_cluster(workspace, name, given["destination"].get(name, ""))
        files[f"{name}.yaml"] = dump_all(
            build_argocd_objects(cluster, source, list_deliverable_cluster_parts(given, name), options)
        )
    for name, bodies in build_argocd_settings(source.namespace, options, given["plugin"]).items():
        files[f"settings/{name}"] = dump_all(bodies)
    return files


def _build_argocd_cluster(workspace: Workspace, name: str, destination: str) -> ArgoCluster:
    from gangplan.delivery.clusters import list_controllers
    from gangplan.gitops.argocd import ArgoCluster
    from gangplan.model.support import TRAINER_LINES
    from gangplan.model.version import parse_version
    from gangplan.policy.export import list_policy_guardrails
    from gangplan.resolve.site import has_cronjobs
    from gangplan.spec.manager import map_device_classes_to_resources
    from gangplan.spec.namespaces import namespace_of

    spec = workspace.clusters[name].spec
    versions = spec.versions
    argocd = parse_version(versions.argocd) if versions.argocd else None
    trainer = TRAINER_LINES.get(parse_version(versions.trainer).line) if versions.trainer else None
    if trainer is None and versions.trainer:
        raise UserError(
            f"cluster {name} has a Trainer that gangplan does not know", "Run `gangplan cluster check`."
        )
    teams = {team: namespace_of(spec, team, workspace.teams[team].spec) for team in sorted(spec.teams)}
    return ArgoCluster(
        name,
        teams,
        trainer.override_field if trainer else "",
        others=(spec.monitoring.namespace,) if spec.monitoring else (),
        destination=destination,
        policies=list_policy_guardrails(workspace, name),
        controllers=list_controllers(spec),
        has_volumes=any(one.persistent_volumes for one in spec.teams.values()),
        has_cronjobs=has_cronjobs(spec),
        has_claims=bool(map_device_classes_to_resources(spec)),
        has_retry_refresh=argocd is None or argocd.at_least(3, 2),
        has_names_in_projects=argocd is None or argocd.at_least(3, 3),
    )


def _check_delivery_option_clusters(given: EngineInput, value: Any) -> None:
    from gangplan.delivery.clusters import require_workspace_for_delivery
    from gangplan.spec.near import suggest_nearest

    known = require_workspace_for_delivery(given).clusters
    absent = [name for name in value if name not in known]
    if absent:
        names = "; ".join(f"there is no cluster '{name}'" for name in absent)
        raise UserError(names, suggest_nearest(absent[0], known))


def _check_argocd_plugin_image(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_ci_image

    if value and "@sha256:" not in check_ci_image(value, words):
        help = f"Name it by digest, for it decides what is synced: {words} {_IMAGE}."
        raise UserError(f"{words} {value}: a tag can be moved to another image", help)
    return value


def _check_retry_count(value: Any, words: str) -> Any:
    if value < 0:
        raise UserError(f"{words} {value}: the least is 0, which means never", f"Write {words} 5.")
    return value


ENGINE = GitopsEngine(
    "argocd",
    "Write Argo CD projects and applications of each cluster, and health checks for Argo CD itself.",
    (
        REPO_OPTION,
        REVISION_OPTION,
        replace(NAMESPACE_OPTION, default="argocd"),
        PREFIX_OPTION,
        EngineOption(
            "destination",
            "What Argo CD calls a cluster, or the address of its server (default: its name here).",
            "CLUSTER=NAME",
            "us-cloud=prod-us",
            {},
            check=check_argocd_destinations,
            against=_check_delivery_option_clusters,
        ),
        EngineOption(
            "retries",
            "How often a failed sync is tried again; 0: never.",
            "N",
            "3",
            5,
            check=_check_retry_count,
        ),
        EngineOption(
            "notify",
            "Who hears of failed syncs and failed runs, such as slack=ml-runs.",
            "SERVICE=RECIPIENT",
            "slack=ml-runs",
            {},
            check=check_delivery_notification_recipients,
        ),
        EngineOption(
            "plugin",
            "Let a plugin in this image check the tree at every sync, instead of reading it directly.",
            "IMAGE",
            _IMAGE,
            check=_check_argocd_plugin_image,
        ),
    ),
    _build_argocd_delivery_files,
    home="argocd",
    by_cluster=True,
)
