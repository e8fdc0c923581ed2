"""`--keep-runs`: a run as it was rendered, taken back only as far as its name vouches for it.

The name of a run holds a hash of what must not change while it runs: the specs of its TrainingRuntime and its
TrainJob (plan/names.py). These are taken from the file when they have that hash. Everything else (metadata,
network policies, any further object) may change without a new run, so it is rendered as it is today, and what
more stands in the file is not taken. What comes out is judged like any new run.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.emit import EarlierRun, EarlierRuns, renamed
from gangplan.findings import Finding, Location
from gangplan.objects import Body
from gangplan.plan import Unit
from gangplan.plan.names import HASHED, content_hash, run_name
from gangplan.rules.grants import RUN_FORGED
from gangplan.source import ManifestError, load_objects
from gangplan.workspace import RENDERED


def path_of(cluster: str, unit: Unit, name: str) -> str:
    """Where a run stands in the tree."""
    return f"{cluster}/runs/{unit.job.team}/{name}.yaml"


def named(
    runs: EarlierRuns, cluster: str, unit: Unit, bodies: Sequence[Body], is_kept: bool
) -> tuple[str, list[Body] | None, list[Finding]]:
    """The name of a run as built today, or that of an earlier one and its objects where it is to be kept."""
    name = run_name(unit.job.name, content_hash(bodies, unit.job.run))
    earlier = runs.find(path_of(cluster, unit, name), unit.job.name, unit.job.spec_hash)
    if earlier is None:
        return name, None, []
    change = renamed(unit.job.source, cluster, earlier, name, is_kept)
    if not is_kept:
        return name, None, [change]
    kept, wrong = restored(earlier, unit, bodies)
    return (name, None, wrong) if kept is None else (earlier.name, kept, [change])


def restored(
    earlier: EarlierRun, unit: Unit, today: Sequence[Body]
) -> tuple[list[Body] | None, list[Finding]]:
    """The objects of an earlier run with the placeholder in their names, or why they cannot be taken.

    `today` are those that would be rendered now, in their order.
    """
    try:
        bodies = load_objects(earlier.text.replace(earlier.name, unit.run_name))
    except ManifestError:  # its words would show what stands in the file
        return None, [_forged(earlier, "it is not YAML as gangplan writes it")]
    kept = [body for body in bodies if body.get("kind") in HASHED]
    wanted = [body["kind"] for body in today if body["kind"] in HASHED]
    if [body["kind"] for body in kept] != wanted or not all(
        isinstance(one.get("spec"), dict) for one in kept
    ):
        return None, [_forged(earlier, f"it does not hold one {' and one '.join(wanted)}")]
    try:
        found = run_name(unit.job.name, content_hash(kept, unit.job.run))
    except (TypeError, ValueError):  # a value that no manifest of ours has, such as a date
        return None, [_forged(earlier, "it is not YAML as gangplan writes it")]
    if found != earlier.name:
        return None, [_forged(earlier, f"what it holds would be called {found}")]
    specs = iter(kept)
    return [{**body, "spec": next(specs)["spec"]} if body["kind"] in HASHED else body for body in today], []


def _forged(earlier: EarlierRun, why: str) -> Finding:
    return Finding(
        RUN_FORGED,
        Location(f"{RENDERED}/{earlier.path}", 1, 1),
        f"the run was changed after it was rendered: {why}",
        "Restore the file from an earlier commit, or render without --keep-runs: the run then starts again.",
    )
