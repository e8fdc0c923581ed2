"""Which failures use up a retry: rendered runs, the real controllers of a profile, simulated pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.exits import FINAL_CODES, LAUNCH_EXITS
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e import world
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
JOBSET = "jobset.sigs.k8s.io/jobset-name"
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
PATIENCE = 60.0
NUMBERS = count(1)
SPEC = workspaces.SPEC.replace("workers: 4", "workers: 2").replace("gpus: 2\n", "").replace("32Gi", "8Gi")
IMAGES = {"mpi": "openmpi", "torch": "pytorch"}


@dataclass(frozen=True)
class Site:
    """A lab with one team's queue, and the workspace of both."""

    lab: Lab
    root: Path

    def start(self, image: str, retries: int) -> Played:
        """Render and apply a run; its pods run until a test ends them."""
        job = f"{image}-{next(NUMBERS)}"
        spec = SPEC.replace("openmpi", IMAGES[image]) + f"timeout: 1h\nretries: {retries}\n"
        workspaces.write(self.root, {f"specs/nlp/{job}.yaml": spec})
        result = preview_render(Request(self.root))
        assert not result.has_errors, result.findings
        run = next(run for run in result.runs if run.name.startswith(f"{job}-"))
        namespace = run.unit.job.namespace
        self.lab.tell(Story(Plot.RUN, namespace=namespace, run=run.name))
        for body in load_objects(result.texts[run.path]):
            self.lab.client.apply_patiently(body, timeout=60)
        played = Played(self.lab, namespace, run.name, run.unit.layout.pods)
        played.until_ready(0)
        return played

    def drift(self, image: str) -> dict[str, list[str]]:
        """Return how the server's objects differ from the rendered ones after a run has started, by kind."""
        run = self.start(image, retries=1)
        texts = preview_render(Request(self.root)).texts
        bodies = load_objects(
            next(text for path, text in texts.items() if path.endswith(f"/{run.name}.yaml"))
        )
        client = self.lab.client
        return {
            body["kind"]: drift(body, client.get(body["kind"], body["metadata"]["name"], run.namespace))
            for body in bodies
        }


@dataclass(frozen=True)
class Played:
    """A run in the lab."""

    lab: Lab
    namespace: str
    name: str
    size: int

    def pods(self, attempt: int, role: str = "") -> list[Object]:
        """Return the ready pods of an attempt."""
        labels = f"{JOBSET}={self.name},{ATTEMPT}={attempt}" + (f",{ROLE}={role}" if role else "")
        found = self.lab.client.list("Pod", self.namespace, labels=labels)
        return [pod for pod in found if condition(pod, "Ready") == "True"]

    def until_ready(self, attempt: int) -> None:
        """Wait until all pods of an attempt are ready."""
        poll(lambda: len(self.pods(attempt)) == self.size, PATIENCE, self.story)

    def end(self, pod: Object, code: int, *, is_disrupted: bool = False) -> None:
        """Let a pod end with an exit code, as the kubelet reports it."""
        terminated = {"exitCode": code, "reason": "Error"}
        statuses = [
            {**one, "ready": False, "started": False, "state": {"terminated": terminated}}
            for one in pod["status"]["containerStatuses"]
        ]
        conditions = [one for one in pod["status"]["conditions"] if one["type"] != "Ready"]
        if is_disrupted:
            conditions.append(
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            )
        change = {"status": {"phase": "Failed", "containerStatuses": statuses, "conditions": conditions}}
        self.lab.client.patch("Pod", pod["metadata"]["name"], change, self.namespace, "status")

    def restarts(self) -> tuple[int, int]:
        """Return all restarts of the run, and those that count."""
        status = self.lab.client.get("JobSet", self.name, self.namespace).get("status", {})
        return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)

    def until_failed(self) -> str:
        """Wait until the run has failed, and return the reason of its JobSet."""
        is_over = lambda item: condition(item, "Failed") == "True"  # noqa: E731
        self.lab.client.wait("TrainJob", self.name, self.namespace, until=is_over, timeout=PATIENCE)
        jobset = self.lab.client.get("JobSet", self.name, self.namespace)
        return next(str(one["reason"]) for one in jobset["status"]["conditions"] if one["type"] == "Failed")

    def failures(self) -> dict[str, tuple[str, str]]:
        """Return reason and message of each Job that has failed; all its pods have ended by then."""
        return {
            job["metadata"]["labels"][ROLE]: (one["reason"], one["message"])
            for job in self.lab.client.list("Job", self.namespace, labels=f"{JOBSET}={self.name}")
            for one in job.get("status", {}).get("conditions", ())
            if one["type"] == "Failed"
        }

    def story(self) -> str:
        """Describe the run's JobSet and failures, for messages of tests."""
        jobset = self.lab.client.find("JobSet", self.name, self.namespace) or {}
        return f"{jobset.get('status')} {self.failures()}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a lab of its own, because the cluster-wide objects must not be shared with other tests."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    fixtures.require(profile)
    root = workspaces.stock(tmp_path_factory.mktemp("site") / "workspace")
    stated = f'{{kubernetes: "{profile.kubernetes}", trainer: "{profile.trainer}", kueue: "{profile.kueue}"}}'
    lines = workspaces.CLUSTER.splitlines()
    cluster = [f"versions: {stated}" if line.startswith("versions:") else line for line in lines]
    workspaces.write(root, {"overlays/lab/cluster.yaml": "\n".join(cluster) + "\n"})
    with Lab(profile) as running:
        workspace = load_workspace(root)
        running.add_nodes(world.nodes(workspace.clusters["lab"].spec))
        texts = preview_render(Request(root)).texts
        for path in world.before_runs(texts):
            for body in load_objects(texts[path]):
                running.client.apply_patiently(body, timeout=60)
        yield Site(running, root)


