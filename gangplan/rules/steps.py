"""Rules about the steps of a run before its workers."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Deduplication, Rule

STEP_UNUSABLE = Rule(
    "step-unusable",
    ERROR,
    "The run cannot have this step.",
    why=(
        "Pods of a run are found by the names of its steps and roles, and Trainer finds workers, launcher and its own "
        "initializers by theirs. A scheduler that starts all pods of a run together never starts a step, because the "
        "workers exist only after it has succeeded."
    ),
    fix="Rename or remove the step.",
)

STEP_TIMEOUT = Rule(
    "step-timeout",
    ERROR,
    "The steps may take longer than the run has to get its workers ready.",
    why=(
        "If a run's pods are not all ready, or done, within podsReadyTimeout, Kueue requeues the run. It holds "
        "its quota and its GPUs from the first step on, and each time it comes back, its steps begin again."
    ),
    fix="Write a shorter timeout for the step, or do the slow part in a run of its own, before this one.",
)

FETCH_SOURCE = Rule(
    "fetch-source",
    ERROR,
    "It is not clear where a step should fetch from.",
    why=(
        "A connection of the team names the bucket: its address, its keys and what the run must reach are stated "
        "once, in team.yaml. A Hugging Face repository is written as hf://OWNER/NAME, or hf://datasets/OWNER/NAME."
    ),
    fix="Correct the name, or declare the connection in team.yaml.",
)

FETCH_IMAGE = Rule(
    "fetch-image",
    ERROR,
    "The image is not known to be able to fetch.",
    why=(
        "A step fetches with Python: huggingface_hub for Hugging Face, boto3 for S3. Without the package, the run would "
        "get its GPUs and fail at once."
    ),
    fix="Choose an image whose entry in images/catalog.yaml has fetches, or add it to one that has the package.",
)

FETCH_FOLDER = Rule(
    "fetch-folder",
    ERROR,
    "The workers would not see what a step fetches.",
    why=(
        "A step has a pod of its own. What it writes outside a claim is lost with that pod; a claim that only one node can "
        "mount does not reach the workers; and nothing can be written to a read-only mount."
    ),
    fix="Fetch to a folder of a claim with ReadWriteMany that data mounts.",
)

PATCH_MEETS_STEP = Rule(
    "patch-meets-step",
    WARNING,
    "A patch names a job of the run by its number, and steps have moved the numbers.",
    why=(
        "JSON6902 finds an entry of a list by its number alone. Steps come before the workers in replicatedJobs, "
        "because JobSet wants a job after those that it depends on: what is replicatedJobs/0 in other runs is "
        "the first step here, and the workers do not get what the patch was written for."
    ),
    fix=(
        "Aim the patch at runs without steps (labelSelector: gangplan.dev/job notin (NAME)), and write another for "
        "the job with steps, with the numbers that it has in rendered/. A patch that tests the name of its entry "
        "stops instead: {op: test, path: .../replicatedJobs/0/name, value: node}."
    ),
    echo=Deduplication.PATCH,
)
