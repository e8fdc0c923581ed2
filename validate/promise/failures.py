"""Checks of what happens when a pod fails: reads the rules as the Job controller and JobSet do.

Sources: Kubernetes v1.34 (pkg/controller/job/pod_failure_policy.go), JobSet v0.12 (failure_policy.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gangplan.findings import FieldPath
from gangplan.model.exits import FINAL_CODES, PREFLIGHT_EXITS
from gangplan.objects import Body
from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.validate.jobset import JOBSET_PATH, LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import PROGRAM_CONTAINER, ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
ENDLESS, FAIL, RESTART = "RestartJobSetAndIgnoreMaxRestarts", "FailJobSet", "RestartJobSet"
# Reasons of a failed Job that blame the program and not the loss of a node.
OWN_FAILURES = ("BackoffLimitExceeded", "DeadlineExceeded")
POLICY, BACKOFF = "PodFailurePolicy", "BackoffLimitExceeded"
DISRUPTED = "DisruptionTarget"
RULES: FieldPath = (*JOBSET_PATH, "failurePolicy", "rules")
TERMINATED = 143  # the exit code after SIGTERM


class Failure(NamedTuple):
    """The failure of a Job: the reason and message of its condition, and the index of the matching rule."""

    reason: str
    message: str
    rule: int | None


def check_promised_failure_rules(laid: ExpandedRun) -> Found:
    """Check how failures are handled.

    Disruptions by the platform use up no retry, permanent failures are not retried, and other failures are
    retried as planned.
    """
    policy = laid.jobset.get("failurePolicy")
    if not laid.unit.job.retries or not policy or any(is_endless(rule) for rule in policy.get("rules") or ()):
        return  # order.py reports a policy that is missing, superfluous or endless
    launcher = laid.roles.get(LAUNCHER)
    if laid.uses_mpi and launcher is not None:
        yield from _check_final_launch_failures(laid, launcher)
    for role in laid.present:
        yield from _check_promised_failure_retries(laid, role)
        has_deadline = laid.unit.job.platform.trainer_line.has_run_deadline
        if has_deadline and not laid.unit.job.elastic:
            yield from _check_promised_disruption_retries(laid, role)


def is_endless(rule: Body) -> bool:
    """Return whether a rule of a JobSet restarts a program forever after the program's own failures."""
    reasons = rule.get("onJobFailureReasons") or OWN_FAILURES
    return rule.get("action") == ENDLESS and any(reason in OWN_FAILURES for reason in reasons)


