"""Claims that several workers of a run mount, but only one node or pod can hold as the overlay leaves them.

Claims as the team's file asks for them are judged with the spec (resolve/data.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.objects import Body
from gangplan.rules.specs import CLAIM_NOT_SHARED
from gangplan.validate.expand import MissingRuntimeError, expand_run_into_pods, job_of
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, ObjectIndex, World


def check_claims_of_run_are_shared(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report claims that more than one pod of the same role mounts, and that cannot be shared."""
    found = job_of(run.bodies)
    if found is None or run.unit.job.is_archived:
        return
    claims = world.once(ObjectIndex).of("PersistentVolumeClaim").places
    home = found[1]["metadata"].get("namespace") or None
    try:
        pods = expand_run_into_pods(world, run.bodies)
    except MissingRuntimeError:
        return  # reported by another proof
    for role in pods:
        for number, volume in enumerate(role.template["spec"].get("volumes") or ()):
            mount = volume.get("persistentVolumeClaim")
            body = claims.get((mount["claimName"], home)) if mount and role.count > 1 else None
            if body is None or _can_be_shared(body):
                continue
            modes = body["spec"].get("accessModes") or ()
            holder = "pod" if "ReadWriteOncePod" in modes else "node"
            said = f"claim '{mount['claimName']}' is {' and '.join(sorted(modes))}: only one {holder} can"
            said += f" mount it, but the run has {role.count} {role.title}"
            help = "Leave accessModes of the claim, or write them in team.yaml: accessModes: [ReadWriteMany]."
            at = (*role.template_at, "spec", "volumes", number)
            yield role.index, Problem(at, said, help, CLAIM_NOT_SHARED, "data")


def _can_be_shared(claim: Body) -> bool:
    """Return whether pods on several nodes can mount a claim (core/v1 types.go of Kubernetes v1.34)."""
    return not {"ReadWriteMany", "ReadOnlyMany"}.isdisjoint(claim["spec"].get("accessModes") or ())
