"""Commands that look at a cluster, with the lab's real control plane; none of them writes anything."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.errors import Exit
from gangplan.live.access import ApiRefusedError, connect_to_cluster
from gangplan.live.contexts import ContextChoice
from gangplan.live.refusals import parse_server_refusals
from gangplan.live.served import KindCatalog
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e import story, world
from tests.e2e.test_health import POOL, SPEC, Site
from tests.lab import fixtures
from tests.lab.client import ApiError, Object, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
PATIENCE = 60.0
TIME = "2026-11-23T08:00:00Z"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a lab of its own with one team's queue and one node."""
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
    with Lab(profile, nodes=()) as lab:
        lab.add_nodes(world.nodes(load_workspace(root).clusters["lab"].spec))
        found = Site(lab, root)
        found.bodies("first")
        texts = preview_render(Request(root)).texts
        for path in world.before_runs(texts):
            for body in load_objects(texts[path]):
                lab.client.apply_patiently(body, timeout=60)
        yield found


def look(site: Site, *arguments: str | Path) -> workspaces.Outcome:
    """Run a command with the lab's kubeconfig."""
    return gangplan(*arguments, "-C", site.root, "--kubeconfig", site.lab.kubeconfig)


def test_a_snapshot_describes_the_cluster(site: Site) -> None:
    name = site.start("seen", Plot.RUN)
    site.expect("running", "TrainJob", name, "running")
    outcome = look(site, "cluster", "snapshot", "lab", "--observed", TIME)
    assert outcome.code == Exit.CLEAN, outcome.err
    path = site.root / "observed/lab.json"
    body = json.loads(path.read_text())
    assert body["versions"]["kubernetes"] == site.lab.profile.kubernetes
    assert body["nodes"][0]["pool"] == "cpu"
    assert body["nodes"][0]["count"] == 1
    assert body["trainJobs"] == {"nlp": {"running": 1}}
    assert body["crds"]["trainjobs.trainer.kubeflow.org"] == ["v1alpha1"]
    assert "observed-" not in outcome.err, outcome.err

    def is_the_same() -> bool:
        """Return whether a second snapshot has the same bytes; a run that has just started may still get a
        pod."""
        before = path.read_bytes()
        look(site, "cluster", "snapshot", "lab", "--observed", TIME)
        return path.read_bytes() == before

    poll(is_the_same, 30, lambda: "two snapshots always differ")
    # Commands that accept the output of kubectl accept a snapshot, too.
    quota = gangplan("cluster", "quota", "lab", "-C", site.root, "--usage", path, "--format", "json")
    assert quota.code == Exit.CLEAN, quota.err
    assert '"used": "41"' in quota.out
    assert gangplan("plan", "-C", site.root, "--usage", path).code == Exit.CLEAN


def test_init_from_a_cluster_writes_a_valid_workspace(site: Site, tmp_path: Path) -> None:
    """`init --from-cluster` on a real server writes versions, nodes and queue, and the workspace is clean."""
    root = tmp_path / "jobs"
    flags = ("--team", "nlp", "--cluster", "lab", "--from-cluster", "--sync", "none")
    outcome = gangplan("init", root, *flags, "--kubeconfig", site.lab.kubeconfig)
    assert outcome.code == Exit.CLEAN, outcome.err
    written = yaml.safe_load((root / "overlays/lab/cluster.yaml").read_text())
    assert written["versions"]["kubernetes"] == site.lab.profile.kubernetes
    ((name, pool),) = written["nodePools"].items()
    assert (name, pool["count"], pool["cpu"], pool["memory"]) == ("cpu", 1, 60, "240Gi")
    assert written["teams"] == {"nlp": {"queue": "training"}}
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    checked = gangplan("validate", "-C", root)
    assert checked.code == Exit.CLEAN, checked.err