def _check_promised_failure_retries(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that a program that fails is retried, but not forever, with any exit code that the rules name."""
    codes = laid.unit.job.exit_codes
    tried = next(code for code in (*codes.retry, *range(1, 256)) if not codes.is_final(code))
    yield from _check_promised_final_exit_codes(laid, role)
    failure = failed(role, tried)
    action, at = find_jobset_failure_action(laid, role, failure)
    if action == FAIL:
        message = "a program that fails would not be retried, but the plan has retries"
        help = "Name only what must not be retried: onJobFailureReasons, onJobFailureMessagePatterns."
        yield laid.runtime, report_broken_promise(at, message, help, "retries")
    for code in sorted(_list_rule_exit_codes(role) - set(FINAL_CODES)):
        failure = failed(role, code)
        action, at = find_jobset_failure_action(laid, role, failure)
        if action == ENDLESS and failure.reason == POLICY:
            message = f"a program that ends with {code} would be restarted forever"
            help = (
                "In onJobFailureMessagePatterns, name only what the program did not cause:"
                f" [has condition {DISRUPTED}]."
            )
            yield laid.runtime, report_broken_promise(at, message, help)


def _check_promised_final_exit_codes(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that the spec's final exit codes end the run, in pods that exit with the program's code."""
    codes = laid.unit.job.exit_codes
    if not codes.is_set or (laid.uses_mpi and role.name != LAUNCHER):
        return
    named = next((code for code in (*codes.fail, *range(1, 196)) if codes.is_final(code)), None)
    if named is None:
        return
    failure = failed(role, named)
    action, at = find_jobset_failure_action(laid, role, failure)
    if action != FAIL:
        at = at if failure.reason == POLICY else (*role.at, "template", "spec", "podFailurePolicy")
        message = (
            f"a program that ends with {named} would be retried; by the spec the run has failed for good"
        )
        help = "Keep the Job's rule for exit codes and the JobSet's, in their order."
        yield laid.runtime, report_broken_promise(at, message, help, "exitCodes")


def _check_promised_disruption_retries(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check a pod that is removed by a drain, a reclaimed node or a preemption: it uses up no retry."""
    failure = failed(role, TERMINATED, is_disrupted=True)
    action, at = find_jobset_failure_action(laid, role, failure)
    if action == ENDLESS:
        return
    what = "end the run" if action == FAIL else "use up a retry"
    where = "" if failure.reason == POLICY else f" under {role.title}"
    if where:
        at = (*role.at, "template", "spec", "podFailurePolicy")
    message = f"a drained node{where} would {what}; the plan counts only failures of the program"
    help = "Keep the Job's rule for DisruptionTarget and the JobSet's, in their order."
    yield laid.runtime, report_weakened_plan(at, message, help)


def _check_final_launch_failures(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that a launch that can never succeed is not retried."""
    looks = PREFLIGHT_EXITS.values() if laid.unit.job.image.preflight else ()
    for code in (*FINAL_CODES, *(one.code for one in looks if one.is_final)):
        failure = failed(role, code)
        action, at = find_jobset_failure_action(laid, role, failure)
        if action == FAIL:
            continue
        if failure.reason != POLICY:
            at = (*role.at, "template", "spec", "podFailurePolicy")
        message = f"a launch that can never succeed (exit code {code}) would be retried"
        help = "Keep the launcher Job's rule for exit codes and the JobSet's, in their order."
        if action == ENDLESS:
            yield laid.runtime, report_broken_promise(at, f"{message} forever", help)
        else:
            yield laid.runtime, report_weakened_plan(at, message, help)
        return


def _list_rule_exit_codes(role: ExpandedRole) -> set[int]:
    """Return the exit codes that the Job's rules name, and common ones."""
    rules = (role.job.get("podFailurePolicy") or {}).get("rules") or ()
    named = {int(code) for rule in rules for code in (rule.get("onExitCodes") or {}).get("values") or ()}
    return named | {1, 137, 255}


def failed(role: ExpandedRole, code: int, *, is_disrupted: bool = False) -> Failure:
    """Return how the Job of a role fails when one of its pods exits with this code."""
    rules = (role.job.get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        if "onExitCodes" in rule:
            is_met = _is_met(rule["onExitCodes"], code)
            failed = f"Container {PROGRAM_CONTAINER} for pod a/b failed"
            message = f"{failed} with exit code {code} matching FailJob rule"
        else:
            conditions = rule.get("onPodConditions") or ()
            is_met = is_disrupted and any(
                one.get("type") == DISRUPTED and one.get("status", "True") == "True" for one in conditions
            )
            message = f"Pod a/b has condition {DISRUPTED} matching FailJob rule"
        if is_met and rule.get("action") == "FailJob":
            return Failure(POLICY, f"{message} at index {index}", index)
        if is_met:
            break  # Count has the usual effect; another check reports Ignore
    return Failure(BACKOFF, "Job has reached the specified backoff limit", None)


def _is_met(wanted: Body, code: int) -> bool:
    if wanted.get("containerName", PROGRAM_CONTAINER) != PROGRAM_CONTAINER:
        return False
    return (code in (wanted.get("values") or ())) == (wanted.get("operator") == "In")


def find_jobset_failure_action(
    laid: ExpandedRun, role: ExpandedRole, failure: Failure
) -> tuple[str, FieldPath]:
    """Return the action that JobSet takes for a failed Job, and the path of the rule that decides it."""
    for index, rule in enumerate((laid.jobset.get("failurePolicy") or {}).get("rules") or ()):
        reasons, targets = rule.get("onJobFailureReasons"), rule.get("targetReplicatedJobs")
        if reasons and failure.reason not in reasons:
            continue
        if targets and role.name not in targets:
            continue
        patterns = rule.get("onJobFailureMessagePatterns")
        if not patterns or any(_is_failure_pattern_found(pattern, failure.message) for pattern in patterns):
            return str(rule.get("action")), (*RULES, index)
    return RESTART, RULES


def _is_failure_pattern_found(pattern: str, message: str) -> bool:
    """Return whether Go finds the pattern; JobSet ignores invalid patterns."""
    try:
        return compile_search(pattern)(message) is not None
    except (PatternError, UnknownScriptError):
        return False


def is_for_disruptions(rule: Body) -> bool:
    """Return whether a rule applies only to pods with the condition DisruptionTarget."""
    conditions = rule.get("onPodConditions") or ()
    return bool(conditions) and all(one.get("type") == DISRUPTED for one in conditions)
