"""Checks of the numbers of pods and ranks, their image and their devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.model.backend import ANCESTOR
from gangplan.model.frameworks import POLICIES
from gangplan.model.quantity import QuantityError, parse
from gangplan.validate.jobset import ENTRIES, LAUNCHER, WORKER, step_of
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import CONTAINER, Laid, LaidRole, Place
from gangplan.validate.promise.words import broken, counted, weakened

Found = Iterator[tuple[int, Problem]]
DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")


def pods(laid: Laid) -> Found:
    """Check that each role exists, with the planned number of pods and the program's container."""
    layout = laid.unit.layout
    wanted = {WORKER: layout.node_pods}
    if laid.uses_mpi:
        wanted[LAUNCHER] = layout.launcher_pods
    for name, planned in wanted.items():
        role = laid.roles.get(name)
        if role is None:
            if planned:
                yield laid.runtime, _no_role(name)
            continue
        if role.container is None:
            message = f"{role.title} would have no container '{CONTAINER}', which runs the program"
            help = f"Keep the name '{CONTAINER}': Trainer puts command, keys and hosts into it."
            yield laid.runtime, broken((*role.pod, "containers"), message, help)
        is_told = not laid.uses_mpi and step_of(role.entry) != "trainer"  # reported as missing variables
        if role.pods != planned and not is_told:
            yield _other_count(laid, role, planned)


def _no_role(name: str) -> Problem:
    what = "launcher" if name == LAUNCHER else "workers"
    message = (
        f"the run would have no {what}: the replicated job '{name}' is missing, and Trainer finds it by name"
    )
    return broken(ENTRIES, message, "Keep the names of the replicated jobs; patch only their contents.")


def _other_count(laid: Laid, role: LaidRole, planned: int) -> tuple[int, Problem]:
    """Report a wrong number of pods at its cause: replicas, or the nodes of the runtime or TrainJob."""
    what = "launcher" if role.name == LAUNCHER else "worker pod"
    message = f"the run would have {counted(role.pods, what)}; the plan has {planned}"
    help = f"If you want that, write workers: {role.pods} in the spec; the plan, quota and ranks follow it."
    if role.name == LAUNCHER:
        help = "A run has one launcher: each would start all ranks. Write workers in the spec for more pods."
    at = _multiplier(laid, role)
    return at[0], broken(at[1], message, help, "workers")


def _multiplier(laid: Laid, role: LaidRole) -> Place:
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


def slots(laid: Laid) -> Found:
    """Check the ranks per worker, as Trainer writes them into the hostfile and PET_NPROC_PER_NODE."""
    planned, mpi = laid.unit.layout.slots, laid.policy.get("mpi")
    stated = laid.trainer.get("numProcPerNode")
    at: Place = (laid.train_job, ("spec", "trainer", "numProcPerNode"))
    policy = POLICIES.get(laid.unit.job.image.framework)
    if policy is not None and policy not in laid.policy:
        message = (
            f"the runtime has no mlPolicy.{policy}: Trainer would start pods that do not know each other"
        )
        yield laid.runtime, broken(("spec", "mlPolicy", policy), message, "Keep the policy as it is.")
        return
    if policy not in ("mpi", "torch"):
        return  # every worker starts the command once, regardless of the stated number
    worker = laid.roles.get(WORKER)
    if stated is None and mpi is not None:
        stated = mpi.get("numProcPerNode", 1)
        if stated == 1 and worker is not None and (devices := _gpus(worker)) > 1:
            stated = devices
    if stated is None or stated in ("auto", "gpu", "cpu"):
        count = _gpus(worker) if worker is not None and stated != "cpu" else 0
        stated = count or None
    if stated != planned:
        ranks = "as many ranks as cores" if stated is None else counted(stated, "rank")
        message = f"each worker would start {ranks}; the plan has {counted(planned, 'slot')} a worker"
        help = "Write slots in the spec: the command, quota and the number of ranks follow it."
        yield at[0], broken(at[1], message, help, "slots")
    yield from _runs_ranks(laid, mpi)
    yield from _injected(laid)


