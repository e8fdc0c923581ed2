"""The place at which a policy's finding is reported: a patch, the field its page names, or what decides the
value."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.component import Component, OperationStates
from gangplan.component.undo import ProblemKey
from gangplan.findings import FieldPath, Location
from gangplan.objects import Body
from gangplan.packs.model import FactParam
from gangplan.policy.choose import ChosenPolicy
from gangplan.resolve.facts import STATED_FACTS
from gangplan.source import Document
from gangplan.spec.waiver_files import WAIVERS
from gangplan.trace import Cause, Trace, Tracer
from gangplan.trace.cause import build_trace_from_causes
from gangplan.trace.context import IN_SPEC
from gangplan.validate.apiserver.policy.judge import PolicyEvaluator, Violation
from gangplan.validate.expand import merge_train_jobs_into_runtimes
from gangplan.workspace import OVERLAYS, SPECS

# Fields that identify the object: any expression may read them, few are about them.
_IDENTITY: tuple[FieldPath, ...] = (
    *(("apiVersion",), ("kind",), ("metadata", "name")),
    *(("metadata", "namespace"), ("metadata", "labels", "gangplan.dev/job")),
)


def find_policy_violation_place(
    violation: Violation,
    tracer: Tracer,
    page: ChosenPolicy | None,
    cluster: Document | None,
    undone: OperationStates | None = None,
) -> tuple[Location, FieldPath]:
    """Return the place to report, and the field of the object that the finding is about.

    The first that exists: the operation of a patch that brings the breach (`undone` has all operations, where
    they are known), the field that the policy's page names (`blames`), what decides a field that the
    expression read, and the field of the cluster's file that sets or could set a parameter.
    """
    if undone is not None and (found := _find_patch_violating_policy(violation, undone)):
        return found
    paths = [path for path in violation.paths if path not in _IDENTITY]
    traces = [(path, _ignore_waivers(tracer, violation.index, path)) for path in paths or violation.paths]
    if undone is not None and undone.finds_before(_key_of(violation)):
        traces = [one for one in traces if not any(map(_is_patch, one[1].causes))] or traces
    role, *field = page.page.blames.split(".") if page else [""]
    for is_meant in (_is_patch, lambda cause: _is_cause_named_by_policy(cause, role, tuple(field))):
        meant = [(cause, path) for path, trace in traces for cause in trace.causes if is_meant(cause)]
        if meant:
            cause, path = min(meant, key=lambda one: not one[0].is_written)
            return cause.where or Location(cause.file), path
    path, trace = traces[0] if traces else ((), tracer(violation.index, ()))
    if role == "cluster" and cluster:
        return cluster.where(tuple(field)), path
    if paths and (found := _find_place_deciding_policy_violation(traces, violation.message)):
        return found
    return _find_policy_parameter_place(violation, page, cluster) or trace.where, path


def _ignore_waivers(tracer: Tracer, index: int, path: FieldPath) -> Trace:
    """Return what decides a field, without the mark that a waiver leaves: no policy is about it."""
    found = tracer(index, path)
    kept = [cause for cause in found.causes if not cause.file.startswith(f"{WAIVERS}/")]
    if len(kept) == len(found.causes):
        return found
    whole = tracer(index, ())
    return build_trace_from_causes(kept, whole.where) if kept else whole


def find_undone_operations(
    evaluator: PolicyEvaluator, component: Component, before: Sequence[Body]
) -> OperationStates:
    """Return the undone operations of a component on objects that policies judge."""
    return OperationStates(
        component, before, lambda state: map(_key_of, evaluator.judge(merge_train_jobs_into_runtimes(state)))
    )


def _key_of(violation: Violation) -> ProblemKey:
    return (violation.index, violation.policy.name, violation.validation), ()


def _find_patch_violating_policy(
    violation: Violation, undone: OperationStates
) -> tuple[Location, FieldPath] | None:
    """Return the place of the patch operation that brings the breach, and the field that it wrote."""
    number = undone.cause(_key_of(violation))
    if number is None or violation.index >= len(undone.states[0]):  # no patch applies to a schedule's pod
        return None
    places = [(undone.place(number, violation.index, path), path) for path in violation.paths]
    plain = undone.place(number, violation.index, ())
    return next((one for one in places if one[0] != plain), (plain, next(iter(violation.paths), ())))


def _is_patch(cause: Cause) -> bool:
    return cause.file.startswith(f"{OVERLAYS}/") and not cause.file.endswith("/cluster.yaml")


def _is_cause_named_by_policy(cause: Cause, role: str, field: FieldPath) -> bool:
    """Return whether a cause is the named field of the spec or the team's file; for a spec also its
    default."""
    is_team, is_spec = cause.file.endswith("/team.yaml"), cause.file.startswith(f"{SPECS}/")
    if role == "team" or (role == "spec" and is_spec and not is_team):
        return is_spec and is_team == (role == "team") and cause.field[: len(field)] == field
    if role != "spec" or not cause.is_written or cause.field[:1] != ("defaults",):
        return False
    name = str(cause.field[-1])
    return IN_SPEC.get(name, (name,))[: len(field)] == field


def _find_place_deciding_policy_violation(
    traces: Sequence[tuple[FieldPath, Trace]], message: str
) -> tuple[Location, FieldPath] | None:
    """Return the place whose value shows in one of the fields, or else what gangplan looked at to decide
    them.

    Values that the message quotes come first, then written ones, then defaults.
    """
    shown: list[tuple[int, bool, int, Location, FieldPath]] = []
    for path, trace in traces:
        for cause in trace.causes:
            if cause.where and cause.is_direct:
                named = sum(f"'{step}'" in message for step in cause.field)
                shown.append((-named, not cause.is_written, len(shown), cause.where, path))
    if shown:
        return min(shown)[-2:]
    return next(((trace.where, path) for path, trace in traces if not trace.is_own), None)


def _find_policy_parameter_place(
    violation: Violation, page: ChosenPolicy | None, cluster: Document | None
) -> Location | None:
    """Return where the cluster's file sets, or could set, a parameter that the expression read."""
    for path in violation.params:
        origin = page.origins.get(str(path[-1])) if page else None
        field = STATED_FACTS.get(origin.fact) if isinstance(origin, FactParam) else origin
        if field and cluster:
            return cluster.where(field)
    return None
