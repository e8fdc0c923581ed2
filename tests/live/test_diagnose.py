"""`gangplan diagnose --server` with answers in the form of API servers (tests/e2e/test_live.py asks real
ones)."""

from __future__ import annotations

import json
from pathlib import Path

from gangplan.errors import Exit
from tests import workspaces
from tests.live.server import Server, refusal
from tests.live.test_runs import (
    EVENTS,
    JOBS,
    PODS,
    WORKLOADS,
    ask,
    name_of,
    pod,
    root,
    server,
    trainjob,
    workload,
)
from tests.schedules import worlds
from tests.workspaces import SPEC

__all__ = ["root", "server"]
OOM = {"name": "node", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}


def test_objects_and_logs_of_a_run_show_its_causes(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[f"{JOBS}/{name}"] = trainjob(name, "False")
    failed = pod(name, "node", 3, phase="Failed", containerStatuses=[OOM])
    launcher = pod(name, "launcher", 0, containerStatuses=[{"name": "node", "state": {"running": {}}}])
    server.answers[PODS] = [failed, launcher]
    lost = f"ORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[1,0],2] on node {name}-node-0-3\n"
    server.answers[f"{PODS}/{launcher['metadata']['name']}/log"] = lost
    server.answers[f"{PODS}/{failed['metadata']['name']}/log"] = refusal(404, "NotFound", "no log")
    for which in (name, "specs/nlp/filings.yaml"):
        outcome = ask(root, server, "diagnose", "--server", "--run", which, "--format", "json")
        assert outcome.code == Exit.FINDINGS, outcome.err
        (run,) = json.loads(outcome.out)["runs"]
        assert [one["id"] for one in run["causes"]] == ["out-of-memory", "daemon-lost"]
        assert [one["follows"] for one in run["causes"]] == [False, True]
        assert run["causes"][0]["seen"][0]["worker"] == 3
    tails = [query for _, path, query, _ in server.asked if path.endswith("/log")]
    assert {query["tailLines"] for query in tails} == {"2000"}


def test_the_queue_explains_a_waiting_run(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[f"{JOBS}/{name}"] = trainjob(name)
    server.answers[WORKLOADS] = [
        workload(name, "insufficient unused quota for cpu in flavor cpu, 8 more needed")
    ]
    outcome = ask(root, server, "diagnose", "--server", "--run", name)
    assert outcome.code == Exit.FINDINGS
    assert "waits for quota: 8 CPU more in pool cpu" in outcome.out


def test_events_of_other_runs_do_not_count(root: Path, server: Server) -> None:
    name = name_of(root)
    server.answers[f"{JOBS}/{name}"] = trainjob(name, "False")
    server.answers[PODS] = [pod(name, "node", 0, conditions=[{"type": "Ready", "status": "True"}])]
    server.answers[EVENTS] = [
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Job", "name": "other-1a2b3c4d-node-0"},
            "reason": "FailedCreate",
            "message": "exceeded quota: hard, requested: pods=1, used: pods=9, limited: pods=9",
        }
    ]
    outcome = ask(root, server, "diagnose", "--server", "--run", name)
    assert (outcome.code, "nothing wrong" in outcome.out) == (Exit.CLEAN, True), outcome.out


def test_a_spec_with_a_schedule_means_its_last_run(tmp_path: Path, server: Server) -> None:
    root = tmp_path / "workspace"
    chain = {"specs/nlp/late.yaml": SPEC + "after: [filings]\n", "specs/nlp/nightly.yaml": worlds.SPEC}
    worlds.stock(root, SPEC, **chain)
    workspaces.render(root)
    dated = trainjob("nightly-20260112-0300")
    server.answers[JOBS] = [dated]
    server.answers[f"{JOBS}/nightly-20260112-0300"] = dated
    for name in ("specs/nlp/nightly.yaml", "nightly-20260112-0300"):
        outcome = ask(root, server, "diagnose", "--server", "--run", name)
        assert outcome.code == Exit.CLEAN, outcome.err
        assert "nightly-20260112-0300" in outcome.out
    outcome = ask(root, server, "diagnose", "--server", "--run", "specs/nlp/late.yaml")
    assert outcome.code == Exit.ENVIRONMENT
    (early,) = (root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    assert f"it is created when {early.stem} has completed" in outcome.err


def test_missing_runs_and_rights_are_reported(root: Path, server: Server) -> None:
    name = name_of(root)
    outcome = ask(root, server, "diagnose", "--server", "--run", name)
    assert outcome.code == Exit.ENVIRONMENT
    assert f"has no run {name}" in outcome.err
    server.answers[f"{JOBS}/{name}"] = refusal(
        403, "Forbidden", 'x is forbidden: User "ann" cannot get resource "x"'
    )
    outcome = ask(root, server, "diagnose", "--server", "--run", name)
    assert outcome.code == Exit.ENVIRONMENT
    assert "you may not" in outcome.err
