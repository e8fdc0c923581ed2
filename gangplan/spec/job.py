"""TrainingJob: the file a data scientist writes. Field documentation here is the reference documentation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from gangplan.spec.base import (
    ApiVersion,
    Cpu,
    DurationSeconds,
    EnvName,
    LabelKey,
    LabelValue,
    Memory,
    MountPath,
    Name,
    SecretName,
    Strict,
    Text,
    helpful,
)
from gangplan.spec.command import argv_of

Priority = Literal["low", "normal", "high", "critical"]
Posture = Literal["default", "restricted", "isolated"]
Framework = Literal["mpi", "torch", "horovod", "deepspeed"]
MpiFamily = Literal["OpenMPI", "IntelMPI", "MPICH"]
Regime = Literal["hipaa", "gdpr", "fedramp", "pci-dss", "sox"]

Command = Annotated[
    tuple[str, ...],
    BeforeValidator(argv_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}},
            ]
        }
    ),
]

# Trainer 2.3 limits TrainJob.spec.trainer.env and command/args to 128 entries (facts of the CRD).
MAX_ENTRIES = 128


def _data_target(target: str) -> str:
    """`env`, or a clean absolute mount path."""
    from gangplan.spec.base import _absolute

    return target if target == "env" else _absolute(target)


DataTarget = Annotated[str, AfterValidator(_data_target)]


def _secret_key(reference: str) -> str:
    name, slash, key = reference.partition("/")
    if not slash or not name or not key or "/" in key:
        raise helpful(
            "secret-reference",
            f"'{reference}' is not SECRET/KEY",
            "Write the secret's name, a slash and its key: huggingface/token.",
        )
    return reference


SecretKey = Annotated[str, AfterValidator(_secret_key)]


class Gpu(Strict):
    """Which accelerator each worker wants."""

    model: Name | None = Field(
        None,
        description="GPU model by the name the cluster gives it; omitted: the first pool that fits the whole run.",
        examples=["a100-80gb"],
    )
    mig: Annotated[str, Field(pattern=r"^[1-7]g\.[0-9]+gb$")] | None = Field(
        None, description="MIG slice instead of whole GPUs; `gpus` then counts slices.", examples=["1g.10gb"]
    )


class Secrets(Strict):
    """Secrets by reference only; their values never belong in Git."""

    env: dict[EnvName, SecretKey] = Field(
        {}, description="Environment variable: SECRET/KEY.", examples=[{"HF_TOKEN": "huggingface/token"}]
    )
    files: dict[SecretName, MountPath] = Field(
        {},
        description="Secret: folder where its keys appear as read-only files.",
        examples=[{"intel-license": "/opt/intel/licenses"}],
    )


class Mpi(Strict):
    """MPI settings; the image's catalog entry supplies what is omitted."""

    implementation: MpiFamily | None = Field(
        None, description="MPI family in the image; must agree with the catalog.", examples=["IntelMPI"]
    )
    launch: Literal["ssh", "pmix"] = Field(
        "ssh", description="How ranks are started; only ssh is supported.", examples=["ssh"]
    )
    flags: tuple[Text, ...] = Field(
        (),
        max_length=64,
        description="Options for the mpirun that gangplan starts, one word per entry; each replaces gangplan's own.",
        examples=[["--bind-to", "core"]],
    )
    bind_to: Literal["none", "core", "socket", "numa"] | None = Field(
        None, description="What a rank is bound to by the mpirun that gangplan starts.", examples=["core"]
    )
    map_by: Literal["slot", "core", "socket", "numa", "node"] | None = Field(
        None,
        description="How the mpirun that gangplan starts lays ranks out over workers.",
        examples=["slot"],
    )
    license_acknowledged: bool = Field(
        False,
        description="Set to true to confirm that you may use a commercially licensed MPI.",
        examples=[True],
    )


class Launcher(Strict):
    """The pod that runs mpirun."""

    runs_ranks: bool = Field(
        False,
        description="True: the launcher is one of the workers and runs ranks too (at least 2 workers).",
        examples=[True],
    )
    cpu: Cpu | None = Field(
        None,
        description="CPU cores of a dedicated launcher; omitted: chosen by the number of workers.",
        examples=[2],
    )
    memory: Memory | None = Field(
        None,
        description="Memory of a dedicated launcher; omitted: chosen by the number of workers.",
        examples=["4Gi"],
    )


