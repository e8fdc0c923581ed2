"""RoleBindings: who of a team may do what, in the team's own namespace and nowhere else.

A binding has its role's name, because a role of a binding can never change: when a cluster becomes
gitopsOnly, the groups move to another binding instead of one binding to another role.
"""

from __future__ import annotations

import hashlib

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import DebugGrant, Tenant
from gangplan.objects import Body

WAVE = -20

# Founding requirements, C-16. Where only Git writes, everybody looks.
ROLE_OF = {
    "viewer": "mpijob-viewer",
    "data-scientist": "mpijob-editor",
    "mlops": "mpijob-mlops",
    "admin": "mpijob-admin",
}
DEBUGGER = "mpijob-debugger"


def access(tenant: Tenant) -> list[Body]:
    """One binding per role with all groups of its personas, and one per debug grant."""
    groups: dict[str, list[str]] = {}
    for member in tenant.members:
        role = "mpijob-viewer" if tenant.is_gitops_only else ROLE_OF[member.persona]
        groups.setdefault(role, []).append(member.group)
    bodies = []
    for role in sorted(groups):
        bodies += _binding(tenant, role, role, sorted(set(groups[role])))
    for grant in tenant.debuggers:
        more = {"reason": grant.reason, "until": grant.until}
        bodies += _binding(tenant, grant_name(grant), DEBUGGER, [grant.group], **more)
    return bodies


def _binding(tenant: Tenant, name: str, role: str, groups: list[str], **annotations: str) -> list[Body]:
    values = {
        "tenant": tenant,
        "name": name,
        "role": role,
        "groups": groups,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE, **annotations),
    }
    return objects_of("tenant/rolebinding.yaml.j2", values)


def grant_name(grant: DebugGrant) -> str:
    """A name per grant: a group may have several, and its own name may be none of Kubernetes."""
    digest = hashlib.sha256(f"{grant.group}\n{grant.reason}".encode()).hexdigest()[:8]
    return f"{DEBUGGER}-{grant.until}-{digest}"
