"""Deciding whether a policy or a binding matches a request.

Source: apiserver v0.34, pkg/admission/plugin/policy/matching and plugin/webhook/predicates.

UndecidableError reports what only a cluster can decide: labels of a namespace that is not rendered, and an
object that the server would first convert to another version.
"""

from __future__ import annotations

from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.policy.kinds import EQUIVALENT_VERSIONS, Resource
from gangplan.validate.apiserver.policy.model import MatchRules, ResourceRule
from gangplan.validate.apiserver.policy.selectors import is_empty_selector, matches_admission_policy_selector

CREATE, UPDATE = "CREATE", "UPDATE"
# Resources that no policy judges: policies themselves (policy/generic/plugin.go), and reviews that are not
# stored (kubernetes v1.34, pkg/kubeapiserver/admission/exclusion). Webhook configurations are judged.
EXEMPT = {
    "admissionregistration.k8s.io": (
        "validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies"
        " mutatingadmissionpolicybindings"
    ),
    "authentication.k8s.io": "selfsubjectreviews tokenreviews",
    "authorization.k8s.io": (
        "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews"
    ),
}
_EXEMPT = frozenset((group, plural) for group, plurals in EXEMPT.items() for plural in plurals.split())


class UndecidableError(Exception):
    """The answer depends on something that only the cluster knows; the text says on what."""


class ConversionError(UndecidableError):
    """The object would first be converted to another version."""


@dataclass(frozen=True, slots=True, eq=False)
class AdmissionRequest:
    """A request: the object (defaults applied), its resource, the operation, and the object's Namespace.

    `namespace` is None if the Namespace is not rendered or the object has none.
    """

    body: Body
    resource: Resource
    operation: str = CREATE
    old: Body | None = None
    namespace: Body | None = None

    @property
    def name(self) -> str:
        """metadata.name; empty if the server generates one."""
        return str((self.body.get("metadata") or {}).get("name") or "")

    @property
    def namespace_name(self) -> str:
        """The namespace of the request; for a Namespace, its own name."""
        if self.is_namespace:
            return self.name
        if not self.resource.namespaced:
            return ""
        return str((self.body.get("metadata") or {}).get("namespace") or "default")

    @property
    def is_namespace(self) -> bool:
        """Whether the object is a Namespace."""
        return (self.resource.group, self.resource.kind) == ("", "Namespace")


def is_exempt(resource: Resource) -> bool:
    """Return whether policies never judge the objects of a resource."""
    return (resource.group, resource.plural) in _EXEMPT


def matches_admission_request(match: MatchRules, request: AdmissionRequest) -> bool:
    """Return whether the rules match the request. Raises UndecidableError."""
    unknown = _describe_unknown_namespace(match, request)
    if unknown is None and not _matches_admission_namespace_selector(match, request):
        return False
    if not _matches_admission_object_selector(match, request):
        return False
    if _matches_any_admission_resource_rule(match.excludes, match, request):
        return False
    if match.rules and not _matches_any_admission_resource_rule(match.rules, match, request):
        return False
    if unknown is not None:
        raise UndecidableError(unknown)
    return True


def may_match_admission_request(match: MatchRules, resource: Resource, operation: str) -> bool:
    """Return whether a request for a resource can match, whatever its object; False is certain."""
    versions = {resource.version, *(EQUIVALENT_VERSIONS.get(resource.group, ()) if match.equivalent else ())}
    return not match.rules or any(
        _matches_wildcard_list(rule.operations, operation)
        and _matches_wildcard_list(rule.groups, resource.group)
        and any(_matches_wildcard_list(rule.versions, version) for version in versions)
        and any(_matches_rule_resource(name, resource.plural) for name in rule.resources)
        for rule in match.rules
    )


def _describe_unknown_namespace(match: MatchRules, request: AdmissionRequest) -> str | None:
    """Return why the namespace selector cannot be evaluated, or None."""
    if is_empty_selector(match.namespaces) or request.is_namespace or not request.resource.namespaced:
        return None
    if request.namespace is None:
        return f"the labels of namespace {request.namespace_name} are not known: gangplan does not render it"
    return None


def _matches_admission_namespace_selector(match: MatchRules, request: AdmissionRequest) -> bool:
    if not request.resource.namespaced and not request.is_namespace:
        return True  # it never excludes cluster-scoped objects
    if is_empty_selector(match.namespaces):
        return True
    owner = request.body if request.is_namespace else request.namespace or {}
    labels = dict((owner.get("metadata") or {}).get("labels") or {})
    if request.namespace_name:
        labels.setdefault("kubernetes.io/metadata.name", request.namespace_name)
    return matches_admission_policy_selector(match.namespaces, labels)


def _matches_admission_object_selector(match: MatchRules, request: AdmissionRequest) -> bool:
    if is_empty_selector(match.objects):
        return True
    bodies = [body for body in (request.body, request.old) if body]
    return any(
        matches_admission_policy_selector(match.objects, (body.get("metadata") or {}).get("labels"))
        for body in bodies
    )


def _matches_any_admission_resource_rule(
    rules: tuple[ResourceRule, ...], match: MatchRules, request: AdmissionRequest
) -> bool:
    if any(_matches_admission_resource_rule(rule, request, request.resource.version) for rule in rules):
        return True
    if not match.equivalent:
        return False
    for version in EQUIVALENT_VERSIONS.get(request.resource.group, ()):
        if version != request.resource.version and any(
            _matches_admission_resource_rule(rule, request, version) for rule in rules
        ):
            about = f"{request.resource.plural} of {request.resource.group}/{version}"
            raise ConversionError(f"the policy names {about}; only the cluster can convert this object")
    return False


def _matches_admission_resource_rule(rule: ResourceRule, request: AdmissionRequest, version: str) -> bool:
    resource = request.resource
    return (
        _matches_rule_scope(rule.scope, request)
        and _matches_wildcard_list(rule.operations, request.operation)
        and _matches_wildcard_list(rule.groups, resource.group)
        and _matches_wildcard_list(rule.versions, version)
        and any(_matches_rule_resource(name, resource.plural) for name in rule.resources)
        and (not rule.names or request.name in rule.names)
    )


def _matches_rule_scope(scope: str, request: AdmissionRequest) -> bool:
    if scope == "*":
        return True
    is_cluster = not request.resource.namespaced or request.is_namespace
    return is_cluster == (scope == "Cluster")


def _matches_wildcard_list(words: tuple[str, ...], word: str) -> bool:
    return "*" in words or word in words


def _matches_rule_resource(written: str, plural: str) -> bool:
    """Return whether `plural`, `*`, `plural/*` or `*/*` names the resource.

    An entry with a subresource never matches a create.
    """
    name, _, sub = written.partition("/")
    return name in ("*", plural) and sub in ("", "*")
