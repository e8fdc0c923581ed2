"""What objects tell GitOps engines: a row of annotations for each engine, which nothing else names.

Argo CD v3.5.1 (state.go, sync-options, sync-waves), Flux v2.9 (kustomize-controller; fluxcd/pkg ssa, Delete).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.records import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """The annotations that one engine reads.

    `run`: a file that leaves Git neither kills the run nor shows as drift, and nothing ever waits for it.
    `archived`: the object stays in Git and is never applied. `kept`: data, which outlives its file. `home`: a
    namespace, with which runs and data go. `confirmed`: what others stand on, and goes when somebody agrees.
    `verbatim`: texts that no engine fills values into, as every object of a run has them, and dashboards.
    `wave` is the annotation with the number of a wave, if the engine knows any.
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
# What guards a run that its record no longer needs.
GUARDS = (NEVER_PRUNED, "Delete=confirm")

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
    # It asks nobody: what is not to go at once is removed by a person.
    "flux": Engine(
        FLUX,
        run=((PRUNE, "disabled"),),
        archived=((SERVER_SIDE, "Ignore"),),
        kept=((PRUNE, "disabled"),),
        home=((PRUNE, "disabled"),),
        # Else postBuild takes every ${NAME} for a variable of its own; v2.9 stops at one that it has not.
        verbatim=((f"{FLUX}substitute", "disabled"),),
    ),
}


def of_run() -> dict[str, str]:
    """The annotations of an object of a run."""
    return dict(pair for engine in _engines() for pair in engine.run)


def of_verbatim() -> dict[str, str]:
    """The annotations of an object with texts that stay as they are."""
    return dict(pair for engine in _engines() for pair in engine.verbatim)


def of_archived() -> dict[str, str]:
    """Those that an archived run has besides."""
    return dict(pair for engine in _engines() for pair in engine.archived)


def of_kept() -> dict[str, str]:
    """The annotations of data."""
    return dict(pair for engine in _engines() for pair in engine.kept)


def of_home() -> dict[str, str]:
    """The annotations of a namespace, with which everything in it goes."""
    return dict(pair for engine in _engines() for pair in engine.home)


def of_confirmed() -> dict[str, str]:
    """The annotations of what others stand on."""
    return dict(pair for engine in _engines() for pair in engine.confirmed)


def in_wave(number: int) -> dict[str, str]:
    """The annotations of an object that comes after those of lower waves."""
    return {engine.wave: str(number) for engine in _engines() if engine.wave}


def options_of(annotations: Mapping[str, Any]) -> list[str]:
    """The sync options of an object."""
    return [one.strip() for one in str(annotations.get(OPTIONS, "")).split(",") if one.strip()]


def is_read(key: str) -> bool:
    """Whether an engine reads an annotation."""
    return any(key.startswith(engine.prefix) for engine in _engines())


def pointer(key: str) -> str:
    """An annotation as JSON Pointer names it in patches."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


def _engines() -> Iterator[Engine]:
    return iter(ENGINES.values())
