"""Checks of MultiKueue: what must be the same on the worker clusters."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.fabric import SECURITY_LEVELS
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.clusters import (
    MULTIKUEUE_AUTOSCALE,
    MULTIKUEUE_LEVEL,
    MULTIKUEUE_POOL,
    MULTIKUEUE_QUEUE,
    MULTIKUEUE_SELF,
)
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.queues import TeamQueue
from gangplan.workspace import ClusterFile, Workspace


def check_cluster_file_worker_clusters(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check the worker clusters."""
    spec = notes.spec
    if spec.multi_kueue is None:
        return
    for name, pool in spec.node_pools.items():
        if pool.is_asked_for:
            notes.report(
                MULTIKUEUE_AUTOSCALE,
                ("nodePools", name, "autoscale"),
                "Kueue makes a queue inactive that both asks for nodes and hands runs to other clusters",
                "Remove provisioningClass here and set it on the worker clusters, or remove multiKueue.",
                key=True,
            )
    for name in spec.multi_kueue.clusters:
        path = ("multiKueue", "clusters", name)
        if name == notes.cluster.name:
            notes.report(
                MULTIKUEUE_SELF, path, "a cluster cannot hand runs to itself", "Remove it.", key=True
            )
            continue
        worker = workspace.clusters.get(name)
        if worker is None:
            continue  # a cluster of another workspace
        if _is_worker_cluster_unable(notes, worker, path):
            continue
        _check_worker_cluster_pools(notes, name, worker, path)
        for team, queue in spec.teams.items():
            there = worker.spec.teams.get(team)
            if there is None:
                notes.report(
                    MULTIKUEUE_QUEUE,
                    path,
                    f"team '{team}' is not there: its runs are never handed to {name}, which needs queue '{queue.queue}'",
                    f"Add {team}: {{queue: {queue.queue}}} to the teams of {name}.",
                    key=True,
                )
            elif queue.queue not in (there.queue, *there.local_queues):
                _report_other_worker_cluster_queue(notes, worker, team, queue.queue, there)
            else:
                _check_worker_cluster_namespace(notes, worker, team, workspace)
                _check_worker_cluster_pod_security_level(notes, name, team, queue, there)
                _check_worker_cluster_local_queues(notes, name, team, queue, there)


def _is_worker_cluster_unable(notes: ClusterCheck, worker: ClusterFile, path: FieldPath) -> bool:
    """Report a worker cluster without Kueue's queues, or without what runs are made of here."""
    name, there = worker.name, worker.spec
    if there.gang != "kueue":  # without versions.kueue, that file has its own finding
        found = (
            f"starts runs without Kueue (gang: {there.gang}): it has no queue to which a run could be handed"
        )
        help = f"Write gang: kueue in {worker.document.file}, or remove it here."
    elif notes.spec.versions.trainer and not there.versions.trainer:
        found = "has no Kubeflow Trainer, and runs are TrainJobs here: Kueue cannot create their copies there"
        help = f"Install it there and state versions.trainer in {worker.document.file}, or remove it here."
    elif not (notes.spec.versions.trainer or there.versions.mpi_operator):
        found = "has no MPI operator, and runs are MPIJobs here: Kueue cannot create their copies there"
        help = (
            f"Install it there and state versions.mpiOperator in {worker.document.file}, or remove it here."
        )
    else:
        return False
    notes.report(MULTIKUEUE_QUEUE, path, f"cluster '{name}' {found}", help, key=True)
    return True


def _check_worker_cluster_namespace(
    notes: ClusterCheck, worker: ClusterFile, team: str, workspace: Workspace
) -> None:
    """Check that the team has one namespace: Kueue creates the copy of a run where the run is (v0.19,
    pkg/controller/admissionchecks/multikueue)."""
    if team not in workspace.teams:
        return
    here, there = (namespace_of(spec, team, workspace.teams[team].spec) for spec in (notes.spec, worker.spec))
    if here != there:
        notes.report(
            MULTIKUEUE_QUEUE,
            ("teams", team),
            f"team '{team}' has namespace '{there}' on {worker.name} and '{here}' here: its runs are never handed there",
            f"Write namespace: {here} at {team} in {worker.document.file}, or namespace: {there} here.",
            key=True,
        )


def _report_other_worker_cluster_queue(
    notes: ClusterCheck, worker: ClusterFile, team: str, queue: str, there: TeamQueue
) -> None:
    """Report a team that has no queue of this name on the worker cluster, but another."""
    name, file = worker.name, worker.document.file
    added = f"write localQueues: {{{queue}: {{}}}} next to the queue of {team}"
    if there.local_queues:
        added = f"add {queue}: {{}} to the localQueues of {team}"
    notes.report(
        MULTIKUEUE_QUEUE,
        ("teams", team, "queue"),
        f"team '{team}' has queue '{there.queue}' on {name}, but no queue '{queue}': its runs are never handed there",
        f"Write queue: {there.queue} here, or {added} in {file}.",
    )


def _check_worker_cluster_local_queues(
    notes: ClusterCheck, name: str, team: str, here: TeamQueue, there: TeamQueue
) -> None:
    """Check that the worker cluster has the team's LocalQueues: the copy of a run keeps the run's queue."""
    for queue in here.local_queues:
        if queue not in (there.queue, *there.local_queues):
            notes.report(
                MULTIKUEUE_QUEUE,
                ("teams", team, "localQueues", queue),
                f"team '{team}' has no queue '{queue}' on {name}: runs in it are never handed there",
                f"Add it to the localQueues of {team} in the file of {name}.",
                key=True,
            )


def _check_worker_cluster_pod_security_level(
    notes: ClusterCheck, name: str, team: str, here: TeamQueue, there: TeamQueue
) -> None:
    """Check that the worker cluster's Pod Security level admits the pods, which are created there."""
    levels = [one.pod_security.level if one.pod_security else SECURITY_LEVELS[0] for one in (here, there)]
    if SECURITY_LEVELS.index(levels[0]) > SECURITY_LEVELS.index(levels[1]):
        notes.report(
            MULTIKUEUE_LEVEL,
            ("teams", team, "podSecurity", "level"),
            f"team '{team}' has Pod Security {levels[1]} on {name}: pods that need {levels[0]} are refused there",
            f"State the same podSecurity for {team} in the file of {name}.",
        )


def _check_worker_cluster_pools(notes: ClusterCheck, name: str, worker: ClusterFile, path: FieldPath) -> None:
    """Check that pools match: a run keeps the node labels, tolerations and topology of this cluster."""
    for pool, here in notes.spec.node_pools.items():
        there = worker.spec.node_pools.get(pool)
        if there is None:
            found = "is not there"
        elif dict(there.labels) != dict(here.labels):
            found = "has other labels there"
        elif there.processor != here.processor:
            found = f"is {there.processor} there and {here.processor} here"
        elif set(there.taints) - set(here.taints):
            found = "has taints there that runs do not tolerate"
        elif there.topology != here.topology:
            found = "is not placed by topology in the same way there"
        else:
            continue
        notes.report(
            MULTIKUEUE_POOL,
            path,
            f"pool '{pool}' {found}: runs for it never start on {name}",
            f"Describe pool '{pool}' alike in both files, or let teams have no quota of it here.",
            key=True,
        )
