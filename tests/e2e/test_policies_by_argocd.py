"""Argo CD brings policies as `render` writes them to the lab: from Audit to Deny, and away again."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.checks import build_policy_checker
from gangplan.policy.export import export_objects
from gangplan.policy.objects import POLICY_FILE
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.e2e.policies import ask
from tests.e2e.policies.server import REFUSED, Server
from tests.e2e.shop import spec_here
from tests.e2e.test_argocd import Shop, opened
from tests.lab import build, fixtures, programs
from tests.lab.argocd import NAMESPACE
from tests.lab.client import ApiError, condition, poll
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The sample cluster of the profile with every pack, which only audits, followed by Argo CD."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if build.missing([programs.ARGOCD]) and (trouble := build.problem()):
        pytest.skip(f"Argo CD cannot be built: {trouble}")
    cluster = story.cluster_of(profile.trainer, profile.kueue)
    if cluster is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name}")
    root = ask.workspace(tmp_path_factory.mktemp("workspace"), cluster)
    file = root / "overlays" / cluster / "cluster.yaml"
    file.write_text(file.read_text().replace("policies: {packs:", "policies: {enforcement: Audit, packs:"))
    repository = GitRepository(root)
    with Lab(profile) as lab:
        server = Server(lab.client)
        server._keep()  # see its docstring: no watch of parameters may end in this lab
        with secrets_ready(lab):
            yield opened(lab, repository, cluster)


@contextmanager
def secrets_ready(lab: Lab) -> Iterator[None]:
    """Simulate the External Secrets Operator: Argo CD waits for each ExternalSecret before it goes on."""
    over = threading.Event()
    ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "SecretSynced"}]}

    def act() -> None:
        while not over.wait(1):
            with suppress(ApiError, LookupError):
                for one in lab.client.list("ExternalSecret"):
                    if "status" not in one:
                        home = one["metadata"]["namespace"]
                        name = one["metadata"]["name"]
                        lab.client.patch("ExternalSecret", name, {"status": ready}, home, part="status")

    operator = threading.Thread(target=act, daemon=True)
    operator.start()
    try:
        yield
    finally:
        over.set()
        operator.join(10)


def enforced(shop: Shop, action: str) -> list[str]:
    """Change what the cluster enforces, and sync; return what `validate --base` reports in the pull
    request."""
    file = f"overlays/{shop.cluster}/cluster.yaml"
    text = (shop.root / file).read_text()
    before = text.partition("enforcement: ")[2].partition(",")[0]
    (shop.root / file).write_text(text.replace(f"enforcement: {before}", f"enforcement: {action}"))
    outcome = gangplan("validate", "-C", shop.root, "--cluster", shop.cluster, "--base", "HEAD")
    shop.synced(shop.change({}))
    Server(shop.lab.client).settle()
    return [line for line in outcome.err.splitlines() if "policy-enforced" in line]


def applied(shop: Shop) -> list[Object]:
    """Return the policy objects of the repository."""
    return load_objects((shop.root / "rendered" / shop.cluster / POLICY_FILE).read_text())


def there(shop: Shop, body: Object) -> Object | None:
    """Return the same object in the cluster."""
    metadata = body["metadata"]
    kind = f"{body['apiVersion']}/{body['kind']}"
    return shop.lab.client.find(kind, metadata["name"], metadata.get("namespace"))


def run_of(shop: Shop) -> dict[str, Object]:
    """Return the objects of a run of this cluster, by kind, under an unused name."""
    found = world.run_files(shop.root / "rendered" / shop.cluster)
    bodies = [body for body in load_objects(found[0].read_text()) if body["kind"] != "NetworkPolicy"]
    text = json.dumps(bodies).replace(found[0].stem, "mallory-0a1b2c3d")
    return {body["kind"]: body for body in json.loads(text)}


def privileged(runtime: Object) -> Object:
    """Return the runtime with a privileged container."""
    bad = copy.deepcopy(runtime)
    job = bad["spec"]["template"]["spec"]["replicatedJobs"][-1]["template"]["spec"]["template"]["spec"]
    job["containers"][0].setdefault("securityContext", {})["privileged"] = True
    return bad


def said_by_ci(shop: Shop, body: Object) -> dict[str, str]:
    """Return gangplan's messages about an object, by policy."""
    texts = preview_render(Request(shop.root, (shop.cluster,), engine="serial", jobs=1)).texts
    standing = [body for path, text in texts.items() if "/tenants/" in path for body in load_objects(text)]
    checker = build_policy_checker(load_workspace(shop.root), shop.cluster, standing)
    return {one.policy.name: one.message for one in checker.evaluator.judge([body])}


