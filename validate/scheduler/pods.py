"""The pods of a run as kube-scheduler sees them: requests, labels, host ports, stage and phase.

Sources: Kubernetes v1.34.4 (pkg/apis/core/v1/defaults.go: limits and host ports as defaults;
plugin/pkg/admission/{limitranger,runtimeclass}), JobSet v0.12 (labels of pods, dependsOn), Kueue v0.19.2
(pkg/podset: what it adds to an admitted pod). Resources are counted as pkg/scheduler does: thousandths of a
core, else whole units, rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.kueue.model import PodSet
from gangplan.validate.kueue.request import RunRequest
from gangplan.validate.kueue.requests import LimitRanges, requests_of
from gangplan.validate.world import World, format_local_disk

DEFAULT_SCHEDULER = "default-scheduler"
TOPOLOGY = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
)
# OpenShift adds these labels to the node selectors of all pods of a namespace, and refuses pods that name
# other values (plugin OriginPodNodeEnvironment, since 3.0).
PROJECT_NODE_SELECTOR = "openshift.io/node-selector"
FUSE = "gke-gcsfuse/"
FUSE_REQUESTS = {"cpu": "250m", "memory": "256Mi"}
Port = tuple[str, str, int]  # address, protocol, port


@dataclass(frozen=True, slots=True)
class PodShape:
    """Equal pods. `stage` counts from 0: later stages start when all pods of the earlier ones run.

    `phase` also counts from 0: pods of a later phase start when those of the earlier ones have ended.
    """

    name: str
    count: int
    spec: Body
    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    ports: frozenset[Port]
    stage: int = 0
    phase: int = 0
    is_placed: bool = False  # by Kueue's topology placement, node by node
    index: int = 0

    @property
    def is_default(self) -> bool:
        """Whether kube-scheduler itself chooses the node."""
        return not self.is_placed and self.spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER


class _Admission:
    """The objects by which the API server changes pods: RuntimeClasses, and LimitRanges and annotations by
    namespace."""

    def __init__(self, world: World) -> None:
        self.classes = {one["metadata"]["name"]: one for one in world.of_kind("RuntimeClass")}
        self._bodies: dict[str, list[Body]] = {}
        for body in world.of_kind("LimitRange"):
            self._bodies.setdefault(body["metadata"].get("namespace", ""), []).append(body)
        self._ranges: dict[str, LimitRanges] = {}
        self.selectors = {
            body["metadata"]["name"]: _parse_project_node_selector(stated)
            for body in world.of_kind("Namespace")
            if (stated := (body["metadata"].get("annotations") or {}).get(PROJECT_NODE_SELECTOR))
        }

    def ranges(self, namespace: str) -> LimitRanges:
        if namespace not in self._ranges:
            self._ranges[namespace] = LimitRanges(self._bodies.get(namespace, ()))
        return self._ranges[namespace]


def _parse_project_node_selector(stated: str) -> dict[str, str]:
    """Return the labels of `a=b,c=d`, the only form that OpenShift reads."""
    pairs = (part.partition("=") for part in stated.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def bounds_of(world: World, request: RunRequest) -> Mapping[str, Body]:
    """Return all that the namespace of a run adds to its pods: LimitRange items by type, and node labels."""
    namespace = request.job["metadata"].get("namespace", "default") if request.job else ""
    admission = world.once(_Admission)
    selector = admission.selectors.get(namespace)
    items = admission.ranges(namespace).items
    return {**items, PROJECT_NODE_SELECTOR: selector} if selector else items


def list_pod_shapes_to_schedule(world: World, request: RunRequest) -> list[PodShape]:
    """Return the pods of a run by pod set. Raises `NeverError` if its runtime does not exist."""
    body = request.job
    if body is None:
        return []
    namespace = body["metadata"].get("namespace", "default")
    admission = world.once(_Admission)
    ranges, classes = admission.ranges(namespace), admission.classes
    return [
        _build_pod_shape_for_scheduler(
            one,
            namespace,
            _build_pod_labels_for_scheduler(body, one),
            ranges,
            classes,
            request.waits.get(one.name, (0, 0)),
            dict(world.manager.device_classes),
        )
        for one in request.pod_sets()
        if one.count > 0
    ]


def add_project_node_selector(world: World, one: PodShape) -> PodShape:
    """Return pods with the node labels of their OpenShift project; another value matches no node."""
    asked = world.once(_Admission).selectors.get(one.namespace)
    if asked is None:
        return one
    own: Mapping[str, str] = one.spec.get("nodeSelector") or {}
    wrong = {key: f"{own[key]} and {value}" for key, value in asked.items() if own.get(key, value) != value}
    return replace(one, spec={**one.spec, "nodeSelector": {**own, **asked, **wrong}})


def build_plain_pods_for_scheduler(name: str, count: int, pod: Body) -> PodShape:
    """Return equal pods without a job: `pod` is a Pod as submitted to an API server."""
    metadata = pod["metadata"]
    one = PodSet(name, count, {"spec": pod["spec"], "metadata": metadata})
    labels = metadata.get("labels") or {}
    return _build_pod_shape_for_scheduler(
        one, metadata.get("namespace", "default"), labels, LimitRanges(()), {}, (0, 0), {}
    )


def _build_pod_shape_for_scheduler(
    one: PodSet,
    namespace: str,
    labels: Mapping[str, str],
    ranges: LimitRanges,
    classes: Mapping[str, Body],
    waits: tuple[int, int],
    device_classes: Mapping[str, str],
) -> PodShape:
    spec = _apply_api_server_defaults_to_pod(one.spec, ranges, classes)
    requests = {key: units for key, units in requests_of(spec).items() if units}
    requests |= _sum_node_local_volume_bytes(spec)
    if device_classes:
        requests = _mark_requests_without_claim(requests, device_classes)
    for device_class, count in one.claimed:
        if resource := device_classes.get(device_class):
            requests[resource] = requests.get(resource, 0) + count
    for key, units in _compute_gcsfuse_sidecar_requests(one.annotations).items():
        requests[key] = requests.get(key, 0) + units
    placed = any(key in one.annotations for key in TOPOLOGY)
    ports = frozenset(_list_host_ports_of_pod(spec))
    return PodShape(
        one.name,
        one.count,
        spec,
        namespace,
        labels,
        requests,
        ports,
        *waits,
        is_placed=placed,
        index=one.index,
    )


def _mark_requests_without_claim(
    requests: Mapping[str, int], device_classes: Mapping[str, str]
) -> dict[str, int]:
    """Return the requests of containers, with devices that no node offers to a request under another name.

    The driver of their class gives them to claims alone.
    """
    claimable = set(device_classes.values())
    return {f"{key} without a claim" if key in claimable else key: units for key, units in requests.items()}


def _compute_gcsfuse_sidecar_requests(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return CPU and memory of the container that GKE's webhook adds for Cloud Storage FUSE.

    They come from annotations or the webhook's defaults (gcs-fuse-csi-driver, pkg/webhook; GKE's page on the
    sidecar). Kueue never sees the container. Its disk is ignored, since nodes without a stated disk have
    some.
    """
    if annotations.get(f"{FUSE}volumes") != "true":
        return {}
    found = {}
    for name, least in FUSE_REQUESTS.items():
        limit = annotations.get(f"{FUSE}{name}-limit", "0")
        stated = annotations.get(f"{FUSE}{name}-request") or (limit if limit != "0" else least)
        nano = parse_accepted_amount(stated).nano
        found[name] = nano // 10**6 if name == "cpu" else nano // 10**9
    return found


