"""The conditions, besides the specs, from which results of earlier commands follow, and what is known
under them."""

from __future__ import annotations

from pathlib import Path

from gangplan.incremental.look import Look
from gangplan.incremental.program import program
from gangplan.incremental.store import Store
from gangplan.pipeline.known import Known
from gangplan.pipeline.opinions import Opinions
from gangplan.pipeline.seen import Clean, platform_of, short
from gangplan.resolve.upgrade import Pairs
from gangplan.tools.kustomize import engine
from gangplan.workspace import Workspace


def known_of(
    root: Path,
    seen: Look,
    workspace: Workspace,
    judge: str,
    clusters: tuple[str, ...],
    versions: Pairs,
) -> Known:
    """Return what is known about a workspace as it was read, for the requested clusters and versions."""
    builder = engine()
    platform = platform_of(root, seen)
    store = Store(str(root))
    asked = (*clusters, *(f"{name}={version}" for name, version in versions), *workspace.sweep_marks)
    rules = workspace.rulebook.policy
    itself = program(store)
    conditions = short(platform, itself, builder.label if builder else "", *asked)
    clean = Clean(store, seen, itself)
    own = Opinions(store, judge), workspace.template_marks
    return Known(root, store, seen, clean, conditions, platform, clusters, rules, *own)
