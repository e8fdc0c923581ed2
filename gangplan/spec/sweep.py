"""Sweep: one job with many settings, and a run for each. Field documentation here is the reference
documentation."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gangplan.spec.base import ApiVersion, Name, ReadBy, Strict, build_helpful_error
from gangplan.spec.job import RunName

# The trial's own part of its name, long enough to distinguish ten thousand trials.
TRIAL = r"^[a-z2-7]{8}$"
PARAMETER = r"^[A-Za-z_][A-Za-z0-9_-]*$"
MAX_TRIALS = 100_000
MAX_PARAMETERS = 32


def _parse_sweep_parameter_value(value: Any) -> str | int | float | bool:
    if isinstance(value, (str, int, float)):
        return value
    raise build_helpful_error(
        "parameter", "expected a text, a number, true or false", "Write one value, such as 1e-4 or adam."
    )


def _parse_parameter_number(value: Any) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise build_helpful_error("parameter", "expected a number", "Write a number, such as 1e-4 or 64.")


_ANY = {"type": ["string", "number", "boolean"]}
SweepValue = Annotated[Any, ReadBy(_parse_sweep_parameter_value, _ANY)]
SweepNumber = Annotated[Any, ReadBy(_parse_parameter_number, {"type": "number"})]
ParameterName = Annotated[str, Field(pattern=PARAMETER, max_length=63)]
TrialName = Annotated[str, Field(pattern=TRIAL)]
Values = Annotated[tuple[SweepValue, ...], Field(min_length=1, max_length=10_000)]


class Range(Strict):
    """A range of numbers to draw from."""

    min: SweepNumber = Field(description="Smallest; values are whole if min and max are.", examples=[0.001])
    max: SweepNumber = Field(description="Largest value.", examples=[0.1])
    scale: Literal["linear", "log"] = Field(
        "linear", description="log: each order of magnitude is as likely as any other.", examples=["log"]
    )


def _parse_sweep_random_choices(value: Any) -> Any:
    """Return a list of values, or a range. Raises an error of `build_helpful_error` for other values."""
    if isinstance(value, tuple) and value:
        return tuple(_parse_sweep_parameter_value(one) for one in value)
    if isinstance(value, dict):
        return Range.model_validate(value)
    raise build_helpful_error(
        "parameter", "expected a list of values or a range", "Write [32, 64, 128], or {min: 1e-5, max: 1e-2}."
    )


Drawn = Annotated[
    Any,
    ReadBy(
        _parse_sweep_random_choices,
        {
            "anyOf": [
                {"type": "array", "items": _ANY, "minItems": 1},
                {
                    "type": "object",
                    "properties": {
                        "min": {"type": "number"},
                        "max": {"type": "number"},
                        "scale": {"enum": ["linear", "log"]},
                    },
                    "required": ["min", "max"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]


class Random(Strict):
    """Values drawn with a seed: they never change, and more samples only add to them."""

    samples: int = Field(ge=1, le=MAX_TRIALS, description="How many trials are drawn.", examples=[20])
    seed: int = Field(
        ge=0,
        le=2**63 - 1,
        description="Seed for drawing values; another seed draws others.",
        examples=[7],
    )
    of: Annotated[dict[ParameterName, Drawn], Field(min_length=1, max_length=MAX_PARAMETERS)] = Field(
        description="Parameter: values to choose from, or a range {min, max, scale}.",
        examples=[{"lr": {"min": 0.001, "max": 0.1, "scale": "log"}, "batch": [32, 64]}],
    )


class Parameters(Strict):
    """The settings that are tried. If several fields are set, all of their settings are tried, each once."""

    grid: Annotated[dict[ParameterName, Values], Field(max_length=MAX_PARAMETERS)] = Field(
        {},
        description="Parameter: its values; each combination is a trial.",
        examples=[{"lr": ["1e-4", "3e-4"], "batch": [64, 128]}],
    )
    list: Annotated[tuple[dict[ParameterName, SweepValue], ...], Field(max_length=MAX_TRIALS)] = Field(
        (), description="Trials one by one.", examples=[[{"lr": "1e-3", "batch": 32}]]
    )
    random: Random | None = Field(
        None,
        description="Trials with drawn values.",
        examples=[{"samples": 20, "seed": 7, "of": {"lr": {"min": 0.001, "max": 0.1}}}],
    )


class Results(Strict):
    """What trials have reached, and how many of them continue."""

    file: Annotated[str, Field(pattern=r"^\./[^/].*$", max_length=253)] = Field(
        description="CSV file next to the sweep, with the columns trial, the metric, and rung if trials are compared several times.",
        examples=["./rates.csv"],
    )
    metric: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        description="Column that trials are compared by.", examples=["loss"]
    )
    goal: Literal["minimize", "maximize"] = Field(
        "minimize", description="Whether less or more is better.", examples=["maximize"]
    )
    keep: int = Field(
        ge=1,
        le=MAX_TRIALS,
        description="How many trials with a result continue: the best ones. All others with a result are over, as if they were listed in stopped.",
        examples=[12],
    )


class Sweep(Strict):
    """A job that runs once for each setting of its parameters, as many at once as Kueue admits."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["Sweep"] = Field(description="Kind of this file.", examples=["Sweep"])
    name: Name | None = Field(
        None, description="Sweep name; omitted: the file's name.", examples=["lr-search"]
    )
    description: str | None = Field(
        None,
        max_length=2048,
        description="Free text for people.",
        examples=["Learning rates for the filings"],
    )
    parameters: Parameters = Field(
        description="What is tried: a grid, a list, drawn values, or several of them.",
        examples=[{"grid": {"lr": ["1e-4", "3e-4"], "batch": [64, 128]}}],
    )
    max_concurrent: int = Field(
        ge=1,
        le=10_000,
        description="Trials that may be admitted at once. Kueue holds the others back, by a queue of the sweep's own inside the team's quota.",
        examples=[10],
    )
    template: dict[str, Any] = Field(
        description="The job: fields of a TrainingJob except apiVersion, kind, name, team, queue, schedule, state and retired, or those that a JobTemplate leaves open (template, parameters). ${{ parameters.NAME }} stands for a value, ${{ trial.name }} for the trial's own part of its name.",
        examples=[{"image": "deepspeed", "command": ["python", "train.py", "--lr=${{ parameters.lr }}"]}],
    )
    state: Literal["active", "stopped", "archived"] = Field(
        "active",
        description="stopped: end all trials, and keep records of them; archived: keep them in Git without applying them.",
        examples=["stopped"],
    )
    results: Results | None = Field(
        None,
        description="A file in Git that says which trials are worth going on.",
        examples=[{"file": "./rates.csv", "metric": "loss", "keep": 12}],
    )
    stopped: Annotated[tuple[TrialName, ...], Field(max_length=MAX_TRIALS)] = Field(
        (),
        description="Trials that are over, by name: each becomes a record, which ends its run.",
        examples=[["k7x2mq4a"]],
    )
    removed: Annotated[tuple[TrialName, ...], Field(max_length=MAX_TRIALS)] = Field(
        (),
        description="Trials whose records have done their work, by name: they leave Git and the cluster.",
        examples=[["k7x2mq4a"]],
    )
    retired: Annotated[tuple[RunName, ...], Field(max_length=MAX_TRIALS)] = Field(
        (),
        description="Earlier runs of trials that are over, by name, after the template changed: each becomes a record.",
        examples=[["rates-k7x2mq4a-5e884898"]],
    )
