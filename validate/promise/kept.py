"""Checks of runs that are kept for debugging: each failed pod is restarted in place, but not forever.

Source: Kubernetes v1.34, pkg/controller/job/job_controller.go, pastBackoffLimitOnFailure: a Job whose pods
restart their containers fails as soon as the restarts of its running pods add up to backoffLimit.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan


def check_promised_debug_restarts(laid: ExpandedRun, role: ExpandedRole) -> Iterator[tuple[int, Problem]]:
    """Check that each pod of a role may fail once and is kept; the Job fails when the time is up."""
    assert laid.unit.job.debug is not None
    until = laid.unit.job.debug.until
    restart = role.spec.get("restartPolicy", "OnFailure")  # JobSet's default
    if restart != "OnFailure":
        message = (
            f"pods of {role.title} would be gone once they have failed; the plan keeps them until {until}"
        )
        yield (
            laid.runtime,
            report_broken_promise(
                (*role.pod, "restartPolicy"), message, "Keep restartPolicy: OnFailure.", "debug"
            ),
        )
    limit, enough = role.job.get("backoffLimit", 6), role.pods + 1
    at: FieldPath = (*role.at, "template", "spec", "backoffLimit")
    if limit < enough:
        message = (
            f"the run would end once pods of {role.title} have failed {limit or 1} times in all;"
            f" the plan keeps all {role.pods} of them until {until}"
        )
        yield laid.runtime, report_broken_promise(at, message, f"Keep backoffLimit: {enough}.", "debug")
    elif limit > enough:
        message = f"pods of {role.title} would be restarted {limit} times before the run ends"
        message += f"; the plan says {enough}"
        yield laid.runtime, report_weakened_plan(at, message, f"Keep backoffLimit: {enough}.")
