"""Fixes for findings about an image that the catalog has by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.findings import Finding, Fix
from gangplan.rules.core import SPEC_VALUE
from gangplan.source import load_file
from gangplan.spec.catalog import ImageCatalog
from gangplan.workspace import Workspace


def add_image_fixes(workspace: Workspace, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, with a fix for those about an image that the catalog has by name."""
    files = {one.where.file for one in findings if _may_be_fixed(one)}
    if not files or workspace.catalog is None:
        return list(findings)
    fixes = {
        place: fix
        for file in files
        for place, fix in _find_image_fixes(workspace.root, file, workspace.catalog)
    }
    return [
        replace(one, fix=fixes.get((one.where.file, one.where.line, one.where.column)))
        if _may_be_fixed(one)
        else one
        for one in findings
    ]


def _may_be_fixed(finding: Finding) -> bool:
    return finding.rule == SPEC_VALUE and finding.fix is None


def _find_image_fixes(
    root: Path, file: str, catalog: ImageCatalog
) -> Iterator[tuple[tuple[str, int, int], Fix]]:
    """Yield the fixes of images in a file, each with its place."""
    from gangplan.fixes.images import find_name_fixes  # few commands report an image

    document, _ = load_file(root / file, file)
    for fix in find_name_fixes(document, catalog) if document is not None else ():
        yield (file, fix.line, fix.column), fix
