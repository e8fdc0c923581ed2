"""A policy's expressions compiled as the API server compiles them, and the mistakes that it would refuse.

In new policies, a server accepts only what the minor before it also has (apiserver v0.34,
pkg/cel/environment). The variables that an expression may use depend on its place: match conditions cannot
use `variables`, messages cannot use the authorizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from gangplan.cel import types
from gangplan.cel.admission import declare_cel_policy_variables, find_expressions_minor, resolve_composed_type
from gangplan.cel.declarations import LAST_MINOR
from gangplan.cel.environment import Environment
from gangplan.cel.errors import CompileError
from gangplan.cel.kept import KeptPrograms
from gangplan.cel.program import CelProgram
from gangplan.cel.types import Type
from gangplan.findings import FieldPath, Location
from gangplan.records import dataclass
from gangplan.rules.model import Rule
from gangplan.rules.policy import POLICY_EXPRESSION, POLICY_VERSION
from gangplan.validate.apiserver.policy.model import AdmissionPolicy, Validation


@dataclass(frozen=True, slots=True)
class RefusedExpression:
    """Why the API server would refuse an expression: its place in the policy, and the message."""

    path: FieldPath
    where: Location
    message: str
    rule: Rule = POLICY_EXPRESSION
    help: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledValidation:
    """A validation with its programs; `message` is None without a messageExpression."""

    validation: Validation
    program: CelProgram
    message: CelProgram | None


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The programs of a policy. None of them may be used if there are refusals."""

    conditions: tuple[tuple[str, CelProgram], ...] = ()
    variables: Mapping[str, CelProgram] = field(default_factory=dict)
    checks: tuple[CompiledValidation, ...] = ()
    annotations: tuple[CelProgram, ...] = ()


@dataclass(slots=True, eq=False)
class CompiledPolicy:
    """A policy with its programs, which are compiled on first use."""

    policy: AdmissionPolicy
    minor: int
    _parts: tuple[Parts, list[RefusedExpression]] | None = None
    _first: tuple[tuple[str, CelProgram], ...] | None = None
    # Conditions under which the policy is silent (silent.py), by what they hold for.
    silent: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @property
    def conditions(self) -> tuple[tuple[str, CelProgram], ...]:
        """The match conditions by name, in order. If one is false, nothing else is compiled."""
        if self._parts is not None:
            return self._parts[0].conditions
        if self._first is None:
            compiler = _Compiler(self.policy, self.minor)
            self._first = tuple(_compile_match_conditions(compiler))
            compiler.save()
        return self._first

    @property
    def variables(self) -> Mapping[str, CelProgram]:
        """The variables by name, in order."""
        return self._made()[0].variables

    @property
    def checks(self) -> tuple[CompiledValidation, ...]:
        """The validations in order."""
        return self._made()[0].checks

    @property
    def annotations(self) -> tuple[CelProgram, ...]:
        """The values of the audit annotations in order."""
        return self._made()[0].annotations

    @property
    def refused(self) -> list[RefusedExpression]:
        """What a server would refuse; empty for a valid policy."""
        return self._made()[1]

    def _made(self) -> tuple[Parts, list[RefusedExpression]]:
        if self._parts is None:
            self._parts = _compile_admission_policy_parts(self.policy, self.minor)
        return self._parts


@dataclass(slots=True)
class _Compiler:
    policy: AdmissionPolicy
    minor: int
    composed: dict[str, Type] = field(default_factory=dict)
    refused: list[RefusedExpression] = field(default_factory=list)
    kept: KeptPrograms | None = None

    def save(self) -> None:
        """Cache what was compiled of policies that come with gangplan."""
        if self.kept is not None:
            self.kept.save()

    def program(
        self,
        text: str,
        path: FieldPath,
        wanted: tuple[Type, ...],
        *,
        authorizer: bool = True,
        plain: bool = False,
    ) -> CelProgram | None:
        """Return the program of one expression, or record a refusal and return None.

        An empty `wanted` accepts any type.
        """
        names = declare_cel_policy_variables(
            has_params=self.policy.param_kind is not None, has_authorizer=authorizer, composed=self.composed
        )
        if plain or not self.policy.variables:
            del names["variables"]
        minor = find_expressions_minor(self.minor)
        # Policies of a pack share variables; their types decide the rest.
        key = minor, text, tuple(names), tuple(self.composed.items())
        try:
            program = _PROGRAMS.get(key)
            if program is None:
                program = _PROGRAMS[key] = self._compiled(text, minor, names)
        except CompileError as wrong:
            since = _find_first_minor_for_admission_expression(text, names, minor)
            for issue in wrong.issues:
                where = self.policy.written.inside(path, issue.offset)
                self.refused.append(
                    _build_refused_admission_expression(path, where, issue.message, since, self.minor)
                )
                if since is not None:
                    break
            return None
        if wanted and program.type not in wanted:
            self._mistyped(path, program.type, wanted)
            return None
        return program

    def _compiled(self, text: str, minor: int, names: Mapping[str, Type]) -> CelProgram:
        """Return a program, cached by earlier commands if the policy comes with gangplan.

        Raises CompileError.
        """
        environment = Environment(minor=minor, variables=names)
        if not self.policy.written.is_shipped:
            return environment.compile(text)
        if self.kept is None:
            self.kept = KeptPrograms(self.policy.name)
        return self.kept.compile(environment, text, self.composed)

    def _mistyped(self, path: FieldPath, found: Type, wanted: tuple[Type, ...]) -> None:
        names = " or ".join(map(str, wanted))
        help = ""
        if found == types.DYN and wanted == (types.BOOL,):
            help = "Its type is known only at run time: compare it, such as with == true."
        message = f"the expression is a {found}; it must be a {names}"
        self.refused.append(RefusedExpression(path, self.policy.written.inside(path, 0), message, help=help))


