"""Errors for a name in a flag that the workspace does not have, or has in a file with errors."""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.errors import UserError
from gangplan.findings import Finding, sort_findings
from gangplan.workspace import CATALOG, OVERLAYS, SPECS, Workspace, suggest_nearest


def build_missing_cluster_error(name: str, workspace: Workspace | None) -> UserError:
    """Return the error for a cluster that does not exist: no file describes it, or its file has errors."""
    known = workspace.clusters if workspace is not None else ()
    return _build_absent_name_error(
        f"there is no cluster '{name}'", f"{OVERLAYS}/{name}/cluster.yaml", known, name, workspace
    )


def build_missing_team_error(name: str, workspace: Workspace) -> UserError:
    """Return the error for a team that does not exist."""
    return _build_absent_name_error(
        f"there is no team '{name}'", f"{SPECS}/{name}/team.yaml", workspace.teams, name, workspace
    )


def build_missing_image_error(name: str, workspace: Workspace | None) -> UserError:
    """Return the error for an image that is not in the catalog."""
    catalog = workspace.catalog if workspace is not None else None
    known = catalog.images if catalog is not None else ()
    return _build_absent_name_error(f"the catalog has no image '{name}'", CATALOG, known, name, workspace)


def _build_absent_name_error(
    message: str, file: str, known: Iterable[str], name: str, workspace: Workspace | None
) -> UserError:
    every = workspace.findings if workspace is not None else ()
    return build_missing_name_error(
        message, suggest_nearest(name, known), (one for one in every if one.where.file == file)
    )


def build_missing_name_error(message: str, help: str, findings: Iterable[Finding]) -> UserError:
    """Return the error for a name that does not exist, or the first error of its file if there is one."""
    wrong = sort_findings(one for one in findings if one.is_error)
    if not wrong:
        return UserError(message, help)
    more = f" ({len(wrong) - 1} more in this file: gangplan validate)" if wrong[1:] else ""
    return UserError(f"{wrong[0].where}: {wrong[0].message}{more}", wrong[0].help)
