"""Read a cluster into a snapshot: a file in the form of `kubectl get ... -o json`, with additional facts.

Only what is named here is read: no Secret, no ConfigMap, no environment of any pod. Versions are those of the
controllers' images (or of their label app.kubernetes.io/version); the fields of a CRD come from /openapi/v3,
which every logged-in user may read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.gitops.health import TRAINJOB_HEALTH, find_health_state
from gangplan.live.access import Access, ForbiddenError
from gangplan.live.pools import NodeList, summarise_live_node_pools
from gangplan.live.rights import Right
from gangplan.live.snapshot import Snapshot
from gangplan.model import backend
from gangplan.objects import Body
from gangplan.spec.cluster import Cluster

_CORE, _KUEUE, _TRAINER = "", "kueue.x-k8s.io", backend.TRAINJOB.group
OBSERVE_RIGHTS = (
    Right(_CORE, "nodes", "list"),
    Right(_CORE, "resourcequotas", "list"),
    Right("apps", "deployments", "list"),
    Right("storage.k8s.io", "storageclasses", "list"),
    Right("node.k8s.io", "runtimeclasses", "list"),
    Right(_KUEUE, "clusterqueues", "list"),
    Right(_KUEUE, "localqueues", "list"),
    Right(_KUEUE, "resourceflavors", "list"),
    Right(_TRAINER, backend.TRAINJOB.plural, "list"),
)
#: API groups whose kinds are listed with their versions.
GROUPS = (
    _TRAINER,
    "jobset.x-k8s.io",
    _KUEUE,
    "batch.volcano.sh",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
    "kubeflow.org",
    "external-secrets.io",
    "monitoring.coreos.com",
)
#: Images of controllers, as their projects publish them, by the names of `versions` in cluster.yaml.
_IMAGES = {
    "trainer": re.compile(r"(^|/)trainer-controller-manager[:@]"),
    "jobset": re.compile(r"(^|/)jobset[:@]"),
    "kueue": re.compile(r"(^|/)kueue[:@]"),
    "volcano": re.compile(r"(^|/)vc-controller-manager[:@]"),
    "argocd": re.compile(r"(^|/)argocd[:@]"),
    "gpuOperator": re.compile(r"(^|/)gpu-operator[:@]"),
    "mpiOperator": re.compile(r"(^|/)mpi-operator[:@]"),
    "externalSecrets": re.compile(r"(^|/)external-secrets[:@]"),
}
_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)")
_RUN = "gangplan.dev/run"
#: Fields kept of an object's spec and status: only quotas and usage.
_KEPT = {
    "ClusterQueue": (
        ("cohort", "cohortName", "resourceGroups", "stopPolicy"),
        ("flavorsUsage", "flavorsReservation", "pendingWorkloads", "reservingWorkloads", "admittedWorkloads"),
    ),
    "LocalQueue": (
        ("clusterQueue", "stopPolicy"),
        ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads"),
    ),
    "ResourceFlavor": (("nodeLabels", "nodeTaints", "tolerations", "topologyName"), ()),
    "ResourceQuota": ((), ("hard", "used")),
}


def observe_cluster(access: Access, name: str, spec: Cluster | None, observed: str) -> Snapshot:
    """Return the snapshot of a cluster at a time (`observed`, RFC 3339); without its file, it has no pools.
    Raises ToolError.

    Rights that are missing are named in `unseen`; if everything is forbidden, the first refusal is raised.
    """
    reader = _Reader(access)
    version = str(access.read("/version").get("gitVersion", ""))
    groups = {str(one["name"]): one for one in access.read("/apis").get("groups", ())}
    crds, fields = _list_served_kinds(access, groups), _list_served_trainjob_fields(access, groups)
    kueue = _find_preferred_api_version(groups, _KUEUE)
    items = [
        *(
            _reduce_quota_object(one, "ClusterQueue", kueue)
            for one in reader.list(f"/apis/{kueue}/clusterqueues", kueue)
        ),
        *(
            _reduce_quota_object(one, "LocalQueue", kueue)
            for one in reader.list(f"/apis/{kueue}/localqueues", kueue)
        ),
        *(
            _reduce_quota_object(one, "ResourceFlavor", kueue)
            for one in reader.list(f"/apis/{kueue}/resourceflavors", kueue)
        ),
        *(_reduce_quota_object(one, "ResourceQuota", "v1") for one in reader.list("/api/v1/resourcequotas")),
    ]
    trainer = _find_preferred_api_version(groups, _TRAINER)
    runs = reader.list(f"/apis/{trainer}/trainjobs", trainer)
    items += [
        _reduce_run_object(one, trainer) for one in runs if _RUN in (one["metadata"].get("labels") or {})
    ]
    nodes = reader.list("/api/v1/nodes")
    deployments = reader.list("/apis/apps/v1/deployments")
    classes = reader.list("/apis/storage.k8s.io/v1/storageclasses")
    runtimes = reader.list("/apis/node.k8s.io/v1/runtimeclasses")
    if reader.refusals and not reader.answers:
        raise reader.refusals[0]
    return Snapshot(
        cluster=name,
        observed=observed,
        versions={
            "kubernetes": _parse_component_version(version),
            **_find_running_controller_versions(deployments),
        },
        crds=crds,
        fields=fields,
        nodes=summarise_live_node_pools(NodeList(nodes), spec) if spec else [],
        topology=NodeList(nodes).levels([level.label for level in spec.topology]) if spec else {},
        storage_classes={one["metadata"]["name"]: _reduce_storage_class(one) for one in classes},
        runtime_classes=sorted(one["metadata"]["name"] for one in runtimes),
        train_jobs=_count_live_trainjobs_by_state(runs),
        unseen=sorted({str(one.right) for one in reader.refusals}),
        items=sorted(items, key=_build_object_sort_key),
        refusal=reader.refusals[0] if reader.refusals else None,
    )


class _Reader:
    """A reader of lists that records refusals."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.refusals: list[ForbiddenError] = []
        self.answers = 0

    def list(self, path: str, needs: str = "v1") -> list[Body]:
        """Return the items at a path; none if the group is not served or may not be listed."""
        if not needs:
            return []
        try:
            found = self.access.items(path)
        except ForbiddenError as error:
            self.refusals.append(error)
            return []
        self.answers += 1
        return found


