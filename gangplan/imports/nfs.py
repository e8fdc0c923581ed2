"""Map NFS folders that pods mount directly to volumes of the team, made by the platform, and their claims."""

from __future__ import annotations

import re

from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceMount, SourceVolume

# Kubernetes requires a capacity, which NFS ignores (k8s.io/api/core/v1 PersistentVolumeSpec).
SIZE = "1Ti"


def map_nfs_folder_to_team_volume(
    draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str
) -> None:
    """Map a folder to `persistentVolumes` of the team on each cluster, and to a claim that its runs mount."""
    source = volume.node["nfs"]
    server, folder = source["server"].text(), source["path"].text()
    name = _choose_nfs_volume_name(draft, volume.name, server, folder)
    if not server or not folder.startswith("/") or not name:
        why = "the folder of an NFS server needs a server, a path and a name that a claim can have"
        draft.ask(volume.node, why, "Correct the source.")
        mount.node["mountPath"].asked(why)
        return
    if draft.values.get("data", {}).get(name) not in (None, path):
        mount.node["mountPath"].asked(f"a run mounts {name} at one folder")
        source.mapped(f"data.{name}")
        return
    why = f"the pods mount {folder} of the NFS server {server}"
    entry = {"nfs": {"server": server, "path": folder}, "size": SIZE}
    for cluster, spec in draft.home.clusters.items():
        if name not in spec.teams[draft.home.team].persistent_volumes:
            file = draft.home.workspace.clusters[cluster].document.file
            draft.suggest(
                file, ("teams", draft.home.team, "persistentVolumes", name), entry, why, volume.node
            )
    if name not in draft.home.of_team.claims:
        reads = source["readOnly"].value is True or mount.read_only
        claim = {"accessModes": ["ReadWriteMany"], **({"readOnly": True} if reads else {})}
        draft.suggest(draft.team_file, ("claims", name), claim, why, volume.node)
    draft.put(f"data/{name}", path, source["server"])
    for node in (source["path"], source["readOnly"], mount.node["mountPath"], mount.node["readOnly"]):
        node.mapped(f"data.{name}")


def _choose_nfs_volume_name(draft: SpecDraft, volume: str, server: str, folder: str) -> str:
    """Return the name of the team's volume for this folder; else a name from the source that no claim has."""
    for spec in draft.home.clusters.values():
        for name, one in spec.teams[draft.home.team].persistent_volumes.items():
            if one.nfs is not None and (one.nfs.server, one.nfs.path) == (server, folder):
                return name
    known = next(
        (
            one.path[-1]
            for one in draft.suggestions
            if one.path[-2:-1] == ("persistentVolumes",)
            and one.value["nfs"] == {"server": server, "path": folder}
        ),
        "",
    )
    base = re.sub(r"[^a-z0-9]+", "-", volume.lower()).strip("-")
    base = base if re.match(r"[a-z]", base) else f"nfs-{base}".strip("-")
    taken = {*draft.home.of_team.claims, *draft.values.get("data", {})}
    free = (one for one in (base, *(f"{base}-{number}" for number in range(2, 99))) if one not in taken)
    return known or next(free, "")[:63]
