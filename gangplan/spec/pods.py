"""Parts of a spec about pods, other than image and command: variables, files, volumes, scratch space."""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
)

from gangplan.spec.base import (
    Cpu,
    Day,
    EnvName,
    Memory,
    MountPath,
    Name,
    ScalarText,
    SecretName,
    Strict,
    build_helpful_error,
)
from gangplan.spec.command import parse_spec_command
from gangplan.spec.nodes import SEVERAL_FORM_TAG, SINGLE_FORM_TAG

# What Kubernetes can pass to a container (v1.34, pkg/apis/core/validation:
# validEnvDownwardAPIFieldPathExpressions and validContainerResourceFieldPathExpressions; the same in 1.30 and
# 1.36).
POD_FIELD = (
    r"^(metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['[^']+'\])$"
)
POD_RESOURCE = r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[A-Za-z0-9]+)$"
CONFIG_KEY = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-._a-zA-Z0-9]+$"

# Trainer 2.3 limits TrainJob.spec.trainer.env and command/args to 128 entries (see its CRD).
MAX_TRAINJOB_ENTRIES = 128

# A file in the folder of the spec, or a ConfigMap.
FILE_SOURCE = r"^(\./[^\x00-\x1f]*[^\x00-\x1f/]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$"
FileSource = Annotated[str, Field(pattern=FILE_SOURCE, max_length=253)]

CommandField = Annotated[
    tuple[str, ...],
    BeforeValidator(parse_spec_command),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}},
            ]
        }
    ),
]


class EnvSource(Strict):
    """The source of a variable's value: one of these fields."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    field: Annotated[str, Field(pattern=POD_FIELD)] | None = Field(
        None,
        description="A field of the rank's pod, as Kubernetes names it.",
        examples=["spec.nodeName"],
    )
    resource: Annotated[str, Field(pattern=POD_RESOURCE)] | None = Field(
        None,
        description="A resource amount of the rank's pod: cores as whole numbers, the rest in bytes.",
        examples=["limits.memory"],
    )
    config_map: Annotated[str, Field(pattern=CONFIG_KEY, max_length=507)] | None = Field(
        None, description="NAME/KEY: a key of a ConfigMap of the team.", examples=["tuning/nccl-algo"]
    )


def _validate_env_source(source: EnvSource) -> EnvSource:
    given = [name for name in EnvSource.model_fields if getattr(source, name) is not None]
    if len(given) == 1:
        return source
    message = "expected one of field, resource and configMap" + (", not several" if given else "")
    raise build_helpful_error("env-source", message, "Write for example {field: spec.nodeName}.")


def _detect_env_variable_form(value: object) -> str:
    """Return which of the two forms is meant, so that an error is reported for that form only."""
    return SEVERAL_FORM_TAG if isinstance(value, (dict, EnvSource)) else SINGLE_FORM_TAG


EnvValueField = Annotated[
    Annotated[ScalarText, Tag(SINGLE_FORM_TAG)]
    | Annotated[EnvSource, AfterValidator(_validate_env_source), Tag(SEVERAL_FORM_TAG)],
    Discriminator(_detect_env_variable_form),
]


class Scratch(Strict):
    """Space for temporary files, which is deleted with the pod."""

    size: Memory = Field(description="How much a worker may write.", examples=["200Gi"])
    medium: Literal["disk", "memory", "local"] = Field(
        "disk",
        description="disk: the node's own, as a part of its ephemeral storage; memory: counted in the worker's memory; local: a volume of the pool's localDisk, such as NVMe.",
        examples=["local"],
    )
    path: MountPath = Field("/scratch", description="Folder where it is mounted.", examples=["/scratch"])


AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
# Driver names: Kubernetes v1.34, pkg/apis/core/validation, ValidateCSIDriverName.
CsiDriver = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$", min_length=1, max_length=63)
]
# What a driver is given about a volume. The keys are defined by the driver.
VolumeAttributes = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=253)], Annotated[str, Field(max_length=4096)]],
    Field(max_length=64),
]


class VolumeUse(Strict):
    """A volume of the cluster's `volumes`, as used by a spec."""

    path: MountPath = Field(description="Folder where it is mounted.", examples=["/tls"])
    size: Memory | None = Field(
        None,
        description="Its size, if the cluster makes it from a storage class; omitted: as the cluster says.",
        examples=["500Gi"],
    )
    attributes: VolumeAttributes = Field(
        {},
        description="Attributes for its driver in addition to those in the cluster's file; only those that the file lets specs set.",
        examples=[{"csi.cert-manager.io/dns-names": "trainer.example.com"}],
    )


def _detect_volume_form(value: object) -> str:
    """Return which of the two forms is meant, so that an error is reported for that form only."""
    return SEVERAL_FORM_TAG if isinstance(value, (dict, VolumeUse)) else SINGLE_FORM_TAG


VolumeValue = Annotated[
    Annotated[MountPath, Tag(SINGLE_FORM_TAG)] | Annotated[VolumeUse, Tag(SEVERAL_FORM_TAG)],
    Discriminator(_detect_volume_form),
]


