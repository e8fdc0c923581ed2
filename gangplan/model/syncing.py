"""The annotations for GitOps engines, in one table with a row for each engine. Other modules do not name
them.

Sources: Argo CD v3.5.1 (state.go, sync-options, sync-waves, hook.go), Flux v2.9 (kustomize-controller;
fluxcd/pkg ssa, Delete and AnyInMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.records import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SyncEngine:
    """The annotations that one engine reads.

    `run`: a file that is removed from Git neither stops the run nor shows as drift, and nothing ever waits
    for the run. `archived`: the object stays in Git and is never applied. `kept`: data, which outlives its
    file. `home`: a namespace, whose deletion would delete runs and data. `confirmed`: what other objects
    need, deleted only after somebody agrees. `verbatim`: texts in which no engine replaces values, as in
    every object of a run, and in dashboards. `wave` is the annotation with the number of a wave, if the
    engine has waves. `skipping` has every mark of an object that is not applied, `guards` those that keep an
    object that left Git, the strongest first. `is_loose`: labels count as well, in any case.
    """

    title: str
    prefix: str
    run: Pairs
    archived: Pairs
    skipping: Pairs
    guards: Pairs
    kept: Pairs = ()
    home: Pairs = ()
    confirmed: Pairs = ()
    verbatim: Pairs = ()
    wave: str = ""
    is_loose: bool = False

    def find_skipping_mark(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where metadata says that the object is not applied; empty if it is."""
        for key, value in self.skipping:
            for place, values in self._read(metadata, key):
                if [*values] == [self._normalize(value)]:  # Argo CD: Skip counts only alone
                    return ("metadata", place, key)
        return ()

    def measure_guard(self, metadata: Mapping[str, Any]) -> int:
        """Return how strongly metadata keeps an object that left Git; 0: the engine deletes it."""
        for rank, (key, value) in enumerate(self.guards):
            option = value.partition("=")[0]
            for _, values in self._read(metadata, key):
                # The first one of an option counts.
                said = next((one for one in values if one.partition("=")[0] == option), None)
                if said == self._normalize(value):
                    return len(self.guards) - rank
        return 0

    def _read(self, metadata: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, None]]]:
        """Yield the values of a key, in order, for each place in metadata that the engine reads."""
        for place in ("annotations", "labels") if self.is_loose else ("annotations",):
            text = str((metadata.get(place) or {}).get(key, ""))
            parts = [text] if self.is_loose else text.split(",")
            yield place, dict.fromkeys(self._normalize(one) for one in parts if one.strip())

    def _normalize(self, value: str) -> str:
        return value.casefold() if self.is_loose else value.strip()


ARGO, FLUX = "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"
ARGO_SYNC_WAVE, ARGO_HOOK = f"{ARGO}sync-wave", f"{ARGO}hook"
SYNC_OPTIONS, COMPARE_OPTIONS = f"{ARGO}sync-options", f"{ARGO}compare-options"
ARGO_TRACKING_ID = f"{ARGO}tracking-id"  # which Application an object belongs to; Argo CD writes it
FLUX_SERVER_SIDE, FLUX_PRUNE, FLUX_FORCE = f"{FLUX}ssa", f"{FLUX}prune", f"{FLUX}force"
FLUX_RECONCILE = f"{FLUX}reconcile"
HELM_HOOK, HELM_DEFINITION = "helm.sh/hook", "crd-install"  # Argo CD reads them too, but not CRDs as hooks
SKIP_HOOK = "Skip"  # of a hook: never applied
NEVER_PRUNED, PRUNE_CONFIRMED = "Prune=false", "Prune=confirm"
REPLACE_OPTIONS = ("Force=true", "Replace=true")
# What protects a run, and is no longer needed once the run is only a record.
GUARD_OPTIONS = (NEVER_PRUNED, "Delete=confirm")
# The label of launch scripts: they are part of the runs of a team, and have no label of any run.
SCRIPTS = "gangplan.dev/scripts"

SYNC_ENGINES: Mapping[str, SyncEngine] = {
    "argocd": SyncEngine(
        "Argo CD",
        ARGO,
        skipping=((ARGO_HOOK, SKIP_HOOK),),
        guards=((SYNC_OPTIONS, NEVER_PRUNED), (SYNC_OPTIONS, PRUNE_CONFIRMED)),
        run=((COMPARE_OPTIONS, "IgnoreExtraneous"), (SYNC_OPTIONS, ",".join(GUARD_OPTIONS))),
        archived=((ARGO_HOOK, SKIP_HOOK),),
        kept=((SYNC_OPTIONS, f"{NEVER_PRUNED},Delete=false"),),
        home=((SYNC_OPTIONS, f"{PRUNE_CONFIRMED},Delete=confirm"),),
        confirmed=((SYNC_OPTIONS, f"{PRUNE_CONFIRMED},Delete=confirm"),),
        wave=ARGO_SYNC_WAVE,
    ),
    # Flux never asks for confirmation: a person deletes what must not be deleted at once.
    "flux": SyncEngine(
        "Flux",
        FLUX,
        skipping=((FLUX_SERVER_SIDE, "Ignore"), (FLUX_RECONCILE, "disabled")),
        # It deletes nothing that it does not apply, either.
        guards=((FLUX_PRUNE, "disabled"), (FLUX_SERVER_SIDE, "Ignore"), (FLUX_RECONCILE, "disabled")),
        is_loose=True,
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


def find_hook(annotations: Mapping[str, Any]) -> tuple[str, str]:
    """Return the annotation that makes an object a hook of Argo CD, and its value; empty if none does."""
    if ARGO_HOOK in annotations:
        hook = str(annotations[ARGO_HOOK])
        return ("", "") if hook.strip(", ") == SKIP_HOOK else (ARGO_HOOK, hook)
    hook = str(annotations.get(HELM_HOOK, HELM_DEFINITION))
    return ("", "") if hook == HELM_DEFINITION else (HELM_HOOK, hook)


def read_sync_wave(annotations: Mapping[str, Any]) -> int:
    """Return the number of the wave in which Argo CD applies an object: 0 if it cannot read it."""
    stated = str(annotations.get(ARGO_SYNC_WAVE, ""))
    return int(stated) if re.fullmatch(r"[+-]?[0-9]{1,18}", stated) else 0


def is_engine_annotation(key: str) -> bool:
    """Return whether any engine reads an annotation."""
    return any(key.startswith(engine.prefix) for engine in _iterate_gitops_engines())


def build_annotation_pointer(key: str) -> str:
    """Return the JSON Pointer of an annotation, for patches."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


def _iterate_gitops_engines() -> Iterator[SyncEngine]:
    return iter(SYNC_ENGINES.values())
