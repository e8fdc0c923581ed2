"""Steps of a run before its workers: each fetches to a claim or runs a command, once, in a pod of its own."""

from __future__ import annotations

from dataclasses import replace

from gangplan.findings import Location
from gangplan.model.duration import format_duration
from gangplan.model.job import EnvVar, JobStep, Mount, Origin, Origins, PulledImage, ResolvedRole, ValueOrigin
from gangplan.model.quantity import parse_cpu, parse_memory_quantity
from gangplan.resolve.buckets import S3_URL, resolve_bucket_env
from gangplan.resolve.cloud import resolve_run_identity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement
from gangplan.resolve.proxy import INTERNET_ENDPOINT
from gangplan.resolve.roles import TAKEN_ROLE_NAMES, resolve_role_or_step_pods
from gangplan.rules.specs import CONNECTION_NOT_ADDRESSED, SECRET_UNKNOWN
from gangplan.rules.steps import FETCH_FOLDER, FETCH_IMAGE, FETCH_SOURCE, STEP_TIMEOUT, STEP_UNUSABLE
from gangplan.spec.job import Step as Asked

# The requests of a pod that only fetches.
CPU, MEMORY = parse_cpu("2"), parse_memory_quantity("8Gi")
# The part of the time for pods to be ready that the workers' images, volumes and nodes need.
START_S = 300
HUB, S3 = "hf", "s3"
# The cluster's endpoint to reach Hugging Face, or a mirror of it (HF_ENDPOINT).
HUB_ENDPOINT = "huggingface"


def resolve_steps(
    context: JobResolution,
    image: PulledImage,
    placement: ChosenPlacement,
    shape: WorkerShape,
    data: DataPlan,
    timeout_s: int,
) -> tuple[ResolvedRole, ...]:
    """Return each step as a pod, in the order of the spec; report steps that are impossible."""
    asked = context.spec.spec.steps
    context.origins["steps"] = Origin("spec", context.where("steps"))
    if context.cluster.spec.gang in ("volcano", "coscheduling"):
        gang = context.cluster.spec.gang
        message = f"cluster {context.cluster.name} starts all pods of a run together ({gang}), and a step comes before the others"
        help = "Remove steps: do it in a run of its own, or in setup."
        context.report(STEP_UNUSABLE, context.where("steps"), message, help)
        return ()
    times = _resolve_step_timeouts(context, timeout_s)
    found = []
    for index, one in enumerate(asked):
        name = one.name or f"step-{index + 1}"
        if not _is_step_name_usable(context, index, name) or not _can_step_fetch_source(
            context, image, index, one, data
        ):
            continue
        small = replace(shape, cpu=CPU, memory=MEMORY) if one.fetch else shape
        pod = resolve_role_or_step_pods(context, image, placement, small, name, one, ("steps", index))
        if pod is not None:
            env = (*_resolve_fetch_step_env(context, index, one), *pod.env)
            step = JobStep(index, times[index], _resolve_fetch_step_url(context, one), one.to or "")
            found.append(replace(pod, env=env, step=step))
    return tuple(found)


def find_step_endpoints(context: JobResolution) -> dict[str, Location]:
    """Return the endpoints of the cluster that steps must reach, each with the place that asks for it."""
    found: dict[str, Location] = {}
    for index, one in enumerate(context.spec.spec.steps):
        connection = context.team.spec.connections.get((one.fetch or "").partition("/")[0])
        name = ""
        if (one.fetch or "").startswith("hf://"):
            name = HUB_ENDPOINT if HUB_ENDPOINT in context.cluster.spec.egress else INTERNET_ENDPOINT
        elif connection is not None:
            name = connection.endpoint_name
        if name:
            found.setdefault(name, context.where("steps", index, "fetch"))
    return found


