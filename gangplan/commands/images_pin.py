"""`gangplan images pin`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error, build_missing_image_error
from gangplan.commands.common import choose_exit_code, format_plural
from gangplan.commands.reports import find_report_folder, parse_format_flags, publish_reports
from gangplan.errors import Exit, ToolError
from gangplan.findings import Finding, sort_findings
from gangplan.fixes import write_fixed
from gangplan.fixes.earlier import build_earlier_digest_fix
from gangplan.fixes.edits import apply_fixes
from gangplan.fixes.file import FixedFile
from gangplan.oci.pin import PinnedImages, choose_catalog_images_to_pin, pin_catalog_images
from gangplan.oci.registry import RegistryClient
from gangplan.report.fixed import render_fix_diff
from gangplan.report.model import Report
from gangplan.rules.images import IMAGE_TAG_MOVED
from gangplan.rules.model import Severity
from gangplan.source import Document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.root import find_workspace_root_above
from gangplan.workspace import CATALOG, load_workspace, suggest_nearest
from gangplan.workspace import Workspace as World

_BOM = b"\xef\xbb\xbf"


def run_images_pin_command(
    names: Sequence[str],
    workspace: Path | None,
    clusters: Sequence[str],
    via: str | None,
    is_check: bool,
    formats: Sequence[str] | None,
    is_quiet: bool,
) -> Exit:
    """Ask registries what tags mean, and write that into the catalog, or show it.

    Raises UserError for what the workspace lacks, ToolError if a registry cannot be asked: then nothing is
    written.
    """
    root = find_workspace_root_above((workspace or Path.cwd()).resolve())
    wanted = parse_format_flags(formats, root, is_quiet=is_quiet)
    world = load_workspace(root)
    if world.catalog is None or world.catalog_document is None:
        raise build_missing_image_error(next(iter(names), ""), world)
    found = _fetch_digests_for_images_pin_command(
        world, world.catalog, world.catalog_document, names, clusters, via
    )
    fixed = _build_catalog_for_images_pin_command(root, world.catalog_document, found)
    findings: Iterable[Finding] = found.findings
    if not is_check and fixed.is_changed:
        if reason := write_fixed(root, fixed):
            raise ToolError(f"{CATALOG}: not written: {reason}", reason.help)
        findings = [one for one in findings if one.rule != IMAGE_TAG_MOVED or one.fix is None]
    out = sys.stderr if wanted.machine else sys.stdout
    if fixed.is_changed and not is_quiet:
        out.write(render_fix_diff(fixed))
    counts = {"images": len(names or world.catalog.images)}
    told, level = tuple(sort_findings(findings)), Severity.ERROR
    publish_reports(Report(told, counts, (), (), find_report_folder(root), level, "images pin"), wanted, root)
    if fixed.is_changed and not is_quiet:
        verb = "would pin" if is_check else "pinned"
        out.write(f"{verb} {format_plural(len(fixed.fixes), 'digest')} in {CATALOG}\n")
    return choose_exit_code(told, level)


def _fetch_digests_for_images_pin_command(
    world: World,
    catalog: ImageCatalog,
    document: Document,
    names: Sequence[str],
    clusters: Sequence[str],
    via: str | None,
) -> PinnedImages:
    """Return what registries report.

    Raises UserError for unknown names, ToolError for registries that do not answer.
    """
    looked = dict.fromkeys((*clusters, *([via] if via else [])))
    for name in looked:
        if name not in world.clusters:
            raise build_missing_cluster_error(name, world)
    unknown = next((name for name in names if name not in catalog.images), "")
    images = choose_catalog_images_to_pin(names, catalog.images, suggest_nearest(unknown, catalog.images))
    specs = {name: world.clusters[name].spec for name in looked}
    found = pin_catalog_images(images, document, specs, RegistryClient(os.environ), via)
    if found.failed:
        raise ToolError(f"nothing was written: {'; '.join(found.failed)}")
    return found


def _build_catalog_for_images_pin_command(root: Path, document: Document, found: PinnedImages) -> FixedFile:
    """Return the catalog with its new digests, and the old ones at `earlier`.

    The file is read again; every other byte stays.
    """
    before = (root / CATALOG).read_bytes()
    text = before.removeprefix(_BOM).decode()
    kept = [
        build_earlier_digest_fix(document, text, name, digests) for name, digests in found.replaced.items()
    ]
    fixes = [*found.fixes, *(one for one in kept if one is not None)]
    after = (_BOM if before.startswith(_BOM) else b"") + apply_fixes(text, fixes).encode()
    return FixedFile(document.file, before, after, found.fixes)
