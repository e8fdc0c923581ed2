"""Checks of one container: resources, environment, mounts, ports, probes (core/validation of Kubernetes)."""

from __future__ import annotations

import re
from typing import Any

from gangplan.validate.apiserver.forms import (
    HEADER,
    Body,
    Found,
    Path,
    amount,
    is_port_name,
    is_qualified,
    is_subdomain,
    problem,
    relative_path,
    twice,
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


def container(path: Path, one: Body, volumes: dict[str, Body], claims: set[str]) -> Found:
    """Check a container by itself. `volumes` and `claims` are those of its pod."""
    if one.get("image", "").strip() != one.get("image", ""):
        yield problem((*path, "image"), f"image '{one['image']}' starts or ends with a space")
    if not one.get("image"):
        yield problem((*path, "image"), "a container needs an image")
    if "resources" in one:
        yield from resources((*path, "resources"), one["resources"], claims)
    for index, variable in enumerate(one.get("env") or ()):
        if variable.get("valueFrom"):
            yield from source((*path, "env", index, "valueFrom"), variable["valueFrom"])
    for index, entry in enumerate(one.get("envFrom") or ()):
        yield from _env_from((*path, "envFrom", index), entry)
    yield from _mounts(path, one, volumes)
    yield from _ports((*path, "ports"), one.get("ports") or [])
    for name in ("readinessProbe", "livenessProbe", "startupProbe"):
        if name in one:
            yield from _probe((*path, name), one[name], name)
    yield from _lifecycle((*path, "lifecycle"), one.get("lifecycle") or {})
    if "securityContext" in one:
        yield from security((*path, "securityContext"), one["securityContext"])


# --- resources -----------------------------------------------------------------------------------------


def resources(path: Path, wanted: Body, claims: set[str]) -> Found:
    """Check names, whole numbers, and requests against limits."""
    requests, limits = wanted.get("requests") or {}, wanted.get("limits") or {}
    for part, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            if name not in STANDARD:
                yield from _resource((*path, part, name), name, value)
    for name, value in requests.items():
        is_shared = name in STANDARD or ("kubernetes.io/" in name)
        if name not in limits:
            if not is_shared:
                yield problem(
                    (*path, "limits", name), f"{name} is requested without a limit; it needs the same limit"
                )
        elif value != limits[name]:
            wants, may = amount(value), amount(limits[name])
            if wants > may or (not is_shared and wants != may):
                said = "more than" if is_shared else "not"
                yield problem(
                    (*path, "requests", name), f"{name} request {value} is {said} the limit {limits[name]}"
                )
    for index, claim in enumerate(wanted.get("claims") or ()):
        if claim["name"] not in claims:
            yield problem((*path, "claims", index), f"the pod has no resourceClaim '{claim['name']}'")


def _resource(path: Path, name: str, value: Any) -> Found:
    if name.startswith("hugepages-"):
        page = amount(name.removeprefix("hugepages-"))
        if page and amount(value).value() % page.value():
            yield problem(path, f"{value} is not a multiple of the page size of {name}")
        return
    if "/" not in name:
        yield problem(
            path,
            f"'{name}' is not a resource of containers",
            "Other resources have a prefix: example.com/name.",
        )
    elif name.startswith("requests.") or not is_qualified(f"requests.{name}"):
        yield problem(path, f"'{name}' cannot be the name of an extended resource")
    elif "kubernetes.io/" not in name and not _is_whole(value):
        yield problem(path, f"{name} is counted in whole numbers, not {value}")


def _is_whole(value: Any) -> bool:
    counted = amount(value)
    return counted.value() * 1000 == counted.milli()


# --- environment ---------------------------------------------------------------------------------------


def source(path: Path, body: Body) -> Found:
    """Check the source of a variable's value."""
    field = body.get("fieldRef")
    if field:
        if field.get("apiVersion", "v1") != "v1":
            yield problem((*path, "fieldRef", "apiVersion"), "fields are read from version v1")
        if not FIELDS.fullmatch(field["fieldPath"]):
            yield problem(
                (*path, "fieldRef", "fieldPath"), f"'{field['fieldPath']}' cannot be given to a container"
            )
    resource = body.get("resourceFieldRef")
    if resource:
        yield from _resource_field((*path, "resourceFieldRef"), resource)
    for name in ("secretKeyRef", "configMapKeyRef"):
        if name in body:
            yield from _key((*path, name), body[name])


def _resource_field(path: Path, body: Body) -> Found:
    found = RESOURCE_FIELDS.fullmatch(body["resource"])
    if not found:
        yield problem((*path, "resource"), f"'{body['resource']}' cannot be given to a container")
    elif "divisor" in body:
        allowed = DIVISORS["cpu" if found[2] == "cpu" else ""]
        if str(body["divisor"]) not in allowed and amount(body["divisor"]).value():
            yield problem(
                (*path, "divisor"), f"divisor {body['divisor']} is not one of {', '.join(sorted(allowed))}"
            )


def _key(path: Path, body: Body) -> Found:
    if not is_subdomain(body.get("name", "")):
        yield problem((*path, "name"), f"'{body.get('name', '')}' cannot be the name of an object")
    if body["key"] in (".", "..") or body["key"].startswith(".."):
        yield problem((*path, "key"), f"'{body['key']}' cannot be a key")


def _env_from(path: Path, body: Body) -> Found:
    sources = [name for name in ("secretRef", "configMapRef") if name in body]
    if len(sources) != 1:
        yield problem(path, "exactly one of secretRef and configMapRef is expected")
    for name in sources:
        if not is_subdomain(body[name].get("name", "")):
            yield problem(
                (*path, name, "name"), f"'{body[name].get('name', '')}' cannot be the name of an object"
            )


# --- mounts and ports ----------------------------------------------------------------------------------


def _mounts(path: Path, one: Body, volumes: dict[str, Body]) -> Found:
    mounts = one.get("volumeMounts") or []
    is_privileged = (one.get("securityContext") or {}).get("privileged")
    for index, mount in enumerate(mounts):
        at = (*path, "volumeMounts", index)
        if mount["name"] not in volumes:
            yield problem((*at, "name"), f"the pod has no volume '{mount['name']}'")
        for name in ("subPath", "subPathExpr"):
            yield from relative_path((*at, name), mount.get(name) or "", name)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield problem((*at, "subPathExpr"), "either subPath or subPathExpr, not both")
        if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
            yield problem((*at, "mountPropagation"), "Bidirectional is only for privileged containers")
        if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible") and not mount.get("readOnly"):
            yield problem((*at, "recursiveReadOnly"), "recursiveReadOnly needs readOnly: true")
    for index, device in enumerate(one.get("volumeDevices") or ()):
        if "persistentVolumeClaim" not in volumes.get(device["name"], {}):
            yield problem((*path, "volumeDevices", index), f"'{device['name']}' is not a claim of the pod")


def _ports(path: Path, ports: list[Body]) -> Found:
    yield from twice(path, ports, lambda port: port.get("name"), "the port name")
    for index, port in enumerate(ports):
        if "name" in port and not is_port_name(port["name"]):
            yield problem((*path, index, "name"), f"'{port['name']}' cannot be the name of a port")


# --- probes --------------------------------------------------------------------------------------------


def _probe(path: Path, probe: Body, name: str) -> Found:
    yield from _handler(path, probe)
    if name != "readinessProbe" and probe.get("successThreshold", 1) > 1:
        yield problem((*path, "successThreshold"), f"the successThreshold of a {name} must be 1")
    if name == "readinessProbe" and "terminationGracePeriodSeconds" in probe:
        yield problem((*path, "terminationGracePeriodSeconds"), "a readinessProbe ends nothing")


def _handler(path: Path, body: Body) -> Found:
    if "exec" in body and not body["exec"].get("command"):
        yield problem((*path, "exec", "command"), "a command is expected")
    for name in ("tcpSocket", "httpGet"):
        port = body.get(name, {}).get("port", 1)
        if isinstance(port, str) and not is_port_name(port):
            yield problem((*path, name, "port"), f"'{port}' cannot be the name of a port")
    for index, header in enumerate(body.get("httpGet", {}).get("httpHeaders") or ()):
        if not HEADER.fullmatch(header["name"]):
            yield problem((*path, "httpGet", "httpHeaders", index), f"'{header['name']}' cannot be a header")


def _lifecycle(path: Path, lifecycle: Body) -> Found:
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            if len(lifecycle[name]) != 1:
                yield problem((*path, name), "exactly one of exec, httpGet, sleep, tcpSocket is expected")
            yield from _handler((*path, name), lifecycle[name])


# --- security ------------------------------------------------------------------------------------------


def security(path: Path, context: Body) -> Found:
    """Check the security context of a container or a pod."""
    for name in ("seccompProfile", "appArmorProfile"):
        if name in context:
            yield from _profile((*path, name), context[name])
    if context.get("allowPrivilegeEscalation") is False:
        added = (context.get("capabilities") or {}).get("add") or ()
        if context.get("privileged"):
            yield problem((*path, "privileged"), "a privileged container needs allowPrivilegeEscalation")
        if "CAP_SYS_ADMIN" in added:
            yield problem((*path, "capabilities", "add"), "CAP_SYS_ADMIN needs allowPrivilegeEscalation")


def beside_pod(path: Path, one: Body, spec: Body) -> Found:
    """Check procMount and preStop sleep, which depend on the pod's users and grace period."""
    sleep = (((one.get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {}).get("seconds", 0)
    if not 0 <= sleep <= max(0, spec.get("terminationGracePeriodSeconds", 30)):
        yield problem(
            (*path, "lifecycle", "preStop", "sleep"),
            f"a sleep of {sleep} s does not fit into the pod's grace period",
        )
    if (one.get("securityContext") or {}).get("procMount") == "Unmasked" and spec.get(
        "hostUsers"
    ) is not False:
        yield problem((*path, "securityContext", "procMount"), "Unmasked needs hostUsers: false")


def _profile(path: Path, profile: Body) -> Found:
    local = profile.get("localhostProfile")
    if profile["type"] != "Localhost":
        if local is not None:
            yield problem((*path, "localhostProfile"), "localhostProfile is only for type Localhost")
    elif not local or local != local.strip():
        yield problem((*path, "localhostProfile"), "type Localhost needs a localhostProfile")
    elif path[-1] == "seccompProfile":
        yield from relative_path((*path, "localhostProfile"), local, "the profile")
