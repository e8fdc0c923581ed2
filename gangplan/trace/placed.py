"""Affinity of workers: to each other, and to other jobs of the team."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path
from gangplan.trace.context import TraceContext
from gangplan.trace.files import own


def spread(context: TraceContext, stars: Path) -> list[Cause]:
    """How the workers of the run are spread over nodes."""
    asked = context.spec("placement", "spread")
    if stars and stars[-1] == "jobset.sigs.k8s.io/jobset-name":
        return [*context.run_name(), asked.aside()]
    return [own(f"{asked.because}: how pods are spread over nodes"), asked.aside()]


def near(context: TraceContext, role: str, stars: Path) -> list[Cause]:
    """The run's own pods (spread: pack) come first in the list, then those of other jobs."""
    index = int(stars[1]) - (context.job.spread == "pack" and role == "worker")
    if index < 0:
        return spread(context, stars)
    asked = context.spec("placement", "near").aside()
    ranks = context.spec("launcher", "runsRanks").aside()
    levels_of = context.cluster("topology").aside()  # for each job there is a term for each level
    found = context.job.near[index] if index < len(context.job.near) else None
    if found is not None and stars[-1] == "gangplan.dev/job":
        written = list(context.value("spec", "placement", "near") or ())
        return [context.spec("placement", "near", written.index(found.job)), ranks, levels_of]
    if found is not None and stars[-1] == "topologyKey":
        levels = context.value("cluster", "topology") or ()
        label = [
            context.cluster("topology", n, "label")
            for n, one in enumerate(levels)
            if one.get("label") == found.key
        ]
        return [*label, own("as close as the cluster can tell"), asked, ranks, levels_of]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked, ranks, levels_of]
    return [own("the closer, the better"), asked, ranks, levels_of]


def apart(context: TraceContext, stars: Path) -> list[Cause]:
    """Jobs that share no node with the workers."""
    asked = context.spec("placement", "apart")
    ranks = context.spec("launcher", "runsRanks").aside()
    if stars[-1] == "gangplan.dev/job":
        return [context.spec("placement", "apart", int(stars[1])), ranks]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked.aside(), ranks]
    return [own("pods of these jobs share no node"), asked.aside(), ranks]
