"""Rules about volumes that are created for a single pod, and about the platform's PersistentVolumes."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

VOLUME_UNKNOWN = Rule(
    "volume-unknown",
    ERROR,
    "The cluster has no such volume for the team.",
    why=(
        "A CSI driver inside a pod may reach what the pod itself may not, so the platform says which drivers "
        "runs may use, with which attributes, and which storage classes give a pod a volume of its own."
    ),
    fix="Use a volume that the cluster lists for the team, or have its owner add one.",
)

VOLUME_UNUSABLE = Rule(
    "volume-unusable",
    ERROR,
    "The cluster does not offer the volume in the form requested.",
    why=(
        "Drivers get the attributes that the platform states; a spec states only attributes that the platform lists in "
        "settable. A volume of a storage class has a size, up to the most that the platform allows; under a regime "
        "that asks for encryption at rest, storageClasses states that the class encrypts."
    ),
    fix="Write what the message names.",
)

VOLUME_NOT_ADMITTED = Rule(
    "volume-not-admitted",
    ERROR,
    "OpenShift admits the driver's volumes only to namespaces of a weaker level.",
    why=(
        "The CSI Volume Admission plugin of OpenShift (4.13 and later) compares the label "
        "security.openshift.io/csi-ephemeral-volume-profile of the CSIDriver with the level that the namespace "
        "enforces. A driver without the label counts as privileged. Kubernetes itself has no such check."
    ),
    fix="Label the CSIDriver, and state the level as podSecurity of the volume in cluster.yaml.",
)

VOLUME_OVER_QUOTA = Rule(
    "volume-over-quota",
    ERROR,
    "The team or its workers need more storage or more claims than the namespace may hold.",
    why=(
        "A volume of a storage class is a PersistentVolumeClaim that lives as long as its pod, and the "
        "ResourceQuota of the namespace counts it: beyond it no claim is made, and pods wait for theirs until "
        "the run's deadline while the run holds its quota of GPUs. Claims of the team's file count too."
    ),
    fix="Use smaller volumes or fewer workers, or have the quota raised.",
)

CLUSTER_VOLUME_WRONG = Rule(
    "cluster-volume-wrong",
    ERROR,
    "A volume in the cluster's file is of no kind, or of two.",
    why=(
        "A volume comes either from a CSI driver inside the pod or from a storage class. The fields of one "
        "mean nothing to the other, and a class that does not exist leaves pods waiting for their volume."
    ),
    fix="Write what the message names.",
)

PERSISTENT_VOLUME_WRONG = Rule(
    "persistent-volume-wrong",
    ERROR,
    "A PersistentVolume of a team in the cluster's file cannot be made, or shows the wrong bucket.",
    why=(
        "A volume belongs to the cluster, so the platform states it and its bucket, because a driver "
        "with credentials of its own opens any bucket that a team's file names. Each volume needs a handle of its own, "
        "because Kubernetes treats two with the same handle as one; and no part of a volume may change once it exists."
    ),
    fix="Write what the message names.",
)
