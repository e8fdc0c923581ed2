"""One spec on one cluster becomes one job, or the findings that say why not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from gangplan.findings import Finding
from gangplan.model.job import Job, Origin, PulledImage, Resources
from gangplan.model.profiles import (
    DEFAULT_CPU,
    DEFAULT_GPUS,
    DEFAULT_GRACE_S,
    DEFAULT_MEMORY,
    DEFAULT_PRIORITY,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    DEFAULT_WORKERS,
    PLAIN_TIMEOUT_S,
)
from gangplan.resolve.compliance import resolve_compliance
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data import DataPlan, resolve_data
from gangplan.resolve.image import resolve_image
from gangplan.resolve.launcher import add_threads, resolve_launcher
from gangplan.resolve.limits import (
    check_counts,
    check_grace,
    check_labels,
    check_priority,
    check_timeout,
    resolve_egress,
    resolve_posture,
)
from gangplan.resolve.losses import check_checkpoint, check_spot
from gangplan.resolve.placement import ChosenPlacement, WorkerShape, gpu_model, resolve_placement
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.proxy import add_proxy
from gangplan.resolve.tenant import SERVICE_ACCOUNT
from gangplan.resolve.zones import check_zones
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.rules.specs import CLUSTER_NOT_CHOSEN, CLUSTER_UNKNOWN, TEAM_NOT_ON_CLUSTER
from gangplan.spec.job import Mpi, TrainingJob
from gangplan.spec.namespaces import namespace_of
from gangplan.waivers import Subject, excuse, marks
from gangplan.workspace import Spec, Workspace, nearest


def target_clusters(workspace: Workspace, spec: Spec) -> tuple[tuple[str, ...], list[Finding]]:
    """The clusters that a spec runs on: its own list, the team's, else the team's only cluster."""
    team = workspace.teams.get(spec.source.team)
    if spec.spec.clusters is not None:
        findings = [
            Finding(
                CLUSTER_UNKNOWN,
                spec.document.where(("clusters", index)),
                f"cluster '{name}' is not declared in overlays/",
                nearest(name, workspace.clusters),
            )
            for index, name in enumerate(spec.spec.clusters)
            if name not in workspace.clusters and name not in workspace.unread
        ]
        named = tuple(name for name in dict.fromkeys(spec.spec.clusters) if name in workspace.clusters)
        return (() if findings else named), findings
    if team is None:
        return (), []
    if team.spec.clusters is not None:
        return tuple(name for name in team.spec.clusters if name in workspace.clusters), []
    admitting = [name for name, cluster in workspace.clusters.items() if team.name in cluster.spec.teams]
    if workspace.unread and len(admitting) != 1:
        return (), []  # what an unreadable cluster file would have said is not known
    if len(admitting) == 1:
        return tuple(admitting), []
    message = f"team {team.name} may run on {len(admitting)} clusters ({', '.join(admitting) or 'none'}), and neither the spec nor the team chooses one"
    where = spec.document.where(())
    return (), [
        Finding(CLUSTER_NOT_CHOSEN, where, message, "Add clusters: [NAME] to the spec or to team.yaml.")
    ]


def resolve(workspace: Workspace, spec: Spec, cluster_name: str) -> tuple[Job | None, list[Finding]]:
    """The job for one cluster, and all findings; the job is None when any of them is an error."""
    team, cluster = workspace.teams.get(spec.source.team), workspace.clusters[cluster_name]
    if team is None or workspace.catalog is None:
        return None, []  # the missing file is reported where it is missing
    context = JobResolution(spec, team, cluster, workspace.catalog, teams=workspace.teams)
    context.catalog_document = workspace.catalog_document
    if spec.source.team not in cluster.spec.teams:
        message = f"team {team.name} has no queue on cluster {cluster_name}"
        context.report(
            TEAM_NOT_ON_CLUSTER,
            context.where("clusters"),
            message,
            f"Choose another cluster, or ask its owner to add {team.name} to teams.",
        )
        return None, context.findings
    job = _resolve(context)
    if job is None:
        return None, context.findings
    subject = Subject.of(job)
    findings = excuse(context.findings, workspace.waivers, subject)
    if any(finding.is_error for finding in findings):
        return None, findings
    return replace(job, waived=marks(workspace.waivers, subject)), findings


def _resolve(context: JobResolution) -> Job | None:
    image = resolve_image(context)
    workers: int = context.choose("workers", DEFAULT_WORKERS)
    gpus: int = context.choose("gpus", DEFAULT_GPUS)
    slots = _slots(context, gpus)
    shape = _shape(context, gpus, image)
    has_launcher = image is not None and image.framework != "torch"
    placement = resolve_placement(context, shape, workers, has_launcher)
    check_counts(context, workers, gpus, slots)
    bounds = _bounds(context)
    check_labels(context)
    posture = resolve_posture(context)
    if placement is not None:
        check_spot(context, placement.node_pool, bounds["retries"], bounds["priority"])
    data = resolve_data(context, image, workers)
    check_checkpoint(context, data, bounds["timeout_s"])
    egress = resolve_egress(context, data.egress, posture)
    add_proxy(context, data, egress)
    compliance = resolve_compliance(context)
    if image is None or placement is None:
        return None  # after everything that can be said without them
    add_threads(data, shape.cpu, slots)
    resources = Resources(shape.cpu, shape.memory, placement.devices)
    launcher = resolve_launcher(context, image, resources, placement, workers)
    job = Job(
        **_identity(context),
        **_settings(context, placement, data),
        **bounds,
        image=image,
        command=context.spec.spec.command,
        workers=workers,
        slots=slots,
        gpus=gpus,
        resources=resources,
        launcher=launcher.resources,
        launcher_runs_ranks=launcher.runs_ranks,
        worker_pool=placement.worker,
        pools=placement.alike,
        launcher_pool=launcher.pool,
        posture=posture,
        egress=egress,
        regimes=compliance.regimes,
        residency=compliance.residency,
        datasets=compliance.datasets,
        data_regions=compliance.regions,
    )
    check_zones(context, job)
    return job


def _shape(context: JobResolution, gpus: int, image: PulledImage | None) -> WorkerShape:
    """What a worker asks of its node."""
    spec = context.spec.spec
    return WorkerShape(
        gpus,
        gpu_model(context, gpus),
        spec.gpu.mig if spec.gpu else None,
        context.choose("cpu", DEFAULT_CPU),
        context.choose("memory", DEFAULT_MEMORY),
        spec.placement.capacity if spec.placement else None,
        _built_for(context, image),
    )


def _built_for(context: JobResolution, image: PulledImage | None) -> tuple[str, ...]:
    """What of CUDA and ROCm the catalog says is in the image."""
    entry = context.catalog.images.get(image.name) if image else None
    if entry is None:
        return ()
    return tuple(name for name, version in (("CUDA", entry.cuda), ("ROCm", entry.rocm)) if version)


def _bounds(context: JobResolution) -> dict[str, Any]:
    """How long, how often and how urgently it runs."""
    timeout_s: int = context.choose("timeout", DEFAULT_TIMEOUT_S)
    grace_s: int = context.choose("grace_period", DEFAULT_GRACE_S)
    retries: int = context.choose("retries", DEFAULT_RETRIES)
    priority: str = context.choose("priority", DEFAULT_PRIORITY)
    check_timeout(context, timeout_s)
    check_grace(context, grace_s)
    check_priority(context, priority)
    return {
        "timeout_s": timeout_s,
        "is_extended": timeout_s > PLAIN_TIMEOUT_S,
        "grace_s": grace_s,
        "retries": retries,
        "priority": priority,
    }


def _identity(context: JobResolution) -> dict[str, Any]:
    """Names, labels and the cluster's facts."""
    spec, team = context.spec.spec, context.team.spec
    return {
        "name": spec.name or _stem(context),
        "team": context.team.name,
        "namespace": namespace_of(context.cluster.spec, context.team.name, team),
        "source": context.spec.source.file,
        "description": spec.description or "",
        "platform": resolve_platform(context.cluster),
        "labels": tuple(sorted(spec.labels.items())),
        "cost_centre": team.cost_centre or "",
        "service_account": SERVICE_ACCOUNT,
        "spec_hash": spec_hash(spec),
        "run": spec.run,
        "is_archived": spec.state == "archived",
        "queue": context.cluster.spec.teams[context.team.name].queue
        if context.cluster.spec.gang in ("kueue", "volcano")
        else "",
        "origins": context.origins,
    }