class PodVolume(Strict):
    """A volume that is created for one pod and deleted with it, by a CSI driver or from a storage class."""

    driver: CsiDriver | None = Field(
        None,
        description="CSI driver that makes it as the pod starts; its CSIDriver lists Ephemeral in volumeLifecycleModes.",
        examples=["secrets-store.csi.k8s.io"],
    )
    attributes: VolumeAttributes = Field(
        {},
        description="Attributes that the driver gets, for every run.",
        examples=[{"secretProviderClass": "nlp-vault"}],
    )
    settable: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        (),
        max_length=64,
        description="Attributes that a spec may set or override; omitted: none.",
        examples=[["csi.cert-manager.io/dns-names"]],
    )
    secret: SecretName | None = Field(
        None,
        description="Secret of the team's namespace that the driver gets to mount the volume (nodePublishSecretRef).",
        examples=["vault-token"],
    )
    fs_type: Annotated[str, Field(pattern=r"^[a-z0-9]+$", max_length=32)] | None = Field(
        None,
        description="File system that the driver makes on it; omitted: the driver's default.",
        examples=["ext4"],
    )
    read_only: bool = Field(False, description="Whether pods only read it.", examples=[True])
    pod_security: Literal["restricted", "baseline", "privileged"] = Field(
        "privileged",
        description="Label security.openshift.io/csi-ephemeral-volume-profile of the driver's CSIDriver, for OpenShift, which admits the driver only to namespaces of this level or a weaker one; omitted: privileged, as without a label. Other clusters admit inline CSI volumes at every level.",
        examples=["restricted"],
    )
    storage_class: SecretName | None = Field(
        None,
        description="Instead of driver: storage class of a claim that each pod gets and that is deleted with the pod.",
        examples=["cephfs-encrypted"],
    )
    access_mode: AccessMode = Field(
        "ReadWriteOnce",
        description="Access mode of that claim; the class must offer it.",
        examples=["ReadWriteOncePod"],
    )
    size: Memory | None = Field(
        None,
        description="Size of the claim where a spec states none; omitted: specs must.",
        examples=["200Gi"],
    )
    most: Memory | None = Field(
        None, description="Largest size that a spec may state; omitted: any.", examples=["2Ti"]
    )
    teams: tuple[Name, ...] | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="Teams whose specs may name it; omitted: all of the cluster.",
        examples=[["nlp"]],
    )


def _size_or_scratch(value: object) -> str:
    """Return which of the two forms is meant, so that an error is reported for that form only."""
    return SEVERAL_FORM_TAG if isinstance(value, (dict, Scratch)) else SINGLE_FORM_TAG


ScratchValue = Annotated[
    Annotated[Memory, Tag(SINGLE_FORM_TAG)] | Annotated[Scratch, Tag(SEVERAL_FORM_TAG)],
    Discriminator(_size_or_scratch),
]


ExitCode = Annotated[int, Field(ge=1, le=255)]


class ExitCodes(Strict):
    """Which exit codes of a program lead to another attempt; without this, every failure is retried."""

    retry: tuple[ExitCode, ...] = Field(
        (),
        max_length=64,
        description="Only a run that ends with one of these is tried again.",
        examples=[[137, 143]],
    )
    fail: tuple[ExitCode, ...] = Field(
        (),
        max_length=64,
        description="A run that ends with one of these has failed for good.",
        examples=[[42]],
    )


class Debug(Strict):
    """How long the pods of a failed run are kept."""

    until: Day = Field(
        description="Last day, in UTC, on which they are kept, as 2026-12-31; the run's timeout ends them earlier. After that day, the check fails until debug is removed.",
        examples=["2026-12-01"],
    )


class PodContainer(Strict):
    """A container in addition to the program, in every pod that runs ranks."""

    name: Name | None = Field(
        None, description="Its name in the pod; omitted: setup-1, sidecar-1 and so on.", examples=["metrics"]
    )
    image: Name | None = Field(
        None,
        description="Image by its name in images/catalog.yaml; omitted: the job's.",
        examples=["exporter"],
    )
    command: Annotated[CommandField, Field(max_length=MAX_TRAINJOB_ENTRIES)] | None = Field(
        None,
        description="Command and its arguments, as a list or one line; may be left out where image names one, which then starts its own.",
        examples=[["python", "fetch.py"]],
    )
    env: dict[EnvName, EnvValueField] = Field(
        {},
        max_length=MAX_TRAINJOB_ENTRIES,
        description="Environment variables in addition to those of the job.",
        examples=[{"LEVEL": "info"}],
    )
    cpu: Cpu | None = Field(
        None,
        description="CPU cores; omitted: those of a worker for setup, which runs before the program, and 500m for a sidecar, which runs next to it.",
        examples=[1],
    )
    memory: Memory | None = Field(
        None,
        description="Memory; omitted: that of a worker for setup, 512Mi for a sidecar.",
        examples=["1Gi"],
    )


def _validate_container_command(container: PodContainer) -> PodContainer:
    if container.command is not None or container.image is not None:
        return container
    message = "a container with the job's image needs a command"
    raise build_helpful_error("container", message, "Write for example {command: [python, fetch.py]}.")


PodContainerValue = Annotated[PodContainer, AfterValidator(_validate_container_command)]
