"""Elastic runs of torch: with how many workers they go on, and what they need for that.

Trainer has no elastic training: it counts every TrainJob's pods as fixed, and its torch plugin ignores
mlPolicy.torch.elasticPolicy (v2.1.0 to v2.3.0, pkg/runtime/framework/plugins/torch/torch.go). So only
torchrun gets the range, and the Job recreates lost workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.frameworks import ELASTIC_VARIABLES
from gangplan.model.job import ElasticLimits, Origin, PulledImage
from gangplan.model.version import parse_version
from gangplan.resolve.context import JobResolution
from gangplan.resolve.losses import suggest_team_checkpoint_target
from gangplan.rules.elastic import ELASTIC_CHECKPOINT, ELASTIC_UNUSABLE
from gangplan.rules.specs import ENV_RESERVED
from gangplan.spec.job import Elastic as Asked

# The first with successPolicy of a Job: beta, on by default (Kubernetes, kube_features.go, JobSuccessPolicy).
SINCE = (1, 31)


def resolve_elastic_workers(context: JobResolution, asked: Asked) -> int:
    """Return the largest number of workers of the run."""
    context.origins["workers"] = Origin("spec", context.where("elastic", "max"))
    return asked.max


def resolve_elastic(context: JobResolution, image: PulledImage | None) -> ElasticLimits | None:
    """Return the spec's elastic setting, and report where it cannot be used."""
    asked, spec = context.spec.spec.elastic, context.spec.spec
    if asked is None:
        return None
    for place, message, help in _find_elastic_torch_problems(context, image):
        context.report(ELASTIC_UNUSABLE, context.where(*place), message, help)
    for name in ELASTIC_VARIABLES:
        for block in (("env",), ("secrets", "env")):
            if name in (spec.env if block == ("env",) else spec.secrets.env):
                where = context.where(*block, name, key=True)
                message = f"'{name}' tells torchrun where the workers of an elastic run meet"
                context.report(ENV_RESERVED, where, message, "Remove it.")
    if spec.checkpoint is None:
        context.report(
            ELASTIC_CHECKPOINT,
            context.where("elastic"),
            "whenever a worker leaves or comes back, all ranks start again; without a checkpoint, from the beginning",
            f"Add checkpoint: {{to: {suggest_team_checkpoint_target(context)}}}, and load CHECKPOINT_DIR when the program starts.",
        )
    return ElasticLimits(asked.min, asked.max, asked.restarts)


def _find_elastic_torch_problems(
    context: JobResolution, image: PulledImage | None
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    spec, cluster = context.spec.spec, context.cluster
    asked = spec.elastic
    assert asked is not None
    if asked.min > asked.max:
        yield (
            ("elastic", "min"),
            f"min is {asked.min}, more than max, {asked.max}",
            f"Write min: {asked.max} or less.",
        )
    if spec.workers is not None and spec.workers != asked.max:
        message = f"workers is {spec.workers}, but an elastic run has {asked.max} (max) when it starts"
        yield ("workers",), message, "Remove workers."
    if image is not None and image.framework != "torch":
        message = (
            f"framework {image.framework} starts a fixed number of workers; only torch can go on with fewer"
        )
        yield ("elastic",), message, "Remove elastic, and write workers."
    if not parse_version(cluster.spec.versions.kubernetes).at_least(*SINCE):
        version = cluster.spec.versions.kubernetes
        message = f"cluster {cluster.name} has Kubernetes {version}, whose Jobs wait for all their pods (no longer from 1.31 on)"
        yield ("elastic",), message, "Run it on another cluster, or write workers."
    for index, word in enumerate(spec.command):
        for name in ("{ranks}", "{workers}"):
            if name in word:
                is_list = isinstance(context.spec.document.value.get("command"), list)
                message = f"{name} changes while an elastic run goes on: the program reads WORLD_SIZE"
                yield ("command", *((index,) if is_list else ())), message, f"Remove {name}."
