"""Flux: a source and Kustomizations of each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gangplan.delivery.engine import EngineInput, GitopsEngine
from gangplan.delivery.options import NAMESPACE_OPTION, PREFIX_OPTION, REPO_OPTION, REVISION_OPTION
from gangplan.gitops.source import (
    OCI_SCHEME,
    check_branch_name,
    check_gitops_artifact_url,
    check_gitops_repository_url,
    format_flux_url,
)


def _build_flux_delivery_files(given: EngineInput) -> Mapping[str, str]:
    """Build a file per cluster: its source and Kustomizations."""
    from gangplan.delivery.clusters import (
        build_repository_source,
        list_controllers,
        list_deliverable_cluster_parts,
        list_synced_clusters,
        require_workspace_for_delivery,
    )
    from gangplan.gitops.flux import build_flux_objects
    from gangplan.objects import dump_all

    files, source = {}, build_repository_source(given)
    for name in list_synced_clusters(given, "flux"):
        spec, parts = (
            require_workspace_for_delivery(given).clusters[name].spec,
            list_deliverable_cluster_parts(given, name),
        )
        objects = build_flux_objects(
            name, source, parts, spec.gang == "kueue", bool(spec.multi_kueue), list_controllers(spec)
        )
        files[f"{name}.yaml"] = dump_all(objects)
    return files


def _check_flux_revision(value: Any, words: str) -> Any:
    is_digest = re.fullmatch(r"sha256:[0-9a-f]{64}", value)
    return value if is_digest else check_branch_name(value, words)


def _check_flux_source_address(value: Any, words: str) -> Any:
    return (
        check_gitops_artifact_url(value, words)
        if value.startswith(OCI_SCHEME)
        else format_flux_url(check_gitops_repository_url(value, words))
    )


ENGINE = GitopsEngine(
    "flux",
    "Write a Flux source and Kustomizations for the platform, tenants and runs of each cluster.",
    (
        replace(
            REPO_OPTION,
            help="Git repository or oci:// artifact that Flux reads.",
            check=_check_flux_source_address,
        ),
        replace(
            REVISION_OPTION,
            help="Branch; with oci://, tag or digest of the artifact.",
            check=_check_flux_revision,
        ),
        replace(NAMESPACE_OPTION, default="flux-system"),
        PREFIX_OPTION,
    ),
    _build_flux_delivery_files,
    home="flux",
    by_cluster=True,
)
