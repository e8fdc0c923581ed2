"""Apply the sample workspace of one cluster to the lab run by run, and keep what is observed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from gangplan.spec.cluster import Cluster
from gangplan.workspace import Workspace, load_workspace
from tests.e2e import world
from tests.lab.client import Answer, TooLateError, condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

ROOT = Path(__file__).parents[2]
Object = dict[str, Any]
JOBSET = "jobset.sigs.k8s.io/jobset-name"
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
PATIENCE = 90.0
NUDGE = 5.0


@dataclass(slots=True)
class Seen:
    """One run while all its pods were running."""

    run: PlannedRun
    bodies: list[Object]
    pods: list[Object]
    workload: Object
    hostfile: str
    policies: list[Object]


@dataclass(slots=True)
class Chapter:
    """Everything about one cluster: what was rendered, the server's answers, and what was observed."""

    lab: Lab
    name: str
    cluster: Cluster
    standing: list[Object]
    runs: list[tuple[PlannedRun, list[Object]]]
    answers: list[tuple[Object, Answer]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    left: list[tuple[Object, Object]] = field(default_factory=list)
    """Each emitted object and what the server held once the last run had finished."""

    def apply(self, body: Object) -> None:
        """Apply an object, first by dry run; both are strict, and both answers are kept."""
        client = self.lab.client
        # A run is refused until Trainer's own cache has its runtime.
        apply = client.apply_patiently if body["kind"] == "TrainJob" else client.apply
        for dry_run in (True, False):
            self.answers.append((body, apply(body, dry_run=dry_run)))


def cluster_of(profile_trainer: str, profile_kueue: str) -> str | None:
    """Return the sample cluster with these versions, or None."""
    workspace = load_workspace(ROOT)
    for name, cluster in workspace.clusters.items():
        versions = cluster.spec.versions
        if (versions.trainer, versions.kueue) == (profile_trainer, profile_kueue):
            return name
    return None


def tell(lab: Lab, name: str) -> Chapter:
    """Set up the cluster as declared, then let each run start, observe it, and let it finish."""
    workspace = load_workspace(ROOT)
    findings = workspace.findings
    assert not findings
    cluster = workspace.clusters[name].spec
    result = preview_render(Request(ROOT, (name,)))
    assert not result.has_errors, result.findings
    standing = [body for path in world.before_runs(result.texts) for body in load_objects(result.texts[path])]
    chapter = Chapter(
        lab, name, cluster, standing, [(run, load_objects(result.texts[run.path])) for run in result.runs]
    )
    prepare(chapter, workspace)
    for run, bodies in chapter.runs:
        _play(chapter, run, bodies)
    # Read now: later modules put clusters of their own into the same lab, and roles are cluster-wide.
    chapter.left = [(body, _live(lab, body)) for body in emitted(chapter)]
    return chapter


def prepare(chapter: Chapter, workspace: Workspace) -> None:
    """Create nodes, platform, tenants and claims."""
    client = chapter.lab.client
    chapter.lab.add_nodes(world.nodes(chapter.cluster))
    client.apply_all(world.monitoring(chapter.cluster))
    # Claims that exist already: their owners created them before any policy of the cluster judged new ones.
    for body in chapter.standing:
        if body["kind"] == "Namespace":
            chapter.apply(body)
    teams = [(team, workspace.teams[team].spec) for team in chapter.cluster.teams]
    client.apply_all(world.claims(chapter.cluster, teams))
    for body in chapter.standing:
        if body["kind"] != "Namespace":
            chapter.apply(body)
    for team in chapter.cluster.teams:
        queue = next(
            body
            for body in chapter.standing
            if body["kind"] == "LocalQueue" and body["metadata"]["labels"]["gangplan.dev/team"] == team
        )
        client.wait(
            "LocalQueue",
            queue["metadata"]["name"],
            queue["metadata"]["namespace"],
            until=lambda item: condition(item, "Active") == "True",
        )


def _play(chapter: Chapter, run: PlannedRun, bodies: list[Object]) -> None:
    """Start one run, observe it while all pods run, then let it complete."""
    lab, namespace = chapter.lab, run.unit.job.namespace
    hold = Story(Plot.RUN, namespace=namespace, run=run.name)
    lab.tell(hold)
    for body in bodies:
        chapter.apply(body)
    pods = _running_pods(lab, run)
    hostfile = lab.client.find("ConfigMap", f"{run.name}-mpi-hostfile", namespace) or {
        "data": {"hostfile": ""}
    }
    policies = lab.client.list("NetworkPolicy", namespace)
    chapter.seen.append(Seen(run, bodies, pods, _workload(lab, run), hostfile["data"]["hostfile"], policies))
    _let_finish(lab, run, hold)


def _let_finish(lab: Lab, run: PlannedRun, hold: Story) -> None:
    """Release the hold. A busy machine may miss it, so it is repeated until the run completes."""
    for _ in range(int(PATIENCE // NUDGE)):
        lab.forget(hold)
        try:
            lab.client.wait(
                "TrainJob",
                run.name,
                run.unit.job.namespace,
                until=lambda item: condition(item, "Complete") == "True",
                timeout=NUDGE,
            )
            return
        except TooLateError:
            continue
    raise TooLateError(f"{run.name} did not complete: {_why(lab, run)}")


def _running_pods(lab: Lab, run: PlannedRun) -> list[Object]:
    """Return all pods of a run, once as many as planned are Ready."""
    found: list[Object] = []

    def all_ready() -> bool:
        found[:] = lab.client.list("Pod", run.unit.job.namespace, labels=f"{JOBSET}={run.name}")
        return len(found) == run.unit.layout.pods and all(condition(pod, "Ready") == "True" for pod in found)

    poll(
        all_ready,
        PATIENCE,
        lambda: f"{run.name}: {len(found)} of {run.unit.layout.pods} pods; {_why(lab, run)}",
    )
    return found


def _why(lab: Lab, run: PlannedRun) -> str:
    workloads = [
        item
        for item in lab.client.list("Workload", run.unit.job.namespace)
        if run.name in item["metadata"]["name"]
    ]
    said = [entry["message"] for item in workloads for entry in item.get("status", {}).get("conditions", [])]
    events = [
        item["message"]
        for item in lab.client.list("Event", run.unit.job.namespace)
        if run.name in item["metadata"]["name"]
    ]
    return "; ".join([*said, *events[-5:]])


def _workload(lab: Lab, run: PlannedRun) -> Object:
    return next(
        item
        for item in lab.client.list("Workload", run.unit.job.namespace)
        if item["metadata"]["name"].startswith(f"trainjob-{run.name}")
    )


def _live(lab: Lab, body: Object) -> Object:
    metadata = body["metadata"]
    return lab.client.get(body["kind"], metadata["name"], metadata.get("namespace"))


def emitted(chapter: Chapter) -> Iterator[Object]:
    """Yield every object that gangplan rendered for the cluster."""
    yield from chapter.standing
    for _, bodies in chapter.runs:
        yield from bodies
