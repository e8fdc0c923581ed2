"""Knowing without another evaluation that a policy is silent, from what its expressions read of an object.

Most policies are silent about most objects, and for few reasons. A way through their expressions that ended
in silence (gangplan/cel/questions.py) is kept with the policy; an object that takes the same way needs no
evaluation. Everything else is evaluated as before: refusals, their messages and their causes never come from
here.

Costs of policies that come with gangplan are not counted (evaluate.py), so silence depends on answers alone.
A workspace's own policy may run out of budget on a longer text that leads the same way, so it is always
evaluated. docs/decisions/0020-what-a-policy-asks.md explains why this is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.cel.asking import Asker
from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.joint import Joined, JointTree, find_unjoinable_trees
from gangplan.cel.questions import EVALUATE, SILENT, QuestionNode, QuestionTree, UnforeseenPathError, WayError
from gangplan.cel.seen import EvaluatedVariables, StopError
from gangplan.errors import InternalError
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.evaluate import Decision, decide_request
from gangplan.validate.apiserver.policy.matching import UPDATE, AdmissionRequest, UndecidableError
from gangplan.validate.apiserver.policy.model import User
from gangplan.validate.apiserver.policy.values import (
    build_admission_namespace_value,
    build_admission_request_value,
)

# Once per this many answers from a tree, the policy is evaluated all the same, and the results are compared.
RECHECKED = 256
# New ways after which a policy whose ways hardly ever recur is only evaluated.
MOST_NEW = 128
# The fields of `request` that differ between objects of one resource and operation.
_OWN = frozenset(("name", "namespace"))
_OBJECT, _OLD, _NAMESPACE, _REQUEST = range(4)


@dataclass(slots=True, eq=False)
class SilentWays:
    """The ways of one policy with one parameter object, for one resource and operation and one user."""

    tree: QuestionTree = field(default_factory=QuestionTree)
    hits: int = 0
    news: int = 0

    @property
    def is_closed(self) -> bool:
        """Whether no new ways are kept: too few objects take a known one."""
        return self.news >= MOST_NEW and 4 * self.hits < self.news


def build_joint_ways() -> SilentWays:
    """Return ways for several policies as one."""
    return SilentWays(JointTree())


@dataclass(slots=True, eq=False)
class Hearing:
    """What the joint ways of all policies that match an object say about it.

    `leaf` is where the way of each policy ends, or None if only the policies' own ways know. Then the
    object's ways are joined after those have been used.
    """

    ways: SilentWays
    trees: Sequence[QuestionTree]
    given: Sequence[Any]
    leaf: Joined | None = None
    is_recheck: bool = False

    def __post_init__(self) -> None:
        assert isinstance(self.ways.tree, JointTree)
        self.leaf = self.ways.tree.joined(self.given)
        if self.leaf is not None:
            self.ways.hits += 1
            self.is_recheck = not self.ways.hits % RECHECKED

    @property
    def open(self) -> tuple[int, ...]:
        """The numbers of the trees whose policies may refuse the object, or must be evaluated again."""
        if self.leaf is None or self.is_recheck:
            return tuple(range(len(self.trees)))
        return self.leaf.open

    def end(self, number: int) -> QuestionNode | None:
        """Return where the way through a tree ends, or None if that is not known."""
        return self.leaf.ends[number] if self.leaf is not None else None

    def join(self) -> None:
        """Add the ways that the policies' own trees know by now."""
        tree = self.ways.tree
        assert isinstance(tree, JointTree)
        if self.leaf is None and not self.ways.is_closed:
            alone = find_unjoinable_trees(self.trees)
            if alone != tree.alone:
                tree = self.ways.tree = JointTree(alone)
                self.ways.news = 0
            self.ways.news += 1
            tree.join(self.trees, self.given)


def build_silence_inputs(request: AdmissionRequest, user: User) -> tuple[Any, ...]:
    """Return what the ways of policies start from: the object, the old one, the namespace, the request."""
    return (
        request.body,
        request.old,
        build_admission_namespace_value(request),
        build_admission_request_value(request, user),
    )


