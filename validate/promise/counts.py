"""Checks of the numbers of pods and ranks, their image and their devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.model.backend import ANCESTOR_LABEL
from gangplan.model.frameworks import ML_POLICIES
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.validate.jobset import LAUNCHER, REPLICATED_JOBS_PATH, WORKER, find_trainjob_step
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import PROGRAM_CONTAINER, ExpandedRole, ExpandedRun, RolePlace
from gangplan.validate.promise.words import format_counted_noun, report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
DIGEST_SUFFIX = re.compile(r"@(sha256:[0-9a-f]{64})$")


def check_promised_pods(laid: ExpandedRun) -> Found:
    """Check that each role exists, with the planned number of pods and the program's container."""
    layout = laid.unit.layout
    wanted = {WORKER: layout.node_pods}
    if laid.uses_mpi:
        wanted[LAUNCHER] = layout.launcher_pods
    for name, planned in wanted.items():
        role = laid.roles.get(name)
        if role is None:
            if planned:
                yield laid.runtime, _report_missing_promised_role(name)
            continue
        if role.container is None:
            message = f"{role.title} would have no container '{PROGRAM_CONTAINER}', which runs the program"
            help = f"Keep the name '{PROGRAM_CONTAINER}': Trainer puts command, keys and hosts into it."
            yield laid.runtime, report_broken_promise((*role.pod, "containers"), message, help)
        is_told = (
            not laid.uses_mpi and find_trainjob_step(role.entry) != "trainer"
        )  # reported as missing variables
        if role.pods != planned and not is_told:
            yield _report_wrong_pod_count(laid, role, planned)


def _report_missing_promised_role(name: str) -> Problem:
    what = "launcher" if name == LAUNCHER else "workers"
    message = (
        f"the run would have no {what}: the replicated job '{name}' is missing, and Trainer finds it by name"
    )
    return report_broken_promise(
        REPLICATED_JOBS_PATH, message, "Keep the names of the replicated jobs; patch only their contents."
    )


def _report_wrong_pod_count(laid: ExpandedRun, role: ExpandedRole, planned: int) -> tuple[int, Problem]:
    """Report a wrong number of pods at its cause: replicas, or the nodes of the runtime or TrainJob."""
    what = "launcher" if role.name == LAUNCHER else "worker pod"
    message = f"the run would have {format_counted_noun(role.pods, what)}; the plan has {planned}"
    help = f"If you want that, write workers: {role.pods} in the spec; the plan, quota and ranks follow it."
    if role.name == LAUNCHER:
        help = "A run has one launcher: each would start all ranks. Write workers in the spec for more pods."
    at = _find_field_of_promised_pod_count(laid, role)
    return at[0], report_broken_promise(at[1], message, help, "workers")


def _find_field_of_promised_pod_count(laid: ExpandedRun, role: ExpandedRole) -> RolePlace:
    nodes, template = laid.trainer.get("numNodes"), role.job
    if role.entry.get("replicas", 1) != 1:
        return laid.runtime, (*role.at, "replicas")
    if role.name == LAUNCHER:
        is_policy = laid.policy.get("numNodes", 1) != 1
        return laid.runtime, (
            ("spec", "mlPolicy", "numNodes") if is_policy else (*role.at, "template", "spec", "parallelism")
        )
    if nodes == laid.unit.layout.num_nodes and laid.uses_mpi:
        return laid.runtime, ("spec", "mlPolicy", "mpi", "runLauncherAsNode")
    if nodes is None and template.get("parallelism", 1) != 1:
        return laid.runtime, (*role.at, "template", "spec", "parallelism")
    return laid.train_job, ("spec", "trainer", "numNodes")


def check_promised_slots(laid: ExpandedRun) -> Found:
    """Check the ranks per worker, as Trainer writes them into the hostfile and PET_NPROC_PER_NODE."""
    planned, mpi = laid.unit.layout.slots, laid.policy.get("mpi")
    stated = laid.trainer.get("numProcPerNode")
    at: RolePlace = (laid.train_job, ("spec", "trainer", "numProcPerNode"))
    policy = ML_POLICIES.get(laid.unit.job.image.framework)
    if policy is not None and policy not in laid.policy:
        message = (
            f"the runtime has no mlPolicy.{policy}: Trainer would start pods that do not know each other"
        )
        yield (
            laid.runtime,
            report_broken_promise(("spec", "mlPolicy", policy), message, "Keep the policy as it is."),
        )
        return
    if policy not in ("mpi", "torch"):
        return  # every worker starts the command once, regardless of the stated number
    worker = laid.roles.get(WORKER)
    if stated is None and mpi is not None:
        stated = mpi.get("numProcPerNode", 1)
        if stated == 1 and worker is not None and (devices := _count_role_gpus_like_trainer(worker)) > 1:
            stated = devices
    if stated is None or stated in ("auto", "gpu", "cpu"):
        count = _count_role_gpus_like_trainer(worker) if worker is not None and stated != "cpu" else 0
        stated = count or None
    if stated != planned:
        ranks = "as many ranks as cores" if stated is None else format_counted_noun(stated, "rank")
        message = (
            f"each worker would start {ranks}; the plan has {format_counted_noun(planned, 'slot')} a worker"
        )
        help = "Write slots in the spec: the command, quota and the number of ranks follow it."
        yield at[0], report_broken_promise(at[1], message, help, "slots")
    yield from _check_launcher_runs_ranks(laid, mpi)
    yield from _check_promised_torch_variables(laid)


