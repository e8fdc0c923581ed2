"""What runs amount to: as text for people, as data for machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gangplan.model.amounts import bare, say
from gangplan.model.duration import format_duration
from gangplan.model.identity import subject_of
from gangplan.model.job import Job, PodContainer, Resources, Role
from gangplan.model.quantity import ZERO, Quantity
from gangplan.pipeline.team_room import TeamRoom
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.admission import admission_document
from gangplan.report.cost import cost_document, cost_words
from gangplan.report.edit import edit_words, over_words, seldom_parts, seldom_rows
from gangplan.report.escape import LONGEST_DESCRIPTION, own_line, short
from gangplan.report.fabric import fabric_document, fabric_words
from gangplan.report.losses import elastic, exits
from gangplan.report.nodes import node_document, node_words
from gangplan.report.room import room_document, room_words
from gangplan.validate.kueue import admission_words

SHAPE = 1


def plan_text(
    runs: Sequence[PlannedRun], since: int | None = None, rooms: Mapping[str, TeamRoom] = {}
) -> str:
    """Return a block per run, then totals per cluster; for schedules, the starts after `since` (seconds
    since 1970).

    `rooms` are what runs leave of their teams' quotas, by the paths of their files.
    """
    block = partial(_block, since=since, rooms=rooms)
    if any(run.unit.job.trial for run in runs):
        from gangplan.report import sweeps  # few workspaces have sweeps

        plain, found = sweeps.apart(runs)
        blocks = [*map(block, plain), *(sweeps.sweep_block(one, block) for one in found)]
    else:
        blocks = [block(run) for run in runs]
    blocks += _chains(runs, text=True)
    totals = [f"{cluster}: {_sentence(total)}" for cluster, total in _totals(runs).items()]
    return "\n".join([*blocks, "totals", *(f"  {line}" for line in totals), ""]) if runs else ""


def run_line(run: PlannedRun) -> str:
    """Return a run in one line: `on lab: 8 ranks on 4 workers, 33 CPU, 130 GiB of memory, 8 GPUs; admitted
    at once`."""
    if run.unit.job.is_archived or run.unit.job.is_stopped:
        return f"on {run.cluster}: {over_words(run.unit.job)}"
    layout = run.unit.layout
    ranks = f"{layout.ranks} rank{'' if layout.ranks == 1 else 's'}"
    workers = f"{layout.workers} worker{'' if layout.workers == 1 else 's'}"
    return f"on {run.cluster}: {ranks} on {workers}, {_sentence(run_totals(run))}; {admission_words(run.verdict)}"


def plan_document(
    runs: Sequence[PlannedRun], since: int | None = None, rooms: Mapping[str, TeamRoom] = {}
) -> dict[str, Any]:
    """Return the plan as data. Quantities are canonical texts, times are seconds. `rooms` are as in
    `plan_text`."""
    return {
        "version": SHAPE,
        "runs": [_run(run, since, rooms.get(run.path)) for run in runs],
        **_sweeps(runs),
        **({"chains": chains} if (chains := _chains(runs, text=False)) else {}),
        "totals": {cluster: _as_text(total) for cluster, total in _totals(runs).items()},
    }


def _chains(runs: Sequence[PlannedRun], text: bool) -> list[Any]:
    """Return the order of jobs, as text or data for each team of a cluster; few workspaces have one."""
    if not any(run.unit.job.after for run in runs):
        return []
    from gangplan.report import chains

    return chains.chain_texts(runs) if text else chains.chain_documents(runs)


def _sweeps(runs: Sequence[PlannedRun]) -> dict[str, Any]:
    """Return what the trials of each sweep amount to; empty without a sweep."""
    if not any(run.unit.job.trial for run in runs):
        return {}
    from gangplan.report import sweeps

    return {"sweeps": [sweeps.sweep_document(one) for one in sweeps.apart(runs)[1]]}


def _block(run: PlannedRun, since: int | None, rooms: Mapping[str, TeamRoom]) -> str:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    launcher = ""
    if layout.launcher_pods:
        launcher = (
            " (the launcher is one of them)"
            if job.launcher_runs_ranks
            else f" + launcher ({_shape(job.launcher)})"
        )
    others = "".join(f" + {one.workers} {one.name}" for one in job.others)
    rows = [
        ("about", short(own_line(job.description), LONGEST_DESCRIPTION)),
        ("edit", edit_words(run)),
        *seldom_rows(job, since),
        ("ranks", f"{layout.ranks} = {layout.workers} workers x {layout.slots} slots"),
        (
            "pods",
            f"{layout.pods} = {layout.workers} workers ({_shape(job.resources)} each){launcher}{others}",
        ),
        ("totals", _sentence(run_totals(run))),
        ("command", shlex.join(launch.argv)),
        ("folder", job.workdir),
        ("steps", _steps(job)),
        ("roles", _roles(job)),
        ("setup", _containers(job, False)),
        ("sidecars", _containers(job, True)),
        ("elastic", elastic(job)),
        ("scratch", _scratch(job)),
        ("volumes", _volumes(job)),
        ("exits", exits(job)),
        ("image", job.image.reference),
        ("pool", job.worker_pool.name),
        (
            "queue",
            f"{job.queue or 'none'}, priority {job.priority}, timeout {format_duration(job.timeout_s)}, retries {job.retries}, grace period {format_duration(job.grace_s)}",
        ),
        ("quota", room_words(rooms.get(run.path))),
        ("admission", admission_words(run.verdict)),
        ("nodes", node_words(run.fit)),
        (
            "network",
            job.posture + (f", {job.worker_pool.gbps} Gbit/s per node" if job.worker_pool.gbps else ""),
        ),
        ("identity", _identity(job)),
        ("fabric", fabric_words(job.fabric)),
        ("cost", cost_words(run)),
    ]
    lines = "".join(f"  {name:<9} {value}\n" for name, value in rows if value)
    return f"{job.source} on {run.cluster}: {job.namespace}/{run.name}\n{lines}"


def _roles(job: Job) -> str:
    """Return `ps: 2 pods (8 CPU, 32 GiB of memory each)`; empty without any."""
    return "; ".join(
        f"{one.name}: {one.workers} pod{'' if one.workers == 1 else 's'} ({_shape(one.resources)} each), pool {one.pool.name}"
        for one in job.roles
    )


def _steps(job: Job) -> str:
    """Return `tokenize (1 CPU, 8 GiB of memory, at most 5m): python tokenize.py`, one after the other;
    empty without any."""
    return "; ".join(
        f"{one.name} ({_shape(one.resources)}, at most {format_duration(one.step.timeout_s)}): {step_words(one)}"
        for one in job.steps
        if one.step
    )


def step_words(step: Role) -> str:
    """Return what a step does: `fetch hf://example/llama to /models/llama`, or its command."""
    if step.step and step.step.source:
        return f"fetch {step.step.source} to {step.step.to}"
    return shlex.join(step.argv)


def _containers(job: Job, beside: bool) -> str:
    """Return `metrics (0.5 CPU, 512 MiB of memory): python metrics.py`, one after the other; empty without
    any."""
    found = [one for one in job.containers if one.is_sidecar == beside]
    return "; ".join(
        f"{one.name} ({say('cpu', one.cpu)}, {say('memory', one.memory)})"
        + (f": {shlex.join(one.argv)}" if one.argv else "")
        for one in found
    )


def _identity(job: Job) -> str:
    """Return `ROLE of aws, as system:serviceaccount:NAMESPACE:training`: what the cloud must trust; empty
    without one."""
    if job.identity is None:
        return ""
    subject = subject_of(job.namespace, job.service_account)
    return f"{job.identity.name} of {job.identity.provider}, as {subject}"


def _scratch(job: Job) -> str:
    """Return `200 GiB on disk at /scratch`; empty without any."""
    found = next((mount.scratch for mount in job.mounts if mount.scratch), None)
    if found is None:
        return ""
    kinds = {"disk": "on disk", "memory": "in memory", "local": f"on local disks ({found.storage_class})"}
    return f"{bare('storage', found.size)} {kinds[found.medium]} at {found.path} in each worker"


def _volumes(job: Job) -> str:
    """Return `work: 500 GiB of fast at /work; vault: secrets-store.csi.k8s.io at /mnt/secrets`; empty
    without any."""
    told = []
    for one in job.mounts:
        if one.own_claim:
            size = bare("storage", one.own_claim.size)
            told.append(f"{one.name}: {size} of {one.own_claim.storage_class} at {one.path}")
        elif one.inline and one.inline.name:
            told.append(f"{one.name}: {one.inline.driver} at {one.path}")
    return "; ".join(told)


def _shape(resources: Resources) -> str:
    return _sentence(_amounts(resources))


def run_totals(run: PlannedRun) -> dict[str, Quantity]:
    """Return the requests of all pods of a run, by resource name."""
    job, layout = run.unit.job, run.unit.layout
    workers = layout.workers
    total = {"cpu": job.worker_pod.cpu * workers, "memory": job.worker_pod.memory * workers}
    for name, amount in job.resources.amounts.items():
        total[name] = amount * workers
    for role in job.others:
        for name, amount in _amounts(role.resources).items():
            total[name] = total.get(name, ZERO) + amount * role.workers
    if layout.launcher_pods and not job.launcher_runs_ranks:
        total["cpu"] += job.launcher.cpu
        total["memory"] += job.launcher.memory
    return total


def _amounts(resources: Resources) -> dict[str, Quantity]:
    return {"cpu": resources.cpu, "memory": resources.memory, **resources.amounts}


def _totals(runs: Sequence[PlannedRun]) -> dict[str, dict[str, Quantity]]:
    totals: dict[str, dict[str, Quantity]] = {}
    for run in runs:
        total = totals.setdefault(run.cluster, {})
        for name, amount in run_totals(run).items():
            total[name] = total[name] + amount if name in total else amount
    return dict(sorted(totals.items()))


def _sentence(total: dict[str, Quantity]) -> str:
    """Return amounts with GPUs last: `16 CPU, 320 GiB of memory, 4 GPUs`."""
    names = sorted(total, key=lambda name: (name not in ("cpu", "memory"), name))
    return ", ".join(say(name, total[name]) for name in names)


def _as_text(total: dict[str, Quantity]) -> dict[str, str]:
    return {name: amount.canonical() for name, amount in sorted(total.items())}


def _run(run: PlannedRun, since: int | None, room: TeamRoom | None) -> dict[str, Any]:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    return {
        "spec": job.source,
        "cluster": run.cluster,
        "namespace": job.namespace,
        "name": run.name,
        "file": run.path,
        **({"description": job.description} if job.description else {}),
        "edit": edit_words(run),
        **({"trial": dict(job.trial.values)} if job.trial else {}),
        **seldom_parts(job, since),
        "workers": layout.workers,
        "slots": layout.slots,
        "ranks": layout.ranks,
        "pods": {"node": layout.node_pods, "launcher": layout.launcher_pods},
        "worker": _resources(job.resources),
        "launcher": _resources(job.launcher) if layout.launcher_pods else None,
        "totals": _as_text(run_totals(run)),
        "command": list(launch.argv),
        **({"workdir": job.workdir} if job.workdir else {}),
        **({"identity": _identity(job)} if job.identity else {}),
        **({"roles": {one.name: _resources(one.resources) for one in job.roles}} if job.roles else {}),
        **({"steps": [_step(one) for one in job.steps]} if job.steps else {}),
        **({"elastic": {"min": job.elastic.least, "max": job.elastic.most}} if job.elastic else {}),
        **({"containers": [_container(one) for one in job.containers]} if job.containers else {}),
        "image": job.image.reference,
        "pool": job.worker_pool.name,
        "queue": job.queue,
        "priority": job.priority,
        "timeoutSeconds": job.timeout_s,
        "logRetentionSeconds": job.log_retention_s,
        "retries": job.retries,
        "gracePeriodSeconds": job.grace_s,
        "posture": job.posture,
        "fabric": fabric_document(job.fabric),
        **({"quota": room_document(room)} if room else {}),
        "admission": admission_document(run.verdict),
        "nodes": node_document(run.fit),
        "cost": cost_document(run),
    }


def _step(one: Role) -> dict[str, Any]:
    timeout_s = one.step.timeout_s if one.step else 0
    does = {"name": one.name, "does": step_words(one), "image": one.image, "timeoutSeconds": timeout_s}
    return {**does, **_resources(one.resources)}


def _container(one: PodContainer) -> dict[str, Any]:
    return {
        "name": one.name,
        "sidecar": one.is_sidecar,
        "image": one.image,
        "command": list(one.argv),
        "cpu": one.cpu.canonical(),
        "memory": one.memory.canonical(),
    }


def _resources(resources: Resources) -> dict[str, str]:
    return {
        "cpu": resources.cpu.canonical(),
        "memory": resources.memory.canonical(),
        **{name: str(count) for name, count in resources.devices},
        **{name: amount.canonical() for name, amount in resources.others},
    }