_PROGRAMS: dict[tuple[int, str, tuple[str, ...], tuple[tuple[str, Type], ...]], CelProgram] = {}
# Compiled policies by the document they came from: clusters of one minor share them.
_KNOWN: dict[tuple[int, int, bool], tuple[object, CompiledPolicy]] = {}


def compile_admission_policy(policy: AdmissionPolicy, minor: int) -> CompiledPolicy:
    """Return a policy for a server of Kubernetes 1.`minor`."""
    document: object = policy.written.document
    if document is None and not policy.written.is_shipped:
        return CompiledPolicy(policy, minor)
    document = policy.written.body if document is None else document
    # `is_shipped` is in the key because it decides whether costs count: policy cases count them, `validate`
    # does not.
    key = id(document), minor, policy.written.is_shipped
    if key not in _KNOWN:
        _KNOWN[key] = (document, CompiledPolicy(policy, minor))
    return _KNOWN[key][1]


def _compile_admission_policy_parts(
    policy: AdmissionPolicy, minor: int
) -> tuple[Parts, list[RefusedExpression]]:
    compiler = _Compiler(policy, minor)
    conditions = tuple(_compile_match_conditions(compiler))
    programs: dict[str, CelProgram] = {}
    for one in policy.variables:
        program = compiler.program(one.text, one.path, ())
        compiler.composed[one.name] = resolve_composed_type(program.type) if program else types.DYN
        if program is not None:
            programs[one.name] = program
    checks = list(_compile_admission_policy_validations(policy, compiler))
    values = [
        compiler.program(one.text.strip(), one.path, (types.STRING, types.NULL)) for one in policy.annotations
    ]
    compiler.save()
    annotations = tuple(one for one in values if one is not None)
    return Parts(conditions, programs, tuple(checks), annotations), compiler.refused


def _compile_match_conditions(compiler: _Compiler) -> Iterator[tuple[str, CelProgram]]:
    for one in compiler.policy.conditions:
        program = compiler.program(one.text, one.path, (types.BOOL,), plain=True)
        if program is not None:
            yield one.name, program


def _compile_admission_policy_validations(
    policy: AdmissionPolicy, compiler: _Compiler
) -> Iterator[CompiledValidation]:
    for one in policy.validations:
        program = compiler.program(one.text, (*one.path, "expression"), (types.BOOL,))
        message = None
        if one.message_expression.strip():
            path = (*one.path, "messageExpression")
            message = compiler.program(one.message_expression, path, (types.STRING,), authorizer=False)
        if program is not None:
            yield CompiledValidation(one, program, message)


def _find_first_minor_for_admission_expression(
    text: str, names: Mapping[str, Type], minor: int
) -> int | None:
    """Return the first later minor whose functions make an expression compile, or None."""
    for later in range(minor + 1, LAST_MINOR + 1):
        try:
            Environment(minor=later, variables=names).check(text)
        except CompileError:
            continue
        return later
    return None


def _build_refused_admission_expression(
    path: FieldPath, where: Location, message: str, since: int | None, minor: int
) -> RefusedExpression:
    if since is None:
        return RefusedExpression(path, where, message)
    first = since + 1  # new policies may use what the minor before the server's has
    said = f"the expression needs Kubernetes 1.{first} or later, the cluster has 1.{minor}: {message}"
    help = f"Write it without functions that are newer than 1.{find_expressions_minor(minor)}."
    return RefusedExpression(path, where, said, POLICY_VERSION, help)