def _find_preferred_api_version(groups: dict[str, Body], group: str) -> str:
    """Return `group/version` as the server prefers it; empty if it does not serve the group."""
    found = groups.get(group, {}).get("preferredVersion", {}).get("groupVersion", "")
    return str(found)


def _list_served_kinds(access: Access, groups: dict[str, Body]) -> dict[str, list[str]]:
    """Return the groups' resources (`trainjobs.trainer.kubeflow.org`) with the versions that serve them."""
    found: dict[str, list[str]] = {}
    for group in GROUPS:
        for version in groups.get(group, {}).get("versions", ()):
            listed = access.find(f"/apis/{version['groupVersion']}") or {}
            for one in listed.get("resources", ()):
                if "/" not in one["name"]:
                    found.setdefault(f"{one['name']}.{group}", []).append(str(version["version"]))
    return {name: sorted(versions) for name, versions in found.items()}


def _list_served_trainjob_fields(access: Access, groups: dict[str, Body]) -> dict[str, list[str]]:
    """Return the fields of a TrainJob's spec, which distinguish the lines of Trainer."""
    version = _find_preferred_api_version(groups, _TRAINER)
    document = access.find(f"/openapi/v3/apis/{version}") if version else None
    schemas = ((document or {}).get("components") or {}).get("schemas") or {}
    for name, schema in schemas.items():
        if name.endswith(f".{backend.TRAINJOB.kind}"):
            return {backend.TRAINJOB.kind: sorted(_iterate_schema_properties(schema, "spec"))}
    return {}


def _iterate_schema_properties(schema: Body, name: str) -> Iterator[str]:
    spec = (schema.get("properties") or {}).get(name) or {}
    for part in (spec, *(spec.get("allOf") or ())):
        yield from part.get("properties") or ()


def _find_running_controller_versions(deployments: list[Body]) -> dict[str, str]:
    """Return the versions of running controllers, by their images."""
    found: dict[str, str] = {}
    for body in deployments:
        pod = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
        labels = body["metadata"].get("labels") or {}
        for container in pod.get("containers") or ():
            image = str(container.get("image", ""))
            for name, pattern in _IMAGES.items():
                if pattern.search(image):
                    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
                    stated = _parse_component_version(tag) or _parse_component_version(
                        str(labels.get("app.kubernetes.io/version", ""))
                    )
                    if stated:
                        found[name] = stated
    return found


def _parse_component_version(text: str) -> str:
    match = _VERSION.match(text)
    return match[1] if match else ""


def _reduce_quota_object(body: Body, kind: str, version: str) -> Body:
    """Return the parts of an object that concern quotas and usage."""
    kept: Body = {"apiVersion": version, "kind": kind, "metadata": _select_name_and_namespace(body)}
    for part, names in zip(("spec", "status"), _KEPT[kind], strict=True):
        values = {name: value for name, value in (body.get(part) or {}).items() if name in names}
        if values:
            kept[part] = values
    return kept


def _select_name_and_namespace(body: Body) -> Body:
    return {name: body["metadata"][name] for name in ("name", "namespace") if name in body["metadata"]}


def _reduce_run_object(body: Body, version: str) -> Body:
    """Return the parts of a gangplan run that `retire --finished` reads."""
    metadata = body["metadata"]
    ours = {
        place: {name: value for name, value in (metadata.get(place) or {}).items() if name in wanted}
        for place, wanted in (
            ("labels", (_RUN, "gangplan.dev/team", "gangplan.dev/job")),
            ("annotations", ("gangplan.dev/state",)),
        )
    }
    conditions = [
        {"type": one["type"], "status": one["status"]}
        for one in (body.get("status") or {}).get("conditions") or ()
    ]
    return {
        "apiVersion": version,
        "kind": backend.TRAINJOB.kind,
        "metadata": {
            **_select_name_and_namespace(body),
            **{place: found for place, found in ours.items() if found},
        },
        "status": {"conditions": sorted(conditions, key=lambda one: str(one["type"]))},
    }


def _reduce_storage_class(body: Body) -> Body:
    notes = body["metadata"].get("annotations") or {}
    is_default = notes.get("storageclass.kubernetes.io/is-default-class") == "true"
    return {"provisioner": str(body.get("provisioner", "")), "default": is_default}


def _count_live_trainjobs_by_state(runs: list[Body]) -> dict[str, dict[str, int]]:
    """Return the number of TrainJobs in each namespace, by state."""
    found: dict[str, dict[str, int]] = {}
    for body in runs:
        words = found.setdefault(body["metadata"]["namespace"], {})
        word = find_health_state(TRAINJOB_HEALTH, body).word
        words[word] = words.get(word, 0) + 1
    return found


def _build_object_sort_key(body: Mapping[str, Any]) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]
