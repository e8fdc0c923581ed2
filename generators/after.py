"""Job: what creates a run once the runs before it are complete, from a template of it that is in Git.

The run that it creates is tracked by no engine and owned by nothing, like those of a schedule (schedules.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from gangplan.generators.beside import text_of
from gangplan.generators.common import (
    PREFIX,
    Writer,
    literal,
    objects_of,
    run_annotations,
    run_labels,
)
from gangplan.generators.runtime import GRACE_MARGIN_S
from gangplan.generators.schedules import scheduled
from gangplan.model import syncing
from gangplan.model.schedule import ACCOUNT, CPU, MEMORY, MOUNT, PAUSE_S
from gangplan.objects import Body, dump
from gangplan.plan import Unit
from gangplan.plan.names import PLACEHOLDER

KIND = "Job"
# The exit code of a run that is not created, because one before it has failed.
ENDED = 75
# Tries of the pod, where neither a run nor a drained node was the reason.
RETRIES = 6
GRACE_S = 30
# Words of the script before the names of the runs that are waited for.
_FIRST = 4
_DIGEST = 6


def script_of() -> str:
    """The script, for a Job and for the steps of a pipeline."""
    return text_of("launch/after.sh.j2", {"ended": ENDED})


def stand_in(job: str) -> str:
    """What stands for the names of a job's runs until they are known."""
    return f"{job}-{PLACEHOLDER}"


def waiting_job(unit: Unit, write: Writer = objects_of) -> list[Body]:
    """The Job that waits; none where a pipeline does that."""
    job, after = unit.job, unit.job.after
    if after is None or after.engine != "job":
        return []
    labels = dict(run_labels(unit))
    # It is no pod of the run: policies and affinities of that must not find it.
    own = {key: value for key, value in labels.items() if key not in (f"{PREFIX}run", f"{PREFIX}job")}
    pod = {**own, f"{PREFIX}role": "scheduler", "sidecar.istio.io/inject": "false"}
    guards = syncing.of_run()
    words = [MOUNT, unit.run_name, "leave", str(PAUSE_S), *(stand_in(one.name) for one in after.jobs)]
    openshift = job.platform.openshift is not None
    return write(
        "pipeline/after.yaml.j2",
        {
            "name": f"{unit.run_name}-after",
            "job": job,
            "after": after,
            "labels": tuple(sorted(labels.items())),
            "annotations": tuple(pair for pair in run_annotations(unit, KIND) if pair[0] not in guards),
            "pod_labels": tuple(sorted(pod.items())),
            "pod_annotations": (("openshift.io/required-scc", "nonroot-v2"),) if openshift else (),
            "account": ACCOUNT,
            "script": literal(script_of()),
            "words": tuple(words),
            "template": f"{unit.run_name}-template",
            "retries": RETRIES,
            "ended": ENDED,
            "grace_s": max(GRACE_S, job.grace_s + GRACE_MARGIN_S),
            "cpu": CPU,
            "memory": MEMORY,
            "pool": job.launcher_pool,
        },
    )


def held(bodies: Sequence[Body], names: Mapping[str, Sequence[str]]) -> list[Body]:
    """The objects of a run as they stand in Git: a template of it, and a Job that knows whom it waits for.

    `names` are the runs of each job that the run comes after.
    """
    return [_named(body, names) if body["kind"] == KIND else body for body in scheduled(bodies)]


def _named(job: Body, names: Mapping[str, Sequence[str]]) -> Body:
    """The Job with the names of runs among its words, and called after what it then is."""
    known = {stand_in(name): runs for name, runs in names.items()}
    template = job["spec"]["template"]
    (container, *others) = template["spec"]["containers"]
    words = container["args"]
    waited = [run for word in words[_FIRST:] for run in known.get(word, (word,))]
    container = {**container, "args": [*words[:_FIRST], *waited]}
    pod = {**template["spec"], "containers": [container, *others]}
    spec = {**job["spec"], "template": {**template, "spec": pod}}
    digest = hashlib.sha256(dump(spec).encode()).hexdigest()[:_DIGEST]
    metadata = {**job["metadata"], "name": f"{job['metadata']['name']}-{digest}"}
    return {**job, "metadata": metadata, "spec": spec}
