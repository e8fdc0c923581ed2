"""Checks of one pod of a run: volumes, containers, placement (core/validation of Kubernetes).

The CRDs that embed a pod template check only its schema; the Job created from it is refused later.
"""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.apiserver import containers
from gangplan.validate.apiserver.forms import (
    DNS_1123_LABEL,
    DNS_SUBDOMAIN,
    LABEL_VALUE,
    FoundProblems,
    check_duplicate_list_entries,
    check_label_selector,
    check_relative_volume_path,
    is_address,
    is_qualified,
    is_subdomain,
    parse_accepted_amount,
    report_invalid,
)

TOKEN_SECONDS = 600


def check_pod_spec(path: FieldPath, spec: Body, added: tuple[str, ...] = ()) -> FoundProblems:
    """Check the spec of a Job's pod. `added` are volumes that Trainer or the MPI operator adds to it."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    known: dict[str, Body] = {**{name: {} for name in added}, **volumes}
    claims = {claim["name"] for claim in spec.get("resourceClaims") or ()}
    yield from _check_container_names(path, spec)
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _check_pod_volume((*path, "volumes", index), volume)
    for index, one in enumerate(spec["containers"]):
        at = (*path, "containers", index)
        yield from containers.check_container(at, one, known, claims)
        yield from containers.check_container_in_pod(at, one, spec)
        if "restartPolicy" in one:
            yield report_invalid(
                (*at, "restartPolicy"), "only initContainers have a restartPolicy of their own"
            )
        for number, policy in enumerate(one.get("resizePolicy") or ()):
            if policy["resourceName"] not in ("cpu", "memory"):
                yield report_invalid(
                    (*at, "resizePolicy", number), f"{policy['resourceName']} cannot be resized"
                )
            if policy["restartPolicy"] != "NotRequired" and spec.get("restartPolicy") == "Never":
                yield report_invalid(
                    (*at, "resizePolicy", number), "a pod that never restarts can only be resized without"
                )
    for index, one in enumerate(spec.get("initContainers") or ()):
        yield from _check_init_container((*path, "initContainers", index), one, known, claims)
    if "securityContext" in spec:
        yield from _check_pod_security_context((*path, "securityContext"), spec["securityContext"])
    yield from _check_pod_placement(path, spec)
    yield from _check_pod_wide_fields(path, spec)


def _check_container_names(path: FieldPath, spec: Body) -> FoundProblems:
    """Report names of containers that occur twice, in either list."""
    before: list[str] = []
    for field in ("containers", "initContainers"):
        boxes = spec.get(field) or ()
        yield from check_duplicate_list_entries(
            (*path, field), boxes, lambda one: one["name"], "the container name", before
        )
        before += [one["name"] for one in boxes]


def _check_init_container(
    path: FieldPath, one: Body, volumes: dict[str, Body], claims: set[str]
) -> FoundProblems:
    yield from containers.check_container(path, one, volumes, claims)
    if one.get("restartPolicy", "Always") != "Always":
        yield report_invalid(
            (*path, "restartPolicy"), "an initContainer restarts Always, or has no restartPolicy"
        )
    if "restartPolicy" not in one:
        for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if name in one:
                yield report_invalid(
                    (*path, name), f"an initContainer has no {name} unless its restartPolicy is Always"
                )


# --- volumes -------------------------------------------------------------------------------------------


def _check_pod_volume(path: FieldPath, volume: Body) -> FoundProblems:
    for name in ("secret", "configMap", "downwardAPI"):
        for index, item in enumerate((volume.get(name) or {}).get("items") or ()):
            yield from _check_volume_file_item((*path, name, "items", index), item)
    if "secret" in volume and not volume["secret"].get("secretName"):
        yield report_invalid((*path, "secret", "secretName"), "a secret's name is expected")
    if "configMap" in volume and not volume["configMap"].get("name"):
        yield report_invalid((*path, "configMap", "name"), "the name of a ConfigMap is expected")
    if ".." in (volume.get("hostPath") or {}).get("path", "").split("/"):
        yield report_invalid((*path, "hostPath", "path"), "the path must not contain '..'")
    if "nfs" in volume:
        if not volume["nfs"]["server"]:
            yield report_invalid((*path, "nfs", "server"), "a server is expected")
        if not volume["nfs"]["path"].startswith("/"):
            yield report_invalid((*path, "nfs", "path"), "an absolute path is expected")
    if "ephemeral" in volume and "volumeClaimTemplate" not in volume["ephemeral"]:
        yield report_invalid((*path, "ephemeral", "volumeClaimTemplate"), "a volumeClaimTemplate is expected")
    for index, entry in enumerate((volume.get("projected") or {}).get("sources") or ()):
        yield from _check_projected_source((*path, "projected", "sources", index), entry)


def _check_volume_file_item(path: FieldPath, item: Body) -> FoundProblems:
    if not item["path"]:
        yield report_invalid((*path, "path"), "a path is expected")
    yield from check_relative_volume_path((*path, "path"), item["path"], "the path")
    if "key" in item:
        return
    given = [name for name in ("fieldRef", "resourceFieldRef") if name in item]
    if len(given) != 1:
        yield report_invalid(path, "exactly one of fieldRef and resourceFieldRef is expected")
    field = item.get("fieldRef", {}).get("fieldPath", "metadata.name")
    if not field.startswith("metadata."):
        yield report_invalid((*path, "fieldRef", "fieldPath"), f"'{field}' cannot be a file")


def _check_projected_source(path: FieldPath, entry: Body) -> FoundProblems:
    if len(entry) > 1:
        yield report_invalid(path, "a source is of one kind")
    token = entry.get("serviceAccountToken")
    if token and token.get("expirationSeconds", TOKEN_SECONDS) < TOKEN_SECONDS:
        yield report_invalid(
            (*path, "serviceAccountToken", "expirationSeconds"), f"the least is {TOKEN_SECONDS}"
        )


# --- placement -----------------------------------------------------------------------------------------


def _check_pod_placement(path: FieldPath, spec: Body) -> FoundProblems:
    affinity = spec.get("affinity") or {}
    nodes = affinity.get("nodeAffinity") or {}
    required = (nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms"
    ) or ()
    begin = (*path, "affinity", "nodeAffinity")
    for index, term in enumerate(required):
        at = (*begin, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", index)
        yield from _check_node_selector_term(at, term)
    for index, entry in enumerate(nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        at = (*begin, "preferredDuringSchedulingIgnoredDuringExecution", index, "preference")
        yield from _check_node_selector_term(at, entry["preference"])
    for name in ("podAffinity", "podAntiAffinity"):
        for at, term in _list_affinity_terms_to_validate((*path, "affinity", name), affinity.get(name) or {}):
            for which in ("labelSelector", "namespaceSelector"):
                yield from check_label_selector((*at, which), term.get(which))
            for index, namespace in enumerate(term.get("namespaces") or ()):
                if not DNS_SUBDOMAIN.fullmatch(namespace) or "." in namespace:
                    yield report_invalid((*at, "namespaces", index), f"'{namespace}' cannot be a namespace")
    spreads = spec.get("topologySpreadConstraints") or []
    at = (*path, "topologySpreadConstraints")
    yield from check_duplicate_list_entries(
        at, spreads, lambda one: (one["topologyKey"], one["whenUnsatisfiable"]), "the constraint"
    )
    for index, one in enumerate(spreads):
        yield from _check_topology_spread((*at, index), one)


def _list_affinity_terms_to_validate(path: FieldPath, body: Body) -> list[tuple[FieldPath, Body]]:
    required, preferred = (
        f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred")
    )
    found = [((*path, required, index), term) for index, term in enumerate(body.get(required) or ())]
    for index, entry in enumerate(body.get(preferred) or ()):
        found.append(((*path, preferred, index, "podAffinityTerm"), entry["podAffinityTerm"]))
    return found


def _check_node_selector_term(path: FieldPath, term: Body) -> FoundProblems:
    for name in ("matchExpressions", "matchFields"):
        for index, entry in enumerate(term.get(name) or ()):
            at, operator, values = (*path, name, index), entry["operator"], entry.get("values") or []
            wrong = {
                "In": not values,
                "NotIn": not values,
                "Exists": bool(values),
                "DoesNotExist": bool(values),
                "Gt": len(values) != 1,
                "Lt": len(values) != 1,
            }[operator]
            if name == "matchFields":
                wrong = operator not in ("In", "NotIn") or len(values) != 1
                if entry["key"] != "metadata.name":
                    yield report_invalid((*at, "key"), "the only field is metadata.name")
            if wrong:
                yield report_invalid(
                    (*at, "values"), f"operator {operator} does not go with {len(values)} values"
                )
            for value in values if name == "matchExpressions" else ():
                if not LABEL_VALUE.fullmatch(value) or len(value) > 63:
                    yield report_invalid((*at, "values"), f"'{value}' cannot be the value of a label")


def _check_topology_spread(path: FieldPath, one: Body) -> FoundProblems:
    yield from check_label_selector((*path, "labelSelector"), one.get("labelSelector"))
    if "minDomains" in one and one["whenUnsatisfiable"] != "DoNotSchedule":
        yield report_invalid((*path, "minDomains"), "minDomains needs DoNotSchedule")
    keys = one.get("matchLabelKeys") or []
    if keys and "labelSelector" not in one:
        yield report_invalid((*path, "matchLabelKeys"), "matchLabelKeys needs a labelSelector")


# --- the pod as a whole --------------------------------------------------------------------------------


def _check_pod_security_context(path: FieldPath, context: Body) -> FoundProblems:
    yield from containers.check_security_context(path, context)
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield report_invalid((*path, "windowsOptions", "hostProcess"), "runs are made for linux")
    sysctls: list[Any] = context.get("sysctls") or []
    yield from check_duplicate_list_entries(
        (*path, "sysctls"), sysctls, lambda one: one["name"].replace("/", "."), "sysctl"
    )
    for index, one in enumerate(sysctls):
        if not one["name"].replace("/", ".").replace("_", "").replace(".", "").replace("-", "").isalnum():
            yield report_invalid((*path, "sysctls", index, "name"), f"'{one['name']}' cannot be a sysctl")


def _check_pod_wide_fields(path: FieldPath, spec: Body) -> FoundProblems:
    for name, key in (("schedulingGates", "name"), ("readinessGates", "conditionType")):
        for index, gate in enumerate(spec.get(name) or ()):
            if not is_qualified(gate[key]):
                yield report_invalid(
                    (*path, name, index, key), f"'{gate[key]}' is not a name, with or without a prefix"
                )
    if spec.get("nodeName") and not is_subdomain(spec["nodeName"]):
        yield report_invalid((*path, "nodeName"), f"'{spec['nodeName']}' cannot be the name of a node")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield report_invalid((*path, "nodeName"), "a pod with schedulingGates has no node yet")
    if spec.get("ephemeralContainers"):
        yield report_invalid((*path, "ephemeralContainers"), "a template has no ephemeralContainers")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        if not is_address(alias.get("ip", "")):
            yield report_invalid(
                (*path, "hostAliases", index, "ip"), f"'{alias.get('ip', '')}' is not an address"
            )
        for number, name in enumerate(alias.get("hostnames") or ()):
            if not DNS_SUBDOMAIN.fullmatch(name):
                yield report_invalid(
                    (*path, "hostAliases", index, "hostnames", number), f"'{name}' cannot be a host name"
                )
    yield from _check_pod_dns_config((*path, "dnsConfig"), spec)
    if "priorityClassName" not in spec:
        if spec.get("priority"):
            yield report_invalid(
                (*path, "priority"), "the priority comes from a priorityClassName, and there is none"
            )
        if spec.get("preemptionPolicy") == "Never":
            yield report_invalid(
                (*path, "preemptionPolicy"), "it comes from a priorityClassName, and there is none"
            )
    if spec.get("overhead") and "runtimeClassName" not in spec:
        yield report_invalid(
            (*path, "overhead"), "the overhead comes from a runtimeClassName, and there is none"
        )
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        yield report_invalid((*path, "os", "name"), "runs are made for linux")
    if "resources" in spec:
        yield from _check_pod_level_resources((*path, "resources"), spec)
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        if not DNS_1123_LABEL.fullmatch(claim["name"]):
            yield report_invalid(
                (*path, "resourceClaims", index, "name"), f"'{claim['name']}' cannot be a name"
            )
        given = [name for name in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(name)]
        if len(given) != 1:
            yield report_invalid(
                (*path, "resourceClaims", index),
                "exactly one of resourceClaimName and resourceClaimTemplateName is expected",
            )


def _check_pod_level_resources(path: FieldPath, spec: Body) -> FoundProblems:
    """Check that the resources of a pod as a whole cover those of its containers."""
    yield from containers.check_container_resources(path, spec["resources"], set())
    for part in ("requests", "limits"):
        for name, value in (spec["resources"].get(part) or {}).items():
            if name not in ("cpu", "memory"):
                yield report_invalid((*path, part, name), f"a pod as a whole has no {name}")
                continue
            parts = [(one.get("resources") or {}).get(part) or {} for one in spec["containers"]]
            total = sum((parse_accepted_amount(one.get(name, 0)) for one in parts), parse_accepted_amount(0))
            if part == "requests" and parse_accepted_amount(value) < total:
                yield report_invalid(
                    (*path, part, name), f"{value} {name} is less than its containers request: {total}"
                )


def _check_pod_dns_config(path: FieldPath, spec: Body) -> FoundProblems:
    dns = spec.get("dnsConfig") or {}
    servers = dns.get("nameservers") or []
    if spec.get("dnsPolicy") == "None" and not servers:
        yield report_invalid((*path, "nameservers"), "dnsPolicy None needs nameservers")
    if len(servers) > 3:
        yield report_invalid((*path, "nameservers"), "there are at most three nameservers")
    for index, server in enumerate(servers):
        if not is_address(server):
            yield report_invalid((*path, "nameservers", index), f"'{server}' is not an address")
    for index, name in enumerate(dns.get("searches") or ()):
        if not DNS_SUBDOMAIN.fullmatch(name.rstrip(".").replace("_", "a")):
            yield report_invalid((*path, "searches", index), f"'{name}' cannot be a search domain")
    for index, option in enumerate(dns.get("options") or ()):
        if not option.get("name"):
            yield report_invalid((*path, "options", index, "name"), "a name is expected")
