"""The decision about one command, without the rest of the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.plan.command import FinalCommand, build_final_command
from tests import workspaces

_JOBS: dict[str, Job] = {}


def job_of(root: Path, image: str) -> Job:
    """Return a job of 4 workers with 2 slots and 2 GPUs on an image of the small workspace."""
    if image not in _JOBS:
        more = "mpi: {licenseAcknowledged: true}\n" if image == "intel" else ""
        spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + more
        workspaces.write(root, {"specs/nlp/filings.yaml": spec})
        _JOBS[image] = preview_render(Request(root, engine="serial")).runs[0].unit.job
    return _JOBS[image]


def decided(root: Path, image: str, words: Sequence[str], **other: Any) -> FinalCommand:
    """Return the final command for these words; `other` are fields of the job."""
    return build_final_command(dataclasses.replace(job_of(root, image), command=tuple(words), **other))


def problems(root: Path, image: str, words: Sequence[str], **other: Any) -> tuple[Problem, ...]:
    """Return the problems of a command."""
    return decided(root, image, words, **other).problems
