"""Built objects in, findings out: each problem at the patch, the spec or the platform file that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.findings import Finding, Location, note, warning
from gangplan.model.job import Platform
from gangplan.model.site import Site
from gangplan.objects import Body, ref_of
from gangplan.overlay import Builder, Component
from gangplan.plan import Unit
from gangplan.plan.names import PLACEHOLDER
from gangplan.resolve.shares import capacity
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.validate.agreement import judge_standing
from gangplan.validate.collisions import hold_ups, ousted
from gangplan.validate.contention import HELP as CHECKPOINT_HELP
from gangplan.validate.contention import RULE as NO_CHECKPOINT
from gangplan.validate.contention import Demand, shown
from gangplan.validate.gate import judge_built
from gangplan.validate.proofs import prove
from gangplan.validate.schema import SchemaVersions
from gangplan.validate.schema_messages import Problem, dotted
from gangplan.validate.world import Run, World, node_group


def versions_of(platform: Platform) -> SchemaVersions:
    """The minors that schemas and rules are chosen by."""
    return SchemaVersions(
        kubernetes=platform.kubernetes.line,
        trainer=platform.trainer.line,
        kueue=platform.kueue.line if platform.kueue else None,
        jobset=platform.jobset.line,
    )


def check_standing(
    spec: Cluster,
    site: Site,
    built: list[Body],
    before: list[Body],
    sources: list[Location],
    component: Component,
) -> list[Finding]:
    """What the objects of a cluster say together: names that meet, quotas, caps and bounds that agree."""
    offered = {flavor.name: capacity(spec.node_pools[flavor.pool]) for flavor in site.flavors}
    judged = judge_standing(built, None if spec.overcommit else offered)
    if not any(judged):
        return []
    own = judge_standing(before, None if spec.overcommit else offered)
    return [
        finding
        for body, wrong, generated, where in zip(built, judged, own, sources, strict=True)
        for finding in _findings_of(body, wrong, generated, where, component)
    ]


def prove_run(
    world: World, unit: Unit, bodies: list[Body], before: list[Body], component: Component
) -> list[Finding]:
    """What the proofs say of a run whose objects are sound: at the field of the spec that is to blame.

    A problem that the generated objects (`before`) do not have stands at the patch that made it.
    """
    found: list[Finding] = []
    proved = prove(world, Run(unit, tuple(bodies)))
    own = None
    if proved and component.patches:
        own = {(problem.rule, problem.path) for _, problem in prove(world, Run(unit, tuple(before)))}
    for index, problem in proved:
        origin = unit.job.origins.get(problem.field)
        where = origin.where if origin and origin.where else Location(unit.job.source, 1, 1)
        if own is not None and (problem.rule, problem.path) not in own:
            where = component.place_of(problem.path)
        about = str(ref_of(bodies[index])).replace(f"-{PLACEHOLDER}", "")
        found.append(
            Finding(
                problem.rule,
                problem.severity,
                where,
                problem.message.replace(f"-{PLACEHOLDER}", ""),
                problem.help.replace(f"-{PLACEHOLDER}", ""),
                about,
                dotted(problem.path),
            )
        )
    return found


def check_together(
    cluster: str, pools: Mapping[str, NodePool], demands: Mapping[str, tuple[Location, Demand]]
) -> list[Finding]:
    """What all runs of a cluster show together: some can hold each other up, some lose their work."""
    wanted = {name: demand for name, (_, demand) in demands.items()}
    found = []
    if any(not demand.is_gang for demand in wanted.values()):
        for one in hold_ups([node_group(name, pool, ()) for name, pool in pools.items()], wanted):
            last = max(one.placed, key=lambda name: demands[name][0])
            help = "Let Kueue start runs as a whole (gang: kueue), or run one after the other."
            found.append(warning("runs-block-runs", demands[last][0], f"on {cluster}, {one.message}", help))
    for lost in ousted(wanted):
        where, by = demands[lost.run][0], demands[lost.by]
        message = (
            f"on {cluster}, {lost.by} ({by[0].file}) takes the place of this run in queue {by[1].queue}:"
            f" together they want {shown(lost.wanted)} {lost.resource}, the queue gets {shown(lost.most)}"
            f" at most;"
            " this run then starts again from nothing, because it has no checkpoint"
        )
        found.append(note(NO_CHECKPOINT, where, message, f"{CHECKPOINT_HELP}."))
    return found


def check_objects(
    bodies: Sequence[Body], before: Sequence[Body], platform: Platform, where: Location, builder: Builder
) -> list[Finding]:
    """The gate: each built object against the schema of its kind and the rules, at the cluster's versions.

    A problem that the generated object did not have is the overlay's.
    """
    versions = versions_of(platform)
    judged = judge_built(bodies, versions)
    if not any(judged):
        return []
    own = judge_built(before, versions)
    return [
        finding
        for built, wrong, generated in zip(bodies, judged, own, strict=True)
        for finding in _findings_of(built, wrong, generated, where, builder.component)
    ]


def _findings_of(
    built: Body, wrong: list[Problem], generated: list[Problem], where: Location, component: Component
) -> list[Finding]:
    """The problems of one object as findings: at the patch that made them, else at the object's source."""
    inherited = {problem.path for problem in generated}
    return [
        Finding(
            problem.rule,
            problem.severity,
            where if problem.path in inherited else component.place_of(problem.path),
            problem.message,
            problem.help or ("" if problem.path in inherited else "Correct the patch."),
            str(ref_of(built)).replace(f"-{PLACEHOLDER}", ""),
            dotted(problem.path),
        )
        for problem in wrong
    ]
