"""The environment of a job: layers of variables, and values from ConfigMaps, fields and resources."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.findings import FieldPath
from gangplan.model.job import EnvVar, Origin, Origins, ValueOrigin
from gangplan.model.pods import build_origin_key
from gangplan.resolve.context import JobResolution
from gangplan.rules.pods import CONFIG_MAP_UNKNOWN
from gangplan.spec.pods import EnvSource


def merge_env_layers(context: JobResolution) -> dict[str, EnvVar]:
    """Merge the variables of cluster, cluster defaults, team defaults and spec by name; later ones win."""
    cluster, team, spec = context.cluster.spec, context.team.spec, context.spec.spec
    found: dict[str, EnvVar] = {}
    for who, document, layer, *path in (
        ("cluster", context.cluster.document, cluster.env, "env"),
        ("cluster", context.cluster.document, cluster.defaults.env, "defaults", "env"),
        ("team", context.team.document, team.defaults.env, "defaults", "env"),
    ):
        for name, value in layer.items():
            origins = (ValueOrigin(who, (*path, name)), *_list_origins_that_override_env(who, name))
            found[name] = EnvVar(name, value, origins=origins)
            context.origins[build_origin_key(name)] = Origin(who, document.where((*path, name)))
    return found | resolve_env_block(context, spec.env, ("env",))


def _list_origins_that_override_env(who: str, name: str) -> Origins:
    """Return the places where a variable would override that of a layer."""
    spec = ValueOrigin("spec", ("env", name), "env in the spec would win", is_direct=False)
    if who == "team":
        return (spec,)
    return spec, ValueOrigin(
        "team", ("defaults", "env", name), "the team's default would win", is_direct=False
    )


def resolve_env_block(
    context: JobResolution, given: Mapping[str, str | EnvSource], at: FieldPath
) -> dict[str, EnvVar]:
    """Return the variables of one block of the spec, which is at a path."""
    return {
        name: EnvVar(name, value, origins=(ValueOrigin("spec", (*at, name)),))
        if isinstance(value, str)
        else _resolve_env_source(context, name, value, at)
        for name, value in given.items()
    }


def _resolve_env_source(context: JobResolution, name: str, source: EnvSource, at: FieldPath) -> EnvVar:
    if source.config_map is None:
        origins = (ValueOrigin("spec", (*at, name, "field" if source.field else "resource")),)
        return EnvVar(name, field=source.field or "", resource=source.resource or "", origins=origins)
    config_map, _, key = source.config_map.partition("/")
    declared = context.team.spec.config_maps
    if config_map not in declared:
        context.report(
            CONFIG_MAP_UNKNOWN,
            context.where(*at, name, "configMap"),
            f"ConfigMap '{config_map}' is not declared by team {context.team.name}",
            context.near(config_map, declared, "config_maps", key=key),
        )
    origins = (ValueOrigin("spec", (*at, name, "configMap")),)
    return EnvVar(name, config_map=config_map, key=key, origins=origins)
