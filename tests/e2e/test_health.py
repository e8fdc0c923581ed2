"""Check that statuses of the real controllers get the right word: from the table, in Argo CD's Lua and in
Flux's CEL.

`--update` records them into tests/gitops/statuses/, where tests without a lab read them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gangplan.gitops.health import HEALTH_KINDS, find_health_state
from gangplan.gitops.record import KUEUE_QUEUE_LABEL, build_run_record
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e import world
from tests.gitops.recorded import FOLDER, trimmed
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
TABLE = {kind.name: kind for kind in HEALTH_KINDS}
# One node, so that a second run waits.
POOL = "  cpu: {count: 1, cpu: 60, memory: 240Gi}"
SPEC = (
    workspaces.SPEC.replace("workers: 4", "workers: 1").replace("gpus: 2\n", "").replace("cpu: 8", "cpu: 40")
)
PATIENCE = 60.0


@dataclass
class Site:
    """A lab with one team's queue, and the statuses that were observed."""

    lab: Lab
    root: Path
    seen: list[Object] = field(default_factory=list)

    def bodies(self, job: str, more: str = "") -> list[Object]:
        """Return the objects of the only run of a new spec."""
        workspaces.write(self.root, {f"specs/nlp/{job}.yaml": f"{SPEC}timeout: 1h\nretries: 0\n{more}"})
        result = preview_render(Request(self.root, specs=(f"specs/nlp/{job}.yaml",)))
        assert not result.has_errors, result.findings
        (run,) = result.runs
        return load_objects(result.texts[run.path])

    def start(self, job: str, plot: Plot, more: str = "") -> str:
        """Apply a run whose pods do what the plot says, and return its name."""
        bodies = self.bodies(job, more)
        (name,) = (body["metadata"]["name"] for body in bodies if body["kind"] == "TrainJob")
        self.lab.tell(Story(plot, namespace="nlp", run=name))
        for body in bodies:
            self.lab.client.apply_patiently(body, timeout=60)
        return name

    def workload(self, run: str) -> Object:
        """Return the Workload that Kueue created for a run."""
        owned = [
            item
            for item in self.lab.client.list("Workload", "nlp")
            if any(one["name"] == run for one in item["metadata"].get("ownerReferences", ()))
        ]
        return owned[0] if owned else {"metadata": {"name": ""}}

    def expect(self, case: str, kind: str, name: str, word: str, namespace: str | None = "nlp") -> None:
        """Wait until an object has a word and keeps it, and record the object."""

        def look() -> Object | None:
            found = self.lab.client.find(kind, name, namespace)
            return found if found and find_health_state(TABLE[kind], found).word == word else None

        def story() -> str:
            found = self.lab.client.find(kind, name, namespace) or {}
            return f"{case}: {kind} {name} is not {word}: {found.get('status')}"

        poll(look, PATIENCE, story)
        time.sleep(1)
        found = look()
        assert found, story()
        self.seen.append({"case": case, "word": word, "object": trimmed(found)})

    def expect_run(self, case: str, run: str, word: str, jobset: str | None, workload: str | None) -> None:
        """Expect the words of a TrainJob and of its JobSet and Workload."""
        self.expect(case, "TrainJob", run, word)
        if jobset:
            self.expect(case, "JobSet", run, jobset)
        if workload:
            poll(lambda: self.workload(run)["metadata"]["name"], PATIENCE, lambda: f"no Workload of {run}")
            self.expect(case, "Workload", self.workload(run)["metadata"]["name"], workload)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Run a lab of its own; what was observed in it is recorded at its end."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    fixtures.require(profile)
    root = workspaces.stock(tmp_path_factory.mktemp("site") / "workspace")
    stated = f'{{kubernetes: "{profile.kubernetes}", trainer: "{profile.trainer}", kueue: "{profile.kueue}"}}'
    lines = [
        f"versions: {stated}" if line.startswith("versions:") else POOL if line.startswith("  cpu:") else line
        for line in workspaces.CLUSTER.splitlines()
        if not line.startswith("  a100")
    ]
    workspaces.write(root, {"overlays/lab/cluster.yaml": "\n".join(lines) + "\n"})
    (root / "specs/nlp/filings.yaml").unlink(missing_ok=True)
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(load_workspace(root).clusters["lab"].spec))
        found = Site(lab, root)
        found.bodies("first")
        texts = preview_render(Request(root)).texts
        for path in world.before_runs(texts):
            for body in load_objects(texts[path]):
                lab.client.apply_patiently(body, timeout=60)
        yield found
        if request.config.getoption("--update"):
            text = json.dumps(found.seen, indent=1, sort_keys=True) + "\n"
            (FOLDER / f"{profile.name}.json").write_text(text, encoding="utf-8")


