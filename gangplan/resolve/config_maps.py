"""Files of a run: ConfigMaps of the team as folders, and files from next to the spec."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gangplan.model.job import HASH_PLACEHOLDER, Mount, SpecFolderFile, ValueOrigin
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import list_named_origins
from gangplan.rules.pods import CONFIG_MAP_UNKNOWN
from gangplan.spec.files import SPEC_FOLDER_PREFIX, resolve_spec_file

# The volume of the files next to the spec; those of the team's ConfigMaps are called files-NAME.
VOLUME = "files"


def resolve_config_mounts(context: JobResolution) -> list[Mount]:
    """Return a mount for each entry of `files`, and report ConfigMaps that the team does not declare."""
    declared, found = context.team.spec.config_maps, list[Mount]()
    taken: set[str] = set()
    keys = resolve_config_map_keys(context.spec.files)
    job = context.spec.spec.name or context.spec.source.stem
    for name, path in context.spec.spec.files.items():
        if name.startswith(SPEC_FOLDER_PREFIX):
            why = "files next to the spec are mounted one by one, for reading"
            origins = {**list_named_origins(("files", name), f"file {name}", why)}
            origins["name"] = ValueOrigin("job", ("run_name",)), origins[""][0]
            own = Mount(VOLUME, path, config_map=map_name(job), read_only=True, file=name, key=keys[name])
            found.append(replace(own, origins=origins))
            continue
        if name not in declared:
            _report_config_map_unknown_to_team(context, name)
        why = "ConfigMaps are mounted for reading, by their declared names"
        origins = {**list_named_origins(("files", name), f"ConfigMap {name}", why)}
        found.append(
            Mount(
                _choose_config_map_volume_name(name, taken),
                path,
                config_map=name,
                read_only=True,
                origins=origins,
            )
        )
    return found


def resolve_run_files(context: JobResolution) -> tuple[SpecFolderFile, ...]:
    """Return the files in the ConfigMap of the run."""
    files, spec = context.spec.files, context.spec.source.file
    return tuple(
        SpecFolderFile(key, resolve_spec_file(spec, name), files[name])
        for name, key in resolve_config_map_keys(files).items()
    )


def map_name(job: str) -> str:
    """Return the name of a run's ConfigMap while the name of the run is not known yet."""
    return f"{job}-{HASH_PLACEHOLDER}-files"


def resolve_config_map_keys(names: Iterable[str]) -> dict[str, str]:
    """Return a valid key for each file (Kubernetes v1.34, IsConfigMapKey)."""
    found: dict[str, str] = {}
    for name in names:
        base = re.sub(r"[^-._a-zA-Z0-9]", "-", name.rpartition("/")[2])[-240:]
        base = f"file{base}" if base in (".", "..") or base.startswith("..") else base
        keys = (base, *(f"{number}-{base}" for number in range(2, 40)))
        found[name] = next(key for key in keys if key not in found.values())
    return found


def _report_config_map_unknown_to_team(context: JobResolution, name: str) -> None:
    declared = context.team.spec.config_maps
    beside = f"{context.spec.source.file.rpartition('/')[0]}/{name}"
    help = context.near(name, declared, "config_maps")
    if "." in name:
        help = f"Write {SPEC_FOLDER_PREFIX}{name} for the file {beside}. {help}"
    message = f"ConfigMap '{name}' is not declared by team {context.team.name}"
    context.report(CONFIG_MAP_UNKNOWN, context.where("files", name, key=True), message, help)


def _choose_config_map_volume_name(name: str, taken: set[str]) -> str:
    """Return a volume name without dots, of at most 63 characters (Kubernetes v1.34, ValidateVolumes)."""
    base = f"files-{name}".replace(".", "-")[:60].rstrip("-")
    volume = next(one for one in (base, *(f"{base}-{n}" for n in range(2, 40))) if one not in taken)
    taken.add(volume)
    return volume
