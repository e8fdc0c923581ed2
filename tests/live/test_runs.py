"""`gangplan status` and `gangplan logs` with answers in the form of API servers (tests/e2e/test_live.py asks
real ones)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.live.answers import KUEUE, TRAINER
from tests.live.server import Server, refusal, serving
from tests.schedules import worlds
from tests.workspaces import SPEC, Outcome, gangplan

JOBS, PODS = f"/apis/{TRAINER}/namespaces/nlp/trainjobs", "/api/v1/namespaces/nlp/pods"
WORKLOADS, EVENTS = f"/apis/{KUEUE}/namespaces/nlp/workloads", "/api/v1/namespaces/nlp/events"
VISIBILITY = "visibility.kueue.x-k8s.io/v1beta2"
TIME = "2026-01-01T00:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Render the small workspace."""
    root = workspaces.stock(tmp_path / "workspace")
    workspaces.render(root)
    return root


@pytest.fixture
def server() -> Iterator[Server]:
    """Run a server that has no runs."""
    with serving({JOBS: [], WORKLOADS: [], PODS: [], EVENTS: []}) as found:
        yield found


def name_of(root: Path) -> str:
    """Return the name of the only run of the workspace."""
    (path,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    return path.stem


def trainjob(name: str, suspended: str = "True", team: str = "nlp") -> dict[str, Any]:
    """Return a run on the cluster."""
    labels = {"gangplan.dev/run": name, "gangplan.dev/team": team, "kueue.x-k8s.io/queue-name": "training"}
    condition = {"type": "Suspended", "status": suspended, "lastTransitionTime": TIME}
    return {
        "metadata": {"name": name, "namespace": "nlp", "labels": labels, "creationTimestamp": TIME},
        "status": {"conditions": [condition]},
    }


def workload(name: str, message: str) -> dict[str, Any]:
    """Return the Workload of a run that waits."""
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    owner = {"kind": "TrainJob", "name": name}
    metadata = {
        "name": f"trainjob-{name}-1",
        "namespace": "nlp",
        "ownerReferences": [owner],
        "creationTimestamp": TIME,
    }
    return {
        "metadata": metadata,
        "spec": {"queueName": "training"},
        "status": {"conditions": [condition | {"lastTransitionTime": TIME}]},
    }


def pod(name: str, role: str, index: int, created: str = TIME, **status: Any) -> dict[str, Any]:
    """Return a pod of a run."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": role,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    made = f"{name}-{role}-0-{index}-{created[-3:-1]}"
    return {
        "metadata": {"name": made, "namespace": "nlp", "labels": labels, "creationTimestamp": created},
        "spec": {"containers": [{"name": "sidecar"}, {"name": "node"}]},
        "status": {"phase": "Running", **status},
    }


def ask(root: Path, server: Server, *arguments: str) -> Outcome:
    """Run a command that only reads."""
    outcome = gangplan(*arguments, "-C", root, "--kubeconfig", server.kubeconfig(root.parent, "lab"))
    assert server.methods <= {"GET"}
    return outcome


def rows(root: Path, server: Server, *more: str) -> dict[str, dict[str, Any]]:
    """Return the runs as JSON, by their names."""
    outcome = ask(root, server, "status", "--team", "nlp", "--format", "json", *more)
    assert outcome.code == Exit.CLEAN, outcome.err
    return {row["run"]: row for row in json.loads(outcome.out)["runs"]}


def test_status_joins_git_and_the_cluster(root: Path, server: Server) -> None:
    name = name_of(root)
    found = rows(root, server)
    assert found[name]["state"] == "missing"
    assert found[name]["spec"] == "specs/nlp/filings.yaml"
    server.answers[JOBS] = [trainjob(name), trainjob("gone-00000000")]
    found = rows(root, server)
    assert (found[name]["git"], found["gone-00000000"]["git"]) == ("active", None)
    assert "not in rendered/" in found["gone-00000000"]["reason"]


def ended(name: str, kind: str) -> dict[str, Any]:
    """Return a run with a condition that is true."""
    condition = {"type": kind, "status": "True", "lastTransitionTime": TIME}
    return {**trainjob(name), "status": {"conditions": [condition]}}


def test_scheduled_and_waiting_runs_have_states_of_their_own(tmp_path: Path, server: Server) -> None:
    """A schedule is not a missing run, dated runs belong to it, and a waiting run names the runs before
    it."""
    root = tmp_path / "workspace"
    chain = {"specs/nlp/late.yaml": SPEC + "after: [filings]\n", "specs/nlp/nightly.yaml": worlds.SPEC}
    worlds.stock(root, SPEC, **chain)
    workspaces.render(root)
    early, late, nightly = sorted(path.stem for path in (root / "rendered/lab/runs/nlp").glob("*-*.yaml"))
    dated = trainjob("nightly-20260111-0300")
    dated["metadata"]["labels"]["gangplan.dev/run"] = nightly
    for there, state, reason in (
        ([], "waiting", f"until {early} is complete"),
        ([trainjob(early)], "waiting", f"until {early} is complete"),
        ([ended(early, "Failed")], "waiting", f"it is not created: {early} has failed"),
        ([ended(early, "Complete")], "waiting", f"about to be created: all runs before it are complete; else see kubectl logs job/{late}-after-"),
        ([ended(early, "Complete"), trainjob(late)], "queued", None),
    ):  # fmt: skip
        server.answers[JOBS] = [*there, dated]
        found = rows(root, server)
        assert found[late]["state"] == state
        assert reason is None or found[late]["reason"].startswith(reason)
        assert (found[nightly]["state"], found[nightly]["git"]) == ("scheduled", "active")
        assert found[nightly]["reason"] == "0 4 * * * in Europe/Berlin"
        own = found["nightly-20260111-0300"]
        assert (own["git"], own["spec"]) == ("active", "specs/nlp/nightly.yaml")
        assert "rendered/" not in own["reason"]


def test_a_run_with_the_label_of_another_team_is_not_shown(root: Path, server: Server) -> None:
    server.answers[JOBS] = [trainjob("theirs-00000000", team="vision")]
    assert set(rows(root, server)) == {name_of(root)}


def test_the_place_in_the_queue_is_shown(root: Path, server: Server) -> None:
    """Kueue's visibility API gives it; where that is not served or may not be read, nothing else is
    missing."""
    name = name_of(root)
    server.answers[JOBS] = [trainjob(name)]
    server.answers[WORKLOADS] = [
        workload(name, "insufficient unused quota for cpu in flavor cpu, 8 more needed")
    ]
    row = rows(root, server)[name]
    assert (row["state"], row["position"]) == ("queued", None)
    assert row["reason"] == "waits for quota: 8 CPU more in pool cpu"
    server.answers["/apis/visibility.kueue.x-k8s.io"] = {"preferredVersion": {"groupVersion": VISIBILITY}}
    pending = f"/apis/{VISIBILITY}/namespaces/nlp/localqueues/training/pendingworkloads"
    server.answers[pending] = refusal(403, "Forbidden", 'x is forbidden: User "ann" cannot list resource "x"')
    assert rows(root, server)[name]["position"] is None
    item = {"metadata": {"name": f"trainjob-{name}-1", "namespace": "nlp"}, "positionInLocalQueue": 2}
    server.answers[pending] = [item]
    assert rows(root, server)[name]["position"] == 3
    table = ask(root, server, "status", "--team", "nlp").out
    assert "place" in table.splitlines()[0]


def test_events_explain_why_nothing_happens(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[JOBS] = [trainjob(name)]
    server.answers[WORKLOADS] = [workload(name, "")]
    server.answers[EVENTS] = [
        {"message": "older", "lastTimestamp": "2026-01-01T00:00:00Z"},
        {"message": "pods cannot\nbe created", "lastTimestamp": "2026-01-01T00:00:09Z"},
    ]
    assert rows(root, server)[name]["reason"] == "pods cannot be created"


def test_a_forbidden_list_names_the_right_and_the_role(root: Path, server: Server) -> None:
    server.answers[JOBS] = refusal(403, "Forbidden", 'x is forbidden: User "ann" cannot list resource "x"')
    outcome = ask(root, server, "status", "--team", "nlp")
    assert outcome.code == Exit.ENVIRONMENT
    assert "you may not list trainjobs.trainer.kubeflow.org in namespace nlp" in outcome.err
    assert '"kind":"Role"' in outcome.err
    assert '"namespace":"nlp"' in outcome.err
    assert '"pods"' in outcome.err, "the role has all that the command needs"


def test_a_server_without_trainer_has_no_runs_that_are_missing(root: Path, server: Server) -> None:
    server.answers[JOBS] = refusal(404, "NotFound", "the server could not find the requested resource")
    outcome = ask(root, server, "status", "--team", "nlp")
    assert outcome.code == Exit.ENVIRONMENT
    assert "context 'lab' serves no trainjobs.trainer.kubeflow.org, so it has no runs" in outcome.err
    assert "Install Trainer there, or choose another context with --context." in outcome.err


def test_invalid_flags_are_refused(root: Path, server: Server) -> None:
    assert ask(root, server, "status", "--team", "nlq").code == Exit.INPUT
    assert ask(root, server, "status", "--cluster", "labb").code == Exit.INPUT
    assert ask(root, server, "status", "--format", "yaml").code == Exit.INPUT


def test_hostile_texts_stay_on_their_line(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[JOBS] = [trainjob(name)]
    server.answers[WORKLOADS] = [workload(name, "a\x1b[31mred\nrow two")]
    out = ask(root, server, "status", "--team", "nlp").out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


# Logs


def talking(server: Server, name: str, *pods: dict[str, Any]) -> None:
    """Serve pods whose logs begin with their names."""
    server.answers[PODS] = list(pods)
    for one in pods:
        own = one["metadata"]["name"]
        server.answers[f"{PODS}/{own}/log"] = f"{own}\nlast"


def labels(outcome: Outcome) -> list[str]:
    """Return the pods that logged something, in order."""
    assert outcome.code == Exit.CLEAN, outcome.err
    return list(dict.fromkeys(line.partition(" | ")[0].strip() for line in outcome.out.splitlines()))


def test_a_spec_with_a_schedule_means_its_last_run(tmp_path: Path, server: Server) -> None:
    root = tmp_path / "workspace"
    worlds.stock(root, SPEC, **{"specs/nlp/nightly.yaml": worlds.SPEC})
    workspaces.render(root)
    outcome = ask(root, server, "logs", "specs/nlp/nightly.yaml")
    assert outcome.code == Exit.ENVIRONMENT
    assert "schedule nightly has started no run on cluster lab that is still there" in outcome.err
    dated = [trainjob(f"nightly-202601{day}-0300") for day in (11, 13, 12)]
    for one in dated:
        one["metadata"]["labels"]["gangplan.dev/schedule"] = "nightly"
    server.answers[JOBS] = dated
    talking(server, "", pod("nightly-20260113-0300", "launcher", 0))
    outcome = ask(root, server, "logs", "specs/nlp/nightly.yaml")
    assert labels(outcome) == ["launcher"]
    assert any("nightly-20260113-0300" in str(one) for one in server.asked if one[1] == PODS)
    assert "nightly-20260113-0300, the last run of schedule nightly" in outcome.err
    talking(server, "", pod("nightly-20260112-0300", "launcher", 0))
    outcome = ask(root, server, "logs", "nightly-20260112-0300")  # a name that `status` shows
    assert labels(outcome) == ["launcher"]
    outcome = ask(root, server, "logs", "filings-20260112-0300")
    assert outcome.code == Exit.INPUT
    assert "rendered/ has no run 'filings-20260112-0300'" in outcome.err


def test_the_spec_of_a_sweep_names_no_single_run(root: Path, server: Server) -> None:
    spec = SPEC.replace("train.py]", "train.py, '${{ parameters.lr }}']").splitlines()[2:]
    head = (
        "apiVersion: gangplan.dev/v1\nkind: Sweep\nparameters: {grid: {lr: [1, 2, 3, 4]}}\nmaxConcurrent: 2\n"
    )
    sweep = head + "template:\n" + "".join(f"  {line}\n" for line in spec)
    workspaces.write(root, {"specs/nlp/rates.yaml": sweep})
    workspaces.render(root)
    outcome = ask(root, server, "logs", "specs/nlp/rates.yaml")
    assert outcome.code == Exit.INPUT
    assert "'specs/nlp/rates.yaml' has 4 runs on cluster lab: rates-" in outcome.err
    assert "Name one of them." in outcome.err


def test_flags_choose_the_pods(root: Path, server: Server) -> None:
    name = name_of(root)
    talking(
        server,
        name,
        pod(name, "node", 1),
        pod(name, "launcher", 0),
        pod(name, "node", 0),
        pod(name, "node", 10),
    )
    assert labels(ask(root, server, "logs", name)) == ["launcher"]
    assert labels(ask(root, server, "logs", "specs/nlp/filings.yaml")) == ["launcher"]
    assert labels(ask(root, server, "logs", name, "--all")) == [
        "launcher",
        "worker 0",
        "worker 1",
        "worker 10",
    ]
    assert labels(ask(root, server, "logs", name, "--worker", "10", "--worker", "1")) == [
        "worker 1",
        "worker 10",
    ]
    assert labels(ask(root, server, "logs", name, "--launcher", "--worker", "0")) == ["launcher", "worker 0"]
    assert {query["container"] for _, path, query, _ in server.asked if path.endswith("/log")} == {"node"}
    outcome = ask(root, server, "logs", name, "--worker", "7")
    assert outcome.code == Exit.ENVIRONMENT
    assert f"run {name} has no worker 7" in outcome.err
    # Without a launcher, the logs are those of all workers.
    talking(server, name, pod(name, "node", 1), pod(name, "node", 0))
    assert labels(ask(root, server, "logs", name, "--tail", "3")) == ["worker 0", "worker 1"]
    assert server.asked[-1][2]["tailLines"] == "3"


def test_previous_shows_an_earlier_attempt(root: Path, server: Server) -> None:
    name = name_of(root)
    first, second = pod(name, "launcher", 0), pod(name, "launcher", 0, "2026-01-01T00:00:09Z")
    talking(server, name, second, first)
    assert first["metadata"]["name"] in ask(root, server, "logs", name, "--previous").out
    assert second["metadata"]["name"] in ask(root, server, "logs", name).out
    talking(server, name, second)
    assert ask(root, server, "logs", name, "--previous").code == Exit.ENVIRONMENT
    restarted = pod(name, "launcher", 0, containerStatuses=[{"name": "node", "restartCount": 1}])
    talking(server, name, restarted)
    assert labels(ask(root, server, "logs", name, "--previous")) == ["launcher"]
    assert server.asked[-1][2]["previous"] == "true"


def test_follow_shows_all_pods(root: Path, server: Server) -> None:
    name = name_of(root)
    talking(server, name, pod(name, "node", 0), pod(name, "node", 1), pod(name, "node", 2))
    outcome = ask(root, server, "logs", name, "--follow")
    assert sorted(labels(outcome)) == ["worker 0", "worker 1", "worker 2"]
    assert len(outcome.out.splitlines()) == 6
    assert all(query["follow"] == "true" for _, path, query, _ in server.asked if path.endswith("/log"))


def test_a_pod_without_a_log_does_not_hide_the_others(root: Path, server: Server) -> None:
    name = name_of(root)
    waiting, talks = pod(name, "node", 0), pod(name, "node", 1)
    talking(server, name, waiting, talks)
    words = 'container "node" in pod "x" is waiting to start: ContainerCreating'
    server.answers[f"{PODS}/{waiting['metadata']['name']}/log"] = refusal(400, "BadRequest", words)
    outcome = ask(root, server, "logs", name)
    assert labels(outcome) == ["worker 1"]
    assert outcome.err == f"worker 0 | no log: {words}\n"


def test_a_run_without_pods_is_explained(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[JOBS] = [trainjob(name)]
    server.answers[WORKLOADS] = [
        workload(name, "insufficient unused quota for cpu in flavor cpu, 8 more needed")
    ]
    outcome = ask(root, server, "logs", name)
    assert outcome.code == Exit.ENVIRONMENT
    assert "has no pods on cluster lab: it is queued (waits for quota: 8 CPU more in pool cpu)" in outcome.err


def test_runs_outside_git_need_a_cluster_and_a_team(root: Path, server: Server) -> None:
    assert ask(root, server, "logs", "gone-00000000").code == Exit.INPUT
    assert ask(root, server, "logs", "specs/nlp/none.yaml").code == Exit.INPUT
    talking(server, "gone-00000000", pod("gone-00000000", "launcher", 0))
    where = ("--cluster", "lab", "--team", "nlp")
    assert labels(ask(root, server, "logs", "gone-00000000", *where)) == ["launcher"]


def test_a_registration_that_failed_leaves_the_training_succeeded(root: Path, server: Server) -> None:
    """`status` reports both."""
    name = name_of(root)
    failed = ended(name, "Failed")
    failed["metadata"]["annotations"] = {"gangplan.dev/model": "filings:2026.1"}
    server.answers[JOBS] = [failed]
    found = rows(root, server)[name]
    assert found["state"] == "failed"
    assert (
        found["reason"] == "model filings:2026.1 is not registered, and the run that trained it has succeeded"
    )
