"""Tekton: Tasks, a Pipeline, and PipelineRuns for Pipelines as Code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gangplan.delivery.engine import Engine, Given, Option
from gangplan.delivery.options import BRANCH, FORGE, IMAGE, NAMESPACE, PREFIX, one_of


def _files(given: Given) -> Mapping[str, str]:
    """Tasks, Pipeline and PipelineRuns, and the rights to wait for a sync."""
    from gangplan.gitops.ci import CiOptions
    from gangplan.gitops.tekton import tekton_files

    options = CiOptions(given["branch"], given["prefix"] or ".", given["image"])
    wait = given["wait"]
    return tekton_files(
        options, given["forge"], wait, list(_waited(given)) if wait else (), given["namespace"]
    )


def _waited(given: Given) -> Iterator[str]:
    """The objects of the engine of sync that a pipeline waits for."""
    from gangplan.delivery.clusters import workspace_of

    for cluster in given.clusters:
        yield from (f"{cluster}-{part}" for part in ("platform", "tenants"))
        teams = workspace_of(given).clusters[cluster].spec.teams
        if given["wait"] == "argocd" and teams:
            yield from (f"{cluster}-runs-{team}" for team in teams)
        else:
            yield f"{cluster}-runs"


ENGINE = Engine(
    "tekton",
    "Write Tekton Tasks, a Pipeline, and PipelineRuns for Pipelines as Code.",
    (
        BRANCH,
        PREFIX,
        IMAGE,
        FORGE,
        Option(
            "wait",
            "After a push, wait until this has synced it: argocd or flux.",
            "ENGINE",
            "argocd",
            check=one_of("sync engine", ("", "argocd", "flux")),
        ),
        replace(NAMESPACE, default="ci", help="With --wait: the namespace of the pipelines."),
    ),
    _files,
    by_cluster=True,
)