def refusal(shop: Shop, body: Object) -> tuple[str, str]:
    """Return the policy that refuses an object, without our prefix, and its message; empty if none does."""
    found = REFUSED.search(Server(shop.lab.client).ask(body).refusal)
    return (found[1].removeprefix("gangplan-"), found[3]) if found else ("", "")


def test_every_policy_is_applied_and_type_checked(shop: Shop) -> None:
    """Argo CD finds nothing to change, and the server has no warning about any expression."""
    bodies = applied(shop)
    assert [one["kind"] for one in bodies].count(POLICY_KIND) > 40
    assert bodies == export_objects(load_workspace(shop.root), shop.cluster)
    warnings = []
    for body in bodies:
        found = there(shop, body)
        assert found is not None, body["metadata"]["name"]
        assert not [line for line in drift(body, found) if "/tracking-id was added" not in line]
        if body["kind"] == POLICY_KIND:
            name, wanted = body["metadata"]["name"], found["metadata"]["generation"]
            checked = shop.lab.client.wait(
                body["kind"],
                name,
                until=lambda one, wanted=wanted: one.get("status", {}).get("observedGeneration") == wanted,
            )
            said = checked["status"].get("typeChecking", {}).get("expressionWarnings", ())
            warnings += [(name, one["fieldRef"], one["warning"]) for one in said]
    assert not warnings, "\n".join(map(str, warnings))


def test_policies_under_audit_refuse_nothing(shop: Shop) -> None:
    bad = privileged(run_of(shop)["TrainingRuntime"])
    assert "privileged" in said_by_ci(shop, bad)
    assert refusal(shop, bad) == ("", "")


def test_runs_from_audit_go_on_under_deny_and_new_ones_are_refused(shop: Shop) -> None:
    """What was created under Audit is started, preempted and ended under Deny; anything new is refused."""
    client, objects = shop.lab.client, run_of(shop)
    job, runtime = (unlabelled(objects[kind]) for kind in ("TrainJob", "TrainingRuntime"))
    home, name = job["metadata"]["namespace"], job["metadata"]["name"]
    hold = Story(Plot.RUN, namespace=None, run=None)
    shop.lab.tell(hold)
    client.apply(runtime)
    client.apply_patiently(job)
    assert "run-labels" in said_by_ci(shop, job)
    workload = workload_of(shop, name, home)
    client.patch("Workload", workload, {"spec": {"active": False}}, home)
    client.wait("TrainJob", name, home, until=lambda one: one["spec"].get("suspend") is True, timeout=60)

    said = enforced(shop, "Deny")
    assert any("refuses what breaks" in line and "only audited until now" in line for line in said)
    other = {**job, "metadata": {**job["metadata"], "name": "mallory-2"}}
    policy, words = refusal(shop, other)
    assert said_by_ci(shop, other)[policy] == words

    # Kueue starts and preempts it, and no policy may refuse its end.
    client.patch("Workload", workload, {"spec": {"active": True}}, home)
    client.wait("TrainJob", name, home, until=lambda one: one["spec"].get("suspend") is False, timeout=60)
    client.patch("Workload", workload, {"spec": {"active": False}}, home)
    client.wait("TrainJob", name, home, until=lambda one: one["spec"].get("suspend") is True, timeout=60)
    shop.lab.forget(hold)
    client.delete("TrainJob", name, home, foreground=True)
    client.wait_gone("TrainJob", name, home, timeout=60)
    client.delete("TrainingRuntime", runtime["metadata"]["name"], home)
    client.wait_gone("TrainingRuntime", runtime["metadata"]["name"], home, timeout=60)


def unlabelled(body: Object) -> Object:
    """Return the object without most labels and annotations that policies require."""
    bare = copy.deepcopy(body)
    for name in ("gangplan.dev/job", "gangplan.dev/team", "gangplan.dev/cost-centre"):
        bare["metadata"]["labels"].pop(name, None)
    bare["metadata"]["annotations"] = {}
    return bare


def workload_of(shop: Shop, run: str, home: str) -> str:
    """Return the name of a run's Workload, once Kueue has created it."""
    found: list[str] = []

    def is_there() -> bool:
        for one in shop.lab.client.list("Workload", home):
            if any(owner["name"] == run for owner in one["metadata"].get("ownerReferences", ())):
                found.append(one["metadata"]["name"])
        return bool(found)

    poll(is_there, 30, lambda: f"{run} has no Workload")
    return found[0]


