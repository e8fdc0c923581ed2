"""Clusters as they would be at other versions. Writes nothing: only the workspace in memory changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pydantic.alias_generators import to_snake

from gangplan.errors import UserError
from gangplan.model.support import OPENSHIFT_LINES
from gangplan.model.version import parse_version
from gangplan.spec.cluster import Versions
from gangplan.workspace import Workspace, suggest_nearest

# Components as a cluster file names them.
COMPONENTS = tuple(field.alias or name for name, field in Versions.model_fields.items())
_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?")

VersionPairs = tuple[tuple[str, str], ...]


def parse_cluster_upgrade_versions(text: str) -> VersionPairs:
    """Parse `trainer=2.3,kueue=0.19` into pairs, in the order of a cluster file. Raises UserError."""
    stated: dict[str, str] = {}
    for part in text.split(","):
        name, sign, version = (word.strip() for word in part.partition("="))
        if not sign:
            raise UserError(
                f"'{part}' does not name a component and its version", "Write --as trainer=2.3,kueue=0.19."
            )
        if name not in COMPONENTS:
            raise UserError(f"there is no component '{name}'", suggest_nearest(name, COMPONENTS))
        if not _VERSION.fullmatch(version):
            raise UserError(
                f"'{version}' is not a version of {name}", f"Write --as {name}=1.2 or {name}=1.2.3."
            )
        if name in stated:
            raise UserError(f"{name} is given twice: {stated[name]} and {version}", "Give it once.")
        stated[name] = version
    return tuple((name, stated[name]) for name in COMPONENTS if name in stated)


def replace_versions_of_clusters(
    workspace: Workspace, versions: VersionPairs, clusters: Iterable[str] = ()
) -> Workspace:
    """Return the workspace as if its clusters (or only the named ones) had these versions."""
    if not versions:
        return workspace
    chosen = set(clusters) or set(workspace.clusters)
    changed = {
        name: replace(
            cluster,
            spec=cluster.spec.model_copy(
                update={"versions": _resolve_versions_after_upgrade(cluster.spec.versions, dict(versions))}
            ),
        )
        if name in chosen
        else cluster
        for name, cluster in workspace.clusters.items()
    }
    return replace(workspace, clusters=changed)


def _resolve_versions_after_upgrade(stated: Versions, wanted: Mapping[str, str]) -> Versions:
    """Return the changed versions, with those that follow: Trainer's JobSet, OpenShift's Kubernetes."""
    values: dict[str, str | None] = {to_snake(name): version for name, version in wanted.items()}
    if "trainer" in values and "jobset" not in values:
        values["jobset"] = None
    if "openshift" in wanted and "kubernetes" not in values:
        inside = OPENSHIFT_LINES.get(parse_version(wanted["openshift"]).line)
        if inside is not None and inside != parse_version(stated.kubernetes).line:
            values["kubernetes"] = inside
    return stated.model_copy(update=values)
