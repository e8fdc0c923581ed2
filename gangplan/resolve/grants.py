"""What the platform grants a team and requires of it: namespace, regimes, and the weakest network posture.

A team writes its own folder and every rendered file that follows from it, so nothing that separates teams may
depend on the team's own files alone. Errors are reported at the file that takes too much or omits something,
never at the team that would suffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import Finding, Location
from gangplan.model.profiles import DEFAULT_POSTURE
from gangplan.records import dataclass
from gangplan.rules.grants import NAMESPACE_NOT_GIVEN, POSTURE_TOO_WEAK, REGIME_NOT_EVERYWHERE
from gangplan.rules.teams import NAMESPACE_RESERVED, NAMESPACE_TWICE
from gangplan.spec.namespaces import RESERVED_NAMESPACES, list_own_namespaces, namespace_of
from gangplan.workspace import ClusterFile, TeamFile, Workspace

# From the weakest to the strongest.
POSTURES = (DEFAULT_POSTURE, "restricted", "isolated")
OWN, GRANTED, CHOSEN = range(3)  # how strong a claim to a namespace is, strongest first


@dataclass(frozen=True, slots=True, order=True)
class _Taken:
    """A namespace that a team has: how strong its claim is, and where it is written."""

    right: int
    team: str
    where: Location
    name: str


def check_team_namespaces(workspace: Workspace) -> Iterator[Finding]:
    """Check that a namespace, with its roles, quota and secrets, has one team, and is not the platform's."""
    specs = [cluster.spec for cluster in workspace.clusters.values()]
    platform = {spec.monitoring.namespace for spec in specs if spec.monitoring}
    platform |= {spec.dns.namespace for spec in specs if spec.dns}
    taken: list[_Taken] = []
    for team in workspace.teams.values():
        found = dict.fromkeys(_list_namespaces_taken_by_team(workspace, team))
        reserved = [one for one in found if RESERVED_NAMESPACES.fullmatch(one.name) or one.name in platform]
        yield from map(_refuse_reserved_team_namespace, {one.where: one for one in reserved}.values())
        if not reserved:
            yield from _check_team_namespace_granted(workspace, team)
        taken += [one for one in found if one not in reserved]
    owners: dict[str, str] = {}
    for one in sorted(taken):
        owner = owners.setdefault(one.name, one.team)
        if owner != one.team:
            yield _refuse_duplicate_team_namespace(one.where, one.name, owner)


def _list_namespaces_taken_by_team(workspace: Workspace, team: TeamFile) -> Iterator[_Taken]:
    """Yield every namespace that a team has or asks for."""
    chosen = team.spec.namespace
    where = team.document.where(("namespace",))
    listed = [cluster for cluster in workspace.clusters.values() if team.name in cluster.spec.teams]
    for cluster in listed:
        granted = cluster.spec.teams[team.name].namespace
        if granted is not None:
            place = cluster.document.where(("teams", team.name, "namespace"))
            yield _Taken(OWN if granted == team.name else GRANTED, team.name, place, granted)
        elif chosen is None or chosen not in list_own_namespaces(team.name):
            yield _Taken(OWN, team.name, cluster.document.where(("teams", team.name), key=True), team.name)
    if chosen is None and not listed:
        yield _Taken(OWN, team.name, where, team.name)
    if chosen in list_own_namespaces(team.name) or (
        chosen is not None and RESERVED_NAMESPACES.fullmatch(chosen)
    ):
        yield _Taken(OWN if chosen == team.name else CHOSEN, team.name, where, chosen)


def _refuse_reserved_team_namespace(one: _Taken) -> Finding:
    message = f"namespace '{one.name}' belongs to the platform; a team cannot have it"
    return Finding(NAMESPACE_RESERVED, one.where, message, "Choose another name for namespace.")


def _refuse_duplicate_team_namespace(where: Location, namespace: str, owner: str) -> Finding:
    message = f"namespace '{namespace}' already belongs to team {owner}"
    return Finding(NAMESPACE_TWICE, where, message, "Give each team a namespace of its own.")


