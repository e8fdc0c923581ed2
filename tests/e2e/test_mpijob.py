"""Runs as MPIJobs with the real operator and Kueue: admitted, their pods those of TrainJobs, completed,
stopped."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gangplan.gitops.health import MPIJOB_HEALTH, find_health_state
from gangplan.gitops.record import build_run_record
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from gangplan.validate.consistency import check_object_consistency
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import ApiError, condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import write

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
EXAMPLE = story.ROOT / "tests/examples/mpijob/input"
HOME = "research"
NAME, ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
PATIENCE = 60.0
HOLD = Story(Plot.RUN, namespace=HOME)


@dataclass(frozen=True)
class Site:
    """A lab with the example's cluster, and its runs as they are rendered."""

    lab: Lab
    runs: dict[str, tuple[PlannedRun, list[Object]]]

    def start(self, job: str) -> tuple[PlannedRun, list[Object]]:
        """Apply a run, first by dry run; check that there is no warning and no drift."""
        run, bodies = self.runs[job]
        for body in bodies:
            for is_dry in (True, False):
                answer = self.lab.client.apply_patiently(body, dry_run=is_dry)
                assert [*answer.warnings, *drift(body, answer.object)] == []
        return run, bodies

    def ready(self, run: PlannedRun, label: str = NAME) -> list[Object]:
        """Return the pods of a run, once all are Ready."""
        found: list[Object] = []

        def are_ready() -> bool:
            found[:] = self.lab.client.list("Pod", HOME, labels=f"{label}={run.name}")
            wanted = run.unit.layout.pods
            return len(found) == wanted and all(condition(one, "Ready") == "True" for one in found)

        poll(are_ready, PATIENCE, lambda: f"{run.name}: {len(found)} of {run.unit.layout.pods} pods")
        return found

    def status(self, run: PlannedRun) -> Object:
        """Return the current MPIJob of a run."""
        return self.lab.client.get("MPIJob", run.name, HOME)

    def until(self, run: PlannedRun, kind: str) -> Object:
        """Return the MPIJob, once a condition is True."""
        return self.lab.client.wait(
            "MPIJob", run.name, HOME, until=lambda item: condition(item, kind) == "True", timeout=PATIENCE
        )

    def end(self, run: PlannedRun) -> None:
        """Delete a run and all its dependents."""
        self.lab.client.delete("MPIJob", run.name, HOME, foreground=True)
        self.lab.client.wait_gone("MPIJob", run.name, HOME, timeout=PATIENCE)

    def workload(self, run: PlannedRun) -> Object:
        """Return the Workload of a run."""
        every = self.lab.client.list("Workload", HOME)
        return next(one for one in every if one["metadata"]["ownerReferences"][0]["name"] == run.name)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if not profile.mpi_operator:
        pytest.skip(f"profile {profile.name} has no MPI operator")
    cluster = load_workspace(EXAMPLE).clusters["hpc"].spec
    result = preview_render(Request(EXAMPLE, engine="serial"))
    assert not result.has_errors, result.findings
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(cluster))
        for path in world.before_runs(result.texts):
            for body in load_objects(result.texts[path]):
                assert lab.client.apply_patiently(body).warnings == ()
        team = load_workspace(EXAMPLE).teams[HOME].spec
        lab.client.apply_all(world.claims(cluster, [(HOME, team)]))
        lab.tell(HOLD)
        runs = {run.unit.job.name: (run, load_objects(result.texts[run.path])) for run in result.runs}
        yield Site(lab, runs)


JOBS = ("heat", "digits", "furnace", "wave")


