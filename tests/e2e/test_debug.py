"""The pods of a failed run stay: runs with `debug`, the real controllers of a profile, simulated pods."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests import workspaces
from tests.e2e.test_disruptions import IMAGES, JOBSET, PATIENCE, ROLE, SPEC, Played, Site
from tests.e2e.test_disruptions import site as disrupted
from tests.lab.client import condition, poll
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
NUMBERS = count(1)
LATER = "2999-12-31"
site = disrupted


@pytest.fixture(scope="module", autouse=True)
def dev(site: Site) -> None:
    """Mark the cluster as not for production; nothing that is rendered for it changes."""
    path = site.root / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text() + "environment: dev\n")


def start(site: Site, image: str, lines: str = "") -> Played:
    """Render and apply a run that keeps its pods; they run until a test ends them."""
    job = f"kept-{image}-{next(NUMBERS)}"
    until = f'timeout: 1h\ndebug: {{until: "{LATER}"}}\n'
    spec = SPEC.replace("openmpi", IMAGES[image]) + until + lines
    workspaces.write(site.root, {f"specs/nlp/{job}.yaml": spec})
    result = preview_render(Request(site.root))
    assert not result.has_errors, result.findings
    run = next(run for run in result.runs if run.name.startswith(f"{job}-"))
    namespace = run.unit.job.namespace
    site.lab.tell(Story(Plot.RUN, namespace=namespace, run=run.name))
    for body in load_objects(result.texts[run.path]):
        site.lab.client.apply_patiently(body, timeout=60)
    played = Played(site.lab, namespace, run.name, run.unit.layout.pods)
    played.until_ready(0)
    return played


def fail(run: Played, pod: Object, code: int = 1, reason: str = "Error", times: int = 1) -> None:
    """Let a container fail and be restarted in its pod, as the kubelet reports it."""
    last = {"terminated": {"exitCode": code, "reason": reason}}
    (own,) = run.lab.client.get("Pod", pod["metadata"]["name"], run.namespace)["status"]["containerStatuses"]
    change = {"status": {"containerStatuses": [{**own, "restartCount": times, "lastState": last}]}}
    run.lab.client.patch("Pod", pod["metadata"]["name"], change, run.namespace, "status")


def is_active(run: Played) -> bool:
    """Return whether all pods of a run exist, and neither it nor a Job of it has failed."""
    train_job = run.lab.client.get("TrainJob", run.name, run.namespace)
    return condition(train_job, "Failed") != "True" and len(run.pods(0)) == run.size and not run.failures()


def settle(run: Played) -> None:
    """Make the controllers reconcile: a changed Job is read again."""
    for job in run.lab.client.list("Job", run.namespace, labels=f"{JOBSET}={run.name}"):
        change = {"metadata": {"annotations": {"example.com/look": str(next(NUMBERS))}}}
        run.lab.client.patch("Job", job["metadata"]["name"], change, run.namespace)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        assert is_active(run), run.story()
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("image", "role", "pods", "lines"),
    [
        ("mpi", "launcher", 1, ""),
        ("mpi", "node", 2, ""),
        ("mpi", "node", 1, "launcher: {runsRanks: true}\n"),
        ("torch", "node", 2, ""),
    ],
)
def test_failed_pods_stay_until_their_time_is_up(
    image: str, role: str, pods: int, lines: str, site: Site
) -> None:
    run = start(site, image, lines)
    names = {pod["metadata"]["name"] for pod in run.pods(0)}
    assert len(run.pods(0, role)) == pods
    for pod in run.pods(0, role):
        fail(run, pod, 137, "OOMKilled")
    settle(run)
    # All are as they were, and what a person looks at says why: `kubectl describe`, `kubectl get pods`.
    found = run.pods(0)
    assert {pod["metadata"]["name"] for pod in found} == names
    (first, *_) = [pod for pod in found if pod["metadata"]["labels"][ROLE] == role]
    (status,) = first["status"]["containerStatuses"]
    assert (status["restartCount"], status["lastState"]["terminated"]["reason"]) == (1, "OOMKilled")
    shown = site.lab.kubectl("describe", "pod", "-n", run.namespace, first["metadata"]["name"])
    assert "Last State:     Terminated" in shown
    assert "Exit Code:    137" in shown
    # The time is up: a container that waited ends, and is restarted once more.
    fail(run, run.pods(0, role)[0], times=2)
    assert run.until_failed() == "FailedJobs"
    assert run.failures()[role][0] == "BackoffLimitExceeded"
    poll(lambda: not run.pods(0), PATIENCE, run.story)


def test_a_run_with_debug_that_succeeds_completes(site: Site) -> None:
    run = start(site, "mpi")
    (launcher,) = run.pods(0, "launcher")
    site.lab.forget(Story(Plot.RUN, namespace=run.namespace, run=run.name))
    is_over = lambda item: condition(item, "Complete") == "True"  # noqa: E731
    site.lab.client.wait("TrainJob", run.name, run.namespace, until=is_over, timeout=PATIENCE)
    ended = site.lab.client.get("Pod", launcher["metadata"]["name"], run.namespace)
    assert ended["status"]["phase"] == "Succeeded"


def test_a_failed_run_without_debug_loses_its_pods_at_once(site: Site) -> None:
    run = site.start("mpi", retries=0)
    run.end(run.pods(0, "launcher")[0], 1)
    run.until_failed()
    poll(lambda: not run.pods(0), PATIENCE, run.story)
