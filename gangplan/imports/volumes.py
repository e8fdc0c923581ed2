"""Map volumes of a source's pods: claims and secrets of the team, scratch space, files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_memory
from gangplan.imports.caches import place_cache_outside_root_home
from gangplan.imports.draft import SpecDraft, has_file_field
from gangplan.imports.environment import suggest_team_reference
from gangplan.imports.inline import map_inline_csi_volume
from gangplan.imports.nfs import map_nfs_folder_to_team_volume
from gangplan.imports.pods import SourceContainer, SourceMount, SourceVolume
from gangplan.imports.workload import PodRole
from gangplan.resolve.mounts import TAKEN_FOLDERS
from gangplan.spec.words import DNS_LABEL

_SHM = "/dev/shm"
# The folder of volumes that every pod gets: of the service account, and the kubelet's own.
_TOKENS = "/var/run/secrets/kubernetes.io"
_MODES = ("ReadWriteMany",)
_MODE = 0o644


def map_imported_volumes(draft: SpecDraft, role: PodRole) -> None:
    """Map what the container that trains mounts, then volumes that nothing mounts."""
    mounted: set[str] = set()
    for mount in role.pod.main.mounts:
        mounted.add(mount.name)
        if not _ask_about_scratch_of_launcher(draft, role, mount):
            _map_volume_mount(draft, mount)
    for other in (*role.pod.setup, *role.pod.sidecars):
        mounted |= {mount.name for mount in other.mounts}
    for volume in role.pod.volumes:
        if volume.name not in mounted:
            volume.node.dropped("nothing mounts it")
        else:
            volume.node["name"].dropped("volumes of a run are named by what they hold")


def _ask_about_scratch_of_launcher(draft: SpecDraft, role: PodRole, mount: SourceMount) -> bool:
    """Ask about room of a launcher that runs no ranks: scratch is only in pods that do."""
    volume = mount.volume
    if role is not draft.work.launcher or draft.work.runs_on_launcher or volume is None:
        return False
    if volume.kind not in ("emptyDir", "ephemeral") or posixpath.normpath(mount.path) == _SHM:
        return False
    why = "the launcher of a run has no scratch space; only its workers can have it"
    mount.node.asked(why)
    volume.node.asked(why)
    draft.ask(mount.node["mountPath"], why, "Use /tmp in the launcher, or a claim of the team for files.")
    return True


def _map_volume_mount(draft: SpecDraft, mount: SourceMount) -> None:
    volume, node = mount.volume, mount.node
    node["name"].dropped("volumes of a run are named by what they hold")
    if volume is None and any(one.fetches for one in draft.work.before):
        return  # the volume that initializers fetch to (steps.py)
    if volume is None:
        draft.ask(node, f"there is no volume '{mount.name}'", "Correct the source.")
        return
    path = posixpath.normpath(mount.path) if mount.path else ""
    volume.node["name"].dropped("volumes of a run are named by what they hold")
    if mount.sub_path or node["subPathExpr"]:
        draft.ask(
            node,
            "a run mounts whole volumes, not a part of one",
            "Use the path below the folder where it is mounted.",
        )
    if path.startswith(_TOKENS):
        node.dropped("runs have no token of the API server")
        volume.node.dropped("runs have no token of the API server")
        return
    if path == _SHM and volume.kind in ("emptyDir", "hostPath"):
        node.same("every run has shared memory of half of its memory at /dev/shm")
        _map_shared_memory_volume(volume)
        return
    if volume.kind == "hostPath":
        draft.host_paths.append(mount)  # only the platform can give a folder of the node (platform.py)
        return
    if not path.startswith("/") or path == "/" or ":" in path:
        draft.ask(node, f"'{mount.path}' is not a folder that a run can mount", "Choose another one.")
        return
    if taken := next(
        (why for folder, why in TAKEN_FOLDERS.items() if path == folder or path.startswith(f"{folder}/")), ""
    ):
        node.dropped(f"nothing may be mounted at {path}: {taken}")
        volume.node.dropped(f"nothing may be mounted at {path}: {taken}")
        return
    handler = _HANDLERS.get(volume.kind)
    if handler is None:
        why = f"a run has no place for a volume of the kind {volume.kind}"
        draft.ask(volume.node, why, "Put the data on a claim of the team, and mount that.")
        node["mountPath"].asked(why)
        return
    handler(draft, mount, volume, place_cache_outside_root_home(draft, mount, path))


def _map_claim_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    source = volume.node["persistentVolumeClaim"]
    name = _map_source_claim_to_team_claim(draft, volume.reference, mount)
    if name is None:
        draft.ask(
            source,
            f"the claim's name '{volume.reference}' cannot be used",
            "Give it a name under claims: of the team.",
        )
        return
    if draft.values.get("data", {}).get(name) not in (None, path):
        mount.node["mountPath"].asked(
            f"a run mounts a claim at one folder, and {name} is at {draft.values['data'][name]} already"
        )
        source.mapped("data")
        return
    other = next(
        (key for key, at in draft.values.get("data", {}).items() if at == path and key != name), None
    )
    if other is not None:
        mount.node.asked(f"{path} is the folder of {other} already")
        source.asked(f"{path} is the folder of {other} already")
        return
    draft.put(f"data/{name}", path, source["claimName"])
    mount.node["mountPath"].mapped(f"data.{name}")
    for flag in (source["readOnly"], mount.node["readOnly"]):
        flag.same("a claim is mounted as the team's file says") if flag.value is not True else flag.mapped(
            f"claims.{name}.readOnly"
        )


def _map_source_claim_to_team_claim(draft: SpecDraft, claim: str, mount: SourceMount) -> str | None:
    """Return the team's name of a claim; without one, suggest it. Return None for an invalid name."""
    for name, entry in draft.home.of_team.claims.items():
        if (entry.claim_name or name) == claim:
            return name
    name = re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")
    name = name if re.match(r"[a-z]", name) else f"claim-{name}".strip("-")
    if not re.fullmatch(DNS_LABEL, name) or len(name) > 63:
        return None
    modes = draft.work.claims.get(claim, _MODES)
    entry_of: dict[str, Any] = {"accessModes": list(modes)}
    if name != claim:
        entry_of["claimName"] = claim
    if mount.read_only or (
        mount.volume and mount.volume.node["persistentVolumeClaim"]["readOnly"].value is True
    ):
        entry_of["readOnly"] = True
    node = mount.volume.node if mount.volume else mount.node
    known = any(one.path == ("claims", name) for one in draft.suggestions)
    draft.suggest(draft.team_file, ("claims", name), entry_of, f"the run mounts the claim {claim}", node)
    if claim not in draft.work.claims and not known:
        draft.wonder(
            node,
            f"how many nodes may mount the claim {claim} is not known here; ReadWriteMany is assumed",
            f"Correct claims.{name}.accessModes in {draft.team_file}: kubectl get pvc {claim}.",
        )
    return name


