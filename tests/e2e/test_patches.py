"""Patches of a site on the real controllers: accepted ones run as planned, refused ones do not.

One workspace, one job for each patch of patches.yaml, one lab of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import plain, workspaces
from tests.e2e import world
from tests.e2e.story import JOBSET, ROLE
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.promise.patched import HEAD, OVERLAY, entry, spec_of

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("patches.yaml").read_text(encoding="utf-8")
)
HARMLESS, BROKEN = CASES["harmless"], CASES["broken"]
CLUSTER = workspaces.CLUSTER.replace("a100: {count: 4", "a100: {count: 14") + "runtimeClasses: [nvidia]\n"
PATIENCE = 60.0
# How long a thing may not happen before it counts as never. Planned runs have all their pods within a second.
WAIT = 6.0
NUDGE = 3.0


@dataclass(slots=True)
class Played:
    """One patched run on the lab."""

    lab: Lab
    run: PlannedRun
    bodies: list[Object]
    started: float = field(default_factory=time.monotonic)

    @property
    def namespace(self) -> str:
        return self.run.unit.job.namespace

    def apply(self, kinds: Callable[[str], bool]) -> None:
        """Apply objects of some kinds, as a sync does."""
        for body in self.bodies:
            if kinds(body["kind"]):
                self.lab.client.apply_patiently(body)
        self.started = time.monotonic()

    def pods(self, role: str = "") -> list[Object]:
        """Return the pods of the run, or of one role."""
        labels = f"{JOBSET}={self.run.name}" + (f",{ROLE}={role}" if role else "")
        return self.lab.client.list("Pod", self.namespace, labels)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of worker and launcher pods."""
        return len(self.pods("node")), len(self.pods("launcher"))

    def planned(self) -> tuple[int, int]:
        """Return the planned numbers of worker and launcher pods."""
        layout = self.run.unit.layout
        return layout.node_pods, layout.launcher_pods

    def hostfile(self) -> list[list[str]]:
        """Return the hosts and slots that Trainer wrote."""
        name = f"{self.run.name}-mpi-hostfile"
        found = self.lab.client.find("ConfigMap", name, self.namespace) or {"data": {}}
        return [line.split() for line in found["data"].get("hostfile", "").splitlines() if line]

    def state(self, kind: str, name: str) -> str | None:
        """Return the status of a condition of the TrainJob or JobSet."""
        found = self.lab.client.find(kind, self.run.name, self.namespace)
        return found and condition(found, name)

    def is_over(self, hold: Story) -> bool:
        """Return whether the run is complete. A busy machine may miss the end of the hold, so it is
        repeated."""
        if time.monotonic() > self.started + NUDGE:
            self.lab.forget(hold)
            self.started = time.monotonic()
        return self.state("TrainJob", "Complete") == "True"

    def workload(self) -> Object:
        """Return the Workload of the run."""
        name = f"trainjob-{self.run.name}"
        items = self.lab.client.list("Workload", self.namespace)
        return next((item for item in items if item["metadata"]["name"].startswith(name)), {"status": {}})

    def events(self) -> str:
        """Return all messages of events about the run."""
        items = self.lab.client.list("Event", self.namespace)
        return "; ".join(
            item["message"] for item in items if item["involvedObject"]["name"].startswith(self.run.name)
        )

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something happens."""
        poll(holds, PATIENCE, lambda: f"{self.run.name}: not {what}: {self.counts()} pods; {self.events()}")

    def never(self, holds: Callable[[], Any], what: str) -> None:
        """Check that something does not happen in the time in which a planned run would long have done it."""
        while time.monotonic() < self.started + WAIT:
            assert not holds(), what
            time.sleep(0.3)
        assert not holds(), what


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Create the workspace with a job for each patch; return it and its rendered objects and findings."""
    root = workspaces.stock(tmp_path_factory.mktemp("patches") / "workspace")
    (root / "specs/nlp/filings.yaml").unlink()
    files, patches = {"overlays/lab/cluster.yaml": CLUSTER}, []
    for name, case in {**HARMLESS, **BROKEN}.items():
        spec = {"image": case.get("image", "openmpi"), "workers": 2, "gpus": 1, "cpu": 2, "memory": "4Gi"}
        files[f"specs/nlp/{name}.yaml"] = spec_of(spec)
        kind = case.get("kind", "TrainingRuntime")
        patches.append(entry(f"{{kind: {kind}, labelSelector: gangplan.dev/job={name}}}", case["patch"]))
    workspaces.write(root, {**files, OVERLAY: HEAD + "".join(patches)})
    return root, preview_render(Request(root, engine="serial"))