def _kind_of_rdma(value: object) -> str:
    """Which of the two forms is meant, so that a mistake is told about that one alone."""
    return "number" if isinstance(value, int) and not isinstance(value, bool) else "word"


RdmaDevices = Annotated[
    Annotated[Literal["off", "auto", "required", "per-gpu", "all"], Tag("word")]
    | Annotated[int, Field(ge=1, le=1000), Tag("number")],
    Discriminator(_kind_of_rdma),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["off", "auto", "required", "per-gpu", "all"], "type": "string"},
                {"maximum": 1000, "minimum": 1, "type": "integer"},
            ]
        }
    ),
]


class Network(Strict):
    """Who may talk to the run, and what the run may reach."""

    posture: Posture | None = Field(
        None,
        description="default: any port inside the run; restricted: SSH from launcher to workers and ports 1024-65535 inside the run; isolated: restricted, and no internet.",
        examples=["restricted"],
    )
    egress: tuple[Name, ...] = Field(
        (),
        max_length=32,
        description="Endpoints outside the run that it may reach, by the cluster's names; `internet` where the cluster offers it.",
        examples=[["s3"]],
    )
    transport: Literal["auto", "tcp"] = Field(
        "auto", description="tcp: keep MPI traffic off any fast fabric.", examples=["tcp"]
    )
    rdma: RdmaDevices = Field(
        "off",
        description="InfiniBand or RoCE: auto falls back to TCP with a warning, required fails without it. Both give a worker its share of the node's devices, by its share of the node's GPUs, and at least one of each rail; per-gpu one for each of its GPUs, all those of a whole node, or write a number of devices per worker. All but auto fail where there are none.",
        examples=["auto"],
    )


class Checkpoint(Strict):
    """Where training state is saved; given to the program as CHECKPOINT_DIR and CHECKPOINT_INTERVAL."""

    to: Name = Field(
        description="Claim or connection of the team that holds checkpoints.", examples=["checkpoints"]
    )
    path: MountPath = Field(
        "/checkpoints", description="Where the claim is mounted.", examples=["/checkpoints"]
    )
    every_steps: int = Field(1000, ge=1, description="Steps between two checkpoints.", examples=[1000])
    resume: bool = Field(
        True,
        description="Start from the latest checkpoint if there is one (CHECKPOINT_RESUME).",
        examples=[True],
    )


class Topology(Strict):
    """How close together the workers must be, by the cluster's level names."""

    required: Name | None = Field(
        None, description="All workers inside one domain of this level, or the run waits.", examples=["rack"]
    )
    preferred: Name | None = Field(
        None, description="Inside one domain of this level if possible.", examples=["rack"]
    )


class Placement(Strict):
    """Where the workers run."""

    node_pool: Name | None = Field(
        None, description="Node pool of the cluster, by name.", examples=["a100-80gb"]
    )
    topology: Topology | None = Field(
        None, description="Closeness of the workers.", examples=[{"required": "rack"}]
    )
    capacity: Literal["on-demand", "spot"] | None = Field(
        None, description="Kind of nodes to buy; spot needs a checkpoint and retries.", examples=["spot"]
    )
    spread: Literal["pack", "spread"] | None = Field(
        None, description="pack: few nodes; spread: as many nodes as possible.", examples=["pack"]
    )