def _gpus(role: LaidRole) -> int:
    """Return the number of GPUs as Trainer counts it.

    Trainer takes the first resource with gpu in its name (plugins, v2.1 to v2.3).
    """
    resources = (role.container or {}).get("resources") or {}
    for side in ("requests", "limits"):
        for name, amount in (resources.get(side) or {}).items():
            if "gpu" in name.lower():
                return int(_number(amount))
    return 0


def _runs_ranks(laid: Laid, mpi: Any) -> Found:
    """Check whether the launcher runs ranks; with one worker the numbers of pods do not show it."""
    planned = laid.unit.job.launcher_runs_ranks
    built = bool((mpi or {}).get("runLauncherAsNode"))
    if laid.uses_mpi and built != planned:
        does = "would run ranks too" if built else "would run no ranks"
        message = f"the launcher {does}, so the hostfile would list other hosts than the plan"
        help = f"Write launcher: {{runsRanks: {str(built).lower()}}} in the spec."
        yield laid.runtime, broken(("spec", "mlPolicy", "mpi", "runLauncherAsNode"), message, help)


def _injected(laid: Laid) -> Found:
    """Check that torch workers get the variables by which they find each other.

    Trainer sets them only in the job with the label `ANCESTOR`, and only if spec.trainer exists.
    """
    role = laid.roles.get(WORKER)
    if laid.uses_mpi or role is None:
        return
    if step_of(role.entry) != "trainer":
        message = "without this label Trainer does not tell the workers of each other: each would train alone"
        at = (*role.at, "template", "metadata", "labels", ANCESTOR)
        yield laid.runtime, broken(at, message, f"Keep {ANCESTOR}: trainer.")
    elif laid.job.get("trainer") is None:
        message = "without spec.trainer Trainer gives the workers no PET_* variables: each would train alone"
        yield laid.train_job, broken(("spec", "trainer"), message, "Leave spec.trainer.")


def images(laid: Laid) -> Found:
    """Check that every role runs the planned image, or a mirror with the same digest."""
    planned = laid.unit.job.image.reference
    for role in laid.present:
        built = str((role.container or {}).get("image", ""))
        if role.container is None or built == planned:
            continue
        mine, theirs = DIGEST.search(planned), DIGEST.search(built)
        if mine and theirs and mine[1] == theirs[1]:
            continue
        index, path = role.place("image")
        message = f"{role.title} would run image {built or '(none)'}; the plan has {planned} in every pod"
        help = (
            f"Write the digest or repository of '{laid.unit.job.image.name}' for this cluster in"
            " images/catalog.yaml; a mirror with the same @sha256 digest is allowed here."
        )
        yield index, broken(path, message, help, "image")


def devices(laid: Laid) -> Found:
    """Check that workers have at least the planned devices, cores and memory.

    Quotas and nodes limit how much more they may have.
    """
    role = laid.roles.get(WORKER)
    if role is None or role.container is None:
        return
    wanted, resources = laid.unit.job.resources, role.container.get("resources") or {}
    built = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    at = (*role.place("resources")[1], "requests")
    for name, count in wanted.devices:
        if _number(built.get(name, 0)) < count:
            message = (
                f"each worker would get {built.get(name, 0)} {name}; the plan has {count} for its"
                f" {counted(laid.unit.layout.slots, 'rank')}"
            )
            yield laid.runtime, broken((*at, name), message, "Write gpus in the spec.", "gpus")
    for name, amount in (("cpu", wanted.cpu), ("memory", wanted.memory), *wanted.others):
        if (name in built or name in dict(wanted.others)) and _number(built[name]) < amount.nano / 10**9:
            message = f"each worker would get {name} {built[name]}; the plan has {amount.canonical()}"
            yield laid.runtime, weakened((*at, name), message, f"Write {name} in the spec.")


def _number(amount: Any) -> float:
    try:
        return parse(str(amount)).nano / 10**9
    except QuantityError:
        return 0
