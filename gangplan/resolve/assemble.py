"""Assemble a job from its resolved parts: add its name, labels and queue, and whether it may run."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from gangplan.model.backend import TRAINJOB
from gangplan.model.job import Egress, Job, Origin, Posture, PulledImage, Resources
from gangplan.model.profiles import PLAIN_TIMEOUT_S
from gangplan.resolve.account import resolve_service_account
from gangplan.resolve.cloud import resolve_run_identity
from gangplan.resolve.compliance import Compliance
from gangplan.resolve.config_maps import resolve_run_files
from gangplan.resolve.containers import check_side_container_names
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.launcher import LauncherPod
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.queue import resolve_queue
from gangplan.resolve.seldom import (
    AfterLosses,
    resolve_neighbours_if_any,
    resolve_roles_if_any,
    resolve_steps_if_any,
)
from gangplan.resolve.tiers import describe_catalog_image_support
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.spec.job import Mpi
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.phrases import convert_to_name
from gangplan.spec.words import DNS_LABEL


class JobBounds(NamedTuple):
    """How long, how often and how urgently a job runs, and what it does after losses."""

    timeout_s: int
    grace_s: int
    log_retention_s: int
    retries: int
    priority: str
    after_losses: AfterLosses


class JobParts(NamedTuple):
    """The resolved parts of a job that can run."""

    image: PulledImage
    workers: int
    slots: int
    gpus: int
    resources: Resources
    launcher: LauncherPod
    shape: WorkerShape
    placement: ChosenPlacement
    bounds: JobBounds
    posture: Posture
    egress: tuple[Egress, ...]
    data: DataPlan
    compliance: Compliance


def assemble_job(context: JobResolution, parts: JobParts) -> Job:
    """Assemble a job from its parts; report findings about its name, account, queue, files and other pods."""
    spec, team = context.spec.spec, context.team.spec
    if spec.retired:
        context.origins["retired"] = Origin("spec", context.where("retired"))
    platform, mpi = resolve_platform_of_cluster_file(context.cluster), spec.mpi or Mpi()
    offered = [one.name for one in platform.backends]
    name = spec.name or _resolve_job_name(context)
    service_account, mounts_token = resolve_service_account(context)
    queue, files = resolve_queue(context), resolve_run_files(context)
    image, placement, shape, data = parts.image, parts.placement, parts.shape, parts.data
    near, apart = resolve_neighbours_if_any(context, placement)
    model = placement.node_pool.gpu
    gpu = model.model if model and parts.gpus else None
    bounds, losses, compliance = parts.bounds, parts.bounds.after_losses, parts.compliance
    roles = resolve_roles_if_any(context, image, placement, shape)
    steps = resolve_steps_if_any(context, image, placement, shape, data, bounds.timeout_s)
    return Job(
        name=name,
        team=context.team.name,
        namespace=namespace_of(context.cluster.spec, context.team.name, team),
        source=context.spec.source.file,
        description=spec.description or "",
        platform=platform,
        image=image,
        command=spec.command,
        workers=parts.workers,
        slots=parts.slots,
        gpus=parts.gpus,
        resources=parts.resources,
        launcher=parts.launcher.resources,
        launcher_runs_ranks=parts.launcher.runs_ranks,
        worker_pool=placement.worker,
        launcher_pool=parts.launcher.pool,
        env=tuple(data.env[name] for name in sorted(data.env)),
        mounts=tuple(data.mounts),
        posture=parts.posture,
        egress=parts.egress,
        transport=spec.network.transport if spec.network else "auto",
        fabric=placement.fabric,
        mpi_flags=mpi.flags,
        bind_to=mpi.bind_to or "none",
        map_by=mpi.map_by or "slot",
        topology=placement.topology,
        spread=(spec.placement.spread if spec.placement else None) or "",
        queue=queue,
        priority=bounds.priority,
        timeout_s=bounds.timeout_s,
        grace_s=bounds.grace_s,
        log_retention_s=bounds.log_retention_s,
        retries=bounds.retries,
        labels=tuple(sorted(spec.labels.items())),
        cost_centre=team.cost_centre or "",
        service_account=service_account,
        spec_hash=context.spec.digest,
        run=spec.run,
        is_archived=spec.state == "archived",
        is_stopped=spec.state == "stopped",
        is_kept=spec.keep or context.cluster.spec.keep_runs,
        retired=spec.retired,
        regimes=compliance.regimes,
        residency=compliance.residency,
        datasets=compliance.datasets,
        data_regions=compliance.regions,
        is_extended=bounds.timeout_s > PLAIN_TIMEOUT_S,
        exit_codes=losses.exit_codes,
        elastic=losses.elastic,
        debug=losses.debug,
        workdir=spec.workdir or "",
        identity=resolve_run_identity(context),
        mounts_token=mounts_token,
        roles=roles,
        steps=steps,
        near=near,
        apart=apart,
        files=files,
        containers=check_side_container_names(context, shape.containers, placement.fabric.access),
        made_of=spec.backend or (offered[0] if offered else TRAINJOB.name),
        pools=placement.alike,
        trial=context.spec.trial,
        template=context.spec.template,
        support=describe_catalog_image_support(context.catalog, image.name, image.framework, gpu),
        origins=context.origins,
        pulled=context.pulled,
    )


def _resolve_job_name(context: JobResolution) -> str:
    """Return the file's name as the job's name, and report it if it is not a DNS label."""
    stem = context.spec.source.stem
    if (
        not stem.isascii()
        or not all(char.isalnum() or char == "-" for char in stem)
        or stem != stem.lower()
        or not stem[:1].isalpha()
        or stem.endswith("-")
    ):
        context.report(
            SPEC_FILE_NAME,
            context.where(),
            f"file name '{stem}' is not a valid job name: use lower-case letters, digits and '-', starting with a letter",
            _suggest_spec_file_rename(context.spec.source.file, stem),
        )
    return stem


def _suggest_spec_file_rename(file: str, stem: str) -> str:
    """Return how to rename a file whose name is not valid for a job, or else what to add."""
    name = convert_to_name(DNS_LABEL, stem)
    if not name:
        return "Rename the file, or add name: to the spec."
    return f"Rename it: mv {quote(file)} {quote(file.removesuffix(f'{stem}.yaml'))}{name}.yaml; or add name: {name}."