def _check_team_namespace_granted(workspace: Workspace, team: TeamFile) -> Iterator[Finding]:
    """Report a namespace in team.yaml that is neither the team's own nor granted by a cluster."""
    chosen, where = team.spec.namespace, team.document.where(("namespace",))
    if chosen is None:
        return
    own = list_own_namespaces(team.name)
    listed = [one for one in workspace.clusters.values() if team.name in one.spec.teams]
    granted = [(cluster, cluster.spec.teams[team.name].namespace) for cluster in listed]
    refusing = [cluster for cluster, name in granted if chosen not in ((name,) if name else own)]
    if not refusing and (listed or chosen in own):
        return
    others = {
        namespace_of(cluster.spec, other.name, other.spec): other.name
        for cluster in workspace.clusters.values()
        for other in workspace.teams.values()
        if other.name != team.name
        and (other.spec.namespace != chosen or chosen in list_own_namespaces(other.name))
    }
    if chosen in others:
        yield _refuse_duplicate_team_namespace(where, chosen, others[chosen])
        return
    yield _refuse_ungranted_team_namespace(team, chosen, where, refusing)


def _refuse_ungranted_team_namespace(
    team: TeamFile, chosen: str, where: Location, refusing: list[ClusterFile]
) -> Finding:
    message = f"namespace '{chosen}' was not given to team {team.name}: only the platform assigns namespaces"
    if not refusing:
        help = f"Remove the line for namespace {team.name}, or write namespace: team-{team.name}."
        return Finding(NAMESPACE_NOT_GIVEN, where, message, help)
    cluster = refusing[0]
    granted = cluster.spec.teams[team.name].namespace
    if granted:
        message = f"namespace '{chosen}' does not belong to team {team.name} on cluster {cluster.name}: its namespace is '{granted}'"
    return Finding(
        NAMESPACE_NOT_GIVEN,
        where,
        message,
        f"Remove the line for namespace {granted or team.name}, or ask the platform for namespace: {chosen}"
        f" at teams.{team.name} in {cluster.document.file}.",
    )


def check_team_regime_coverage(workspace: Workspace) -> Iterator[Finding]:
    """Check that a regime of a team on one cluster applies on all, or its data would only have to move."""
    for name, team in workspace.teams.items():
        listed = [one for one in workspace.clusters.values() if name in one.spec.teams]
        pinned = {
            regime: cluster.name for cluster in listed for regime in cluster.spec.teams[name].compliance
        }
        for cluster in listed:
            own = cluster.spec.teams[name].compliance
            for regime in sorted(pinned.keys() - {*own}):
                wanted = ", ".join(sorted({*own, *pinned}))
                yield Finding(
                    REGIME_NOT_EVERYWHERE,
                    cluster.document.where(("teams", name), key=True),
                    f"data of team {name} falls under {regime} on cluster {pinned[regime]}, but not on"
                    f" {cluster.name}: a run could go where nothing enforces that",
                    f"Write compliance: [{wanted}] at teams.{name} here too, or remove the team from this cluster.",
                )
        yield from _check_team_default_posture(team, listed)


def _check_team_default_posture(team: TeamFile, listed: list[ClusterFile]) -> Iterator[Finding]:
    """Yield a finding if the team's default posture is weaker than a cluster requires."""
    posture = team.spec.defaults.posture
    for cluster in listed:
        least = cluster.spec.teams[team.name].posture
        if posture and least and POSTURES.index(posture) < POSTURES.index(least):
            where = team.document.where(("defaults", "posture"))
            yield build_weak_posture_finding(where, posture, least, team.name, cluster.name)
            return


def build_weak_posture_finding(where: Location, posture: str, least: str, team: str, cluster: str) -> Finding:
    """Return the finding about a posture weaker than the platform requires of the team."""
    words = " or ".join(POSTURES[POSTURES.index(least) :])
    return Finding(
        POSTURE_TOO_WEAK,
        where,
        f"posture '{posture}' is weaker than the minimum that cluster {cluster} sets for team {team}: {least}",
        f"Write {words}, or leave posture out.",
    )
