"""The environment of a job: the layers of files, and values that stand elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.model.job import EnvVar, Origin
from gangplan.model.pods import origin_of
from gangplan.resolve.context import JobResolution
from gangplan.rules.pods import CONFIG_MAP_UNKNOWN
from gangplan.source import Path
from gangplan.spec.pods import EnvSource


def plain_env(context: JobResolution) -> dict[str, EnvVar]:
    """Cluster, cluster defaults, team defaults, spec: the nearest to the spec wins, name by name."""
    cluster, team, spec = context.cluster.spec, context.team.spec, context.spec.spec
    found: dict[str, EnvVar] = {}
    for who, document, layer, *path in (
        ("cluster", context.cluster.document, cluster.env, "env"),
        ("cluster", context.cluster.document, cluster.defaults.env, "defaults", "env"),
        ("team", context.team.document, team.defaults.env, "defaults", "env"),
    ):
        for name, value in layer.items():
            found[name] = EnvVar(name, value)
            context.origins[origin_of(name)] = Origin(who, document.where((*path, name)))
    return found | own_env(context, spec.env, ("env",))


def own_env(context: JobResolution, given: Mapping[str, str | EnvSource], at: Path) -> dict[str, EnvVar]:
    """The variables of one block of the spec, which is at a path."""
    return {
        name: EnvVar(name, value) if isinstance(value, str) else _from(context, name, value, at)
        for name, value in given.items()
    }


def _from(context: JobResolution, name: str, source: EnvSource, at: Path) -> EnvVar:
    if source.config_map is None:
        return EnvVar(name, field=source.field or "", resource=source.resource or "")
    config_map, _, key = source.config_map.partition("/")
    declared = context.team.spec.config_maps
    if config_map not in declared:
        context.report(
            CONFIG_MAP_UNKNOWN,
            context.where(*at, name, "configMap"),
            f"ConfigMap '{config_map}' is not declared by team {context.team.name}",
            context.near(config_map, declared, "config_maps", key=key),
        )
    return EnvVar(name, config_map=config_map, key=key)