@pytest.fixture(scope="module")
def site(found: tuple[Path, Result]) -> Iterator[Lab]:
    """Run a lab with the nodes, the platform and the team of the workspace."""
    root, result = found
    profile = fixtures.chosen()
    if profile.name != "new":
        pytest.skip("the patches are for the newest versions")
    fixtures.require(profile)
    loaded = load_workspace(root)
    cluster = loaded.clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(cluster))
        nvidia = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
        lab.client.apply({**nvidia, "metadata": {"name": "nvidia"}})
        for path in world.before_runs(result.texts):
            lab.client.apply_all(load_objects(result.texts[path]))
        lab.client.apply_all(world.claims(cluster, [("nlp", loaded.teams["nlp"].spec)]))
        lab.client.wait(
            "LocalQueue", "training", "nlp", until=lambda item: condition(item, "Active") == "True"
        )
        yield lab


def _played(lab: Lab, result: Result, cases: dict[str, Any]) -> dict[str, Played]:
    runs = {run.unit.job.name: run for run in result.runs}
    return {name: Played(lab, runs[name], load_objects(result.texts[runs[name].path])) for name in cases}


def _start(played: dict[str, Played]) -> None:
    """Apply runtimes first: Trainer refuses a run until its own cache has them."""
    for kinds in (lambda kind: kind != "TrainJob", lambda kind: kind == "TrainJob"):
        for one in played.values():
            one.apply(kinds)


def test_gangplan_reports_only_the_broken_patches(found: tuple[Path, Result]) -> None:
    told = {
        (one.object_ref or "").rpartition("/")[2] for one in found[1].findings if one.rule == "plan-broken"
    }
    assert told == set(BROKEN)
    errors = {one.rule for one in found[1].findings if one.is_error}
    assert errors == {"plan-broken", "never-admitted"}


def test_harmless_patches_run_as_planned(site: Lab, found: tuple[Path, Result]) -> None:
    hold = Story(Plot.RUN, namespace="nlp")
    site.tell(hold)
    played = _played(site, found[1], HARMLESS)
    _start(played)
    for one in played.values():
        one.until(
            lambda one=one: (
                one.counts() == one.planned() and all(condition(pod, "Ready") == "True" for pod in one.pods())
            ),
            "all planned pods are Ready",
        )
        _is_as_planned(one)
    site.forget(hold)
    for one in played.values():
        one.until(lambda one=one: one.is_over(hold), "complete")


def _is_as_planned(one: Played) -> None:
    """Check the hostfile, the command and the variables of the plan."""
    unit, nodes = one.run.unit, one.pods("node")
    if unit.job.uses_mpi:
        hosts = {f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in nodes}
        assert {tuple(line) for line in one.hostfile()} == {
            (host, f"slots={unit.layout.slots}") for host in hosts
        }
    for pod in one.pods():
        (container,) = pod["spec"]["containers"]
        is_launcher = pod["metadata"]["labels"][ROLE] == "launcher"
        if is_launcher or not unit.job.uses_mpi:
            assert tuple(container["args"]) == unit.launch.argv
        planned = unit.launch.launcher_env if is_launcher else unit.launch.worker_env
        present = {one["name"]: one.get("value") for one in container.get("env", ())}
        assert {one.name: one.value for one in planned}.items() <= present.items()


@pytest.fixture(scope="module")
def broken(site: Lab, found: tuple[Path, Result]) -> dict[str, Played]:
    """Apply all runs that gangplan refuses."""
    played = _played(site, found[1], BROKEN)
    runs = {name: one.run.name for name, one in played.items()}
    stories = [Story(Plot.RUN, namespace="nlp", run=run) for run in runs.values()]
    stories += [
        Story(Plot.NEVER_READY, namespace="nlp", run=runs["no-order"], role="node"),
        Story(Plot.FINISH, namespace="nlp", run=runs["success-of-workers"], role="launcher"),
        Story(Plot.FAIL, namespace="nlp", run=runs["more-tries"], role="launcher", attempt=0),
    ]
    quiet = {runs["no-order"], runs["success-of-workers"], runs["more-tries"]}
    site.tell(*(one for one in stories if one.role or one.run not in quiet))
    _start(played)
    return played


