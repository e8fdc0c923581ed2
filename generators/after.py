"""Job: creates a run from a template in Git once the runs before it are complete.

As with a schedule (schedules.py), no engine tracks the created run, and no object owns it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from gangplan.generators.beside import render_script_text
from gangplan.generators.common import (
    LABEL_PREFIX,
    TemplateRenderer,
    escape_kubelet_variable_references,
    generate_run_annotations,
    generate_run_labels,
    render_to_objects,
)
from gangplan.generators.runtime import GRACE_MARGIN_S
from gangplan.generators.schedules import wrap_scheduled_run
from gangplan.model import syncing
from gangplan.model.schedule import (
    CHECK_PAUSE_S,
    CREATOR_CPU,
    CREATOR_MEMORY,
    SCHEDULER_ACCOUNT,
    TEMPLATE_MOUNT,
)
from gangplan.objects import Body, dump_object_as_block_yaml
from gangplan.plan import RunPlan
from gangplan.plan.names import HASH_PLACEHOLDER

KIND = "Job"
# The exit code when a run is not created because a run before it failed.
ENDED = 75
# How often the pod is tried again when neither a failed run nor a drained node was the reason.
RETRIES = 6
GRACE_S = 30
# Arguments of the script before the names of the runs to wait for.
_FIRST = 4
_DIGEST = 6


def render_wait_script() -> str:
    """Return the script, for a Job and for the steps of a pipeline."""
    return render_script_text("launch/after.sh.j2", {"ended": ENDED})


def stand_in(job: str) -> str:
    """Return the placeholder for the names of a job's runs, which are not known yet."""
    return f"{job}-{HASH_PLACEHOLDER}"


def generate_waiting_job(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the Job that waits, or nothing if a pipeline does the waiting."""
    job, after = unit.job, unit.job.after
    if after is None or after.engine != "job":
        return []
    labels = dict(generate_run_labels(unit))
    # Its pod is not a pod of the run: the run's policies and affinities must not select it.
    own = {
        key: value for key, value in labels.items() if key not in (f"{LABEL_PREFIX}run", f"{LABEL_PREFIX}job")
    }
    pod = {**own, f"{LABEL_PREFIX}role": "scheduler", "sidecar.istio.io/inject": "false"}
    guards = syncing.build_run_sync_annotations()
    words = [
        TEMPLATE_MOUNT,
        unit.run_name,
        "leave",
        str(CHECK_PAUSE_S),
        *(stand_in(one.name) for one in after.jobs),
    ]
    openshift = job.platform.openshift is not None
    return write(
        "pipeline/after.yaml.j2",
        {
            "name": f"{unit.run_name}-after",
            "job": job,
            "after": after,
            "labels": tuple(sorted(labels.items())),
            "annotations": tuple(
                pair for pair in generate_run_annotations(unit, KIND) if pair[0] not in guards
            ),
            "pod_labels": tuple(sorted(pod.items())),
            "pod_annotations": (("openshift.io/required-scc", "nonroot-v2"),) if openshift else (),
            "account": SCHEDULER_ACCOUNT,
            "script": escape_kubelet_variable_references(render_wait_script()),
            "words": tuple(words),
            "template": f"{unit.run_name}-template",
            "retries": RETRIES,
            "ended": ENDED,
            "grace_s": max(GRACE_S, job.grace_s + GRACE_MARGIN_S),
            "cpu": CREATOR_CPU,
            "memory": CREATOR_MEMORY,
            "pool": job.launcher_pool,
        },
    )


def wrap_run_in_waiting_job(bodies: Sequence[Body], names: Mapping[str, Sequence[str]]) -> list[Body]:
    """Return the objects of a run as Git keeps them: its template, and a Job with the runs to wait for.

    `names` maps each job that the run comes after to the names of its runs.
    """
    return [
        _generate_waiting_job_with_names(body, names) if body["kind"] == KIND else body
        for body in wrap_scheduled_run(bodies)
    ]


def _generate_waiting_job_with_names(job: Body, names: Mapping[str, Sequence[str]]) -> Body:
    """Return the Job with the names of runs in its arguments, and a hash of its spec in its name."""
    known = {stand_in(name): runs for name, runs in names.items()}
    template = job["spec"]["template"]
    (container, *others) = template["spec"]["containers"]
    words = container["args"]
    waited = [run for word in words[_FIRST:] for run in known.get(word, (word,))]
    container = {**container, "args": [*words[:_FIRST], *waited]}
    pod = {**template["spec"], "containers": [container, *others]}
    spec = {**job["spec"], "template": {**template, "spec": pod}}
    digest = hashlib.sha256(dump_object_as_block_yaml(spec).encode()).hexdigest()[:_DIGEST]
    metadata = {**job["metadata"], "name": f"{job['metadata']['name']}-{digest}"}
    return {**job, "metadata": metadata, "spec": spec}
