"""The policies of a cluster against objects: who is refused, by which policy, in which words.

`PolicyEvaluator.judge` answers for objects as they are rendered; defaults are applied here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gangplan.rules.model import Severity
from gangplan.validate.apiserver.defaulting.apply import with_defaults
from gangplan.validate.apiserver.policy.blame import blamed
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.evaluate import Decision, decide, may_apply
from gangplan.validate.apiserver.policy.kinds import Kinds, Resource
from gangplan.validate.apiserver.policy.matching import (
    CREATE,
    UPDATE,
    AdmissionRequest,
    ConversionError,
    UndecidableError,
    is_exempt,
    matches,
    may_match,
)
from gangplan.validate.apiserver.policy.model import GITOPS_USER, AdmissionPolicy, Binding, Body, Path, User
from gangplan.validate.apiserver.policy.params import Known, ParamError, params_of
from gangplan.validate.apiserver.policy.places import PARAMS
from gangplan.validate.apiserver.schema import SchemaVersions

SEVERITIES = {"Deny": Severity.ERROR, "Warn": Severity.WARNING, "Audit": Severity.NOTE}


@dataclass(frozen=True, slots=True, eq=False)
class Violation:
    """One refusal of one object. `validation` counts from 0; -1 where none was reached.

    `paths` are the fields of the object that the failing part of the expression looked at, the one most to
    blame first, `params` those of the parameters (for a ConfigMap they begin with `data`). `is_undecided`:
    nothing was refused, but only the cluster can tell.
    """

    index: int
    policy: AdmissionPolicy
    binding: Binding
    severity: Severity
    message: str
    validation: int = -1
    reason: str = "Invalid"
    paths: tuple[Path, ...] = ()
    params: tuple[Path, ...] = ()
    is_undecided: bool = False
    is_error: bool = False


@dataclass(slots=True, eq=False)
class PolicyEvaluator:
    """Everything that a cluster judges by. `params` and `namespaces` are objects with defaults applied."""

    versions: SchemaVersions
    policies: Sequence[CompiledPolicy]
    bindings: Sequence[Binding]
    params: Sequence[Body] = ()
    namespaces: Mapping[str, Body] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=Kinds)
    user: User = GITOPS_USER
    _known: Known = field(init=False)
    _bound: dict[str, list[Binding]] = field(default_factory=dict, init=False)
    _candidates: dict[tuple[Resource, str], list[CompiledPolicy]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._known = Known(self.params)
        for binding in self.bindings:
            self._bound.setdefault(binding.policy, []).append(binding)

    def judge(
        self,
        bodies: Sequence[Body],
        before: Sequence[Body | None] = (),
        more: Mapping[str, Body] | None = None,
    ) -> list[Violation]:
        """The violations of objects in their order. `before`: what each replaces; then it is an update.

        `more` are namespaces beside those of the evaluator. Objects must fit their schemas.
        """
        names = {**self.namespaces, **(more or {})}
        found: list[Violation] = []
        for index, body in enumerate(bodies):
            old = before[index] if index < len(before) else None
            request = self._request(body, old, names)
            if not is_exempt(request.resource):
                found += self._of(index, request)
        return found

    def matched(self, body: Body, old: Body | None = None) -> set[str]:
        """The names of the policies whose rules and bindings are about an object. Raises UndecidableError."""
        request = self._request(body, old, self.namespaces)
        return {
            compiled.policy.name
            for compiled in self.policies
            for binding in self._bindings(compiled.policy)
            if not is_exempt(request.resource) and _is_about(compiled.policy, binding, request)
        }

    def _request(self, body: Body, old: Body | None, names: Mapping[str, Body]) -> AdmissionRequest:
        resource = self.kinds.find(str(body.get("apiVersion") or ""), str(body.get("kind") or ""))
        own = str((body.get("metadata") or {}).get("namespace") or "default")
        namespace = names.get(own) if resource.namespaced else None
        filled = with_defaults(body, self.versions)
        earlier = with_defaults(old, self.versions) if old is not None else None
        return AdmissionRequest(filled, resource, UPDATE if old is not None else CREATE, earlier, namespace)

    def _bindings(self, policy: AdmissionPolicy) -> Sequence[Binding]:
        return self._bound.get(policy.name, ())

    def _about(self, request: AdmissionRequest) -> list[CompiledPolicy]:
        """The policies that may be about a request, as far as its resource tells."""
        key = request.resource, request.operation
        if key not in self._candidates:
            self._candidates[key] = [one for one in self.policies if may_match(one.policy.match, *key)]
        return self._candidates[key]

    def _of(self, index: int, request: AdmissionRequest) -> Iterator[Violation]:
        for compiled in self._about(request):
            for binding in self._bindings(compiled.policy):
                try:
                    if _is_about(compiled.policy, binding, request):
                        yield from self._decided(index, compiled, binding, request)
                except UndecidableError as unknown:
                    if self._may_apply(compiled, binding, request, unknown):
                        yield _undecided(index, compiled.policy, binding, unknown)

    def _may_apply(
        self, compiled: CompiledPolicy, binding: Binding, request: AdmissionRequest, unknown: UndecidableError
    ) -> bool:
        """Whether the policy could still say something: its match conditions need not know the namespace."""
        if isinstance(unknown, ConversionError):
            return True  # they see the converted object
        try:
            params = params_of(compiled.policy, binding, request, self._known, self.kinds)
        except ParamError:
            return compiled.policy.fails_closed
        return any(may_apply(compiled, request, param, self.user) for param in params)

    def _decided(
        self, index: int, compiled: CompiledPolicy, binding: Binding, request: AdmissionRequest
    ) -> Iterator[Violation]:
        policy = compiled.policy
        try:
            params = params_of(policy, binding, request, self._known, self.kinds)
        except ParamError as missing:
            if policy.fails_closed:
                said = f"failed to configure binding: {missing}"
                yield Violation(index, policy, binding, Severity.ERROR, said, is_error=True)
            return
        severity = max((SEVERITIES[action] for action in binding.actions), default=Severity.NOTE)
        for param in params:
            for decision in decide(compiled, request, param, self.user):
                yield _violation(index, compiled, binding, severity, decision)


def _is_about(policy: AdmissionPolicy, binding: Binding, request: AdmissionRequest) -> bool:
    """Whether policy and binding both mean a request. UndecidableError: neither plainly says no."""
    unknown: list[UndecidableError] = []
    for match in (policy.match, binding.match):
        try:
            if match is not None and not matches(match, request):
                return False
        except UndecidableError as found:
            unknown.append(found)
    if unknown:
        raise next((one for one in unknown if isinstance(one, ConversionError)), unknown[0])
    return True


def _undecided(index: int, policy: AdmissionPolicy, binding: Binding, unknown: UndecidableError) -> Violation:
    message = f"policy '{policy.name}' cannot be judged without the cluster: {unknown}"
    return Violation(index, policy, binding, Severity.WARNING, message, is_undecided=True)


def _violation(
    index: int, compiled: CompiledPolicy, binding: Binding, severity: Severity, decision: Decision
) -> Violation:
    number = compiled.checks.index(decision.check) if decision.check else -1
    looked = blamed(decision)
    return Violation(
        index,
        compiled.policy,
        binding,
        severity,
        decision.message,
        number,
        decision.reason,
        tuple(path for path in looked if path[0] != PARAMS),
        tuple(path[1:] for path in looked if path[0] == PARAMS),
        is_error=decision.is_error,
    )


def namespaces_of(bodies: Iterable[Body], versions: SchemaVersions) -> dict[str, Body]:
    """The Namespaces among objects by name, as the server holds them."""
    return {
        str(body["metadata"]["name"]): with_defaults(body, versions)
        for body in bodies
        if (body.get("apiVersion"), body.get("kind")) == ("v1", "Namespace")
    }
