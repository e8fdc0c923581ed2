"""The schema of a spec, restricted to what a team may use: its images, claims, clusters and more, with
descriptions.

An editor then offers these names and marks others. If the files list none of a kind, that part of the schema
stays as it is: nothing is refused because it is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from gangplan.contents.files import WorkspaceFiles, get_block, get_list, get_named_blocks
from gangplan.contents.tables import (
    list_workspace_claim_rows,
    list_workspace_image_rows,
    list_workspace_pool_rows,
    list_workspace_queue_rows,
)
from gangplan.model.profiles import WORKLOAD_PROFILES

Schema = dict[str, Any]
Names = Mapping[str, str]
# Keywords that a list of names makes redundant.
_FORM = ("pattern", "patternErrorMessage", "minLength", "maxLength")


def narrow_spec_schema_to_teams(schema: Schema, files: WorkspaceFiles) -> Schema:
    """Return a copy of the spec schema, restricted to the requested teams, or to all teams."""
    out = deepcopy(schema)
    fields, defs = out["properties"], out["$defs"]
    if len(files.wanted_teams) == 1:
        fields["team"]["const"] = files.wanted_teams[0]
    stores = {str(row["name"]): row for row in list_workspace_claim_rows(files)}
    _narrow_schema_field_to_choices(fields["clusters"]["items"], _describe_workspace_cluster_choices(files))
    _narrow_schema_field_to_choices(
        fields["image"],
        {str(row["image"]): _describe_catalog_image(row) for row in list_workspace_image_rows(files)},
    )
    _narrow_schema_field_to_choices(fields["profile"], _describe_profile_choices())
    _narrow_schema_field_to_choices(fields["priority"], _describe_workspace_priority_choices(files))
    _narrow_schema_field_to_choices(fields["queue"], _describe_queue_choices(files))
    _narrow_schema_field_to_choices(fields["serviceAccount"], _describe_workspace_account_choices(files))
    _narrow_schema_field_to_choices(
        defs["Gpu"]["properties"]["model"], _describe_workspace_gpu_model_choices(files)
    )
    _narrow_schema_field_to_choices(
        defs["Placement"]["properties"]["nodePool"], _describe_pool_choices(files)
    )
    for level in ("required", "preferred"):
        _narrow_schema_field_to_choices(
            defs["Topology"]["properties"][level], _describe_workspace_topology_choices(files)
        )
    _narrow_schema_field_to_choices(
        defs["Network"]["properties"]["egress"]["items"], _describe_workspace_egress_choices(files)
    )
    _narrow_schema_field_to_choices(
        defs["Checkpoint"]["properties"]["to"],
        {name: _describe_claim_or_connection(row) for name, row in stores.items()},
    )
    _narrow_schema_keys_to_choices(
        fields["data"], {name: _describe_claim_or_connection(row) for name, row in stores.items()}
    )
    _narrow_schema_keys_to_choices(fields["volumes"], _describe_workspace_volume_choices(files))
    secrets = _describe_secret_choices(files)
    _narrow_schema_keys_to_choices(defs["Secrets"]["properties"]["files"], secrets)
    if secrets:
        names = "|".join(sorted(name.replace(".", r"\.") for name in secrets))
        values = defs["Secrets"]["properties"]["env"]
        _find_mapping_value_schema(values)["pattern"] = f"^({names})/[^/]+$"
        _find_mapping_value_schema(values)["patternErrorMessage"] = (
            f"Expected SECRET/KEY, where SECRET is {' or '.join(sorted(secrets))}."
        )
    maps = _list_config_map_names(files)
    _narrow_schema_keys_to_choices(fields["files"], dict.fromkeys(maps, "ConfigMap of the team"))
    if maps:
        fields["files"]["patternProperties"] = {r"^\./.": _find_mapping_value_schema(fields["files"])}
        names = "|".join(name.replace(".", r"\.") for name in maps)
        node = defs["EnvSource"]["properties"]["configMap"]
        node["pattern"] = f"^({names})/[-._a-zA-Z0-9]+$"
        node["patternErrorMessage"] = f"Expected NAME/KEY, where NAME is {' or '.join(maps)}."
    return out


def _narrow_schema_field_to_choices(node: Schema, names: Names) -> None:
    """Allow only these values for a field, each with its description."""
    if not names:
        return
    for word in _FORM:
        node.pop(word, None)
    node["enum"], node["enumDescriptions"] = list(names), list(names.values())
    node["examples"] = [one for one in node.get("examples", ()) if one in names] or [next(iter(names))]


def _narrow_schema_keys_to_choices(node: Schema, names: Names) -> None:
    """Allow only these keys in a mapping, each with its description."""
    if not names:
        return
    value = _find_mapping_value_schema(node)
    for word in ("patternProperties", "propertyNames"):
        node.pop(word, None)
    node["properties"] = {name: {**value, "description": told} for name, told in names.items()}
    node["additionalProperties"] = False
    node["examples"] = [one for one in node.get("examples", ()) if set(one) <= set(names)] or [{}]


def _find_mapping_value_schema(node: Schema) -> Schema:
    """Return the schema of the values of a mapping."""
    inside: list[Any] = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    return next((one for one in inside if isinstance(one, dict)), {})


def _describe_workspace_cluster_choices(files: WorkspaceFiles) -> Names:
    return {
        name: _join_description_words(
            (body.get("environment", "prod"), f"region {body['region']}" if "region" in body else "")
        )
        for name, body in files.clusters.items()
    }


def _describe_catalog_image(row: Mapping[str, Any]) -> str:
    where = f"on {', '.join(row['clusters'])}" if row["clusters"] else ""
    return _join_description_words(
        (row["description"], row["framework"], row["mpi"], row["gpus"], row["tag"], where)
    )


def _describe_profile_choices() -> Names:
    return {
        name: f"{one.workers} workers with {one.gpus} GPU{'' if one.gpus == 1 else 's'}, {one.cpu.canonical()} CPU cores and "
        f"{one.memory.canonical()} each; timeout {one.timeout // 3600}h"
        for name, one in WORKLOAD_PROFILES.items()
    }


def _describe_workspace_priority_choices(files: WorkspaceFiles) -> Names:
    where: dict[str, list[str]] = {}
    for row in list_workspace_queue_rows(files):
        for one in row["priorities"]:
            clusters = where.setdefault(str(one), [])
            clusters += [row["cluster"]] if row["cluster"] not in clusters else []
    known = ("low", "normal", "high", "critical")
    return {name: f"on {', '.join(where[name])}" for name in known if name in where}


def _describe_queue_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (str(row["queue"]), row["cluster"], f"of {row['team']}") for row in list_workspace_queue_rows(files)
    )


def _describe_workspace_account_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (name, cluster, str(account.get("reason", "")))
        for cluster, body in files.clusters.items()
        for team, queue in get_named_blocks(body, "teams").items()
        if not files.wanted_teams or team in files.wanted_teams
        for name, account in get_named_blocks(queue, "serviceAccounts").items()
    )


def _describe_pool_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (str(row["pool"]), row["cluster"], _describe_pool_size(row))
        for row in list_workspace_pool_rows(files)
    )


def _describe_workspace_gpu_model_choices(files: WorkspaceFiles) -> Names:
    """List the models of GPUs. Slices (MIG) have a model too, which the row of a pool does not show."""
    return _join_choice_descriptions_of_clusters(
        (str(gpu["model"]), cluster, f"{pool.get('count')} nodes with {gpu.get('count')} in pool {name}")
        for cluster, body in files.clusters.items()
        for name, pool in get_named_blocks(body, "nodePools").items()
        if "model" in (gpu := get_block(pool, "gpu"))
    )


def _describe_pool_size(row: Mapping[str, Any]) -> str:
    gpus = f"{row['gpus']} {row['model']}" if row["gpus"] else "no GPUs"
    return _join_description_words(
        (f"{row['nodes']} nodes", gpus, row.get("quota") and f"quota {row['quota']}")
    )


def _describe_workspace_topology_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (str(level.get("name")), cluster, str(level.get("label")))
        for cluster, body in files.clusters.items()
        for level in get_list(body, "topology")
        if isinstance(level, dict) and "name" in level
    )


def _describe_workspace_egress_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (name, cluster, ", ".join(str(one.get("cidr")) for one in targets if isinstance(one, dict)))
        for cluster, body in files.clusters.items()
        for name, targets in get_block(body, "egress").items()
        if isinstance(targets, list)
    )


def _describe_workspace_volume_choices(files: WorkspaceFiles) -> Names:
    return _join_choice_descriptions_of_clusters(
        (name, cluster, str(volume.get("driver") or f"storage class {volume.get('storageClass')}"))
        for cluster, body in files.clusters.items()
        for name, volume in get_named_blocks(body, "volumes").items()
        if not files.wanted_teams
        or "teams" not in volume
        or {*files.wanted_teams} & {*map(str, get_list(volume, "teams"))}
    )


def _join_choice_descriptions_of_clusters(found: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return what each name is on each cluster."""
    told: dict[str, list[str]] = {}
    for name, cluster, what in found:
        told.setdefault(name, []).append(f"{cluster}: {what}")
    return {name: "; ".join(words) for name, words in sorted(told.items())}


def _describe_claim_or_connection(row: Mapping[str, Any]) -> str:
    access = ", ".join(map(str, row["access"]))
    return _join_description_words(
        (row["kind"], access, "read-only" if row["readOnly"] else "", row["size"], row["place"])
    )


def _describe_secret_choices(files: WorkspaceFiles) -> dict[str, str]:
    found = {
        str(name): team for team, body in files.teams.items() for name in get_list(body, "secrets") if name
    }
    return {name: f"secret of {team}" for name, team in sorted(found.items())}


def _list_config_map_names(files: WorkspaceFiles) -> list[str]:
    return sorted(
        {str(name) for body in files.teams.values() for name in get_list(body, "configMaps") if name}
    )


def _join_description_words(words: Iterable[Any]) -> str:
    def shown() -> Iterator[str]:
        return (str(word) for word in words if word not in (None, ""))

    return ", ".join(shown())
