"""Checks that a run's data, secrets and ConfigMaps are on its cluster, as far as team.yaml limits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.findings import FieldPath, Finding, Location
from gangplan.resolve.context import JobResolution
from gangplan.rules.teams import NOT_THERE
from gangplan.spec.pods import EnvSource
from gangplan.spec.team import Team
from gangplan.workspace import TeamFile


def check_spec_names_in_cluster_file(context: JobResolution) -> None:
    """Report claims, connections, secrets and ConfigMaps in the spec that only other clusters have."""
    team, cluster = context.team.spec, context.cluster.name
    told: set[tuple[Location, str]] = set()
    for kind, name, where in _list_names_used_by_spec(context):
        for what, listed in _find_clusters_that_have_name(team, kind, name):
            if listed is None or cluster in listed or (where, what) in told:
                continue
            told.add((where, what))
            context.report(
                NOT_THERE,
                where,
                f"{what} is on {' and '.join(listed)}, and this run goes to {cluster}",
                f"Write clusters: [{', '.join(listed)}] in the spec, or add {cluster} where"
                f" {context.team.document.file} lists its clusters, once it is there.",
            )


def _list_names_used_by_spec(context: JobResolution) -> Iterator[tuple[str, str, Location]]:
    """Yield what the spec names: its kind, its name, the place."""
    spec, where = context.spec.spec, context.where
    for name in spec.data:
        yield "data", name, where("data", name, key=True)
    if spec.checkpoint is not None:
        yield "data", spec.checkpoint.to, where("checkpoint", "to")
    for name, reference in spec.secrets.env.items():
        yield "secret", reference.partition("/")[0], where("secrets", "env", name)
    for name in spec.secrets.files:
        yield "secret", name, where("secrets", "files", name, key=True)
    for name in spec.files:
        yield "ConfigMap", name, where("files", name, key=True)
    for at, env in _list_env_blocks_of_spec(context):
        for name, value in env.items():
            if isinstance(value, EnvSource) and value.config_map:
                yield "ConfigMap", value.config_map.partition("/")[0], where(*at, name, "configMap")
    for index, step in enumerate(spec.steps):
        if step.secret:
            yield "secret", step.secret.partition("/")[0], where("steps", index, "secret")
        if step.fetch and not step.fetch.startswith("hf://"):
            yield "data", step.fetch.partition("/")[0], where("steps", index, "fetch")


def _list_env_blocks_of_spec(
    context: JobResolution,
) -> Iterator[tuple[FieldPath, Mapping[str, str | EnvSource]]]:
    """Yield every env of the spec, with its path."""
    spec = context.spec.spec
    yield ("env",), spec.env
    yield from ((("setup", index, "env"), one.env) for index, one in enumerate(spec.setup))
    yield from ((("sidecars", index, "env"), one.env) for index, one in enumerate(spec.sidecars))
    yield from ((("steps", index, "env"), one.env) for index, one in enumerate(spec.steps))
    yield from ((("roles", name, "env"), one.env) for name, one in spec.roles.items())


def _find_clusters_that_have_name(
    team: Team, kind: str, name: str
) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield what a name refers to and what that depends on, each with its clusters (None: all)."""
    if kind != "data":
        yield f"{kind} '{name}'", team.only_on.get(name)
        return
    if name in team.claims:
        yield f"claim '{name}'", team.claims[name].clusters
    elif name in team.connections:
        one = team.connections[name]
        yield f"connection '{name}'", one.clusters
        if one.secret:
            yield f"secret '{one.secret}'", team.only_on.get(one.secret)
        if one.claim in team.claims:
            yield f"claim '{one.claim}'", team.claims[one.claim].clusters


def find_names_undeclared_by_team(team: TeamFile) -> Iterator[Finding]:
    """Yield findings about names in onlyOn that the file does not declare."""
    spec = team.spec
    of_stores = {one.secret for one in spec.connections.values() if one.secret}
    known = {*spec.secrets, *spec.config_maps, *spec.pull_secrets, *of_stores}
    for name in spec.only_on:
        if name not in known:
            yield Finding(
                NOT_THERE,
                team.document.where(("onlyOn", name), key=True),
                f"'{name}' is neither a secret nor a ConfigMap of team {team.name}",
                "Write clusters: in the claim or connection itself."
                if name in spec.claims or name in spec.connections
                else "Correct the name, or declare it under secrets or configMaps.",
            )
