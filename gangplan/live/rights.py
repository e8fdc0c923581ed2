"""Rights in a cluster: the one that a request needs, and the role with all that a command needs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gangplan.records import dataclass

_VERBS = {"GET": "get", "PATCH": "patch"}


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource of an API group, in a namespace or (without one) in the whole cluster."""

    group: str
    resource: str
    verb: str
    namespace: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name} {f'in namespace {self.namespace}' if self.namespace else 'cluster-wide'}"


def find_right_for_api_request(method: str, path: str, verb: str = "") -> Right:
    """Return the right that a request needs, by its path (`/api/v1/...`, `/apis/GROUP/VERSION/...`).

    `verb` is the server's own: applying an object that does not exist needs `create` in addition to `patch`.
    """
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = "/".join([rest[0], *rest[2:]]) if rest else path
    usual = "list" if method == "GET" and len(rest) == 1 else _VERBS.get(method, method.lower())
    return Right(group, resource, verb or usual, namespace)


def build_kubectl_role(rights: Sequence[Right], name: str) -> str:
    """Return a Role, or a ClusterRole if a right is cluster-wide, on one line for `kubectl apply -f -`."""
    wide = any(not one.namespace for one in rights)
    verbs: dict[tuple[str, str], set[str]] = {}
    for one in rights:
        verbs.setdefault((one.group, one.resource), set()).add(one.verb)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": sorted(found)}
        for (group, resource), found in sorted(verbs.items())
    ]
    place = {} if wide else {"namespace": rights[0].namespace}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole" if wide else "Role",
        "metadata": {"name": name, **place},
        "rules": rules,
    }
    return json.dumps(body, separators=(",", ":"))


def explain_missing_cluster_right(
    missing: Right, needs: Sequence[Right], context: str, purpose: str
) -> tuple[str, str]:
    """Return message and help for a missing right."""
    wanted = dict.fromkeys([missing, *needs])
    if missing.namespace:  # all rights are needed in that namespace
        wanted = dict.fromkeys(
            Right(one.group, one.resource, one.verb, one.namespace or missing.namespace) for one in wanted
        )
    message = f"you may not {missing} on context '{context}'"
    made = f"echo '{build_kubectl_role(list(wanted), f'gangplan-{purpose}')}' | kubectl apply -f -"
    return message, f"Ask for a role, and to be bound to it: {made} creates it."
