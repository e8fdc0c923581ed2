"""`gangplan images check` and `gangplan images list`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.api.checks import resolve_day
from gangplan.commands.common import choose_exit_code
from gangplan.commands.listing import format_terminal_table
from gangplan.commands.reports import find_report_folder, parse_format_flags, publish_reports
from gangplan.commands.validate import parse_severity_flag
from gangplan.contents.allowed import TableRow
from gangplan.contents.files import WorkspaceFiles, get_block, get_named_blocks
from gangplan.contents.tables import list_workspace_image_rows, list_workspace_spec_rows
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.report.model import Report
from gangplan.resolve.image_checks import (
    check_catalog_entries_on_clusters,
    check_catalog_images_used_by_specs,
)
from gangplan.resolve.image_requirements import check_catalog_requirements, find_outdated_image_scans
from gangplan.spec.root import find_workspace_root_above
from gangplan.workspace import CATALOG, load_workspace


def run_images_check_command(
    workspace: Path | None,
    formats: Sequence[str] | None,
    fail_on: str,
    today: str | None,
    is_quiet: bool,
) -> Exit:
    """Check the catalog for consistency, and against clusters and specs. Raises UserError if it cannot be
    read."""
    root = find_workspace_root_above((workspace or Path.cwd()).resolve())
    wanted, level, day = (
        parse_format_flags(formats, root, is_quiet=is_quiet),
        parse_severity_flag(fail_on),
        resolve_day(today),
    )
    world = load_workspace(root)
    found = [one for one in world.findings if one.where.file == CATALOG]
    catalog, document = world.catalog, world.catalog_document
    if catalog is not None and document is not None:
        found += check_catalog_entries_on_clusters(world, catalog, document)
        found += check_catalog_requirements(catalog, document)
        found += find_outdated_image_scans(catalog, document, day, world.root)
        found += check_catalog_images_used_by_specs(world, catalog, document)
    elif not found:
        raise UserError(f"{CATALOG} cannot be read", "`gangplan validate` says why.")
    counts = {"images": len(catalog.images) if catalog else 0, "specs": len(world.spec_files)}
    told = tuple(sort_findings(found))
    publish_reports(
        Report(told, counts, (), (), find_report_folder(root), level, "images check"), wanted, root
    )
    return choose_exit_code(told, level)


def run_images_list_command(root: Path, teams: Sequence[str], clusters: Sequence[str], format: str) -> Exit:
    """Print the images that the teams may use on the clusters, with their contents and the specs that use
    them."""
    if format not in ("table", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: table, json.")
    files = WorkspaceFiles(root, tuple(teams), tuple(clusters))
    rows = list(_build_images_list_rows(root, files))
    if format == "json":
        sys.stdout.write(json.dumps({"images": rows}, indent=2, ensure_ascii=False) + "\n")
    elif rows:
        shown = [
            {**row, "usedBy": len(row["usedBy"]), "scan": row["scan"] and row["scan"].get("date")}
            for row in rows
        ]
        sys.stdout.write(format_terminal_table(shown))
    else:
        sys.stderr.write("there are no images that they may use\n")
    return Exit.CLEAN


def _build_images_list_rows(root: Path, files: WorkspaceFiles) -> list[TableRow]:
    entries = get_named_blocks(files.load(CATALOG), "images")
    users: dict[str, list[str]] = {}
    for row in list_workspace_spec_rows(WorkspaceFiles(root)):
        if row["image"]:
            users.setdefault(str(row["image"]), []).append(str(row["file"]))
    found = []
    for row in list_workspace_image_rows(files):
        entry = entries.get(str(row["image"]), {})
        version = entry.get("frameworkVersion")
        found.append(
            {
                "image": row["image"],
                "framework": f"{row['framework']} {version}" if version else row["framework"],
                "mpi": row["mpi"],
                "gpus": row["gpus"],
                "architectures": [str(one) for one in entry.get("architectures") or ["amd64"]],
                "tier": entry.get("tier"),
                "licence": entry.get("licence"),
                "owner": entry.get("owner"),
                "scan": get_block(entry, "scan") or None,
                "approved": row["approved"],
                "clusters": row["clusters"],
                "usedBy": sorted(users.get(str(row["image"]), [])),
                "tag": row["tag"],
                "digest": entry.get("digest"),
                "repository": row["repository"],
            }
        )
    return found
