"""Service meshes and other injectors that a patch lets in: pods that never start, become ready, or complete.

gangplan's pods stay out of Istio's sidecars by a label, and no spec can ask for an injector. A patch of the
namespace, or of a pod template, can.

Sources: the manuals of Linkerd 2 (Automatic Proxy Injection), Istio 1.24 (Installing the Sidecar; Ambient and
Kubernetes NetworkPolicy), Kuma, Consul on Kubernetes, Dapr and the Vault Agent Injector (their annotations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.model.backend import BACKEND_BY_HOLDER
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.pods import MESH_JOINED
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, find_pod_templates

_SIDECAR = (
    "unless it is a native sidecar, its container outlives the program, so that the run never completes"
)
_PROXY = f"{_SIDECAR}, and the capabilities that it needs are refused where Pod Security is restricted"
_PROBES = (
    "the kubelet's probes then come from 169.254.7.127, which the run's NetworkPolicy does not let in, so"
    " that no worker becomes ready"
)
_YES, _NO = frozenset({"enabled", "true", "yes"}), frozenset({"disabled", "false", "no"})


@dataclass(frozen=True, slots=True)
class Injector:
    """An injector that reads a label or annotation.

    `on` are values that ask for it, `off` those that keep a pod out. `of_namespace` is the key on namespaces
    (empty if only pods ask for it), `out` the value that keeps a pod out. An empty `on_namespace` means any
    value. If a pod has the annotation `harmless` with the value "true", nothing outlives the program.
    """

    name: str
    key: str
    out: str
    then: str
    of_namespace: str = ""
    on: frozenset[str] = _YES
    off: frozenset[str] = _NO
    on_namespace: frozenset[str] = _YES
    where: str = "annotations"
    harmless: str = ""


_ISTIO_OUT = "sidecar.istio.io/inject"
INJECTORS = (
    Injector("Linkerd", "linkerd.io/inject", "disabled", _PROXY, "linkerd.io/inject", on=_YES | {"ingress"}),
    Injector("Istio", _ISTIO_OUT, '"false"', _PROXY, "istio-injection", where="labels"),
    Injector(
        "Istio", _ISTIO_OUT, '"false"', _PROXY, "istio.io/rev", on_namespace=frozenset(), where="labels"
    ),
    Injector(
        "Istio's ambient mode",
        *("istio.io/dataplane-mode", "none", _PROBES, "istio.io/dataplane-mode"),
        on=frozenset({"ambient"}),
        off=frozenset({"none"}),
        on_namespace=frozenset({"ambient"}),
        where="labels",
    ),
    Injector(
        *("Kuma", "kuma.io/sidecar-injection", "disabled", _PROXY, "kuma.io/sidecar-injection"),
        where="labels",
    ),
    Injector("Consul", "consul.hashicorp.com/connect-inject", '"false"', _PROXY),
    Injector("Dapr", "dapr.io/enabled", '"false"', _SIDECAR),
    Injector(
        *("Vault's agent", "vault.hashicorp.com/agent-inject", '"false"', _SIDECAR),
        harmless="vault.hashicorp.com/agent-pre-populate-only",
    ),
)


def check_service_mesh_injection(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Yield the run's pod templates to which an injector adds a container or a network."""
    for index, body in enumerate(run.bodies):
        if body["kind"] not in BACKEND_BY_HOLDER:
            continue
        name = body["metadata"].get("namespace", "")
        namespace = _merge_labels_and_annotations((world.find("Namespace", name) or {}).get("metadata") or {})
        for at, pod in find_pod_templates(body):
            own, told = _merge_labels_and_annotations(pod.get("metadata") or {}), set[str]()
            for one in INJECTORS:
                if one.name not in told and (
                    said := _describe_cause_of_mesh_injection(one, own, namespace, name)
                ):
                    told.add(one.name)
                    yield index, _report_mesh_injection(one, at, said)


def _merge_labels_and_annotations(metadata: Body) -> dict[str, str]:
    """Merge labels and annotations: injectors moved from one to the other over time, and read both."""
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def _describe_cause_of_mesh_injection(
    one: Injector, own: Mapping[str, str], namespace: Mapping[str, str], name: str
) -> str:
    """Return what lets an injector in: the pod's own mark, else the namespace's; "" if nothing does."""
    stated = own.get(one.key, "")
    if stated in one.off or own.get(one.harmless) == "true":
        return ""
    if stated in one.on:
        return f"{one.key}: {stated} on the pods"
    value = namespace.get(one.of_namespace) if one.of_namespace else None
    if value is None or (one.on_namespace and value not in one.on_namespace):
        return ""
    return f"{one.of_namespace}: {value} on namespace '{name}'"


def _report_mesh_injection(one: Injector, at: FieldPath, said: str) -> Problem:
    return Problem(
        (*at, "metadata", one.where, one.key),
        f"{one.name} takes these pods in ({said}): {one.then}",
        f"Remove that, or add {one.key}: {one.out} to the {one.where} of the pod templates by a patch.",
        MESH_JOINED,
    )
