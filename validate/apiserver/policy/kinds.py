"""The resource of a kind, and whether its objects have a namespace: what the rules of policies name.

Plurals follow the rule by which Kubernetes guesses them (apimachinery v0.34 pkg/api/meta), which is right for
every kind that it, Trainer, JobSet, Kueue and the monitoring and secret operators serve (discovery of a
running API server, Kubernetes 1.34); kinds of imported CRDs bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gangplan.model.backend import SHARED_RUNTIME_KIND, TRAINJOB
from gangplan.records import dataclass
from gangplan.validate.apiserver.schema import SchemaVersions

CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration"
        " ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest",
    "external-secrets.io": "ClusterExternalSecret ClusterSecretStore",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "kueue.x-k8s.io": (
        "AdmissionCheck ClusterQueue Cohort MultiKueueCluster MultiKueueConfig ProvisioningRequestConfig"
        " ResourceFlavor Topology WorkloadPriorityClass"
    ),
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    TRAINJOB.group: SHARED_RUNTIME_KIND,
}
_CLUSTER_SCOPED = frozenset(
    (group, kind) for group, names in CLUSTER_SCOPED.items() for kind in names.split()
)

# Versions of one resource that a server serves in addition to the object's own. The server converts an object
# to the version that a policy names (matchPolicy Equivalent); for these kinds only their operator can.
EQUIVALENT_VERSIONS = {"kueue.x-k8s.io": ("v1beta1", "v1beta2"), "autoscaling": ("v1", "v2")}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as rules name it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool


@dataclass(frozen=True, slots=True)
class ExtraKinds:
    """Kinds in addition to the built-in ones: (group, kind) -> (plural, namespaced), from CRDs."""

    more: Mapping[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)

    def find(self, api_version: str, kind: str) -> Resource:
        """Return the resource of a kind. An unknown kind is assumed to have a namespace."""
        group, _, version = api_version.rpartition("/")
        plural, namespaced = self.more.get(
            (group, kind), (guess_resource_plural_of_kind(kind), (group, kind) not in _CLUSTER_SCOPED)
        )
        return Resource(group, version, kind, plural, namespaced)


def read_extra_kinds(versions: SchemaVersions) -> ExtraKinds:
    """Return the kinds of the CRDs that the workspace imported."""
    return ExtraKinds(versions.crds.resources if versions.crds else {})


def guess_resource_plural_of_kind(kind: str) -> str:
    """Guess a plural: `NetworkPolicy` -> `networkpolicies`, `PriorityClass` -> `priorityclasses`.

    `Endpoints` is its own plural.
    """
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
