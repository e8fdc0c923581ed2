"""Read a TrainJob with its runtime: trainer.kubeflow.org/v1alpha1 (Kubeflow Trainer v2.0 to v2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.imports.account import Account, Node
from gangplan.imports.amounts import memory_value
from gangplan.imports.jobs import job_policy, jobset_policy
from gangplan.imports.layers import REPLACED, LayeredNode, changed, patched
from gangplan.imports.mpijob import FAMILIES, SETS
from gangplan.imports.pods import ContainerOf, PodOf, amounts, env_of, pod_of
from gangplan.imports.policies import POD_GROUP, suspend
from gangplan.imports.runtimes import KnownRuntime, known_runtime
from gangplan.imports.sources import OtherObject
from gangplan.imports.steps import step_of_job, steps_before
from gangplan.imports.workload import Role, Setting, SourceError, Start, Step, Workload
from gangplan.model.amounts import GPUS
from gangplan.model.backend import ANCESTOR, RUNTIMES, TRAINJOB
from gangplan.model.frameworks import Framework
from gangplan.model.quantity import QuantityError, parse
from gangplan.plan.launchers import UnreadableError, find

_NODE, _LAUNCHER = "node", "launcher"
INITIALIZERS = ("dataset", "model")
_PET = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})
_OWN = "a run has a runtime of its own"
_STARTS: dict[str, tuple[Start, Framework]] = {
    "torch": ("torch", "torch"),
    "mpi": ("mpi", "mpi"),
    "jax": ("plain", "jax"),
    "xgboost": ("plain", "xgboost"),
    "flux": ("plain", "mpi"),
    "plain": ("plain", "plain"),
}


def read_trainjob(account: Account, others: Sequence[OtherObject] = ()) -> Workload:
    """Return the workload of a TrainJob.

    Raises SourceError if its runtime is not known, or has no pod that trains.
    """
    root = account.root()
    spec = root["spec"]
    reference = spec["runtimeRef"]
    runtime, known = _runtime(spec, others)
    trainer = spec["trainer"]
    reference.dropped(_OWN)
    policy = runtime["spec"]["mlPolicy"] if runtime else None
    kind = known.kind if known else _kind(policy)
    start, framework = _STARTS[kind]
    roles, before = _roles(runtime, known, trainer, kind, spec)
    work = Workload(
        TRAINJOB.kind,
        root.at("metadata", "name").text() or root.at("metadata", "generateName").text(),
        start,
        account,
        roles,
        mpi=FAMILIES.get(policy["mpi"]["mpiImplementation"].text(), "OpenMPI")
        if kind == "mpi" and policy
        else "",
        framework="" if kind == "mpi" else framework,
        sets=SETS if kind == "mpi" else _PET,
        others=(runtime.account,) if runtime else (),
        before=before,
    )
    if known:
        work.questions.append((reference, known.question, known.help))
    if kind == "flux":
        work.questions.append(
            (
                reference,
                "Flux starts the ranks, and in a run mpirun does over SSH",
                "Use an image that has MPI and an SSH server.",
            )
        )
    _counts(work, policy, trainer)
    _whole(spec, runtime, work)
    if kind == "mpi" and policy:
        _mpi(work, policy["mpi"])
    return work


def _runtime(spec: Node, others: Sequence[OtherObject]) -> tuple[Node | None, KnownRuntime | None]:
    """Return the runtime among the sources, else what is assumed about it.

    Raises SourceError if neither its name nor the command allows an assumption.
    """
    name = spec["runtimeRef"]["name"].text()
    for one in others:
        metadata = one.value.get("metadata")
        if one.value.get("kind") in RUNTIMES and isinstance(metadata, dict) and metadata.get("name") == name:
            return one.account().root(), None
    trainer = spec["trainer"]
    known = known_runtime(
        name, (*trainer["command"].texts(), *trainer["args"].texts()), trainer["image"].text()
    )
    if known is None:
        raise SourceError(
            f"its runtime {name or '(no name)'} is not among the sources",
            f"Name its file, too: kubectl get clustertrainingruntime {name or 'NAME'} -o yaml > runtime.yaml"
            " (trainingruntime for one of the namespace).",
        )
    return None, known


def _kind(policy: Node | None) -> str:
    if policy is not None:
        for name in _STARTS:
            if isinstance(policy.value, dict) and name in policy.value:
                return name
    return "plain"


def _roles(
    runtime: Node | None, known: KnownRuntime | None, trainer: Node, kind: str, spec: Node
) -> tuple[tuple[Role, ...], tuple[Step, ...]]:
    """Return the pods that train, launcher first, with counts to be set later; and the steps before them.

    Raises SourceError if the runtime has no such pod.
    """
    if runtime is None:
        worker = Role("worker", 1, PodOf(_alone(trainer, known), spec["absent"], more=()))
        return (worker,), tuple(_initializers(spec, {}))
    jobs = {
        one["name"].text(): one for one in runtime.at("spec", "template", "spec", "replicatedJobs").items()
    }
    steps = {one.at("template", "metadata", "labels", ANCESTOR).text(): name for name, one in jobs.items()}
    lead = steps.get("trainer") or (_LAUNCHER if kind == "mpi" and _LAUNCHER in jobs else _NODE)
    names = [lead] if lead == _NODE or _NODE not in jobs else [lead, _NODE]
    roles: list[Role] = []
    for name in names:
        pod = pod_of(jobs[name].at("template", "spec", "template"), _NODE) if name in jobs else None
        if pod is None:
            raise SourceError(f"its runtime has no job {name} with a container")
        pod = patched(changed(pod, trainer, name == lead, name == _NODE or len(names) == 1), spec, name)
        roles.append(
            Role(_LAUNCHER if name == _LAUNCHER else "worker", 1, pod, 0 if name == _LAUNCHER else 1)
        )
    return tuple(roles), tuple(_before(spec, jobs, steps, tuple(names)))


def _before(
    spec: Node, jobs: Mapping[str, Node], ancestors: Mapping[str, str], names: tuple[str, ...]
) -> Iterator[Step]:
    """Yield the steps that end before the pods that train start; ask about other jobs of the runtime."""
    fetching = {
        name: one for one in INITIALIZERS if (name := ancestors.get(f"{one}-initializer", "")) in jobs
    }
    order = steps_before(jobs, names)
    found = {
        one.name: one for one in _initializers(spec, {one: jobs[name] for name, one in fetching.items()})
    }
    for name, job in jobs.items():
        job["name"].dropped(_OWN)
        if name in names:
            continue
        step = step_of_job(job) if name in order and name not in fetching else None
        if name in fetching and fetching[name] in found:
            yield found.pop(fetching[name])
        elif step is not None:
            yield step
        else:
            job.asked(f"a run has no pods {name} beside its workers, and no step of several pods before them")
    yield from found.values()


def _initializers(spec: Node, jobs: Mapping[str, Node]) -> Iterator[Step]:
    """Yield Trainer's initializers: jobs of the runtime, with the TrainJob's settings for them."""
    for one in INITIALIZERS:
        settings, job = spec["initializer"][one], jobs.get(one)
        if settings or job is not None:
            pod = pod_of(job.at("template", "spec", "template"), f"{one}-initializer") if job else None
            yield Step(one, settings if job is None else job, pod, one, settings)


def _alone(trainer: Node, known: KnownRuntime | None) -> ContainerOf:
    """Return the container if the runtime is absent: as the TrainJob says, the rest as in Trainer's own."""
    command, args = trainer["command"].texts(), trainer["args"].texts()
    image = trainer["image"].text() or (known.image if known else "")
    node = LayeredNode(
        trainer["absent"], {name: trainer[name] for name in ("image", "command", "args") if trainer[name]}
    )
    return ContainerOf(
        _NODE, image, (*command, *args), not command, tuple(map(env_of, trainer["env"].items())),
        amounts(trainer["resourcesPerNode"]), (), "", node, trainer["resourcesPerNode"],
    )  # fmt: skip