def test_differences_between_cluster_file_and_cluster_are_found(site: Site, tmp_path: Path) -> None:
    """Each difference is reported at its line, from the live cluster and from the snapshot file alike."""
    root = tmp_path / "other"
    shutil.copytree(site.root, root)
    file = root / "overlays/lab/cluster.yaml"
    text = file.read_text().replace("count: 1, cpu: 60", "count: 3, cpu: 90")
    trainer, kueue = ("2.1.0", "0.15.2") if site.lab.profile.name != "old" else ("2.3.0", "0.19.2")
    text = text.replace(f'trainer: "{site.lab.profile.trainer}"', f'trainer: "{trainer}"')
    text = text.replace(f'kueue: "{site.lab.profile.kueue}"', f'kueue: "{kueue}"')
    file.write_text(text + "storageClasses: {cephfs: {accessModes: [ReadWriteMany]}}\n")
    arguments = ("cluster", "snapshot", "lab", "-C", root, "--kubeconfig", site.lab.kubeconfig)
    outcome = gangplan(*arguments, "--observed", TIME)
    assert outcome.code == Exit.FINDINGS, outcome.err
    found = {(shown.place.rpartition(":")[0], shown.rule) for shown in outcome.findings}
    line = {
        name: 1 + [name in one for one in file.read_text().splitlines()].index(True)
        for name in ("cpu: 90", "cephfs")
    }
    place = "overlays/lab/cluster.yaml"
    assert found == {
        (f"{place}:3", "observed-kind"),
        (f"{place}:{line['cpu: 90']}", "observed-nodes"),
        (f"{place}:{line['cephfs']}", "observed-class"),
    }, outcome.err
    offline = gangplan("cluster", "check", "-C", root, "--snapshot", root / "observed/lab.json")
    assert offline.code == Exit.FINDINGS
    assert {(one.place, one.message) for one in outcome.findings} <= {
        (one.place, one.message) for one in offline.findings
    }


def test_versions_are_read_from_images(site: Site) -> None:
    image = "registry.k8s.io/kueue/kueue:v0.11.0"
    labels = {"app": "kueue"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": image}]},
            },
        },
    }
    site.lab.client.apply(body)
    outcome = look(site, "cluster", "snapshot", "lab", "--observed", TIME, "-o", "-")
    site.lab.client.delete("Deployment", "kueue", "default")
    poll(lambda: not site.lab.client.find("Deployment", "kueue", "default"), PATIENCE, lambda: "still there")
    assert outcome.code == Exit.FINDINGS
    (shown,) = [one for one in outcome.findings if one.rule == "observed-version"]
    assert "the cluster has Kueue 0.11.0" in shown.message


# Runs


def states(site: Site, *more: str) -> dict[str, dict[str, object]]:
    """Return what `status` shows for each job."""
    outcome = look(site, "status", "--format", "json", *more)
    assert outcome.code == Exit.CLEAN, outcome.err
    rows = {row["run"].rpartition("-")[0]: row for row in json.loads(outcome.out)["runs"]}
    assert {row["cluster"] for row in rows.values()} <= {"lab"}
    return rows


def await_state(site: Site, job: str, word: str, said: str = "") -> dict[str, object]:
    """Return the row of a job once it is in a state, for a reason."""
    found: dict[str, object] = {}

    def holds() -> bool:
        found.clear()
        found.update(states(site).get(job, {}))
        return found.get("state") == word and said in str(found.get("reason"))

    poll(holds, PATIENCE, lambda: f"{job} is not {word}: {found}", every=0.5)
    return found


def clear(site: Site) -> None:
    """Delete all runs of the test before."""
    for kind in ("TrainJob", "TrainingRuntime", "NetworkPolicy"):
        for item in site.lab.client.list(kind, "nlp", "gangplan.dev/run"):
            site.lab.client.delete(kind, item["metadata"]["name"], "nlp")
    poll(lambda: not site.lab.client.list("Workload", "nlp"), PATIENCE, lambda: "Workloads stay")
    for path in (site.root / "specs/nlp").glob("*.yaml"):
        if path.name != "team.yaml":
            path.unlink()


