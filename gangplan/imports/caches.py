"""Move caches out of root's home, which no container of a run may enter, to folders that variables name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceMount
from gangplan.model.folders import ROOT_HOME

# Folders of root's home, the variable that says where each is, and its folder in a run. Sources: constants.py of
# huggingface_hub, torch/hub.py, config.py of Keras, envs.py of vLLM; Triton; the XDG Base Directory Specification.
_CACHES = {
    ".cache": ("XDG_CACHE_HOME", "/mnt/cache"),
    ".cache/huggingface": ("HF_HOME", "/mnt/huggingface"),
    ".cache/huggingface/hub": ("HF_HUB_CACHE", "/mnt/huggingface-hub"),
    ".cache/torch": ("TORCH_HOME", "/mnt/torch"),
    ".cache/vllm": ("VLLM_CACHE_ROOT", "/mnt/vllm"),
    ".keras": ("KERAS_HOME", "/mnt/keras"),
    ".triton/cache": ("TRITON_CACHE_DIR", "/mnt/triton"),
}


def place_cache_outside_root_home(draft: SpecDraft, mount: SourceMount, path: str) -> str:
    """Return the folder at which a run mounts a volume: that of the source, unless it is a cache in root's home."""
    variable, folder = _CACHES.get(path.removeprefix(f"{ROOT_HOME}/"), ("", path))
    if variable and path not in draft.moved:
        draft.moved[path] = folder
        mount.node["mountPath"].asked(f"only root may enter {ROOT_HOME}: it is at {folder}")
        says = f", and {variable} says so" if draft.put(f"env/{variable}", path) else ""
        draft.wonder(
            mount.node["mountPath"],
            f"containers of runs are not root, and only root may enter {ROOT_HOME}: this cache is at {folder}{says}",
            f"Where the program names {path} itself, write {folder} there.",
        )
    return folder


def rewrite_moved_folders(draft: SpecDraft) -> None:
    """Write the new folders into the variables and commands of all pods of a draft.

    Setup and sidecars have the job's variables. Where the source sets one of these for its program alone, they are
    told the folder that they used without it.
    """
    if not draft.moved:
        return
    caches = [_CACHES[path.removeprefix(f"{ROOT_HOME}/")] for path in draft.moved]
    for field in ("env", "command", "setup", "sidecars", "steps", "roles"):
        if field in draft.values:
            draft.values[field] = _rename_folders(draft.values[field], draft.moved)
    for other in (*draft.values.get("setup", ()), *draft.values.get("sidecars", ())):
        set_now = draft.values.get("env", {})
        told = {name: folder for name, folder in sorted(caches) if set_now.get(name) != folder}
        if told:
            other["env"] = {**told, **other.get("env", {})}


def _rename_folders(value: Any, moved: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _rename_folders(one, moved) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rename_folders(one, moved) for one in value]
    for path, folder in sorted(moved.items(), reverse=True) if isinstance(value, str) else ():
        value = re.sub(rf"{re.escape(path)}(?![\w.-])", folder, value)
    return value
