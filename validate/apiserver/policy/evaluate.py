"""The decisions that the API server would reach about one request, by one policy with one parameter object.

Source: apiserver v0.34, policy/validating/validator.go, webhook/matchconditions/matcher.go and
plugin/cel/activation.go. One difference: a messageExpression is evaluated only if its validation fails, so
its cost counts only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.cel.errors import BudgetError, EvalError, UnknownError
from gangplan.cel.program import CelProgram
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy, CompiledValidation
from gangplan.validate.apiserver.policy.matching import AdmissionRequest, UndecidableError
from gangplan.validate.apiserver.policy.model import User
from gangplan.validate.apiserver.policy.values import (
    LazyVariables,
    build_admission_namespace_value,
    build_admission_request_value,
)

# apiserver v0.34, pkg/apis/cel/config.go
COST_PER_CALL, PER_BINDING, PER_CONDITIONS = 1_000_000, 10_000_000, 2_500_000
OWN_AUTHORIZER = "authorizer.requestResource"
LONGEST_MESSAGE = 5 * 1024
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A refusal. `check` is the validation that failed (None: before any ran), `scope` what it saw.

    With `is_outright`, the request is refused whatever the actions of the binding are.
    """

    message: str
    check: CompiledValidation | None = None
    scope: EvaluationScope | None = None
    is_error: bool = False
    is_outright: bool = False

    @property
    def reason(self) -> str:
        """The reason in the server's answer."""
        return self.check.validation.reason if self.check and not self.is_error else "Invalid"


@dataclass(slots=True)
class EvaluationScope:
    """What the expressions of one evaluation see, and the cost that is left to them."""

    activation: dict[str, Any]
    programs: CompiledPolicy
    left: int = PER_BINDING
    spent: int = 0

    def run(self, program: CelProgram) -> Any:
        """Return the value of an expression.

        Costs of policies that come with gangplan are not counted: tests limit them to a tenth of the budget.
        Raises EvalError if the expression fails, and BudgetError (OUT_OF_BUDGET) if the whole evaluation must
        end.
        """
        if self.programs.policy.written.is_shipped:
            return program.evaluate(self.activation)
        self.spent = 0
        try:
            value, cost = program.measure(self.activation, COST_PER_CALL)
        except BudgetError:
            self._pay(COST_PER_CALL)
            raise EvalError("operation cancelled: actual cost limit exceeded") from None
        except EvalError as wrong:
            self._pay(wrong.cost)
            raise
        self._pay(cost)
        return value

    def _pay(self, cost: int) -> None:
        if self.spent + cost > self.left:
            raise BudgetError(OUT_OF_BUDGET)
        self.left -= self.spent + cost

    def variable(self, name: str) -> Any:
        """Return the value of one of the policy's variables."""
        if self.programs.policy.written.is_shipped:
            return self.programs.variables[name].evaluate(self.activation)
        try:
            value, cost = self.programs.variables[name].measure(self.activation, COST_PER_CALL)
        except BudgetError:
            self.spent += COST_PER_CALL
            raise EvalError("operation cancelled: actual cost limit exceeded") from None
        self.spent += cost
        return value


def decide_request(
    compiled: CompiledPolicy, request: AdmissionRequest, params: Body | None, user: User
) -> list[Decision]:
    """Return the refusals of a policy whose rules match. Raises UndecidableError."""
    try:
        return _evaluate_admission_policy(compiled, request, params, user)
    except UnknownError as unknown:
        raise UndecidableError(str(unknown)) from unknown


def _evaluate_admission_policy(
    compiled: CompiledPolicy, request: AdmissionRequest, params: Body | None, user: User
) -> list[Decision]:
    base = _build_admission_policy_variables(request, params, user)
    fails = compiled.policy.fails_closed
    try:
        if not _fits_admission_match_conditions(
            compiled, EvaluationScope(dict(base), compiled, PER_CONDITIONS), fails
        ):
            return []
    except EvalError as wrong:
        return [Decision(str(wrong), is_error=True)]
    scope = scope_of(compiled, {**base, "namespaceObject": build_admission_namespace_value(request)})
    found: list[Decision] = []
    for check in compiled.checks:
        try:
            value = scope.run(check.program)
        except BudgetError:
            return [Decision(OUT_OF_BUDGET, is_error=True)] if fails else []
        except EvalError as wrong:
            if fails:
                said = f"expression '{check.validation.text}' resulted in error: {wrong}"
                found.append(Decision(said, check, scope, is_error=True))
            continue
        if value is not True:
            found.append(Decision("", check, scope))
    try:
        failed = list(_evaluate_audit_annotations(compiled, base, request))
    except BudgetError:  # the results of the validations are lost
        return [Decision(OUT_OF_BUDGET, is_error=True)] if fails else []
    return [
        *(_add_admission_decision_message(one, base, request) for one in found),
        *(failed if fails else ()),
    ]