def _count_role_gpus_like_trainer(role: ExpandedRole) -> int:
    """Return the number of GPUs as Trainer counts it.

    Trainer takes the first resource with gpu in its name (plugins, v2.1 to v2.3).
    """
    resources = (role.container or {}).get("resources") or {}
    for side in ("requests", "limits"):
        for name, amount in (resources.get(side) or {}).items():
            if "gpu" in name.lower():
                return int(_parse_amount_or_zero(amount))
    return 0


def _check_launcher_runs_ranks(laid: ExpandedRun, mpi: Any) -> Found:
    """Check whether the launcher runs ranks; with one worker the numbers of pods do not show it."""
    planned = laid.unit.job.launcher_runs_ranks
    built = bool((mpi or {}).get("runLauncherAsNode"))
    if laid.uses_mpi and built != planned:
        does = "would run ranks too" if built else "would run no ranks"
        message = f"the launcher {does}, so the hostfile would list other hosts than the plan"
        help = f"Write launcher: {{runsRanks: {str(built).lower()}}} in the spec."
        yield (
            laid.runtime,
            report_broken_promise(("spec", "mlPolicy", "mpi", "runLauncherAsNode"), message, help),
        )


def _check_promised_torch_variables(laid: ExpandedRun) -> Found:
    """Check that torch workers get the variables by which they find each other.

    Trainer sets them only in the job with the label `ANCESTOR_LABEL`, and only if spec.trainer exists.
    """
    role = laid.roles.get(WORKER)
    if laid.uses_mpi or role is None:
        return
    if find_trainjob_step(role.entry) != "trainer":
        message = "without this label Trainer does not tell the workers of each other: each would train alone"
        at = (*role.at, "template", "metadata", "labels", ANCESTOR_LABEL)
        yield laid.runtime, report_broken_promise(at, message, f"Keep {ANCESTOR_LABEL}: trainer.")
    elif laid.job.get("trainer") is None:
        message = "without spec.trainer Trainer gives the workers no PET_* variables: each would train alone"
        yield laid.train_job, report_broken_promise(("spec", "trainer"), message, "Leave spec.trainer.")


def check_promised_images(laid: ExpandedRun) -> Found:
    """Check that every role runs the planned image, or a mirror with the same digest."""
    planned = laid.unit.job.image.reference
    for role in laid.present:
        built = str((role.container or {}).get("image", ""))
        if role.container is None or built == planned:
            continue
        mine, theirs = DIGEST_SUFFIX.search(planned), DIGEST_SUFFIX.search(built)
        if mine and theirs and mine[1] == theirs[1]:
            continue
        index, path = role.place("image")
        message = f"{role.title} would run image {built or '(none)'}; the plan has {planned} in every pod"
        help = (
            f"Write the digest or repository of '{laid.unit.job.image.name}' for this cluster in"
            " images/catalog.yaml; a mirror with the same @sha256 digest is allowed here."
        )
        yield index, report_broken_promise(path, message, help, "image")


def check_promised_devices(laid: ExpandedRun) -> Found:
    """Check that workers have at least the planned devices, cores and memory.

    Quotas and nodes limit how much more they may have.
    """
    role = laid.roles.get(WORKER)
    if role is None or role.container is None:
        return
    wanted, resources = laid.unit.job.resources, role.container.get("resources") or {}
    built = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    if wanted.claims:
        from gangplan.validate.claims import count_claimed_devices  # few runs have claims

        claimed = dict(count_claimed_devices(role.template, laid.run.bodies, role.container))
        built |= {one.resource: claimed.get(one.device_class, 0) for one in wanted.claims}
    of_claims, place = {one.resource for one in wanted.claims}, role.place("resources")[1]
    at = (*place, "requests")
    for name, count in wanted.devices:
        if _parse_amount_or_zero(built.get(name, 0)) < count and name in of_claims:
            message = f"each worker would claim {built[name]} {name}; the plan has {count}"
            help = (
                "Keep the worker's claims and their templates: network.rdma in the spec asks for the devices."
            )
            yield laid.runtime, report_broken_promise((*place, "claims"), message, help, "rdma")
        elif _parse_amount_or_zero(built.get(name, 0)) < count:
            message = (
                f"each worker would get {built.get(name, 0)} {name}; the plan has {count} for its"
                f" {format_counted_noun(laid.unit.layout.slots, 'rank')}"
            )
            yield laid.runtime, report_broken_promise((*at, name), message, "Write gpus in the spec.", "gpus")
    for name, amount in (("cpu", wanted.cpu), ("memory", wanted.memory), *wanted.others):
        if (name in built or name in dict(wanted.others)) and _parse_amount_or_zero(
            built[name]
        ) < amount.nano / 10**9:
            message = f"each worker would get {name} {built[name]}; the plan has {amount.canonical()}"
            yield laid.runtime, report_weakened_plan((*at, name), message, f"Write {name} in the spec.")


def _parse_amount_or_zero(amount: Any) -> float:
    try:
        return parse_quantity(str(amount)).nano / 10**9
    except QuantityError:
        return 0