def test_policies_judge_people_and_not_controllers(shop: Shop) -> None:
    """The same change of an existing run is refused to a person, and allowed to Kueue."""
    client = shop.lab.client
    run = next(one for one in client.list("TrainJob") if condition(one, "Complete") == "True")
    metadata = run["metadata"]
    path = client.resource("TrainJob").path(metadata["namespace"], metadata["name"])
    change = {"metadata": {"labels": {"gangplan.dev/run": None}}}

    def patch(user: str) -> str:
        headers = {
            "Content-Type": "application/merge-patch+json",
            "Impersonate-User": user,
            "Impersonate-Group": "system:masters",
        }
        try:
            client.request("PATCH", path, change, query={"dryRun": "All"}, headers=headers)
        except ApiError as error:
            return error.message
        return ""

    assert "gangplan-run-labels" in patch("mallory@example.com")
    assert patch(KUEUE) == ""


def test_a_sync_is_refused_with_the_message_of_validate(shop: Shop) -> None:
    """A run was merged bypassing CI: Argo CD gets the message that the pull request would have shown."""
    bad = privileged(run_of(shop)["TrainingRuntime"])
    words = said_by_ci(shop, bad)["privileged"]
    team = bad["metadata"]["labels"]["gangplan.dev/team"]
    name, file = f"{shop.cluster}-runs-{team}", f"rendered/{shop.cluster}/runs/{team}/mallory.yaml"
    shop.repository.commit({file: json.dumps(bad)}, message="past CI")
    shop.argocd.refresh(name)

    def is_refused(found: Object) -> bool:
        return f"denied request: {words}" in json.dumps(found["status"], ensure_ascii=False)

    shop.lab.client.wait("Application", name, NAMESPACE, until=is_refused, timeout=90)
    assert (
        shop.lab.client.find("TrainingRuntime", bad["metadata"]["name"], bad["metadata"]["namespace"]) is None
    )
    revision = shop.repository.commit({file: None}, message="without it")
    # As `argocd app terminate-op` does: attempts at the old revision would go on for minutes.
    ended = {"status": {"operationState": {"phase": "Terminating"}}}
    shop.lab.client.patch("Application", name, ended, NAMESPACE)
    shop.argocd.refresh(name)
    shop.synced(revision)


def test_a_stopped_run_becomes_a_record_under_deny(shop: Shop) -> None:
    """Records are made by deleting and creating: no policy prevents a run's end."""
    source = spec_here(shop)
    text = (shop.root / source).read_text()
    (run,) = [
        path.stem for path in shop.root.rglob(f"rendered/{shop.cluster}/runs/*/{Path(source).stem}-*.yaml")
    ]
    home, uid = next(
        (one["metadata"]["namespace"], one["metadata"]["uid"])
        for one in shop.lab.client.list("TrainJob")
        if one["metadata"]["name"] == run
    )
    shop.synced(shop.change({source: f"{text}state: stopped\n"}))
    record = shop.lab.client.wait(
        "TrainJob", run, home, until=lambda one: one["spec"].get("suspend") is True, timeout=60
    )
    assert record["metadata"]["uid"] != uid


def test_the_objects_of_a_removed_pack_are_deleted(shop: Shop) -> None:
    """Bindings are deleted first: no request is ever refused because a parameter is missing."""
    bad = unlabelled(run_of(shop)["TrainJob"])
    assert refusal(shop, bad) != ("", "")
    before = {(one["kind"], one["metadata"]["name"]) for one in applied(shop)}
    file = f"overlays/{shop.cluster}/cluster.yaml"
    text = (shop.root / file).read_text()
    _, _, rest = text.partition("packs: [")
    packs = rest.partition("]")[0]
    left = [one for one in packs.split(", ") if one not in ("labels", "lifecycle")]
    revision = shop.change({file: text.replace(packs, ", ".join(left))})
    after = {(one["kind"], one["metadata"]["name"]) for one in applied(shop)}
    assert (BINDING_KIND, "gangplan-run-labels") in before - after
    refusals = set()
    end = time.monotonic() + 90
    name = f"{shop.cluster}-platform"
    while time.monotonic() < end:
        said = Server(shop.lab.client).ask(bad).refusal
        refusals |= {said} if "no params found" in said else set()
        status = shop.argocd.get(name)["status"]
        if status["sync"].get("revision") == revision and status["sync"]["status"] == "Synced":
            break
    shop.synced(revision)
    assert not refusals
    for kind, one in sorted(before - after):
        home = "gangplan-policies" if kind == "ConfigMap" else None
        poll(
            lambda kind=kind, one=one, home=home: shop.lab.client.find(kind, one, home) is None,  # type: ignore[misc]
            30,
            lambda kind=kind, one=one: f"{kind} {one} is still there",  # type: ignore[misc]
        )
    assert refusal(shop, bad)[0] not in {"run-labels", "owner-labels", "retention"}


def test_all_applications_end_in_sync(shop: Shop) -> None:
    for name in shop.applications:
        assert shop.argocd.get(name)["status"]["sync"]["status"] == "Synced", name
