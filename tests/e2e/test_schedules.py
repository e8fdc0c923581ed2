"""Scheduled runs: the real controllers and API server, and the script of the actual pods.

Pods are simulated, so the test runs what their containers would run, with the token of the pod and the
kubectl of the profile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/schedule/input"
TEAM, JOB = "research", "weekly"
FOLLOWER = "score"
FOLLOWS = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, score.py]
workers: 2
cpu: 1
memory: 2Gi
timeout: 1m
after: [weekly]
"""
ACCOUNT = "gangplan-scheduler"
Object = dict[str, Any]


@dataclass
class Site:
    """A lab with the example, whose weekly job starts each minute."""

    lab: Lab
    root: Path

    def runs(self) -> list[Object]:
        """Return the dated runs, by name."""
        found = self.lab.client.list("TrainJob", TEAM, labels=f"gangplan.dev/schedule={JOB}")
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def pod_of(self, job: str) -> Object:
        """Return the pod of a Job, once it exists."""
        found: list[Object] = []

        def is_there() -> bool:
            found[:] = self.lab.client.list("Pod", TEAM, labels=f"batch.kubernetes.io/job-name={job}")
            return bool(found)

        poll(is_there, 60, lambda: f"no pod of {job}")
        return found[0]

    def token_of(self, pod: Object) -> str:
        """Return a token for the pod, as the kubelet requests it."""
        bound = {"apiVersion": "v1", "kind": "Pod"}
        bound |= {name: pod["metadata"][name] for name in ("name", "uid")}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        path = f"/api/v1/namespaces/{TEAM}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
        made = self.lab.client.request("POST", path, {**body, "spec": {"boundObjectRef": bound}})
        return str(made.object["status"]["token"])

    def as_pod(self, pod: Object, folder: Path) -> dict[str, str]:
        """Return the environment of a container that calls the API server: kubectl, the token, the
        namespace."""
        folder.mkdir(exist_ok=True)
        if not (folder / "kubectl").exists():
            (folder / "kubectl").symlink_to(self.lab.site.executable("kubernetes", "kubectl"))
        server = {"server": self.lab.url, "certificate-authority": str(self.lab.site.identity.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": server}],
            "users": [{"name": "pod", "user": {"token": self.token_of(pod)}}],
            "contexts": [{"name": "it", "context": {"cluster": "lab", "user": "pod", "namespace": TEAM}}],
            "current-context": "it",
        }
        (folder / "config").write_text(json.dumps(config))
        path = f"{folder}:{os.environ['PATH']}"
        return {"PATH": path, "KUBECONFIG": str(folder / "config"), "HOME": str(folder)}

    def play(self, job: str, folder: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
        """Run what the container of a Job's pod runs, to its end."""
        program = self.begin(job, folder, shell)
        out, err = program.communicate()
        return subprocess.CompletedProcess(program.args, program.returncode, out, err)

    def begin(self, job: str, folder: Path, shell: str = "sh") -> subprocess.Popen[str]:
        """Start what the container of a Job's pod runs."""
        pod = self.pod_of(job)
        env = self.as_pod(pod, folder)
        (container,) = pod["spec"]["containers"]
        name = next(one["configMap"]["name"] for one in pod["spec"]["volumes"] if "configMap" in one)
        data = self.lab.client.get("ConfigMap", name, TEAM)["data"]
        for key, text in data.items():
            (folder / key).write_text(text)
        command = [one.replace("$$", "$") for one in container["command"]]
        label = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        args = [one.replace("$(JOB)", label).replace("/schedule/", f"{folder}/") for one in container["args"]]
        command[0] = str(shutil.which(shell))
        pipe = subprocess.PIPE
        return subprocess.Popen([*command, *args], env=env, stdout=pipe, stderr=pipe, text=True)

    def start(self, minute: int, job: str = JOB) -> str:
        """Create a Job of the CronJob, as the controller does for a minute since 1970."""
        name = f"{job}-{minute}"
        self.lab.kubectl("create", "job", "-n", TEAM, f"--from=cronjob/{job}", name)
        return name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    root = tmp_path_factory.mktemp("schedules") / "jobs"
    shutil.copytree(EXAMPLE, root)
    spec = root / f"specs/{TEAM}/{JOB}.yaml"
    text = spec.read_text().replace('"0 22 * * SUN"', '"* * * * *"').replace("2h", "1h")
    spec.write_text(text.replace("timeout: 24h", "timeout: 1m"))
    (root / f"specs/{TEAM}/{FOLLOWER}.yaml").write_text(FOLLOWS)
    rendered = gangplan("render", "-C", root)
    assert rendered.code == 0, rendered.err
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(load_workspace(root).clusters["lab"].spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((root / "rendered/lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    if body["kind"] == "CronJob":  # the test starts the first runs itself
                        body = {**body, "spec": {**body["spec"], "suspend": True}}
                    answer = lab.client.apply_patiently(body, timeout=60)
                    assert [*answer.warnings, *drift(body, answer.object)] == []
        yield Site(lab, root)


def minute_of(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60


def test_a_start_creates_a_run_that_kueue_admits(site: Site, tmp_path: Path) -> None:
    done = site.play(site.start(minute_of("2026-01-15 21:00")), tmp_path / "pod")
    assert done.returncode == 0, done.stderr
    (run,) = site.runs()
    name = run["metadata"]["name"]
    assert name == "weekly-20260115-2100"
    assert "ownerReferences" not in run["metadata"]
    poll(
        lambda: condition(site.lab.client.get("TrainJob", name, TEAM), "Suspended") == "False",
        60,
        lambda: str(site.lab.client.get("TrainJob", name, TEAM).get("status")),
    )
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    poll(lambda: len(site.lab.client.list("Pod", TEAM, labels=selector)) == 5, 60, lambda: "no pods")
    (policy,) = (
        one
        for one in site.lab.client.list("NetworkPolicy", TEAM)
        if (one["metadata"].get("labels") or {}).get("gangplan.dev/job") == JOB
    )
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    for pod in site.lab.client.list("Pod", TEAM, labels=selector):
        assert chosen.items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["labels"]["gangplan.dev/cost-centre"] == "1007"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_forbid_skips_a_start_while_a_run_trains(shell: str, site: Site, tmp_path: Path) -> None:
    assert len(site.runs()) == 1
    minute = minute_of("2026-01-15 21:01") + (shell == "bash")
    done = site.play(site.start(minute), tmp_path / "pod", shell)
    assert done.returncode == 75
    assert "start skipped: run weekly-20260115-2100 of schedule weekly" in done.stderr
    assert len(site.runs()) == 1


def test_a_repeated_start_creates_no_second_run(site: Site, tmp_path: Path) -> None:
    done = site.play(f"{JOB}-{minute_of('2026-01-15 21:00')}", tmp_path / "pod")
    assert done.returncode == 0
    assert "was created before" in done.stdout
    assert len(site.runs()) == 1


def test_the_account_may_only_create_and_read_runs(site: Site, tmp_path: Path) -> None:
    env = site.as_pod(site.pod_of(f"{JOB}-{minute_of('2026-01-15 21:00')}"), tmp_path / "pod")

    def kubectl(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(tmp_path / "pod/kubectl"), *words]
        return subprocess.run(command, env=env, input=text, capture_output=True, text=True, check=False)

    listed = kubectl("auth", "can-i", "--list", "--no-headers")
    rows = [line.split() for line in listed.stdout.splitlines()]
    ours = {row[0]: " ".join(row[3:]) for row in rows if row and not row[0].startswith(("[", "self"))}
    assert ours == {"trainjobs.trainer.kubeflow.org": "[create get list]"}
    for words in (
        ("delete", "trainjob", "weekly-20260115-2100"),
        ("patch", "trainjob", "weekly-20260115-2100", "--type=merge", "-p", "{}"),
        ("get", "secrets"),
        ("get", "pods"),
        ("create", "configmap", "mine"),
        ("get", "trainjobs", "-n", "default"),
    ):
        refused = kubectl(*words)
        assert "forbidden" in refused.stderr, (words, refused.stdout, refused.stderr)
    # The cluster's policies judge what it may create, like any other run.
    (run,) = site.runs()
    bare = {name: run[name] for name in ("apiVersion", "kind")}
    own = {"name": "by-the-way", "namespace": TEAM, "labels": run["metadata"]["labels"]}
    made = {**bare, "metadata": own, "spec": {"runtimeRef": run["spec"]["runtimeRef"]}}
    refused = kubectl("create", "-f", "-", text=json.dumps(made))
    assert refused.returncode
    assert "gangplan-" in refused.stderr, refused.stderr
    assert len(site.runs()) == 1


def test_the_next_start_creates_a_run_once_the_last_is_complete(site: Site, tmp_path: Path) -> None:
    site.lab.forget(Story(Plot.RUN, namespace=None, run=None))
    is_over = lambda item: condition(item, "Complete") == "True"  # noqa: E731
    site.lab.client.wait("TrainJob", "weekly-20260115-2100", TEAM, until=is_over, timeout=90)
    site.lab.tell(Story(Plot.RUN, namespace=None, run=None))
    # The controller's own start, on the minute.
    began = time.time()
    site.lab.client.patch("CronJob", JOB, {"spec": {"suspend": False}}, TEAM)
    made: list[Object] = []

    def is_started() -> bool:
        jobs = site.lab.client.list("Job", TEAM)
        made[:] = [one for one in jobs if int(one["metadata"]["name"].rpartition("-")[2]) * 60 > began - 60]
        return bool(made)

    poll(is_started, 90, lambda: "no start within a minute and a half", every=1)
    site.lab.client.patch("CronJob", JOB, {"spec": {"suspend": True}}, TEAM)
    job = made[0]["metadata"]["name"]
    done = site.play(job, tmp_path / "pod")
    assert done.returncode == 0, done.stderr
    at = datetime.fromtimestamp(int(job.rpartition("-")[2]) * 60, UTC)
    assert site.runs()[-1]["metadata"]["name"] == f"weekly-{at:%Y%m%d-%H%M}"
    assert len(site.runs()) == 2


def test_a_follower_is_created_once_the_run_of_its_start_is_complete(site: Site, tmp_path: Path) -> None:
    """The run of 21:00 is complete, and that of the controller's own start still trains."""

    def followers() -> list[str]:
        found = site.lab.client.list("TrainJob", TEAM, labels=f"gangplan.dev/schedule={FOLLOWER}")
        return sorted(str(one["metadata"]["name"]) for one in found)

    site.lab.forget(Story(Plot.RUN, namespace=None, run=None))
    done = site.play(site.start(minute_of("2026-01-15 21:00"), FOLLOWER), tmp_path / "first")
    assert done.returncode == 0, done.stderr
    assert followers() == ["score-20260115-2100"]
    is_over = lambda item: condition(item, "Complete") == "True"  # noqa: E731
    site.lab.client.wait("TrainJob", "score-20260115-2100", TEAM, until=is_over, timeout=90)
    # This start has no run yet: it is created while the pod waits.
    minute = minute_of("2026-01-15 22:00")
    program = site.begin(site.start(minute, FOLLOWER), tmp_path / "second")
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting for run weekly-20260115-2200\n"
    assert followers() == ["score-20260115-2100"]
    for run in site.runs():
        site.lab.client.wait("TrainJob", run["metadata"]["name"], TEAM, until=is_over, timeout=90)
    made = site.play(site.start(minute), tmp_path / "third")
    assert made.returncode == 0, made.stderr
    _, err = program.communicate(timeout=180)
    assert program.returncode == 0, err
    assert condition(site.lab.client.get("TrainJob", "weekly-20260115-2200", TEAM), "Complete") == "True"
    assert followers() == ["score-20260115-2100", "score-20260115-2200"]


def test_runs_outlive_their_schedule(site: Site) -> None:
    before = {one["metadata"]["uid"] for one in site.runs()}
    site.lab.client.delete("CronJob", JOB, TEAM, foreground=True)
    site.lab.client.wait_gone("CronJob", JOB, TEAM, timeout=60)
    poll(
        lambda: not site.lab.client.list("Job", TEAM, labels=f"gangplan.dev/schedule={JOB}"),
        60,
        lambda: "Jobs",
    )
    assert {one["metadata"]["uid"] for one in site.runs()} == before
