"""Data that one job passes on to the next: whether it is the same volume, and which rules apply to it."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import Job
from gangplan.resolve.context import JobResolution
from gangplan.resolve.order import OrderedJob
from gangplan.rules.after import AFTER_DATA, AFTER_RULES

_READ_ONLY = "ReadOnlyMany"


def _list_data_names(step: OrderedJob) -> Iterator[str]:
    assert step.spec is not None
    yield from step.spec.data
    if step.spec.checkpoint:
        yield step.spec.checkpoint.to


def _find_data_passed_to_later_job(context: JobResolution, step: OrderedJob) -> list[str]:
    """Return the claims and connections that the earlier job may write and this one names, sorted."""
    spec = context.spec.spec
    mine = {*spec.data, *((spec.checkpoint.to,) if spec.checkpoint else ())}
    claims = context.team.spec.claims
    found = []
    for name in sorted(mine & set(_list_data_names(step))):
        claim = claims.get(name)
        if claim is None or not (claim.read_only or set(claim.access_modes) == {_READ_ONLY}):
            found.append(name)
    return found


def check_claims_passed_to_later_job(
    context: JobResolution, step: OrderedJob, cluster: str, index: int
) -> None:
    """Report claims passed on from another cluster: a claim of the same name there is another volume."""
    here, claims = context.cluster.name, context.team.spec.claims
    for name in _find_data_passed_to_later_job(context, step):
        if name in claims and cluster != here:
            message = (
                f"{step.job} writes claim '{name}' on {cluster}, and this run would read the claim of that"
                f" name on {here}, which is another volume"
            )
            help = f"Hand the data on by a connection to a bucket, or run both on {here}."
            where = context.where("data", name, key=True) if name in context.spec.spec.data else None
            context.report(AFTER_DATA, where or context.where("after", index), message, help)


def check_regimes_of_data_passed_on(context: JobResolution, job: Job, step: OrderedJob, index: int) -> None:
    """Check that a run has the regimes and the residency of the data that it gets from an earlier job."""
    names = _find_data_passed_to_later_job(context, step)
    if not names or step.spec is None:
        return
    what = f"{step.job} hands on '{names[0]}'"
    for regime in sorted(set(step.spec.compliance) - set(job.regimes)):
        message = f"{what}, whose data falls under {regime}, and this run does not"
        context.report(
            AFTER_RULES, context.where("after", index), message, f"Add {regime} to compliance of this job."
        )
    if step.spec.residency and not job.residency.startswith(step.spec.residency):
        asked = f"must stay in {step.spec.residency}"
        mine = f"says {job.residency}" if job.residency else "says nothing about where its data stays"
        message = f"{what}, whose data {asked}, and this run {mine}"
        help = f"Write residency: {step.spec.residency}."
        context.report(AFTER_RULES, context.where("after", index), message, help)
