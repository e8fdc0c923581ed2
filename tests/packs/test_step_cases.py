"""Policies judge the pod of a step as they judge a worker's, wherever it is in the run."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gangplan.packs.cases import PolicyCase, read_pack_cases
from gangplan.policy.cases import Suite, build_policy_case_evaluator, build_policy_case_suites
from gangplan.workspace import Workspace

Body = dict[str, Any]
SUITES = {one.pack: one for one in build_policy_case_suites(Workspace(Path("/nonexistent")))}
# Policies about the whole run, or about what pods have in common, have cases of their own for steps.
WHOLE = {"run-deadline", "run-restarts", "claim-shared"}


def jobs_of(body: Body) -> list[Body]:
    found: list[Body] = body["spec"].get("template", {}).get("spec", {}).get("replicatedJobs") or []
    return found


def messages(suite: Suite, case: PolicyCase, body: Body) -> list[str]:
    evaluator, _ = build_policy_case_evaluator(suite, case)
    return [one.message for one in evaluator.judge([body])]


def with_step(body: Body, step: Body, worker: Body) -> Body:
    """Return the run with one pod of each, the step first."""
    first, second = copy.deepcopy(step), copy.deepcopy(worker)
    first["name"], second["name"] = "tokenize", "node"
    first["template"].setdefault("spec", {})["activeDeadlineSeconds"] = 600
    second["dependsOn"] = [{"name": "tokenize", "status": "Complete"}]
    found = copy.deepcopy(body)
    found["spec"]["template"]["spec"]["replicatedJobs"] = [first, second]
    return found


# Policies that judge a run by parameters or labels as well as by its pods: no sound pod goes with their
# refusals.
BESIDE = {
    "waiver-granted", "approved-image", "on-premises", "transport-open", "image-fips", "image-registry",
    "image-scan", "retention", "bucket-residency", "data-residency",
}  # fmt: skip


@pytest.mark.parametrize("name", SUITES)
def test_a_step_is_judged_as_a_worker_is(name: str) -> None:
    """Each refused pod is refused as a step before a sound worker, and two sound ones pass."""
    suite = SUITES[name]
    about = [one for one in cases_of(suite) if one.policy not in WHOLE]
    for case in (one for one in about if len(jobs_of(one.file.object)) == 1):
        own, body = jobs_of(case.file.object)[0], case.file.object
        same = [jobs_of(one.file.object)[0] for one in about if one.policy == case.policy and not one.denies]
        workers = [one for one in same if not messages(suite, case, with_step(body, one, one))]
        if case.denies and not workers:
            assert case.policy in BESIDE, (case.policy, case.name)
            continue
        said = messages(suite, case, with_step(body, own, workers[0] if case.denies else own))
        assert bool(said) == case.denies, (case.policy, case.name, said)
        assert not case.denies or any(case.file.message in one for one in said), (case.name, said)


def test_most_refusals_are_tried() -> None:
    tried = [one for suite in SUITES.values() for one in cases_of(suite) if one.denies]
    assert len([one for one in tried if one.policy not in {*WHOLE, *BESIDE}]) > 30


def cases_of(suite: Suite) -> list[PolicyCase]:
    """Return the cases about new runtimes."""
    found, findings = read_pack_cases(suite.folder, suite.shown)
    assert not findings
    return [
        one
        for one in found
        if one.file.object["kind"] == "TrainingRuntime"
        and one.file.old_object is None
        and jobs_of(one.file.object)
    ]
