"""The conditions, besides the specs, from which results of earlier commands follow, and what is known
under them."""

from __future__ import annotations

from pathlib import Path

from gangplan.incremental.look import Look
from gangplan.incremental.program import digest_program
from gangplan.incremental.store import RecordStore
from gangplan.pipeline.known import KnownResults
from gangplan.pipeline.opinions import SecondOpinions
from gangplan.pipeline.seen import CleanFolders, digest_platform_files, digest_words
from gangplan.resolve.upgrade import VersionPairs
from gangplan.tools.kustomize import find_kustomize_engine
from gangplan.workspace import Workspace


def load_known_results(
    root: Path,
    seen: Look,
    workspace: Workspace,
    judge: str,
    clusters: tuple[str, ...],
    versions: VersionPairs,
) -> KnownResults:
    """Return what is known about a workspace as it was read, for the requested clusters and versions."""
    builder = find_kustomize_engine()
    platform = digest_platform_files(root, seen)
    store = RecordStore(str(root))
    asked = (*clusters, *(f"{name}={version}" for name, version in versions), *workspace.sweep_marks)
    rules = workspace.rulebook.policy
    itself = digest_program(store)
    conditions = digest_words(platform, itself, builder.label if builder else "", *asked)
    clean = CleanFolders(store, seen, itself)
    own = SecondOpinions(store, judge), workspace.template_marks
    return KnownResults(root, store, seen, clean, conditions, platform, clusters, rules, *own)
