"""Tekton: Tasks, a Pipeline, and what starts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import (
    BRANCH_OPTION,
    FORGE_OPTION,
    IMAGE_OPTION,
    NAMESPACE_OPTION,
    PREFIX_OPTION,
    build_delivery_option_choice_check,
)
from gangplan.errors import UserError

KUBECONFIG, IN_CLUSTER = SYNCS = ("kubeconfig", "in-cluster")


def _build_tekton_delivery_files(given: EngineInput) -> Mapping[str, str]:
    """Build the Tasks, the Pipeline, what starts it, and the rights to sync or to wait for a sync.

    Raises UserError for options that exclude each other.
    """
    from gangplan.gitops.ci import CiOptions
    from gangplan.gitops.tekton import Push, render_tekton_files
    from gangplan.pipeline.past import BOUND_ROLES

    options = CiOptions(given["branch"], given["prefix"] or ".", given["image"])
    wait, sync = given["wait"], given["sync"]
    if wait and sync:
        raise UserError("either an engine syncs, or the pipeline", "Leave out --wait or --sync.")
    if sync == IN_CLUSTER and len(given.clusters) > 1:
        raise UserError(
            f"a pod is in one cluster, and there are {len(given.clusters)}",
            f"Name that of the pipelines (--cluster NAME), or write --sync {KUBECONFIG}.",
        )
    waited = tuple(_list_sync_objects_awaited_by_tekton(given)) if wait else ()
    push = Push(wait, waited, sync, given.clusters, tuple(BOUND_ROLES), given["namespace"])
    return render_tekton_files(options, given["forge"], push, given["start"])


def _list_sync_objects_awaited_by_tekton(given: EngineInput) -> Iterator[str]:
    """Yield the objects of the sync engine that a pipeline waits for."""
    from gangplan.delivery.clusters import list_synced_clusters, require_workspace_for_delivery
    from gangplan.gitops.flux import kustomizations_of

    for cluster in list_synced_clusters(given, given["wait"]):
        teams = require_workspace_for_delivery(given).clusters[cluster].spec.teams
        if given["wait"] == "argocd":
            parts = ["platform", "tenants", *(f"runs-{team}" for team in teams)]
        else:
            parts = kustomizations_of(("platform", "tenants", "runs"))
        yield from (f"{cluster}-{part}" for part in parts)


ENGINE = GitopsEngine(
    "tekton",
    "Write Tekton Tasks, a Pipeline, and what starts it: Pipelines as Code or Tekton Triggers.",
    (
        BRANCH_OPTION,
        PREFIX_OPTION,
        IMAGE_OPTION,
        FORGE_OPTION,
        EngineOption(
            "start",
            "What starts the Pipeline: pac (Pipelines as Code) or triggers (Tekton Triggers).",
            "NAME",
            "triggers",
            "pac",
            check=build_delivery_option_choice_check("starter", ("pac", "triggers")),
        ),
        EngineOption(
            "sync",
            "In place of an engine, apply rendered/ after a push, with this: kubeconfig or in-cluster.",
            "WITH",
            "in-cluster",
            check=build_delivery_option_choice_check("way to a cluster", ("", *SYNCS)),
        ),
        EngineOption(
            "wait",
            "After a push, wait until this has synced it: argocd or flux.",
            "ENGINE",
            "argocd",
            check=build_delivery_option_choice_check("sync engine", ("", "argocd", "flux")),
        ),
        replace(NAMESPACE_OPTION, default="ci", help="The namespace of the pipelines."),
    ),
    _build_tekton_delivery_files,
    by_cluster=True,
)
