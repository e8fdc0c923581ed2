"""What a patch must not weaken: least privilege of roles, and the isolation of namespaces.

The generator observes both; a cluster's overlay is written by hand and reviewed by people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product

from gangplan.model.quantity import ZERO
from gangplan.objects import Body
from gangplan.rules.platform import MONITORING_MOVED
from gangplan.rules.security import RIGHTS_TOO_WIDE
from gangplan.validate.apiserver.forms import FoundProblems, parse_accepted_amount
from gangplan.validate.apiserver.pod_security import (
    LEVEL_VERSION,
    POD_SECURITY_CHECKS,
    find_pod_security_level_of_namespace,
)
from gangplan.validate.kueue.queues import QueueIndex
from gangplan.validate.problems import Problem
from gangplan.waivers import WAIVED_PREFIX

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
# A minor of Kubernetes above all that there will be.
_NO_LIMIT = 10**6


_WRITING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Over a WebSocket, a shell or a connection is `get` (Kubernetes before 1.35).
_CONNECTING = _WRITING | {"get"}
_SHELL = "lead into running pods; gangplan grants shells only to debuggers, until a day"
# A label with which a ClusterRole is merged into one of the cluster's (rbac/v1).
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_STARTS = "start or end pods that no queue, quota or spec knows of"
_GUARDS = "change what keeps teams apart"
# What no persona gets by a patch: by API group and resource the verbs, and what their holders could do.
REFUSED_RIGHTS: Mapping[tuple[str, str], tuple[frozenset[str], str]] = {
    **{
        ("", f"pods/{name}"): (verbs, _SHELL)
        for name, verbs in (
            *((name, _CONNECTING) for name in ("attach", "exec", "portforward", "proxy")),
            ("ephemeralcontainers", _WRITING),
        )
    },
    ("", "serviceaccounts/token"): (_WRITING, "take on the identity of service accounts"),
    ("", "serviceaccounts"): (_WRITING, "give pods the identity of another cloud account"),
    ("", "services/proxy"): (_CONNECTING, "connect to running pods"),
    ("", "pods/binding"): (_WRITING, _STARTS),
    ("kueue.x-k8s.io", "localqueues"): (_WRITING, "change which quota runs take"),
    **{
        (group, name): (_WRITING, _STARTS)
        for group, names in (
            ("", ("pods", "replicationcontrollers")),
            ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
            ("batch", ("cronjobs", "jobs")),
            ("jobset.x-k8s.io", ("jobsets",)),
        )
        for name in names
    },
    ("", "configmaps"): (_WRITING, "change the scripts and settings that runs start with"),
    ("kueue.x-k8s.io", "workloads"): (_WRITING, "change which runs Kueue admits"),
    **{
        (group, name): (_WRITING, _GUARDS)
        for group, names in (
            ("", ("limitranges", "resourcequotas")),
            ("networking.k8s.io", ("networkpolicies",)),
            ("rbac.authorization.k8s.io", ("rolebindings", "roles")),
        )
        for name in names
    },
}
# Labels by which others find a team's namespaces, and what no longer happens in a namespace without one.
# The Red Hat build of Kueue, "Labeling namespaces".
FOUND_BY = {
    "gangplan.dev/team": "the cluster's policies and Kueue no longer look at this namespace",
    "kueue.openshift.io/managed": "the Red Hat build of Kueue no longer looks at this namespace",
}
# Names in a ResourceQuota that count objects (Kubernetes v1.34, pkg/quota/v1/evaluator/core/services.go).
_OBJECTS = ("services.", "count/")
# Labels of rules that a team is under, such as gangplan.dev/hipaa: packs bind to them.
_OURS = "gangplan.dev/"
_OF_REGIME = "the policies that hold for it no longer look at this namespace"


def check_wide_rights(
    body: Body, index: QueueIndex, levels: Mapping[str, str], generated: Body
) -> list[Problem]:
    """Return what is too wide in a role, a binding, a namespace or a service account.

    `levels` are the Pod Security levels of namespaces that the cluster's file states; `generated` is the
    object before any patch.
    """
    changed = [] if body is generated else list(_check_changed_records(body, generated))
    return [*changed, *_check_wide_rights_of_kind(body, index, levels, generated)]


def _check_wide_rights_of_kind(
    body: Body, index: QueueIndex, levels: Mapping[str, str], generated: Body
) -> list[Problem]:
    kind = body["kind"]
    if kind in ("ClusterRole", "Role"):
        return [*_check_wide_rights_of_role(body), *_check_added_rights_of_role(body, generated)]
    if kind == "RoleBinding":
        return list(_check_wide_rights_of_role_binding(body, index, generated))
    if kind == "Namespace":
        most = levels.get(body["metadata"]["name"], LEVELS[0])
        return [*_check_namespace_labels(body, most), *_check_lost_namespace_labels(body, generated)]
    if kind == "ServiceAccount" and body.get("automountServiceAccountToken") is not False:
        said = "training pods would carry a token for the API server"
        return [Problem(("automountServiceAccountToken",), said, "Keep it false.", RIGHTS_TOO_WIDE)]
    if kind == "ResourceQuota":
        return list(_check_opened_quota(body, generated))
    selector = body["spec"].get("namespaceSelector") if kind == "ClusterQueue" else None
    if selector is not None and not any(selector.values()):
        said = "runs of any namespace on the cluster could take the quota of this queue"
        return [_report_wide_rights(("spec", "namespaceSelector"), said)]
    return []


def _check_changed_records(body: Body, generated: Body) -> FoundProblems:
    """Check that labels and annotations of gangplan.dev are as generated, on objects that have no run."""
    for name in ("labels", "annotations"):
        built, planned = (one["metadata"].get(name) or {} for one in (body, generated))
        for key in sorted({*built, *planned}):
            is_judged_below = body["kind"] == "Namespace" and key in _list_labels_found_by(planned)
            if not key.startswith(_OURS) or is_judged_below or built.get(key) == planned.get(key):
                continue
            has = f"{key}: {built[key]}" if key in built else f"no {name[:-1]} {key}"
            said = (
                f"this {body['kind']} would have {has}; policies, reports and auditors read it as gangplan's"
            )
            help = f"Keep {planned[key]}." if key in planned else f"Remove the {name[:-1]}."
            yield Problem(("metadata", name, key), said, help, RIGHTS_TOO_WIDE)


def _check_opened_quota(body: Body, generated: Body) -> FoundProblems:
    """Check that a patch leaves what a ResourceQuota forbids: kinds of objects, and pods of a priority.

    A site may raise amounts of resources: its queues limit what runs get of them.
    """
    built, planned = body["spec"].get("hard") or {}, generated["spec"].get("hard") or {}
    has_scope = bool(generated["spec"].get("scopeSelector"))
    forbidden = [
        key
        for key, amount in planned.items()
        if parse_accepted_amount(amount) == ZERO and (has_scope or key.startswith(_OBJECTS))
    ]
    for key in forbidden:
        if key not in built or parse_accepted_amount(built[key]) != ZERO:
            said = f"this quota forbids {key}; with the patch, it would allow {built.get(key, 'any number')}"
            yield Problem(("spec", "hard", key), said, f'Keep {key}: "0".', RIGHTS_TOO_WIDE)
    for name in ("scopes", "scopeSelector"):
        # Without a scope, the quota forbids more: hard-quota-below-run.
        if forbidden and body["spec"].get(name) not in (None, generated["spec"].get(name)):
            said = f"this quota would no longer forbid {' and '.join(forbidden)} of the same pods"
            yield Problem(("spec", name), said, f"Leave {name} as rendered.", RIGHTS_TOO_WIDE)


def _check_wide_rights_of_role(body: Body) -> FoundProblems:
    for place, rule in enumerate(body.get("rules") or ()):
        for field in ("apiGroups", "resources", "verbs"):
            if any(one == "*" or one.startswith("*/") for one in rule.get(field) or ()):
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


def _check_added_rights_of_role(body: Body, generated: Body) -> FoundProblems:
    """Check that no patch adds rights to a role that lead past Git, the queues or what keeps teams apart."""
    yield from _check_aggregation_of_role(body, generated)
    known = {right for rule in generated.get("rules") or () for right in _list_rights_of_rule(rule)}
    opens_shells = any(resource == "pods/exec" for _, resource, _ in known)
    for place, rule in enumerate(body.get("rules") or ()):
        given: dict[tuple[str, str], list[str]] = {}
        for group, resource, verb in _list_rights_of_rule(rule):
            verbs, means = REFUSED_RIGHTS.get((group, resource), (frozenset(), ""))
            is_new = verb in verbs and (group, resource, verb) not in known
            if is_new and not (opens_shells and means == _SHELL):
                given.setdefault((group, resource), []).append(verb)
        for (group, resource), added in given.items():
            means = REFUSED_RIGHTS[group, resource][1]
            said = f"{' and '.join(added)} of {resource}: holders of this role could {means}"
            help = f"Remove {resource} from the rule, or keep only get, list and watch."
            if means == _SHELL:
                said = f"{resource} would {means}"
                grant = "debuggers: [{group: ..., until: ..., reason: ...}]"
                help = f"Remove {resource}, and write {grant} in team.yaml."
            yield Problem(("rules", place, "resources"), said, help, RIGHTS_TOO_WIDE)


def _check_aggregation_of_role(body: Body, generated: Body) -> FoundProblems:
    """Check that no patch has a controller merge this role with others (kube-controller-manager, v1.34,
    clusterroleaggregation)."""
    if body.get("aggregationRule") and not generated.get("aggregationRule"):
        said = "the rights of other roles would replace those of this one"
        yield Problem(("aggregationRule",), said, "Remove aggregationRule.", RIGHTS_TOO_WIDE)
    labels, planned = (one["metadata"].get("labels") or {} for one in (body, generated))
    for key in labels:
        if key.startswith(_AGGREGATE) and key not in planned:
            whose = key.removeprefix(_AGGREGATE)
            said = f"everyone with role {whose}, in any namespace, would have the rights of this role"
            yield Problem(("metadata", "labels", key), said, "Remove the label.", RIGHTS_TOO_WIDE)


def _list_rights_of_rule(rule: Body) -> list[tuple[str, str, str]]:
    """Return group, resource and verb of each right of a rule."""
    named = (rule.get(field) or () for field in ("apiGroups", "resources", "verbs"))
    return list(product(*named))


def _check_wide_rights_of_role_binding(body: Body, index: QueueIndex, generated: Body) -> FoundProblems:
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
        elif subject["kind"] != "ServiceAccount" and _is_added_system_subject(subject, generated):
            yield _report_wide_rights(
                ("subjects", place, "name"),
                f"'{subject['name']}' belongs to the cluster, not to a person: its name begins with system:",
            )
        home = body["metadata"].get("namespace")
        if subject["kind"] == "ServiceAccount" and subject.get("namespace", home) != home:
            yield _report_wide_rights(
                ("subjects", place, "namespace"), "the service account is of another namespace"
            )
        elif _is_added_pod_account(subject, index, generated):
            yield _report_wide_rights(
                ("subjects", place, "name"), f"pods of runs have the service account '{subject['name']}'"
            )


def _is_added_system_subject(subject: Body, generated: Body) -> bool:
    """Return whether a patch adds a user or group whose name Kubernetes or OpenShift keeps for itself."""
    return str(subject["name"]).startswith("system:") and subject not in (generated.get("subjects") or ())


def _is_added_pod_account(subject: Body, index: QueueIndex, generated: Body) -> bool:
    """Return whether a patch gives a role to a service account that gangplan renders for pods."""
    known = {one["name"] for one in generated.get("subjects") or () if one["kind"] == "ServiceAccount"}
    name = subject["name"]
    return subject["kind"] == "ServiceAccount" and name not in known and name in index.names("ServiceAccount")


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


def _is_regime(label: str) -> bool:
    """Return whether a label of a namespace says what the team is under, and not what a waiver excuses."""
    return label.startswith(_OURS) and not label.startswith(WAIVED_PREFIX)


def _list_labels_found_by(planned: Mapping[str, str]) -> dict[str, str]:
    """Return what no longer happens in a namespace without each of its labels."""
    regimes = [key for key, value in planned.items() if value == "true" and _is_regime(key)]
    return {**FOUND_BY, **dict.fromkeys(regimes, _OF_REGIME)}


def _check_lost_namespace_labels(body: Body, generated: Body) -> FoundProblems:
    """Check that a namespace keeps the labels by which others find it, and no older version of its level."""
    labels, planned = (one["metadata"].get("labels") or {} for one in (body, generated))
    for key, means in _list_labels_found_by(planned).items():
        value = planned.get(key)
        if value is None or labels.get(key) == value:
            continue
        at = ("metadata", "labels", key)
        said = f"without label {key}, {means}"
        if key in labels:
            said = f"label {key} is '{labels[key]}', but the namespace is rendered with '{value}'"
            said += "" if key == "gangplan.dev/team" else f"; {means}"
        yield Problem(at, said, f"Keep {key}: {json.dumps(value)}.", RIGHTS_TOO_WIDE)
    newest, pinned = planned.get(LEVEL_VERSION), labels.get(LEVEL_VERSION)
    if newest is None or pinned is None or pinned == newest:
        return
    server = find_pod_security_level_of_namespace(planned, _NO_LIMIT)[1]
    level, minor = find_pod_security_level_of_namespace(labels, server)
    lost = [
        one.name.partition("_")[0]
        for one in POD_SECURITY_CHECKS
        if level != "privileged"
        and minor < one.since <= server
        and (level == "restricted" or not one.is_restricted)
    ]
    if lost:
        said = f"pod security is judged as in Kubernetes {pinned}, which does not check {', '.join(lost)}"
        yield Problem(
            ("metadata", "labels", LEVEL_VERSION), said, f"Keep {LEVEL_VERSION}: {newest}.", RIGHTS_TOO_WIDE
        )


def _report_wide_rights(path: tuple[str | int, ...], message: str) -> Problem:
    return Problem(path, message, "", RIGHTS_TOO_WIDE)
