"""The run that an object belongs to, and what objects of all kinds have: messages and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.diagnose.evidence import RunPart, SavedObject, Sighting, parse_run_part_from_evidence_pod_name
from gangplan.diagnose.signs import find_signs_of_causes
from gangplan.diagnose.signs_cluster import CLUSTER_SIGNS
from gangplan.model.backend import BACKEND_BY_KIND, MPIJOB
from gangplan.model.exits import LAUNCH_EXITS, PREFLIGHT_EXITS
from gangplan.objects import Body

ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
INDEX = "batch.kubernetes.io/job-completion-index"
RUN = "jobset.sigs.k8s.io/jobset-name"
#: Causes by the launch script's exit codes.
LAUNCH = {
    LAUNCH_EXITS["scripts"].code: "launch-scripts",
    LAUNCH_EXITS["setup"].code: "mpi-setup-missing",
    LAUNCH_EXITS["hostfile"].code: "hostfile-differs",
    LAUNCH_EXITS["unanswered"].code: "worker-unreached",
    LAUNCH_EXITS["unreached"].code: "mpi-not-all-workers",
    **{one.code: f"preflight-{name}" for name, one in PREFLIGHT_EXITS.items()},
}
#: Causes by exit codes of shells (126, 127) and of signals (128 + N).
EXIT_CODES = {
    126: "program-not-executable",
    127: "program-missing",
    132: "illegal-instruction",
    134: "aborted",
    135: "shared-memory",
    137: "killed",
    139: "segmentation-fault",
    143: "told-to-end",
}

# Kinds whose objects have the name of their run.
WHOLE_RUNS = (*BACKEND_BY_KIND, "JobSet")


def find_run_of_saved_object(thing: SavedObject) -> str:
    """Return the run that an object belongs to; empty if it does not say."""
    if thing.kind in WHOLE_RUNS:
        return thing.name
    if named := thing.labels.get(RUN):
        return named
    for owner in (thing.body.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("kind") in WHOLE_RUNS:
            return str(owner.get("name") or "")
    return parse_run_part_from_evidence_pod_name(thing.name).run if thing.kind == "Pod" else ""


def find_run_part_of_saved_pod(thing: SavedObject) -> RunPart:
    """Return the part of a run that a pod is, by its labels, otherwise by its name."""
    role, index = thing.labels.get(ROLE, ""), thing.labels.get(INDEX, "")
    if not role and (role := thing.labels.get(MPIJOB.role_label, "")):
        index = thing.name.rpartition("-")[2]  # a worker is named <run>-worker-<number>
    if not role:
        named = parse_run_part_from_evidence_pod_name(thing.name)
        return RunPart(find_run_of_saved_object(thing), named.role, named.worker)
    worker = int(index) if index.isdigit() and role != "launcher" else None
    return RunPart(find_run_of_saved_object(thing), role, worker)


def parse_run_part_from_job_name(kind: str, name: str) -> RunPart:
    """Return the run of a Job by its name: `<run>-<role>-0`, or `<run>-launcher` of an MPIJob."""
    match = re.fullmatch(r"(.+)-(launcher(-\d+)?|node-\d+)", name) if kind == "Job" else None
    if match:
        return RunPart(match[1])
    return RunPart(name) if kind in WHOLE_RUNS else RunPart()


def find_message_sightings(
    thing: SavedObject, who: RunPart, text: str, otherwise: str, at: object, **facts: str
) -> Iterator[Sighting]:
    """Yield the cause that a message is a sign of; without a sign, the cause `otherwise`, unless it is
    empty."""
    words = " ".join(text.split())
    found = next(find_signs_of_causes(words, CLUSTER_SIGNS), None)
    cause = found.cause if found else otherwise
    if cause:
        known = {**facts, **(found.facts if found else {})}
        yield Sighting(cause, thing.file, 0, thing.words, words[:400], who, str(at or ""), known)


def conditions_of(thing: SavedObject) -> list[Body]:
    """Return the well-formed conditions of an object."""
    found = coerce_mapping(thing.body.get("status")).get("conditions") or ()
    return [one for one in found if isinstance(one, dict)] if isinstance(found, (list, tuple)) else []


def is_condition_true(one: Body | None) -> bool:
    """Return whether a condition is present and true."""
    return bool(one) and (one or {}).get("status") == "True"


def coerce_mapping(value: Any) -> Body:
    """Return the value if it is a mapping, otherwise an empty one."""
    return value if isinstance(value, dict) else {}
