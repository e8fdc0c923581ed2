"""The policies, bindings and parameters that match an object, cached by the facts that matching reads.

Matching (matching.py, params.py) reads little: the resource and the operation, the labels of object and
namespace that some selector names, and the object's name if a rule lists names. The same policies match
objects that agree in these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.cel.questions import QuestionTree
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.kinds import Resource
from gangplan.validate.apiserver.policy.matching import CREATE, AdmissionRequest, may_match_admission_request
from gangplan.validate.apiserver.policy.model import Binding
from gangplan.validate.apiserver.policy.silent import SilentWays, build_joint_ways

# The label that every namespace has, with its name.
NAME_LABEL = "kubernetes.io/metadata.name"
# Number of cached answers, each a list of the policies of one kind in one namespace.
MOST_KEPT = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """A policy that matches an object by one of its bindings, with each parameter object and its silent ways.

    `params` is None if this must be computed for each object: the answer is an error, or unknown.
    """

    compiled: CompiledPolicy
    binding: Binding
    params: tuple[tuple[Body | None, SilentWays | None], ...] | None

    @property
    def key(self) -> tuple[Any, ...]:
        """What the policy decides, by identities."""
        params = None if self.params is None else tuple((id(one), id(ways)) for one, ways in self.params)
        return id(self.compiled), id(self.binding), params


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The policies that match an object, in the order in which they judge, and their joint ways.

    `trees` are those of all their parameter objects, in the same order. `owners` has for each tree the number
    of its meaning, `first` for each meaning the number of its first tree; `asked` are the meanings without a
    tree.
    """

    meanings: tuple[Meaning, ...]
    trees: tuple[QuestionTree, ...]
    joint: SilentWays
    owners: tuple[int, ...]
    first: tuple[int, ...]
    asked: frozenset[int]

    @classmethod
    def of(
        cls, meanings: Sequence[Meaning], joint: Callable[[tuple[QuestionTree, ...]], SilentWays]
    ) -> Panel:
        """Return the panel of some meanings; `joint` finds the joint ways of trees."""
        trees: list[QuestionTree] = []
        owners: list[int] = []
        first: list[int] = []
        for number, one in enumerate(meanings):
            own = [ways.tree for _, ways in one.params or () if ways is not None]
            first.append(len(trees))
            trees += own
            owners += [number] * len(own)
        asked = frozenset(range(len(meanings))) - set(owners)
        return cls(tuple(meanings), tuple(trees), joint(tuple(trees)), tuple(owners), tuple(first), asked)

    def open(self, trees: Sequence[int]) -> list[tuple[Meaning, int]]:
        """Return the meanings to evaluate if these trees are open, with the numbers of their first trees."""
        numbers = {*self.asked, *(self.owners[tree] for tree in trees)}
        return [(self.meanings[number], self.first[number]) for number in sorted(numbers)]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The policies that may match a resource, with the parts of an object that their matching reads."""

    pairs: tuple[tuple[CompiledPolicy, Binding], ...]
    labels: Mapping[str, bool]  # of the object, by name: whether the value matters
    spaces: Mapping[str, bool]  # of its namespace
    by_name: bool
    by_space: bool  # the namespace's name decides which parameters count, or a selector names it

    @classmethod
    def of(
        cls,
        policies: Sequence[CompiledPolicy],
        bound: Mapping[str, Sequence[Binding]],
        resource: Resource,
        operation: str,
    ) -> Candidates:
        """Return the candidates for a resource and an operation, in the order in which they judge."""
        pairs = tuple(
            (one, binding)
            for one in policies
            if may_match_admission_request(one.policy.match, resource, operation)
            for binding in bound.get(one.policy.name, ())
        )
        rules = [rule for one, binding in pairs for rule in (one.policy.match, binding.match) if rule]
        spaces = _collect_admission_selector_labels(rule.namespaces for rule in rules)
        return cls(
            pairs,
            _collect_admission_selector_labels(rule.objects for rule in rules),
            spaces,
            any(one.names for rule in rules for one in (*rule.rules, *rule.excludes)),
            any(binding.params is not None and not binding.params.namespace for _, binding in pairs)
            or NAME_LABEL in spaces,
        )


def _collect_admission_selector_labels(selectors: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Return the labels that selectors name, sorted, each with whether its value matters."""
    found: dict[str, bool] = {}
    for selector in selectors:
        for name in selector.get("matchLabels") or {}:
            found[name] = True
        for term in selector.get("matchExpressions") or ():
            name = str(term.get("key"))
            found[name] = found.get(name, False) or term.get("operator") not in ("Exists", "DoesNotExist")
    return dict(sorted(found.items()))


@dataclass(slots=True, eq=False)
class MeaningIndex:
    """Panels by the facts that they depend on. `ask` returns the meanings of a request."""

    ask: Callable[[Candidates, AdmissionRequest], list[Meaning]]
    asked: int = 0  # how often
    _known: dict[tuple[Any, ...], Panel] = field(default_factory=dict)
    # Panels by their meanings: namespaces with the same labels share one.
    _panels: dict[tuple[Any, ...], Panel] = field(default_factory=dict)
    # Joint ways by the trees that they join; policies and panels keep those trees alive.
    _joint: dict[tuple[int, ...], SilentWays] = field(default_factory=dict)

    def of(self, candidates: Candidates, request: AdmissionRequest) -> Panel:
        """Return the panel that judges a request."""
        key = _build_admission_request_key(candidates, request)
        if key is None:
            return self._asked(candidates, request)
        if key not in self._known:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
                self._panels.clear()
                self._joint.clear()
            self._known[key] = self._asked(candidates, request)
        return self._known[key]

    def _asked(self, candidates: Candidates, request: AdmissionRequest) -> Panel:
        self.asked += 1
        meanings = self.ask(candidates, request)
        key = tuple(one.key for one in meanings)
        if key not in self._panels:
            self._panels[key] = Panel.of(meanings, self._joint_of)
        return self._panels[key]

    def _joint_of(self, trees: tuple[QuestionTree, ...]) -> SilentWays:
        return self._joint.setdefault(tuple(map(id, trees)), build_joint_ways())


def _build_admission_request_key(candidates: Candidates, request: AdmissionRequest) -> tuple[Any, ...] | None:
    """Return the facts that the meanings of a request depend on, or None if they are too many."""
    if request.operation != CREATE or request.is_namespace or candidates.by_name:
        return None
    labels = _select_labels_named_by_match_rules(candidates.labels, request.body)
    spaces = _select_labels_named_by_match_rules(candidates.spaces, request.namespace or {})
    if labels is None or spaces is None:
        return None
    name = request.namespace_name if candidates.by_space else ""
    return request.resource, request.namespace is None, name, spaces, labels


def _select_labels_named_by_match_rules(
    names: Mapping[str, bool], body: Body
) -> tuple[tuple[str, str], ...] | None:
    """Return the labels of an object that selectors name, or None if they are not valid labels."""
    labels = (body.get("metadata") or {}).get("labels") or {}
    if not isinstance(labels, dict):
        return None
    found = sorted(names.keys() & labels.keys())
    if not all(isinstance(labels[name], str) for name in found):
        return None
    return tuple((name, labels[name] if names[name] else "") for name in found)