def test_statuses_of_queues(site: Site) -> None:
    client = site.lab.client
    (queue,) = client.list("LocalQueue", "nlp")
    local, cluster = queue["metadata"]["name"], queue["spec"]["clusterQueue"]
    site.expect("ready", "ClusterQueue", cluster, "ready", None)
    site.expect("ready", "LocalQueue", local, "ready")
    client.patch("ClusterQueue", cluster, {"spec": {"stopPolicy": "Hold"}})
    site.expect("held", "ClusterQueue", cluster, "held", None)
    site.expect("cluster queue held", "LocalQueue", local, "waiting")
    client.patch("ClusterQueue", cluster, {"spec": {"stopPolicy": "None"}})
    client.patch("LocalQueue", local, {"spec": {"stopPolicy": "Hold"}}, "nlp")
    site.expect("held", "LocalQueue", local, "held")
    client.patch("LocalQueue", local, {"spec": {"stopPolicy": "None"}}, "nlp")
    site.expect("released", "ClusterQueue", cluster, "ready", None)
    lost = client.get("ClusterQueue", cluster)
    spec = {
        key: value
        for key, value in lost["spec"].items()
        if key not in ("admissionChecksStrategy", "cohortName")
    }
    spec["resourceGroups"][0]["flavors"][0]["name"] = "nowhere"
    other = {
        "apiVersion": lost["apiVersion"],
        "kind": "ClusterQueue",
        "metadata": {"name": "other"},
        "spec": spec,
    }
    client.apply(other)
    site.expect("no flavor", "ClusterQueue", "other", "waiting", None)
    client.delete("ClusterQueue", "other")


def test_statuses_of_running_queued_and_complete_runs(site: Site) -> None:
    low = site.start("low", Plot.RUN, "priority: low\n")
    site.expect_run("running", low, "running", "running", "running")
    waits = site.start("waits", Plot.RUN, "priority: low\n")
    site.expect_run("queued", waits, "queued", "suspended", "queued")
    high = site.start("high", Plot.FINISH, "priority: high\n")
    # It preempts the first one, and ends; until then the other two wait.
    site.expect_run("complete", high, "complete", "complete", _after(site, "complete"))


def test_statuses_of_a_preempted_run(site: Site) -> None:
    _clear(site)
    low = site.start("lower", Plot.RUN, "priority: low\n")
    site.expect("started", "TrainJob", low, "running")
    high = site.start("higher", Plot.RUN, "priority: high\n")
    site.expect("preempting", "TrainJob", high, "running")
    site.expect_run("preempted", low, "preempted", "suspended", "preempted")


def test_status_of_the_record_of_a_stopped_run(site: Site) -> None:
    _clear(site)
    bodies = site.bodies("over")
    for body in build_run_record(bodies):
        site.lab.client.apply_patiently(body, timeout=60)
    (name,) = (body["metadata"]["name"] for body in bodies if body["kind"] == "TrainJob")
    poll(lambda: condition(site.lab.client.get("TrainJob", name, "nlp"), "Suspended"), PATIENCE, lambda: name)
    site.expect("stopped", "TrainJob", name, "stopped")


def test_statuses_of_a_failed_run(site: Site) -> None:
    _clear(site)
    name = site.start("fails", Plot.FAIL)
    site.expect_run("failed", name, "failed", "failed", _after(site, "failed"))


def test_statuses_of_suspended_and_deactivated_runs(site: Site) -> None:
    """Suspended by hand, without a queue; and by a deactivated Workload."""
    _clear(site)
    for body in site.bodies("alone"):
        if body["kind"] == "TrainJob":
            del body["metadata"]["labels"][KUEUE_QUEUE_LABEL]
            body["spec"]["suspend"] = True
        site.lab.client.apply_patiently(body, timeout=60)
        name = body["metadata"]["name"]
    site.expect("suspended", "TrainJob", name, "suspended")
    site.expect("suspended", "JobSet", name, "suspended")
    run = site.start("switched", Plot.RUN)
    site.expect("switched on", "TrainJob", run, "running")
    site.lab.client.patch(
        "Workload", site.workload(run)["metadata"]["name"], {"spec": {"active": False}}, "nlp"
    )
    site.expect_run("deactivated", run, "preempted", None, "suspended")


def _after(site: Site, word: str) -> str | None:
    """Return the word for the Workload of a run that has ended: Kueue 0.15 leaves none."""
    return word if site.lab.profile.kueue >= "0.16" else None


def _clear(site: Site) -> None:
    for item in site.lab.client.list("TrainJob", "nlp"):
        site.lab.client.delete("TrainJob", item["metadata"]["name"], "nlp")
    poll(lambda: not site.lab.client.list("Workload", "nlp"), PATIENCE, lambda: "Workloads stay")
