"""`gangplan validate --fix`: which files may be mended, and what is said of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel

from gangplan.commands.common import plural
from gangplan.component import load_component
from gangplan.errors import UserError
from gangplan.findings import Finding, Fix, Location
from gangplan.fixes import Mended, mend, read, write
from gangplan.fixes.edits import apart, apply
from gangplan.fixes.images import digests, names
from gangplan.pipeline.request import Request
from gangplan.pipeline.scan import scan
from gangplan.pipeline.scope import select
from gangplan.report.escape import log_line
from gangplan.report.mended import mended_text, patch_text
from gangplan.rules.core import SPEC_VALUE
from gangplan.source import Document, load_file
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import TrainingJob
from gangplan.spec.team import Team
from gangplan.spec.waiver import Waiver
from gangplan.spec.waiver_files import WAIVERS
from gangplan.validate.secrets import hidden
from gangplan.workspace import CATALOG, OVERLAYS, SPECS, Workspace, load_workspace


@dataclass(frozen=True, slots=True)
class Fixing:
    """What the flags ask for: only to show what would be fixed, and to fix files of the platform, too."""

    only_shown: bool = False
    platform: bool = False


def fixing(fix: bool, only_shown: bool, platform: bool) -> Fixing | None:
    """The flags `--fix`, `--dry-run` and `--fix-platform`; None for none. Raises UserError."""
    if not (fix or platform):
        if only_shown:
            raise UserError("--dry-run shows what --fix would change", "Write --fix --dry-run.")
        return None
    return Fixing(only_shown, platform)


def fix_files(request: Request, fixing: Fixing, words: TextIO, complaints: TextIO) -> None:
    """Mend the files that a request means, show the differences, and write them unless they are only shown.

    Raises UserError when the request means nothing.
    """
    workspace = load_workspace(request.root)
    if workspace.is_refused:
        return  # the check that follows tells why
    secrets = scan(request.root, lambda file: True)[1]
    changed = places = 0
    for mended in _mended(request, workspace, fixing.platform):
        for fix in mended.refused:
            complaints.write(f"{_place(fix)}: not fixed: it overlaps with another fix, or makes it worse\n")
        if not mended.is_changed:
            continue
        reason = "" if fixing.only_shown else write(request.root, mended)
        if reason:
            complaints.write(f"{log_line(mended.file)}: not fixed: {reason}\n")
            continue
        text = hidden(mended_text(mended), secrets)
        words.write(text)
        if fixing.only_shown and text != patch_text(mended):
            said = "a secret, or what cannot be seen, is written out: git apply cannot read it, --fix can"
            complaints.write(f"{log_line(mended.file)}: {said}\n")
        changed += 1
        places += len(mended.fixes)
    verb = "would fix" if fixing.only_shown else "fixed"
    where = f" in {plural(changed, 'file')}" if changed else ""
    words.write(f"{verb} {plural(places, 'place')}{where}\n")


def with_image_fixes(workspace: Workspace, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those about an image that the catalog has by name get the fix."""
    if not any(_is_about_image(one) for one in findings):
        return list(findings)
    catalog = workspace.catalog
    if catalog is None:
        return list(findings)
    return [
        replace(one, fix=_image_fix(workspace.root, one.where, catalog)) if _is_about_image(one) else one
        for one in findings
    ]


def _is_about_image(finding: Finding) -> bool:
    return finding.rule == SPEC_VALUE and finding.fix is None and "image" in finding.message


def _image_fix(root: Path, where: Location, catalog: ImageCatalog) -> Fix | None:
    document, _ = load_file(root / where.file, where.file)
    fixes = names(document, catalog) if document is not None else ()
    return next((fix for fix in fixes if (fix.line, fix.column) == (where.line, where.column)), None)


def _place(fix: Fix) -> str:
    return log_line(f"{fix.file}:{fix.line}:{fix.column}")


def _mended(request: Request, workspace: Workspace, with_platform: bool) -> Iterator[Mended]:
    """Every file that may be mended, mended: specs and team files in the scope, then the platform's."""
    by_catalog = partial(_by_catalog, workspace.catalog)
    for file, model in _targets(request, workspace):
        yield from _one(request.root, file, model, by_catalog)
    if not with_platform:
        return
    for file, model in _platform_files(request, workspace):
        yield from _one(request.root, file, model, None)
    for name in sorted(workspace.clusters):
        if workspace.catalog is not None and (not request.clusters or name in request.clusters):
            yield from _patches(workspace, name, workspace.catalog)


def _one(
    root: Path, file: str, model: type[BaseModel], more: Callable[[Document], Iterable[Fix]] | None
) -> Iterator[Mended]:
    data = read(root, file)
    if data is not None:
        yield mend(file, data, model, more)


def _by_catalog(catalog: ImageCatalog | None, document: Document) -> Iterable[Fix]:
    return names(document, catalog) if catalog is not None else ()


def _targets(request: Request, workspace: Workspace) -> Iterator[tuple[str, type[BaseModel]]]:
    """Files of teams: named specs alone, else all specs of the scope and the files of its teams."""
    scope, files = select(workspace, request.clusters, request.teams, request.specs, Path.cwd())
    folders = sorted(entry.name for entry in os.scandir(workspace.root / SPECS) if entry.is_dir())
    for team in filter(scope.has_team, folders):
        yield f"{SPECS}/{team}/team.yaml", Team
    for file in files:
        yield file.file, TrainingJob


def _platform_files(request: Request, workspace: Workspace) -> Iterator[tuple[str, type[BaseModel]]]:
    yield CATALOG, ImageCatalog
    for name in sorted({*workspace.clusters, *workspace.unread}):
        if not request.clusters or name in request.clusters:
            yield f"{OVERLAYS}/{name}/cluster.yaml", Cluster
    for path in sorted((workspace.root / WAIVERS).glob("*.yaml")):
        yield f"{WAIVERS}/{path.name}", Waiver


def _patches(workspace: Workspace, cluster: str, catalog: ImageCatalog) -> Iterator[Mended]:
    """The patches of a cluster, with the catalog's digests in the place of tags."""
    component, facts = workspace.components[cluster], workspace.clusters[cluster].spec
    if workspace.component_findings[cluster]:
        return  # told by the check; a component that cannot be read is not touched
    for name in sorted(component.files):
        file = f"{OVERLAYS}/{cluster}/{name}"
        data = read(workspace.root, file)
        if data is not None:
            bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
            text = data.removeprefix(bom).decode("utf-8", "strict")
            wanted, clashing = apart(text, list(digests(file, text, cluster, facts, catalog)))
            kept = _harmless(cluster, component.files, name, bom, text, wanted)
            refused = (*clashing, *(fix for fix in wanted if fix not in kept))
            yield Mended(file, data, bom + apply(text, kept).encode(), tuple(kept), refused)


def _harmless(
    cluster: str, files: Mapping[str, bytes], name: str, bom: bytes, text: str, fixes: Sequence[Fix]
) -> list[Fix]:
    """The fixes of one file after which its component can still be read: each alone, then all together."""

    def is_read(some: Sequence[Fix]) -> bool:
        return _is_read(cluster, {**files, name: bom + apply(text, some).encode()})

    kept = [fix for fix in fixes if is_read([fix])]
    return kept if len(kept) < 2 or is_read(kept) else kept[:1]


def _is_read(cluster: str, files: Mapping[str, bytes]) -> bool:
    """Whether a cluster's component can be read with its files as they would be."""
    with tempfile.TemporaryDirectory(prefix="gangplan-") as root:
        folder = Path(root, OVERLAYS, cluster)
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return not load_component(Path(root), cluster)[1]
