"""Workspaces with jobs that come after others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.schedules import worlds
from tests.workspaces import SPEC, gangplan, write

PREPARE = SPEC.replace("train.py", "prepare.py").replace("workers: 4", "workers: 2")
TRAIN = SPEC + "after: [prepare]\n"
# A second cluster of the team.
US = worlds.CLUSTER.replace("region: eu-central", "region: us-east")
CHAIN = {"prepare": PREPARE, "filings": TRAIN}


def stock(root: Path, jobs: Mapping[str, str] = CHAIN, **files: str) -> None:
    """Write a workspace whose cluster creates runs, with these jobs of team nlp."""
    worlds.stock(root, jobs.get("filings", SPEC), **files)
    write(root, {f"specs/nlp/{name}.yaml": text for name, text in jobs.items()})


def runs(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Render the workspace, and return the objects of each job's run, by the job."""
    found: dict[str, list[dict[str, Any]]] = {}
    for body in worlds.rendered(root):
        found.setdefault(body["metadata"]["labels"]["gangplan.dev/job"], []).append(body)
    return found


def name_of(bodies: list[dict[str, Any]]) -> str:
    """Return the name of a run, which is that of its runtime."""
    return str(worlds.one(bodies, "TrainingRuntime")["metadata"]["name"])


def waits_for(bodies: list[dict[str, Any]]) -> list[str]:
    """Return the runs that the Job of a run waits for."""
    (container,) = worlds.one(bodies, "Job")["spec"]["template"]["spec"]["containers"]
    return list(container["args"][4:])


def findings(root: Path) -> list[tuple[str, str]]:
    """Return rule and message of all that validate finds."""
    return [(one.rule, one.message) for one in gangplan("validate", "-C", root).findings]