@pytest.mark.parametrize("name", BROKEN)
def test_broken_patches_break_their_runs(name: str, broken: dict[str, Played]) -> None:
    one, case = broken[name], BROKEN[name]
    SHOWN[case["shows"]](one)
    if "says" in case:
        one.until(lambda: case["says"] in one.events(), f"told: {case['says']}")


def _other_pods(one: Played) -> None:
    """Another number of pods starts than was planned."""
    one.until(lambda: len(one.pods("node")) not in (0, one.planned()[0]), "another number of workers")


def _another_hostfile(one: Played) -> None:
    """The hostfile has other hosts or slots than the plan."""
    one.until(one.hostfile, "a hostfile")
    layout, name = one.run.unit.layout, one.run.name
    planned = [[f"{name}-node-0-{index}.{name}", f"slots={layout.slots}"] for index in range(layout.workers)]
    assert sorted(one.hostfile()) != planned


def _nameless(one: Played) -> None:
    """No pod has the name that the hostfile uses for it."""
    one.until(lambda: one.counts() == one.planned(), "all pods")
    assert not any(pod["spec"].get("subdomain") for pod in one.pods())


def _too_early(one: Played) -> None:
    """The launcher starts while no worker is Ready."""
    one.until(lambda: one.pods("launcher"), "a launcher")
    assert not any(condition(pod, "Ready") == "True" for pod in one.pods("node"))


def _no_end(one: Played) -> None:
    """The program has ended, and the run has not."""
    ended = lambda: [pod for pod in one.pods("launcher") if pod["status"].get("phase") == "Succeeded"]  # noqa: E731
    one.until(ended, "the launcher succeeded")
    one.started = time.monotonic()
    one.never(lambda: one.state("TrainJob", "Complete") == "True", "the run is complete")


def _suspended(one: Played) -> None:
    """Kueue does not know the queue."""
    one.until(lambda: condition(one.workload(), "QuotaReserved") == "False", "refused quota")
    one.never(lambda: one.pods() or one.state("TrainJob", "Suspended") != "True", "the run started")


def _no_pods(one: Played) -> None:
    """The run is admitted and holds its quota, but its workers are never created."""
    one.until(lambda: condition(one.workload(), "Admitted") == "True", "admitted")
    one.never(lambda: one.pods("node") or one.pods("launcher"), "pods are there")


def _two_images(one: Played) -> None:
    """One role has another image."""
    one.until(lambda: one.counts() == one.planned(), "all pods")
    assert len({pod["spec"]["containers"][0]["image"] for pod in one.pods()}) == 2


def _keys_elsewhere(one: Played) -> None:
    """The key pair is not mounted where the image looks for it."""
    one.until(lambda: one.counts() == one.planned(), "all pods")
    home = one.run.unit.job.image.ssh.keys
    for pod in one.pods("node"):
        assert home not in {mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}


def _another_try(one: Played) -> None:
    """The run is restarted although the plan says that it never is."""
    one.until(
        lambda: any(
            pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] == "1" for pod in one.pods()
        ),
        "started again",
    )


def _unselected(one: Played) -> None:
    """A client that selects the pods of the run by its label, as monitoring does, gets only the launcher."""
    one.until(lambda: one.counts() == one.planned(), "all pods")
    asked = one.lab.client.list("Pod", one.namespace, f"gangplan.dev/run={one.run.name}")
    assert {pod["metadata"]["labels"][ROLE] for pod in asked} == {"launcher"}


SHOWN: dict[str, Callable[[Played], None]] = {
    "other pods": _other_pods,
    "another hostfile": _another_hostfile,
    "pods without names": _nameless,
    "a launcher too early": _too_early,
    "no end": _no_end,
    "suspended forever": _suspended,
    "no pods": _no_pods,
    "two images": _two_images,
    "keys elsewhere": _keys_elsewhere,
    "another try": _another_try,
    "pods that no selector finds": _unselected,
}
