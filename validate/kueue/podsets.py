"""The pod sets of a run, as Kueue counts its pods with its own copy of Trainer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gangplan.objects import Body
from gangplan.validate.expand import ExpandedPods, MissingRuntimeError, expand_run_into_pods
from gangplan.validate.kueue.model import NO_WORKLOAD, NeverError, PodSet
from gangplan.validate.world import World


def list_workload_pod_sets(bodies: Sequence[Body], world: World) -> list[PodSet]:
    """Return the pod sets of the run among `bodies`, in the order of Kueue's Workload.

    Raises `NeverError` if the runtime does not exist (then the TrainJob itself is refused).
    """
    return convert_to_pod_sets(expand_run_into_pods_for_kueue(bodies, world), bodies)


def expand_run_into_pods_for_kueue(bodies: Sequence[Body], world: World) -> list[ExpandedPods]:
    """Expand the run into pods. Raises `NeverError` if the runtime does not exist."""
    try:
        return expand_run_into_pods(world, bodies)
    except MissingRuntimeError as missing:
        raise NeverError(NO_WORKLOAD, str(missing), missing.kind) from None


def convert_to_pod_sets(pods: Iterable[ExpandedPods], bodies: Sequence[Body]) -> list[PodSet]:
    """Convert expanded pods into Kueue's pod sets; `bodies` are the run's objects."""
    return [
        PodSet(one.name.lower(), one.queued, one.template, one.index, *_count_claims(one.template, bodies))
        for one in pods
    ]


def _count_claims(template: Body, bodies: Sequence[Body]) -> tuple[tuple[tuple[str, int], ...], str]:
    """Return the devices that a pod claims, by class, and why Kueue admits no such pod, or an empty text."""
    if not (template.get("spec") or {}).get("resourceClaims"):
        return (), ""
    from gangplan.validate.claims import count_claimed_devices, find_uncountable_claim  # few runs have claims

    return count_claimed_devices(template, bodies), find_uncountable_claim(template, bodies)


def replace_mpijob_worker_count(job: Body, workers: int) -> Body:
    """Return an MPIJob with another number of workers, including the launcher if it is one."""
    specs = job["spec"]["mpiReplicaSpecs"]
    if not specs.get("Worker"):
        return job
    pods = max(workers - bool(job["spec"].get("runLauncherAsWorker")), 1)
    changed = {**specs, "Worker": {**specs["Worker"], "replicas": pods}}
    return {**job, "spec": {**job["spec"], "mpiReplicaSpecs": changed}}
