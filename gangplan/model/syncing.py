"""What objects tell a GitOps engine: the annotations of Argo CD and Flux, which nothing else names.

Argo CD v3.5.1 (state.go, sync-options, sync-waves), Flux v2.9 (kustomize-controller; fluxcd/pkg ssa, Delete).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ARGO, FLUX = "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"
WAVE, HOOK = f"{ARGO}sync-wave", f"{ARGO}hook"
OPTIONS, COMPARE = f"{ARGO}sync-options", f"{ARGO}compare-options"
SERVER_SIDE, PRUNE, FORCE = f"{FLUX}ssa", f"{FLUX}prune", f"{FLUX}force"
SKIPPED = "Skip"  # of a hook: never applied
NEVER_PRUNED = "Prune=false"
REPLACED = ("Force=true", "Replace=true")
# What guards a run that its record no longer needs.
GUARDS = (NEVER_PRUNED, "Delete=confirm")

# A run: a file that leaves Git neither kills it nor shows as drift, and nothing ever waits for it.
RUN = ((COMPARE, "IgnoreExtraneous"), (OPTIONS, ",".join(GUARDS)), (PRUNE, "disabled"))
# An archived run stays in Git and is never applied.
ARCHIVED = ((HOOK, SKIPPED), (SERVER_SIDE, "Ignore"))
# Data outlives its file; what others stand on goes when somebody agrees.
KEPT = {OPTIONS: f"{NEVER_PRUNED},Delete=false"}
CONFIRMED = {OPTIONS: "Prune=confirm,Delete=confirm"}


def in_wave(number: int) -> dict[str, str]:
    """The annotation of an object that comes after those of lower waves."""
    return {WAVE: str(number)}


def options_of(annotations: Mapping[str, Any]) -> list[str]:
    """The sync options of an object."""
    return [one.strip() for one in str(annotations.get(OPTIONS, "")).split(",") if one.strip()]


def is_read(key: str) -> bool:
    """Whether an engine reads an annotation."""
    return key.startswith((ARGO, FLUX))


def pointer(key: str) -> str:
    """An annotation as JSON Pointer names it in patches."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"
