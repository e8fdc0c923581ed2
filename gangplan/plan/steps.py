"""The program that a step of a run starts: its command, or one that fetches something once."""

from __future__ import annotations

from gangplan.model.job import ResolvedRole
from gangplan.template import render_script


def build_step_argv(step: ResolvedRole) -> tuple[str, ...]:
    """Return the words that a step's pod runs.

    Each kind of source has its program, for the image's Python.
    """
    if step.step is None or not step.step.source:
        return step.argv
    kind = "hub" if step.step.source.startswith("hf://") else "bucket"
    program = render_script("launch/fetch.py.j2", {"kind": kind}).rstrip("\n") + "\n"
    return ("python3", "-c", program, step.step.source, step.step.to)