@pytest.mark.parametrize("job", JOBS)
def test_a_run_is_admitted_and_completes(job: str, site: Site) -> None:
    """Check the planned pods, hostfile and flavors. What Kueue writes is not drift, and workers end with the
    launcher."""
    site.lab.tell(HOLD)
    run, bodies = site.start(job)
    pods = site.ready(run)
    layout, unit = run.unit.layout, run.unit
    roles = [one["metadata"]["labels"][ROLE] for one in pods]
    assert (roles.count("worker"), roles.count("launcher")) == (layout.node_pods, 1)
    body = site.until(run, "Running")
    assert find_health_state(MPIJOB_HEALTH, body).word == "running"
    assert drift(bodies[-1], body) == []
    # An engine that applies the file again stops nothing.
    answer = site.lab.client.apply(bodies[-1])
    assert answer.object["spec"]["runPolicy"]["suspend"] is False
    workload = site.workload(run)
    assert condition(workload, "Admitted") == "True"
    sets = workload["status"]["admission"]["podSetAssignments"]
    assert run.verdict is not None
    assert {one["name"]: one["flavors"] for one in sets} == {
        name: dict(of) for name, of in run.verdict.assignment.items()
    }
    assert hosts(site, run) == planned_hosts(run)
    for pod in pods:
        box = pod["spec"]["containers"][0]
        is_launcher = pod["metadata"]["labels"][ROLE] == "launcher"
        if is_launcher:
            assert tuple(box["args"]) == unit.launch.argv
        planned = unit.launch.launcher_env if is_launcher else unit.launch.worker_env
        last = {one["name"]: one.get("value", "") for one in box["env"]}
        assert {one.name: last.get(one.name) for one in planned if not one.field} == {
            one.name: one.value for one in planned if not one.field
        }
    site.lab.forget(HOLD)
    ended = site.until(run, "Succeeded")
    assert find_health_state(MPIJOB_HEALTH, ended).word == "complete"
    poll(
        lambda: not site.lab.client.list("Pod", HOME, labels=f"{NAME}={run.name},{ROLE}=worker"),
        PATIENCE,
        lambda: "workers are still there",
    )
    poll(lambda: condition(site.workload(run), "Finished") == "True", PATIENCE, lambda: "holds its quota")
    site.end(run)


def hosts(site: Site, run: PlannedRun) -> list[str]:
    """Return the lines of the hostfile."""
    found = site.lab.client.get("ConfigMap", f"{run.name}-config", HOME)
    return [line for line in found["data"]["hostfile"].splitlines() if line]


def planned_hosts(run: PlannedRun) -> list[str]:
    """Return the hosts that the launch script expects, the launcher first if it runs ranks."""
    layout, job = run.unit.layout, run.unit.job
    names = [f"{run.name}-worker-{number}" for number in range(layout.node_pods)]
    names = [f"{run.name}-launcher", *names] if job.launcher_runs_ranks else names
    assert job.image.mpi is not None
    form = "{} slots={}" if job.image.mpi.family == "OpenMPI" else "{}:{}"
    return [form.format(f"{name}.{run.name}.{HOME}.svc", layout.slots) for name in names]


@pytest.mark.parametrize("job", JOBS)
def test_pods_of_mpijobs_equal_those_of_trainjobs(job: str, site: Site, tmp_path: Path) -> None:
    """The same spec on a cluster that also has Trainer: pods differ only in what docs/mpijob.md lists."""
    site.lab.tell(HOLD)
    run, _ = site.start(job)
    ours = {role_of(pod): plain(pod, run.name) for pod in site.ready(run)}
    site.end(run)
    files = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text()
        for path in EXAMPLE.rglob("*.yaml")
        if ".gangplan" not in path.parts
    }
    cluster = "overlays/hpc/cluster.yaml"
    files[cluster] = files[cluster].replace("mpiOperator", 'trainer: "2.3.0", mpiOperator')
    result = preview_render(Request(write(tmp_path, files), engine="serial"))
    twin = next(one for one in result.runs if one.unit.job.name == job)
    for body in load_objects(result.texts[twin.path]):
        site.lab.client.apply_patiently(body, timeout=60)
    label = "jobset.sigs.k8s.io/jobset-name"
    theirs = {role_of(pod): plain(pod, twin.name) for pod in site.ready(twin, label)}
    site.lab.client.delete("TrainJob", twin.name, HOME, foreground=True)
    assert ours.keys() == theirs.keys()
    for role, pod in ours.items():
        assert drift(theirs[role], pod) == [], role


def role_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["gangplan.dev/role"])


# Names of a run's pods, and the volumes in which the operators put keys and hosts.
VOLUMES = {"ssh-auth": "keys", "mpi-ssh-auth": "keys", "mpi-job-config": "hosts", "mpi-hostfile": "hosts"}
OF_PODS = ("hostname", "subdomain", "nodeName", "dnsConfig", "restartPolicy", "schedulingGates")
# Options of the launch scripts that differ because the operator sets variables, waits for no worker, and
# counts every try.
OPTIONS = ("--ssh-wait=", "--hosts-in=", "--unset=", "--hold=")
# Variables of MPI's own launch (which hosts, and how), which both operators and gangplan set in part.
LAUNCH = re.compile(
    r"(OMPI_MCA_(orte|plm)|I_MPI_(HYDRA|PERHOST)|HYDRA_|K_MPI_|NVIDIA_).*|JOB_COMPLETION_INDEX"
)


