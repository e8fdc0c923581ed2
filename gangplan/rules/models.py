"""Rules about jobs that register a model: the job that they follow, and unique versions."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

MODEL_ALONE = Rule(
    "model-alone",
    ERROR,
    "A job registers a model but follows no job that trains it.",
    why=(
        "Registering is a job of its own: its run is created when the training is complete, and where it fails, the "
        "training stays complete. In one run, a registry that does not answer would turn hours of training into a "
        "failed run."
    ),
    fix="Move model to a job with after: [JOB], whose command registers what JOB wrote.",
)

MODEL_TWICE = Rule(
    "model-twice",
    ERROR,
    "Two runs register the same version of a model.",
    why=(
        "A version names one result. If two are registered under it, registries keep the first, or the last, or "
        "the files of both, and nobody can say later which one was used."
    ),
    fix="Give one of them another version, and let it run on one cluster.",
)
