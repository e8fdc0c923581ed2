"""Policies, bindings and their parameters as typed values; every part knows its place in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from gangplan.findings import FieldPath, Location
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.source import Document


@dataclass(frozen=True, slots=True, eq=False)
class PlacedObject:
    """An object and its place: a document of a file, or a whole file if a program made the object."""

    body: Body
    document: Document | None = None
    file: str = ""
    is_shipped: bool = False  # comes with gangplan, unchanged

    def where(self, path: FieldPath = (), key: bool = False) -> Location:
        """Return the place of a value of the object, or of its nearest ancestor if it is absent."""
        return self.document.where(path, key) if self.document else Location(self.file)

    def inside(self, path: FieldPath, offset: int) -> Location:
        """Return the place of a character in a text of the object."""
        return self.document.inside(path, offset) if self.document else Location(self.file)


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """One of resourceRules or excludeResourceRules."""

    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    names: tuple[str, ...] = ()
    scope: str = "*"


@dataclass(frozen=True, slots=True)
class MatchRules:
    """The requests that a policy or binding matches. Empty selectors match everything."""

    rules: tuple[ResourceRule, ...] = ()
    excludes: tuple[ResourceRule, ...] = ()
    namespaces: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    equivalent: bool = True


@dataclass(frozen=True, slots=True)
class Expression:
    """A named expression and its path in the policy: a variable, a match condition, an annotation."""

    name: str
    text: str
    path: FieldPath


@dataclass(frozen=True, slots=True)
class Validation:
    """One of `validations`. `message` and `message_expression` are empty if they are not set."""

    text: str
    path: FieldPath
    message: str = ""
    message_expression: str = ""
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True, eq=False)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy with the defaults that the API server fills in."""

    name: str
    written: PlacedObject
    match: MatchRules
    fails_closed: bool = True
    param_kind: tuple[str, str] | None = None  # apiVersion, kind
    conditions: tuple[Expression, ...] = ()
    variables: tuple[Expression, ...] = ()
    validations: tuple[Validation, ...] = ()
    annotations: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The parameters of a binding, by name or by labels; an empty namespace means the object's own."""

    name: str = ""
    namespace: str = ""
    selector: Mapping[str, Any] | None = None
    denies_when_missing: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A ValidatingAdmissionPolicyBinding."""

    name: str
    policy: str
    written: PlacedObject
    actions: tuple[str, ...]
    params: ParamRef | None = None
    match: MatchRules | None = None


@dataclass(frozen=True, slots=True)
class User:
    """The user who sends the request (`request.userInfo`)."""

    username: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# The service account of Argo CD's application controller in its usual namespace (argo-cd manifests v3.5).
GITOPS_USER = User(
    "system:serviceaccount:argocd:argocd-application-controller",
    ("system:serviceaccounts", "system:serviceaccounts:argocd", "system:authenticated"),
)


def admission_match_rules_of(body: Mapping[str, Any] | None) -> MatchRules:
    """Return the match rules in `matchConstraints` or `matchResources` of an object that fits its schema."""
    body = body or {}
    return MatchRules(
        tuple(map(_parse_admission_resource_rule, body.get("resourceRules") or ())),
        tuple(map(_parse_admission_resource_rule, body.get("excludeResourceRules") or ())),
        body.get("namespaceSelector") or {},
        body.get("objectSelector") or {},
        body.get("matchPolicy", "Equivalent") == "Equivalent",
    )


def _parse_admission_resource_rule(body: Mapping[str, Any]) -> ResourceRule:
    return ResourceRule(
        tuple(body.get("apiGroups") or ()),
        tuple(body.get("apiVersions") or ()),
        tuple(body.get("resources") or ()),
        tuple(body.get("operations") or ()),
        tuple(body.get("resourceNames") or ()),
        body.get("scope") or "*",
    )


def admission_policy_of(written: PlacedObject) -> AdmissionPolicy:
    """Return the policy in an object that fits its schema."""
    spec = written.body["spec"]
    kind = spec.get("paramKind")
    return AdmissionPolicy(
        written.body["metadata"]["name"],
        written,
        admission_match_rules_of(spec.get("matchConstraints")),
        spec.get("failurePolicy", "Fail") == "Fail",
        (kind["apiVersion"], kind["kind"]) if kind else None,
        _parse_admission_policy_expressions(spec, "matchConditions"),
        _parse_admission_policy_expressions(spec, "variables"),
        tuple(
            Validation(
                one["expression"],
                ("spec", "validations", index),
                one.get("message") or "",
                one.get("messageExpression") or "",
                one.get("reason") or "Invalid",
            )
            for index, one in enumerate(spec.get("validations") or ())
        ),
        _parse_admission_policy_expressions(spec, "auditAnnotations", "key", "valueExpression"),
    )


def _parse_admission_policy_expressions(
    spec: Mapping[str, Any], field: str, name: str = "name", text: str = "expression"
) -> tuple[Expression, ...]:
    return tuple(
        Expression(one[name], one[text], ("spec", field, index, text))
        for index, one in enumerate(spec.get(field) or ())
    )


def admission_policy_binding_of(written: PlacedObject) -> Binding:
    """Return the binding in an object that fits its schema."""
    spec = written.body["spec"]
    ref = spec.get("paramRef")
    params = None
    if ref is not None:
        params = ParamRef(
            ref.get("name") or "",
            ref.get("namespace") or "",
            ref.get("selector"),
            ref.get("parameterNotFoundAction") == "Deny",
        )
    match = admission_match_rules_of(spec["matchResources"]) if spec.get("matchResources") else None
    return Binding(
        written.body["metadata"]["name"],
        spec["policyName"],
        written,
        tuple(spec.get("validationActions") or ()),
        params,
        match,
    )