def plain(pod: Object, name: str) -> Object:
    """Return a pod without its names, its node, and what docs/mpijob.md lists as different."""
    text = copy.deepcopy({"kind": "Pod", "labels": own_labels(pod), "spec": pod["spec"]})
    spec = text["spec"]
    for field in OF_PODS:
        spec.pop(field, None)
    spec["volumes"] = sorted(
        (VOLUMES.get(one["name"], one["name"]) for one in spec["volumes"]),
    )
    for box in spec["containers"]:
        box["volumeMounts"] = sorted(
            (VOLUMES.get(one["name"], one["name"]), one["mountPath"]) for one in box["volumeMounts"]
        )
        box["env"] = [one for one in box.get("env", ()) if not LAUNCH.fullmatch(one["name"])]
        box["command"] = [word for word in box["command"] if not word.startswith(OPTIONS)]
    spec["nodeSelector"] = {
        key: value for key, value in spec["nodeSelector"].items() if "hostname" not in key
    }
    spec["tolerations"] = sorted(spec.get("tolerations", ()), key=str)
    return text


def own_labels(pod: Object) -> Object:
    """Return the labels that gangplan sets, except for the run's name."""
    labels = pod["metadata"]["labels"]
    ours = ("gangplan.dev/", "app.kubernetes.io/", "sidecar.istio.io/")
    return {key: value for key, value in labels.items() if key.startswith(ours) and key != "gangplan.dev/run"}


def test_a_stopped_run_loses_its_pods_and_quota(site: Site) -> None:
    """Its record replaces it, as Argo CD does: pods and quota are released, and nothing starts again."""
    site.lab.tell(HOLD)
    run, bodies = site.start("wave")
    site.ready(run)
    client = site.lab.client
    record = next(body for body in build_run_record(bodies) if body["kind"] == "MPIJob")
    site.end(run)
    client.apply_patiently(record)
    body = site.until(run, "Suspended")
    assert find_health_state(MPIJOB_HEALTH, body).word == "stopped"
    poll(lambda: not client.list("Pod", HOME, labels=f"{NAME}={run.name}"), PATIENCE, lambda: "pods stay")
    assert condition(site.workload(run), "Admitted") != "True"
    site.end(run)


def test_kueue_refuses_the_queue_of_a_record_for_an_unsuspended_run(site: Site) -> None:
    """So Flux, which deletes and recreates an object when a change is immutable, ends a run."""
    site.lab.tell(HOLD)
    run, bodies = site.start("wave")
    site.ready(run)
    record = copy.deepcopy(next(body for body in build_run_record(bodies) if body["kind"] == "MPIJob"))
    del record["spec"]["runPolicy"]["suspend"]
    with pytest.raises(Exception, match="immutable"):
        site.lab.client.apply(record, dry_run=True)
    site.end(run)


def test_a_launcher_that_fails_is_retried_until_the_run_fails(site: Site) -> None:
    """The spec has retries: 2, so there are three launchers, with the workers of the first."""
    fails = Story(Plot.FAIL, after=0.1, namespace=HOME)
    site.lab.tell(HOLD)
    run, _ = site.start("wave")
    site.ready(run)
    site.lab.tell(fails, instead_of=[HOLD])
    body = site.until(run, "Failed")
    site.lab.forget(fails)
    assert find_health_state(MPIJOB_HEALTH, body).word == "failed"
    tries = site.lab.client.list("Pod", HOME, labels=f"{NAME}={run.name},{ROLE}=launcher")
    assert len(tries) == 3
    site.end(run)


