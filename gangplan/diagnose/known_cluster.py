"""Causes before a run's pods are running: the run is refused, queued, or finds no node."""

from __future__ import annotations

from gangplan.diagnose.cause import SYMPTOM, KnownCause

CAUSES = (
    KnownCause(
        "quota-wait",
        "it waits for quota that other runs hold",
        "Kueue has the run in its queue. It starts when enough of the quota is free; nothing is broken.",
        (
            "Wait, or look at who holds the quota: gangplan status --team TEAM.",
            "Ask for less (workers, gpus), or for another pool that has room: gangplan plan SPEC says what each pool admits.",
            "Raise priority in the spec, if the team may: a higher one preempts.",
        ),
        ("quota-nearly-used",),
    ),
    KnownCause(
        "quota-never",
        "it asks for more than its queue can ever have",
        "The quota of the queue, with all that it may borrow, is below what the run needs: it waits forever.",
        (
            "Ask for less: fewer workers or gpus in the spec.",
            "Have the quota of the pool raised in the cluster file.",
        ),
        ("never-admitted", "over-quota"),
    ),
    KnownCause(
        "queue-inactive",
        "its queue does not exist or takes nothing",
        "The LocalQueue or ClusterQueue is missing, stopped, or names a flavor or admission check that is not there.",
        (
            "Sync the platform objects of the cluster: the queue is in rendered/CLUSTER/platform/.",
            "Look at the queue's own condition: kubectl get clusterqueue,localqueue -A.",
        ),
        ("not-queued", "queue-invalid"),
    ),
    KnownCause(
        "topology-full",
        "there is no room for it close together",
        "The run wants its pods within one rack or block, and no domain has enough free nodes.",
        (
            "Wait until nodes of one domain are free.",
            "Ask for preferred instead of required in placement, or for fewer workers.",
        ),
        ("no-topology", "topology-missing"),
    ),
    KnownCause(
        "admission-check",
        "an admission check has not said yes",
        "The run has quota, and another controller (provisioning of nodes, a budget) has to agree first.",
        ("Look at status.admissionChecks of the Workload, and at the controller that is named there.",),
        rules=(
            "admission-check-nobody",
            "admission-check-owner",
        ),
    ),
    KnownCause(
        "deactivated",
        "its Workload was deactivated",
        "Somebody set spec.active to false, or its pods were not ready too often in a row.",
        (
            "Find out why its pods did not become ready: the causes below, or an earlier attempt's pods.",
            "Then start it again with a new run: run: N in the spec.",
        ),
        unforeseen="A person or Kueue's limit on requeuing deactivates a Workload in the cluster.",
    ),
    KnownCause(
        "preempted",
        "it was stopped for a run with a higher claim",
        "Kueue took its place for another run, and puts it back into the queue. It starts again from its last checkpoint.",
        (
            "Write checkpoints often enough: what came after the last one is lost.",
            "Raise priority, or let it run where its team's own quota is enough.",
        ),
        ("preemptible-without-checkpoint",),
    ),
    KnownCause(
        "not-ready-in-time",
        "its pods were not ready in time, and it went back to the queue",
        "Kueue gives all pods of a run some minutes to be ready together. One that pulls a large image or finds no node uses them up.",
        (
            "Look at the pods that were not ready: the causes next to this one say why.",
            "Pull large images beforehand, or have podsReadyTimeout raised in the cluster file.",
        ),
        ("gang-deadlock",),
        SYMPTOM,
    ),
    KnownCause(
        "pods-refused",
        "the cluster refuses its pods",
        "The API server refuses to create the pods: Pod Security, a policy or a webhook of the cluster.",
        (
            "Read what it says above: it names the field.",
            "gangplan validate --server asks the cluster before the sync; policies that the cluster has belong into policies/.",
        ),
        ("pod-security", "server-policy", "server-webhook"),
    ),
    KnownCause(
        "object-quota",
        "a quota of the namespace is used up",
        "A ResourceQuota of the namespace (pods, CPU, memory, GPUs, objects) has no room for another pod.",
        (
            "End runs that are over: gangplan retire removes their objects.",
            "Have the hard quota raised: it must hold what the queue admits.",
        ),
        ("hard-quota-below-queue", "run-count", "server-quota"),
    ),
    KnownCause(
        "account-missing",
        "its service account does not exist",
        "Pods cannot be made without the account that they name.",
        ("Sync the team's objects: rendered/CLUSTER/teams/TEAM has the account.",),
        rules=(
            "not-there",
            "service-account-unknown",
        ),
    ),
    KnownCause(
        "webhook-down",
        "a webhook of the cluster does not answer",
        "The API server asks a webhook about every such object, and it is down or times out.",
        ("Ask the platform team to look at the webhook that is named; then nothing else is needed.",),
        unforeseen="It is the state of the cluster, not of what is in Git.",
    ),
    KnownCause(
        "runtime-missing",
        "Trainer cannot use its runtime",
        "The TrainingRuntime that the run names is missing, or Trainer refuses it.",
        (
            "Sync both files of the run: the runtime is next to the TrainJob in rendered/.",
            "Ask for the Trainer's version: gangplan cluster snapshot compares it with the cluster file.",
        ),
        ("object-invalid", "version-unsupported"),
    ),
    KnownCause(
        "no-gpu",
        "no node has enough free GPUs",
        "The scheduler found no node with that many GPUs of that kind free.",
        (
            "See whether nodes of the pool are full, cordoned, or have lost their GPUs (kubectl describe node).",
            "Ask for as many gpus per worker as a node has.",
        ),
        ("no-node-fits", "nodes-too-few"),
    ),
    KnownCause(
        "no-room",
        "no node has enough of what it asks for",
        "The scheduler found no node with enough CPU, memory, disk or devices free.",
        (
            "Ask for less per worker: the system's own pods use a part of each node.",
            "See what the nodes of the pool have left: kubectl describe node.",
        ),
        ("no-node-fits", "nodes-tight"),
    ),
    KnownCause(
        "no-matching-node",
        "no node has the labels that it asks for, or tolerates it",
        "The nodes have other labels than the cluster file says, or taints that the run does not tolerate.",
        (
            "Compare the cluster file with the cluster: gangplan cluster snapshot NAME, then gangplan validate --snapshot FILE.",
            "Correct nodeLabels and taints of the pool.",
        ),
        ("no-node-fits", "observed-nodes", "pool-labels-missing"),
    ),
    KnownCause(
        "volume-pending",
        "a volume that it needs is not there",
        "A PersistentVolumeClaim that it mounts is missing, or waits for a volume.",
        (
            "Look at the claim: kubectl describe pvc NAME says what it waits for (a storage class, room, a zone).",
            "Name an existing claim in the team's or the spec's data.",
        ),
        ("claim-unknown", "storage-class-unknown", "claim-zone"),
    ),
    KnownCause(
        "volume-zone",
        "its volume is in another zone than the nodes that are free",
        "The volume can only be used by nodes of its own zone.",
        ("Use storage that all zones reach, or a pool in the zone of the volume.",),
        ("claim-zone",),
    ),
)