def decide_admission_unless_silent(
    known: tuple[SilentWays | None, QuestionNode | None, bool],
    compiled: CompiledPolicy,
    request: AdmissionRequest,
    params: Body | None,
    user: User,
    given: Sequence[Any],
) -> list[Decision]:
    """Return the refusals of `decide_request`, evaluating only if the ways do not prove that there are none.

    `known` has the ways, where they end if that is known already, and whether to evaluate anyway. Raises
    UndecidableError, and InternalError if a way led to silence and the policy is not silent.
    """
    ways, end, is_recheck = known
    if ways is None:
        return decide_request(compiled, request, params, user)
    if end is None:
        end = ways.tree.end(given)
        if end is SILENT:
            ways.hits += 1
            is_recheck = not ways.hits % RECHECKED
    if end is SILENT and not is_recheck:
        return []
    try:
        found = decide_request(compiled, request, params, user)
    except UndecidableError as unknown:
        if end is SILENT:
            raise _build_misjudgment_error(
                compiled, f"a known way ends in silence, but it is undecided: {unknown}"
            ) from unknown
        raise
    if end is None and not ways.is_closed:
        ways.news += 1
        end = _record_admission_policy_questions(ways.tree, compiled, request, params, given)
    if end is SILENT and found:
        raise _build_misjudgment_error(
            compiled, f"a known way ends in silence, but it says: {found[0].message}"
        )
    return found


def _build_misjudgment_error(compiled: CompiledPolicy, what: str) -> InternalError:
    return InternalError(
        f"policy '{compiled.policy.name}' was judged wrongly by what it asked before: {what}"
    )


def _record_admission_policy_questions(
    tree: QuestionTree,
    compiled: CompiledPolicy,
    request: AdmissionRequest,
    params: Body | None,
    given: Sequence[Any],
) -> QuestionNode:
    """Return the end of the way of a request, which the tree knows from now on."""
    asker = Asker(tree, list(given))
    try:
        try:
            end = SILENT if _is_silent(asker, compiled, request, params, given) else EVALUATE
        except (StopError, UnforeseenPathError, EvalError, UnknownError, CrashError):
            end = EVALUATE
        asker.finish(end)
    except WayError as wrong:
        raise _build_misjudgment_error(compiled, str(wrong)) from wrong
    return end


def _is_silent(
    asker: Asker,
    compiled: CompiledPolicy,
    request: AdmissionRequest,
    params: Body | None,
    given: Sequence[Any],
) -> bool:
    """Return whether a condition is false or all validations are true, as `decide_request` of evaluate.py
    does.

    Unlike there, errors are raised.
    """
    fixed = {name: value for name, value in given[_REQUEST].items() if name not in _OWN}
    sees: dict[str, Any] = {
        "object": asker.seen(_OBJECT),
        "oldObject": asker.seen(_OLD) if request.operation == UPDATE else None,
        "request": asker.seen(_REQUEST, fixed),
        "params": params,
        "namespaceObject": None,
    }
    for _, program in compiled.conditions:
        if not asker.truth(asker.evaluate(program, sees)):
            return True
    if given[_NAMESPACE] is not None:
        sees["namespaceObject"] = asker.seen(_NAMESPACE)
    variables = EvaluatedVariables(compiled.variables, lambda program: asker.evaluate(program, sees))
    sees["variables"] = variables
    return all(asker.truth(asker.evaluate(check.program, sees)) for check in compiled.checks)


def find_silent_policy_ways(
    compiled: CompiledPolicy, params: Body | None, request: AdmissionRequest, user: User
) -> SilentWays | None:
    """Return the ways that a request may take, or None for a policy whose costs or audit annotations count.

    They are kept with the policy, so clusters that give it the same parameters share them.
    """
    if not compiled.policy.written.is_shipped or compiled.policy.annotations:
        return None
    is_placed = build_admission_namespace_value(request) is not None
    key = (
        request.resource,
        request.operation,
        is_placed,
        _format_ways_key(params),
        _format_ways_key(_convert_user_to_mapping(user)),
    )
    ways: SilentWays = compiled.silent.setdefault(key, SilentWays())
    return ways


def _convert_user_to_mapping(user: User) -> dict[str, Any]:
    extra: Mapping[str, Sequence[str]] = user.extra
    return {"name": user.username, "groups": user.groups, "uid": user.uid, "extra": sorted(extra.items())}


def _format_ways_key(value: Any) -> str:
    return repr(value)
