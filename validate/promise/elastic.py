"""Checks of elastic runs: a lost worker is replaced while others run; the run ends with the first one."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.plan.elastic import build_elastic_rendezvous_env
from gangplan.validate.jobset import WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.failures import is_for_disruptions
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_elastic_workers(laid: ExpandedRun) -> Found:
    """Check what the Job of an elastic run's workers does when one is lost and when the first one ends."""
    role = laid.roles.get(WORKER)
    if laid.unit.job.elastic is None or role is None:
        return
    job: FieldPath = (*role.at, "template", "spec")
    rules = (role.job.get("podFailurePolicy") or {}).get("rules") or ()
    none: Body = {}
    first = next((rule for rule in rules if is_for_disruptions(rule)), none)
    if first.get("action") != "Ignore":
        message = "a drained node would end this try, although the run can go on with fewer workers"
        help = "Keep the rule that ignores DisruptionTarget, before all others."
        yield laid.runtime, report_weakened_plan((*job, "podFailurePolicy"), message, help)
    rules = (role.job.get("successPolicy") or {}).get("rules") or ()
    if not any(rule.get("succeededIndexes") == "0" and not rule.get("succeededCount") for rule in rules):
        message = (
            "a run that ends with fewer workers would not be complete: those that are missing would wait for"
            " the others, and fail"
        )
        help = 'Keep successPolicy: {rules: [{succeededIndexes: "0"}]}.'
        yield laid.runtime, report_broken_promise((*job, "successPolicy"), message, help, "elastic")
    yield from _check_promised_rendezvous_variables(laid, role)


def _check_promised_rendezvous_variables(laid: ExpandedRun, role: ExpandedRole) -> Found:
    index, path = role.place("env")
    built = {one["name"]: one.get("value") for one in (role.container or {}).get("env") or ()}
    for variable in build_elastic_rendezvous_env(laid.unit.job):
        if built.get(variable.name) != variable.value:
            message = f"{role.title} would not meet where the plan says: {variable.name}"
            yield index, report_broken_promise(path, message, "Keep the variable as it is.", "elastic")
