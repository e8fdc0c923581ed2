"""Data, secrets, checkpoints and environment: references of a spec become mounts, variables and egress."""

from __future__ import annotations

from dataclasses import dataclass, field

from gangplan.findings import Location
from gangplan.model.job import EnvVar, Mount, Origin, PulledImage
from gangplan.resolve.claims import writable
from gangplan.resolve.context import JobResolution
from gangplan.resolve.mounts import check_mounts
from gangplan.rules.core import SPEC_VALUE
from gangplan.rules.specs import (
    CLAIM_NOT_SHARED,
    CLAIM_READ_ONLY,
    CLAIM_UNKNOWN,
    CONNECTION_CLASH,
    CONNECTION_NOT_MOUNTABLE,
    ENV_RESERVED,
    ENV_TWICE,
    SECRET_UNKNOWN,
)
from gangplan.spec.team import Claim, Connection

# Names that Trainer sets itself. 2.3 rejects them in trainer.env, older versions overwrite them without
# a word (mpi.go and torch.go of Trainer v2.3.0); the launch environment of gangplan is reserved too.
RESERVED_ENV = frozenset(
    {
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
        "PRTE_MCA_prte_default_hostfile",
        "PRTE_MCA_plm_ssh_args",
        "PRTE_MCA_prte_keep_fqdn_hostnames",
        "OMPI_MCA_plm_rsh_no_tree_spawn",
        "PRTE_MCA_plm_ssh_no_tree_spawn",
        "I_MPI_HYDRA_BRANCH_COUNT",
        "I_MPI_HYDRA_HOST_FILE",
        "I_MPI_HYDRA_BOOTSTRAP",
        "I_MPI_PERHOST",
        "HYDRA_HOST_FILE",
        "CHECKPOINT_DIR",
        "CHECKPOINT_INTERVAL",
        "CHECKPOINT_RESUME",
    }
)


@dataclass(slots=True)
class DataPlan:
    """What the references amount to, while they are collected."""

    mounts: list[Mount] = field(default_factory=list)
    env: dict[str, EnvVar] = field(default_factory=dict)
    egress: dict[str, Location] = field(default_factory=dict)  # endpoint -> where it is asked for
    connection: str = ""


def resolve_data(context: JobResolution, image: PulledImage | None, workers: int) -> DataPlan:
    """Mounts, environment and endpoint names of the job."""
    plan = DataPlan()
    _plain_env(context, plan)
    for name, target in context.spec.spec.data.items():
        _dataset(context, plan, name, target, workers)
    _checkpoint(context, plan, workers)
    _secrets(context, plan)
    _reserved(context)
    check_mounts(context, plan.mounts, image)
    return plan


def _plain_env(context: JobResolution, plan: DataPlan) -> None:
    """Cluster, cluster defaults, team defaults, spec: the nearest to the spec wins, name by name."""
    cluster, team, spec = context.cluster.spec, context.team.spec, context.spec.spec
    for layer in (cluster.env, cluster.defaults.env, team.defaults.env, spec.env):
        for name, value in layer.items():
            plan.env[name] = EnvVar(name, value)


def _dataset(context: JobResolution, plan: DataPlan, name: str, target: str, workers: int) -> None:
    """One entry of `data`."""
    team, where = context.team.spec, context.where("data", name, key=True)
    claim, connection = team.claims.get(name), team.connections.get(name)
    if connection is not None:
        if target == "env":
            _s3_env(context, plan, name, connection, where)
            return
        if connection.claim is None:
            context.report(
                CONNECTION_NOT_MOUNTABLE,
                context.where("data", name),
                f"'{name}' is an S3 connection without a claim, so it cannot be mounted at {target}",
                f"Write {name}: env and read it by its address, or ask for a claim that exposes the bucket as files.",
            )
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
    _mount_claim(context, plan, name, claim, target, workers, where)


def _mount_claim(
    context: JobResolution, plan: DataPlan, name: str, claim: Claim, path: str, workers: int, where: Location
) -> None:
    modes = set(claim.access_modes)
    read_only = claim.read_only or modes == {"ReadOnlyMany"}
    shared = "ReadWriteMany" in modes or (read_only and "ReadOnlyMany" in modes)
    if workers > 1 and not shared:
        launcher = context.spec.spec.launcher
        context.report(
            CLAIM_NOT_SHARED,
            where,
            f"claim '{name}' is {' and '.join(sorted(modes))}: only one {_holder(claim)} can mount it, but the run has {workers} workers",
            "Use a claim with ReadWriteMany"
            + (
                "." if launcher and launcher.runs_ranks else ", or workers: 1 (the launcher does without it)."
            ),
        )
    volume = f"claim-{name}"[:63].rstrip("-")
    plan.mounts.append(Mount(volume, path, claim.claim_name or name, read_only=read_only, single=not shared))


