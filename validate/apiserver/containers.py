"""Checks of one container: resources, environment, mounts, ports, probes (core/validation of Kubernetes)."""

from __future__ import annotations

import re
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import (
    HTTP_HEADER_NAME,
    FoundProblems,
    check_duplicate_list_entries,
    check_relative_volume_path,
    is_port_name,
    is_qualified,
    is_subdomain,
    parse_accepted_amount,
    report_invalid,
)

FIELDS = re.compile(
    r"metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['[^']+'\]"
)
RESOURCE_FIELDS = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)")
DIVISORS = {
    "cpu": {"1m", "1"},
    "": {"1", *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}
STANDARD = ("cpu", "memory", "ephemeral-storage")


def check_container(path: FieldPath, one: Body, volumes: dict[str, Body], claims: set[str]) -> FoundProblems:
    """Check a container by itself. `volumes` and `claims` are those of its pod."""
    if one.get("image", "").strip() != one.get("image", ""):
        yield report_invalid((*path, "image"), f"image '{one['image']}' starts or ends with a space")
    if not one.get("image"):
        yield report_invalid((*path, "image"), "a container needs an image")
    if "resources" in one:
        yield from check_container_resources((*path, "resources"), one["resources"], claims)
    for index, variable in enumerate(one.get("env") or ()):
        if variable.get("valueFrom"):
            yield from check_variable_source((*path, "env", index, "valueFrom"), variable["valueFrom"])
    for index, entry in enumerate(one.get("envFrom") or ()):
        yield from _check_env_from_source((*path, "envFrom", index), entry)
    yield from _check_volume_mounts(path, one, volumes)
    yield from _check_container_ports((*path, "ports"), one.get("ports") or [])
    for name in ("readinessProbe", "livenessProbe", "startupProbe"):
        if name in one:
            yield from _check_container_probe((*path, name), one[name], name)
    yield from _check_lifecycle_hooks((*path, "lifecycle"), one.get("lifecycle") or {})
    if "securityContext" in one:
        yield from check_security_context((*path, "securityContext"), one["securityContext"])


# --- resources -----------------------------------------------------------------------------------------


def check_container_resources(path: FieldPath, wanted: Body, claims: set[str]) -> FoundProblems:
    """Check names, whole numbers, and requests against limits."""
    requests, limits = wanted.get("requests") or {}, wanted.get("limits") or {}
    for part, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            if name not in STANDARD:
                yield from _check_container_resource((*path, part, name), name, value)
    for name, value in requests.items():
        is_shared = name in STANDARD or ("kubernetes.io/" in name)
        if name not in limits:
            if not is_shared:
                yield report_invalid(
                    (*path, "limits", name), f"{name} is requested without a limit; it needs the same limit"
                )
        elif value != limits[name]:
            wants, may = parse_accepted_amount(value), parse_accepted_amount(limits[name])
            if wants > may or (not is_shared and wants != may):
                said = "more than" if is_shared else "not"
                yield report_invalid(
                    (*path, "requests", name), f"{name} request {value} is {said} the limit {limits[name]}"
                )
    for index, claim in enumerate(wanted.get("claims") or ()):
        if claim["name"] not in claims:
            yield report_invalid((*path, "claims", index), f"the pod has no resourceClaim '{claim['name']}'")


def _check_container_resource(path: FieldPath, name: str, value: Any) -> FoundProblems:
    if name.startswith("hugepages-"):
        page = parse_accepted_amount(name.removeprefix("hugepages-"))
        if page and parse_accepted_amount(value).value() % page.value():
            yield report_invalid(path, f"{value} is not a multiple of the page size of {name}")
        return
    if "/" not in name:
        yield report_invalid(
            path,
            f"'{name}' is not a resource of containers",
            "Other resources have a prefix: example.com/name.",
        )
    elif name.startswith("requests.") or not is_qualified(f"requests.{name}"):
        yield report_invalid(path, f"'{name}' cannot be the name of an extended resource")
    elif "kubernetes.io/" not in name and not _is_whole(value):
        yield report_invalid(path, f"{name} is counted in whole numbers, not {value}")


def _is_whole(value: Any) -> bool:
    counted = parse_accepted_amount(value)
    return counted.value() * 1000 == counted.milli()


# --- environment ---------------------------------------------------------------------------------------


def check_variable_source(path: FieldPath, body: Body) -> FoundProblems:
    """Check the source of a variable's value."""
    field = body.get("fieldRef")
    if field:
        if field.get("apiVersion", "v1") != "v1":
            yield report_invalid((*path, "fieldRef", "apiVersion"), "fields are read from version v1")
        if not FIELDS.fullmatch(field["fieldPath"]):
            yield report_invalid(
                (*path, "fieldRef", "fieldPath"), f"'{field['fieldPath']}' cannot be given to a container"
            )
    resource = body.get("resourceFieldRef")
    if resource:
        yield from _check_resource_field_ref((*path, "resourceFieldRef"), resource)
    for name in ("secretKeyRef", "configMapKeyRef"):
        if name in body:
            yield from _check_env_key_ref((*path, name), body[name])


def _check_resource_field_ref(path: FieldPath, body: Body) -> FoundProblems:
    found = RESOURCE_FIELDS.fullmatch(body["resource"])
    if not found:
        yield report_invalid((*path, "resource"), f"'{body['resource']}' cannot be given to a container")
    elif "divisor" in body:
        allowed = DIVISORS["cpu" if found[2] == "cpu" else ""]
        if str(body["divisor"]) not in allowed and parse_accepted_amount(body["divisor"]).value():
            yield report_invalid(
                (*path, "divisor"), f"divisor {body['divisor']} is not one of {', '.join(sorted(allowed))}"
            )


def _check_env_key_ref(path: FieldPath, body: Body) -> FoundProblems:
    if not is_subdomain(body.get("name", "")):
        yield report_invalid((*path, "name"), f"'{body.get('name', '')}' cannot be the name of an object")
    if body["key"] in (".", "..") or body["key"].startswith(".."):
        yield report_invalid((*path, "key"), f"'{body['key']}' cannot be a key")


def _check_env_from_source(path: FieldPath, body: Body) -> FoundProblems:
    sources = [name for name in ("secretRef", "configMapRef") if name in body]
    if len(sources) != 1:
        yield report_invalid(path, "exactly one of secretRef and configMapRef is expected")
    for name in sources:
        if not is_subdomain(body[name].get("name", "")):
            yield report_invalid(
                (*path, name, "name"), f"'{body[name].get('name', '')}' cannot be the name of an object"
            )


# --- mounts and ports ----------------------------------------------------------------------------------


def _check_volume_mounts(path: FieldPath, one: Body, volumes: dict[str, Body]) -> FoundProblems:
    mounts = one.get("volumeMounts") or []
    is_privileged = (one.get("securityContext") or {}).get("privileged")
    for index, mount in enumerate(mounts):
        at = (*path, "volumeMounts", index)
        if mount["name"] not in volumes:
            yield report_invalid((*at, "name"), f"the pod has no volume '{mount['name']}'")
        for name in ("subPath", "subPathExpr"):
            yield from check_relative_volume_path((*at, name), mount.get(name) or "", name)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield report_invalid((*at, "subPathExpr"), "either subPath or subPathExpr, not both")
        if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
            yield report_invalid((*at, "mountPropagation"), "Bidirectional is only for privileged containers")
        if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible") and not mount.get("readOnly"):
            yield report_invalid((*at, "recursiveReadOnly"), "recursiveReadOnly needs readOnly: true")
    for index, device in enumerate(one.get("volumeDevices") or ()):
        if "persistentVolumeClaim" not in volumes.get(device["name"], {}):
            yield report_invalid(
                (*path, "volumeDevices", index), f"'{device['name']}' is not a claim of the pod"
            )


def _check_container_ports(path: FieldPath, ports: list[Body]) -> FoundProblems:
    yield from check_duplicate_list_entries(path, ports, lambda port: port.get("name"), "the port name")
    for index, port in enumerate(ports):
        if "name" in port and not is_port_name(port["name"]):
            yield report_invalid((*path, index, "name"), f"'{port['name']}' cannot be the name of a port")


# --- probes --------------------------------------------------------------------------------------------


def _check_container_probe(path: FieldPath, probe: Body, name: str) -> FoundProblems:
    yield from _check_probe_or_hook_handler(path, probe)
    if name != "readinessProbe" and probe.get("successThreshold", 1) > 1:
        yield report_invalid((*path, "successThreshold"), f"the successThreshold of a {name} must be 1")
    if name == "readinessProbe" and "terminationGracePeriodSeconds" in probe:
        yield report_invalid((*path, "terminationGracePeriodSeconds"), "a readinessProbe ends nothing")


def _check_probe_or_hook_handler(path: FieldPath, body: Body) -> FoundProblems:
    if "exec" in body and not body["exec"].get("command"):
        yield report_invalid((*path, "exec", "command"), "a command is expected")
    for name in ("tcpSocket", "httpGet"):
        port = body.get(name, {}).get("port", 1)
        if isinstance(port, str) and not is_port_name(port):
            yield report_invalid((*path, name, "port"), f"'{port}' cannot be the name of a port")
    for index, header in enumerate(body.get("httpGet", {}).get("httpHeaders") or ()):
        if not HTTP_HEADER_NAME.fullmatch(header["name"]):
            yield report_invalid(
                (*path, "httpGet", "httpHeaders", index), f"'{header['name']}' cannot be a header"
            )


def _check_lifecycle_hooks(path: FieldPath, lifecycle: Body) -> FoundProblems:
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            if len(lifecycle[name]) != 1:
                yield report_invalid(
                    (*path, name), "exactly one of exec, httpGet, sleep, tcpSocket is expected"
                )
            yield from _check_probe_or_hook_handler((*path, name), lifecycle[name])


# --- security ------------------------------------------------------------------------------------------


def check_security_context(path: FieldPath, context: Body) -> FoundProblems:
    """Check the security context of a container or a pod."""
    for name in ("seccompProfile", "appArmorProfile"):
        if name in context:
            yield from _check_container_security_profile((*path, name), context[name])
    if context.get("allowPrivilegeEscalation") is False:
        added = (context.get("capabilities") or {}).get("add") or ()
        if context.get("privileged"):
            yield report_invalid(
                (*path, "privileged"), "a privileged container needs allowPrivilegeEscalation"
            )
        if "CAP_SYS_ADMIN" in added:
            yield report_invalid(
                (*path, "capabilities", "add"), "CAP_SYS_ADMIN needs allowPrivilegeEscalation"
            )


def check_container_in_pod(path: FieldPath, one: Body, spec: Body) -> FoundProblems:
    """Check procMount and preStop sleep, which depend on the pod's users and grace period."""
    sleep = (((one.get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {}).get("seconds", 0)
    if not 0 <= sleep <= max(0, spec.get("terminationGracePeriodSeconds", 30)):
        yield report_invalid(
            (*path, "lifecycle", "preStop", "sleep"),
            f"a sleep of {sleep} s does not fit into the pod's grace period",
        )
    if (one.get("securityContext") or {}).get("procMount") == "Unmasked" and spec.get(
        "hostUsers"
    ) is not False:
        yield report_invalid(
            (*path, "securityContext", "procMount"),
            "Unmasked needs hostUsers: false",
            "Remove procMount; the Pod Security level restricted refuses Unmasked.",
        )


def _check_container_security_profile(path: FieldPath, profile: Body) -> FoundProblems:
    local = profile.get("localhostProfile")
    if profile["type"] != "Localhost":
        if local is not None:
            yield report_invalid((*path, "localhostProfile"), "localhostProfile is only for type Localhost")
    elif not local or local != local.strip():
        yield report_invalid((*path, "localhostProfile"), "type Localhost needs a localhostProfile")
    elif path[-1] == "seccompProfile":
        yield from check_relative_volume_path((*path, "localhostProfile"), local, "the profile")
