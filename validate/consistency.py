"""Rules about fields of an object that depend on each other, and about objects of a run that do.

A schema checks one field at a time. The API server or a webhook refuses these breaches too: at once, or when
the pods are created, which a user sees only as an event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND, NAMESPACED_KINDS
from gangplan.objects import Body
from gangplan.validate import dropped
from gangplan.validate.apiserver import bounds
from gangplan.validate.apiserver.forms import (
    FoundProblems,
    check_label_selector,
    is_port_name,
    is_qualified,
    is_subdomain,
    parse_cidr_like_api_server,
    report_invalid,
)
from gangplan.validate.apiserver.schema import COMPONENT_OF_GROUP, SchemaVersions
from gangplan.validate.kueue import queues
from gangplan.validate.problems import Problem, sort_problems
from gangplan.validate.trainer import runtimes, trainjobs

Check = Callable[[Body, Sequence[Body], SchemaVersions], Iterable[Problem]]

ANNOTATIONS_BYTES = 256 * 1024
# Longest names of kinds that create pods: a CronJob leaves eleven characters for its Jobs
# (pkg/apis/batch/validation, ValidateCronJobCreate, Kubernetes v1.34).
LONGEST = {"CronJob": 52, "Job": 253}
POD_SECURITY_LEVELS = ("privileged", "baseline", "restricted")
POD_SECURITY_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def check_object_consistency(body: Body, others: Sequence[Body], versions: SchemaVersions) -> list[Problem]:
    """Return the problems of an object that fits its schema.

    `others` are the good objects of the same run or tenant.
    """
    found = [*_check_object_metadata(body), *dropped.check_unknown_status(body)]
    kind = body["kind"]
    if kind in NAMESPACED_KINDS and not body["metadata"].get("namespace"):
        message = "the object has no namespace and would be created in whatever namespace the client uses"
        found.append(report_invalid(("metadata", "namespace"), message))
    if check := CHECKS.get(kind):
        found += check(body, others, versions)
    return sort_problems(found) if found else found


def _check_batch_object_name(body: Body) -> FoundProblems:
    name, longest = str(body["metadata"].get("name", "")), LONGEST[body["kind"]]
    if name and (len(name) > longest or not is_subdomain(name)):
        message = (
            f"'{name}' is not a valid name of a {body['kind']}: at most {longest} of a-z, 0-9, '-' and '.'"
        )
        yield report_invalid(("metadata", "name"), message)


def _check_object_metadata(body: Body) -> FoundProblems:
    metadata = body["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    # A character has at most four bytes, so most objects need no exact count.
    if sum(map(len, annotations.values())) * 4 > ANNOTATIONS_BYTES:
        size = sum(len(text.encode()) for pair in annotations.items() for text in pair)
        if size > ANNOTATIONS_BYTES:
            yield report_invalid(
                ("metadata", "annotations"),
                f"the annotations have {size} bytes; at most {ANNOTATIONS_BYTES} fit",
            )
    generated = metadata.get("generateName")
    is_free = body["apiVersion"] == "rbac.authorization.k8s.io/v1"  # any text without '/' and '%'
    if generated and not is_free and not is_subdomain(generated.removesuffix("-")):
        yield report_invalid(("metadata", "generateName"), f"'{generated}' cannot begin a name")
    if "finalizers" in metadata:
        yield from _check_finalizer_names(body, metadata["finalizers"])


def _check_finalizer_names(body: Body, finalizers: list[str]) -> FoundProblems:
    is_built_in = body["apiVersion"].rpartition("/")[0] not in COMPONENT_OF_GROUP
    for index, name in enumerate(finalizers):
        is_known = not is_built_in or "/" in name or name in STANDARD_FINALIZERS
        if not is_qualified(name) or not is_known:
            yield report_invalid(
                ("metadata", "finalizers", index),
                f"'{name}' is not a finalizer's name",
                "Write example.com/name.",
            )


def _check_pod_security_labels(labels: Mapping[str, str]) -> FoundProblems:
    """Check the levels and versions of pod security (k8s.io/pod-security-admission v0.34, api/helpers.go)."""
    for mode in ("enforce", "audit", "warn"):
        key = f"pod-security.kubernetes.io/{mode}"
        level, version = labels.get(key), labels.get(f"{key}-version")
        if level is not None and level not in POD_SECURITY_LEVELS:
            levels = ", ".join(POD_SECURITY_LEVELS)
            yield report_invalid(
                ("metadata", "labels", key), f"'{level}' is not a level; the levels are {levels}"
            )
        if version is not None and not POD_SECURITY_VERSION.fullmatch(version):
            message = f"'{version}' is not a version of pod security"
            yield report_invalid(
                ("metadata", "labels", f"{key}-version"), message, "Write latest, or a version such as v1.34."
            )


def _check_role_binding_object(body: Body) -> FoundProblems:
    if body["metadata"]["name"] in (".", ".."):
        yield report_invalid(("metadata", "name"), f"'{body['metadata']['name']}' cannot be a name")
    for index, subject in enumerate(body.get("subjects") or ()):
        if subject["kind"] == "ServiceAccount" and not is_subdomain(subject["name"]):
            yield report_invalid(
                ("subjects", index, "name"), f"'{subject['name']}' cannot be a service account"
            )


def _check_cluster_role_rules(body: Body) -> FoundProblems:
    """Check that a rule names groups, resources and verbs, or nonResourceURLs (rbac validation.go, v1.34)."""
    for index, rule in enumerate(body.get("rules") or ()):
        if not rule.get("verbs"):
            yield report_invalid(("rules", index, "verbs"), "the rule names no verb")
        if rule.get("nonResourceURLs"):
            continue
        for field in ("apiGroups", "resources"):
            if not rule.get(field):
                yield report_invalid(("rules", index, field), f"the rule names no {field}")


def _check_network_policy_object(spec: Body) -> FoundProblems:
    yield from check_label_selector(("spec", "podSelector"), spec.get("podSelector"))
    if len(spec.get("policyTypes") or ()) > 2:
        yield report_invalid(("spec", "policyTypes"), "there are at most two policyTypes")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _check_network_policy_port(("spec", direction, index, "ports", number), port)
            for number, peer in enumerate(rule.get(side) or ()):
                yield from _check_network_policy_peer(("spec", direction, index, side, number), peer)


def _check_network_policy_port(path: FieldPath, port: Body) -> FoundProblems:
    number = port.get("port")
    if isinstance(number, str):
        if not is_port_name(number):
            help = f"Remove the quotes: {number}" if number.isdigit() else ""
            yield report_invalid((*path, "port"), f"'{number}' cannot be the name of a port", help)
    elif number is not None and port.get("endPort", number) < number:
        yield report_invalid((*path, "endPort"), f"endPort {port['endPort']} is less than port {number}")


def _check_network_policy_peer(path: FieldPath, peer: Body) -> FoundProblems:
    for name in ("podSelector", "namespaceSelector"):
        yield from check_label_selector((*path, name), peer.get(name))
    block = peer.get("ipBlock")
    if not block:
        return
    whole = parse_cidr_like_api_server(block["cidr"])
    if whole is None:
        yield report_invalid((*path, "ipBlock", "cidr"), f"'{block['cidr']}' is not an address range")
        return
    for index, text in enumerate(block.get("except") or ()):
        part = parse_cidr_like_api_server(text)
        inside: Any = part is not None and part.version == whole.version and part != whole
        if not inside or not part.subnet_of(whole):  # type: ignore[union-attr, arg-type]
            message = f"'{text}' is not a smaller range inside '{block['cidr']}'"
            yield report_invalid((*path, "ipBlock", "except", index), message)


def _wrap_single_object_check(judge: Callable[[Body], Iterable[Problem]]) -> Check:
    return lambda body, _, __: judge(body)


def _check_mpi_job_object(body: Body, others: Sequence[Body], _: SchemaVersions) -> Iterable[Problem]:
    from gangplan.validate.mpijob import check_mpi_job  # imported here because few runs are MPIJobs

    return check_mpi_job(body, others)


def _check_claim_template(body: Body, _: Sequence[Body], versions: SchemaVersions) -> Iterable[Problem]:
    from gangplan.validate.apiserver.claim_templates import check_claim_template  # few runs claim devices

    return check_claim_template(body, versions)


def _find_object_of_kind(kind: str, bodies: Sequence[Body]) -> Body | None:
    return next((body for body in bodies if body["kind"] == kind), None)


# Checks of a kind, in addition to those for every object; `others` are the good objects of the same run or
# tenant.
def _check_default_priority(body: Body, others: Sequence[Body], _: SchemaVersions) -> FoundProblems:
    """Check that at most one class is the default of all pods (plugin/pkg/admission/priority, v1.34)."""
    name = body["metadata"].get("name")
    before = (
        one["metadata"].get("name")
        for one in others
        if one["kind"] == "PriorityClass" and one.get("globalDefault")
    )
    if body.get("globalDefault") and (first := next(before, name)) != name:
        message = f"the API server accepts one default PriorityClass, and '{first}' is one already"
        yield report_invalid(("globalDefault",), message, "Remove globalDefault.")


CHECKS: Mapping[str, Check] = {
    "RoleBinding": _wrap_single_object_check(_check_role_binding_object),
    "Namespace": _wrap_single_object_check(
        lambda body: _check_pod_security_labels(body["metadata"].get("labels") or {})
    ),
    "ClusterRole": _wrap_single_object_check(_check_cluster_role_rules),
    "LimitRange": _wrap_single_object_check(bounds.check_limit_range),
    "ResourceQuota": _wrap_single_object_check(bounds.check_resource_quota),
    "NetworkPolicy": _wrap_single_object_check(lambda body: _check_network_policy_object(body["spec"])),
    **dict.fromkeys(
        ("ClusterQueue", "Cohort", "ResourceFlavor"), _wrap_single_object_check(queues.check_queue_alone)
    ),
    **dict.fromkeys(LONGEST, _wrap_single_object_check(_check_batch_object_name)),
    RUNTIME_KIND: lambda body, others, _: runtimes.check_training_runtime(
        body, _find_object_of_kind(TRAINJOB.kind, others)
    ),
    TRAINJOB.kind: lambda body, others, versions: trainjobs.check_train_job(
        body, _find_object_of_kind(RUNTIME_KIND, others), versions
    ),
    MPIJOB.kind: _check_mpi_job_object,
    CLAIM_TEMPLATE_KIND: _check_claim_template,
    "PriorityClass": _check_default_priority,
}
