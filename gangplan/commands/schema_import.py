"""`gangplan schema import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.absent import no_cluster
from gangplan.errors import Exit
from gangplan.model.version import parse_version
from gangplan.pipeline.crds import check_rules, crds_in, put_crd
from gangplan.pipeline.request import Request
from gangplan.spec.crd_files import SCHEMAS
from gangplan.workspace import load_workspace


def import_crds(request: Request, files: Sequence[Path], cluster: str | None) -> Exit:
    """Import CRDs into the workspace, for all clusters or for one.

    Raises UserError for an unknown cluster, and for a file that contains no CRD or an invalid one.
    """
    workspace = load_workspace(request.root)
    if cluster is not None and cluster not in workspace.clusters:
        raise no_cluster(cluster, workspace)
    base = request.root / (f"overlays/{cluster}/{SCHEMAS}" if cluster else SCHEMAS)
    chosen = [cluster] if cluster else list(workspace.clusters)
    minors = [parse_version(workspace.clusters[name].spec.versions.kubernetes).minor for name in chosen]
    taken = [(file, crd) for file in files for crd in crds_in(file)]
    for file, crd in taken:
        check_rules(file, crd, min(minors, default=34))
    for _, crd in taken:
        place = put_crd(request.root, base / crd["group"] / f"{crd['plural']}.json", crd)
        sys.stdout.write(f"{place}: {crd['kind']} ({', '.join(crd['versions'])})\n")
    return Exit.CLEAN
