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
WAVE, HOOK = f"{ARGO}sync-wave", f"{ARGO}hook"
OPTIONS, COMPARE = f"{ARGO}sync-options", f"{ARGO}compare-options"
SERVER_SIDE, PRUNE, FORCE = f"{FLUX}ssa", f"{FLUX}prune", f"{FLUX}force"
SKIPPED = "Skip"  # of a hook: never applied
NEVER_PRUNED, ASKED_FIRST = "Prune=false", "Prune=confirm"
REPLACED = ("Force=true", "Replace=true")
# What protects a run, and is no longer needed once the run is only a record.
GUARDS = (NEVER_PRUNED, "Delete=confirm")
# The label of launch scripts: they are part of the runs of a team, and have no label of any run.
SCRIPTS = "gangplan.dev/scripts"

ENGINES: Mapping[str, Engine] = {
    "argocd": Engine(
        ARGO,
        run=((COMPARE, "IgnoreExtraneous"), (OPTIONS, ",".join(GUARDS))),
        archived=((HOOK, SKIPPED),),
        kept=((OPTIONS, f"{NEVER_PRUNED},Delete=false"),),
        home=((OPTIONS, f"{ASKED_FIRST},Delete=confirm"),),
        confirmed=((OPTIONS, f"{ASKED_FIRST},Delete=confirm"),),
        wave=WAVE,
    ),
    # Flux never asks for confirmation: a person deletes what must not be deleted at once.
    "flux": Engine(
        FLUX,
        run=((PRUNE, "disabled"),),
        archived=((SERVER_SIDE, "Ignore"),),
        kept=((PRUNE, "disabled"),),
        home=((PRUNE, "disabled"),),
        # Otherwise postBuild reads every ${NAME} as a variable of its own; v2.9 fails on an undefined one.
        verbatim=((f"{FLUX}substitute", "disabled"),),
    ),
}


def of_run() -> dict[str, str]:
    """Return the annotations of an object of a run."""
    return dict(pair for engine in _engines() for pair in engine.run)


def of_verbatim() -> dict[str, str]:
    """Return the annotations of an object with texts that must stay as they are."""
    return dict(pair for engine in _engines() for pair in engine.verbatim)


def of_archived() -> dict[str, str]:
    """Return the additional annotations of an archived run."""
    return dict(pair for engine in _engines() for pair in engine.archived)


def of_kept() -> dict[str, str]:
    """Return the annotations of data."""
    return dict(pair for engine in _engines() for pair in engine.kept)


def of_home() -> dict[str, str]:
    """Return the annotations of a namespace, whose deletion would delete everything in it."""
    return dict(pair for engine in _engines() for pair in engine.home)


def of_confirmed() -> dict[str, str]:
    """Return the annotations of objects that others need."""
    return dict(pair for engine in _engines() for pair in engine.confirmed)


def in_wave(number: int) -> dict[str, str]:
    """Return the annotations of an object that comes after those of lower waves."""
    return {engine.wave: str(number) for engine in _engines() if engine.wave}


def options_of(annotations: Mapping[str, Any]) -> list[str]:
    """Return the sync options of an object."""
    return [one.strip() for one in str(annotations.get(OPTIONS, "")).split(",") if one.strip()]


def is_read(key: str) -> bool:
    """Return whether any engine reads an annotation."""
    return any(key.startswith(engine.prefix) for engine in _engines())


def pointer(key: str) -> str:
    """Return the JSON Pointer of an annotation, for patches."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


def _engines() -> Iterator[Engine]:
    return iter(ENGINES.values())