def test_status_of_active_and_waiting_runs(site: Site) -> None:
    """Running, waiting and for what, preempted, in Git only, on the cluster only."""
    clear(site)
    site.start("low", Plot.RUN, "priority: low\n")
    assert await_state(site, "low", "running")["git"] is None
    site.start("waits", Plot.RUN, "priority: low\n")
    await_state(site, "waits", "queued", "waits for quota: 22 CPU more in pool cpu")
    workspaces.render(site.root)
    assert states(site)["low"]["git"] == "active"
    site.start("high", Plot.RUN, "priority: high\n")
    why = "preempted for a run in queue nlp: prioritization in the ClusterQueue"
    await_state(site, "low", "preempted", why)
    await_state(site, "high", "running")
    workspaces.render(site.root)
    (site.root / "specs/nlp/waits.yaml").unlink()
    workspaces.render(site.root)
    assert "not in rendered/" in str(states(site)["waits"]["reason"])
    site.bodies("unsynced")
    workspaces.render(site.root)
    rows = states(site, "--team", "nlp")
    assert rows["unsynced"]["state"] == "missing"
    table = look(site, "status").out
    assert table.splitlines()[0].split()[:4] == ["run", "team", "cluster", "state"]
    assert len(table.splitlines()) == 5, table


def test_status_of_ended_runs(site: Site) -> None:
    clear(site)
    site.start("fails", Plot.FAIL)
    row = await_state(site, "fails", "failed")
    assert "ended with 1" in str(row["reason"]) or "job failures" in str(row["reason"]), row
    site.start("done", Plot.FINISH)
    await_state(site, "done", "complete")
    site.start("stuck", Plot.PENDING)
    await_state(site, "stuck", "admitted", "1 of 1 pods: its image cannot be pulled")


