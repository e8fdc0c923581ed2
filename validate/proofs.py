"""Proofs: checks of what the objects of a run will meet on the cluster. Each is one line in the table.

A proof is a function of the world and a run; it yields problems, each with the index of the object that it is
about. Proofs run only on objects that passed the gate (schemas and rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gangplan.objects import Body
from gangplan.rules.contention import PREEMPTIBLE_WITHOUT_CHECKPOINT
from gangplan.rules.platform import ADMITTED_ELSEWHERE
from gangplan.validate import meshes, podsecurity, quotas, shared_claims
from gangplan.validate.kueue.contention import prove_preempted_run_resumes
from gangplan.validate.kueue.proof import check_kueue_admission_of_run
from gangplan.validate.network import check_reachability
from gangplan.validate.problems import Problem
from gangplan.validate.promise import check_plan_conformance
from gangplan.validate.scheduler.proof import check_node_fit, has_forgotten_gpus
from gangplan.validate.trainer import launching
from gangplan.validate.world import BuiltRun, World

Proof = Callable[[World, BuiltRun], Iterator[tuple[int, Problem]]]


def _check_run_has_worker_cluster(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    if not world.workers:
        return iter(())
    from gangplan.validate.dispatch import check_run_has_worker_cluster  # few clusters hand runs on

    return check_run_has_worker_cluster(world, run)


PROOFS: dict[str, Proof] = {
    "admission": check_kueue_admission_of_run,
    "claims": shared_claims.check_claims_of_run_are_shared,
    "contention": prove_preempted_run_resumes,
    "dispatch": _check_run_has_worker_cluster,
    "fit": check_node_fit,
    "launching": launching.check_trainer_hostfile_variable,
    "meshes": meshes.check_service_mesh_injection,
    "network": check_reachability,
    "plan": check_plan_conformance,
    "pod security": podsecurity.check_pod_security_of_run,
    "quotas": quotas.check_namespace_quotas_of_run,
}


# Kinds of cluster objects that do not affect quota and nodes.
_OF_ACCESS = frozenset(
    {
        *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "NetworkPolicy"),
        *("PersistentVolumeClaim", "ExternalSecret", "SecretStore", "ClusterSecretStore"),
    }
)


def may_read(proof: str, body: Body, namespace: str) -> bool:
    """Return whether a proof of a run in a namespace may read an object of the cluster.

    If not, changes of the object do not matter. A cluster has a Namespace and many access objects for each
    team.
    """
    kind = body["kind"]
    if proof == "claims":
        return bool(kind == "PersistentVolumeClaim")
    if proof == "network":
        return kind in ("NetworkPolicy", "Namespace")
    if kind == "Namespace":
        return bool(body["metadata"]["name"] == namespace)
    return kind not in _OF_ACCESS


def run_all_proofs(world: World, run: BuiltRun) -> dict[str, list[tuple[int, Problem]]]:
    """Return what each proof finds, in the order of the table, without proofs that find nothing."""
    found = {name: list(proof(world, run)) for name, proof in PROOFS.items()}
    is_followed = found.get("fit") and any(
        _may_follow_forgotten_gpus(one) for each in found.values() for _, one in each
    )
    if is_followed and has_forgotten_gpus(world, run):
        found = {
            name: [one for one in each if not _may_follow_forgotten_gpus(one[1])]
            for name, each in found.items()
        }
    return {name: problems for name, problems in found.items() if problems}


def _may_follow_forgotten_gpus(problem: Problem) -> bool:
    """Return whether a problem may follow from forgotten GPUs: an unintended pool, and its quota."""
    return problem.rule in (ADMITTED_ELSEWHERE, PREEMPTIBLE_WITHOUT_CHECKPOINT)
