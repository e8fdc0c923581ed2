"""Read PyTorchJob, TFJob, XGBoostJob, JAXJob and PaddleJob: kubeflow.org/v1 (training-operator v1.9)."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.groups import find_launcher_kind_of_container
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.policies import account_for_restart_policy, map_imported_run_policy
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import PodRole, SourceJob, SourceSetting, StartMethod, WorkerRange
from gangplan.model.frameworks import COMPLETION_INDEX_FIELD, Framework
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of the operator.

    `replicas` is the field with its roles, and `container` the name of the container that trains; `roles` are
    in the order of their ranks, and `aside` are those whose pods do something else. `sets` are variables that
    the operator gives its pods (pkg/controller.v1/*/envvar.go); `told` explains which of them programs of a
    run have under another name.
    """

    label: str
    replicas: str
    container: str
    start: StartMethod
    framework: Framework
    roles: tuple[str, ...]
    aside: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()
    told: str = ""


_TORCH = frozenset(
    {
        *(
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "PET_NODE_RANK",
            "PET_NNODES",
            "PET_NPROC_PER_NODE",
        ),
        *("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_RDZV_CONF"),
        *("PET_RDZV_ID", "PET_MAX_RESTARTS", "PET_STANDALONE"),
    }
)
PYTORCHJOB = JobKind(
    "PyTorchJob", "pytorchReplicaSpecs", "pytorch", "torch", "torch", ("Master", "Worker"), sets=_TORCH
)
TFJOB = JobKind(
    "TFJob", "tfReplicaSpecs", "tensorflow", "plain", "tensorflow", ("Worker",),
    ("Chief", "Master", "PS", "Evaluator"), frozenset({"TF_CONFIG"}),
)  # fmt: skip
XGBOOSTJOB = JobKind(
    "XGBoostJob", "xgbReplicaSpecs", "xgboost", "plain", "plain", ("Master", "Worker"),
    sets=frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_PORT", "WORKER_ADDRS"}),
    told="env sets RANK and WORLD_SIZE, the run itself MASTER_ADDR and MASTER_PORT; nothing sets WORKER_ADDRS (LightGBM)",
)  # fmt: skip
JAXJOB = JobKind(
    "JAXJob", "jaxReplicaSpecs", "jax", "plain", "jax", ("Worker",),
    sets=frozenset({"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"}),
    told="COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID are JAX_COORDINATOR_ADDRESS (with its port), JAX_NUM_PROCESSES and JAX_PROCESS_ID in a run; the program gives the last two to jax.distributed.initialize() (docs/job-commands.md)",
)  # fmt: skip
PADDLEJOB = JobKind(
    "PaddleJob", "paddleReplicaSpecs", "paddle", "plain", "plain", ("Master", "Worker"),
    sets=frozenset({"PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"}),
    told="PADDLE_MASTER and PADDLE_NNODES are $MASTER_ADDR:$MASTER_PORT and $NNODES in a run; only framework: paddle starts Paddle's launcher",
)  # fmt: skip


