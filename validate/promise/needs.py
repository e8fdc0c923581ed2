"""Checks of claims, secrets, config maps and templates that a patch adds to pods and that no known file has.

The kubelet starts no container before each of them exists (v1.34, pkg/kubelet and pkg/volume).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRun, find_generated_pods
from gangplan.validate.promise.words import report_weakened_plan

CLAIM, SECRET, MAP = "claim", "secret", "config map"
DEVICES, DEVICES_OF_ALL = "ResourceClaimTemplate", "ResourceClaim"
# Config maps of every namespace: the certificates of Kubernetes, and of OpenShift's services.
EVERYWHERE = {(MAP, "kube-root-ca.crt"), (MAP, "openshift-service-ca.crt")}
Need = tuple[str, str, FieldPath]


def check_promised_pods_have_needed_objects(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Report required objects that the plan does not have; pods do not wait for `optional: true`."""
    pods = list(find_generated_pods(laid).values())
    if not pods:
        return
    roles = [role for role in laid.present if not any(role.spec is pod for pod in pods)]
    planned = {need[:2] for pod in (pods if roles else ()) for need in _find_pod_object_needs(pod)}
    for role in roles:  # roles whose pods are unchanged are skipped
        told: set[tuple[str, str]] = set()
        for kind, name, path in _find_pod_object_needs(role.spec):
            if (kind, name) in planned | EVERYWHERE | told:
                continue
            told.add((kind, name))
            home = laid.unit.job.namespace
            message = f"{role.title} would never start unless namespace {home} has a {kind} '{name}'"
            help = {
                CLAIM: "Declare it in the team's file and mount it by data, or make sure that it exists.",
                SECRET: "Declare it in the team's file and name it in secrets, or write optional: true.",
                MAP: "Make sure that it exists, or write optional: true.",
                DEVICES: "Make sure that it exists, and that Kueue's deviceClassMappings have its classes.",
                DEVICES_OF_ALL: "Make sure that it exists, and that pods may share it: no quota counts it.",
            }[kind]
            yield laid.runtime, report_weakened_plan((*role.pod, *path), message, help)


def _find_pod_object_needs(spec: Body) -> Iterator[Need]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        at: FieldPath = ("volumes", index)
        if claim := volume.get("persistentVolumeClaim"):
            yield CLAIM, claim["claimName"], (*at, "persistentVolumeClaim")
        yield from _find_secret_configmap_needs(at, volume, "secretName")
        for number, one in enumerate((volume.get("projected") or {}).get("sources") or ()):
            yield from _find_secret_configmap_needs((*at, "projected", "sources", number), one, "name")
    for index, one in enumerate(spec.get("resourceClaims") or ()):
        for key, kind in (("resourceClaimTemplateName", DEVICES), ("resourceClaimName", DEVICES_OF_ALL)):
            if one.get(key):
                yield kind, one[key], ("resourceClaims", index, key)
    for field in ("initContainers", "containers"):
        for index, box in enumerate(spec.get(field) or ()):
            for number, one in enumerate(box.get("envFrom") or ()):
                inside = {"secret": one.get("secretRef"), "configMap": one.get("configMapRef")}
                yield from _find_secret_configmap_needs(
                    (field, index, "envFrom", number), inside, "name", "Ref"
                )
            for number, one in enumerate(box.get("env") or ()):
                value = one.get("valueFrom") or {}
                inside = {"secret": value.get("secretKeyRef"), "configMap": value.get("configMapKeyRef")}
                yield from _find_secret_configmap_needs(
                    (field, index, "env", number, "valueFrom"), inside, "name", "KeyRef"
                )


def _find_secret_configmap_needs(at: FieldPath, one: Body, key: str, ending: str = "") -> Iterator[Need]:
    secret: dict[str, Any] = one.get("secret") or {}
    if secret.get(key) and not secret.get("optional"):
        yield SECRET, secret[key], (*at, f"secret{ending}")
    found: dict[str, Any] = one.get("configMap") or {}
    if found.get("name") and not found.get("optional"):
        yield MAP, found["name"], (*at, f"configMap{ending}")
