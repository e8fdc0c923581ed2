"""What rendered roles and bindings allow, as the RBAC authorizer of Kubernetes evaluates them.

Rights only add up: a request is allowed when some rule of some bound role fits its group, resource and verb.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, order=True)
class Question:
    """The question whether a group may do something.

    `resource` may end in /subresource; no namespace means the whole cluster.
    """

    group: str
    verb: str
    api_group: str
    resource: str
    namespace: str = ""


@dataclass
class Rights:
    """Roles and bindings by namespace, empty for the cluster."""

    roles: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    bindings: dict[str, list[Object]] = field(default_factory=dict)

    def allow(self, question: Question) -> bool:
        """Return whether the objects allow a request."""
        return any(fits(rule, question) for rule in self._rules(question))

    def _rules(self, question: Question) -> Iterator[Object]:
        places = {"", question.namespace}
        for binding in (one for place in places for one in self.bindings.get(place, ())):
            if any(is_group(subject, question.group) for subject in binding.get("subjects") or ()):
                role = binding["roleRef"]
                home = "" if role["kind"] == "ClusterRole" else binding["metadata"]["namespace"]
                yield from self.roles.get((home, role["name"]), ())


def rights_of(bodies: Iterable[Object]) -> Rights:
    """Collect the rights that objects grant; ignore objects that are not roles or bindings."""
    rights = Rights()
    for body in bodies:
        metadata = body["metadata"]
        namespace = metadata.get("namespace", "")
        if body["kind"] in ("Role", "ClusterRole"):
            rights.roles[namespace, metadata["name"]] = body.get("rules") or []
        elif body["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            rights.bindings.setdefault(namespace, []).append(body)
    return rights


def is_group(subject: Object, group: str) -> bool:
    """Return whether a subject is this group."""
    return (subject["kind"], subject["name"]) == ("Group", group)


def fits(rule: Object, question: Question) -> bool:
    """Return whether a rule covers a request that names no object."""
    if rule.get("resourceNames"):
        return False
    _, _, part = question.resource.partition("/")
    wanted = {"*", question.resource} | ({f"*/{part}"} if part else set())
    return (
        bool({"*", question.verb} & set(rule["verbs"]))
        and bool({"*", question.api_group} & set(rule.get("apiGroups") or ()))
        and bool(wanted & set(rule.get("resources") or ()))
    )


def granted(body: Object) -> set[tuple[str, str, str]]:
    """Return every (API group, resource, verb) of a role."""
    return {
        (group, resource, verb)
        for rule in body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
