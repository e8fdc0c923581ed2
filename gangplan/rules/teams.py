"""Rules about team files, checked against the clusters of the team."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

TEAM_UNKNOWN = Rule(
    "team-unknown",
    ERROR,
    "A cluster lists a team that has no folder.",
    why=(
        "specs/<team>/team.yaml holds the team's namespace, claims and members. Without it the queue "
        "belongs to nobody."
    ),
    fix="Correct the name, or add the team's folder.",
)

NAMESPACE_RESERVED = Rule(
    "namespace-reserved",
    ERROR,
    "A team wants a namespace of the platform.",
    why=(
        "A team's namespace gets a policy that denies all traffic, a quota and roles. In "
        "kube-system that would cut the cluster off."
    ),
    fix="Choose another name for namespace.",
)

NAMESPACE_TWICE = Rule(
    "namespace-twice",
    ERROR,
    "Two teams want the same namespace.",
    why=(
        "Roles, quota and secrets belong to a namespace. Two teams in the same namespace would read each "
        "other's secrets and share one quota."
    ),
    fix="Give each team a namespace of its own.",
)

CLAIM_WITHOUT_SIZE = Rule(
    "claim-without-size",
    ERROR,
    "A claim has a storage class but no size.",
    why=(
        "gangplan creates a claim that has a size; one without a size must already exist. A class "
        "without a size says neither."
    ),
    fix="Add size: to have it created, or remove the class.",
)

CLAIM_TWICE = Rule(
    "claim-twice",
    ERROR,
    "Two entries create the same claim.",
    why=(
        "A claim has one size and one class. The second entry would change what the first created, which "
        "Kubernetes refuses."
    ),
    fix="Keep size and storageClass in only one of them.",
)

STORAGE_CLASS_UNKNOWN = Rule(
    "storage-class-unknown",
    ERROR,
    "The cluster has no such storage class.",
    why=("A claim with a class that does not exist stays Pending, as does every pod that mounts it."),
    fix="Use one of the listed classes, or declare it in the cluster file.",
)

STORAGE_ACCESS_MODE = Rule(
    "storage-access-mode",
    ERROR,
    "The storage class does not offer the access mode.",
    why=("The provisioner refuses the claim, or creates a volume that a second node cannot mount."),
    fix="Use an access mode of the class, or another class.",
)

STORAGE_NO_DEFAULT = Rule(
    "storage-no-default",
    ERROR,
    "A claim names no storage class, and the cluster has no default.",
    why=("Without a class and without a default, nothing creates the volume, and the claim stays Pending."),
    fix="Add storageClass to the claim, or make one of the cluster's classes the default.",
)

STORAGE_DEFAULT_TWICE = Rule(
    "storage-default-twice",
    ERROR,
    "Two storage classes claim to be the default.",
    why=("Kubernetes takes the newest of several defaults, which is not what the file says."),
    fix="Keep default: true on only one of them.",
)

SECRET_PATH = Rule(
    "secret-path",
    ERROR,
    ("The path of secrets has an unknown placeholder, or none for the secret."),
    why=(
        "The path tells the operator where to find a team's secret in the store. With a wrong "
        "placeholder, every secret is looked up in one place that does not exist."
    ),
    fix="Use {team}, {namespace} and {secret}.",
)

SECRET_PATH_SHARED = Rule(
    "secret-path-shared",
    WARNING,
    "The path of secrets is the same for every team.",
    why=("Any team could then name any secret in the store and have it fetched into its own namespace."),
    fix="Put {team} or {namespace} into the path.",
    waivable=True,
)

GRANT_EXPIRED = Rule(
    "grant-expired",
    ERROR,
    "A debug grant has expired and is still in the file.",
    why=(
        "RBAC has no expiry. A grant that stays in Git stays in the cluster, and with it the right to "
        "open a shell in the team's pods."
    ),
    fix="Remove the grant and render, or set a later day.",
    is_verdict=True,
)

GRANT_IN_PROD = Rule(
    "grant-in-prod",
    WARNING,
    "Somebody may open a shell in production pods.",
    why=(
        "A shell can read every secret and every file of a run. In production, that is an exception with "
        "an end date, and a reviewer should see it."
    ),
    fix="Remove the grant as soon as it is no longer needed.",
    waivable=True,
)

CLAIMS_TOO_MANY = Rule(
    "claims-too-many",
    ERROR,
    "The team creates more claims than its namespace allows.",
    why=(
        "limits.objects.claims becomes a ResourceQuota. The first claim beyond it is refused, and the "
        "team's sync fails."
    ),
    fix="Remove a claim, or raise limits.objects.claims of the cluster.",
)

IDENTITY_UNREACHABLE = Rule(
    "identity-unreachable",
    WARNING,
    "Pods cannot exchange the tokens of their identity.",
    why=(
        "The webhooks of AWS and Azure give pods a token, which their SDK takes to an endpoint of the cloud. The policies "
        "of every run block the endpoint unless the cluster's file names it, and programs wait until their SDK gives up."
    ),
    fix="Add the endpoint to egress, and its name to workloadIdentity.egress.",
)

IDENTITY_UNUSED = Rule(
    "identity-unused",
    WARNING,
    "An identity is stated for a cloud that none of the clusters has.",
    why="Nothing on the cluster answers to it: programs find no credentials, or those of the node.",
    fix="State workloadIdentity in the cluster's file, or remove the identity.",
)

CONNECTION_INCOMPLETE = Rule(
    "connection-incomplete",
    ERROR,
    "A connection lacks what its kind needs.",
    why=(
        "An S3 store has an address and keys. Cloud Storage FUSE mounts only Google Cloud buckets; Mountpoint for "
        "S3 and Blob CSI mount volumes that the platform has created and a claim names."
    ),
    fix="State what the message names.",
)

NOT_THERE = Rule(
    "not-there",
    ERROR,
    "What the run uses is on other clusters only.",
    why=(
        "If the cluster lacks a claim, secret or ConfigMap that a pod uses, the pod stays Pending or in "
        "CreateContainerConfigError, and the run holds its GPUs. gangplan trusts the team's file: an entry that states "
        "no clusters is on all of them."
    ),
    fix="Run the job on a cluster that has it, or add this cluster in team.yaml once it does.",
)
