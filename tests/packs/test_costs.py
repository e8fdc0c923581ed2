"""Costs of the policies that come with gangplan: evaluated without counting, but counted here on a large
run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.cel.program import CelProgram
from gangplan.packs.cases import read_pack_cases
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.cases import build_policy_case_evaluator, build_policy_case_suites
from gangplan.policy.checks import build_policy_checker
from gangplan.source import load_objects
from gangplan.validate.apiserver.policy import compiled
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.evaluate import COST_PER_CALL
from gangplan.workspace import Workspace, load_workspace
from tests.packs.test_packs import NOWHERE, PACKS, workspace
from tests.workspaces import SPEC, STOCK, TEAM, WIDE_CLUSTER, write

# As many variables, claims and words as a spec of a person may ever have.
ENV = "env:\n" + "".join(f"  VARIABLE_{number}: {'x' * 200}\n" for number in range(128))
COMMAND = "command: [python, train.py" + "".join(f", --option-{number}=1" for number in range(126)) + "]"
LARGE = SPEC.replace("workers: 4", "workers: 64").replace("command: [python, train.py]", COMMAND) + ENV
DATA = (
    "data: {filings: /data, archive: /archive, radar: /radar}\nsecrets: {env: {TOKEN: huggingface/token}}\n"
)


def test_costs_stay_far_below_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packs = f"policies: {{packs: [{', '.join(PACKS)}]}}\n"
    team = TEAM.replace("clusters:", "costCentre: cc-1\ncontact: nlp@example.com\nclusters:")
    files = {
        "specs/nlp/team.yaml": team,
        "overlays/lab/cluster.yaml": WIDE_CLUSTER + packs,
        "specs/nlp/filings.yaml": LARGE + DATA,
    }
    root = write(tmp_path, {**STOCK, **files})
    result = preview_render(Request(root, engine="serial"))
    assert result.runs, result.findings
    bodies = [body for text in result.texts.values() for body in load_objects(text)]
    workspace = load_workspace(root)
    evaluator = build_policy_checker(workspace, "lab", bodies).evaluator
    counted = [
        CompiledPolicy(replace(one.policy, written=replace(one.policy.written, is_shipped=False)), one.minor)
        for one in evaluator.policies
    ]
    plainly = evaluator.judge(bodies)

    costs: list[int] = []
    measure = CelProgram.measure

    def spy(self: CelProgram, *arguments: object) -> tuple[object, int]:
        value, cost = measure(self, *arguments)  # type: ignore[arg-type]
        costs.append(cost)
        return value, cost

    monkeypatch.setattr(CelProgram, "measure", spy)
    told = [
        (one.index, one.policy.name, one.message)
        for one in replace(evaluator, policies=counted).judge(bodies)
    ]

    assert told == [(one.index, one.policy.name, one.message) for one in plainly]
    assert len(costs) > 100
    assert 100 < max(costs) < COST_PER_CALL / 10, max(costs)


@pytest.mark.parametrize("cases_first", [True, False])
def test_costs_are_counted_only_in_cases(cases_first: bool) -> None:
    """In one process, in either order: only their cases count the costs of shipped policies."""

    def cases() -> set[bool]:
        suite = next(
            suite for suite in build_policy_case_suites(Workspace(NOWHERE)) if suite.pack == "baseline"
        )
        evaluator, _ = build_policy_case_evaluator(suite, read_pack_cases(suite.folder, suite.shown)[0][0])
        return {one.policy.written.is_shipped for one in evaluator.policies}

    def checker() -> set[bool]:
        return {
            one.policy.written.is_shipped
            for one in build_policy_checker(workspace(), "lab", []).evaluator.policies
        }

    compiled._KNOWN.clear()
    first, second = (cases, checker) if cases_first else (checker, cases)
    said = first(), second()
    assert said == (({False}, {True}) if cases_first else ({True}, {False}))
