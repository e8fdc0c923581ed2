"""Checks of one Job of a run (batch/validation of Kubernetes), Indexed by default as in JobSet."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import (
    FoundProblems,
    check_duplicate_list_entries,
    is_domain_path,
    is_qualified,
    report_invalid,
)


def check_job_spec(path: FieldPath, spec: Body) -> FoundProblems:
    """Check the spec of a Job template."""
    restart = (spec["template"].get("spec") or {}).get("restartPolicy", "OnFailure")
    manager = spec.get("managedBy")
    if manager is not None and not is_domain_path(manager):
        yield report_invalid((*path, "managedBy"), f"'{manager}' has no prefix", "Write example.com/name.")
    is_indexed = spec.get("completionMode", "Indexed") == "Indexed"
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if name in spec and not is_indexed:
            yield report_invalid((*path, name), f"{name} needs completionMode Indexed")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield report_invalid((*path, "maxFailedIndexes"), "maxFailedIndexes needs backoffLimitPerIndex")
    if spec.get("manualSelector"):
        yield report_invalid((*path, "manualSelector"), "the selector of a Job is generated")
    elif spec.get("selector"):
        yield report_invalid((*path, "selector"), "the selector of a Job is generated")
    if "podFailurePolicy" in spec:
        yield from _check_pod_failure_policy((*path, "podFailurePolicy"), spec, restart)
    if "successPolicy" in spec:
        yield from _check_job_success_policy((*path, "successPolicy"), spec, is_indexed)


def _check_pod_failure_policy(path: FieldPath, spec: Body, restart: str) -> FoundProblems:
    if restart != "Never":
        yield report_invalid(path, "podFailurePolicy needs restartPolicy Never")
    if spec.get("podReplacementPolicy", "Failed") != "Failed":
        yield report_invalid(path, "podFailurePolicy needs podReplacementPolicy Failed")
    pod = spec["template"].get("spec") or {}
    names = [one["name"] for name in ("containers", "initContainers") for one in pod.get(name) or ()]
    for index, rule in enumerate(spec["podFailurePolicy"]["rules"]):
        at = (*path, "rules", index)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if (codes is None) == (not conditions):
            yield report_invalid(at, "exactly one of onExitCodes and onPodConditions is expected")
        if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield report_invalid((*at, "action"), "FailIndex needs backoffLimitPerIndex")
        if codes is not None:
            yield from _check_exit_code_rule((*at, "onExitCodes"), codes, names)
        for number, condition in enumerate(conditions or ()):
            if not is_qualified(condition["type"]):
                yield report_invalid(
                    (*at, "onPodConditions", number, "type"), f"'{condition['type']}' is not a condition"
                )


def _check_exit_code_rule(path: FieldPath, codes: Body, names: list[str]) -> FoundProblems:
    values = codes["values"]
    if codes.get("containerName", "") not in ("", *names):
        yield report_invalid((*path, "containerName"), f"the pod has no container '{codes['containerName']}'")
    if not values:
        yield report_invalid((*path, "values"), "at least one exit code is expected")
    if codes["operator"] == "In" and 0 in values:
        yield report_invalid((*path, "values"), "0 is not a failure")
    if values != sorted(values):
        yield report_invalid((*path, "values"), "the exit codes must be in order")
    yield from check_duplicate_list_entries((*path, "values"), values, lambda value: value, "the exit code")


def _check_job_success_policy(path: FieldPath, spec: Body, is_indexed: bool) -> FoundProblems:
    rules = spec["successPolicy"]["rules"]
    if not is_indexed:
        yield report_invalid(path, "successPolicy needs completionMode Indexed")
    if not rules:
        yield report_invalid((*path, "rules"), "at least one rule is expected")
    for index, rule in enumerate(rules):
        if "succeededCount" not in rule and "succeededIndexes" not in rule:
            yield report_invalid((*path, "rules", index), "succeededCount or succeededIndexes is expected")
        elif rule.get("succeededCount", 1) < 1:
            yield report_invalid((*path, "rules", index, "succeededCount"), "the least is 1")
        text = rule.get("succeededIndexes", "0")
        if not text.replace("-", "").replace(",", "").isdigit():
            yield report_invalid(
                (*path, "rules", index, "succeededIndexes"), f"'{text}' is not a list of indexes"
            )