def _sum_node_local_volume_bytes(spec: Body) -> dict[str, int]:
    """Return the bytes of local volumes that are created for one pod, by their storage classes."""
    found: dict[str, int] = {}
    for volume in spec.get("volumes") or ():
        claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
        size = ((claim.get("resources") or {}).get("requests") or {}).get("storage")
        if size is not None and claim.get("storageClassName"):
            key = format_local_disk(claim["storageClassName"])
            found[key] = found.get(key, 0) + parse_accepted_amount(size).value()
    return found


def _apply_api_server_defaults_to_pod(spec: Body, ranges: LimitRanges, classes: Mapping[str, Body]) -> Body:
    """Return the pod's spec as the API server stores it, with LimitRange and RuntimeClass applied."""
    out = {**spec}
    for kind in ("initContainers", "containers"):
        out[kind] = [
            {**one, "resources": _fill_resource_defaults(one.get("resources") or {}, ranges.of("Container"))}
            for one in spec.get(kind) or ()
        ]
    if spec.get("resources"):
        out["resources"] = _fill_resource_defaults(spec["resources"], {})
    chosen = classes.get(spec.get("runtimeClassName", ""))
    if chosen is not None:
        overhead, scheduling = chosen.get("overhead") or {}, chosen.get("scheduling") or {}
        if overhead.get("podFixed"):
            out["overhead"] = overhead["podFixed"]
        out["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **(scheduling.get("nodeSelector") or {})}
        out["tolerations"] = [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
    return out


def _fill_resource_defaults(given: Body, item: Body) -> Body:
    """Fill in defaults; a container's own limits become its requests before a LimitRange applies."""
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    requests = {**(item.get("defaultRequest") or {}), **limits, **requests}
    return {"limits": {**(item.get("default") or {}), **limits}, "requests": requests}


def _list_host_ports_of_pod(spec: Body) -> list[Port]:
    """Return the host ports; with hostNetwork every port of a container is one."""
    sidecars = [one for one in spec["initContainers"] if one.get("restartPolicy") == "Always"]
    found = []
    for container in [*sidecars, *spec["containers"]]:
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if spec.get("hostNetwork") else 0)
            if number:
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(number)))
    return found


def has_host_port_clash(some: frozenset[Port], others: frozenset[Port]) -> bool:
    """Return whether two pods need one host port; 0.0.0.0 is every address (HostPortInfo.CheckConflict)."""
    return any(
        protocol == other_protocol
        and port == other_port
        and (address == other_address or "0.0.0.0" in (address, other_address))
        for address, protocol, port in some
        for other_address, other_protocol, other_port in others
    )


def _build_pod_labels_for_scheduler(body: Body, one: PodSet) -> dict[str, str]:
    """Return the labels of pods: the template's, and those of JobSet and Job that all pods of a set share."""
    own = (one.template.get("metadata") or {}).get("labels") or {}
    name = body["metadata"]["name"]
    if body["kind"] == "Job":
        return {**own, "batch.kubernetes.io/job-name": name, "job-name": name}
    job = f"{name}-{one.name}-0"
    return {
        **own,
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": one.name,
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "batch.kubernetes.io/job-name": job,
        "job-name": job,
    }
