"""Flux: a source and Kustomizations of each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gangplan.delivery.engine import Engine, Given
from gangplan.delivery.options import NAMESPACE, PREFIX, REPO, REVISION
from gangplan.gitops.source import OCI, check_artifact, check_branch, check_url, flux_url


def _files(given: Given) -> Mapping[str, str]:
    """Build a file per cluster: its source and Kustomizations."""
    from gangplan.delivery.clusters import controllers, parts_of, source_of, workspace_of
    from gangplan.gitops.flux import flux_objects
    from gangplan.objects import dump_all

    files, source = {}, source_of(given)
    for name in given.clusters:
        spec, parts = workspace_of(given).clusters[name].spec, parts_of(given, name)
        objects = flux_objects(
            name, source, parts, spec.gang == "kueue", bool(spec.multi_kueue), controllers(spec)
        )
        files[f"{name}.yaml"] = dump_all(objects)
    return files


def _revision(value: Any, words: str) -> Any:
    is_digest = re.fullmatch(r"sha256:[0-9a-f]{64}", value)
    return value if is_digest else check_branch(value, words)


def _address(value: Any, words: str) -> Any:
    return check_artifact(value, words) if value.startswith(OCI) else flux_url(check_url(value, words))


ENGINE = Engine(
    "flux",
    "Write a Flux source and Kustomizations for the platform, tenants and runs of each cluster.",
    (
        replace(REPO, help="Git repository or oci:// artifact that Flux reads.", check=_address),
        replace(REVISION, help="Branch; with oci://, tag or digest of the artifact.", check=_revision),
        replace(NAMESPACE, default="flux-system"),
        PREFIX,
    ),
    _files,
    home="flux",
    by_cluster=True,
)
