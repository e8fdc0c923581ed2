"""Health checks: recorded statuses get the right word from the table, from Flux's CEL and from Argo CD's
Lua."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from gangplan.cel import types
from gangplan.cel.environment import Environment
from gangplan.gitops import health
from gangplan.gitops.cel import build_flux_health_expression
from gangplan.gitops.health import (
    HEALTH_KINDS,
    KSTATUS_CURRENT,
    KSTATUS_FAILED,
    HealthKind,
    find_health_state,
)
from gangplan.gitops.lua import render_lua_script
from tests.gitops.recorded import recorded
from tests.lab import build, programs

Object = dict[str, Any]
TABLE = {kind.name: kind for kind in HEALTH_KINDS}
CASES = [pytest.param(word, body, id=name) for name, word, body in recorded()]
# Statuses that a real cluster shows too briefly to record, or only when something is broken.
MADE = {
    "new": ("TrainJob", {}, "new"),
    "without conditions": ("TrainJob", {"jobsStatus": [{"name": "node", "active": 1}]}, "running"),
    "quota, but checks are pending": ("Workload", [("QuotaReserved", "True", "QuotaReserved")], "queued"),
    "not ready in time": ("Workload", [("Evicted", "True", "PodsReadyTimeout")], "evicted"),
    "no longer what it was made for": ("Workload", [("Finished", "True", "OutOfSync")], "failed"),
    "worker cluster out of reach": (
        "ClusterQueue",
        [("Active", "False", "AdmissionCheckInactive")],
        "check inactive",
    ),
    "two checks": ("ClusterQueue", [("Active", "False", "MultipleMultiKueueAdmissionChecks")], "inactive"),
    "no cluster queue": ("LocalQueue", [("Active", "False", "ClusterQueueDoesNotExist")], "waiting"),
}


def made(kind: str, status: Any) -> Object:
    """Return an object with a status written by hand."""
    if isinstance(status, list):
        status = {"conditions": [{"type": one, "status": two, "reason": three} for one, two, three in status]}
    return {"kind": kind, "metadata": {"name": "a", "generation": 1}, "spec": {}, "status": status}


CASES += [pytest.param(word, made(kind, status), id=name) for name, (kind, status, word) in MADE.items()]


def test_every_word_of_each_kind_is_recorded() -> None:
    seen = {(body["kind"], word) for _, word, body in recorded()}
    words = {"queued", "running", "failed", "preempted", "complete", "suspended"}
    assert {word for kind, word in seen if kind == "TrainJob"} == words | {"stopped"}
    assert {word for kind, word in seen if kind == "Workload"} == words
    assert {word for kind, word in seen if kind == "JobSet"} == words - {"queued", "preempted"}
    assert {word for kind, word in seen if kind == "LocalQueue"} == {"ready", "held", "waiting"}


@pytest.mark.parametrize(("word", "body"), CASES)
def test_the_table_gives_the_word(word: str, body: Object) -> None:
    assert find_health_state(TABLE[body["kind"]], body).word == word


@pytest.mark.parametrize(("word", "body"), CASES)
def test_flux_gives_the_status_of_the_table(word: str, body: Object) -> None:
    kind = TABLE[body["kind"]]
    environment = Environment(minor=34, variables=dict.fromkeys(("metadata", "spec", "status"), types.DYN))
    said = {
        name: environment.compile(build_flux_health_expression(kind, name)).evaluate(
            {name: body[name] for name in ("metadata", "spec", "status")}
        )
        for name in (KSTATUS_CURRENT, KSTATUS_FAILED)
    }
    # Flux takes the first expression that is true; if none is, the object is in progress.
    found = next((name for name in (KSTATUS_FAILED, KSTATUS_CURRENT) if said[name]), health.IN_PROGRESS)
    assert found == find_health_state(kind, body).flux
    assert not all(said.values())


@pytest.fixture(scope="module")
def lua() -> dict[str, dict[str, str]]:
    """Return the answer of Argo CD's Lua to each case."""
    if build.missing([programs.LUA]) and (trouble := build.problem()):
        pytest.skip(f"the Lua of Argo CD cannot be built: {trouble}")
    try:
        build.ensure([programs.LUA])
    except RuntimeError as bad:  # no network, and its module was never downloaded
        pytest.skip(f"the Lua of Argo CD cannot be built: {bad}")
    questions = [
        {"script": render_lua_script(TABLE[case.values[1]["kind"]]), "object": case.values[1]}
        for case in CASES
    ]
    program = build.executable(programs.LUA)
    done = subprocess.run([program], input=json.dumps(questions), capture_output=True, text=True, check=True)
    return {str(case.id): answer for case, answer in zip(CASES, json.loads(done.stdout), strict=True)}


@pytest.mark.parametrize("case", [case.id for case in CASES])
def test_argo_cd_gives_the_status_and_word_of_the_table(case: str, lua: dict[str, dict[str, str]]) -> None:
    word, body = next(one.values for one in CASES if one.id == case)
    answer = lua[case]
    assert (answer.get("status"), answer.get("error")) == (
        find_health_state(TABLE[body["kind"]], body).argocd,
        None,
    )
    assert re.fullmatch(rf"{word}(: .+)?", answer["message"], re.DOTALL)


def test_argo_cd_gives_the_reason(lua: dict[str, dict[str, str]]) -> None:
    (said,) = (answer for case, answer in lua.items() if case == "new-TrainJob-failed")
    assert said["message"].startswith("failed: jobset failed")
    (said,) = (answer for case, answer in lua.items() if case == "new-Workload-queued")
    assert "insufficient unused quota" in said["message"]


@pytest.mark.parametrize("kind", HEALTH_KINDS, ids=lambda kind: kind.name)
def test_every_row_can_be_reached_and_the_lua_is_safe(kind: HealthKind) -> None:
    assert not kind.rows[-1].tests
    assert all(row.tests for row in kind.rows[:-1])
    text = render_lua_script(kind)
    assert len(re.findall(r"\b(?:then|do|function)\b", text)) == len(re.findall(r"\bend\b", text))
    # Argo CD's Lua has no string library, and its scripts must not reach the system.
    assert not re.search(r"(?<![-.])\b(?:(?:string|os|io)[.:]|require|load)", text)


def test_a_waiting_run_is_never_called_failed() -> None:
    """A run that is queued for a week must not degrade its application, nor fail a Kustomization."""
    for kind in HEALTH_KINDS:
        for row in kind.rows:
            if row.word in (
                "new",
                "queued",
                "preempted",
                "running",
                "suspended",
                "held",
                "waiting",
                "evicted",
            ):
                assert row.argocd != health.DEGRADED
                assert row.flux != KSTATUS_FAILED