def read_imported_training_job(
    kind: JobKind, account: Account, others: Sequence[OtherObject] = ()
) -> SourceJob:
    """Return the workload of a job of the operator. Raises ValueError for one without a pod that trains."""
    root = account.root()
    spec = root["spec"]
    specs = {name.lower(): node for name, node in spec[kind.replicas].fields()}
    settings: dict[str, SourceSetting] = {}
    map_imported_run_policy(spec["runPolicy"], settings)
    map_imported_run_policy(spec, settings)  # where v1 of 2019 and before had it
    roles = tuple(
        one for name in kind.roles if (one := _read_source_pods_of_role(kind, specs.get(name.lower()), name))
    )
    aside = tuple(
        one for name in kind.aside if (one := _read_source_pods_of_role(kind, specs.get(name.lower()), name))
    )
    if not roles and aside and aside[0].name in ("chief", "master"):
        roles, aside = aside[:1], aside[1:]  # a chief alone is a worker alone
    if not roles:
        raise ValueError(f"no role of it has a container (spec.{kind.replicas}.{kind.roles[-1]})")
    count = specs.get(roles[-1].name)
    if count is not None and count["replicas"]:
        settings["workers"] = SourceSetting(roles[-1].count, count["replicas"])
    work = SourceJob(
        kind.label,
        root.at("metadata", "name").text() or root.at("metadata", "generateName").text(),
        kind.start,
        account,
        roles,
        settings,
        framework=kind.framework,
        sets=kind.sets,
        aside=aside,
        told=kind.told,
    )
    _map_torchrun_fields(spec, work)
    success = spec["successPolicy"]
    if success.text() in ("", "AllWorkers"):
        success.same("a run is complete once all of its ranks are")
    success.dropped("a run is complete once all of its ranks are")
    if kind is XGBOOSTJOB:
        work.values["env/RANK"] = {"field": COMPLETION_INDEX_FIELD}
        work.values["env/WORLD_SIZE"] = str(sum(one.count for one in roles))
    if kind is PADDLEJOB:
        _choose_paddle_framework(work, specs.get("master"))
    return work


def _choose_paddle_framework(work: SourceJob, master: SourceNode | None) -> None:
    """Choose framework paddle for workers that start Paddle's launcher; ask about its parameter servers.

    With a master, the operator starts servers and trainers (v1.9, pkg/controller.v1/paddlepaddle/envvar.go).
    """
    if find_launcher_kind_of_container(work.workers.pod.main) != "paddle":
        return
    if master is not None and master["replicas"].count() != 0:
        message = "with a Master, Paddle's launcher starts parameter servers and trainers; ranks of a run train together, without servers"
        help = "Check that the program trains without servers, or start them as roles of framework: plain."
        work.questions.append((master, message, help))
    work.framework, work.told = "paddle", ""


def _read_source_pods_of_role(kind: JobKind, node: SourceNode | None, name: str) -> PodRole | None:
    """Return the pods of one role; None if there are none."""
    if node is None or not node:
        return None
    count = node["replicas"].count()
    count = 1 if count is None else count
    pod = read_imported_pod_template(node["template"], kind.container)
    if pod is None or count == 0:
        node.dropped("it has no pods")
        return None
    node["replicas"].mapped("roles" if name in kind.aside else "workers")
    account_for_restart_policy(node["restartPolicy"])
    return PodRole(name.lower(), count, pod, whole=node)


def _map_torchrun_fields(spec: SourceNode, work: SourceJob) -> None:
    """Map what a PyTorchJob specifies for torchrun, and the range of its workers.

    PaddleJob has fields of the same names.
    """
    policy = spec["elasticPolicy"]
    processes = spec["nprocPerNode"] or policy["nProcPerNode"]
    for one in (spec["nprocPerNode"], policy["nProcPerNode"]):
        if one.number():
            work.settings["slots"] = SourceSetting(one.number() or 1, one.mapped("slots"))
        else:
            one.same("torchrun starts a rank for each GPU")
    if processes.text() == "cpu":
        work.questions.append(
            (processes, "nprocPerNode: cpu starts a rank for each core of the node", "Write slots.")
        )
    if not policy:
        return
    low, high = policy["minReplicas"], policy["maxReplicas"]
    least, most = low.number() or high.number(), high.number() or low.number()
    tries = policy["maxRestarts"]
    if least and most:
        work.elastic = WorkerRange((least, most), policy, tries.number())
    if work.framework != "torch" and "retries" not in work.settings and (count := tries.number()) is not None:
        work.settings["retries"] = SourceSetting(count, tries)
    policy["metrics"].dropped("Kueue decides how many workers a run gets")
    if policy["rdzvBackend"].text().startswith("etcd"):
        policy["rdzvBackend"].dropped("workers of a run meet at the first of them, and need no etcd")
    for name in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone"):
        policy[name].dropped("the run knows where its workers meet")
