"""The run that an object belongs to, and what objects of all kinds have: messages and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.diagnose.evidence import Body, Sighting, Thing, Who, who_of_pod
from gangplan.diagnose.signs import seen
from gangplan.diagnose.signs_cluster import SIGNS
from gangplan.model.backend import BY_KIND, MPIJOB
from gangplan.model.exits import LAUNCH_EXITS, PREFLIGHT_EXITS

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

# Kinds whose objects have the name of their run.
WHOLE_RUNS = (*BY_KIND, "JobSet")


def run_of(thing: Thing) -> str:
    """Return the run that an object belongs to; empty if it does not say."""
    if thing.kind in WHOLE_RUNS:
        return thing.name
    if named := thing.labels.get(RUN):
        return named
    for owner in (thing.body.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("kind") in WHOLE_RUNS:
            return str(owner.get("name") or "")
    return who_of_pod(thing.name).run if thing.kind == "Pod" else ""


def who_of(thing: Thing) -> Who:
    """Return the part of a run that a pod is, by its labels, otherwise by its name."""
    role, index = thing.labels.get(ROLE, ""), thing.labels.get(INDEX, "")
    if not role and (role := thing.labels.get(MPIJOB.role_label, "")):
        index = thing.name.rpartition("-")[2]  # a worker is named <run>-worker-<number>
    if not role:
        named = who_of_pod(thing.name)
        return Who(run_of(thing), named.role, named.worker)
    worker = int(index) if index.isdigit() and role != "launcher" else None
    return Who(run_of(thing), role, worker)


def by_job(kind: str, name: str) -> Who:
    """Return the run of a Job by its name: `<run>-<role>-0`, or `<run>-launcher` of an MPIJob."""
    match = re.fullmatch(r"(.+)-(launcher(-\d+)?|node-\d+)", name) if kind == "Job" else None
    if match:
        return Who(match[1])
    return Who(name) if kind in WHOLE_RUNS else Who()


def said_by(
    thing: Thing, who: Who, text: str, otherwise: str, at: object, **facts: str
) -> Iterator[Sighting]:
    """Yield the cause that a message is a sign of; without a sign, the cause `otherwise`, unless it is
    empty."""
    words = " ".join(text.split())
    found = next(seen(words, SIGNS), None)
    cause = found.cause if found else otherwise
    if cause:
        known = {**facts, **(found.facts if found else {})}
        yield Sighting(cause, thing.file, 0, thing.words, words[:400], who, str(at or ""), known)


def conditions_of(thing: Thing) -> list[Body]:
    """Return the well-formed conditions of an object."""
    found = mapped(thing.body.get("status")).get("conditions") or ()
    return [one for one in found if isinstance(one, dict)] if isinstance(found, (list, tuple)) else []


def is_true(one: Body | None) -> bool:
    """Return whether a condition is present and true."""
    return bool(one) and (one or {}).get("status") == "True"


def mapped(value: Any) -> Body:
    """Return the value if it is a mapping, otherwise an empty one."""
    return value if isinstance(value, dict) else {}
