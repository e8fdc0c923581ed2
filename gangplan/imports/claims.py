"""Map claims of a source's pods (dynamic resource allocation) to the RDMA devices of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import PodRole
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.records import dataclass
from gangplan.spec.manager import map_device_classes_to_resources

# What a request may say if a run is to have the same; a request of resource.k8s.io/v1beta1 has no `exactly`.
_REQUEST = frozenset({"name", "deviceClassName", "allocationMode", "count"})
_ALL = "All"


@dataclass(frozen=True, slots=True)
class _Claimed:
    """What a claim asks for: devices of a class, `all` of a node or a count; or `why` a run cannot have it.

    `request` is the name of its only request.
    """

    request: str = ""
    device_class: str = ""
    count: int | str = 1
    why: str = ""


def collect_imported_claim_templates(others: Sequence[OtherObject]) -> dict[str, Mapping[str, Any]]:
    """Return what the ResourceClaimTemplates that came with a source ask for, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in others:
        metadata, spec = one.value.get("metadata"), one.value.get("spec")
        is_template = one.value.get("kind") == CLAIM_TEMPLATE_KIND
        if is_template and isinstance(metadata, dict) and isinstance(spec, dict):
            inner = spec.get("spec")
            devices = inner.get("devices") if isinstance(inner, dict) else None
            asked: Mapping[str, Any] = devices if isinstance(devices, dict) else {}
            # Of two that differ, a pod may mean either.
            known = found.setdefault(str(metadata.get("name")), asked)
            if known != asked:
                found[str(metadata.get("name"))] = {}
    return found


def map_imported_device_claims(draft: SpecDraft, role: PodRole, is_launcher: bool) -> None:
    """Map the claims that the program of a role uses: RDMA devices of a pool's class become network.rdma.

    Everything else becomes a question at its line.
    """
    uses: dict[str, list[SourceNode]] = {}
    for node in role.pod.main.resources_node["claims"].items():
        uses.setdefault(node["name"].text(), []).append(node)
    counts: dict[str, tuple[int, list[SourceNode]]] = {}
    for part in (role.pod.node, *role.pod.more):
        for claim in part["resourceClaims"].items():
            nodes = [*uses.pop(claim["name"].text(), []), claim]
            if len(nodes) == 1:
                claim.asked("the program's container does not use this claim")
            elif is_launcher:
                _ask_about_claim(nodes, "the launcher of a run has CPU and memory alone")
            else:
                _map_used_claim(draft, claim, nodes, counts)
    for nodes in uses.values():
        _ask_about_claim(nodes, "the pod has no claim of this name")
    for resource, (count, nodes) in counts.items():
        draft.add_rdma(resource, count, nodes)


def _map_used_claim(
    draft: SpecDraft,
    claim: SourceNode,
    nodes: list[SourceNode],
    counts: dict[str, tuple[int, list[SourceNode]]],
) -> None:
    claimed = _read_claim(draft, claim)
    classes = {
        name: resource
        for cluster in draft.home.clusters.values()
        for name, resource in map_device_classes_to_resources(cluster).items()
    }
    requests = {node["request"].text() for node in nodes if node["request"]}
    if claimed.why:
        _ask_about_claim(nodes, claimed.why)
    elif not requests <= {claimed.request}:
        _ask_about_claim(nodes, f"the claim has no request of this name, only {claimed.request}")
    elif claimed.device_class not in classes:
        _ask_about_claim(
            nodes,
            f"no pool of the team's clusters has rdma with deviceClass: {claimed.device_class}; where one does,"
            " network.rdma asks for its devices, and gpus asks for GPUs",
        )
    elif isinstance(claimed.count, int):
        resource = classes[claimed.device_class]
        count, places = counts.get(resource, (0, []))
        counts[resource] = (count + claimed.count, [*places, *nodes])
    else:
        for node in nodes:
            draft.put("network.rdma", "all", node)


def _read_claim(draft: SpecDraft, claim: SourceNode) -> _Claimed:
    """Return what the claim of a pod asks for, by its template."""
    name = claim["resourceClaimTemplateName"].text()
    if not name:
        return _Claimed(why="each worker of a run has a claim of its own, and none that exists already")
    devices = draft.work.device_claims.get(name)
    if devices is None:
        return _Claimed(
            why=f"ResourceClaimTemplate {name} is not among the files, so nobody knows which devices it means"
        )
    more = _Claimed(
        why=f"a run claims a number of devices of one class, and ResourceClaimTemplate {name} says more"
    )
    requests = devices.get("requests")
    if set(devices) != {"requests"} or not isinstance(requests, list) or len(requests) != 1:
        return more
    request = requests[0] if isinstance(requests[0], dict) else {}
    exactly = request.get("exactly", request)
    if not isinstance(exactly, dict) or not set(request) <= {*_REQUEST, "exactly"} or set(exactly) - _REQUEST:
        return more
    device_class, count = exactly.get("deviceClassName"), exactly.get("count", 1)
    mode = exactly.get("allocationMode", "ExactCount")
    if not isinstance(device_class, str) or type(count) is not int or count < 1:
        return more
    name_of_request = str(request.get("name"))
    if mode == _ALL:
        return _Claimed(name_of_request, device_class, "all")
    return _Claimed(name_of_request, device_class, count) if mode == "ExactCount" else more


def _ask_about_claim(nodes: Sequence[SourceNode], why: str) -> None:
    for node in nodes:
        node.asked(why)