def _counts(work: Workload, policy: Node | None, trainer: Node) -> None:
    """Set the number of nodes, and the ranks on each."""
    stated, usual = trainer["numNodes"], policy["numNodes"] if policy else trainer["absent"]
    count = stated.number() or usual.number() or 1
    usual.dropped(REPLACED) if stated else usual.mapped("workers")
    work.settings["workers"] = Setting(
        count, (stated or usual or trainer).mapped("workers") if stated or usual else trainer
    )
    lead = work.roles[-1]
    launcher = work.launcher
    roles = [Role(lead.name, count, lead.pod)]
    work.roles = (launcher, *roles) if launcher is not None and launcher is not lead else tuple(roles)
    per_node = trainer["numProcPerNode"]
    if (number := per_node.number()) is not None:
        work.settings["slots"] = Setting(number, per_node.mapped("slots"))
    elif per_node:
        per_node.same("torchrun starts a rank for each GPU")
    main = work.workers.pod.main
    is_torchrun = work.start == "torch" and _has_launcher(main.command)
    if work.start == "torch" and number is None and is_torchrun and not GPUS & set(main.resources):
        cores = _cores(
            main.resources.get("cpu", "")
        )  # torch.go: a rank for each core where there are no GPUs
        if cores > 1:
            work.settings["slots"] = Setting(cores, main.resources_node)


