"""Secrets of the team as variables and files, and names that users may not set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gangplan.findings import FieldPath
from gangplan.model.frameworks import START_VARIABLES
from gangplan.model.job import EnvVar, Mount, ValueOrigin
from gangplan.model.pods import CHECKPOINT_ENV, MODEL_ENV
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan, list_named_origins
from gangplan.rules.security import SECRET_SUSPECTED
from gangplan.rules.specs import ENV_RESERVED, ENV_TWICE, SECRET_UNKNOWN
from gangplan.source import Document
from gangplan.spec.pods import EnvSource

# Names that Trainer sets itself. 2.3 rejects them in trainer.env, older versions overwrite them silently
# (mpi.go and torch.go of Trainer v2.3.0); the launch environment of gangplan is reserved too.
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
        *(name for names in START_VARIABLES.values() for name in names),
    }
)

# Without one of these in its name, a variable is not named like a secret.
_SECRET_WORDS = ("PASS", "TOKEN", "SECRET", "CRED", "KEY")


def resolve_secrets(context: JobResolution, plan: DataPlan) -> None:
    """Add the variables and files of the team's secrets to the plan."""
    declared, asked = context.team.spec.secrets, context.spec.spec.secrets
    for name, reference in asked.env.items():
        secret, key = reference.split("/")
        if secret not in declared:
            context.report(
                SECRET_UNKNOWN,
                context.where("secrets", "env", name),
                f"secret '{secret}' is not declared by team {context.team.name}",
                context.near(secret, declared, "secrets", key=key),
            )
        if name in context.spec.spec.env:
            context.report(
                ENV_TWICE,
                context.where("secrets", "env", name, key=True),
                f"'{name}' is set in env and in secrets.env",
                "Keep one.",
            )
        origins = (ValueOrigin("spec", ("secrets", "env", name)),)
        plan.env[name] = EnvVar(name, secret=secret, key=key, origins=origins)
    for secret, path in asked.files.items():
        if secret not in declared:
            context.report(
                SECRET_UNKNOWN,
                context.where("secrets", "files", secret, key=True),
                f"secret '{secret}' is not declared by team {context.team.name}",
                context.near(secret, declared, "secrets"),
            )
        volume = f"secret-{secret}".replace(".", "-")[:63].rstrip("-")
        why = "secrets are mounted for reading, by their declared names"
        said = list_named_origins(("secrets", "files", secret), f"secret {secret}", why)
        plan.mounts.append(Mount(volume, path, secret=secret, read_only=True, origins=said))


def check_reserved_names_in_env(context: JobResolution) -> None:
    """Report variables that belong to Trainer or to the launch: of the spec, of its other containers, steps and
    roles, and of the defaults of team and cluster."""
    team, cluster = context.team, context.cluster
    layers: tuple[tuple[Document, Iterable[str], FieldPath], ...] = (
        (cluster.document, cluster.spec.env, ("env",)),
        (cluster.document, cluster.spec.defaults.env, ("defaults", "env")),
        (team.document, team.spec.defaults.env, ("defaults", "env")),
    )
    document, spec = context.spec.document, context.spec.spec
    model = MODEL_ENV if spec.model is not None else ()
    checkpoint = CHECKPOINT_ENV if spec.checkpoint is not None else ()
    for where, names, at in (*layers, *((document, names, at) for at, names in list_env_blocks(context))):
        for name in names:
            if name in RESERVED_ENV or (name in model and where is document):
                message = f"'{name}' is set for every run; a value of your own would break the launch"
                context.report(ENV_RESERVED, where.where((*at, name), key=True), message, "Remove it.")
            elif name in checkpoint and where is document:
                message = f"'{name}' is what checkpoint tells the program; the spec sets it, too"
                help = "Remove it, or remove checkpoint."
                context.report(ENV_RESERVED, where.where((*at, name), key=True), message, help)


def list_env_blocks(context: JobResolution) -> list[tuple[FieldPath, Iterable[str]]]:
    """Return each block of variables in the spec with its path: of the job, and of its other pods and
    containers."""
    spec = context.spec.spec
    found: list[tuple[FieldPath, Iterable[str]]] = [
        (("env",), spec.env),
        (("secrets", "env"), spec.secrets.env),
    ]
    for kind in ("setup", "sidecars", "steps"):
        found += [((kind, index, "env"), one.env) for index, one in enumerate(getattr(spec, kind))]
    return found + [(("roles", name, "env"), role.env) for name, role in spec.roles.items()]


def check_secret_names_in_spec_env(context: JobResolution) -> None:
    """Report variables that are named like secrets and have their value in the spec: of the job, and of its
    other containers, steps and roles.

    Those whose value looks like a secret are left out: the scan of the file reports them as errors.
    """
    spec = context.spec.spec
    _check_secret_names_in_env_block(context, spec.env, ("env",))
    for kind in ("setup", "sidecars", "steps"):
        for index, one in enumerate(getattr(spec, kind)):
            _check_secret_names_in_env_block(context, one.env, (kind, index, "env"))
    for name, role in spec.roles.items():
        _check_secret_names_in_env_block(context, role.env, ("roles", name, "env"))


def _check_secret_names_in_env_block(
    context: JobResolution, given: Mapping[str, str | EnvSource], at: FieldPath
) -> None:
    named = [name for name in given if any(word in name.upper() for word in _SECRET_WORDS)]
    if not named:
        return
    from gangplan.model.secret_words import (
        is_named_like_secret,
        is_secret_value,
        judge_secret_name,
    )  # few have such names

    for name in named:
        value = given[name]
        if not isinstance(value, str) or not is_named_like_secret(name, value):
            continue
        certainty = judge_secret_name(name)
        if not certainty or not is_secret_value(value, certainty):
            message = f"{name} is named like a secret, and its value is in Git"
            help = (
                f"Take it from a secret: secrets: {{env: {{{name}: SECRET/KEY}}}}; leave it if it is public."
            )
            context.report(SECRET_SUSPECTED, context.where(*at, name), message, help)
