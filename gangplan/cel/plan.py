"""The plan of a checked expression: the steps that the API server takes, as cel-go's planner makes them.

Attributes (`object.spec.replicas`, `a[b].c`) are one step with qualifiers, constant literals and conversions
of constants are values, `x in [constants]` is a lookup, and `or` and `orValue` skip what they don't need. The
cost of an evaluation depends on all of this. Source: cel-go v0.26 `interpreter/planner.go`, `attributes.go`,
`decorators.go`, with `OptOptimize` as k8s.io/apiserver v0.34 `pkg/cel/environment/base.go` sets it.

Values are in a frame, a list: the program's variables come first, then those of its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class PlanStep:
    """A step; `id` is the node's."""

    id: int


@dataclass(frozen=True, slots=True, eq=False)
class Constant(PlanStep):
    """A value that never changes."""

    value: object


@dataclass(frozen=True, slots=True, eq=False)
class ConstantQualifier:
    """A constant qualifier: `.name`, `['name']`, `[0]`; `test` marks the last one of `has()`."""

    key: object
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """`[index]` with an index that is evaluated."""

    index: PlanStep
    optional: bool = False


Qualifier = ConstantQualifier | Computed


@dataclass(frozen=True, slots=True, eq=False)
class Variable(PlanStep):
    """A name and the selections from it."""

    slot: int
    name: str
    qualifiers: tuple[Qualifier, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Relative(PlanStep):
    """Selections from the value of another step."""

    operand: PlanStep
    qualifiers: tuple[Qualifier, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(PlanStep):
    """`condition ? yes : no`; selections from it are made in its branches."""

    condition: PlanStep
    yes: Attribute
    no: Attribute


Attribute = Variable | Relative | Conditional


@dataclass(frozen=True, slots=True, eq=False)
class CallPlan(PlanStep):
    """A function applied to values. `overload` is empty if only the values decide which one it is.

    If `stops`, arguments after a failed one are not evaluated (cel-go does so from three arguments on).
    """

    function: str
    overload: str
    call: Callable[..., Any]
    arguments: tuple[PlanStep, ...]
    stops: bool


@dataclass(frozen=True, slots=True, eq=False)
class Logic(PlanStep):
    """`&&` (`absorbing` is False) or `||` (it is True): a side that is `absorbing` decides, errors or not."""

    absorbing: bool
    terms: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fallback(PlanStep):
    """`optional.or(other)`, or `optional.orValue(other)` when `unwraps`."""

    optional: PlanStep
    other: PlanStep
    unwraps: bool


@dataclass(frozen=True, slots=True, eq=False)
class Membership(PlanStep):
    """`value in [constants]`: the constants with their classes."""

    value: PlanStep
    members: frozenset[tuple[type, object]]


@dataclass(frozen=True, slots=True, eq=False)
class NewList(PlanStep):
    """`[a, ?b]`."""

    elements: tuple[PlanStep, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class NewMap(PlanStep):
    """`{key: value, ?key: value}`: key, value, and whether the entry is optional."""

    entries: tuple[tuple[PlanStep, PlanStep, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fold(PlanStep):
    """A loop over `range` with one variable, or two when `slot2` is not -1."""

    range: PlanStep
    slot: int
    slot2: int
    accumulator: int
    initial: PlanStep
    condition: PlanStep
    step: PlanStep
    result: PlanStep


@dataclass(frozen=True, slots=True)
class ExpressionPlan:
    """A whole expression: its first step, the frame's size and the variables by slot."""

    root: PlanStep
    size: int
    variables: tuple[tuple[int, str], ...]


def _has_presence_test(qualifiers: tuple[Qualifier, ...]) -> bool:
    last = qualifiers[-1] if qualifiers else None
    return isinstance(last, ConstantQualifier) and last.test


def is_cel_presence_test(plan: Any) -> bool:
    """Return whether the whole plan is `has(...)`; a condition has the qualifiers of its branches."""
    while isinstance(plan, Conditional):
        if not _has_same_last_qualifier(plan):
            return False
        plan = plan.yes
    return _has_presence_test(plan.qualifiers)


def _has_same_last_qualifier(plan: Conditional) -> bool:
    """Return whether both branches end with one qualifier, which was added to the whole condition."""
    yes, no = _find_last_qualifier(plan.yes), _find_last_qualifier(plan.no)
    return yes is not None and yes is no


def _find_last_qualifier(plan: Any) -> Qualifier | None:
    while isinstance(plan, Conditional):
        plan = plan.yes
    return plan.qualifiers[-1] if plan.qualifiers else None