def _map_shared_memory_volume(volume: SourceVolume) -> None:
    size = volume.node["emptyDir"]["sizeLimit"]
    if size:
        size.dropped("half of the run's memory; raise memory if that is less")
    volume.node.same("every run has shared memory at /dev/shm")


def _map_secret_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    source = volume.node["secret"]
    if not volume.reference:
        draft.ask(source, "the secret has no name", "Correct the source.")
        return
    keys = draft.work.ssh_keys
    if keys is not None and path and path == keys.text().rstrip("/"):
        volume.node.dropped("a run has keys of its own for SSH")
        mount.node.dropped("a run has keys of its own for SSH")
        return
    _map_keys_to_files(draft, source, "secret")
    source["defaultMode"].dropped("files of secrets are readable by the run's group")
    source["optional"].asked("a secret that a run mounts has to exist")
    if draft.put(f"secrets.files/{volume.reference}", path, source["secretName"]):
        mount.node["mountPath"].mapped(f"secrets.files.{volume.reference}")
        mount.node["readOnly"].same("secrets are read-only")
        suggest_team_reference(draft, "secrets", volume.reference, source)


def _map_empty_dir_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    source = volume.node["emptyDir"]
    if not has_file_field("scratch"):
        draft.ask(
            source,
            f"no field of a spec asks for scratch space (at {path})",
            "Use a claim, or a folder of the image.",
        )
        mount.node["mountPath"].asked("no field of a spec asks for scratch space")
        return
    medium = "memory" if volume.reference == "Memory" else "disk"
    size = convert_imported_memory(source["sizeLimit"].text()) or ("1Gi" if medium == "memory" else "10Gi")
    _set_scratch_space(
        draft, mount, volume, {"size": size, "medium": medium, "path": path}, not source["sizeLimit"]
    )


