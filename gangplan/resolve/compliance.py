"""Regimes and residency: which apply to a job's data, and whether its cluster enforces them."""

from __future__ import annotations

from gangplan.findings import Location
from gangplan.model.job import Origin
from gangplan.records import dataclass
from gangplan.resolve.context import JobResolution
from gangplan.rules.security import COMPLIANCE_NOT_ENFORCED

# The pack that enforces the residency of runs.
RESIDENCY = "residency"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Compliance:
    """What applies to a job's data: regimes, sorted, and a residency ("" for none).

    `datasets` are the claims and connections that it reads and writes, `regions` those of the connections (""
    if team.yaml states none); empty if no regime needs them.
    """

    regimes: tuple[str, ...] = ()
    residency: str = ""
    datasets: tuple[str, ...] = ()
    regions: Pairs = ()


def resolve_compliance(context: JobResolution) -> Compliance:
    """Resolve the regimes of the spec, its team and the cluster, and the residency.

    A cluster without the policy pack of one is refused, because it would not enforce that regime.
    """
    spec, team = context.spec.spec, context.team
    asked: dict[str, Location] = {}
    granted = context.cluster.spec.teams.get(team.name)
    for index, regime in enumerate(granted.compliance if granted else ()):
        asked[regime] = context.cluster.document.where(("teams", team.name, "compliance", index))
    for index, regime in enumerate(team.spec.compliance):
        asked[regime] = team.document.where(("compliance", index))
    for index, regime in enumerate(spec.compliance):
        asked[regime] = context.where("compliance", index)
    if spec.residency:
        context.origins["residency"] = Origin("spec", context.where("residency"))
    if spec.compliance:
        context.origins["compliance"] = Origin("spec", context.where("compliance"))
    elif team.spec.compliance:
        where = team.document.where(("compliance",))
        context.origins["compliance"] = Origin(f"team {team.name}", where)
    elif asked:
        where = context.cluster.document.where(("teams", team.name, "compliance"))
        context.origins["compliance"] = Origin(f"cluster {context.cluster.name}", where)
    for name in sorted(asked):
        _check_policy_pack_enforces_regime(context, name, asked[name], f"the data falls under {name}")
    if spec.residency:
        _check_policy_pack_enforces_regime(
            context, RESIDENCY, context.where("residency"), f"the data must stay in {spec.residency}"
        )
    names = _list_dataset_names(context)
    if not asked and not spec.residency:
        return Compliance(datasets=names)
    connections = team.spec.connections
    regions = tuple((name, connections[name].region or "") for name in names if name in connections)
    return Compliance(tuple(sorted(asked)), spec.residency or "", names, regions)


def _list_dataset_names(context: JobResolution) -> tuple[str, ...]:
    """Return the claims and connections that the spec names, sorted."""
    spec = context.spec.spec
    checkpoint = (spec.checkpoint.to,) if spec.checkpoint else ()
    return tuple(sorted({*spec.data, *checkpoint}))


def _check_policy_pack_enforces_regime(context: JobResolution, pack: str, where: Location, why: str) -> None:
    cluster = context.cluster
    if pack in cluster.spec.policies.packs:
        return
    packs = cluster.spec.policies.packs
    listed = f"its policy packs are {', '.join(packs)}" if packs else "it has no policy packs"
    own = f"policies: {{packs: [{pack}]}} in its file"
    context.report(
        COMPLIANCE_NOT_ENFORCED,
        where,
        f"{why}, but cluster {cluster.name} does not enforce that: {listed}",
        f"Choose a cluster with the pack {pack}, or ask its owner for {own}.",
    )