def _holder(claim: Claim) -> str:
    """Who alone can mount a claim that is not shared. ReadWriteOnce is held by a node (the attach-detach
    controller), ReadWriteOncePod by a pod (the scheduler's plugin VolumeRestrictions); Kubernetes 1.29 on."""
    return "pod" if "ReadWriteOncePod" in claim.access_modes else "node"


def _s3_env(
    context: JobResolution, plan: DataPlan, name: str, connection: Connection, where: Location
) -> None:
    """Address and keys of a bucket as the AWS tools and SDKs read them, and its URL as S3_URL.

    These tools know one address and one pair of keys, so all connections of a run must agree on them.
    """
    address = f"s3://{connection.bucket}/{connection.prefix}".rstrip("/")
    written = context.team.document.value["connections"][name].get("egress")
    place = context.team.document.where(("connections", name, "egress")) if written else where
    plan.egress.setdefault(connection.egress, place)
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
    for name, value in (
        ("AWS_ENDPOINT_URL", connection.endpoint),
        ("S3_URL", address),
        ("AWS_REGION", connection.region or ""),
    ):
        if value:
            plan.env.setdefault(name, EnvVar(name, value))
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        plan.env.setdefault(key, EnvVar(key, secret=connection.secret, key=key))


def _checkpoint(context: JobResolution, plan: DataPlan, workers: int) -> None:
    asked = context.spec.spec.checkpoint
    if asked is None:
        return
    team, job = context.team.spec, context.spec.spec.name or context.spec.source.stem
    where = context.where("checkpoint", "to")
    connection, claim = team.connections.get(asked.to), team.claims.get(asked.to)
    if connection is not None:
        _s3_env(context, plan, asked.to, connection, where)
        directory = f"s3://{connection.bucket}/{connection.prefix}".rstrip("/") + f"/{job}"
    elif claim is not None:
        if claim.read_only or set(claim.access_modes) == {"ReadOnlyMany"}:
            context.report(
                CLAIM_READ_ONLY,
                where,
                f"checkpoints cannot be written to claim '{asked.to}': it is read-only",
                writable(team.claims, team.connections),
            )
        _mount_claim(context, plan, asked.to, claim, asked.path, workers, where)
        directory = f"{asked.path}/{job}"
    else:
        context.report(
            CLAIM_UNKNOWN,
            where,
            f"'{asked.to}' is neither a claim nor a connection of team {context.team.name}",
            context.near(asked.to, [*team.claims, *team.connections], "claims", "connections"),
        )
        return
    values = {
        "CHECKPOINT_DIR": directory,
        "CHECKPOINT_INTERVAL": str(asked.every_steps),
        "CHECKPOINT_RESUME": "true" if asked.resume else "false",
    }
    for name, value in values.items():
        plan.env[name] = EnvVar(name, value)
    context.origins["checkpoint"] = Origin("spec", context.where("checkpoint"))


def _secrets(context: JobResolution, plan: DataPlan) -> None:
    declared, asked = context.team.spec.secrets, context.spec.spec.secrets
    for name, reference in asked.env.items():
        secret, key = reference.split("/")
        if secret not in declared:
            context.report(
                SECRET_UNKNOWN,
                context.where("secrets", "env", name),
                f"secret '{secret}' is not declared by team {context.team.name}",
                context.near(secret, declared, "secrets"),
            )
        if name in context.spec.spec.env:
            context.report(
                ENV_TWICE,
                context.where("secrets", "env", name, key=True),
                f"'{name}' is set in env and in secrets.env",
                "Keep one.",
            )
        plan.env[name] = EnvVar(name, secret=secret, key=key)
    for secret, path in asked.files.items():
        if secret not in declared:
            context.report(
                SECRET_UNKNOWN,
                context.where("secrets", "files", secret, key=True),
                f"secret '{secret}' is not declared by team {context.team.name}",
                context.near(secret, declared, "secrets"),
            )
        plan.mounts.append(
            Mount(f"secret-{secret}".replace(".", "-")[:63].rstrip("-"), path, secret=secret, read_only=True)
        )


def _reserved(context: JobResolution) -> None:
    """Names that belong to Trainer or to the launch."""
    for block, names in (("env", context.spec.spec.env), ("secrets", context.spec.spec.secrets.env)):
        for name in names:
            if name in RESERVED_ENV:
                path = ("env", name) if block == "env" else ("secrets", "env", name)
                context.report(
                    ENV_RESERVED,
                    context.where(*path, key=True),
                    f"'{name}' is set for every run; a value of your own would break the launch",
                    "Remove it.",
                )
