"""Data, secrets, checkpoints and environment: a spec's references become mounts, variables and egress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gangplan.findings import Location
from gangplan.model.job import EnvVar, Mount, Origin, Origins, PulledImage, ScratchSpace, ValueOrigin
from gangplan.model.pods import CHECKPOINT_ENV
from gangplan.resolve.buckets import can_mount_as_folder, resolve_bucket_env, resolve_bucket_mount
from gangplan.resolve.config_maps import resolve_config_mounts
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan, list_claim_mount_origins
from gangplan.resolve.mounts import check_requested_mounts, check_requested_workdir
from gangplan.resolve.scratch import resolve_scratch_env, resolve_scratch_mount
from gangplan.resolve.secrets import (
    check_reserved_names_in_env,
    check_secret_names_in_spec_env,
    resolve_secrets,
)
from gangplan.resolve.variables import merge_env_layers
from gangplan.rules.core import SPEC_VALUE
from gangplan.rules.specs import (
    CLAIM_NOT_SHARED,
    CLAIM_READ_ONLY,
    CLAIM_UNKNOWN,
    CONNECTION_CLASH,
    CONNECTION_NOT_ADDRESSED,
    CONNECTION_NOT_MOUNTABLE,
)
from gangplan.spec.team import Claim, Connection


def resolve_job_data(
    context: JobResolution, image: PulledImage | None, workers: int, scratch: ScratchSpace | None = None
) -> DataPlan:
    """Return the mounts, environment and endpoint names of the job."""
    plan = DataPlan(env=merge_env_layers(context))
    for name, target in context.spec.spec.data.items():
        _resolve_dataset(context, plan, name, target, workers, image)
    _resolve_checkpoint(context, plan, workers, image)
    resolve_secrets(context, plan)
    check_reserved_names_in_env(context)
    check_secret_names_in_spec_env(context)
    plan.mounts.extend(resolve_config_mounts(context))
    plan.mounts.extend(resolve_scratch_mount(context, scratch))
    if context.spec.spec.volumes:
        from gangplan.resolve.volumes import resolve_volume_mounts  # few runs have one

        plan.mounts.extend(resolve_volume_mounts(context))
    plan.env |= resolve_scratch_env(context, scratch)
    if context.spec.spec.model is not None:
        from gangplan.resolve.registered import resolve_registered_model_env  # few jobs register one

        plan.env |= resolve_registered_model_env(context.spec.spec.model)
    check_requested_mounts(context, plan.mounts, image)
    check_requested_workdir(context, image, plan.mounts)
    return plan


def _resolve_dataset(
    context: JobResolution,
    plan: DataPlan,
    name: str,
    target: str,
    workers: int,
    image: PulledImage | None = None,
) -> None:
    """Resolve one entry of `data`."""
    team, where = context.team.spec, context.where("data", name, key=True)
    asked = ValueOrigin("spec", ("data", name), f"data in the spec: {name}")
    claim, connection = team.claims.get(name), team.connections.get(name)
    if connection is not None:
        if target == "env":
            _add_s3_env_of_connection(
                context, plan, name, connection, ValueOrigin("spec", ("data", name), is_key=True)
            )
            return
        if can_mount_as_folder(connection):
            _resolve_direct_bucket_mount(context, plan, name, connection, target, image, where)
            return
        if _is_bucket_volume_in_cluster_file(context, name, connection):
            _resolve_bucket_mount_by_claim(context, plan, name, connection, target, workers, asked)
            return
        if connection.claim is None:
            _report_connection_without_claim(context, name, connection, target)
            return
        name, claim = connection.claim, team.claims.get(connection.claim)
    if claim is None:
        known = [*team.claims, *team.connections]
        context.report(
            CLAIM_UNKNOWN,
            where,
            f"'{name}' is neither a claim nor a connection of team {context.team.name}",
            context.near(name, known, "claims", "connections"),
        )
        return
    if target == "env":
        context.report(
            SPEC_VALUE,
            context.where("data", name),
            f"'{name}' is a claim; expected the folder to mount it at",
            f"Write {name}: /data.",
        )
        return
    _resolve_claim_mount(context, plan, name, claim, target, workers, asked)


def _is_bucket_volume_in_cluster_file(context: JobResolution, name: str, connection: Connection) -> bool:
    """Return whether the cluster's file defines a PersistentVolume for a bucket."""
    if name not in context.cluster.spec.teams[context.team.name].persistent_volumes:
        return False
    from gangplan.resolve.persistent import is_bucket  # few teams have one

    return is_bucket(connection)


