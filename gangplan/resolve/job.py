"""Resolve one spec on one cluster into a job, or into the findings that explain why not."""

from __future__ import annotations

from dataclasses import replace

from gangplan.findings import Finding
from gangplan.model.backend import TRAINJOB
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.model.job import Egress, Job, Posture, PulledImage, Resources
from gangplan.model.profiles import (
    DEFAULT_GPUS,
    DEFAULT_GRACE_S,
    DEFAULT_PRIORITY,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    DEFAULT_WORKER_CPU,
    DEFAULT_WORKER_MEMORY,
)
from gangplan.resolve.assemble import JobBounds, JobParts, assemble_job
from gangplan.resolve.cloud import build_metadata_egress, resolve_run_identity
from gangplan.resolve.compliance import Compliance, resolve_compliance
from gangplan.resolve.containers import resolve_containers
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data import resolve_job_data
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.devices import resolve_other_devices
from gangplan.resolve.image import resolve_image, resolve_image_needs_of_worker
from gangplan.resolve.launcher import add_openmp_thread_env, resolve_launcher
from gangplan.resolve.limits import (
    check_priority_against_team_and_cluster,
    check_requested_grace_period,
    check_reserved_labels_in_spec,
    check_timeout_against_team_and_cluster,
    resolve_egress,
    resolve_log_retention,
    resolve_posture,
)
from gangplan.resolve.losses import check_job_on_spot_pool, check_long_job_has_checkpoint
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import (
    ChosenPlacement,
    check_catalog_image_on_pool,
    resolve_gpu_model,
    resolve_placement,
)
from gangplan.resolve.proxy import add_proxy_env
from gangplan.resolve.scratch import add_scratch_storage_class, check_requested_scratch, resolve_scratch
from gangplan.resolve.seldom import (
    resolve_after_losses,
    resolve_endpoints_needed_by_spec,
    resolve_worker_count,
)
from gangplan.resolve.sense import check_requested_amounts_are_plausible
from gangplan.resolve.slots import resolve_ranks_per_worker
from gangplan.resolve.targets import resolve_target_clusters as resolve_target_clusters
from gangplan.resolve.targets import suggest_cluster_entry_for_team
from gangplan.resolve.zones import check_storage_zones_against_pools
from gangplan.rules.specs import TEAM_NOT_ON_CLUSTER
from gangplan.waivers import Subject, apply_waivers_to_findings, list_waived_policies
from gangplan.workspace import Spec, Workspace


def resolve_job(workspace: Workspace, spec: Spec, cluster_name: str) -> tuple[Job | None, list[Finding]]:
    """Return the job for one cluster, and all findings; the job is None if any of them is an error."""
    team, cluster = workspace.teams.get(spec.source.team), workspace.clusters[cluster_name]
    if team is None or workspace.catalog is None:
        return None, []  # the missing file has its own finding
    context = JobResolution(spec, team, cluster, workspace.catalog, teams=workspace.teams)
    context.catalog_document = workspace.catalog_document
    if spec.spec.placement is not None and (spec.spec.placement.near or spec.spec.placement.apart):
        team_files = (one for one in workspace.spec_files if one.team == spec.source.team)
        context.jobs = frozenset(one.stem for one in team_files)
    if spec.source.team not in cluster.spec.teams:
        message = f"team {team.name} has no queue on cluster {cluster_name}"
        others = " or ".join(name for name, one in workspace.clusters.items() if team.name in one.spec.teams)
        help = f"{suggest_cluster_entry_for_team(workspace, team.name, [cluster_name])}{f'; it has one on {others}' if others else ''}."
        context.report(TEAM_NOT_ON_CLUSTER, context.where("clusters"), message, help)
        return None, context.findings
    if team.spec.is_limited:
        from gangplan.resolve.there import check_spec_names_in_cluster_file  # few teams are limited

        check_spec_names_in_cluster_file(context)
    job = _resolve_unordered_job(context)
    if job is None:
        return None, context.findings
    if spec.spec.schedule is not None:
        from gangplan.resolve.schedule import resolve_schedule  # few jobs have one

        job = resolve_schedule(context, job, spec.spec.schedule)
    if spec.spec.after:
        job = _resolve_job_order(context, workspace, job)
    if spec.spec.model is not None:
        from gangplan.resolve.registered import resolve_registered_model

        job = resolve_registered_model(context, workspace, job)
    subject = Subject.of(job)
    findings = apply_waivers_to_findings(context.findings, workspace.waivers, subject)
    if any(finding.is_error for finding in findings):
        return None, findings
    waived = list_waived_policies(workspace.waivers, subject)
    return replace(job, waived=waived) if waived else job, findings


def _resolve_job_order(context: JobResolution, workspace: Workspace, job: Job) -> Job:
    """Return the job as it comes after others: once, or by their schedule."""
    from gangplan.resolve.after import resolve_awaited_jobs
    from gangplan.resolve.follow import is_following_schedule, resolve_followed_schedule

    if is_following_schedule(context, workspace):
        return resolve_followed_schedule(context, workspace, job, resolve_job)
    return resolve_awaited_jobs(context, workspace, job)