def _has_launcher(words: Sequence[str]) -> bool:
    try:
        return bool(find(words, None))
    except UnreadableError:
        return False


def _cores(text: str) -> int:
    try:
        return int(parse(text).value()) if text else 1
    except QuantityError:
        return 1


def _mpi(work: Workload, mpi: Node) -> None:
    """Map the policy's settings of a launcher: ranks per node, its own ranks, and where keys are."""
    per_node = mpi["numProcPerNode"]
    number = per_node.number() or 1
    if "slots" in work.settings:
        per_node.dropped(REPLACED)
    else:
        gpus = next((one for name, one in work.workers.pod.main.resources.items() if name in GPUS), "")
        slots = int(gpus) if number == 1 and gpus.isdigit() and int(gpus) > 1 else number
        work.settings["slots"] = Setting(slots, per_node.mapped("slots") if per_node else mpi)
    work.ssh_keys = mpi["sshAuthMountPath"].mapped("images.ssh.keys").text()
    work.runs_on_launcher = mpi["runLauncherAsNode"].mapped("launcher.runsRanks").value is True
    mpi["mpiImplementation"].mapped("images.mpi.implementation")
    if work.runs_on_launcher and work.launcher is not None:
        count = work.workers.count
        work.roles = (work.launcher, replace(work.workers, count=max(count - 1, 1)))
    for name in ("command", "args"):
        work.workers.pod.main.node[name].dropped("gangplan starts the SSH server of the workers")


def _whole(spec: Node, runtime: Node | None, work: Workload) -> None:
    """Map policies of the TrainJob and its runtime."""
    suspend(spec["suspend"]) if spec["suspend"] else None
    spec["podGroupPolicy"].dropped(POD_GROUP)
    spec["managedBy"].dropped("the cluster file says whether runs are dispatched (multiKueue)")
    if (seconds := spec["activeDeadlineSeconds"].number()) is not None:
        work.settings["timeout"] = Setting(seconds, spec["activeDeadlineSeconds"])
    for name in ("labels", "annotations"):
        spec[name].dropped("labels: of the spec adds more")
    if runtime is None:
        return
    for name in ("apiVersion", "kind", "metadata"):
        runtime[name].dropped(_OWN)
    policy = runtime["spec"]["mlPolicy"]
    for name in ("torch", "jax", "xgboost", "flux"):
        policy[name].mapped("framework")
    runtime["spec"]["podGroupPolicy"].dropped(POD_GROUP)
    template = runtime["spec"]["template"]
    template["metadata"].dropped(_OWN)
    _room(template["spec"], work)
    jobset_policy(template["spec"], work)
    for job in template["spec"]["replicatedJobs"].items():
        for name in ("replicas", "dependsOn", "groupName"):
            job[name].dropped(_OWN)
        job["template"]["metadata"].dropped(_OWN)
        job_policy(job["template"]["spec"], work)


def _room(jobset: Node, work: Workload) -> None:
    """Set the size of the initializers' volume, which JobSet creates for each run (volumeClaimPolicies)."""
    for policy in jobset["volumeClaimPolicies"].items():
        for one in policy["templates"].items():
            size = one.at("spec", "resources", "requests", "storage")
            if one.at("metadata", "name").text() == "initializer" and work.before:
                work.room = memory_value(size.text()) or ""
                policy.mapped("claims")