# Each change of an MPIJob; the operator refuses some of them.
CHANGES: dict[str, tuple[tuple[str, ...], Any]] = {
    "as it is": ((), None),
    "no such cleaning": (("runPolicy", "cleanPodPolicy"), "Always"),
    "negative backoff": (("runPolicy", "backoffLimit"), -1),
    "negative deadline": (("runPolicy", "activeDeadlineSeconds"), -1),
    "two launchers": (("mpiReplicaSpecs", "Launcher", "replicas"), 2),
    "no worker": (("mpiReplicaSpecs", "Worker", "replicas"), 0),
    "always restarting": (("mpiReplicaSpecs", "Worker", "restartPolicy"), "Always"),
    "by exit code": (("mpiReplicaSpecs", "Launcher", "restartPolicy"), "ExitCode"),
    "restarting launcher": (("mpiReplicaSpecs", "Launcher", "restartPolicy"), "OnFailure"),
    "another manager": (("runPolicy", "managedBy"), "example.com/mine"),
    "slots below zero": (("slotsPerWorker",), -1),
    "no slots": (("slotsPerWorker",), 0),
    "name too long": (("mpiReplicaSpecs", "Worker", "replicas"), 11),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_operator_refuses_what_gangplan_says_it_refuses(change: str, site: Site) -> None:
    """It refuses by an event, because it has no webhook.

    The MPIJobs are suspended, so that nothing starts, and have no queue, so that Kueue ignores them.
    """
    run, bodies = site.runs["heat"]
    path, value = CHANGES[change]
    body = copy.deepcopy(bodies[-1])
    number = list(CHANGES).index(change)
    length = 52 if change == "name too long" else 8  # with -worker-10 a character too many
    body["metadata"] = {"name": f"{'a' * length}-{number}", "namespace": HOME}
    body["spec"]["runPolicy"]["suspend"] = True
    at = body["spec"]
    for step in path[:-1]:
        at = at[step]
    if path:
        at[path[-1]] = value
    told = [
        one.rule
        for one in check_object_consistency(body, [body], choose_schema_versions_of(run.unit.job.platform))
    ]
    site.lab.client.apply(body)
    name = body["metadata"]["name"]

    def answer() -> bool:
        return bool(events(site, name)) or bool(
            (site.lab.client.get("MPIJob", name, HOME).get("status") or {}).get("conditions")
        )

    is_theirs = path[-1:] == ("managedBy",)  # the operator ignores what another controller manages
    if not is_theirs:
        poll(answer, PATIENCE, lambda: "the operator says nothing")
        assert ("mpijob-refused" in told) == bool(events(site, name)), (told, events(site, name))
    site.lab.client.delete("MPIJob", name, HOME)


def events(site: Site, name: str) -> list[str]:
    """Return the operator's complaints about an MPIJob."""
    every = site.lab.client.list("Event", HOME)
    return [
        one["message"]
        for one in every
        if one["reason"] == "ValidationError" and one["involvedObject"]["name"] == name
    ]


PACKS = "policies: {packs: [baseline, restricted, images, lifecycle, priorities, data, network]}\n"
# A breach of each policy; what the server answers must be what `validate` reports.
BREACHES: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "run-deadline": (("runPolicy", "activeDeadlineSeconds"), None),
    "run-restarts": (("runPolicy", "backoffLimit"), 50),
    "image-catalog": (
        ("mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0, "image"),
        f"registry.example.com/hpc/unknown@sha256:{'0' * 64}",  # a tag would breach image-digest, too
    ),
    "service-token": (
        ("mpiReplicaSpecs", "Launcher", "template", "spec", "automountServiceAccountToken"),
        None,
    ),
    "privilege-escalation": (
        (
            *("mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0),
            *("securityContext", "allowPrivilegeEscalation"),
        ),
        True,
    ),
}


def _with(body: Object, path: tuple[str | int, ...], value: Any) -> Object:
    """Return the MPIJob with another value at a path of its spec, or without that field for None."""
    changed = copy.deepcopy(body)
    at: Any = changed["spec"]
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return changed


def test_policies_of_packs_admit_good_mpijobs_and_refuse_breaches(site: Site, tmp_path: Path) -> None:
    """The API server accepts the policies as rendered for this cluster; good runs pass, breaches are
    refused."""
    files = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text()
        for path in EXAMPLE.rglob("*.yaml")
        if ".gangplan" not in path.parts
    }
    files["overlays/hpc/cluster.yaml"] += PACKS
    result = preview_render(Request(write(tmp_path, files), engine="serial"))
    assert not result.has_errors, result.findings
    client = site.lab.client
    policies = load_objects(result.texts["hpc/platform/policies.yaml"])
    run = next(one for one in result.runs if one.unit.job.name == "wave")
    good = load_objects(result.texts[run.path])[-1]

    def refused(body: Object) -> str:
        try:
            client.apply(body, dry_run=True)
        except ApiError as error:
            return error.message
        return ""

    def is_refused(body: Object, by: str) -> bool:
        return by in refused(body)

    try:
        for body in policies:
            assert client.apply_patiently(body).warnings == ()
        for policy, (path, value) in BREACHES.items():
            denied = partial(is_refused, _with(good, path, value), f"'gangplan-{policy}'")
            poll(denied, PATIENCE, partial(refused, _with(good, path, value)))
        assert refused(good) == ""
        for body in policies:
            if body["kind"] == "ValidatingAdmissionPolicy":
                live = client.get(body["kind"], body["metadata"]["name"])
                checked = (live.get("status") or {}).get("typeChecking") or {}
                assert not checked.get("expressionWarnings"), live
    finally:  # what they refuse must not affect other tests
        for body in policies:
            if body["kind"] == "ValidatingAdmissionPolicy":
                client.delete(body["kind"], body["metadata"]["name"])