class TrainingJob(Strict):
    """One distributed training job. Image, command, workers and resources are enough; the rest has defaults."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["TrainingJob"] = Field(description="Kind of this file.", examples=["TrainingJob"])
    name: Name | None = Field(
        None, description="Job name; omitted: the file's name.", examples=["llm-finetune"]
    )
    description: str | None = Field(
        None,
        max_length=2048,
        description="Free text for people.",
        examples=["Fine-tune on the filings of 2026"],
    )
    team: Name | None = Field(
        None,
        description="Owning team; omitted: the folder under specs/. It may only repeat that folder.",
        examples=["nlp"],
    )
    clusters: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)] | None = Field(
        None,
        description="Clusters to run on; omitted: the team's default, else the team's only cluster. More than one runs the job on each.",
        examples=[["onprem-a100"]],
    )
    profile: Literal["small", "medium", "large"] | None = Field(
        None, description="Preset of workers, GPUs, CPU, memory and timeout.", examples=["small"]
    )
    framework: Framework | None = Field(
        None,
        description="How the command is started; omitted: as the image's catalog entry says.",
        examples=["deepspeed"],
    )
    image: Name | None = Field(
        None,
        description="Image by its name in images/catalog.yaml; omitted: the team's default.",
        examples=["deepspeed"],
    )
    command: Command = Field(
        max_length=MAX_ENTRIES,
        description="The training program and its arguments, as a list or one line. A plain command runs once per rank; a launcher that the image has (mpirun, horovodrun and deepspeed with MPI, torchrun with torch) is kept, also in a shell's script, and others are refused (docs/commands.md). {ranks}, {workers} and {slots} are filled in.",
        examples=[["python", "train.py", "--fp16"]],
    )
    workers: int | None = Field(
        None, ge=1, le=500, description="Pods that run ranks; omitted: 4.", examples=[8]
    )
    slots: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Ranks per worker; omitted: GPUs per worker, or 1 without GPUs.",
        examples=[4],
    )
    gpus: int | None = Field(None, ge=0, le=16, description="GPUs per worker; omitted: 0.", examples=[4])
    gpu: Gpu | None = Field(None, description="GPU model or MIG slice.", examples=[{"model": "a100-80gb"}])
    cpu: Cpu | None = Field(None, description="CPU cores per worker; omitted: 4.", examples=[16])
    memory: Memory | None = Field(
        None, description="Memory per worker, with its unit; omitted: 16Gi.", examples=["320Gi"]
    )
    data: dict[Name, DataTarget] = Field(
        {},
        max_length=32,
        description="Claim or connection of the team: folder where it is mounted, or `env` for an S3 connection's address and keys in the environment.",
        examples=[{"financial-docs": "/data"}],
    )
    env: dict[EnvName, Text] = Field(
        {},
        max_length=MAX_ENTRIES,
        description="Environment variables of every rank; numbers keep the text you wrote.",
        examples=[{"NCCL_DEBUG": "INFO"}],
    )
    secrets: Secrets = Field(
        Secrets(),
        description="Secrets of the team, by reference.",
        examples=[{"env": {"HF_TOKEN": "huggingface/token"}}],
    )
    checkpoint: Checkpoint | None = Field(
        None, description="Where training state is saved.", examples=[{"to": "checkpoints"}]
    )
    mpi: Mpi | None = Field(None, description="MPI settings.", examples=[{"implementation": "OpenMPI"}])
    launcher: Launcher | None = Field(None, description="Launcher settings.", examples=[{"runsRanks": True}])
    network: Network | None = Field(None, description="Network settings.", examples=[{"posture": "isolated"}])
    placement: Placement | None = Field(
        None, description="Where the workers run.", examples=[{"nodePool": "a100-80gb"}]
    )
    priority: Priority | None = Field(None, description="Queue priority; omitted: normal.", examples=["high"])
    timeout: DurationSeconds | None = Field(
        None,
        description="Longest time the run may take; omitted: 24h. Up to 7d with extendedTimeout.",
        examples=["4h"],
    )
    extended_timeout: bool = Field(
        False, description="Set to true for a timeout between 24h and 7d.", examples=[True]
    )
    grace_period: DurationSeconds | None = Field(
        None,
        description="How long ranks may keep running after SIGTERM (preemption, timeout, a drained node) to save their state; from 30s to 1h; omitted: 2m.",
        examples=["5m"],
    )
    retries: int | None = Field(
        None,
        ge=0,
        le=3,
        description="Restarts of the whole run after a failure of the program; omitted: 0. From 1 on, a drained or reclaimed node uses up none (Trainer 2.2 and later).",
        examples=[1],
    )
    compliance: tuple[Regime, ...] = Field(
        (),
        max_length=8,
        description="Regimes that the data falls under, in addition to the team's; the cluster must enforce each by its pack.",
        examples=[["hipaa"]],
    )
    residency: Name | None = Field(
        None,
        description="Where the data must stay: eu, or the beginning of a region's name; clusters and buckets elsewhere are refused.",
        examples=["eu"],
    )
    labels: dict[LabelKey, LabelValue] = Field(
        {},
        max_length=16,
        description="Extra labels on the run's objects and pods.",
        examples=[{"project": "filings"}],
    )
    run: int = Field(
        1, ge=1, le=1_000_000, description="Run number; raise it to run the same job again.", examples=[2]
    )
    state: Literal["active", "archived"] = Field(
        "active", description="archived: keep the run in Git without applying it.", examples=["archived"]
    )
