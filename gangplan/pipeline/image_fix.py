"""Findings about an image in, the same with the fix where the catalog has the image by name, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.findings import Finding, Fix, Location
from gangplan.rules.core import SPEC_VALUE
from gangplan.source import load_file
from gangplan.spec.catalog import ImageCatalog
from gangplan.workspace import Workspace


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
    from gangplan.fixes.images import names  # few commands find a fault in an image

    document, _ = load_file(root / where.file, where.file)
    fixes = names(document, catalog) if document is not None else ()
    return next((fix for fix in fixes if (fix.line, fix.column) == (where.line, where.column)), None)