def _resolve_step_timeouts(context: JobResolution, timeout_s: int) -> list[int]:
    """Return how long each step may take, in seconds.

    Kueue counts the run as ready once every pod is ready or has succeeded (trainjob_controller.go, PodsReady,
    v0.15 to v0.19): steps are part of that time, after which the run is requeued.
    """
    asked = context.spec.spec.steps
    is_waited = context.cluster.spec.gang == "kueue"
    room = min(timeout_s, context.cluster.spec.pods_ready_timeout - START_S) if is_waited else timeout_s
    written = sum(one.timeout or 0 for one in asked)
    free = sum(one.timeout is None for one in asked)
    left = room - written
    if left < 0 or (free and left < free * 60):
        last = max(index for index, one in enumerate(asked) if one.timeout) if written else 0
        where = context.where("steps", last, *(("timeout",) if written else ()))
        limit = "the run's timeout"
        if is_waited and room < timeout_s:
            ready = format_duration(context.cluster.spec.pods_ready_timeout)
            limit = f"podsReadyTimeout of cluster {context.cluster.name} ({ready}) without five minutes for the workers"
        message = (
            f"the steps may take {_format_step_time(written)}, and {limit} leaves {_format_step_time(room)}"
        )
        if left >= 0:
            message = f"{limit} leaves {_format_step_time(left)} for {free} {'steps' if free > 1 else 'step'} without a timeout; each takes a minute or more"
        help = "Write shorter timeouts, or do it in a run of its own."
        context.report(STEP_TIMEOUT, where, message, help)
    share = max(left // free, 60) if free else 0
    return [one.timeout or share for one in asked]


def _format_step_time(seconds: int) -> str:
    return format_duration(seconds) if seconds > 0 else "no time"


def _is_step_name_usable(context: JobResolution, index: int, name: str) -> bool:
    spec = context.spec.spec
    before = {one.name or f"step-{number + 1}" for number, one in enumerate(spec.steps[:index])}
    if name not in (*TAKEN_ROLE_NAMES, *spec.roles, *before):
        return True
    written = spec.steps[index].name is not None
    where = context.where("steps", index, *(("name",) if written else ()))
    other = "another step" if name in before else "a role" if name in spec.roles else "pods of every run"
    context.report(
        STEP_UNUSABLE, where, f"a step cannot be called '{name}', the name of {other}", "Choose another name."
    )
    return False


def _can_step_fetch_source(
    context: JobResolution, image: PulledImage, index: int, one: Asked, data: DataPlan
) -> bool:
    """Return whether the source is known, the image can fetch it, and all workers can read the folder."""
    if one.fetch is None:
        return True
    kind = HUB if one.fetch.startswith("hf://") else S3
    is_known = kind == HUB or _is_fetch_step_source_a_bucket(context, index, one.fetch)
    name = one.image or image.name
    entry = context.catalog.images.get(name)
    if entry is not None and kind not in entry.fetches:
        has = "huggingface_hub" if kind == HUB else "boto3"
        able = sorted(other for other, its in context.catalog.images.items() if kind in its.fetches)
        help = f"Write image: {able[0]}." if able else ""
        help = help or f"Add fetches: [{kind}] to an image that has {has}, in images/catalog.yaml."
        message = f"the catalog does not say that image '{name}' can fetch from {'Hugging Face' if kind == HUB else 'S3'}"
        path = ("image",) if one.image else ("fetch",)
        context.report(FETCH_IMAGE, context.where("steps", index, *path), message, help)
        return False
    _check_fetch_step_secret(context, index, one)
    return _is_step_folder_shared_with_workers(context, index, one.to or "", data) and is_known


def _is_fetch_step_source_a_bucket(context: JobResolution, index: int, source: str) -> bool:
    name, where = source.partition("/")[0], context.where("steps", index, "fetch")
    known = context.team.spec.connections
    connection = known.get(name)
    if connection is None:
        message = f"'{name}' is neither a connection of team {context.team.name} nor hf://OWNER/NAME"
        context.report(FETCH_SOURCE, where, message, context.near(name, known, "connections"))
        return False
    identity = resolve_run_identity(context)
    keys = connection.secret or (identity is not None and identity.provider == "aws")
    if connection.type != "s3" or not keys:
        lacks = "is not an S3 connection" if connection.type != "s3" else "has no secret with keys"
        help = "Mount it as a folder under data instead, or fetch it with a command of your own."
        context.report(CONNECTION_NOT_ADDRESSED, where, f"'{name}' {lacks}: nothing fetches from it", help)
        return False
    return True


def _check_fetch_step_secret(context: JobResolution, index: int, one: Asked) -> None:
    secret = (one.secret or "").partition("/")[0]
    declared = context.team.spec.secrets
    if secret and secret not in declared:
        message = f"secret '{secret}' is not declared by team {context.team.name}"
        help = context.near(secret, declared, "secrets")
        context.report(SECRET_UNKNOWN, context.where("steps", index, "secret"), message, help)


def _is_step_folder_shared_with_workers(
    context: JobResolution, index: int, folder: str, data: DataPlan
) -> bool:
    """Return whether the folder is in a claim that the step can write to and every worker can mount."""
    holding = [one for one in data.mounts if _contains_folder(one, folder)]
    where = context.where("steps", index, "to")
    shared = [one.path for one in data.mounts if one.claim and not one.single and not one.read_only]
    help = f"Write a folder below {shared[0]}." if shared else "Mount a claim with ReadWriteMany under data."
    best = max(holding, key=lambda one: len(one.path), default=None)
    if best is None or not best.claim:
        what = f"is in '{best.name}', which is not a claim" if best else "is in no claim that the run mounts"
        message = f"{folder} {what}: what is fetched there would end with the step's pod"
    elif best.read_only:
        message = f"{folder} is in claim '{best.claim}', which is mounted read-only"
    elif best.single:
        message = f"{folder} is in claim '{best.claim}', which only one node can mount: the workers may be on others"
    else:
        return True
    context.report(FETCH_FOLDER, where, message, help)
    return False


def _contains_folder(mount: Mount, folder: str) -> bool:
    return not mount.key and f"{folder}/".startswith(f"{mount.path.rstrip('/')}/")


def _resolve_fetch_step_url(context: JobResolution, one: Asked) -> str:
    """Return the URL of what is fetched; empty for a command."""
    source = one.fetch or ""
    if not source or source.startswith("hf://"):
        return source
    name, _, path = source.partition("/")
    bucket = context.team.spec.connections[name]
    parts = (f"s3://{bucket.bucket}", bucket.prefix.strip("/"), path.strip("/"))
    return "/".join(part for part in parts if part)


def _resolve_fetch_step_env(context: JobResolution, index: int, one: Asked) -> tuple[EnvVar, ...]:
    """Return the token, or the keys and the address of the source; only this pod gets them."""
    place, asked = ("steps", index), ValueOrigin("spec", ("steps", index, "fetch"), is_direct=False)

    def said(name: str, *shown: ValueOrigin) -> Origins:
        return (*shown, ValueOrigin("spec", (*place, "env", name), is_direct=False), asked)

    if one.secret is not None:
        secret, _, key = one.secret.partition("/")
        origins = said("HF_TOKEN", ValueOrigin("spec", (*place, "secret")))
        return (EnvVar("HF_TOKEN", secret=secret, key=key, origins=origins),)
    if one.fetch is None or one.fetch.startswith("hf://"):
        return ()
    connection = one.fetch.partition("/")[0]
    variables = resolve_bucket_env(connection, context.team.spec.connections[connection])
    return tuple(
        replace(one, origins=said(one.name, *one.origins)) for one in variables if one.name != S3_URL
    )