def _set_scratch_space(
    draft: SpecDraft, mount: SourceMount, volume: SourceVolume, value: dict[str, str], is_guess: bool
) -> None:
    if draft.values.get("scratch") not in (None, value):
        volume.node.asked("a run has one scratch space")
        mount.node.asked("a run has one scratch space")
        return
    draft.put("scratch", value, volume.node)
    mount.node.mapped("scratch.path")
    if is_guess:
        draft.wonder(
            volume.node,
            f"the source states no size of the scratch space at {value['path']}; {value['size']} is assumed",
            "Correct scratch.size.",
        )


def _map_ephemeral_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    claim = volume.node["ephemeral"]["volumeClaimTemplate"]["spec"]
    size = convert_imported_memory(claim["resources"]["requests"]["storage"].text())
    if not has_file_field("scratch") or size is None:
        draft.ask(
            volume.node, "no field of a spec asks for a volume of the run's own", "Use a claim of the team."
        )
        mount.node["mountPath"].asked("no field of a spec asks for a volume of the run's own")
        return
    _set_scratch_space(draft, mount, volume, {"size": size, "medium": "local", "path": path}, False)


def _map_keys_to_files(draft: SpecDraft, source: SourceNode, what: str) -> None:
    """Account for the keys that a volume chooses; ask about one whose file has another name."""
    why = f"a run mounts all keys of a {what}, under their own names"
    for one in source["items"].items():
        if one["mode"]:
            one["mode"].asked(f"all files of a {what} have one mode")
        key, path = one["key"].text(), one["path"].text()
        if key != path:
            draft.ask(
                one["path"],
                f"{why}: the file is called {key} there, not {path}",
                f"Rename the key of the {what}, or let the program read {key}.",
            )
        one.dropped(why)


def _map_config_map_volume(draft: SpecDraft, mount: SourceMount, volume: SourceVolume, path: str) -> None:
    source = volume.node["configMap"]
    if not has_file_field("files"):
        draft.ask(
            source,
            f"no field of a spec mounts a ConfigMap (at {path})",
            "Put the files into the image, or on a claim.",
        )
        mount.node["mountPath"].asked("no field of a spec mounts a ConfigMap")
        return
    _map_keys_to_files(draft, source, "ConfigMap")
    if source["defaultMode"].number() == _MODE:
        source["defaultMode"].same("files of ConfigMaps have the mode 0644")
    else:
        source["defaultMode"].asked("files of ConfigMaps have the mode 0644")
    if draft.put(f"files/{volume.reference}", path, source["name"]):
        mount.node["mountPath"].mapped("files")
        mount.node["readOnly"].same("files are read-only")
        suggest_team_reference(draft, "configMaps", volume.reference, source)


_HANDLERS = {
    "persistentVolumeClaim": _map_claim_volume,
    "secret": _map_secret_volume,
    "emptyDir": _map_empty_dir_volume,
    "ephemeral": _map_ephemeral_volume,
    "configMap": _map_config_map_volume,
    "csi": map_inline_csi_volume,
    "nfs": map_nfs_folder_to_team_volume,
}


def list_imported_mounts(container: SourceContainer) -> dict[str, str]:
    """Return the volume at each folder, for comparisons."""
    return {
        mount.path: _describe_imported_mount(mount, mount.volume)
        for mount in container.mounts
        if mount.volume
    }


def _describe_imported_mount(mount: SourceMount, volume: SourceVolume) -> str:
    """Return what is mounted: the volume, the part of it, and keys that become files of other names."""
    words = [volume.kind, volume.reference]
    if part := mount.sub_path or mount.node["subPathExpr"].text():
        words.append(f"only {part}")
    words += [f"{key} as {path}" for key, path in find_renamed_keys_of_imported_volume(volume)]
    return " ".join(filter(None, words))


def find_renamed_keys_of_imported_volume(volume: SourceVolume) -> list[tuple[str, str]]:
    """Return the keys of a ConfigMap or secret that become files of other names, and those names."""
    items = volume.node[volume.kind]["items"].items()
    names = [(one["key"].text(), one["path"].text()) for one in items]
    return [(key, path) for key, path in names if key != path]
