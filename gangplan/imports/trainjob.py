"""Read a TrainJob with its runtime: trainer.kubeflow.org/v1alpha1 (Kubeflow Trainer v2.0 to v2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.amounts import convert_imported_memory
from gangplan.imports.groups import SourcePodGroup
from gangplan.imports.jobs import map_imported_job_policy, map_imported_jobset_policy
from gangplan.imports.jobset import format_question_about_jobs_of_one_template
from gangplan.imports.layers import (
    REPLACED_REASON,
    LayeredNode,
    apply_runtime_patches_to_imported_pod,
    apply_trainer_to_imported_pod,
)
from gangplan.imports.mpijob import MPI_IMPLEMENTATIONS, MPI_OPERATOR_VARIABLES, ROOT_KEYS
from gangplan.imports.numbers import set_jobset_numbers
from gangplan.imports.pods import (
    SourceContainer,
    SourcePod,
    read_amounts,
    read_imported_container_variable,
    read_imported_pod_template,
)
from gangplan.imports.policies import POD_GROUP_REASON, account_for_suspend
from gangplan.imports.runtimes import KnownRuntime, guess_runtime_of_imported_trainjob
from gangplan.imports.sources import OtherObject
from gangplan.imports.steps import convert_replicated_job_to_step, find_source_jobs_before_leads
from gangplan.imports.workload import PodRole, SetupStep, SourceError, SourceJob, SourceSetting, StartMethod
from gangplan.model.amounts import GPU_RESOURCES
from gangplan.model.backend import ANCESTOR_LABEL, RUNTIME_KINDS, TRAINJOB
from gangplan.model.frameworks import Framework
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.plan.launchers import UnreadableError, find_launchers

_NODE, _LAUNCHER = "node", "launcher"
INITIALIZERS = ("dataset", "model")
_PET = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})
_OWN = "a run has a runtime of its own"
_STARTS: dict[str, tuple[StartMethod, Framework]] = {
    "torch": ("torch", "torch"),
    "mpi": ("mpi", "mpi"),
    "jax": ("plain", "jax"),
    "xgboost": ("plain", "xgboost"),
    "flux": ("plain", "mpi"),
    "plain": ("plain", "plain"),
}


def read_imported_trainjob(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a TrainJob.

    Raises SourceError if its runtime is not known, or has no pod that trains.
    """
    root = account.root()
    spec = root["spec"]
    reference = spec["runtimeRef"]
    runtime, known = _find_runtime_among_sources(spec, others)
    alone = _find_job_without_label(runtime)
    trainer = spec["trainer"] if alone is None else spec["absent"]
    reference.dropped(_OWN)
    policy = runtime["spec"]["mlPolicy"] if runtime else None
    kind = known.kind if known else _find_framework_of_ml_policy(policy)
    start, framework = _STARTS[kind]
    roles, before = _read_runtime_roles(runtime, known, trainer, kind, spec)
    work = SourceJob(
        TRAINJOB.kind,
        root.at("metadata", "name").text() or root.at("metadata", "generateName").text(),
        start,
        account,
        roles,
        mpi=MPI_IMPLEMENTATIONS.get(policy["mpi"]["mpiImplementation"].text(), "OpenMPI")
        if kind == "mpi" and policy
        else "",
        framework="" if kind == "mpi" else framework,
        sets=MPI_OPERATOR_VARIABLES if kind == "mpi" else _PET,
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
    count = policy["numNodes"] if policy else trainer["absent"]
    if alone is not None:
        _ask_about_job_without_label(work, spec["trainer"], alone)
        count.dropped("Trainer sets the number of pods of the job with its label, and no job has it")
        count = alone["template"]["spec"]["parallelism"]
    _map_node_and_rank_counts(work, count, trainer, runtime)
    _map_trainjob_policies(spec, runtime, work)
    if kind == "mpi" and policy:
        _map_mpi_policy(work, policy["mpi"])
    return work


def _find_runtime_among_sources(
    spec: SourceNode, others: Sequence[OtherObject]
) -> tuple[SourceNode | None, KnownRuntime | None]:
    """Return the runtime among the sources, else what is assumed about it.

    Raises SourceError if neither its name nor the command allows an assumption.
    """
    name = spec["runtimeRef"]["name"].text()
    for one in others:
        metadata = one.value.get("metadata")
        if (
            one.value.get("kind") in RUNTIME_KINDS
            and isinstance(metadata, dict)
            and metadata.get("name") == name
        ):
            return one.account().root(), None
    trainer = spec["trainer"]
    known = guess_runtime_of_imported_trainjob(
        name, (*trainer["command"].texts(), *trainer["args"].texts()), trainer["image"].text()
    )
    if known is None:
        raise SourceError(
            f"its runtime {name or '(no name)'} is not among the sources",
            f"Name its file, too: kubectl get clustertrainingruntime {name or 'NAME'} -o yaml > runtime.yaml"
            " (trainingruntime for one of the namespace).",
        )
    return None, known


def _list_jobs_without_label(runtime: SourceNode | None) -> tuple[list[SourceNode], int]:
    """Return the jobs of a runtime that have no label of Trainer, and how many jobs it has."""
    jobs = list(runtime.at("spec", "template", "spec", "replicatedJobs").items()) if runtime else []
    label = ("template", "metadata", "labels", ANCESTOR_LABEL)
    return [one for one in jobs if not one.at(*label).text()], len(jobs)


def _find_job_without_label(runtime: SourceNode | None) -> SourceNode | None:
    """Return the only job of a runtime if it has no label of Trainer; its name does not matter (v2.3)."""
    jobs, count = _list_jobs_without_label(runtime)
    return jobs[0] if jobs and count == 1 else None


def _ask_about_job_without_label(work: SourceJob, trainer: SourceNode, job: SourceNode) -> None:
    """Ask about a TrainJob's trainer that Trainer gives to no pod, so that the runtime's own container runs."""
    if not trainer:
        return
    message = f"Trainer gives trainer: to the job with the label {ANCESTOR_LABEL}: trainer, and {job['name'].text()} lacks it"
    help = "The run is what the runtime says; add the label to its job's template.metadata, and import again, where trainer: is meant."
    trainer.asked(message)
    work.questions.append((trainer, message, help))


def _find_framework_of_ml_policy(policy: SourceNode | None) -> str:
    if policy is not None:
        for name in _STARTS:
            if isinstance(policy.value, dict) and name in policy.value:
                return name
    return "plain"


def _read_runtime_roles(
    runtime: SourceNode | None, known: KnownRuntime | None, trainer: SourceNode, kind: str, spec: SourceNode
) -> tuple[tuple[PodRole, ...], tuple[SetupStep, ...]]:
    """Return the pods that train, launcher first, with counts to be set later; and the steps before them.

    Raises SourceError if the runtime has no such pod.
    """
    if runtime is None:
        worker = PodRole(
            "worker", 1, SourcePod(_build_container_from_trainer(trainer, known), spec["absent"], more=())
        )
        return (worker,), tuple(_list_initializer_steps(spec, {}))
    jobs = {
        one["name"].text(): one for one in runtime.at("spec", "template", "spec", "replicatedJobs").items()
    }
    steps = {
        one.at("template", "metadata", "labels", ANCESTOR_LABEL).text(): name for name, one in jobs.items()
    }
    lead = steps.get("trainer") or (_LAUNCHER if kind == "mpi" and _LAUNCHER in jobs else _NODE)
    if _find_job_without_label(runtime) is not None:
        (lead,) = jobs
    names = [lead] if lead == _NODE or _NODE not in jobs else [lead, _NODE]
    roles: list[PodRole] = []
    for name in names:
        pod = (
            read_imported_pod_template(jobs[name].at("template", "spec", "template"), _NODE)
            if name in jobs
            else None
        )
        if pod is None:
            raise SourceError(f"its runtime has no job {name} with a container")
        pod = apply_runtime_patches_to_imported_pod(
            apply_trainer_to_imported_pod(pod, trainer, name == lead, name == _NODE or len(names) == 1),
            spec,
            name,
        )
        roles.append(
            PodRole(_LAUNCHER if name == _LAUNCHER else "worker", 1, pod, 0 if name == _LAUNCHER else 1)
        )
    return tuple(roles), tuple(_list_steps_before_training(spec, jobs, steps, tuple(names)))


def _list_steps_before_training(
    spec: SourceNode, jobs: Mapping[str, SourceNode], ancestors: Mapping[str, str], names: tuple[str, ...]
) -> Iterator[SetupStep]:
    """Yield the steps that end before the pods that train start; ask about other jobs of the runtime."""
    fetching = {
        name: one for one in INITIALIZERS if (name := ancestors.get(f"{one}-initializer", "")) in jobs
    }
    order = find_source_jobs_before_leads(jobs, names)
    found = {
        one.name: one
        for one in _list_initializer_steps(spec, {one: jobs[name] for name, one in fetching.items()})
    }
    for name, job in jobs.items():
        job["name"].dropped(_OWN)
        if name in names:
            continue
        step = convert_replicated_job_to_step(job) if name in order and name not in fetching else None
        if name in fetching and fetching[name] in found:
            yield found.pop(fetching[name])
        elif step is not None:
            yield step
        else:
            job.asked(
                f"a run has no pods {name} next to its workers, and no step of several pods before them"
            )
    yield from found.values()


def _list_initializer_steps(spec: SourceNode, jobs: Mapping[str, SourceNode]) -> Iterator[SetupStep]:
    """Yield Trainer's initializers: jobs of the runtime, with the TrainJob's settings for them."""
    for one in INITIALIZERS:
        settings, job = spec["initializer"][one], jobs.get(one)
        if settings or job is not None:
            pod = (
                read_imported_pod_template(job.at("template", "spec", "template"), f"{one}-initializer")
                if job
                else None
            )
            yield SetupStep(one, settings if job is None else job, pod, one, settings)


def _build_container_from_trainer(trainer: SourceNode, known: KnownRuntime | None) -> SourceContainer:
    """Return the container if the runtime is absent: as the TrainJob says, the rest as in Trainer's own."""
    command, args = trainer["command"].texts(), trainer["args"].texts()
    image = trainer["image"].text() or (known.image if known else "")
    node = LayeredNode(
        trainer["absent"], {name: trainer[name] for name in ("image", "command", "args") if trainer[name]}
    )
    return SourceContainer(
        _NODE, image, (*command, *args), not command, tuple(map(read_imported_container_variable, trainer["env"].items())),
        read_amounts(trainer["resourcesPerNode"]), (), "", node, trainer["resourcesPerNode"],
    )  # fmt: skip


def _count_jobs_of_one_template(work: SourceJob, runtime: SourceNode | None, pods: int) -> int:
    """Return how many jobs the runtime makes of the one that trains, and ask about several.

    Trainer sets 1 for a job with its label, and refuses others (v2.3, webhooks/trainingruntime_webhook.go).
    Raises SourceError for none.
    """
    found = _find_job_without_label(runtime)
    job = found or next(
        (one for one in _list_jobs_without_label(runtime)[0] if one["name"].text() == _NODE), None
    )
    jobs = job["replicas"].count() if job is not None else None
    if job is None or runtime is None or jobs in (None, 1):
        return 1
    if not jobs:
        raise SourceError(f"its runtime has no pods: replicas of the job {job['name'].text()} is 0")
    asked = format_question_about_jobs_of_one_template(jobs, pods)
    work.questions.append((job["replicas"].mapped("workers"), *asked))
    group = SourcePodGroup(job["name"].text(), jobs * pods, work.workers.pod, job)
    set_jobset_numbers(work, runtime.at("spec", "template", "spec"), [group])
    return jobs


def _map_node_and_rank_counts(
    work: SourceJob, usual: SourceNode, trainer: SourceNode, runtime: SourceNode | None
) -> None:
    """Set the number of nodes, which the runtime says if the TrainJob does not, and the ranks on each."""
    stated = trainer["numNodes"]
    count = stated.count() or usual.count() or 1
    count *= _count_jobs_of_one_template(work, runtime, count)
    usual.dropped(REPLACED_REASON) if stated else usual.mapped("workers")
    work.settings["workers"] = SourceSetting(
        count, (stated or usual or trainer).mapped("workers") if stated or usual else trainer
    )
    lead = work.roles[-1]
    launcher = work.launcher
    roles = [PodRole(lead.name, count, lead.pod)]
    work.roles = (launcher, *roles) if launcher is not None and launcher is not lead else tuple(roles)
    per_node = trainer["numProcPerNode"]
    if (number := per_node.number()) is not None:
        work.settings["slots"] = SourceSetting(number, per_node.mapped("slots"))
    elif per_node:
        per_node.same("torchrun starts a rank for each GPU")
    main = work.workers.pod.main
    is_torchrun = work.start == "torch" and _has_launcher(main.command)
    if work.start == "torch" and number is None and is_torchrun and not GPU_RESOURCES & set(main.resources):
        cores = _parse_cpu_cores(
            main.resources.get("cpu", "")
        )  # torch.go: a rank for each core where there are no GPUs
        if cores > 1:
            work.settings["slots"] = SourceSetting(cores, main.resources_node)


def _has_launcher(words: Sequence[str]) -> bool:
    try:
        return bool(find_launchers(words, None))
    except UnreadableError:
        return False


def _parse_cpu_cores(text: str) -> int:
    try:
        return int(parse_quantity(text).value()) if text else 1
    except QuantityError:
        return 1


def _map_mpi_policy(work: SourceJob, mpi: SourceNode) -> None:
    """Map the policy's settings of a launcher: ranks per node, its own ranks, and where keys are."""
    per_node = mpi["numProcPerNode"]
    number = per_node.number() or 1
    if "slots" in work.settings:
        per_node.dropped(REPLACED_REASON)
    else:
        gpus = next(
            (one for name, one in work.workers.pod.main.resources.items() if name in GPU_RESOURCES), ""
        )
        slots = int(gpus) if number == 1 and gpus.isdigit() and int(gpus) > 1 else number
        work.settings["slots"] = SourceSetting(slots, per_node.mapped("slots") if per_node else mpi)
    work.ssh_keys = mpi["sshAuthMountPath"].mapped("images.ssh.keys") or None
    work.default_keys = ROOT_KEYS if mpi else ""
    work.runs_on_launcher = mpi["runLauncherAsNode"].mapped("launcher.runsRanks").value is True
    mpi["mpiImplementation"].mapped("images.mpi.implementation")
    if work.runs_on_launcher and work.launcher is not None:
        count = work.workers.count
        work.roles = (work.launcher, replace(work.workers, count=max(count - 1, 1)))
    for name in ("command", "args") if work.launcher is None else ():
        work.workers.pod.main.node[name].dropped("gangplan starts the SSH server of the workers")


def _map_trainjob_policies(spec: SourceNode, runtime: SourceNode | None, work: SourceJob) -> None:
    """Map policies of the TrainJob and its runtime."""
    account_for_suspend(spec["suspend"]) if spec["suspend"] else None
    spec["podGroupPolicy"].dropped(POD_GROUP_REASON)
    spec["managedBy"].dropped("the cluster file says whether runs are dispatched (multiKueue)")
    if (seconds := spec["activeDeadlineSeconds"].number()) is not None:
        work.settings["timeout"] = SourceSetting(seconds, spec["activeDeadlineSeconds"])
    for name in ("labels", "annotations"):
        spec[name].dropped("labels: of the spec adds more")
    if runtime is None:
        return
    for name in ("apiVersion", "kind", "metadata"):
        runtime[name].dropped(_OWN)
    policy = runtime["spec"]["mlPolicy"]
    for name in ("torch", "jax", "xgboost", "flux"):
        policy[name].mapped("framework")
    runtime["spec"]["podGroupPolicy"].dropped(POD_GROUP_REASON)
    template = runtime["spec"]["template"]
    template["metadata"].dropped(_OWN)
    _map_initializer_volume_size(template["spec"], work)
    map_imported_jobset_policy(template["spec"], work)
    for job in template["spec"]["replicatedJobs"].items():
        for name in ("replicas", "dependsOn", "groupName"):
            job[name].dropped(_OWN)
        job["template"]["metadata"].dropped(_OWN)
        map_imported_job_policy(job["template"]["spec"], work)


def _map_initializer_volume_size(jobset: SourceNode, work: SourceJob) -> None:
    """Set the size of the initializers' volume, which JobSet creates for each run (volumeClaimPolicies)."""
    for policy in jobset["volumeClaimPolicies"].items():
        for one in policy["templates"].items():
            size = one.at("spec", "resources", "requests", "storage")
            if one.at("metadata", "name").text() == "initializer" and work.before:
                work.room = convert_imported_memory(size.text()) or ""
                policy.mapped("claims")