def test_diagnose_finds_the_cause_from_the_server_and_from_saved_objects(site: Site, tmp_path: Path) -> None:
    """What real controllers write gets the same verdict, read from the server or saved as kubectl does."""
    clear(site)
    wanted = {
        ("fails", Plot.FAIL, ""): ("failed", {"program-failed", "job-failed"}),
        ("evicted", Plot.EVICT, ""): ("failed", {"evicted-memory"}),
        ("stuck", Plot.PENDING, ""): ("admitted", {"image-pull"}),
        ("waits", Plot.RUN, ""): ("queued", {"quota-wait"}),
    }
    for (job, plot, more), (state, causes) in wanted.items():
        name = site.start(job, plot, more)
        await_state(
            site, job, state, *(("1 of 1 pods: its image cannot be pulled",) if job == "stuck" else ())
        )
        workspaces.render(site.root)
        asked = look(site, "diagnose", "--server", "--run", name, "--format", "json")
        kinds = ("TrainJob", "JobSet", "Job", "Pod", "Workload", "Event")
        items = [body | {"kind": kind} for kind in kinds for body in site.lab.client.list(kind, "nlp")]
        (tmp_path / "saved.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        saved = look(site, "diagnose", str(tmp_path / "saved.json"), "--run", name, "--format", "json")
        for outcome in (asked, saved):
            assert outcome.code == Exit.FINDINGS, outcome.err
            (run,) = json.loads(outcome.out)["runs"]
            assert (run["run"], run["state"]) == (name, state)
            assert run["causes"][0]["id"] in causes, json.dumps(run["causes"], indent=1)
    text = look(site, "diagnose", str(tmp_path / "saved.json")).out
    assert text.count("\nrun ") + text.startswith("run ") == len(wanted), text


def test_logs_of_the_pods_of_a_run(site: Site) -> None:
    """The real API server asks the node's kubelet for logs. The lab has none, so the test starts one."""
    clear(site)
    name = site.start("talks", Plot.RUN)
    await_state(site, "talks", "running")
    # The first pod that runs makes it running; the launcher's may come later.
    poll(lambda: len(site.lab.client.list("Pod", "nlp")) == 2, PATIENCE, lambda: "a pod is missing")
    workspaces.render(site.root)
    outcome = look(site, "logs", name, "--all")
    assert outcome.code == Exit.ENVIRONMENT, "no kubelet, no log, no success"
    labels = [line.partition(" | ")[0].strip() for line in outcome.err.splitlines()]
    assert labels == ["launcher", "worker 0"], outcome.err
    assert look(site, "logs", name, "--worker", "7").code == Exit.ENVIRONMENT
    with kubelet(site.lab) as asked:
        for which in (name, "specs/nlp/talks.yaml"):
            outcome = look(site, "logs", which, "--all", "--tail", "5")
            assert outcome.code == Exit.CLEAN, outcome.err
            pods = [line.partition(" | ")[2] for line in outcome.out.splitlines()]
            assert [pod.partition("-0-0")[0] for pod in pods] == [f"{name}-launcher", f"{name}-node"], (
                outcome.out
            )
        followed = look(site, "logs", name, "--all", "--follow")
        assert len(followed.out.splitlines()) == 2, followed.err
        assert all("/node?" in path for path in asked), "the container of the training program"
    clear(site)
    workspaces.write(site.root, {"specs/nlp/talks.yaml": f"{SPEC}timeout: 1h\nretries: 0\n"})
    poll(lambda: not site.lab.client.list("Pod", "nlp"), PATIENCE, lambda: "pods stay")
    outcome = look(site, "logs", name)
    assert outcome.code == Exit.ENVIRONMENT
    assert "has no pods on cluster lab: it is missing" in outcome.err


@contextmanager
def kubelet(lab: Lab) -> Iterator[list[str]]:
    """Run a kubelet for all nodes whose logs are the pods' names; yield the paths that were requested."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{self.path.split('/')[3]}\n".encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(lab.site.identity.certificate, lab.site.identity.key)
    web.socket = context.wrap_socket(web.socket, server_side=True)
    threading.Thread(target=web.serve_forever, args=(0.05,), daemon=True).start()
    there = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": web.server_port}},
    }
    try:
        for node in lab.client.list("Node"):
            lab.client.patch("Node", node["metadata"]["name"], {"status": there}, part="status")
        yield asked
    finally:
        web.shutdown()
        web.server_close()


# Asking by dry run


def versions(lab: Lab) -> dict[tuple[str, str, str], str]:
    """Return the resourceVersion of every object, except for those that change by themselves."""
    found = {}
    kinds = {served.kind: name for name, served in lab.client.discover().items() if "/" in name}
    for kind, name in kinds.items():
        if kind in ("Lease", "Event", "Node", "ComponentStatus") or kind.endswith(("Review", "Metrics")):
            continue
        try:
            items = lab.client.list(name)
        except (ApiError, KeyError):
            continue  # nothing that can be listed
        for item in items:
            metadata = item["metadata"]
            found[kind, metadata.get("namespace", ""), metadata["name"]] = metadata["resourceVersion"]
    return found


def server(site: Site, *more: str | Path) -> workspaces.Outcome:
    """Run `validate --server`, and check that it changes no object."""
    workspaces.render(site.root)
    before: dict[tuple[str, str, str], str] = {}

    def settled() -> bool:
        last = dict(before)
        before.clear()
        before.update(versions(site.lab))
        return last == before

    poll(settled, PATIENCE, lambda: "controllers go on writing", every=2)
    outcome = look(site, "validate", "--server", *more)
    assert versions(site.lab) == before
    assert len(before) > 50
    return outcome


def told(outcome: workspaces.Outcome) -> dict[str, list[workspaces.Shown]]:
    """Return the findings that servers cause, by rule."""
    found: dict[str, list[workspaces.Shown]] = {}
    for one in outcome.findings:
        if one.rule.startswith("server-"):
            found.setdefault(one.rule, []).append(one)
    return found


@pytest.fixture
def fresh(site: Site) -> Iterator[Site]:
    """Yield the site with one new run that no server has seen; delete what a test puts onto the cluster."""
    clear(site)
    workspaces.write(site.root, {"specs/nlp/asked.yaml": f"{SPEC}timeout: 1h\nretries: 0\n"})
    put: list[tuple[str, str, str | None]] = []
    site.lab.put = put  # type: ignore[attr-defined]
    yield site
    for kind, name, namespace in put:
        site.lab.client.delete(kind, name, namespace)
    clear(site)


def put(site: Site, *bodies: Object) -> None:
    """Put objects onto the cluster until the end of the test."""
    for body in bodies:
        site.lab.client.apply(body)
        metadata = body["metadata"]
        site.lab.put.append((body["kind"], metadata["name"], metadata.get("namespace")))  # type: ignore[attr-defined]


def test_a_server_accepts_what_gangplan_renders(fresh: Site) -> None:
    """For a new run, Trainer's webhook cannot be asked: its runtime is not there before the sync."""
    outcome = server(fresh)
    assert outcome.code == Exit.CLEAN, outcome.err
    found = told(outcome)
    assert set(found) <= {"server-unasked", "server-advice"}, outcome.err
    (shown,) = found["server-unasked"]
    assert "their runtime is not there yet" in shown.message
    assert "1 object" in shown.message
    # Once it is there, everything is asked and accepted.
    for body in fresh.bodies("asked"):
        fresh.lab.client.apply_patiently(body, timeout=60)
    assert "server-unasked" not in told(server(fresh))


def test_refusals_of_a_server_are_reported_with_their_source(fresh: Site) -> None:
    """Refusals by a policy and by a quota are reported at the spec, with the object that refused."""
    bodies = fresh.bodies("asked")
    name = bodies[-1]["metadata"]["name"]
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "site-names"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["trainer.kubeflow.org"],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["trainjobs"],
                    }
                ]
            },
            "validations": [
                {"expression": "object.spec.trainer.numNodes > 7", "message": "you cannot have so few"}
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "site-names"},
        "spec": {"policyName": "site-names", "validationActions": ["Deny"]},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "nlp"},
        "spec": {"hard": {"count/networkpolicies.networking.k8s.io": "0"}},
    }
    put(fresh, policy, binding, quota)
    found: dict[str, list[workspaces.Shown]] = {}

    def seen() -> bool:
        found.clear()
        found.update(told(look(fresh, "validate", "--server")))
        return {"server-policy", "server-quota"} <= set(found)

    poll(seen, PATIENCE, lambda: f"not refused: {found}", every=1)
    (shown,) = found["server-policy"]
    assert shown.place.startswith("specs/nlp/asked.yaml:")
    assert (
        f"TrainJob/nlp/{name}: policy site-names of lab refuses it: you cannot have so few" in shown.message
    )
    (shown,) = found["server-quota"]
    assert shown.severity == "warning"
    assert "exceeded quota: few" in shown.message
    assert server(fresh).code == Exit.FINDINGS


