"""Rules about the preflight, which checks the workers before training starts."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

PREFLIGHT_MISSING = Rule(
    "preflight-missing",
    ERROR,
    "The image has no preflight program.",
    why=(
        "The preflight runs in the run's own image, under its own mpirun: only that shows what the training will meet. "
        "The catalog says where in the image its program is."
    ),
    fix="Build the image with images/preflight of gangplan's repository, write preflight: PATH into its entry in images/catalog.yaml, or remove preflight.",
)

PREFLIGHT_LAUNCHER = Rule(
    "preflight-launcher",
    ERROR,
    "The preflight needs an image with MPI.",
    why=(
        "mpirun starts the preflight on every rank before it starts the training. Workers of torch and of programs that "
        "find each other by themselves have no mpirun that could."
    ),
    fix="Remove preflight from the spec, or use an image with MPI.",
)
