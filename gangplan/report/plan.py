"""What runs amount to: as text for people, as data for machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.duration import format_duration
from gangplan.model.identity import subject_of
from gangplan.model.image import ImageSupport
from gangplan.model.job import Job, ResolvedRole, Resources, SideContainer
from gangplan.model.profiles import DEFAULT_LOG_RETENTION_S
from gangplan.model.quantity import ZERO, Quantity
from gangplan.pipeline.team_room import TeamRoom
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.admission import build_admission_verdict_json
from gangplan.report.cost import build_cost_json, describe_run_cost
from gangplan.report.edit import (
    build_rare_plan_json,
    build_rare_plan_rows,
    describe_over_run,
    format_planned_edit,
)
from gangplan.report.escape import MAX_DESCRIPTION_LENGTH, escape_own_line, shorten_text
from gangplan.report.fabric import build_worker_fabric_json, describe_worker_fabric
from gangplan.report.losses import describe_elastic_workers, describe_exit_codes
from gangplan.report.nodes import build_node_fit_json, describe_node_fit
from gangplan.report.room import build_quota_room_json, format_quota_room_report
from gangplan.validate.kueue import format_admission

SHAPE = 1


def render_plan_text(
    runs: Sequence[PlannedRun], since: int | None = None, rooms: Mapping[str, TeamRoom] = {}
) -> str:
    """Return a block per run, then totals per cluster; for schedules, the starts after `since` (seconds
    since 1970).

    `rooms` are what runs leave of their teams' quotas, by the paths of their files.
    """
    block = partial(_render_run_block, since=since, rooms=rooms)
    if any(run.unit.job.trial for run in runs):
        from gangplan.report import sweeps  # few workspaces have sweeps

        plain, found = sweeps.split_off_sweeps(runs)
        blocks = [*map(block, plain), *(sweeps.format_sweep_plan_block(one, block) for one in found)]
    else:
        blocks = [block(run) for run in runs]
    blocks += _list_job_chains(runs, text=True)
    totals = [
        f"{cluster}: {_format_resource_amounts(total)}"
        for cluster, total in _sum_run_totals_by_cluster(runs).items()
    ]
    return "\n".join([*blocks, "totals", *(f"  {line}" for line in totals), ""]) if runs else ""


def format_run_plan_line(run: PlannedRun) -> str:
    """Return a run in one line: `on lab: 8 ranks on 4 workers, 33 CPU, 130 GiB of memory, 8 GPUs; admitted
    at once`."""
    if run.unit.job.is_archived or run.unit.job.is_stopped:
        return f"on {run.cluster}: {describe_over_run(run.unit.job)}"
    layout = run.unit.layout
    ranks = f"{layout.ranks} rank{'' if layout.ranks == 1 else 's'}"
    workers = f"{layout.workers} worker{'' if layout.workers == 1 else 's'}"
    return f"on {run.cluster}: {ranks} on {workers}, {_format_resource_amounts(sum_pod_requests_of_run(run))}; {format_admission(run.verdict)}"


def build_plan_json(
    runs: Sequence[PlannedRun], since: int | None = None, rooms: Mapping[str, TeamRoom] = {}
) -> dict[str, Any]:
    """Return the plan as data. Quantities are canonical texts, times are seconds. `rooms` are as in
    `render_plan_text`."""
    return {
        "version": SHAPE,
        "runs": [_build_planned_run_json(run, since, rooms.get(run.path)) for run in runs],
        **_build_sweeps_json(runs),
        **({"chains": chains} if (chains := _list_job_chains(runs, text=False)) else {}),
        "totals": {
            cluster: _convert_amounts_to_text(total)
            for cluster, total in _sum_run_totals_by_cluster(runs).items()
        },
    }


def _list_job_chains(runs: Sequence[PlannedRun], text: bool) -> list[Any]:
    """Return the order of jobs, as text or data for each team of a cluster; few workspaces have one."""
    if not any(run.unit.job.after for run in runs):
        return []
    from gangplan.report import chains

    return chains.render_chains(runs) if text else chains.build_job_chains_json(runs)


def _build_sweeps_json(runs: Sequence[PlannedRun]) -> dict[str, Any]:
    """Return what the trials of each sweep amount to; empty without a sweep."""
    if not any(run.unit.job.trial for run in runs):
        return {}
    from gangplan.report import sweeps

    return {"sweeps": [sweeps.build_sweep_plan_json(one) for one in sweeps.split_off_sweeps(runs)[1]]}


def _render_run_block(run: PlannedRun, since: int | None, rooms: Mapping[str, TeamRoom]) -> str:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    launcher = ""
    if layout.launcher_pods:
        launcher = (
            " (the launcher is one of them)"
            if job.launcher_runs_ranks
            else f" + launcher ({_format_pod_resources(job.launcher)})"
        )
    others = "".join(f" + {one.workers} {one.name}" for one in job.others)
    rows = [
        ("about", shorten_text(escape_own_line(job.description), MAX_DESCRIPTION_LENGTH)),
        ("edit", format_planned_edit(run)),
        *build_rare_plan_rows(job, since),
        ("ranks", f"{layout.ranks} = {layout.workers} workers x {layout.slots} slots"),
        (
            "pods",
            f"{layout.pods} = {layout.workers} workers ({_format_pod_resources(job.resources)} each){launcher}{others}",
        ),
        ("totals", _format_resource_amounts(sum_pod_requests_of_run(run))),
        ("command", shlex.join(launch.argv)),
        ("folder", job.workdir),
        ("steps", _describe_job_steps(job)),
        ("roles", _describe_job_roles(job)),
        ("setup", _describe_side_containers(job, False)),
        ("sidecars", _describe_side_containers(job, True)),
        ("elastic", describe_elastic_workers(job)),
        ("scratch", _describe_scratch_folder(job)),
        ("volumes", _describe_job_volumes(job)),
        ("exits", describe_exit_codes(job)),
        ("image", job.image.reference),
        ("support", _describe_image_support(job)),
        ("pool", job.worker_pool.name),
        (
            "queue",
            f"{job.queue or 'none'}, priority {job.priority}, timeout {format_duration(job.timeout_s)}, retries {job.retries}, grace period {format_duration(job.grace_s)}{_describe_log_retention(job)}",
        ),
        ("quota", format_quota_room_report(rooms.get(run.path))),
        ("admission", format_admission(run.verdict)),
        ("nodes", describe_node_fit(run.fit)),
        (
            "network",
            job.posture + (f", {job.worker_pool.gbps} Gbit/s per node" if job.worker_pool.gbps else ""),
        ),
        ("identity", _describe_cloud_identity(job)),
        ("fabric", describe_worker_fabric(job.fabric)),
        ("cost", describe_run_cost(run)),
    ]
    lines = "".join(f"  {name:<9} {value}\n" for name, value in rows if value)
    return f"{job.source} on {run.cluster}: {job.namespace}/{run.name}\n{lines}"


def _describe_log_retention(job: Job) -> str:
    """Return how long logs should stay, unless that is the default."""
    if job.log_retention_s == DEFAULT_LOG_RETENTION_S:
        return ""
    return f", logs for {format_duration(job.log_retention_s)}"


def _describe_image_support(job: Job) -> str:
    """Return `certified (acceptance test of 2026-10-12), owner ml@example.com`; empty where the catalog states
    nothing."""
    if job.support is None:
        return ""
    tier = f"{job.support.tier} ({escape_own_line(job.support.source)})"
    return tier + (f", owner {escape_own_line(job.support.owner)}" if job.support.owner else "")


def _describe_job_roles(job: Job) -> str:
    """Return `ps: 2 pods (8 CPU, 32 GiB of memory each)`; empty without any."""
    return "; ".join(
        f"{one.name}: {one.workers} pod{'' if one.workers == 1 else 's'} ({_format_pod_resources(one.resources)} each), pool {one.pool.name}"
        for one in job.roles
    )


def _describe_job_steps(job: Job) -> str:
    """Return `tokenize (1 CPU, 8 GiB of memory, at most 5m): python tokenize.py`, one after the other;
    empty without any."""
    return "; ".join(
        f"{one.name} ({_format_pod_resources(one.resources)}, at most {format_duration(one.step.timeout_s)}): {step_words(one)}"
        for one in job.steps
        if one.step
    )


def step_words(step: ResolvedRole) -> str:
    """Return what a step does: `fetch hf://example/llama to /models/llama`, or its command."""
    if step.step and step.step.source:
        return f"fetch {step.step.source} to {step.step.to}"
    return shlex.join(step.argv)


def _describe_side_containers(job: Job, beside: bool) -> str:
    """Return `metrics (0.5 CPU, 512 MiB of memory): python metrics.py`, one after the other; empty without
    any."""
    found = [one for one in job.containers if one.is_sidecar == beside]
    return "; ".join(
        f"{one.name} ({format_with_unit('cpu', one.cpu)}, {format_with_unit('memory', one.memory)})"
        + (f": {shlex.join(one.argv)}" if one.argv else "")
        for one in found
    )


def _describe_cloud_identity(job: Job) -> str:
    """Return `ROLE of aws, as system:serviceaccount:NAMESPACE:training`: what the cloud must trust; empty
    without one."""
    if job.identity is None:
        return ""
    subject = subject_of(job.namespace, job.service_account)
    return f"{job.identity.name} of {job.identity.provider}, as {subject}"


def _describe_scratch_folder(job: Job) -> str:
    """Return `200 GiB on disk at /scratch`; empty without any."""
    found = next((mount.scratch for mount in job.mounts if mount.scratch), None)
    if found is None:
        return ""
    kinds = {"disk": "on disk", "memory": "in memory", "local": f"on local disks ({found.storage_class})"}
    return f"{format_amount('storage', found.size)} {kinds[found.medium]} at {found.path} in each worker"


def _describe_job_volumes(job: Job) -> str:
    """Return `work: 500 GiB of fast at /work; vault: secrets-store.csi.k8s.io at /mnt/secrets`; empty
    without any."""
    told = []
    for one in job.mounts:
        if one.own_claim:
            size = format_amount("storage", one.own_claim.size)
            told.append(f"{one.name}: {size} of {one.own_claim.storage_class} at {one.path}")
        elif one.inline and one.inline.name:
            told.append(f"{one.name}: {one.inline.driver} at {one.path}")
    return "; ".join(told)


def _format_pod_resources(resources: Resources) -> str:
    return _format_resource_amounts(_collect_resource_amounts(resources))


def sum_pod_requests_of_run(run: PlannedRun) -> dict[str, Quantity]:
    """Return the requests of all pods of a run, by resource name."""
    job, layout = run.unit.job, run.unit.layout
    workers = layout.workers
    total = {"cpu": job.worker_pod.cpu * workers, "memory": job.worker_pod.memory * workers}
    for name, amount in job.resources.amounts.items():
        total[name] = amount * workers
    for role in job.others:
        for name, amount in _collect_resource_amounts(role.resources).items():
            total[name] = total.get(name, ZERO) + amount * role.workers
    if layout.launcher_pods and not job.launcher_runs_ranks:
        total["cpu"] += job.launcher.cpu
        total["memory"] += job.launcher.memory
    return total


def _collect_resource_amounts(resources: Resources) -> dict[str, Quantity]:
    return {"cpu": resources.cpu, "memory": resources.memory, **resources.amounts}


def _sum_run_totals_by_cluster(runs: Sequence[PlannedRun]) -> dict[str, dict[str, Quantity]]:
    totals: dict[str, dict[str, Quantity]] = {}
    for run in runs:
        total = totals.setdefault(run.cluster, {})
        for name, amount in sum_pod_requests_of_run(run).items():
            total[name] = total[name] + amount if name in total else amount
    return dict(sorted(totals.items()))


def _format_resource_amounts(total: dict[str, Quantity]) -> str:
    """Return amounts with GPUs last: `16 CPU, 320 GiB of memory, 4 GPUs`."""
    names = sorted(total, key=lambda name: (name not in ("cpu", "memory"), name))
    return ", ".join(format_with_unit(name, total[name]) for name in names)


def _convert_amounts_to_text(total: dict[str, Quantity]) -> dict[str, str]:
    return {name: amount.canonical() for name, amount in sorted(total.items())}


def _build_planned_run_json(run: PlannedRun, since: int | None, room: TeamRoom | None) -> dict[str, Any]:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    return {
        "spec": job.source,
        "cluster": run.cluster,
        "namespace": job.namespace,
        "name": run.name,
        "file": run.path,
        **({"description": job.description} if job.description else {}),
        "edit": format_planned_edit(run),
        **({"trial": dict(job.trial.values)} if job.trial else {}),
        **build_rare_plan_json(job, since),
        "workers": layout.workers,
        "slots": layout.slots,
        "ranks": layout.ranks,
        "pods": {"node": layout.node_pods, "launcher": layout.launcher_pods},
        "worker": _build_resources_json(job.resources),
        "launcher": _build_resources_json(job.launcher) if layout.launcher_pods else None,
        "totals": _convert_amounts_to_text(sum_pod_requests_of_run(run)),
        "command": list(launch.argv),
        **({"workdir": job.workdir} if job.workdir else {}),
        **({"identity": _describe_cloud_identity(job)} if job.identity else {}),
        **(
            {"roles": {one.name: _build_resources_json(one.resources) for one in job.roles}}
            if job.roles
            else {}
        ),
        **({"steps": [_build_step_json(one) for one in job.steps]} if job.steps else {}),
        **({"elastic": {"min": job.elastic.least, "max": job.elastic.most}} if job.elastic else {}),
        **(
            {"containers": [_build_side_container_json(one) for one in job.containers]}
            if job.containers
            else {}
        ),
        "image": job.image.reference,
        **({"support": _build_image_support_json(job.support)} if job.support else {}),
        "pool": job.worker_pool.name,
        "queue": job.queue,
        "priority": job.priority,
        "timeoutSeconds": job.timeout_s,
        "logRetentionSeconds": job.log_retention_s,
        "retries": job.retries,
        "gracePeriodSeconds": job.grace_s,
        "posture": job.posture,
        "fabric": build_worker_fabric_json(job.fabric),
        **({"quota": build_quota_room_json(room)} if room else {}),
        "admission": build_admission_verdict_json(run.verdict),
        "nodes": build_node_fit_json(run.fit),
        "cost": build_cost_json(run),
    }


def _build_image_support_json(support: ImageSupport) -> dict[str, str | None]:
    return {"tier": support.tier, "source": support.source, "owner": support.owner or None}


def _build_step_json(one: ResolvedRole) -> dict[str, Any]:
    timeout_s = one.step.timeout_s if one.step else 0
    does = {"name": one.name, "does": step_words(one), "image": one.image, "timeoutSeconds": timeout_s}
    return {**does, **_build_resources_json(one.resources)}


def _build_side_container_json(one: SideContainer) -> dict[str, Any]:
    return {
        "name": one.name,
        "sidecar": one.is_sidecar,
        "image": one.image,
        "command": list(one.argv),
        "cpu": one.cpu.canonical(),
        "memory": one.memory.canonical(),
    }


def _build_resources_json(resources: Resources) -> dict[str, str]:
    return {
        "cpu": resources.cpu.canonical(),
        "memory": resources.memory.canonical(),
        **{name: str(count) for name, count in resources.devices},
        **{name: amount.canonical() for name, amount in resources.others},
    }
