"""Rules about frameworks that need no launcher."""

from gangplan.rules.model import ERROR, Example, Rule

FRAMEWORK_VERSION = Rule(
    "framework-version",
    ERROR,
    "The cluster's Trainer does not know the framework.",
    why=(
        "Trainer tells the workers of jax and xgboost where to meet, from version 2.2 on. An older one drops "
        "the policy, and each worker waits for the others until the timeout."
    ),
    fix="Use a cluster with Trainer 2.2 or later, or framework: plain.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before='trainer: "2.1.0", kueue: "0.15.2"',
        after='trainer: "2.3.0", kueue: "0.19.2"',
        old='trainer: "2.3.0", kueue: "0.19.2"',
        changes=(("specs/nlp/filings.yaml", "image: openmpi\n", "image: openmpi\nframework: jax\n"),),
    ),
)

FRAMEWORK_ONE_RANK = Rule(
    "framework-one-rank",
    ERROR,
    "The framework starts one rank on each worker, and the spec asks for more.",
    why=(
        "jax and tensorflow use all GPUs of a worker from one process, xgboost one GPU from each. Ranks that "
        "nobody starts are waited for until the timeout."
    ),
    fix="Leave slots out; for xgboost, give each worker one GPU.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="framework: plain\nslots: 2\n",
        after="framework: plain\n",
    ),
)
