"""Rules about frameworks that need no launcher."""

from gangplan.rules.model import ERROR, Rule

FRAMEWORK_VERSION = Rule(
    "framework-version",
    ERROR,
    "The cluster's Trainer does not know the framework.",
    why=(
        "Trainer tells the workers of jax and xgboost where to meet, from version 2.2 on. An older one drops "
        "the policy, and each worker waits for the others until the timeout."
    ),
    fix="Use a cluster with Trainer 2.2 or later, or framework: plain.",
)

FRAMEWORK_ONE_RANK = Rule(
    "framework-one-rank",
    ERROR,
    "The framework starts one rank on each worker, and the spec asks for more.",
    why=(
        "jax and tensorflow use all GPUs of a worker from one process, xgboost one GPU per process. Until its "
        "timeout, the run waits for ranks that nothing starts."
    ),
    fix="Leave slots out; for xgboost, give each worker one GPU.",
)
