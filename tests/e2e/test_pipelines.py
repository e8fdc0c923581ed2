"""A run that follows another, on the real control plane: it is created when the other one is complete.

Pods are simulated, so the test runs what the container of the waiting pod would run, with its token and the
kubectl of the profile.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.e2e.test_schedules import Site
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/pipeline/input"
TEAM = "research"
RUN = Story(Plot.RUN, namespace=None, run=None)
Object = dict[str, Any]


@dataclass
class Chain(Site):
    """A lab with the example: features, then train, then evaluate."""

    def sync(self) -> None:
        """Render and apply the runs, as an engine does."""
        assert gangplan("render", "-C", self.root).code in (0, 1)
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((self.root / "rendered/lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = self.lab.client.apply_patiently(body, timeout=60)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

    def claims(self, bodies: list[Object]) -> None:
        """Create claims that their owners created before any policy of the cluster judged new ones."""
        assert gangplan("render", "-C", self.root).code in (0, 1)
        text = (self.root / f"rendered/lab/tenants/{TEAM}/tenant.yaml").read_text()
        self.lab.client.apply_all([body for body in load_objects(text) if body["kind"] == "Namespace"])
        self.lab.client.apply_all(bodies)

    def waiting(self, job: str) -> str:
        """Return the name of the Job that waits for the runs before a job's."""
        found = [
            path
            for path in (self.root / f"rendered/lab/runs/{TEAM}").glob(f"{job}-*.yaml")
            if "kind: Job\n" in path.read_text()
        ]
        bodies = [body for path in found for body in load_objects(path.read_text()) if body["kind"] == "Job"]
        return str(bodies[-1]["metadata"]["name"])

    def begin(self, job: str, folder: Path) -> subprocess.Popen[str]:
        """Start what the container of the waiting pod runs, with a second between two looks."""
        pod = self.pod_of(self.waiting(job))
        env = self.as_pod(pod, folder)
        (container,) = pod["spec"]["containers"]
        name = next(one["configMap"]["name"] for one in pod["spec"]["volumes"] if "configMap" in one)
        (folder / "run.yaml").write_text(self.lab.client.get("ConfigMap", name, TEAM)["data"]["run.yaml"])
        words = [one.replace("$$", "$") for one in container["command"]]
        args = [one.replace("/template/", f"{folder}/") for one in container["args"]]
        args[3] = "1"
        words[0] = str(shutil.which("sh"))
        return subprocess.Popen(
            [*words, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, job: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run what the container of the waiting pod runs to its end."""
        program = self.begin(job, folder)
        out, err = program.communicate(timeout=120)
        return subprocess.CompletedProcess([], program.returncode, out, err)

    def of_job(self, job: str) -> list[Object]:
        """Return the existing runs of a job."""
        return self.lab.client.list("TrainJob", TEAM, labels=f"gangplan.dev/job={job}")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    root = tmp_path_factory.mktemp("pipelines") / "jobs"
    shutil.copytree(EXAMPLE, root)
    workspace = load_workspace(root)
    spec = workspace.clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(RUN)
        found = Chain(lab, root)
        found.claims(world.claims(spec, [(TEAM, workspace.teams[TEAM].spec)]))
        found.sync()
        yield found


def test_a_run_is_created_when_the_one_before_it_is_complete(chain: Chain, tmp_path: Path) -> None:
    assert [len(chain.of_job(job)) for job in ("features", "train", "evaluate")] == [1, 0, 0]
    queued = chain.lab.client.list("Workload", TEAM)
    assert len(queued) == 1  # what does not exist yet holds no quota
    program = chain.begin("train", tmp_path / "pod")
    assert program.stdout is not None
    assert program.stdout.readline().startswith("waiting for run features-")
    assert chain.of_job("train") == []
    chain.lab.forget(RUN)
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0, err
    (before,) = chain.of_job("features")
    assert condition(before, "Complete") == "True"
    (run,) = chain.of_job("train")
    assert f"trainjob.trainer.kubeflow.org/{run['metadata']['name']} created" in out
    assert "ownerReferences" not in run["metadata"]
    name = run["metadata"]["name"]
    poll(
        lambda: condition(chain.lab.client.get("TrainJob", name, TEAM), "Complete") == "True",
        90,
        lambda: str(chain.lab.client.get("TrainJob", name, TEAM).get("status")),
    )


def test_another_sync_or_another_pod_creates_no_second_run(chain: Chain, tmp_path: Path) -> None:
    chain.sync()
    done = chain.finish("train", tmp_path / "pod")
    assert (done.returncode, len(chain.of_job("train"))) == (0, 1), done.stderr
    assert "was created before" in done.stdout


def test_a_run_waits_for_several_runs(chain: Chain, tmp_path: Path) -> None:
    done = chain.finish("evaluate", tmp_path / "pod")
    assert (done.returncode, len(chain.of_job("evaluate"))) == (0, 1), done.stderr


def test_a_registration_that_fails_leaves_the_runs_before_it_complete(chain: Chain, tmp_path: Path) -> None:
    (judged,) = (run["metadata"]["name"] for run in chain.of_job("evaluate"))
    poll(
        lambda: condition(chain.lab.client.get("TrainJob", judged, TEAM), "Complete") == "True",
        90,
        lambda: str(chain.lab.client.get("TrainJob", judged, TEAM).get("status")),
    )
    fails = Story(Plot.FAIL, namespace=TEAM, role="launcher")
    chain.lab.tell(fails)
    done = chain.finish("register", tmp_path / "pod")
    assert done.returncode == 0, done.stderr
    (run,) = chain.of_job("register")
    name = run["metadata"]["name"]
    poll(
        lambda: condition(chain.lab.client.get("TrainJob", name, TEAM), "Failed") == "True",
        90,
        lambda: str(chain.lab.client.get("TrainJob", name, TEAM).get("status")),
    )
    chain.lab.forget(fails)
    assert run["metadata"]["annotations"]["gangplan.dev/model"] == "research/filings:2026.1"
    runtime = chain.lab.client.get("TrainingRuntime", name, TEAM)
    assert "{'name': 'GANGPLAN_MODEL_VERSION', 'value': '2026.1'}" in str(runtime)
    assert condition(chain.lab.client.get("TrainJob", judged, TEAM), "Complete") == "True"
    (trained,) = chain.of_job("train")
    assert condition(trained, "Complete") == "True"


def test_a_failed_run_ends_the_chain(chain: Chain, tmp_path: Path) -> None:
    """Editing the first job gives another run of it; the next job is run again by its number."""
    chain.lab.tell(Story(Plot.FAIL, namespace=TEAM, role="launcher"))
    before = chain.waiting("train")
    for job, old, new in (("features", "features.py", "other.py"), ("train", "after:", "run: 2\nafter:")):
        path = chain.root / f"specs/{TEAM}/{job}.yaml"
        path.write_text(path.read_text().replace(old, new))
    for path in (chain.root / "rendered/lab/runs" / TEAM).glob("train-*.yaml"):
        path.unlink()  # so that only the next one is there
    chain.sync()
    assert chain.waiting("train") != before
    done = chain.finish("train", tmp_path / "pod")
    assert done.returncode == 75, done.stdout
    assert "is not created: run features-" in done.stderr
    assert len(chain.of_job("train")) == 1
