"""A small workspace on a cluster without Trainer, with MPIJobs as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import plain
from tests.workspaces import CATALOG, CLUSTER, STOCK, gangplan, write

Body = dict[str, Any]
BOTH = 'trainer: "2.3.0", kueue: "0.19.2"'
OPERATOR = CLUSTER.replace(BOTH, 'kueue: "0.19.2", mpiOperator: "0.8.2"')
MIXED = CLUSTER.replace(BOTH, f'{BOTH}, mpiOperator: "0.8.2"')
FAMILIES = {"openmpi": "OpenMPI", "openmpi4": "OpenMPI", "intel": "Intel", "mpich": "MPICH"}
LICENCE = {"intel": "mpi: {licenseAcknowledged: true}\n"}


def spec(image: str = "openmpi", more: str = "") -> str:
    """Return a job of three workers with two slots each, on CPUs."""
    return (
        "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
        f"image: {image}\ncommand: [python, train.py]\nworkers: 3\nslots: 2\n{LICENCE.get(image, '')}{more}"
    )


def workspace(root: Path, text: str, cluster: str = OPERATOR, **files: str) -> Path:
    """Write the small workspace with one job."""
    given = {"overlays/lab/cluster.yaml": cluster, "images/catalog.yaml": CATALOG}
    return write(root, {**STOCK, **given, "specs/nlp/filings.yaml": text, **files})


def run(root: Path) -> list[Body]:
    """Render, and return the objects of its only run."""
    outcome = gangplan("render", "-C", root, "--engine", "serial")
    assert outcome.code == 0, outcome.err
    (file,) = sorted(root.glob("rendered/lab/runs/nlp/*-*.yaml"))
    return [body for body in plain.load_all(file.read_text(encoding="utf-8")) if body]


def mpi_job(root: Path) -> Body:
    """Return the MPIJob of its only run."""
    return next(body for body in run(root) if body["kind"] == "MPIJob")


def pods(job: Body) -> dict[str, Body]:
    """Return the specs of pods, by role."""
    return {name: one["template"]["spec"] for name, one in job["spec"]["mpiReplicaSpecs"].items()}
