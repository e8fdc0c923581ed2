"""The MPI jobs of the sample cluster as MPIJobs: admitted as planned, on all their workers, and complete."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
NAME, ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
PATIENCE = 90.0
FOLDERS = ("specs", "overlays", "images", "policies", "jobtemplates")


def copy_with_mpijobs(root: Path, cluster: str, version: str) -> list[PlannedRun]:
    """Copy the sample, give a cluster the MPI operator next to Trainer, and let each MPI job choose that."""
    for folder in FOLDERS:
        shutil.copytree(story.ROOT / folder, root / folder)
    file = root / "overlays" / cluster / "cluster.yaml"
    text = file.read_text()
    assert "mpiOperator" not in text
    file.write_text(text.replace("versions: {", f'versions: {{mpiOperator: "{version}", '))
    jobs = [run.unit.job for run in preview_render(Request(root, (cluster,), engine="serial")).runs]
    for source in {job.source for job in jobs if job.image.mpi is not None}:
        with (root / source).open("a") as spec:
            spec.write("backend: mpijob\n")
    result = preview_render(Request(root, (cluster,), engine="serial"))
    assert not result.has_errors, result.findings
    return [run for run in result.runs if run.unit.job.image.mpi is not None]


def test_each_mpi_job_of_the_sample_completes(tmp_path: Path) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    name = story.cluster_of(profile.trainer, profile.kueue)
    if not profile.mpi_operator or name is None:
        pytest.skip(f"profile {profile.name} has no MPI operator, or the sample no such cluster")
    runs = copy_with_mpijobs(tmp_path, name, profile.mpi_operator)
    result = preview_render(Request(tmp_path, (name,), engine="serial"))
    workspace = load_workspace(tmp_path)
    standing = [body for path in world.before_runs(result.texts) for body in load_objects(result.texts[path])]
    with Lab(profile) as lab:
        told = story.Chapter(lab, name, workspace.clusters[name].spec, standing, [])
        story.prepare(told, workspace)
        for run in runs:
            play(lab, run, result.texts[run.path])
    assert {run.unit.job.image.mpi.family for run in runs if run.unit.job.image.mpi} == {
        "OpenMPI",
        "IntelMPI",
        "MPICH",
    }


def play(lab: Lab, run: PlannedRun, text: str) -> None:
    """Start a run, count its pods while all of them run, and let it complete."""
    client, home = lab.client, run.unit.job.namespace
    hold = Story(Plot.RUN, namespace=home)
    lab.tell(hold)
    for body in load_objects(text):
        assert client.apply_patiently(body).warnings == ()
    pods: list[story.Object] = []

    def are_ready() -> bool:
        pods[:] = client.list("Pod", home, labels=f"{NAME}={run.name}")
        return len(pods) == run.unit.layout.pods and all(condition(pod, "Ready") == "True" for pod in pods)

    poll(are_ready, PATIENCE, lambda: f"{run.name}: {len(pods)} of {run.unit.layout.pods} pods are ready")
    roles = [pod["metadata"]["labels"][ROLE] for pod in pods]
    assert (roles.count("worker"), roles.count("launcher")) == (run.unit.layout.node_pods, 1)
    workload = next(
        one
        for one in client.list("Workload", home)
        if one["metadata"]["name"].startswith(f"mpijob-{run.name}")
    )
    sets = workload["status"]["admission"]["podSetAssignments"]
    assert run.verdict is not None
    planned = {role: dict(flavors) for role, flavors in run.verdict.assignment.items()}
    assert {one["name"]: one["flavors"] for one in sets} == planned
    lab.forget(hold)
    client.wait(
        "MPIJob", run.name, home, until=lambda one: condition(one, "Succeeded") == "True", timeout=PATIENCE
    )
    client.delete("MPIJob", run.name, home, foreground=True)
    client.wait_gone("MPIJob", run.name, home, timeout=PATIENCE)
