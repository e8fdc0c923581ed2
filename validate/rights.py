"""What a patch must not weaken: least privilege of roles, and the isolation of namespaces.

The generator observes both; a cluster's overlay is written by hand and reviewed by people.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.objects import Body
from gangplan.rules.platform import MONITORING_MOVED
from gangplan.rules.security import RIGHTS_TOO_WIDE
from gangplan.validate.apiserver.forms import FoundProblems
from gangplan.validate.kueue.queues import QueueIndex
from gangplan.validate.problems import Problem

# OpenShift's cluster-monitoring-operator: its platform Prometheus scrapes namespaces with this label, the one
# for user workloads all others.
PLATFORM_MONITORING = "openshift.io/cluster-monitoring"
ESCALATING = frozenset({"bind", "escalate", "impersonate"})
# Groups of all users, or of all who are authenticated (Kubernetes: pkg/apiserver user.go).
EVERYBODY = frozenset(
    {"system:authenticated", "system:unauthenticated", "system:masters", "system:serviceaccounts"}
)
# Roles that OpenShift defines and training needs: MPI runs as the image's own user.
FOREIGN_ROLES = frozenset({"system:openshift:scc:nonroot-v2"})


# Pod Security levels, the strictest first (k8s.io/pod-security-admission, api/constants.go).
LEVELS = ("restricted", "baseline", "privileged")


def check_wide_rights(body: Body, index: QueueIndex, levels: Mapping[str, str]) -> list[Problem]:
    """Return what is too wide in a role, a binding, a namespace or a service account.

    `levels` are the Pod Security levels of namespaces that the cluster's file states.
    """
    kind = body["kind"]
    if kind in ("ClusterRole", "Role"):
        return list(_check_wide_rights_of_role(body))
    if kind == "RoleBinding":
        return list(_check_wide_rights_of_role_binding(body, index))
    if kind == "Namespace":
        return list(_check_namespace_labels(body, levels.get(body["metadata"]["name"], LEVELS[0])))
    if kind == "ServiceAccount" and body.get("automountServiceAccountToken") is not False:
        said = "training pods would carry a token for the API server"
        return [Problem(("automountServiceAccountToken",), said, "Keep it false.", RIGHTS_TOO_WIDE)]
    return []


def _check_wide_rights_of_role(body: Body) -> FoundProblems:
    for place, rule in enumerate(body.get("rules") or ()):
        for field in ("apiGroups", "resources", "verbs"):
            if "*" in (rule.get(field) or ()):
                yield _report_wide_rights(
                    ("rules", place, field), "a wildcard grants rights that no one has reviewed"
                )
        for verb in sorted(ESCALATING & set(rule.get("verbs") or ())):
            yield _report_wide_rights(
                ("rules", place, "verbs"), f"verb '{verb}' lets its holders grant themselves more rights"
            )
        if "secrets" in (rule.get("resources") or ()) and "" in (rule.get("apiGroups") or ()):
            yield _report_wide_rights(
                ("rules", place, "resources"), "secrets are read by pods, not by people"
            )


def _check_wide_rights_of_role_binding(body: Body, index: QueueIndex) -> FoundProblems:
    role = body["roleRef"]
    if role["kind"] == "ClusterRole" and role["name"] not in {*index.names("ClusterRole"), *FOREIGN_ROLES}:
        yield _report_wide_rights(
            ("roleRef", "name"), f"ClusterRole '{role['name']}' is not one that gangplan renders"
        )
    for place, subject in enumerate(body.get("subjects") or ()):
        if subject["kind"] == "Group" and (
            subject["name"] in EVERYBODY or subject["name"].startswith("system:serviceaccounts")
        ):
            yield _report_wide_rights(
                ("subjects", place, "name"),
                f"group '{subject['name']}' contains everybody, or nearly everybody",
            )
        home = body["metadata"].get("namespace")
        if subject["kind"] == "ServiceAccount" and subject.get("namespace", home) != home:
            yield _report_wide_rights(
                ("subjects", place, "namespace"), "the service account is of another namespace"
            )


def _check_namespace_labels(body: Body, most: str) -> FoundProblems:
    labels = body["metadata"].get("labels") or {}
    key = "pod-security.kubernetes.io/enforce"
    found = labels.get(key)
    if found not in LEVELS[: LEVELS.index(most) + 1]:
        said = f"pod security is '{found}'" if found else "no pod security is enforced"
        meant = "teams' namespaces enforce restricted"
        if most != LEVELS[0]:
            meant = f"the cluster's file states {most} for this team"
        yield _report_wide_rights(("metadata", "labels", key), f"{said}; {meant}")
    if labels.get(PLATFORM_MONITORING) == "true":
        yield Problem(
            ("metadata", "labels", PLATFORM_MONITORING),
            "the label moves the namespace from user-workload monitoring to the platform's own Prometheus",
            "Remove the label; it is for components of OpenShift.",
            MONITORING_MOVED,
        )


def _report_wide_rights(path: tuple[str | int, ...], message: str) -> Problem:
    return Problem(path, message, "", RIGHTS_TOO_WIDE)
