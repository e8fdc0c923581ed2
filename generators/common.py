"""Labels and annotations of the objects of runs, tenants and platforms, and rendering of one template."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gangplan.model import syncing
from gangplan.model.job import Job
from gangplan.model.kinds import WAVES
from gangplan.model.site import Site, Tenant
from gangplan.mould import rendered
from gangplan.objects import Body
from gangplan.plan import Unit
from gangplan.waivers import mark_labels

PREFIX = "gangplan.dev/"
# Names that the platform's log and cost tools select by (founding requirements).
PLATFORM_PREFIX = "training.openshift.io/"
# Kueue serves v1beta2 since 0.15, the oldest line that gangplan supports.
KUEUE_API = "kueue.x-k8s.io/v1beta2"
# A `$` that the kubelet would not leave alone.
_EXPANDED = re.compile(r"\$(?=[$(]|[^\x00-\x7f])")
Pairs = tuple[tuple[str, str], ...]
# A function from a template and values to objects: `objects_of`, or one that fills moulds.
Writer = Callable[[str, dict[str, Any]], list[Body]]


def run_labels(unit: Unit) -> Pairs:
    """Return the labels of a run's objects and pods: who owns it, for selection and for cost."""
    job = unit.job
    labels = dict(job.labels)
    labels |= {
        "app.kubernetes.io/managed-by": "gangplan",
        f"{PREFIX}job": job.name,
        f"{PREFIX}run": unit.run_name,
        f"{PREFIX}team": job.team,
    }
    if job.cost_centre:
        labels[f"{PREFIX}cost-centre"] = job.cost_centre
    labels |= mark_labels(job.waived)
    labels |= regime_labels(job.regimes)
    if job.trial:
        labels[f"{PREFIX}sweep"] = job.trial.sweep
    if job.residency:
        labels[f"{PREFIX}residency"] = job.residency
    return tuple(sorted(labels.items()))


def group_labels(job: Job) -> Pairs:
    """Return the labels of the JobSet and its Jobs: only those by which policies select or leave out objects.

    People look for a run by its TrainJob or its pods, which have all labels.
    """
    return tuple(sorted((mark_labels(job.waived) | regime_labels(job.regimes)).items()))


def regime_labels(regimes: tuple[str, ...]) -> dict[str, str]:
    """Return the labels by which the policies of a regime select their objects."""
    return {f"{PREFIX}{regime}": "true" for regime in regimes}


def run_annotations(unit: Unit, kind: str) -> Pairs:
    """Return the annotations of a run's object of a kind: its spec, and rules for GitOps engines."""
    job = unit.job
    annotations = {**syncing.of_run(), **syncing.of_verbatim()}
    annotations |= {**syncing.in_wave(WAVES["runs", kind]), f"{PREFIX}source": job.source}
    if job.description:
        annotations[f"{PREFIX}description"] = job.description
    if job.is_archived:
        annotations |= syncing.of_archived()
    annotations |= _evidence(job)
    return tuple(sorted(annotations.items()))


def _evidence(job: Job) -> dict[str, str]:
    """Return what policies require of a run and no other field shows: its data sets with their regions, its
    model, and that it asked for a long timeout."""
    found = {}
    if job.is_extended:
        found[f"{PREFIX}extended-timeout"] = "true"
    if job.model is not None:
        found[f"{PREFIX}model"] = f"{job.model.name}:{job.model.version}"
    if job.datasets and (job.regimes or job.residency):
        found[f"{PREFIX}datasets"] = ",".join(job.datasets)
    if job.data_regions:
        found[f"{PREFIX}data-regions"] = ",".join(f"{name}={region}" for name, region in job.data_regions)
    return found


def tenant_labels(tenant: Tenant) -> Pairs:
    """Return the labels of a tenant's objects."""
    labels = {"app.kubernetes.io/managed-by": "gangplan", f"{PREFIX}team": tenant.team}
    if tenant.cost_centre:
        labels[f"{PREFIX}cost-centre"] = tenant.cost_centre
    labels |= mark_labels(tenant.waived)
    return tuple(sorted(labels.items()))


def tenant_annotations(tenant: Tenant, kind: str, **more: str) -> Pairs:
    """Return the annotations of a tenant's object of this kind."""
    annotations = {**syncing.in_wave(WAVES["tenants", kind]), f"{PREFIX}source": tenant.source}
    annotations |= {f"{PREFIX}{name}": value for name, value in more.items() if value}
    return tuple(sorted(annotations.items()))


def site_annotations(site: Site, kind: str, *more: tuple[str, str]) -> Pairs:
    """Return the annotations of a platform object of this kind, with `more` before its source."""
    return (*syncing.in_wave(WAVES["platform", kind]).items(), *more, (f"{PREFIX}source", site.source))


def literal(text: str) -> str:
    """Escape a command word or a variable's value so that Kubernetes passes it on unchanged.

    The kubelet replaces `$(NAME)` by a variable and `$$` by `$`, and breaks a non-ASCII letter after a `$`
    (k8s.io/kubernetes third_party/forked/golang/expansion, v1.34).
    """
    return _EXPANDED.sub("$$", text) if "$" in text else text


def objects_of(template: str, values: dict[str, Any]) -> list[Body]:
    """Render a template into objects."""
    return rendered(template, values)
