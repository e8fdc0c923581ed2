"""How long a run's name may be, and the name itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gangplan.model.job import HASH_LENGTH as HASH_LENGTH
from gangplan.model.job import PLACEHOLDER as PLACEHOLDER
from gangplan.objects import Body, dump
from gangplan.plan.layout import Layout

# The kinds whose specs must not change while a run runs.
HASHED = ("TrainingRuntime", "TrainJob")

# JobSet refuses a pod name above 63 characters: <run>-<replicated job>-<job>-<pod>-<5 random>
# (jobset webhook, v0.10 to v0.12: the last pod of the last job must be a DNS-1035 label).
_LONGEST = 63


def name_budget(layout: Layout, uses_mpi: bool) -> int:
    """The longest run name that yields legal pod names; 44 for MPI, 46 to 48 for torch."""
    longest = 0
    if layout.launcher_pods:
        longest = len("-launcher-0-0-abcde")
    if layout.node_pods:
        longest = max(longest, len(f"-node-0-{layout.node_pods - 1}-abcde"))
    return _LONGEST - longest


def run_name(job: str, digest: str) -> str:
    """<job>-<first eight hexadecimal digits of the content's hash>."""
    return f"{job}-{digest[:HASH_LENGTH]}"


def content_hash(bodies: Sequence[Body], run: int) -> str:
    """The hash in a run's name: everything that must not change while it runs, and the run number.

    That is the whole runtime and what Trainer makes immutable in the TrainJob (2.2 and later: runtimeRef,
    trainer, activeDeadlineSeconds). Metadata and network policies may change without a new run.
    """
    digest = hashlib.sha256(f"run {run}\n".encode())
    for body in bodies:
        if body["kind"] in HASHED:
            digest.update(dump({"kind": body["kind"], "spec": body["spec"]}).encode())
    return digest.hexdigest()
