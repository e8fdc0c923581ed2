"""Tekton: Tasks, a Pipeline, and what starts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gangplan.delivery.engine import Engine, Given, Option
from gangplan.delivery.options import BRANCH, FORGE, IMAGE, NAMESPACE, PREFIX, one_of


def _files(given: Given) -> Mapping[str, str]:
    """Tasks, Pipeline, what starts it, and the rights to wait for a sync.

    Raises UserError for Tekton Triggers without a forge.
    """
    from gangplan.gitops.ci import CiOptions
    from gangplan.gitops.tekton import tekton_files

    options = CiOptions(given["branch"], given["prefix"] or ".", given["image"])
    wait = given["wait"]
    names = list(_waited(given)) if wait else ()
    return tekton_files(options, given["forge"], wait, names, given["namespace"], given["start"])


def _waited(given: Given) -> Iterator[str]:
    """The objects of the engine of sync that a pipeline waits for."""
    from gangplan.delivery.clusters import workspace_of
    from gangplan.gitops.flux import kustomizations_of

    for cluster in given.clusters:
        teams = workspace_of(given).clusters[cluster].spec.teams
        if given["wait"] == "argocd":
            parts = ["platform", "tenants", *(f"runs-{team}" for team in teams)]
        else:
            parts = kustomizations_of(("platform", "tenants", "runs"))
        yield from (f"{cluster}-{part}" for part in parts)


ENGINE = Engine(
    "tekton",
    "Write Tekton Tasks, a Pipeline, and what starts it: Pipelines as Code or Tekton Triggers.",
    (
        BRANCH,
        PREFIX,
        IMAGE,
        FORGE,
        Option(
            "start",
            "What starts the Pipeline: pac (Pipelines as Code) or triggers (Tekton Triggers).",
            "NAME",
            "triggers",
            "pac",
            check=one_of("starter", ("pac", "triggers")),
        ),
        Option(
            "wait",
            "After a push, wait until this has synced it: argocd or flux.",
            "ENGINE",
            "argocd",
            check=one_of("sync engine", ("", "argocd", "flux")),
        ),
        replace(NAMESPACE, default="ci", help="With --wait or triggers: the namespace of the pipelines."),
    ),
    _files,
    by_cluster=True,
)
