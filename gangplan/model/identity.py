"""A team's cloud identity: what its service account and pods carry, and what the cloud's webhook adds.

Sources: aws/amazon-eks-pod-identity-webhook v0.6 (README), Azure/azure-workload-identity v1.5 (docs/book,
topics/service-account-labels-and-annotations), Workload Identity Federation for GKE. The webhooks of AWS and
Azure mount a projected token with an audience of its own, regardless of automountServiceAccountToken. GKE's
metadata server requests tokens itself, and the pod has none.
"""

from __future__ import annotations

from gangplan.records import dataclass

# The service account of every training pod; it has no token and no rights.
TRAINING_ACCOUNT = "training"
Pairs = tuple[tuple[str, str], ...]
_ROLE, _ACCOUNT = "eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account"
_AZURE = "azure.workload.identity/"
# Variables that the webhook sets in containers. Ranks that are started over SSH would not have them.
_GIVEN = {
    "aws": (
        *("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ROLE_ARN", "AWS_STS_REGIONAL_ENDPOINTS"),
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ),
    "azure": (*("AZURE_AUTHORITY_HOST", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TENANT_ID"),),
}
# GKE's metadata server, before and after address translation. Calico sees the latter from GKE 1.21 on,
# Dataplane V2 the former.
METADATA_SERVERS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("169.254.169.252/32", (987, 988)),
    ("169.254.169.254/32", (80, 8080)),
)


@dataclass(frozen=True, slots=True)
class CloudIdentity:
    """The identity of pods in the cloud of a cluster: `name` is a role, a service account or a client.

    `provider` is aws, gcp or azure; `tenant` is Azure's, empty for the webhook's own.
    """

    provider: str
    name: str
    tenant: str = ""

    @property
    def annotations(self) -> Pairs:
        """The annotations of the service account."""
        if self.provider == "aws":
            return ((_ROLE, self.name),)
        if self.provider == "gcp":
            return ((_ACCOUNT, self.name),)
        tenant = ((f"{_AZURE}tenant-id", self.tenant),) if self.tenant else ()
        return ((f"{_AZURE}client-id", self.name), *tenant)

    @property
    def pod_labels(self) -> Pairs:
        """The labels of pods. Azure's webhook ignores pods without them."""
        return ((f"{_AZURE}use", "true"),) if self.provider == "azure" else ()

    @property
    def given(self) -> tuple[str, ...]:
        """The variables that the webhook sets in each container, if it knows their values."""
        return _GIVEN.get(self.provider, ())


def subject_of(namespace: str, account: str) -> str:
    """Return the subject of a service account in tokens of the cluster's issuer; a cloud trusts this name."""
    return f"system:serviceaccount:{namespace}:{account}"