def spec_hash(spec: TrainingJob) -> str:
    """A hash of what the user wrote, without what may change on a run (its description and state)."""
    written = spec.model_dump(mode="json", exclude={"description", "state"}, exclude_unset=True)
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()[:16]


def _settings(context: JobResolution, placement: ChosenPlacement, data: DataPlan) -> dict[str, Any]:
    """MPI, network and data settings that need no further thought."""
    spec = context.spec.spec
    mpi = spec.mpi or Mpi()
    return {
        "env": tuple(data.env[name] for name in sorted(data.env)),
        "mounts": tuple(data.mounts),
        "transport": spec.network.transport if spec.network else "auto",
        "fabric": placement.fabric,
        "mpi_flags": mpi.flags,
        "bind_to": mpi.bind_to or "none",
        "map_by": mpi.map_by or "slot",
        "topology": placement.topology,
        "spread": (spec.placement.spread if spec.placement else None) or "",
    }


def _stem(context: JobResolution) -> str:
    """The file's name as job name; it must be a DNS label."""
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
            "Rename the file, or add name: to the spec.",
        )
    return stem


def _slots(context: JobResolution, gpus: int) -> int:
    written = context.spec.spec.slots
    if written is not None:
        context.origins["slots"] = Origin("spec", context.where("slots"))
        return written
    context.origins["slots"] = Origin("GPUs per worker" if gpus else "built-in")
    return gpus or 1
