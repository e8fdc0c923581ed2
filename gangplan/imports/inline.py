"""Map inline CSI volumes of a source to volumes that the cluster's file lists or must gain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceMount, SourceVolume
from gangplan.spec.pods import PodVolume


def map_inline_csi_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    """Map a volume to one that all clusters list for its driver and attributes; else suggest it."""
    source = volume.node["csi"]
    driver = source["driver"].text()
    attributes = {name: node.text() for name, node in source["volumeAttributes"].fields()}
    name, own = _find_matching_csi_volume(draft, driver, attributes)
    if not name:
        name, own = _choose_csi_volume_name(draft, volume.name), {}
        entry = _build_entry_for_imported_csi_volume(volume, driver, attributes)
        for cluster in draft.home.clusters:
            file = draft.home.workspace.clusters[cluster].document.file
            draft.suggest(
                file, ("volumes", name), entry, f"the pods mount volumes of driver {driver}", volume.node
            )
    value: Any = {"path": path, "attributes": own} if own else path
    if not draft.put(f"volumes/{name}", value, source["driver"]):
        mount.node.asked(f"a pod mounts volume {name} at one folder")
        return
    mount.node["mountPath"].mapped(f"volumes.{name}")
    mount.node["readOnly"].same("the cluster's file says whether it is only read")
    for node in (
        source["volumeAttributes"],
        source["nodePublishSecretRef"],
        source["fsType"],
        source["readOnly"],
    ):
        node.mapped(f"volumes.{name}")


def _find_matching_csi_volume(
    draft: SpecDraft, driver: str, attributes: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return a volume that all clusters list alike, and the attributes for the spec; empty without one."""
    for name, kind in next(iter(draft.home.clusters.values())).volumes.items():
        own = {key: value for key, value in attributes.items() if kind.attributes.get(key) != value}
        if all(
            _matches_imported_csi_volume(draft, one.volumes.get(name), driver, attributes, own)
            for one in draft.home.clusters.values()
        ):
            return name, own
    return "", {}


def _matches_imported_csi_volume(
    draft: SpecDraft,
    kind: PodVolume | None,
    driver: str,
    attributes: Mapping[str, str],
    own: Mapping[str, str],
) -> bool:
    if kind is None or kind.driver != driver:
        return False
    is_offered = kind.teams is None or draft.home.team in kind.teams
    return is_offered and set(own) <= set(kind.settable) and set(kind.attributes) <= set(attributes)


def _choose_csi_volume_name(draft: SpecDraft, volume: str) -> str:
    """Return a name for the cluster's file that no volume there has."""
    base = re.sub(r"[^a-z0-9]+", "-", volume.lower()).strip("-")
    base = base if re.match(r"[a-z]", base) else f"volume-{base}".strip("-")
    taken = {name for one in draft.home.clusters.values() for name in one.volumes}
    return next(
        name for name in (base, *(f"{base}-{number}" for number in range(2, 99))) if name not in taken
    )


def _build_entry_for_imported_csi_volume(
    volume: SourceVolume, driver: str, attributes: dict[str, str]
) -> dict[str, Any]:
    """Return the entry that the cluster's file must gain."""
    source = volume.node["csi"]
    entry: dict[str, Any] = {"driver": driver}
    if attributes:
        entry["attributes"] = attributes
    if source["nodePublishSecretRef"]["name"]:
        entry["secret"] = source["nodePublishSecretRef"]["name"].text()
    if source["fsType"]:
        entry["fsType"] = source["fsType"].text()
    if source["readOnly"].value is True:
        entry["readOnly"] = True
    return entry