def test_a_change_of_an_immutable_field_is_reported(fresh: Site) -> None:
    """The server has a run of the same name and another size: it refuses ours, at a line of the spec."""
    if fresh.lab.profile.name == "old":
        pytest.skip("TrainJobs of Trainer 2.1 may change")
    *others, job = fresh.bodies("asked")
    for body in others:
        fresh.lab.client.apply_patiently(body, timeout=60)
    job["spec"]["trainer"]["numNodes"] = 2
    job["spec"]["suspend"] = True
    fresh.lab.client.apply_patiently(job, timeout=60)
    outcome = server(fresh)
    assert outcome.code == Exit.FINDINGS, outcome.err
    found = told(outcome)
    assert set(found) & {"server-schema", "server-webhook"}, outcome.err
    places = [one.place for rule in ("server-schema", "server-webhook") for one in found.get(rule, [])]
    assert all(place.startswith("specs/nlp/asked.yaml:") for place in places), outcome.err


def test_objects_that_cannot_be_asked_about_are_reported(fresh: Site) -> None:
    """The cases are a team whose namespace is not there yet, and a webhook that does not answer."""
    workspaces.write(
        fresh.root,
        {
            "specs/vision/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n",
            "overlays/lab/cluster.yaml": (fresh.root / "overlays/lab/cluster.yaml")
            .read_text()
            .replace("  nlp: {queue: training}", "  nlp: {queue: training}\n  vision: {queue: vision}"),
        },
    )
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gone"},
        "webhooks": [
            {
                "name": "gone.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/never"},
                "rules": [
                    {
                        "apiGroups": ["trainer.kubeflow.org"],
                        "apiVersions": ["*"],
                        "operations": ["*"],
                        "resources": ["trainingruntimes"],
                    }
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }
    put(fresh, hook)
    messages: list[str] = []

    def seen() -> bool:
        messages[:] = [
            one.message for one in told(look(fresh, "validate", "--server")).get("server-unasked", [])
        ]
        return any("webhook gone.example.com does not answer" in one for one in messages)

    poll(seen, PATIENCE, lambda: f"not said: {messages}", every=1)
    outcome = server(fresh)
    (shown,) = [one for one in told(outcome)["server-unasked"] if "namespace vision" in one.message]
    assert shown.severity == "note"
    assert shown.place.startswith("overlays/lab/cluster.yaml:")
    (shown,) = [one for one in told(outcome)["server-unasked"] if "gone.example.com" in one.message]
    assert shown.severity == "warning"


def test_missing_rights_are_reported_with_a_sufficient_role(fresh: Site, tmp_path: Path) -> None:
    """A user without rights gets the role that the message contains, which is then enough."""
    client = fresh.lab.client
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ann", "namespace": "nlp"}}
    put(fresh, account)
    path = "/api/v1/namespaces/nlp/serviceaccounts/ann/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = client.request("POST", path, body).object["status"]["token"]
    kubeconfig = yaml.safe_load(fresh.lab.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    mine = tmp_path / "kubeconfig"
    mine.write_text(yaml.safe_dump(kubeconfig))
    workspaces.render(fresh.root)
    commands: list[tuple[str, ...]] = [
        ("validate", "specs/nlp/asked.yaml", "--server"),
        ("status", "--team", "nlp"),
        ("cluster", "snapshot", "lab"),
    ]
    for number, command in enumerate(commands):
        outcome = gangplan(*command, "-C", fresh.root, "--kubeconfig", mine)
        assert outcome.code == Exit.ENVIRONMENT, outcome.err
        assert token not in outcome.err
        role = yaml.safe_load(outcome.err.partition("echo '")[2].partition("'")[0])
        wide = role["kind"] == "ClusterRole"
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding" if wide else "RoleBinding",
            "metadata": {"name": f"ann-{number}", **({} if wide else {"namespace": "nlp"})},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": role["kind"],
                "name": role["metadata"]["name"],
            },
            "subjects": [{"kind": "ServiceAccount", "name": "ann", "namespace": "nlp"}],
        }
        put(fresh, role, binding)
        done: list[workspaces.Outcome] = []

        def enough(command: tuple[str, ...] = command, done: list[workspaces.Outcome] = done) -> bool:
            done[:] = [gangplan(*command, "-C", fresh.root, "--kubeconfig", mine)]
            return done[0].code == Exit.CLEAN and "you may not" not in done[0].err

        poll(enough, PATIENCE, lambda done=done: done[0].err, every=1)  # type: ignore[misc]


