"""The annotations for GitOps engines, in one table with a row for each engine. Other modules do not name
them.

Sources: Argo CD v3.5.1 (state.go, sync-options, sync-waves), Flux v2.9 (kustomize-controller; fluxcd/pkg ssa,
Delete).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.records import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """The annotations that one engine reads.

    `run`: a file that is removed from Git neither stops the run nor shows as drift, and nothing ever waits
    for the run. `archived`: the object stays in Git and is never applied. `kept`: data, which outlives its
    file. `home`: a namespace, whose deletion would delete runs and data. `confirmed`: what other objects
    need, deleted only after somebody agrees. `verbatim`: texts in which no engine replaces values, as in
    every object of a run, and in dashboards. `wave` is the annotation with the number of a wave, if the
    engine has waves.
    """

    prefix: str
    run: Pairs
    archived: Pairs
    kept: Pairs = ()
    home: Pairs = ()
    confirmed: Pairs = ()
    verbatim: Pairs = ()
    wave: str = ""


ARGO, FLUX = "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"
ARGO_SYNC_WAVE, ARGO_HOOK = f"{ARGO}sync-wave", f"{ARGO}hook"
SYNC_OPTIONS, COMPARE_OPTIONS = f"{ARGO}sync-options", f"{ARGO}compare-options"
ARGO_TRACKING_ID = f"{ARGO}tracking-id"  # which Application an object belongs to; Argo CD writes it
FLUX_SERVER_SIDE, FLUX_PRUNE, FLUX_FORCE = f"{FLUX}ssa", f"{FLUX}prune", f"{FLUX}force"
SKIP_HOOK = "Skip"  # of a hook: never applied
NEVER_PRUNED, PRUNE_CONFIRMED = "Prune=false", "Prune=confirm"
REPLACE_OPTIONS = ("Force=true", "Replace=true")
# What protects a run, and is no longer needed once the run is only a record.
GUARD_OPTIONS = (NEVER_PRUNED, "Delete=confirm")
# The label of launch scripts: they are part of the runs of a team, and have no label of any run.
SCRIPTS = "gangplan.dev/scripts"

ENGINES: Mapping[str, Engine] = {
    "argocd": Engine(
        ARGO,
        run=((COMPARE_OPTIONS, "IgnoreExtraneous"), (SYNC_OPTIONS, ",".join(GUARD_OPTIONS))),
        archived=((ARGO_HOOK, SKIP_HOOK),),
        kept=((SYNC_OPTIONS, f"{NEVER_PRUNED},Delete=false"),),
        home=((SYNC_OPTIONS, f"{PRUNE_CONFIRMED},Delete=confirm"),),
        confirmed=((SYNC_OPTIONS, f"{PRUNE_CONFIRMED},Delete=confirm"),),
        wave=ARGO_SYNC_WAVE,
    ),
    # Flux never asks for confirmation: a person deletes what must not be deleted at once.
    "flux": Engine(
        FLUX,
        run=((FLUX_PRUNE, "disabled"),),
        archived=((FLUX_SERVER_SIDE, "Ignore"),),
        kept=((FLUX_PRUNE, "disabled"),),
        home=((FLUX_PRUNE, "disabled"),),
        # Otherwise postBuild reads every ${NAME} as a variable of its own; v2.9 fails on an undefined one.
        verbatim=((f"{FLUX}substitute", "disabled"),),
    ),
}


def build_run_sync_annotations() -> dict[str, str]:
    """Return the annotations of an object of a run."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.run)


def build_verbatim_annotations() -> dict[str, str]:
    """Return the annotations of an object with texts that must stay as they are."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.verbatim)


def build_archived_annotations() -> dict[str, str]:
    """Return the additional annotations of an archived run."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.archived)


def build_data_annotations() -> dict[str, str]:
    """Return the annotations of data."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.kept)


def build_namespace_annotations() -> dict[str, str]:
    """Return the annotations of a namespace, whose deletion would delete everything in it."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.home)


def build_confirmed_annotations() -> dict[str, str]:
    """Return the annotations of objects that others need."""
    return dict(pair for engine in _iterate_gitops_engines() for pair in engine.confirmed)


def build_wave_annotations(number: int) -> dict[str, str]:
    """Return the annotations of an object that comes after those of lower waves."""
    return {engine.wave: str(number) for engine in _iterate_gitops_engines() if engine.wave}


def read_sync_options(annotations: Mapping[str, Any]) -> list[str]:
    """Return the sync options of an object."""
    return [one.strip() for one in str(annotations.get(SYNC_OPTIONS, "")).split(",") if one.strip()]


def is_engine_annotation(key: str) -> bool:
    """Return whether any engine reads an annotation."""
    return any(key.startswith(engine.prefix) for engine in _iterate_gitops_engines())


def build_annotation_pointer(key: str) -> str:
    """Return the JSON Pointer of an annotation, for patches."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


def _iterate_gitops_engines() -> Iterator[Engine]:
    return iter(ENGINES.values())
