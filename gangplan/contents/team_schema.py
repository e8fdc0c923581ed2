"""The schema of a spec, restricted to what a team may use: its images, claims, clusters and more, with
descriptions.

An editor then offers these names and marks others. If the files list none of a kind, that part of the schema
stays as it is: nothing is refused because it is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from gangplan.contents.files import Files, block, blocks, entries
from gangplan.contents.tables import claims, images, pools, queues
from gangplan.model.profiles import PROFILES

Schema = dict[str, Any]
Names = Mapping[str, str]
# Keywords that a list of names makes redundant.
_FORM = ("pattern", "patternErrorMessage", "minLength", "maxLength")


def narrowed(schema: Schema, files: Files) -> Schema:
    """Return a copy of the spec schema, restricted to the requested teams, or to all teams."""
    out = deepcopy(schema)
    fields, defs = out["properties"], out["$defs"]
    if len(files.wanted_teams) == 1:
        fields["team"]["const"] = files.wanted_teams[0]
    stores = {str(row["name"]): row for row in claims(files)}
    _list(fields["clusters"]["items"], _clusters(files))
    _list(fields["image"], {str(row["image"]): _image(row) for row in images(files)})
    _list(fields["profile"], _profiles())
    _list(fields["priority"], _priorities(files))
    _list(fields["queue"], _queues(files))
    _list(fields["serviceAccount"], _accounts(files))
    _list(defs["Gpu"]["properties"]["model"], _models(files))
    _list(defs["Placement"]["properties"]["nodePool"], _pools(files))
    for level in ("required", "preferred"):
        _list(defs["Topology"]["properties"][level], _levels(files))
    _list(defs["Network"]["properties"]["egress"]["items"], _egress(files))
    _list(defs["Checkpoint"]["properties"]["to"], {name: _store(row) for name, row in stores.items()})
    _close(fields["data"], {name: _store(row) for name, row in stores.items()})
    _close(fields["volumes"], _volumes(files))
    secrets = _secrets(files)
    _close(defs["Secrets"]["properties"]["files"], secrets)
    if secrets:
        names = "|".join(sorted(name.replace(".", r"\.") for name in secrets))
        values = defs["Secrets"]["properties"]["env"]
        _value_of(values)["pattern"] = f"^({names})/[^/]+$"
        _value_of(values)["patternErrorMessage"] = (
            f"Expected SECRET/KEY, where SECRET is {' or '.join(sorted(secrets))}."
        )
    maps = _config_maps(files)
    _close(fields["files"], dict.fromkeys(maps, "ConfigMap of the team"))
    if maps:
        fields["files"]["patternProperties"] = {r"^\./.": _value_of(fields["files"])}
        names = "|".join(name.replace(".", r"\.") for name in maps)
        node = defs["EnvSource"]["properties"]["configMap"]
        node["pattern"] = f"^({names})/[-._a-zA-Z0-9]+$"
        node["patternErrorMessage"] = f"Expected NAME/KEY, where NAME is {' or '.join(maps)}."
    return out


def _list(node: Schema, names: Names) -> None:
    """Allow only these values for a field, each with its description."""
    if not names:
        return
    for word in _FORM:
        node.pop(word, None)
    node["enum"], node["enumDescriptions"] = list(names), list(names.values())
    node["examples"] = [one for one in node.get("examples", ()) if one in names] or [next(iter(names))]


def _close(node: Schema, names: Names) -> None:
    """Allow only these keys in a mapping, each with its description."""
    if not names:
        return
    value = _value_of(node)
    for word in ("patternProperties", "propertyNames"):
        node.pop(word, None)
    node["properties"] = {name: {**value, "description": told} for name, told in names.items()}
    node["additionalProperties"] = False
    node["examples"] = [one for one in node.get("examples", ()) if set(one) <= set(names)] or [{}]


def _value_of(node: Schema) -> Schema:
    """Return the schema of the values of a mapping."""
    inside: list[Any] = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    return next((one for one in inside if isinstance(one, dict)), {})


def _clusters(files: Files) -> Names:
    return {
        name: _words(
            (body.get("environment", "prod"), f"region {body['region']}" if "region" in body else "")
        )
        for name, body in files.clusters.items()
    }


def _image(row: Mapping[str, Any]) -> str:
    where = f"on {', '.join(row['clusters'])}" if row["clusters"] else ""
    return _words((row["description"], row["framework"], row["mpi"], row["gpus"], row["tag"], where))


def _profiles() -> Names:
    return {
        name: f"{one.workers} workers with {one.gpus} GPU{'' if one.gpus == 1 else 's'}, {one.cpu.canonical()} CPU cores and "
        f"{one.memory.canonical()} each; timeout {one.timeout // 3600}h"
        for name, one in PROFILES.items()
    }


def _priorities(files: Files) -> Names:
    where: dict[str, list[str]] = {}
    for row in queues(files):
        for one in row["priorities"]:
            clusters = where.setdefault(str(one), [])
            clusters += [row["cluster"]] if row["cluster"] not in clusters else []
    known = ("low", "normal", "high", "critical")
    return {name: f"on {', '.join(where[name])}" for name in known if name in where}


def _queues(files: Files) -> Names:
    return _where((str(row["queue"]), row["cluster"], f"of {row['team']}") for row in queues(files))


def _accounts(files: Files) -> Names:
    return _where(
        (name, cluster, str(account.get("reason", "")))
        for cluster, body in files.clusters.items()
        for team, queue in blocks(body, "teams").items()
        if not files.wanted_teams or team in files.wanted_teams
        for name, account in blocks(queue, "serviceAccounts").items()
    )


def _pools(files: Files) -> Names:
    return _where((str(row["pool"]), row["cluster"], _size(row)) for row in pools(files))


def _models(files: Files) -> Names:
    """List the models of GPUs. Slices (MIG) have a model too, which the row of a pool does not show."""
    return _where(
        (str(gpu["model"]), cluster, f"{pool.get('count')} nodes with {gpu.get('count')} in pool {name}")
        for cluster, body in files.clusters.items()
        for name, pool in blocks(body, "nodePools").items()
        if "model" in (gpu := block(pool, "gpu"))
    )


def _size(row: Mapping[str, Any]) -> str:
    gpus = f"{row['gpus']} {row['model']}" if row["gpus"] else "no GPUs"
    return _words((f"{row['nodes']} nodes", gpus, row.get("quota") and f"quota {row['quota']}"))


def _levels(files: Files) -> Names:
    return _where(
        (str(level.get("name")), cluster, str(level.get("label")))
        for cluster, body in files.clusters.items()
        for level in entries(body, "topology")
        if isinstance(level, dict) and "name" in level
    )


def _egress(files: Files) -> Names:
    return _where(
        (name, cluster, ", ".join(str(one.get("cidr")) for one in targets if isinstance(one, dict)))
        for cluster, body in files.clusters.items()
        for name, targets in block(body, "egress").items()
        if isinstance(targets, list)
    )


def _volumes(files: Files) -> Names:
    return _where(
        (name, cluster, str(volume.get("driver") or f"storage class {volume.get('storageClass')}"))
        for cluster, body in files.clusters.items()
        for name, volume in blocks(body, "volumes").items()
        if not files.wanted_teams
        or "teams" not in volume
        or {*files.wanted_teams} & {*map(str, entries(volume, "teams"))}
    )


def _where(found: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return what each name is on each cluster."""
    told: dict[str, list[str]] = {}
    for name, cluster, what in found:
        told.setdefault(name, []).append(f"{cluster}: {what}")
    return {name: "; ".join(words) for name, words in sorted(told.items())}


def _store(row: Mapping[str, Any]) -> str:
    access = ", ".join(map(str, row["access"]))
    return _words((row["kind"], access, "read-only" if row["readOnly"] else "", row["size"], row["place"]))


def _secrets(files: Files) -> dict[str, str]:
    found = {
        str(name): team for team, body in files.teams.items() for name in entries(body, "secrets") if name
    }
    return {name: f"secret of {team}" for name, team in sorted(found.items())}


def _config_maps(files: Files) -> list[str]:
    return sorted(
        {str(name) for body in files.teams.values() for name in entries(body, "configMaps") if name}
    )


def _words(words: Iterable[Any]) -> str:
    def shown() -> Iterator[str]:
        return (str(word) for word in words if word not in (None, ""))

    return ", ".join(shown())