def test_a_server_without_the_samples_teams_refuses_nothing(site: Site, tmp_path: Path) -> None:
    """No object of the sample is refused; what needs a missing namespace is reported once for each."""
    profile = site.lab.profile
    name = story.cluster_of(profile.trainer, profile.kueue)
    assert name is not None
    root = workspaces.sample(tmp_path / "sample", "specs", "overlays", "images", "policies")
    flags = (
        "--cluster",
        name,
        "--server",
        "--context",
        context_of(site),
        "--kubeconfig",
        site.lab.kubeconfig,
    )
    outcome = gangplan("validate", "-C", root, *flags)
    found = told(outcome)
    assert set(found) <= {"server-unasked", "server-advice"}, [one for rule in found for one in found[rule]]
    assert any("is not there yet" in one.message for one in found["server-unasked"]), outcome.err


def context_of(site: Site) -> str:
    """Return the only context of the lab's kubeconfig."""
    (context,) = yaml.safe_load(site.lab.kubeconfig.read_text())["contexts"]
    return str(context["name"])


# What refusals mean


RECORDED = Path(__file__).parents[1] / "live/refusals.json"


def _body(version: str, kind: str, name: str, spec: Object, namespace: str | None = "nlp") -> Object:
    space = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **space}, **spec}


def _questions(site: Site) -> dict[str, tuple[Object, str, str]]:
    """Return objects that are refused, each with the kind and the name of what refuses it."""
    job = next(body for body in site.bodies("asked") if body["kind"] == "TrainJob")
    network, rbac = "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1"
    kueue = site.lab.client.resource("ClusterQueue").api_version
    foo, bad = (
        {"spec": {"podSelector": {}, "foo": 1}},
        {"spec": {"podSelector": {}, "policyTypes": ["Sideways"]}},
    )
    queue = {
        "spec": {
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "cpu", "resources": []}]}]
        }
    }
    flavor = _body(kueue, "ResourceFlavor", "a", {"spec": {"nodeLabels": {"pool": "not a label!"}}}, None)
    account = _body("v1", "ServiceAccount", "one-more", {})
    return {
        "unknown field": (_body(network, "NetworkPolicy", "a", foo), "SCHEMA", ""),
        "unknown field of a CRD": ({**job, "spec": {**job["spec"], "foo": 1}}, "SCHEMA", ""),
        "wrong type": ({**job, "spec": {**job["spec"], "suspend": "maybe"}}, "SCHEMA", ""),
        "wrong value": (_body(network, "NetworkPolicy", "a", bad), "SCHEMA", ""),
        "rule of a CRD": (_body(kueue, "ClusterQueue", "a", queue, None), "SCHEMA", ""),
        "no namespace": (_body("v1", "ServiceAccount", "a", {}, "nowhere"), "NAMESPACE", "nowhere"),
        "no runtime": (job, "EARLIER", ""),
        "quota": (account, "QUOTA", "few"),
        "policy": (_body("v1", "LimitRange", "a", {"spec": {"limits": []}}), "POLICY", "site-limits"),
        "name of a CRD": ({**job, "metadata": {**job["metadata"], "name": "1-is-no-label"}}, "SCHEMA", ""),
        "webhook": (flavor, "WEBHOOK", "vresourceflavor.kb.io"),
        "no answer": (_body(rbac, "Role", "a", {"rules": []}), "UNREACHABLE", "gone.example.com"),
    }


