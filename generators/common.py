"""Labels and annotations of the objects of runs, tenants and platforms, and rendering of one template."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gangplan.model import syncing
from gangplan.model.fabric import DeviceClaim
from gangplan.model.job import Job
from gangplan.model.kinds import SYNC_WAVES
from gangplan.model.site import Site, Tenant
from gangplan.mould import render_template_objects
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.waivers import build_mark_labels

LABEL_PREFIX = "gangplan.dev/"
# Names that the platform's log and cost tools select by (founding requirements).
PLATFORM_PREFIX = "training.openshift.io/"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
# Kueue serves v1beta2 since 0.15, the oldest line that gangplan supports.
KUEUE_API = "kueue.x-k8s.io/v1beta2"
# A `$` that the kubelet would not leave alone.
_EXPANDED = re.compile(r"\$(?=[$(]|[^\x00-\x7f])")
LabelPairs = tuple[tuple[str, str], ...]
# A function from a template and values to objects: `render_to_objects`, or one that fills moulds.
TemplateRenderer = Callable[[str, dict[str, Any]], list[Body]]


def name_claim_template(run_name: str, claim: DeviceClaim) -> str:
    """Return the name of the ResourceClaimTemplate of a run for a claim of its workers."""
    return f"{run_name}-{claim.name}"


def generate_run_labels(unit: RunPlan) -> LabelPairs:
    """Return the labels of a run's objects and pods: who owns it, for selection and for cost."""
    job = unit.job
    labels = dict(job.labels)
    labels |= {
        MANAGED_LABEL: "gangplan",
        f"{LABEL_PREFIX}job": job.name,
        f"{LABEL_PREFIX}run": unit.run_name,
        f"{LABEL_PREFIX}team": job.team,
    }
    if job.cost_centre:
        labels[f"{LABEL_PREFIX}cost-centre"] = job.cost_centre
    labels |= build_mark_labels(job.waived)
    labels |= generate_regime_labels(job.regimes)
    if job.trial:
        labels[f"{LABEL_PREFIX}sweep"] = job.trial.sweep
    if job.residency:
        labels[f"{LABEL_PREFIX}residency"] = job.residency
    return tuple(sorted(labels.items()))


def generate_job_set_labels(job: Job) -> LabelPairs:
    """Return the labels of the JobSet and its Jobs: only those by which policies select or leave out objects.

    People look for a run by its TrainJob or its pods, which have all labels.
    """
    return tuple(sorted((build_mark_labels(job.waived) | generate_regime_labels(job.regimes)).items()))


def generate_regime_labels(regimes: tuple[str, ...]) -> dict[str, str]:
    """Return the labels by which the policies of a regime select their objects."""
    return {f"{LABEL_PREFIX}{regime}": "true" for regime in regimes}


def generate_run_annotations(unit: RunPlan, kind: str) -> LabelPairs:
    """Return the annotations of the object that people look up: its source, and what its parts have."""
    job = unit.job
    annotations = dict(generate_run_part_annotations(unit, kind)) | {f"{LABEL_PREFIX}source": job.source}
    if job.description:
        annotations[f"{LABEL_PREFIX}description"] = job.description
    return tuple(sorted(annotations.items()))


def generate_run_part_annotations(unit: RunPlan, kind: str) -> LabelPairs:
    """Return the annotations of each object of a run: rules for GitOps engines, and what policies require."""
    job = unit.job
    annotations = syncing.build_run_sync_annotations()
    if kind != "NetworkPolicy":  # the only one without text of users, in which Flux could replace ${NAME}
        annotations |= syncing.build_verbatim_annotations()
    annotations |= syncing.build_wave_annotations(SYNC_WAVES["runs", kind])
    if job.is_archived:
        annotations |= syncing.build_archived_annotations()
    annotations |= _generate_evidence_annotations(job)
    return tuple(sorted(annotations.items()))


def _generate_evidence_annotations(job: Job) -> dict[str, str]:
    """Return what policies require of a run and no other field shows: its data sets with their regions, its
    model, and that it asked for a long timeout."""
    found = {}
    if job.is_extended:
        found[f"{LABEL_PREFIX}extended-timeout"] = "true"
    if job.model is not None:
        found[f"{LABEL_PREFIX}model"] = f"{job.model.name}:{job.model.version}"
    if job.datasets and (job.regimes or job.residency):
        found[f"{LABEL_PREFIX}datasets"] = ",".join(job.datasets)
    if job.data_regions:
        found[f"{LABEL_PREFIX}data-regions"] = ",".join(
            f"{name}={region}" for name, region in job.data_regions
        )
    return found


def generate_tenant_labels(tenant: Tenant) -> LabelPairs:
    """Return the labels of a tenant's objects."""
    labels = {MANAGED_LABEL: "gangplan", f"{LABEL_PREFIX}team": tenant.team}
    if tenant.cost_centre:
        labels[f"{LABEL_PREFIX}cost-centre"] = tenant.cost_centre
    labels |= build_mark_labels(tenant.waived)
    return tuple(sorted(labels.items()))


def generate_tenant_annotations(tenant: Tenant, kind: str, **more: str) -> LabelPairs:
    """Return the annotations of a tenant's object of this kind."""
    annotations = {
        **syncing.build_wave_annotations(SYNC_WAVES["tenants", kind]),
        f"{LABEL_PREFIX}source": tenant.source,
    }
    annotations |= {f"{LABEL_PREFIX}{name}": value for name, value in more.items() if value}
    return tuple(sorted(annotations.items()))


def generate_platform_annotations(site: Site, kind: str, *more: tuple[str, str]) -> LabelPairs:
    """Return the annotations of a platform object of this kind, with `more` before its source."""
    return (
        *syncing.build_wave_annotations(SYNC_WAVES["platform", kind]).items(),
        *more,
        (f"{LABEL_PREFIX}source", site.source),
    )


def escape_kubelet_variable_references(text: str) -> str:
    """Escape a command word or a variable's value so that Kubernetes passes it on unchanged.

    The kubelet replaces `$(NAME)` by a variable and `$$` by `$`, and breaks a non-ASCII letter after a `$`
    (k8s.io/kubernetes third_party/forked/golang/expansion, v1.34).
    """
    return _EXPANDED.sub("$$", text) if "$" in text else text


def render_to_objects(template: str, values: dict[str, Any]) -> list[Body]:
    """Render a template into objects."""
    return render_template_objects(template, values)
