"""Causes of the model's attributes, for values without recorded origins."""

from __future__ import annotations

from gangplan.model.job import Job
from gangplan.trace.cause import Cause
from gangplan.trace.context import TraceContext
from gangplan.trace.origins import ATTRIBUTES
from gangplan.trace.table import CauseTable

_BESIDE = "~spec.placement.near | ~spec.placement.apart | ~cluster.topology | ~spec.launcher.runsRanks"
# Attributes that do not come from the spec field of their name, or not from it alone.
MODEL = CauseTable(
    ("Job is_stopped", "spec.state | ~spec.schedule"),
    ("Job launcher_runs_ranks", "spec.launcher.runsRanks | ~job.framework"),
    ("Job mounts_token", lambda context, stars: context.account(is_token=True)),
    ("Job priority", "job.priority | ~cluster.gang"),
    ("Job queue", "job.queue | ~spec.state | ~spec.retired"),
    ("Job service_account", lambda context, stars: context.account(is_token=False)),
    ("Job team", f"job.team | {_BESIDE}"),
    ("Job timeout_s", "job.timeout"),
    ("Job workdir", "spec.workdir | ~spec.setup | ~spec.sidecars"),
    ("RunLayout num_nodes", "job.workers"),
    ("RunLayout slots", "job.slots"),
    ("PulledImage gid", "catalog.images.{image}.user.gid | ~job.image"),
    ("PulledImage uid", "catalog.images.{image}.user.uid | ~job.image"),
    ("SshServer *", "catalog.images.{image}.ssh.{0} | ~job.image | ~job.framework"),
)


def trace_attribute_causes(context: TraceContext, holder: object, name: str) -> list[Cause]:
    """Return the causes of an attribute of the model; none if its object is not a job and it has no row."""
    if found := MODEL.find((type(holder).__name__, name)):
        return list(found[0](context, found[1]))
    if not isinstance(holder, Job):
        return []
    if name in ATTRIBUTES:
        return ATTRIBUTES[name](context)
    field = _convert_attribute_to_field(name)
    return context.chosen(field) if field in context.job.origins else [context.spec(field)]


def _convert_attribute_to_field(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(map(str.capitalize, rest))