def _evaluate_audit_annotations(
    compiled: CompiledPolicy, base: dict[str, Any], request: AdmissionRequest
) -> Iterator[Decision]:
    """Yield a refusal for each audit annotation whose value fails.

    Annotations have a budget of their own, see the namespace as it is, and have no authorizer. Raises
    BudgetError.
    """
    if not compiled.annotations:
        return
    seen = {name: value for name, value in base.items() if not name.startswith("authorizer")}
    scope = scope_of(
        compiled, {**seen, "namespaceObject": build_admission_namespace_value(request, is_whole=True)}
    )
    for program in compiled.annotations:
        try:
            try:
                scope.run(program)
            except UnknownError:
                name = OWN_AUTHORIZER if OWN_AUTHORIZER in program.text else "authorizer"
                raise EvalError(f"no such attribute(s): {name}") from None
        except EvalError as wrong:
            said = f"expression '{program.text}' resulted in error: {wrong}"
            yield Decision(said, is_error=True, is_outright=True)


def may_admission_policy_apply(
    compiled: CompiledPolicy, request: AdmissionRequest, params: Body | None, user: User
) -> bool:
    """Return whether no match condition is false for certain; match conditions do not see the namespace."""
    scope = EvaluationScope(
        _build_admission_policy_variables(request, params, user), compiled, PER_CONDITIONS
    )
    try:
        return _fits_admission_match_conditions(compiled, scope, compiled.policy.fails_closed)
    except (EvalError, UnknownError):
        return True


def _build_admission_policy_variables(
    request: AdmissionRequest, params: Body | None, user: User
) -> dict[str, Any]:
    """Return the variables that every expression sees."""
    return {
        "object": request.body,
        "oldObject": request.old,
        "request": build_admission_request_value(request, user),
        "params": params,
        "namespaceObject": None,
        # Calls of these raise UnknownError, whatever their value is.
        "authorizer": {},
        OWN_AUTHORIZER: {},
    }


def scope_of(compiled: CompiledPolicy, activation: dict[str, Any]) -> EvaluationScope:
    """Return a scope with the policy's variables in it."""
    scope = EvaluationScope(activation, compiled)
    activation["variables"] = LazyVariables(compiled.variables, scope.variable)
    return scope


def _fits_admission_match_conditions(compiled: CompiledPolicy, scope: EvaluationScope, fails: bool) -> bool:
    """Return whether no match condition is false.

    Raises EvalError if one fails, none is false, and errors count.
    """
    errors: list[str] = []
    for _, program in compiled.conditions:
        try:
            if scope.run(program) is False:
                return False
        except BudgetError:
            errors = [OUT_OF_BUDGET]
            break
        except EvalError as wrong:
            errors.append(f"expression '{program.text}' resulted in error: {wrong}")
    if errors and fails:
        raise EvalError(errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]")
    return not errors


def _add_admission_decision_message(
    decision: Decision, base: dict[str, Any], request: AdmissionRequest
) -> Decision:
    """Return the decision with the message that the user reads."""
    if decision.is_error or decision.check is None or decision.scope is None:
        return decision
    check, scope = decision.check, decision.scope
    message = _evaluate_message_expression(
        check, scope_of(scope.programs, {**base, "namespaceObject": build_admission_namespace_value(request)})
    )
    if not message:
        message = check.validation.message.strip()
    return Decision(message or f"failed expression: {check.validation.text.strip()}", check, scope)


def _evaluate_message_expression(check: CompiledValidation, scope: EvaluationScope) -> str:
    """Return the value of the messageExpression, or "" if it has none that can be shown."""
    if check.message is None:
        return ""
    try:
        value = scope.run(check.message)
    except EvalError:
        return ""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    return "" if "\n" in text or len(text.encode()) > LONGEST_MESSAGE else text
