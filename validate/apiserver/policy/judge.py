"""Judging objects by a cluster's policies: which are refused, by which policy, with which message.

`PolicyEvaluator.judge` takes objects as rendered and applies the defaults itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.model import Severity
from gangplan.validate.apiserver.defaulting.apply import (
    build_admission_request_objects,
    fill_api_server_defaults,
)
from gangplan.validate.apiserver.policy.blame import find_admission_refusal_fields
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.evaluate import Decision, decide_request, may_admission_policy_apply
from gangplan.validate.apiserver.policy.kinds import ExtraKinds, Resource
from gangplan.validate.apiserver.policy.matching import (
    CREATE,
    UPDATE,
    AdmissionRequest,
    ConversionError,
    UndecidableError,
    is_exempt,
    matches_admission_request,
)
from gangplan.validate.apiserver.policy.meant import Candidates, Meaning, MeaningIndex
from gangplan.validate.apiserver.policy.model import GITOPS_USER, AdmissionPolicy, Binding, User
from gangplan.validate.apiserver.policy.params import (
    ParamError,
    ParameterObjects,
    find_admission_parameter_objects,
)
from gangplan.validate.apiserver.policy.places import PARAMS_PREFIX
from gangplan.validate.apiserver.policy.silent import (
    Hearing,
    SilentWays,
    build_silence_inputs,
    decide_admission_unless_silent,
    find_silent_policy_ways,
)
from gangplan.validate.apiserver.schema import SchemaVersions

SEVERITIES = {"Deny": Severity.ERROR, "Warn": Severity.WARNING, "Audit": Severity.NOTE}


@dataclass(frozen=True, slots=True, eq=False)
class Violation:
    """One refusal of one object.

    `validation` counts from 0; -1 if none was reached. `paths` are the fields of the object that the failing
    part of the expression read, the most likely cause first; `params` are those of the parameters (for a
    ConfigMap they begin with `data`). With `is_undecided`, nothing was refused, but only the cluster can
    decide.
    """

    index: int
    policy: AdmissionPolicy
    binding: Binding
    severity: Severity
    message: str
    validation: int = -1
    reason: str = "Invalid"
    paths: tuple[FieldPath, ...] = ()
    params: tuple[FieldPath, ...] = ()
    is_undecided: bool = False
    is_error: bool = False


@dataclass(slots=True, eq=False)
class PolicyEvaluator:
    """Everything that a cluster judges by.

    `params` and `namespaces` are objects with defaults applied. With `remembers`, earlier answers are reused
    where they apply (meant.py, silent.py); the result is the same without.
    """

    versions: SchemaVersions
    policies: Sequence[CompiledPolicy]
    bindings: Sequence[Binding]
    params: Sequence[Body] = ()
    namespaces: Mapping[str, Body] = field(default_factory=dict)
    kinds: ExtraKinds = field(default_factory=ExtraKinds)
    user: User = GITOPS_USER
    remembers: bool = True
    names: frozenset[str] = field(init=False)  # of the policies
    _known: ParameterObjects = field(init=False)
    _bound: dict[str, list[Binding]] = field(default_factory=dict, init=False)
    _candidates: dict[tuple[Resource, str], Candidates] = field(default_factory=dict, init=False)
    _silent: dict[tuple[Any, ...], SilentWays | None] = field(default_factory=dict, init=False)
    _index: MeaningIndex = field(init=False)

    def __post_init__(self) -> None:
        self.names = frozenset(one.policy.name for one in self.policies)
        self._known = ParameterObjects(self.params)
        self._index = MeaningIndex(self._meanings)
        for binding in self.bindings:
            self._bound.setdefault(binding.policy, []).append(binding)

    def judge(
        self,
        bodies: Sequence[Body],
        before: Sequence[Body | None] = (),
        more: Mapping[str, Body] | None = None,
    ) -> list[Violation]:
        """Return the violations of objects in their order.

        `before` are the objects that they replace, which makes the request an update. `more` are namespaces
        in addition to those of the evaluator. Objects must fit their schemas.
        """
        found: list[Violation] = []
        for index, body in enumerate(bodies):
            old = before[index] if index < len(before) else None
            request = self._request(body, old, more or {})
            if not is_exempt(request.resource):
                found += self._of(index, request)
        return found

    def matched(self, body: Body, old: Body | None = None) -> set[str]:
        """Return the names of the policies that match an object by their rules and bindings.

        Raises UndecidableError.
        """
        request = self._request(body, old, {})
        return {
            compiled.policy.name
            for compiled in self.policies
            for binding in self._bindings(compiled.policy)
            if not is_exempt(request.resource)
            and _applies_to_admission_request(compiled.policy, binding, request)
        }

    def _request(self, body: Body, old: Body | None, more: Mapping[str, Body]) -> AdmissionRequest:
        resource = self.kinds.find(str(body.get("apiVersion") or ""), str(body.get("kind") or ""))
        own = str((body.get("metadata") or {}).get("namespace") or "default")
        namespace = (more.get(own) or self.namespaces.get(own)) if resource.namespaced else None
        filled, earlier = build_admission_request_objects(body, old, self.versions)
        return AdmissionRequest(filled, resource, UPDATE if old is not None else CREATE, earlier, namespace)

    def _bindings(self, policy: AdmissionPolicy) -> Sequence[Binding]:
        return self._bound.get(policy.name, ())

    def _about(self, request: AdmissionRequest) -> Candidates:
        """Return the policies that may match a request, judging by its resource and operation."""
        key = request.resource, request.operation
        if key not in self._candidates:
            self._candidates[key] = Candidates.of(self.policies, self._bound, *key)
        return self._candidates[key]

    def _meanings(self, candidates: Candidates, request: AdmissionRequest) -> list[Meaning]:
        """Return the policies that match a request."""
        found: list[Meaning] = []
        for compiled, binding in candidates.pairs:
            try:
                if _applies_to_admission_request(compiled.policy, binding, request):
                    params = find_admission_parameter_objects(
                        compiled.policy, binding, request, self._known, self.kinds
                    )
                    pairs = tuple((one, self._ways(compiled, one, request)) for one in params)
                    found.append(Meaning(compiled, binding, pairs))
            except (UndecidableError, ParamError):
                found.append(Meaning(compiled, binding, None))
        return found

    def _ways(
        self, compiled: CompiledPolicy, params: Body | None, request: AdmissionRequest
    ) -> SilentWays | None:
        # Parameters are objects of this evaluator, so their identities stay valid.
        key = id(compiled), id(params), request.resource, request.operation, request.namespace is None
        if key not in self._silent:
            self._silent[key] = find_silent_policy_ways(compiled, params, request, self.user)
        return self._silent[key]

    def _of(self, index: int, request: AdmissionRequest) -> Iterator[Violation]:
        candidates = self._about(request)
        if not candidates.pairs:
            return
        if not self.remembers:
            yield from self._plainly(index, candidates, request)
            return
        given = build_silence_inputs(request, self.user)
        panel = self._index.of(candidates, request)
        hearing = Hearing(panel.joint, panel.trees, given)
        for one, first in panel.open(hearing.open):
            try:
                if one.params is None:
                    if _applies_to_admission_request(one.compiled.policy, one.binding, request):
                        yield from self._decided(index, one.compiled, one.binding, request)
                    continue
                for number, (param, ways) in enumerate(one.params, first):
                    known = ways, hearing.end(number) if ways else None, hearing.is_recheck
                    for decision in decide_admission_unless_silent(
                        known, one.compiled, request, param, self.user, given
                    ):
                        yield _build_admission_policy_violation(index, one.compiled, one.binding, decision)
            except UndecidableError as unknown:
                if self._may_apply(one.compiled, one.binding, request, unknown):
                    yield _build_undecided_violation(index, one.compiled.policy, one.binding, unknown)
        hearing.join()

    def _plainly(self, index: int, candidates: Candidates, request: AdmissionRequest) -> Iterator[Violation]:
        """Yield the violations of every policy, each evaluated."""
        for compiled, binding in candidates.pairs:
            try:
                if _applies_to_admission_request(compiled.policy, binding, request):
                    yield from self._decided(index, compiled, binding, request)
            except UndecidableError as unknown:
                if self._may_apply(compiled, binding, request, unknown):
                    yield _build_undecided_violation(index, compiled.policy, binding, unknown)

    def _may_apply(
        self, compiled: CompiledPolicy, binding: Binding, request: AdmissionRequest, unknown: UndecidableError
    ) -> bool:
        """Return whether the policy may still refuse: its match conditions may not need the namespace."""
        if isinstance(unknown, ConversionError):
            return True  # they see the converted object
        try:
            params = find_admission_parameter_objects(
                compiled.policy, binding, request, self._known, self.kinds
            )
        except ParamError:
            return compiled.policy.fails_closed
        return any(may_admission_policy_apply(compiled, request, param, self.user) for param in params)

    def _decided(
        self, index: int, compiled: CompiledPolicy, binding: Binding, request: AdmissionRequest
    ) -> Iterator[Violation]:
        policy = compiled.policy
        try:
            params = find_admission_parameter_objects(policy, binding, request, self._known, self.kinds)
        except ParamError as missing:
            if policy.fails_closed:
                said = f"failed to configure binding: {missing}"
                yield Violation(index, policy, binding, Severity.ERROR, said, is_error=True)
            return
        for param in params:
            for decision in decide_request(compiled, request, param, self.user):
                yield _build_admission_policy_violation(index, compiled, binding, decision)


def _applies_to_admission_request(
    policy: AdmissionPolicy, binding: Binding, request: AdmissionRequest
) -> bool:
    """Return whether policy and binding both match a request.

    Raises UndecidableError if that is unknown and neither excludes it for certain.
    """
    unknown: list[UndecidableError] = []
    for match in (policy.match, binding.match):
        try:
            if match is not None and not matches_admission_request(match, request):
                return False
        except UndecidableError as found:
            unknown.append(found)
    if unknown:
        raise next((one for one in unknown if isinstance(one, ConversionError)), unknown[0])
    return True


def _build_undecided_violation(
    index: int, policy: AdmissionPolicy, binding: Binding, unknown: UndecidableError
) -> Violation:
    message = f"policy '{policy.name}' cannot be judged without the cluster: {unknown}"
    return Violation(index, policy, binding, Severity.WARNING, message, is_undecided=True)


def _build_admission_policy_violation(
    index: int, compiled: CompiledPolicy, binding: Binding, decision: Decision
) -> Violation:
    number = compiled.checks.index(decision.check) if decision.check else -1
    looked = find_admission_refusal_fields(decision)
    return Violation(
        index,
        compiled.policy,
        binding,
        Severity.ERROR
        if decision.is_outright
        else max((SEVERITIES[action] for action in binding.actions), default=Severity.NOTE),
        decision.message,
        number,
        decision.reason,
        tuple(path for path in looked if path[0] != PARAMS_PREFIX),
        tuple(path[1:] for path in looked if path[0] == PARAMS_PREFIX),
        is_error=decision.is_error,
    )


class Namespaces(Mapping[str, Body]):
    """The Namespaces among objects by name, as the server holds them; defaults are applied on first use."""

    def __init__(self, bodies: Iterable[Body], versions: SchemaVersions) -> None:
        self._versions = versions
        self._plain = {
            str(body["metadata"]["name"]): body
            for body in bodies
            if (body.get("apiVersion"), body.get("kind")) == ("v1", "Namespace")
        }
        self._filled: dict[str, Body] = {}

    def __getitem__(self, name: str) -> Body:
        if name not in self._filled:
            self._filled[name] = fill_api_server_defaults(self._plain[name], self._versions)
        return self._filled[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)