@pytest.fixture
def forgives(site: Site) -> bool:
    """Return whether the profile's Trainer gives the whole run a deadline."""
    return site.lab.profile.trainer >= "2.2"


@pytest.mark.parametrize(("image", "role"), [("mpi", "node"), ("mpi", "launcher"), ("torch", "node")])
def test_a_disrupted_pod_uses_up_no_retry(image: str, role: str, site: Site, forgives: bool) -> None:
    run = site.start(image, retries=1)
    for attempt in (0, 1, 2):
        pod = run.pods(attempt, role)[0]
        run.end(pod, 143, is_disrupted=True)
        if not forgives and attempt == 1:
            assert run.until_failed() == "ReachedMaxRestarts"
            return
        run.until_ready(attempt + 1)
        assert run.restarts() == (attempt + 1, 0 if forgives else attempt + 1)
    # The one retry is still left, and no more than one.
    run.end(run.pods(3, role)[0], 1)
    run.until_ready(4)
    assert run.restarts() == (4, 1)
    run.end(run.pods(4, role)[0], 1)
    assert run.until_failed() == "ReachedMaxRestarts"


@pytest.mark.parametrize("code", FINAL_CODES)
def test_failures_that_no_retry_can_fix_are_final(code: int, site: Site) -> None:
    run = site.start("mpi", retries=3)
    run.end(run.pods(0, "launcher")[0], code)
    assert run.until_failed() == "FailJobSetFailurePolicyAction"
    assert run.restarts() == (0, 0)
    reason, message = run.failures()["launcher"]
    assert reason == "PodFailurePolicy"
    assert f"failed with exit code {code} matching FailJob rule at index" in message


def test_failures_that_a_retry_may_fix_are_retried(site: Site) -> None:
    run = site.start("mpi", retries=1)
    run.end(run.pods(0, "launcher")[0], LAUNCH_EXITS["unreached"].code)
    run.until_ready(1)
    assert run.restarts() == (1, 1)


def test_a_launcher_that_fails_first_uses_up_a_retry(site: Site) -> None:
    """Show why launchers wait before they fail: JobSet decides by what has failed when it looks."""
    run = site.start("mpi", retries=1)
    run.end(run.pods(0, "launcher")[0], 1)
    run.until_ready(1)
    assert run.restarts() == (1, 1)


def test_a_launcher_that_fails_with_a_disrupted_worker_uses_up_no_retry(site: Site, forgives: bool) -> None:
    """Both have failed when JobSet looks: its rules apply in their order, whichever Job failed first."""
    if not forgives:
        pytest.skip("nothing is forgiven here")
    run = site.start("mpi", retries=1)
    launcher, worker = run.pods(0, "launcher")[0], run.pods(0, "node")[0]
    site.lab.halt("jobset")
    try:
        run.end(launcher, 1)
        poll(lambda: "launcher" in run.failures(), PATIENCE, run.story)
        run.end(worker, 143, is_disrupted=True)
        poll(lambda: "node" in run.failures(), PATIENCE, run.story)
    finally:
        site.lab.resume("jobset")
    run.until_ready(1)
    assert run.restarts() == (1, 0)


def test_a_disrupted_job_fails_with_the_message_that_the_rules_match(site: Site, forgives: bool) -> None:
    """The rules of the JobSet search for this message."""
    if not forgives:
        pytest.skip("nothing is forgiven here")
    run = site.start("mpi", retries=1)
    pod = run.pods(0, "node")[0]
    site.lab.halt("jobset")
    try:
        run.end(pod, 143, is_disrupted=True)
        poll(lambda: "node" in run.failures(), PATIENCE, run.story)
        name = f"{run.namespace}/{pod['metadata']['name']}"
        message = f"Pod {name} has condition DisruptionTarget matching FailJob rule at index 0"
        assert run.failures()["node"] == ("PodFailurePolicy", message)
    finally:
        site.lab.resume("jobset")
    run.until_ready(1)


def test_a_drained_run_without_retries_fails(site: Site) -> None:
    run = site.start("mpi", retries=0)
    run.end(run.pods(0, "node")[0], 143, is_disrupted=True)
    assert run.until_failed() == "FailedJobs"
    assert run.restarts() == (0, 0)


@pytest.mark.parametrize("image", IMAGES)
def test_a_preemption_by_kueue_uses_up_no_retry(image: str, site: Site) -> None:
    """Kueue suspends the run: its pods are deleted, and there are no restarts and no failures."""
    run = site.start(image, retries=1)
    (name,) = [
        item["metadata"]["name"]
        for item in site.lab.client.list("Workload", run.namespace)
        if item["metadata"]["name"].startswith(f"trainjob-{run.name}")
    ]
    site.lab.client.patch("Workload", name, {"spec": {"active": False}}, run.namespace)
    poll(lambda: not run.pods(0), PATIENCE, run.story)
    site.lab.client.patch("Workload", name, {"spec": {"active": True}}, run.namespace)
    run.until_ready(0)
    assert run.restarts() == (0, 0)
    assert not run.failures()


@pytest.mark.parametrize("image", IMAGES)
def test_failure_rules_do_not_drift(image: str, site: Site) -> None:
    """A default of the API server would keep a run out of sync forever."""
    found = site.drift(image)
    assert set(found) >= {"TrainJob", "TrainingRuntime"}
    assert not any(found.values()), found
