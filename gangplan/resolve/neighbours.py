"""Other jobs of the team that the workers should be near to, or apart from."""

from __future__ import annotations

from gangplan.model.job import Origin
from gangplan.model.pods import Neighbour
from gangplan.resolve.context import JobResolution
from gangplan.resolve.placement import ChosenPlacement
from gangplan.rules.neighbours import NEIGHBOUR_UNKNOWN, NEIGHBOUR_UNUSABLE
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.job import Placement

NODE = "kubernetes.io/hostname"
# Weights of a preferred affinity (Kubernetes v1.34: 1 to 100): for the same node, less for each wider level.
MOST, STEP = 100, 20


def resolve_near_and_apart_terms(
    context: JobResolution, asked: Placement, placement: ChosenPlacement
) -> tuple[tuple[Neighbour, ...], tuple[str, ...]]:
    """Return terms for `near`, from the node to the widest level of the cluster, and names for `apart`."""
    own = context.spec.spec.name or context.spec.source.stem
    for field, names in (("near", asked.near), ("apart", asked.apart)):
        if names:
            context.origins[field] = Origin("spec", context.where("placement", field))
        for index, name in enumerate(names):
            _check_neighbour_name(context, asked, field, index, name, own)
    if placement.topology is not None:
        field = "near" if asked.near else "apart"
        context.report(
            NEIGHBOUR_UNUSABLE,
            context.where("placement", field),
            f"Kueue chooses the nodes of pool '{placement.name}' by topology, and does not look where other jobs are",
            f"Remove {field}, or name a pool without topology.",
        )
    labels = [level.label for level in context.cluster.spec.topology if level.label != NODE]
    keys = [NODE, *reversed(labels)]
    near = tuple(
        Neighbour(name, key, max(MOST - STEP * step, 1))
        for name in dict.fromkeys(asked.near)
        for step, key in enumerate(keys)
    )
    return near, tuple(dict.fromkeys(asked.apart))


def _check_neighbour_name(
    context: JobResolution, asked: Placement, field: str, index: int, name: str, own: str
) -> None:
    where = context.where("placement", field, index)
    if name == own:
        spread = "pack" if field == "near" else "spread"
        help = f"Write placement: {{spread: {spread}}} in its place."
        context.report(NEIGHBOUR_UNUSABLE, where, f"'{name}' is this job itself", help)
    elif field == "apart" and name in asked.near:
        context.report(
            NEIGHBOUR_UNUSABLE, where, f"'{name}' is in near and in apart", "Keep it in one of them."
        )
    elif name not in context.jobs:
        message = f"team {context.team.name} has no spec {name}.yaml: nothing is near to '{name}', nor apart from it"
        context.report(
            NEIGHBOUR_UNKNOWN, where, message, suggest_known_or_new("job", name, context.jobs - {own})
        )
