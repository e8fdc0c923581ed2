"""`gangplan images pin`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gangplan.commands.absent import no_cluster, no_image
from gangplan.commands.common import exit_code, plural
from gangplan.commands.reports import outputs, publish, repository_folder
from gangplan.errors import Exit, ToolError
from gangplan.findings import Finding, in_order
from gangplan.fixes import write
from gangplan.fixes.earlier import kept_earlier
from gangplan.fixes.edits import apply
from gangplan.fixes.file import FixedFile
from gangplan.oci.pin import Pinned, chosen, pin
from gangplan.oci.registry import Registry
from gangplan.report.fixed import fixed_text
from gangplan.report.model import Report
from gangplan.rules.images import IMAGE_TAG_MOVED
from gangplan.rules.model import Severity
from gangplan.source import Document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.root import find_root
from gangplan.workspace import CATALOG, load_workspace, nearest
from gangplan.workspace import Workspace as World

_BOM = b"\xef\xbb\xbf"


def pin_images(
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
    root = find_root((workspace or Path.cwd()).resolve())
    wanted = outputs(formats, root, is_quiet=is_quiet)
    world = load_workspace(root)
    if world.catalog is None or world.catalog_document is None:
        raise no_image(next(iter(names), ""), world)
    found = _asked(world, world.catalog, world.catalog_document, names, clusters, via)
    fixed = _fixed(root, world.catalog_document, found)
    findings: Iterable[Finding] = found.findings
    if not is_check and fixed.is_changed:
        if reason := write(root, fixed):
            raise ToolError(f"{CATALOG}: not written: {reason}", reason.help)
        findings = [one for one in findings if one.rule != IMAGE_TAG_MOVED or one.fix is None]
    out = sys.stderr if wanted.machine else sys.stdout
    if fixed.is_changed and not is_quiet:
        out.write(fixed_text(fixed))
    counts = {"images": len(names or world.catalog.images)}
    told, level = tuple(in_order(findings)), Severity.ERROR
    publish(Report(told, counts, (), (), repository_folder(root), level, "images pin"), wanted, root)
    if fixed.is_changed and not is_quiet:
        verb = "would pin" if is_check else "pinned"
        out.write(f"{verb} {plural(len(fixed.fixes), 'digest')} in {CATALOG}\n")
    return exit_code(told, level)


def _asked(
    world: World,
    catalog: ImageCatalog,
    document: Document,
    names: Sequence[str],
    clusters: Sequence[str],
    via: str | None,
) -> Pinned:
    """Return what registries report.

    Raises UserError for unknown names, ToolError for registries that do not answer.
    """
    looked = dict.fromkeys((*clusters, *([via] if via else [])))
    for name in looked:
        if name not in world.clusters:
            raise no_cluster(name, world)
    unknown = next((name for name in names if name not in catalog.images), "")
    images = chosen(names, catalog.images, nearest(unknown, catalog.images))
    specs = {name: world.clusters[name].spec for name in looked}
    found = pin(images, document, specs, Registry(os.environ), via)
    if found.failed:
        raise ToolError(f"nothing was written: {'; '.join(found.failed)}")
    return found


def _fixed(root: Path, document: Document, found: Pinned) -> FixedFile:
    """Return the catalog with its new digests, and the old ones at `earlier`.

    The file is read again; every other byte stays.
    """
    before = (root / CATALOG).read_bytes()
    text = before.removeprefix(_BOM).decode()
    kept = [kept_earlier(document, text, name, digests) for name, digests in found.replaced.items()]
    fixes = [*found.fixes, *(one for one in kept if one is not None)]
    after = (_BOM if before.startswith(_BOM) else b"") + apply(text, fixes).encode()
    return FixedFile(document.file, before, after, found.fixes)
