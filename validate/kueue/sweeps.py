"""The proof that Kueue never admits more trials of a sweep at once than `maxConcurrent`.

Every trial requests the same of each resource, in any flavor of its queue. The queue never holds more of a
flavor than `potentialAvailable` (resource_node.go, v0.15.2 to v0.19.2), regardless of other queues. So the
sum over the flavors of the scarcest resource bounds the number of trials. Trials of several sizes are judged
one by one; the smallest has the largest bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gangplan.kueue.model import FlavorResource
from gangplan.kueue.units import KUEUE_PODS, convert_from_kueue_count
from gangplan.model.amounts import format_with_unit
from gangplan.rules.model import NOTE
from gangplan.rules.sweeps import SWEEP_SLOWER, SWEEP_UNCAPPED
from gangplan.validate.kueue.model import AdmissionVerdict
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World

FIELD = "maxConcurrent"
# Pod sets that hold their quota until the run ends, because it ends with them (templates/runtime.yaml.j2; for
# an MPIJob, launcher and worker).
LASTING = ("launcher", "node", "worker")
QUEUE = ("metadata", "labels", "kueue.x-k8s.io/queue-name")


def _format_trial_count(number: int) -> str:
    return f"{number} trial{'s' if number != 1 else ''}"


def _format_concurrent_trials(number: int) -> str:
    return f"{_format_trial_count(number)} {'runs' if number == 1 else 'run'} at once"


def check_trials_kueue_admits_at_once(
    world: World, run: BuiltRun, verdict: AdmissionVerdict
) -> Iterator[Problem]:
    """Report that Kueue would admit more trials at once than maxConcurrent, or fewer than requested."""
    trial = run.unit.job.trial
    if trial is None:
        return
    bounds = _bound_runs_by_resource(world, verdict)
    most = min(bounds.values(), default=None)
    if most is None or most > trial.at_once:
        number = "any number of trials" if most is None else f"as many as {_format_trial_count(most)}"
        message = f"queue '{verdict.queue}' lets {number} run at once, and maxConcurrent is {trial.at_once}"
        help = (
            "Keep the sweep's own queue and its quota of pods as they are rendered; trials of very different"
            " sizes need sweeps of their own."
        )
        yield Problem(QUEUE, message, help, SWEEP_UNCAPPED, field=FIELD)
        return
    fits, short = count_runs_admitted_at_once(world, verdict)
    wanted = min(trial.at_once, trial.of)
    if fits < wanted:
        flavor, resource = short
        if resource == KUEUE_PODS and bounds[resource] < wanted:
            message = (
                f"{_format_concurrent_trials(fits)} with these values, not {wanted}: trials of"
                f" several sizes share a quota of pods that lets no more than {trial.at_once} of any size run"
            )
            help = "Write a sweep for each size, or leave it as it is: it costs only time."
            yield Problem(QUEUE, message, help, SWEEP_SLOWER, field=FIELD, level=NOTE)
            return
        if resource == KUEUE_PODS:
            message = (
                f"{_format_concurrent_trials(fits)} until the first steps have ended, not {wanted}: pods"
                " that end before their trial do not leave room for another trial"
            )
            help = "Move the steps to another job, or leave it as it is: it costs only time."
            yield Problem(QUEUE, message, help, SWEEP_SLOWER, field=FIELD, level=NOTE)
            return
        standing = read_kueue_world(world)
        there = format_with_unit(
            resource, convert_from_kueue_count(resource, standing.idle.most(verdict.queue, short))
        )
        message = (
            f"{_format_concurrent_trials(fits)}, not {wanted}: the team's quota holds {there} in flavor"
            f" {flavor}, and one trial takes {format_with_unit(resource, verdict.usage[short])}"
        )
        help = f"Write maxConcurrent: {fits}, make trials smaller, or ask for more quota."
        yield Problem(QUEUE, message, help, SWEEP_SLOWER, field=FIELD)


def find_most_runs_admitted_by_queue(world: World, verdict: AdmissionVerdict) -> int | None:
    """Return the most runs like this one that its queue ever holds, or None without a bound."""
    return min(_bound_runs_by_resource(world, verdict).values(), default=None)


def _bound_runs_by_resource(world: World, verdict: AdmissionVerdict) -> dict[str, int]:
    """Return the most runs like this one that its queue ever holds, by the resource that bounds them.

    Pods that end before their run free their quota. When another run is admitted, each of the others still
    holds at least the quota of its lasting pods.
    """
    standing = read_kueue_world(world)
    queue = standing.quotas[verdict.queue]
    asked, lasting = dict[str, Fraction](), dict[str, Fraction]()
    for podset, flavors in verdict.assignment.items():
        count, each = verdict.requests[podset]
        for resource in flavors:
            amount = count * each.get(resource, Fraction(resource == KUEUE_PODS))
            asked[resource] = asked.get(resource, Fraction(0)) + amount
            lasting[resource] = lasting.get(resource, Fraction(0)) + amount * (podset in LASTING)
    bounds = {}
    for resource, amount in asked.items():
        group = queue.group_of(resource)
        if not lasting[resource] or group is None:
            continue
        keys = [(flavor, resource) for flavor in group.flavors]
        whole = sum(
            (convert_from_kueue_count(resource, standing.idle.most(queue.name, key)) for key in keys),
            Fraction(0),
        )
        bounds[resource] = int((whole - amount) // lasting[resource]) + 1
    return bounds


def count_runs_admitted_at_once(world: World, verdict: AdmissionVerdict) -> tuple[int, FlavorResource]:
    """Return how many runs like this one an idle cluster admits in its flavors, and what runs out first."""
    standing = read_kueue_world(world)
    fits = {
        key: int(convert_from_kueue_count(key[1], standing.idle.most(verdict.queue, key)) // amount)
        for key, amount in sorted(verdict.usage.items())
        if amount
    }
    short = min(fits, key=lambda key: fits[key])
    return fits[short], short
