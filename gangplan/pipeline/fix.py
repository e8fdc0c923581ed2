"""Files of a workspace that `--fix` may fix, and their fixed contents; nothing is written here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from gangplan.component import load_component
from gangplan.findings import Fix
from gangplan.fixes import FixedFile, fix_file, read_fixable
from gangplan.fixes.edits import apply_fixes, split_overlapping_fixes
from gangplan.fixes.images import find_digest_fixes, find_name_fixes
from gangplan.pipeline.request import Request
from gangplan.pipeline.scope import select_work_scope
from gangplan.source import Document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import TrainingJob
from gangplan.spec.team import Team
from gangplan.spec.waiver import Waiver
from gangplan.spec.waiver_files import WAIVERS
from gangplan.workspace import CATALOG, OVERLAYS, SPECS, Workspace


def list_fixed_files_in_scope(
    request: Request, workspace: Workspace, with_platform: bool
) -> Iterator[FixedFile]:
    """Yield every file that may be fixed, fixed: specs and team files in the scope, then the platform's."""
    by_catalog = partial(_find_catalog_name_fixes, workspace.catalog)
    for file, model in _list_fixable_team_files(request, workspace):
        yield from _fix_workspace_file(request.root, file, model, by_catalog)
    if not with_platform:
        return
    for file, model in _list_fixable_platform_files(request, workspace):
        yield from _fix_workspace_file(request.root, file, model, None)
    for name in sorted(workspace.clusters):
        if workspace.catalog is not None and (not request.clusters or name in request.clusters):
            yield from _fix_cluster_patches(workspace, name, workspace.catalog)


def _fix_workspace_file(
    root: Path, file: str, model: type[BaseModel], more: Callable[[Document], Iterable[Fix]] | None
) -> Iterator[FixedFile]:
    data = read_fixable(root, file)
    if data is not None:
        yield fix_file(file, data, model, more)


def _find_catalog_name_fixes(catalog: ImageCatalog | None, document: Document) -> Iterable[Fix]:
    return find_name_fixes(document, catalog) if catalog is not None else ()


def _list_fixable_team_files(request: Request, workspace: Workspace) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the files of teams: named specs alone, else all specs of the scope and the files of its teams."""
    scope, files = select_work_scope(workspace, request.clusters, request.teams, request.specs, Path.cwd())
    folders = sorted(entry.name for entry in os.scandir(workspace.root / SPECS) if entry.is_dir())
    for team in filter(scope.has_team, folders):
        yield f"{SPECS}/{team}/team.yaml", Team
    for file in files:
        if file.file in workspace.sweeps:
            from gangplan.spec.sweep import Sweep  # few workspaces have sweeps

            yield file.file, Sweep
        else:
            yield file.file, TrainingJob


def _list_fixable_platform_files(
    request: Request, workspace: Workspace
) -> Iterator[tuple[str, type[BaseModel]]]:
    yield CATALOG, ImageCatalog
    for name in sorted({*workspace.clusters, *workspace.unread}):
        if not request.clusters or name in request.clusters:
            yield f"{OVERLAYS}/{name}/cluster.yaml", Cluster
    for path in sorted((workspace.root / WAIVERS).glob("*.yaml")):
        yield f"{WAIVERS}/{path.name}", Waiver


def _fix_cluster_patches(workspace: Workspace, cluster: str, catalog: ImageCatalog) -> Iterator[FixedFile]:
    """Yield the patches of a cluster, with the catalog's digests in place of tags."""
    component, facts = workspace.components[cluster], workspace.clusters[cluster].spec
    if workspace.component_findings[cluster]:
        return  # reported by the check; a component that cannot be read is not touched
    for name in sorted(component.files):
        file = f"{OVERLAYS}/{cluster}/{name}"
        data = read_fixable(workspace.root, file)
        if data is not None:
            bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
            text = data.removeprefix(bom).decode("utf-8", "strict")
            wanted, clashing = split_overlapping_fixes(
                text, list(find_digest_fixes(file, text, cluster, facts, catalog))
            )
            kept = _select_fixes_keeping_component_readable(cluster, component.files, name, bom, text, wanted)
            refused = (*clashing, *(fix for fix in wanted if fix not in kept))
            yield FixedFile(file, data, bom + apply_fixes(text, kept).encode(), tuple(kept), refused)


def _select_fixes_keeping_component_readable(
    cluster: str, files: Mapping[str, bytes], name: str, bom: bytes, text: str, fixes: Sequence[Fix]
) -> list[Fix]:
    """Return the fixes of one file after which its component can still be read: each alone, then all
    together."""

    def is_read(some: Sequence[Fix]) -> bool:
        return _can_read_fixed_component(cluster, {**files, name: bom + apply_fixes(text, some).encode()})

    kept = [fix for fix in fixes if is_read([fix])]
    return kept if len(kept) < 2 or is_read(kept) else kept[:1]


def _can_read_fixed_component(cluster: str, files: Mapping[str, bytes]) -> bool:
    """Return whether a cluster's component could be read with these files."""
    with tempfile.TemporaryDirectory(prefix="gangplan-") as root:
        folder = Path(root, OVERLAYS, cluster)
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return not load_component(Path(root), cluster)[1]
