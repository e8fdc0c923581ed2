"""Find causes in the conditions of Workloads, TrainJobs, JobSets and Jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gangplan.diagnose.evidence import RunPart, SavedObject, Sighting, parse_run_part_from_evidence_pod_name
from gangplan.diagnose.things import (
    EXIT_CODES,
    LAUNCH,
    coerce_mapping,
    conditions_of,
    find_message_sightings,
    find_run_of_saved_object,
    is_condition_true,
    parse_run_part_from_job_name,
)
from gangplan.live.reasons import explain_kueue_eviction, explain_kueue_message, explain_kueue_preemption
from gangplan.objects import Body

_JOBS = {
    "DeadlineExceeded": "deadline",
    "ReachedMaxRestarts": "retries-used-up",
    "BackoffLimitExceeded": "job-failed",
    "PodFailurePolicy": "not-retried",
    "FailJobSetFailurePolicyAction": "not-retried",
    "FailedJobs": "job-failed",
    "JobCreationFailed": "pods-refused",
    "TrainingRuntimeNotSupported": "runtime-missing",
    "PVCCreationFailed": "volume-pending",
}
# The Job controller for a pod failure policy, and what other controllers say about a worker.
_EXIT = re.compile(
    r"(?:pod (?:\S+/)?(?P<pod>\S+) |[Ww]orker[ -](?P<worker>\d{1,6}) )?failed with exit code (?P<code>\d{1,6})"
)


def find_workload_sightings(thing: SavedObject) -> Iterator[Sighting]:
    """Yield the causes in Kueue's conditions of a run."""
    who, conditions = (
        RunPart(find_run_of_saved_object(thing)),
        {str(one.get("type")): one for one in conditions_of(thing)},
    )

    def say(cause: str, text: str, one: Body) -> Sighting:
        return Sighting(
            cause, thing.file, 0, thing.words, text, who, str(one.get("lastTransitionTime") or "")
        )

    evicted, quota = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    if coerce_mapping(thing.body.get("spec")).get("active") is False:
        yield say("deactivated", explain_kueue_message("The workload is deactivated"), evicted or quota)
        return
    if is_condition_true(conditions.get("Finished")):
        return
    if is_condition_true(evicted):
        reason, said = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
        if reason == "Preempted":
            yield say("preempted", explain_kueue_preemption(said), evicted)
        else:
            causes = {
                "PodsReadyTimeout": "not-ready-in-time",
                "AdmissionCheck": "admission-check",
                "NodeFailures": "node-lost",
            }
            cause = causes.get(reason, "queue-inactive" if reason.endswith("QueueStopped") else "")
            cause = "deactivated" if reason.startswith("Deactivated") else cause
            if cause:
                yield say(cause, explain_kueue_eviction(reason, said), evicted)
    message = str(quota.get("message") or "")
    # Kueue writes why it evicted a run to both conditions: the run then waits out a backoff, not for quota.
    is_evicted = is_condition_true(evicted) and message == str(evicted.get("message") or "")
    if quota and not is_condition_true(quota) and not is_evicted:
        cause = _find_cause_of_kueue_wait_message(message)
        if cause:
            yield say(cause, explain_kueue_message(message), quota)
    elif is_condition_true(quota) and not is_condition_true(conditions.get("Admitted")):
        yield say("admission-check", "has quota, and waits for admission checks", quota)


def _find_cause_of_kueue_wait_message(message: str) -> str:
    """Return why Kueue keeps a workload in the queue."""
    if "maximum capacity" in message and "more needed" not in message:
        return "quota-never"
    if "more needed" in message or message.startswith(("Pending the preemption", "Workload no longer fits")):
        return "quota-wait"
    if 'topology "' in message:
        return "topology-full"
    if message.startswith(("ClusterQueue", "LocalQueue")):
        return "queue-inactive"
    if "untolerated taint" in message or "affinity" in message or "no flavor" in message.lower():
        return "no-matching-node"
    return "quota-wait" if message else ""


def find_job_sightings(thing: SavedObject, homes: Mapping[tuple[str, str], RunPart]) -> Iterator[Sighting]:
    """Yield how a TrainJob, JobSet or Job ended."""
    for one in conditions_of(thing):
        if one.get("type") not in ("Failed", "FailureTarget", "Suspended") or not is_condition_true(one):
            continue
        reason, said = str(one.get("reason") or ""), str(one.get("message") or "")
        if one.get("type") == "Suspended" and reason != "TrainingRuntimeNotSupported":
            continue
        cause = _JOBS.get(reason, "job-failed")
        who = homes.get((thing.kind, thing.name)) or parse_run_part_from_job_name(thing.kind, thing.name)
        at, text = str(one.get("lastTransitionTime") or ""), f"{reason}: {said}"
        if cause in ("not-retried", "job-failed") and (match := _EXIT.search(said)):
            code = int(match["code"])
            cause = LAUNCH.get(code) or EXIT_CODES.get(code, cause)
            yield from find_message_sightings(
                thing, _find_failed_part(who, match), text, cause, at, code=match["code"]
            )
        else:
            yield Sighting(cause, thing.file, 0, thing.words, text[:400], who, at)


def _find_failed_part(who: RunPart, match: re.Match[str]) -> RunPart:
    """Return the part of the run that a message names by its pod or its number; without one, `who`."""
    if match["worker"]:
        return RunPart(who.run, "node", int(match["worker"]))
    named = parse_run_part_from_evidence_pod_name(match["pod"] or "")
    return RunPart(who.run or named.run, named.role, named.worker) if named.role else who
