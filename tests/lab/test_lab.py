"""The lab itself: it becomes ready, runs a run, and leaves nothing behind."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.signals import LISTENING

from . import client, fixtures, samples
from .client import ApiError, Object, condition
from .lab import Lab
from .profiles import Profile
from .stages import Plot, Story

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = count(1)


@pytest.fixture
def team(lab: Lab) -> Iterator[str]:
    """Create a fresh namespace with a queue and a runtime."""
    name = f"team-{next(NUMBERS)}"
    lab.client.apply_all(samples.queue(lab.client, name))
    lab.client.apply(samples.runtime(name, name))
    # Trainer refuses runs of a runtime that it has not seen yet.
    lab.client.apply_patiently(samples.run(name, "pi"), dry_run=True)
    yield name
    for run in lab.client.list("TrainJob", name):
        lab.client.delete("TrainJob", run["metadata"]["name"], name)


def finished(run: Object) -> bool:
    return condition(run, "Complete") == "True"


def failed(run: Object) -> bool:
    return condition(run, "Failed") == "True"


def over(workload: Object) -> bool:
    return condition(workload, "Finished") == "True"


def is_admitted(lab: Lab, namespace: str) -> bool:
    return any(condition(each, "Admitted") == "True" for each in lab.client.list("Workload", namespace))


def runs_work(lab: Lab) -> None:
    if lab.profile.name == "broken":
        pytest.skip("runs can't start in this profile")


def pods(lab: Lab, namespace: str) -> list[Object]:
    return lab.client.list("Pod", namespace)


def ready_pods(lab: Lab, namespace: str) -> int:
    return sum(condition(pod, "Ready") == "True" for pod in pods(lab, namespace))


def alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_server_has_the_versions_of_the_profile(lab: Lab) -> None:
    version = lab.client.request("GET", "/version").object

    assert version["gitVersion"] == f"v{lab.profile.kubernetes}"
    assert lab.client.resource("TrainJob").namespaced
    assert "trainer" in lab.kubectl("api-resources", "--api-group=trainer.kubeflow.org")


def test_a_run_is_admitted_and_completes(lab: Lab, team: str) -> None:
    runs_work(lab)
    lab.client.apply(samples.run(team, "pi"))

    # Kueue 0.15 withdraws the admission when the run has ended.
    client.poll(lambda: is_admitted(lab, team), 30, lambda: "not admitted")
    lab.client.wait("TrainJob", "pi", team, until=finished)

    (workload,) = lab.client.list("Workload", team)
    lab.client.wait("Workload", workload["metadata"]["name"], team, until=over)
    sizes = {each["name"]: each["count"] for each in workload["spec"]["podSets"]}
    assert sizes == {"launcher": 1, "node": 2}


def test_the_broken_version_pair_leaves_a_run_suspended(lab: Lab, team: str) -> None:
    if lab.profile.name != "broken":
        pytest.skip("only in the profile that is broken on purpose")
    lab.client.apply(samples.run(team, "pi"))

    client.poll(lambda: is_admitted(lab, team), 30, lambda: "not admitted")

    client.poll(lambda: "runtime patch not found" in lab.logs("kueue"), 30, lambda: "Kueue said nothing")
    assert lab.client.get("TrainJob", "pi", team)["spec"]["suspend"] is True
    assert not lab.client.list("Pod", team)


def test_unknown_fields_are_refused(lab: Lab, team: str) -> None:
    run = samples.run(team, "typo")
    run["spec"]["trainer"]["numNode"] = 3

    with pytest.raises(ApiError, match=r'unknown field "spec.trainer.numNode"') as refusal:
        lab.client.create(run, dry_run=True)
    assert refusal.value.status == 400

    with pytest.raises(ApiError, match=r"\.spec\.trainer\.numNode: field not declared in schema"):
        lab.client.apply(run, dry_run=True)


def test_webhook_refusals_and_server_warnings_reach_the_caller(lab: Lab, team: str) -> None:
    run = samples.run(team, "nowhere")
    run["spec"]["runtimeRef"]["name"] = "missing"
    with pytest.raises(ApiError, match="missing"):
        lab.client.apply(run, dry_run=True)

    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "twice", "namespace": team}}
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    pod["spec"] = {"containers": [{"name": "a", "image": "registry.example.com/a", "env": variables}]}
    assert "hides previous definition" in lab.client.create(pod, dry_run=True).warnings[0]


def test_a_run_too_large_for_the_queue_waits(lab: Lab, team: str) -> None:
    lab.client.apply(samples.run(team, "huge", nodes=11))

    def refused() -> bool:
        return any(condition(each, "QuotaReserved") == "False" for each in lab.client.list("Workload", team))

    client.poll(refused, 30, lambda: "no verdict from Kueue")
    assert not lab.client.list("Pod", team)


def test_a_failing_launcher_fails_the_run(lab: Lab, team: str) -> None:
    runs_work(lab)
    lab.tell(Story(Plot.FAIL, namespace=team, role="launcher"))
    lab.client.apply(samples.run(team, "pi"))

    lab.client.wait("TrainJob", "pi", team, until=failed)


@pytest.mark.parametrize("plot", [Plot.NEVER_READY, Plot.PENDING])
def test_a_launcher_never_starts_while_a_worker_is_not_ready(lab: Lab, team: str, plot: Plot) -> None:
    runs_work(lab)
    lab.tell(Story(plot, namespace=team, role="node", index=0))
    lab.client.apply(samples.run(team, "pi"))

    client.poll(lambda: ready_pods(lab, team) == 1, 30, lambda: "the other worker did not become ready")

    roles = [pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] for pod in pods(lab, team)]
    assert roles == ["node", "node"]


def test_an_evicted_worker_fails_the_run(lab: Lab, team: str) -> None:
    runs_work(lab)
    lab.tell(Story(Plot.RUN, namespace=team, role="launcher"), Story(Plot.EVICT, namespace=team, role="node"))
    lab.client.apply(samples.run(team, "pi"))

    lab.client.wait("TrainJob", "pi", team, until=failed)


def test_a_long_run_keeps_running_until_its_story_ends(lab: Lab, team: str) -> None:
    runs_work(lab)
    story = Story(Plot.RUN, namespace=team)
    lab.tell(story)
    lab.client.apply(samples.run(team, "pi"))

    client.poll(lambda: ready_pods(lab, team) == 3, 30, lambda: "not all three pods are ready")
    lab.forget(story)

    lab.client.wait("TrainJob", "pi", team, until=finished)


def test_a_halted_controller_can_be_resumed(lab: Lab, team: str) -> None:
    runs_work(lab)
    lab.halt("kwok")
    lab.client.apply(samples.run(team, "pi"))
    client.poll(lambda: len(pods(lab, team)) == 2, 30, lambda: "no pods")

    lab.resume("kwok")

    lab.client.wait("TrainJob", "pi", team, until=finished)


def test_nodes_are_created_as_described(lab: Lab) -> None:
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    gpu = {"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8}
    rack = {"example.com/rack": "r1"}

    names = lab.add_nodes(
        [{"name": "gpu", "count": 2, "labels": rack, "taints": [taint], "allocatable": gpu}]
    )

    assert names == ["gpu-0", "gpu-1"]
    node = lab.client.get("Node", "gpu-1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["example.com/rack"] == "r1"
    assert taint in node["spec"]["taints"]
    for name in names:
        lab.client.delete("Node", name)


def test_two_labs_run_independently(lab: Lab) -> None:
    with Lab(lab.profile) as other:
        pids = [process.pid for process in other.processes]
        other.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        assert lab.client.find("Namespace", "elsewhere") is None
        port = other.site.api_port

    assert not [pid for pid in pids if alive(pid)]
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
    assert other.folder.logs.is_dir()
    assert not (other.folder.path / "etcd").exists()


HOLD = f"""{LISTENING}
import time
from tests.lab.lab import Lab
lab = Lab({{!r}}).start()
print(*[process.pid for process in lab.processes], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_a_killed_test_run(number: signal.Signals) -> None:
    profile: Profile = fixtures.chosen()
    fixtures.require(profile)
    command = [sys.executable, "-c", HOLD.format(profile.name)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout
            assert select.select([owner.stdout], [], [], 4 * client.PATIENCE)[0], "the lab did not start"
            pids = [int(word) for word in owner.stdout.readline().split()]
            assert pids
            assert all(map(alive, pids))
            owner.send_signal(number)
            owner.wait(180)  # a busy machine takes its time to end eight programs
        finally:
            owner.kill()

    client.poll(lambda: not any(map(alive, pids)), 60, lambda: f"still there: {list(filter(alive, pids))}")
