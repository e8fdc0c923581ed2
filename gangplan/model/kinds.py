"""The kinds of object that gangplan renders, one row each.

A row says which part of a cluster's tree the kind is in, its wave, which fields no update may change, what
the project of an engine allows, and who may read it. What creates pods is in backend.py.
"""

from __future__ import annotations

from typing import Literal

from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.objects import ADMISSION_API, BINDING_KIND, POLICY_KIND
from gangplan.records import dataclass

# Parts of a cluster's tree: platform/policies.yaml, other files of platform/, tenants/, runs/.
TreePart = Literal["policies", "platform", "tenants", "runs"]


@dataclass(frozen=True, slots=True)
class RenderedKind:
    """A kind of object: its API group, and whether it is cluster-scoped.

    `waves` are the parts that it is rendered into, each with its sync wave. `needs` is what a cluster must
    have for it: a controller, as `versions` calls it, or schedules, volumes or waiting runs. No update may
    change the fields `fixed`, given as dotted paths. `seen_as` is its plural if admins of a team may read it.
    """

    name: str
    group: str
    waves: tuple[tuple[TreePart, int], ...]
    is_wide: bool = False
    needs: str = ""
    fixed: tuple[str, ...] = ()
    seen_as: str = ""


_KUEUE, _RBAC, _POLICIES = "kueue.x-k8s.io", "rbac.authorization.k8s.io", ADMISSION_API.partition("/")[0]
CLAIM_TEMPLATE_KIND, CLAIM_GROUP = "ResourceClaimTemplate", "resource.k8s.io"
CLAIM_API_VERSION = f"{CLAIM_GROUP}/v1"  # Kubernetes 1.34
MOST_DEVICES_OF_CLAIM = 32  # k8s.io/api v0.36.1, resource/v1, AllocationResultsMaxSize: no claim gets more
# An object comes after those that it refers to and those that validate it. Engines remove in the opposite
# order (gitops-engine of Argo CD 3.5.1, sync_context.go, "reverse of sync wave").
RENDERED_KINDS = (
    RenderedKind("Namespace", "", (("policies", -25), ("tenants", -30)), is_wide=True),
    # Parameters of policies, without which their bindings refuse everything; dashboards; files of runs. No
    # Secret: the External Secrets Operator creates those, and one in Git is an error.
    RenderedKind("ConfigMap", "", (("policies", -25), ("platform", -10), ("runs", -5))),
    # Before the queues, so that nothing is admitted before the policies are in force.
    RenderedKind(POLICY_KIND, _POLICIES, (("policies", -24),), is_wide=True),
    RenderedKind(BINDING_KIND, _POLICIES, (("policies", -23),), is_wide=True),
    RenderedKind("ClusterRole", _RBAC, (("platform", -20),), is_wide=True),
    RenderedKind("RoleBinding", _RBAC, (("tenants", -20),), fixed=("roleRef",), seen_as="rolebindings"),
    RenderedKind("ServiceAccount", "", (("tenants", -20),), seen_as="serviceaccounts"),
    RenderedKind("LimitRange", "", (("tenants", -20),), seen_as="limitranges"),
    RenderedKind(
        "ResourceQuota",
        "",
        (("tenants", -20),),
        fixed=("spec.scopes", "spec.scopeSelector"),
        seen_as="resourcequotas",
    ),
    RenderedKind(
        "NetworkPolicy", "networking.k8s.io", (("tenants", -20), ("runs", -20)), seen_as="networkpolicies"
    ),
    # A queue is created after the objects that it refers to: first topology and parameters, then flavors and
    # checks, then queues.
    RenderedKind("Topology", _KUEUE, (("platform", -16),), is_wide=True, fixed=("spec.levels",)),
    RenderedKind("ProvisioningRequestConfig", _KUEUE, (("platform", -16),), is_wide=True),
    RenderedKind("MultiKueueCluster", _KUEUE, (("platform", -16),), is_wide=True),
    RenderedKind("MultiKueueConfig", _KUEUE, (("platform", -16),), is_wide=True),
    # ValidatePriorityClassUpdate (Kubernetes v1.34).
    RenderedKind(
        "PriorityClass",
        "scheduling.k8s.io",
        (("platform", -15),),
        is_wide=True,
        fixed=("value", "preemptionPolicy"),
    ),
    RenderedKind("WorkloadPriorityClass", _KUEUE, (("platform", -15),), is_wide=True),
    RenderedKind("ResourceFlavor", _KUEUE, (("platform", -14),), is_wide=True),
    RenderedKind(
        "AdmissionCheck", _KUEUE, (("platform", -14),), is_wide=True, fixed=("spec.controllerName",)
    ),
    RenderedKind("Cohort", _KUEUE, (("platform", -14),), is_wide=True),
    # Since Kueue 0.18 (clusterqueue_webhook.go), regardless of the feature gate.
    RenderedKind(
        "ClusterQueue", _KUEUE, (("platform", -12),), is_wide=True, fixed=("spec.concurrentAdmissionPolicy",)
    ),
    RenderedKind("PrometheusRule", "monitoring.coreos.com", (("platform", -10),)),
    # Before its claim, which would wait for it. Fixed by ValidatePersistentVolumeUpdate (Kubernetes v1.34).
    RenderedKind(
        "PersistentVolume",
        "",
        (("tenants", -6),),
        is_wide=True,
        needs="volumes",
        fixed=("spec.csi", "spec.nfs", "spec.volumeMode"),
    ),
    # The last wave of tenants, which Argo CD does not wait for: a claim may be pending until a run uses it,
    # and an unreachable vault must not block the queue (gitops-engine of Argo CD 3.5.1, health_pvc.go).
    RenderedKind(
        "PersistentVolumeClaim",
        "",
        (("tenants", -5),),
        fixed=(
            *("spec.accessModes", "spec.storageClassName", "spec.volumeMode", "spec.volumeName"),
            *("spec.selector", "spec.dataSource", "spec.dataSourceRef"),
        ),
        seen_as="persistentvolumeclaims",
    ),
    RenderedKind("ExternalSecret", "external-secrets.io", (("tenants", -5),)),
    RenderedKind("LocalQueue", _KUEUE, (("tenants", -5),), fixed=("spec.clusterQueue",)),
    # Before the pods that claim devices by it, and before Kueue reads it to count them.
    RenderedKind(CLAIM_TEMPLATE_KIND, CLAIM_GROUP, (("runs", -5),), needs="claims", fixed=("spec",)),
    # Trainer's webhook refuses a TrainJob whose runtime does not exist.
    RenderedKind(RUNTIME_KIND, TRAINJOB.group, (("runs", -5),), needs=TRAINJOB.stated),
    # The highest waves: nothing may wait for a run, or for the object that starts one.
    RenderedKind(TRAINJOB.kind, TRAINJOB.group, (("runs", 10),), needs=TRAINJOB.stated),
    RenderedKind(MPIJOB.kind, MPIJOB.group, (("runs", 10),), needs=MPIJOB.stated),
    RenderedKind("CronJob", "batch", (("runs", 10),), needs="schedules"),
    # It asks for its runs itself. In a later wave, the sync of its team would not end before they do.
    RenderedKind("Job", "batch", (("runs", 10),), needs="after", fixed=("spec.template",)),
)
SYNC_WAVES = {(part, one.name): wave for one in RENDERED_KINDS for part, wave in one.waves}
# All kinds with a namespace. An object that names none would be created in the namespace that the client
# happens to use.
NAMESPACED_KINDS = frozenset(one.name for one in RENDERED_KINDS if not one.is_wide)
# Paths that no update may change, by kind.
FIXED_FIELDS_BY_KIND = {
    one.name: tuple(tuple(path.split(".")) for path in one.fixed) for one in RENDERED_KINDS if one.fixed
}


def find_kinds_of_parts(*parts: TreePart) -> tuple[RenderedKind, ...]:
    """Return the kinds that are in any of the parts."""
    return tuple(one for one in RENDERED_KINDS if any(part in parts for part, _ in one.waves))