def _resolve_bucket_mount_by_claim(
    context: JobResolution,
    plan: DataPlan,
    name: str,
    connection: Connection,
    path: str,
    workers: int,
    asked: ValueOrigin,
) -> None:
    """Mount a bucket through the claim that gangplan creates for it."""
    from gangplan.resolve.persistent import build_bucket_claim

    _resolve_claim_mount(context, plan, name, build_bucket_claim(connection), path, workers, asked)


def _report_connection_without_claim(
    context: JobResolution, name: str, connection: Connection, target: str
) -> None:
    """Report a connection that is to be mounted as a folder but has no claim."""
    kind = {
        "s3": "an S3 connection",
        "gcs": "a bucket of Google Cloud",
        "azure-blob": "a container of Azure",
    }
    env = f"Write {name}: env and read it by its address, or ask" if connection.type == "s3" else "Ask"
    context.report(
        CONNECTION_NOT_MOUNTABLE,
        context.where("data", name),
        f"'{name}' is {kind[connection.type]} without a claim, so it cannot be mounted at {target}",
        f"{env} for a claim that exposes the bucket as files.",
    )


def _resolve_direct_bucket_mount(
    context: JobResolution,
    plan: DataPlan,
    name: str,
    connection: Connection,
    path: str,
    image: PulledImage | None,
    where: Location,
) -> None:
    """Mount a bucket that needs no claim; its driver connects to the store from inside the pod."""
    plan.mounts.append(resolve_bucket_mount(context, name, connection, path, image, where))
    place = context.team.document.where(("connections", name, "egress"))
    plan.egress.setdefault(connection.endpoint_name, place if connection.egress else where)


def _resolve_claim_mount(
    context: JobResolution,
    plan: DataPlan,
    name: str,
    claim: Claim,
    path: str,
    workers: int,
    asked: ValueOrigin,
) -> None:
    where = context.where(*asked.path, key=asked.path[0] == "data")
    modes = set(claim.access_modes)
    read_only = claim.read_only or modes == {"ReadOnlyMany"}
    shared = "ReadWriteMany" in modes or (read_only and "ReadOnlyMany" in modes)
    if workers > 1 and not shared:
        launcher = context.spec.spec.launcher
        context.report(
            CLAIM_NOT_SHARED,
            where,
            f"claim '{name}' is {' and '.join(sorted(modes))}: only one {_describe_claim_holder(claim)} can mount it, but the run has {workers} workers",
            "Use a claim with ReadWriteMany"
            + (
                "." if launcher and launcher.runs_ranks else ", or workers: 1 (the launcher does without it)."
            ),
        )
    volume = f"claim-{name}"[:63].rstrip("-")
    mount = Mount(volume, path, claim.claim_name or name, read_only=read_only, single=not shared)
    plan.mounts.append(replace(mount, origins=list_claim_mount_origins(context, name, asked)))


def _describe_claim_holder(claim: Claim) -> str:
    """Return what can mount an unshared claim: one node or one pod.

    ReadWriteOnce is held by a node (the attach-detach controller), ReadWriteOncePod by a pod (the scheduler's
    plugin VolumeRestrictions); since Kubernetes 1.29.
    """
    return "pod" if "ReadWriteOncePod" in claim.access_modes else "node"


