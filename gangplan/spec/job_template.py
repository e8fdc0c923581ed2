"""JobTemplate: a job with parameters, for many specs. Field documentation here is the reference documentation."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gangplan.spec.base import ApiVersion, Name, Strict
from gangplan.spec.job import TEMPLATE_NAME
from gangplan.spec.sweep import MAX_PARAMETERS, ParameterName, SweepNumber, SweepValue

# A few results are better than linear, thanks to caches or to batches that grow.
EFFICIENCY = r"^(0?\.[0-9]{1,4}|1(\.[0-9]{1,4})?)(-(0?\.[0-9]{1,4}|1(\.[0-9]{1,4})?))?$"

# Fields that only a spec sets, or that belong elsewhere in the template.
NOT_IN_JOB_TEMPLATE = {
    "apiVersion": "Remove it; the top of the file says it.",
    "kind": "Remove it; the top of the file says it.",
    "name": "Remove it; each spec has a name of its own.",
    "team": "Remove it; the folder of a spec says whose it is.",
    "run": "Remove it; each spec counts its own runs.",
    "state": "Remove it; each spec has a state of its own.",
    "keep": "Remove it, and write keep: into the specs that need it.",
    "retired": "Remove it; each spec lists its own runs.",
    "template": "Write extends: next to job:.",
    "parameters": "Write parameters: next to job:.",
}


class TemplateParameter(Strict):
    """A value that a spec may set; it must if there is no default."""

    type: Literal["integer", "number", "string", "boolean"] = Field(
        description="What values it takes. A number that is given for a string keeps the text that was written.",
        examples=["integer"],
    )
    description: str | None = Field(
        None, max_length=1024, description="What it is for.", examples=["Workers of 8 GPUs"]
    )
    default: SweepValue | None = Field(None, description="Its value where a spec gives none.", examples=[4])
    min: SweepNumber | None = Field(None, description="Smallest number.", examples=[2])
    max: SweepNumber | None = Field(None, description="Largest number.", examples=[100])
    enum: Annotated[tuple[SweepValue, ...], Field(max_length=1000)] = Field(
        (), description="All values that it takes.", examples=[[2, 8, 16, 32]]
    )


class Expectation(Strict):
    """A scaling efficiency that was measured elsewhere, for a number of workers."""

    workers: int | None = Field(
        None,
        ge=1,
        le=500,
        description="For runs with this many workers; omitted: for all others.",
        examples=[16],
    )
    efficiency: Annotated[str, Field(pattern=EFFICIENCY)] = Field(
        description="Scaling efficiency, as a share of linear scaling: one value, or a range.",
        examples=["0.85-0.95"],
    )
    source: Annotated[str, Field(min_length=10, max_length=1024)] = Field(
        description="Who measured it, on what, and where that is published.",
        examples=["NVIDIA NeMo user guide, BERT 4B on DGX SuperPOD"],
    )


class JobTemplate(Strict):
    """A job from which specs are made: they name it, and set its parameters."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["JobTemplate"] = Field(description="Kind of this file.", examples=["JobTemplate"])
    name: Name | None = Field(
        None, description="Template name; omitted: the file's name, up to an @.", examples=["horovod-large"]
    )
    version: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="Version; another one is another file (NAME@2.yaml). Specs that name none get the newest.",
        examples=[2],
    )
    description: str | None = Field(
        None, max_length=2048, description="Free text for people.", examples=["Horovod on whole nodes"]
    )
    extends: Annotated[str, Field(pattern=TEMPLATE_NAME, max_length=75)] | None = Field(
        None,
        description="Template that this one extends: mappings are joined, other values of this one win, and its parameters are inherited.",
        examples=["horovod@1"],
    )
    parameters: Annotated[dict[ParameterName, TemplateParameter], Field(max_length=MAX_PARAMETERS)] = Field(
        {},
        description="Parameter: its type, default and bounds.",
        examples=[{"size": {"type": "integer", "default": 4, "min": 2, "max": 100}}],
    )
    expect: Annotated[tuple[Expectation, ...], Field(max_length=64)] = Field(
        (),
        description="Scaling efficiency that was measured elsewhere, which gangplan plan shows next to the run.",
        examples=[[{"workers": 16, "efficiency": "0.79", "source": "NVIDIA NeMo user guide, BERT 4B"}]],
    )
    job: dict[str, Any] = Field(
        description="Fields of a TrainingJob except apiVersion, kind, name, team, run, state, keep and retired. ${{ parameters.NAME }} stands for a value.",
        examples=[{"image": "horovod", "workers": "${{ parameters.size }}"}],
    )