def test_refusals_are_attributed_to_their_source(fresh: Site, request: pytest.FixtureRequest) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["limitranges"]}]
    hooked = [{**rules[0], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]}]
    admission = "admissionregistration.k8s.io/v1"
    denying = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "false", "message": "no"}],
    }
    binding = {"policyName": "site-limits", "validationActions": ["Deny"]}
    hook = {
        "name": "gone.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/never"},
        "rules": hooked,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    put(
        fresh,
        _body(admission, "ValidatingAdmissionPolicy", "site-limits", {"spec": denying}, None),
        _body(admission, "ValidatingAdmissionPolicyBinding", "site-limits", {"spec": binding}, None),
        _body(admission, "ValidatingWebhookConfiguration", "gone", {"webhooks": [hook]}, None),
        _body("v1", "ResourceQuota", "few", {"spec": {"hard": {"count/serviceaccounts": "0"}}}),
    )
    access = connect_to_cluster(ContextChoice("lab", kubeconfig=str(fresh.lab.kubeconfig)))
    catalog = KindCatalog(access)
    seen: list[Object] = []
    for case, (body, by, name) in _questions(fresh).items():
        served = catalog.find(body)
        assert served is not None, case
        path, errors = served.path(body), []

        def refused(
            path: str = path, body: Object = body, errors: list[ApiRefusedError] = errors, by: str = by
        ) -> bool:
            errors.clear()
            try:
                access.ask(path, body)
            except ApiRefusedError as error:
                errors.append(error)
            return bool(errors) and parse_server_refusals(errors[0])[0].by.name == by

        poll(
            refused,
            30,
            lambda case=case, errors=errors: f"{case}: {[one.words for one in errors]}",
            every=0.5,
        )  # type: ignore[misc]
        found = parse_server_refusals(errors[0])
        assert found[0].name == name, case
        answer = {"reason": errors[0].reason, "message": errors[0].words, "details": dict(errors[0].details)}
        means = [[one.by.name, one.name, list(one.path)] for one in found]
        profile = fresh.lab.profile.name
        seen.append(
            {"profile": profile, "case": case, "status": errors[0].status, "body": answer, "means": means}
        )
    if request.config.getoption("--update"):
        others = (
            [one for one in json.loads(RECORDED.read_text()) if one["profile"] != profile]
            if RECORDED.exists()
            else []
        )
        both = sorted([*others, *seen], key=lambda one: (one["profile"], one["case"]))
        RECORDED.write_text(json.dumps(both, indent=1, sort_keys=True) + "\n")