def _add_s3_env_of_connection(
    context: JobResolution, plan: DataPlan, name: str, connection: Connection, asked: ValueOrigin
) -> None:
    """Add the variables of a bucket.

    AWS tools know one address and one pair of keys, so all connections of a run must agree on them.
    """
    where = context.where(*asked.path, key=asked.is_key)
    if connection.type != "s3" or connection.endpoint is None or connection.secret is None:
        lacks = "is not an S3 connection" if connection.type != "s3" else "states no endpoint and secret"
        context.report(
            CONNECTION_NOT_ADDRESSED,
            where,
            f"'{name}' {lacks}: the environment cannot hold its address and keys",
            "Mount it as a folder, or state endpoint and secret of an S3-compatible store.",
        )
        return
    written = context.team.document.value["connections"][name].get("egress")
    place = context.team.document.where(("connections", name, "egress")) if written else where
    plan.egress.setdefault(connection.endpoint_name, place)
    plan.connection = plan.connection or name
    other = context.team.spec.connections[plan.connection]
    if (other.endpoint, other.secret, other.region) != (
        connection.endpoint,
        connection.secret,
        connection.region,
    ):
        context.report(
            CONNECTION_CLASH,
            where,
            f"'{name}' and '{plan.connection}' have different addresses or keys, and a program's environment holds only one",
            "Use one of them in this spec, or ask for a claim that exposes the other bucket as files.",
        )
    for one in resolve_bucket_env(name, connection):
        plan.env.setdefault(one.name, replace(one, origins=(*one.origins, asked.aside())))


def _report_read_only_checkpoint_claim(context: JobResolution, name: str, where: Location) -> None:
    context.report(
        CLAIM_READ_ONLY,
        where,
        f"checkpoints cannot be written to claim '{name}': it is read-only",
        _suggest_writable_team_claims(context.team.spec.claims, context.team.spec.connections),
    )


def _resolve_checkpoint(
    context: JobResolution, plan: DataPlan, workers: int, image: PulledImage | None = None
) -> None:
    asked = context.spec.spec.checkpoint
    if asked is None:
        return
    team, job = context.team.spec, context.spec.spec.name or context.spec.source.stem
    where, target = context.where("checkpoint", "to"), ValueOrigin("spec", ("checkpoint", "to"))
    place: Origins = (ValueOrigin("spec", ("checkpoint", "path")),)
    connection, claim = team.connections.get(asked.to), team.claims.get(asked.to)
    if connection is not None and can_mount_as_folder(connection):
        _resolve_direct_bucket_mount(context, plan, asked.to, connection, asked.path, image, where)
        directory = f"{asked.path}/{job}"
    elif connection is not None and _is_bucket_volume_in_cluster_file(context, asked.to, connection):
        if connection.read_only:
            _report_read_only_checkpoint_claim(context, asked.to, where)
        _resolve_bucket_mount_by_claim(context, plan, asked.to, connection, asked.path, workers, target)
        directory = f"{asked.path}/{job}"
    elif connection is not None:
        _add_s3_env_of_connection(context, plan, asked.to, connection, target)
        place = tuple(ValueOrigin("team", ("connections", asked.to, one)) for one in ("bucket", "prefix"))
        directory = f"s3://{connection.bucket}/{connection.prefix}".rstrip("/") + f"/{job}"
    elif claim is not None:
        if claim.read_only or set(claim.access_modes) == {"ReadOnlyMany"}:
            _report_read_only_checkpoint_claim(context, asked.to, where)
        _resolve_claim_mount(context, plan, asked.to, claim, asked.path, workers, target)
        directory = f"{asked.path}/{job}"
    else:
        context.report(
            CLAIM_UNKNOWN,
            where,
            f"'{asked.to}' is neither a claim nor a connection of team {context.team.name}",
            context.near(asked.to, [*team.claims, *team.connections], "claims", "connections"),
        )
        return
    to, job_name = target.aside(), ValueOrigin("job", ("name",))
    every, resume = (ValueOrigin("spec", ("checkpoint", field)) for field in ("everySteps", "resume"))
    said = (
        (directory, (*place, to, job_name)),
        (str(asked.every_steps), (every,)),
        ("true" if asked.resume else "false", (resume,)),
    )
    for name, (value, origins) in zip(CHECKPOINT_ENV, said, strict=True):
        plan.env[name] = EnvVar(name, value, origins=origins)
    context.origins["checkpoint"] = Origin("spec", context.where("checkpoint"))


def _suggest_writable_team_claims(claims: Mapping[str, Claim], connections: Iterable[str]) -> str:
    """Return a help with the claims and connections that checkpoints can be written to."""
    names = [
        name
        for name, claim in claims.items()
        if not claim.read_only and set(claim.access_modes) != {"ReadOnlyMany"}
    ]
    names += [name for name in connections if name not in names]
    if not names:
        return "Ask for a writable claim: accessModes: [ReadWriteMany] in team.yaml."
    return f"Use a writable one: {', '.join(names)}."
