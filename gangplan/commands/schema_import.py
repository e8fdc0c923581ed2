"""`gangplan schema import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.errors import Exit
from gangplan.model.version import parse_version
from gangplan.pipeline.crds import check_crd_file, read_crds_for_schema_import, write_crd
from gangplan.pipeline.request import Request
from gangplan.spec.crd_files import SCHEMAS_FOLDER
from gangplan.workspace import load_workspace


def run_schema_import_command(request: Request, files: Sequence[Path], cluster: str | None) -> Exit:
    """Import CRDs into the workspace, for all clusters or for one.

    Raises UserError for an unknown cluster, and for a file that contains no CRD or an invalid one.
    """
    workspace = load_workspace(request.root)
    if cluster is not None and cluster not in workspace.clusters:
        raise build_missing_cluster_error(cluster, workspace)
    base = request.root / (f"overlays/{cluster}/{SCHEMAS_FOLDER}" if cluster else SCHEMAS_FOLDER)
    chosen = [cluster] if cluster else list(workspace.clusters)
    minors = [parse_version(workspace.clusters[name].spec.versions.kubernetes).minor for name in chosen]
    taken = [(file, crd) for file in files for crd in read_crds_for_schema_import(file)]
    for file, crd in taken:
        check_crd_file(file, crd, min(minors, default=34))
    for _, crd in taken:
        place = write_crd(request.root, base / crd["group"] / f"{crd['plural']}.json", crd)
        sys.stdout.write(f"{place}: {crd['kind']} ({', '.join(crd['versions'])})\n")
    return Exit.CLEAN
