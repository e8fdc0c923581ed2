"""TrainingJob: the file a data scientist writes. Field documentation here is the reference documentation."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from gangplan.model.frameworks import Framework
from gangplan.model.image import MpiFamily
from gangplan.model.job import Posture
from gangplan.spec.base import (
    ApiVersion,
    Cpu,
    DurationSeconds,
    EnvName,
    GraceSeconds,
    LabelKey,
    LabelValue,
    Memory,
    MountPath,
    Name,
    ScalarText,
    SecretName,
    Strict,
    build_helpful_error,
)
from gangplan.spec.nodes import PageSize, ResourceName
from gangplan.spec.pods import (
    MAX_TRAINJOB_ENTRIES,
    CommandField,
    Debug,
    EnvValueField,
    ExitCodes,
    FileSource,
    PodContainerValue,
    ScratchValue,
    VolumeValue,
)

Priority = Literal["low", "normal", "high", "critical"]
Regime = Literal["hipaa", "gdpr", "fedramp", "pci-dss", "sox"]


def _parse_data_target(target: str) -> str:
    """Return `env`, or a normalised absolute mount path. Raises an error of `build_helpful_error` for other texts."""
    from gangplan.spec.base import parse_spec_mount_path

    return target if target == "env" else parse_spec_mount_path(target)


DataTarget = Annotated[str, AfterValidator(_parse_data_target)]


def _validate_secret_reference_in_spec(reference: str) -> str:
    name, slash, key = reference.partition("/")
    if not slash or not name or not key or "/" in key:
        raise build_helpful_error(
            "secret-reference",
            f"'{reference}' is not SECRET/KEY",
            f"Write the secret's name, a slash and the key in it, such as {name or 'huggingface'}/token.",
        )
    return reference


SecretKey = Annotated[str, AfterValidator(_validate_secret_reference_in_spec)]


RunName = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{8}$", max_length=63)]


# Patterns for the name of a model as registries accept it (a path of words), for the version of a model, and
# for a template's name with an optional version.
MODEL_NAME = r"^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$"
MODEL_VERSION = r"^[A-Za-z0-9]([-A-Za-z0-9._+]*[A-Za-z0-9])?$"
TEMPLATE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(@[1-9][0-9]*)?$"


class Gpu(Strict):
    """Which accelerator each worker needs."""

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
    flags: tuple[ScalarText, ...] = Field(
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


def _detect_rdma_form(value: object) -> str:
    """Return which of the two forms is meant, so that an error is reported for that form only."""
    return "number" if isinstance(value, int) and not isinstance(value, bool) else "word"


RdmaDevices = Annotated[
    Annotated[Literal["off", "auto", "required", "per-gpu", "all"], Tag("word")]
    | Annotated[int, Field(ge=1, le=1000), Tag("number")],
    Discriminator(_detect_rdma_form),
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
    """Which other pods may talk to the run, and what the run may reach."""

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
        description="InfiniBand or RoCE: auto falls back to TCP with a warning, required fails without it. Both give a worker the same share of the node's devices as of its GPUs, at least one of each rail. per-gpu: one for each of its GPUs; all: those of a whole node; a number: that many per worker. All but auto fail where there are none.",
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
        description="Start from the latest checkpoint if there is one (CHECKPOINT_RESUME). All runs of a job share the folder CHECKPOINT_DIR, also run: 2 and those of a changed spec; each start of a schedule has its own.",
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


class Elastic(Strict):
    """How many workers a run of torch may continue with."""

    min: int = Field(ge=1, le=500, description="Fewest workers the run continues with.", examples=[2])
    max: int = Field(
        ge=1,
        le=500,
        description="The workers it starts with, and that quota, admission and node fit count.",
        examples=[8],
    )
    restarts: int = Field(
        3,
        ge=0,
        le=100,
        description="How often the ranks are restarted after one of them fails or its worker is lost; torchrun counts both alike.",
        examples=[10],
    )


# A part of pod names, and of a variable name.
RoleName = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=20)]


class Role(Strict):
    """Pods that differ from the workers."""

    workers: int = Field(1, ge=1, le=500, description="How many pods it has.", examples=[2])
    command: Annotated[CommandField, Field(max_length=MAX_TRAINJOB_ENTRIES)] | None = Field(
        None,
        description="What each of them runs, once; omitted: the job's command.",
        examples=[["python", "serve.py"]],
    )
    image: Name | None = Field(
        None,
        description="Image by its name in images/catalog.yaml; omitted: the job's.",
        examples=["loader"],
    )
    gpus: int | None = Field(
        None, ge=0, le=16, description="GPUs of each pod, of the workers' pool; omitted: 0.", examples=[1]
    )
    cpu: Cpu | None = Field(
        None, description="CPU cores of each pod; omitted: those of a worker.", examples=[8]
    )
    memory: Memory | None = Field(
        None, description="Memory of each pod; omitted: that of a worker.", examples=["32Gi"]
    )
    env: dict[EnvName, EnvValueField] = Field(
        {},
        max_length=MAX_TRAINJOB_ENTRIES,
        description="Environment variables in addition to those of the job.",
        examples=[{"LEVEL": "info"}],
    )


# What a step fetches: a repository of Hugging Face, or a bucket by the name of a connection.
FETCH_PATTERN = (
    r"^(hf://(datasets/)?[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.]*(@[A-Za-z0-9][-A-Za-z0-9_./]*)?"
    r"|[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[!-~]+)?)$"
)


class Step(Strict):
    """A task that is done once in a run, in a pod of its own, before the workers start."""

    name: RoleName | None = Field(
        None, description="Its name in the run; omitted: step-1, step-2 and so on.", examples=["tokenize"]
    )
    fetch: Annotated[str, Field(pattern=FETCH_PATTERN, max_length=512)] | None = Field(
        None,
        description="What to fetch instead of a command: hf://OWNER/MODEL or hf://datasets/OWNER/NAME, with @REVISION, or an S3 connection of the team, with a path in it. What is there already is not fetched again.",
        examples=["hf://example/llama-1b@8f5d2b1", "lidar/2026"],
    )
    to: MountPath | None = Field(
        None,
        description="Folder to fetch to, in a claim of data that all workers can mount.",
        examples=["/models/llama-1b"],
    )
    secret: SecretKey | None = Field(
        None,
        description="SECRET/KEY of a token of Hugging Face, which this step alone gets.",
        examples=["huggingface/token"],
    )
    command: Annotated[CommandField, Field(max_length=MAX_TRAINJOB_ENTRIES)] | None = Field(
        None, description="What it runs, once.", examples=[["python", "tokenize.py"]]
    )
    image: Name | None = Field(
        None,
        description="Image by its name in images/catalog.yaml; omitted: the job's.",
        examples=["fetcher"],
    )
    gpus: int | None = Field(
        None, ge=0, le=16, description="GPUs of its pod, of the workers' pool; omitted: 0.", examples=[1]
    )
    cpu: Cpu | None = Field(
        None, description="CPU cores; omitted: those of a worker, and 2 for fetch.", examples=[8]
    )
    memory: Memory | None = Field(
        None, description="Memory; omitted: that of a worker, and 8Gi for fetch.", examples=["32Gi"]
    )
    env: dict[EnvName, EnvValueField] = Field(
        {},
        max_length=MAX_TRAINJOB_ENTRIES,
        description="Environment variables in addition to those of the job.",
        examples=[{"HF_HUB_ENABLE_HF_TRANSFER": "1"}],
    )
    timeout: DurationSeconds | None = Field(
        None,
        description="Longest time it may take; omitted: an equal share of the time that pods have to become ready, less five minutes for the workers, or of timeout where no such limit applies.",
        examples=["20m"],
    )


def _validate_step_fields(step: Step) -> Step:
    given = (step.fetch is not None) + (step.command is not None)
    if given != 1:
        message = "a step has fetch or command" + (", not both" if given else "")
        raise build_helpful_error("step", message, "Write for example {command: [python, tokenize.py]}.")
    if step.fetch is not None and step.to is None:
        raise build_helpful_error(
            "step", "fetch needs a folder", "Write to: /models/llama-1b, in a claim of data."
        )
    lone = next((one for one in ("to", "secret") if getattr(step, one) is not None), "")
    if step.fetch is None and lone:
        raise build_helpful_error(
            "step", f"'{lone}' belongs to fetch", "Remove it, or write fetch instead of command."
        )
    if step.secret is not None and not str(step.fetch).startswith("hf://"):
        message = "team.yaml has the keys of a connection"
        raise build_helpful_error("step", message, "Remove secret: connections.NAME.secret is used.")
    return step


StepValue = Annotated[Step, AfterValidator(_validate_step_fields)]


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
    near: tuple[Name, ...] = Field(
        (),
        max_length=8,
        description="Jobs of the team, by name, whose pods the workers should be near if possible: on the same nodes, else in the same rack.",
        examples=[["feature-store"]],
    )
    apart: tuple[Name, ...] = Field(
        (),
        max_length=8,
        description="Jobs of the team, by name, whose pods must not share a node with a worker; the worker waits instead.",
        examples=[["benchmark"]],
    )


def _validate_cron_expression(text: str) -> str:
    """Check an expression as the CronJob controller reads it. The parser is only imported if there is one."""
    from gangplan.model.cron import CronError, parse_cron

    try:
        parse_cron(text)
    except CronError as wrong:
        raise build_helpful_error("cron", str(wrong), wrong.help) from None
    return text


CronText = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_validate_cron_expression)]
ZoneName = Annotated[str, Field(min_length=1, max_length=64)]


class Schedule(Strict):
    """When runs of the job start automatically."""

    cron: CronText = Field(
        description="When runs start, in the five fields of cron (minute, hour, day, month, weekday), or @hourly, @daily, @weekly, @monthly, @yearly.",
        examples=["0 2 * * *"],
    )
    time_zone: ZoneName = Field(
        "Etc/UTC", description="Time zone that cron is read in.", examples=["Europe/Berlin"]
    )
    concurrency: Literal["forbid"] = Field(
        "forbid",
        description="forbid: no run starts while an earlier one of the schedule waits or trains; that start is skipped.",
        examples=["forbid"],
    )
    starting_deadline: DurationSeconds = Field(
        3600,
        description="How late a missed start may still be made up for, once.",
        examples=["1h"],
    )
    keep: int = Field(
        7,
        ge=1,
        le=500,
        description="Runs of the schedule that are over and stay in the cluster.",
        examples=[7],
    )


class Model(Strict):
    """The model that a job registers after the jobs in `after` are complete."""

    name: Annotated[str, Field(pattern=MODEL_NAME, max_length=128)] = Field(
        description="Name in the registry: GANGPLAN_MODEL_NAME in the environment.", examples=["filings"]
    )
    version: Annotated[str, Field(pattern=MODEL_VERSION, max_length=128)] = Field(
        description="Version, which no other job of the team registers: GANGPLAN_MODEL_VERSION in the environment.",
        examples=["2026.1"],
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
    template: Annotated[str, Field(pattern=TEMPLATE_NAME, max_length=75)] | None = Field(
        None,
        description="Template that the job is made from, and its version; without a version, the newest. Mappings in the spec are joined with the template's; other values replace the template's (docs/templates.md).",
        examples=["horovod-large@2"],
    )
    parameters: dict[str, Any] = Field(
        {}, description="Values for parameters of the template.", examples=[{"data": "imagenet"}]
    )
    team: Name | None = Field(
        None,
        description="Owning team; omitted: the folder under specs/. No other value is allowed.",
        examples=["nlp"],
    )
    clusters: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)] | None = Field(
        None,
        description="Clusters to run on; omitted: the team's default, else the team's only cluster. More than one runs the job on each.",
        examples=[["onprem-a100"]],
    )
    profile: Literal["small", "medium", "large"] | None = Field(
        None,
        description="Preset of workers, and of GPUs, CPU and memory for each, and of the timeout. small: 2 workers, 1 GPU, 8 CPU, 64Gi, 4h. medium: 8 workers, 4 GPUs, 16 CPU, 128Gi, 12h. large: 32 workers, 4 GPUs, 32 CPU, 256Gi, 72h.",
        examples=["small"],
    )
    framework: Framework | None = Field(
        None,
        description="How the command is started; omitted: as the image's catalog entry says. jax, tensorflow, xgboost and plain start it once on every worker, paddle by its own launcher (docs/job-commands.md).",
        examples=["deepspeed"],
    )
    backend: Literal["trainjob", "mpijob"] | None = Field(
        None,
        description="What the run is made of: a TrainJob of Kubeflow Trainer, or for MPI an MPIJob of the MPI operator; omitted: a TrainJob, or an MPIJob on a cluster without Trainer (docs/mpijob.md).",
        examples=["mpijob"],
    )
    image: Name | None = Field(
        None,
        description="Image by its name in images/catalog.yaml; omitted: the team's default.",
        examples=["deepspeed"],
    )
    command: CommandField = Field(
        max_length=MAX_TRAINJOB_ENTRIES,
        description="The training program and its arguments, as a list or one line. A plain command runs once per rank; a launcher that the image has (mpirun, horovodrun and deepspeed with MPI, torchrun with torch) is kept, also in a shell's script, and others are refused (docs/job-commands.md). {ranks}, {workers} and {slots} are filled in.",
        examples=[["python", "train.py", "--fp16"]],
    )
    workdir: MountPath | None = Field(
        None,
        description="Folder in which the program starts, in every pod; omitted: the image's own.",
        examples=["/workspace"],
    )
    workers: int | None = Field(
        None, ge=1, le=500, description="Pods that run ranks; omitted: 4.", examples=[8]
    )
    elastic: Elastic | None = Field(
        None,
        description="Instead of workers, for torch: the run starts with max workers, and goes on with min or more while others are replaced.",
        examples=[{"min": 2, "max": 8}],
    )
    roles: dict[RoleName, Role] = Field(
        {},
        max_length=6,
        description="Pods of another shape next to the workers, for tensorflow (chief, ps, evaluator) and plain (any name): they start with the workers, which find them by TF_CONFIG or by NAME_HOSTS.",
        examples=[{"ps": {"workers": 2, "cpu": 8, "memory": "32Gi"}}],
    )
    steps: tuple[StepValue, ...] = Field(
        (),
        max_length=4,
        description="What the run does once before its workers start: fetch something to a claim, or run a command. Steps run one after the other, each in its own pod. If one of them fails, the run fails.",
        examples=[
            [
                {"fetch": "hf://example/llama-1b@8f5d2b1", "to": "/models/llama-1b"},
                {"command": ["python", "tokenize.py"]},
            ]
        ],
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
    disk: Memory | None = Field(
        None,
        description="Disk of the node per worker, for what the program writes outside of mounts; a worker that writes more is evicted. Omitted: none is set aside.",
        examples=["200Gi"],
    )
    scratch: ScratchValue | None = Field(
        None,
        description="Space for temporary files in every worker, deleted with its pod: a size, or size, medium and path; the program finds it as SCRATCH_DIR.",
        examples=["200Gi", {"size": "2Ti", "medium": "local", "path": "/scratch"}],
    )
    huge_pages: dict[PageSize, Memory] = Field(
        {}, max_length=4, description="Huge pages per worker, by page size.", examples=[{"2Mi": "4Gi"}]
    )
    devices: dict[ResourceName, Annotated[int, Field(ge=1, le=1000)]] = Field(
        {},
        max_length=16,
        description="Other devices per worker, by resource; GPUs are gpus, and RDMA devices network.rdma.",
        examples=[{"example.com/fpga": 1}],
    )
    data: dict[Name, DataTarget] = Field(
        {},
        max_length=32,
        description="Claim or connection of the team: folder where it is mounted, or `env` for an S3 connection's address and keys in the environment.",
        examples=[{"financial-docs": "/data"}],
    )
    files: dict[FileSource, MountPath] = Field(
        {},
        max_length=32,
        description="Read-only files in every pod. ./NAME (a file next to the spec): its path in the pod; its bytes are part of the run, 1 MiB in all. NAME (a ConfigMap of the team): the folder where its keys appear, as they are when a pod starts.",
        examples=[{"./ds.json": "/etc/ds.json", "deepspeed-config": "/etc/deepspeed-config"}],
    )
    volumes: dict[Name, VolumeValue] = Field(
        {},
        max_length=16,
        description="Volumes of the cluster, by name: the folder where each is mounted, or path, size and attributes. Every pod that runs ranks gets its own, which is deleted with the pod.",
        examples=[{"vault": "/mnt/secrets", "work": {"path": "/work", "size": "500Gi"}}],
    )
    env: dict[EnvName, EnvValueField] = Field(
        {},
        max_length=MAX_TRAINJOB_ENTRIES,
        description="Environment variables of every rank; numbers keep the text you wrote. Instead of a text: {field: spec.nodeName}, {resource: limits.memory} or {configMap: NAME/KEY}; fields and amounts are those of the rank's own pod.",
        examples=[{"NCCL_DEBUG": "INFO", "NODE": {"field": "spec.nodeName"}}],
    )
    setup: tuple[PodContainerValue, ...] = Field(
        (),
        max_length=8,
        description="Containers that run one after the other before the program starts, in every pod that runs ranks, with its mounts and variables. If one of them fails, the pod fails.",
        examples=[[{"command": ["python", "fetch.py"]}]],
    )
    sidecars: tuple[PodContainerValue, ...] = Field(
        (),
        max_length=8,
        description="Containers that run as long as the program does, in every pod that runs ranks, with its mounts and variables. One that ends is started again; all get SIGTERM once the program has ended.",
        examples=[[{"name": "metrics", "command": ["python", "metrics.py"]}]],
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
    queue: Name | None = Field(
        None,
        description="LocalQueue of the team, where it has several on the cluster; omitted: the team's own.",
        examples=["night"],
    )
    preflight: bool = Field(
        False,
        description="Whether the workers are checked before training, by the preflight program of an image with MPI: ranks, hosts, versions, sums, GPUs, storage, clocks.",
        examples=[True],
    )
    service_account: SecretName | None = Field(
        None,
        description="Service account of the team's namespace that the cluster's file lists for it; omitted: gangplan's own, which has no rights.",
        examples=["sweeps"],
    )
    timeout: DurationSeconds | None = Field(
        None,
        description="Longest time the run may take; omitted: 24h. Up to 7d with extendedTimeout.",
        examples=["4h"],
    )
    extended_timeout: bool = Field(
        False, description="Set to true for a timeout between 24h and 7d.", examples=[True]
    )
    grace_period: GraceSeconds | None = Field(
        None,
        description="How long ranks may keep running after SIGTERM (preemption, timeout, a drained node) to save their state; from 30s to 1h; omitted: 2m.",
        examples=["5m"],
    )
    log_retention: DurationSeconds | None = Field(
        None,
        description="How long the log store should keep the run's logs, as an annotation for those who set it up; from 24h to the cluster's retention.logs; omitted: 7d. Changing it never makes a new run.",
        examples=["30d"],
    )
    retries: int | None = Field(
        None,
        ge=0,
        le=3,
        description="Restarts of the whole run after a failure of the program; omitted: 0. With 1 or more, a drained or reclaimed node uses none up (Trainer 2.2 and later).",
        examples=[1],
    )
    exit_codes: ExitCodes | None = Field(
        None,
        description="Exit codes of the program that use a retry, and those that end the run at once, whatever retries says.",
        examples=[{"fail": [42]}],
    )
    debug: Debug | None = Field(
        None,
        description="Keeps the pods of a failed run for inspection (docs/debug.md); not on clusters whose environment is prod.",
        examples=[{"until": "2026-12-01"}],
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
    schedule: Schedule | None = Field(
        None,
        description="Starts runs by itself; omitted: the job runs once, and again when run is raised (docs/schedules.md).",
        examples=[{"cron": "0 2 * * *", "timeZone": "Europe/Berlin"}],
    )
    after: tuple[Name, ...] = Field(
        (),
        max_length=16,
        description="Jobs or sweeps of the team that must be complete before the run is created (docs/pipelines.md).",
        examples=[["prepare-data"]],
    )
    model: Model | None = Field(
        None,
        description="Model that the job registers; this is a separate job, after the one that trains the model (docs/pipelines.md#registering-a-model).",
        examples=[{"name": "filings", "version": "2026.1"}],
    )
    run: int = Field(
        1, ge=1, le=1_000_000, description="Run number; raise it to run the same job again.", examples=[2]
    )
    state: Literal["active", "stopped", "archived"] = Field(
        "active",
        description="stopped: end the run, and keep a record of it that does nothing; archived: keep the run in Git without applying it.",
        examples=["stopped"],
    )
    keep: bool = Field(
        False,
        description="True: keep the run as it was rendered while this file stays the same, whatever changes on the platform (image, overlay, gangplan itself).",
        examples=[True],
    )
    retired: Annotated[tuple[RunName, ...], Field(max_length=64)] = Field(
        (),
        description="Earlier runs of the job that are over, by name: each becomes a record, and leaves the cluster once you remove it from this list (gangplan retire).",
        examples=[["llm-finetune-5e884898"]],
    )