def _resolve_unordered_job(context: JobResolution) -> Job | None:
    image = resolve_image(context)
    workers = resolve_worker_count(context)
    gpus: int = context.choose("gpus", DEFAULT_GPUS)
    slots = resolve_ranks_per_worker(context, gpus, image)
    shape = resolve_containers(context, image, _resolve_worker_shape(context, gpus, image))
    has_launcher = image is not None and image.framework in MPI_FRAMEWORKS
    placement = resolve_placement(context, shape, workers, has_launcher)
    check_requested_amounts_are_plausible(context, shape, workers, slots, image, placement)
    bounds = _resolve_job_bounds(context, image)
    check_reserved_labels_in_spec(context)
    posture = resolve_posture(context)
    _check_spot(context, placement, bounds)
    data = resolve_job_data(context, image, workers, add_scratch_storage_class(shape.scratch, placement))
    check_long_job_has_checkpoint(context, data, bounds.timeout_s)
    egress = _resolve_job_egress(context, data, posture)
    compliance = resolve_compliance(context)
    if image is None or placement is None:
        return None  # after all checks that need neither
    _check_room_for_job_volumes(context, shape, workers, placement, compliance, data)
    add_openmp_thread_env(data, shape.cpu, slots)
    resources = _resolve_worker_resources(context, image, placement, shape, data)
    launcher = resolve_launcher(context, image, resources, placement, workers)
    job = assemble_job(
        context,
        JobParts(
            image=image,
            workers=workers,
            slots=slots,
            gpus=gpus,
            resources=resources,
            launcher=launcher,
            shape=shape,
            placement=placement,
            bounds=bounds,
            posture=posture,
            egress=egress,
            data=data,
            compliance=compliance,
        ),
    )
    _check_whole_job(context, job)
    return job


def _resolve_job_egress(context: JobResolution, data: DataPlan, posture: Posture) -> tuple[Egress, ...]:
    """Return what the run may connect to, and set proxy variables that agree with it."""
    egress = resolve_egress(context, {**resolve_endpoints_needed_by_spec(context), **data.egress}, posture)
    egress += build_metadata_egress(resolve_run_identity(context))
    add_proxy_env(context, data, egress)
    if context.spec.spec.env:
        from gangplan.resolve.addresses import (
            check_spec_env_urls_against_egress,
        )  # of variables, which few specs have

        check_spec_env_urls_against_egress(context, egress, data.env.values())
    return egress


def _check_room_for_job_volumes(
    context: JobResolution,
    shape: WorkerShape,
    workers: int,
    placement: ChosenPlacement,
    compliance: Compliance,
    data: DataPlan,
) -> None:
    """Check scratch and the other volumes of a pod."""
    check_requested_scratch(context, shape, workers, placement, compliance.regimes)
    if context.spec.spec.volumes:
        from gangplan.resolve.volumes import check_volumes_in_spec  # few runs have one

        check_volumes_in_spec(context, data.mounts, workers, compliance.regimes)


def _check_whole_job(context: JobResolution, job: Job) -> None:
    """Check what depends on the job as a whole."""
    check_storage_zones_against_pools(context, job)
    if job.made_of != TRAINJOB.name or not job.platform.has_trainer:
        from gangplan.resolve.mpijobs import check_job_against_backend  # few runs are MPIJobs

        check_job_against_backend(context, job)


def _resolve_worker_shape(context: JobResolution, gpus: int, image: PulledImage | None) -> WorkerShape:
    """Return what a worker needs of its node."""
    spec = context.spec.spec
    shape = WorkerShape(
        gpus,
        resolve_gpu_model(context, gpus),
        spec.gpu.mig if spec.gpu else None,
        context.choose("cpu", DEFAULT_WORKER_CPU),
        context.choose("memory", DEFAULT_WORKER_MEMORY),
        spec.placement.capacity if spec.placement else None,
        others=resolve_other_devices(context),
        scratch=resolve_scratch(context),
    )
    return resolve_image_needs_of_worker(context, shape, image.name if image else None)


def _resolve_worker_resources(
    context: JobResolution,
    image: PulledImage,
    placement: ChosenPlacement,
    shape: WorkerShape,
    data: DataPlan,
) -> Resources:
    """Return what a worker requests; for the fabric of its pool add variables, huge pages and findings."""
    check_catalog_image_on_pool(context, image, placement, shape.gpus)
    pool, access, others = placement.node_pool, placement.fabric.access, shape.others_on(placement.node_pool)
    if access.name:
        from gangplan.resolve.fabric_mounts import check_mounts_with_fabric  # few runs have one
        from gangplan.resolve.fabrics import (
            add_fabric_env,
            add_fabric_huge_pages,
            check_fabric_access,
        )

        check_mounts_with_fabric(context, data.mounts, access)
        check_fabric_access(context, access, pool, shape, image.uid)
        add_fabric_env(context, data.env, access)
        others = add_fabric_huge_pages(others, context.cluster.spec, pool)
    return Resources(shape.cpu, shape.memory, placement.devices, others, placement.fabric.claims)


def _check_spot(context: JobResolution, placement: ChosenPlacement | None, bounds: JobBounds) -> None:
    if placement is not None:
        check_job_on_spot_pool(context, placement.node_pool, bounds.retries, bounds.priority)


def _resolve_job_bounds(context: JobResolution, image: PulledImage | None) -> JobBounds:
    timeout_s: int = context.choose("timeout", DEFAULT_TIMEOUT_S)
    grace_s: int = context.choose("grace_period", DEFAULT_GRACE_S)
    retries: int = context.choose("retries", DEFAULT_RETRIES)
    priority: str = context.choose("priority", DEFAULT_PRIORITY)
    check_timeout_against_team_and_cluster(context, timeout_s)
    check_requested_grace_period(context, grace_s)
    check_priority_against_team_and_cluster(context, priority)
    logs_s = resolve_log_retention(context)
    return JobBounds(
        timeout_s, grace_s, logs_s, retries, priority, resolve_after_losses(context, image, retries)
    )
