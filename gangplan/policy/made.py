"""Judge what controllers create for runs (JobSets, Jobs, pods, Services) by a workspace's own policies.

If a policy refuses one of these objects, the run is admitted, holds its quota, and never starts. The policies
of packs need no such check, because they judge templates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gangplan.findings import FieldPath, Finding, Location
from gangplan.objects import Body, ref_of
from gangplan.policy.checks import PolicyChecker, drop_hash_placeholder, find_violated_policy_location
from gangplan.policy.places import find_policy_violation_place
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICY_UNDECIDED
from gangplan.trace import Tracer
from gangplan.validate.apiserver.policy.judge import PolicyEvaluator, Violation
from gangplan.validate.apiserver.policy.matching import CREATE, may_match_admission_request
from gangplan.validate.apiserver.policy.model import User
from gangplan.validate.expand import merge_train_jobs_into_runtimes
from gangplan.validate.made import MadeObject, list_objects_made_by_controllers
from gangplan.validate.problems import format_path

# (API version, kind) of everything that `list_objects_made_by_controllers` returns.
KINDS = (
    *(("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "Job"), ("v1", "Pod"), ("v1", "Service")),
    *(("v1", "ConfigMap"), ("v1", "Secret"), ("kueue.x-k8s.io/v1beta2", "Workload")),
)


def _format_exemption(user: str) -> str:
    """Return a condition that leaves a controller out; owners prove nothing, as anybody may name some."""
    return f"matchConditions: [{{name: not-made, expression: 'request.userInfo.username != \"{user}\"'}}]"


def check_created_objects_by_policies(
    checker: PolicyChecker, bodies: Sequence[Body], tracer: Tracer
) -> list[Finding]:
    """Return what the workspace's own policies report about what controllers create from objects, each cause
    once."""
    found: dict[object, Finding] = {}
    if not _has_own_matching_policies(checker):
        return []
    for made in list_objects_made_by_controllers(merge_train_jobs_into_runtimes(bodies)):
        for violation in _build_policy_evaluator_for_user(checker, made.user).judge([made.body]):
            name = violation.policy.name
            if violation.is_undecided or not made.is_whole:
                found.setdefault(
                    name,
                    _build_undecided_policy_finding(name, find_violated_policy_location(violation), made),
                )
                continue
            one = _build_policy_finding_on_created_object(
                checker, violation, made, bodies[made.index], tracer
            )
            found.setdefault((one.rule, one.where, one.message), one)
    return list(found.values())


def _has_own_matching_policies(checker: PolicyChecker) -> bool:
    """Return whether any policy of the workspace may match such objects."""
    return bool(_build_policy_evaluator_for_user(checker, "").policies)


def _build_policy_evaluator_for_user(checker: PolicyChecker, user: str) -> PolicyEvaluator:
    """Return the evaluator for requests of a user, built once per user."""
    if user not in checker.of_controllers:
        whole = checker.evaluator
        resources = [whole.kinds.find(*kind) for kind in KINDS]
        own = [
            one
            for one in whole.policies
            if not one.policy.written.is_shipped
            and any(may_match_admission_request(one.policy.match, resource, CREATE) for resource in resources)
        ]
        namespace = user.split(":")[2] if user else ""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        checker.of_controllers[user] = dataclasses.replace(whole, policies=own, user=User(user, groups))
    return checker.of_controllers[user]


def _build_undecided_policy_finding(name: str, home: Location, made: MadeObject) -> Finding:
    kinds = f"{made.body['kind']}s that {made.maker} makes"
    return Finding(
        POLICY_UNDECIDED,
        home,
        f"policy '{name}' is about {kinds} for runs, and only the cluster can tell what it says of them",
        f"Judge it in the cluster, or leave them out: {_format_exemption(made.user)}.",
    )


def _build_policy_finding_on_created_object(
    checker: PolicyChecker, violation: Violation, made: MadeObject, origin: Body, tracer: Tracer
) -> Finding:
    """Return a finding at the field of the run's template, or at the policy if the template has no such
    field."""
    home = find_violated_policy_location(violation)
    paths = tuple((*made.prefix, *path) for path in violation.paths)
    placed = dataclasses.replace(violation, index=made.index, paths=paths)
    where, path = find_policy_violation_place(placed, tracer, None, checker.cluster)
    if not any(_has_value_at_path(origin, one) for one in paths):
        where = home
    so = ", and the run never starts" if violation.severity is Severity.ERROR else ""
    return Finding(
        checker.rulebook.policy(violation.policy.name),
        where,
        drop_hash_placeholder(violation.message),
        f"{made.maker} makes this {made.body['kind']} of the run's template{so}. Patch the template, or leave"
        f" what controllers make out of the policy ({home.file}): {_format_exemption(made.user)}.",
        drop_hash_placeholder(str(ref_of(made.body))),
        format_path(path),
        level=violation.severity,
    )


def _has_value_at_path(body: Any, path: FieldPath) -> bool:
    """Return whether an object has a value at a path."""
    for step in path:
        is_there = (
            step in body if isinstance(body, dict) else isinstance(body, list) and step in range(len(body))
        )
        if not is_there:
            return False
        body = body[step]
    return True
