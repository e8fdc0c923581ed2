"""Policies are not evaluated again when no value that they read has changed: the same findings with less
work.

The law: with its memory a `PolicyEvaluator` finds what it finds without, for rendered examples and for the
same objects changed at random.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.cel.joint import MOST_WAYS, JointTree
from gangplan.cel.program import CelProgram
from gangplan.cel.questions import SILENT, QuestionTree
from gangplan.errors import InternalError
from gangplan.packs.cases import read_pack_cases
from gangplan.policy.cases import build_policy_case_evaluator, build_policy_case_suites
from gangplan.policy.checks import build_policy_checker
from gangplan.source import load_objects
from gangplan.validate.apiserver.defaulting import crds
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.defaulting.paths import (
    copy_object_for_defaulting,
    fill_fields_from_defaults_table,
)
from gangplan.validate.apiserver.policy import silent
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy
from gangplan.validate.apiserver.policy.judge import PolicyEvaluator, Violation
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.workspace import Workspace, load_workspace
from tests.cel.test_asking import changed
from tests.golden import EXAMPLES, render_example
from tests.packs.test_packs import NOWHERE
from tests.workspaces import REPOSITORY

Body = dict[str, Any]
FULL = SchemaVersions("1.34", "2.3", "0.19", "0.12")


def standing(root: Path) -> list[Body]:
    """Return all objects rendered in a folder."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.yaml"))]
    bodies = [body for text in texts for body in load_objects(text) if isinstance(body, dict)]
    return [body for body in bodies if body.get("kind") and isinstance(body.get("metadata"), dict)]


@cache
def sample() -> dict[str, tuple[list[Body], PolicyEvaluator]]:
    """Return the rendered objects of each cluster of the sample workspace, and their evaluator."""
    workspace = load_workspace(REPOSITORY)
    found = {}
    for name in workspace.clusters:
        bodies = standing(REPOSITORY / "rendered" / name)
        found[name] = bodies, build_policy_checker(workspace, name, bodies).evaluator
    return found


def fresh(evaluator: PolicyEvaluator, **more: Any) -> PolicyEvaluator:
    """Return the same evaluator with an empty memory."""
    policies = [CompiledPolicy(one.policy, one.minor) for one in evaluator.policies]
    return replace(evaluator, policies=policies, **more)


def plainly(evaluator: PolicyEvaluator) -> PolicyEvaluator:
    """Return the same evaluator without memory."""
    return replace(evaluator, remembers=False)


def told(violations: list[Violation]) -> list[tuple[Any, ...]]:
    """Return all fields of violations."""
    return [
        (
            *(one.index, one.policy.name, one.binding.name, one.severity, one.message, one.validation),
            *(one.reason, one.paths, one.params, one.is_undecided, one.is_error),
        )
        for one in violations
    ]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the expressions that are evaluated from now on."""
    seen: list[str] = []
    for name in ("evaluate", "measure"):
        real = getattr(CelProgram, name)

        def spy(self: CelProgram, *arguments: Any, real: Any = real) -> Any:
            seen.append(self.text)
            return real(self, *arguments)

        monkeypatch.setattr(CelProgram, name, spy)
    return seen


def runtime() -> tuple[Body, PolicyEvaluator]:
    """Return a TrainingRuntime of the sample, and its evaluator."""
    for bodies, evaluator in sample().values():
        for body in bodies:
            if body["kind"] == "TrainingRuntime":
                return body, evaluator
    raise AssertionError


# --- the law --------------------------------------------------------------------------------------------


def test_the_sample_has_the_same_findings_with_memory() -> None:
    """In the second round, almost nothing is new."""
    count = 0
    for bodies, evaluator in sample().values():
        mine, plain = fresh(evaluator), plainly(evaluator)
        for _ in range(2):
            assert told(mine.judge(bodies)) == told(plain.judge(bodies))
        count += sum(ways.hits for ways in mine._index._joint.values())
    assert count > 100


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_examples_have_the_same_findings_with_memory(folder: Path) -> None:
    """Every pack is used, not only those of the examples; each example uses the memory of earlier ones."""
    bodies = standing(render_example(folder.name))
    _, evaluator = sample()[min(sample())]
    assert told(evaluator.judge(bodies)) == told(plainly(evaluator).judge(bodies))


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.data())
def test_changed_objects_have_the_same_findings_with_memory(
    chance: random.Random, data: st.DataObject
) -> None:
    """These include objects that no server would accept, and changes of one object into another."""
    bodies, evaluator = sample()[data.draw(st.sampled_from(sorted(sample())))]
    body = data.draw(st.sampled_from(bodies))
    new, old = changed(body, chance), data.draw(st.sampled_from([None, body, changed(body, chance)]))
    for one in (new, old):
        if one is not None and not (isinstance(one.get("metadata"), dict) and _has_plain_labels(one)):
            return  # the gate refuses it before any policy
    plain = _judged(plainly(evaluator), new, old)
    assert _judged(evaluator, new, old) == plain
    assert _judged(evaluator, new, old) == plain


def _has_plain_labels(body: Body) -> bool:
    labels = body["metadata"].get("labels") or {}
    return isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values())


def _judged(evaluator: PolicyEvaluator, body: Body, old: Body | None) -> Any:
    try:
        return told(evaluator.judge([body], [old]))
    except InternalError:
        raise
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ) as wrong:  # an object that no server would accept: the same mistake in both
        return type(wrong)


@pytest.mark.parametrize("suite", build_policy_case_suites(Workspace(NOWHERE)), ids=lambda suite: suite.pack)
def test_policy_cases_end_as_stated_with_memory(suite: Any) -> None:
    """Each case is evaluated after all others are in memory; allowed cases are silent."""
    cases, _ = read_pack_cases(suite.folder, suite.shown)
    learned: dict[str, CompiledPolicy] = {}
    for _ in range(2):
        for case in cases:
            evaluator, _ = build_policy_case_evaluator(suite, case)
            (one,) = evaluator.policies
            written = replace(one.policy.written, is_shipped=True)
            shipped = CompiledPolicy(replace(one.policy, written=written), one.minor)
            shipped = learned.setdefault(case.policy, shipped)
            judge = replace(evaluator, policies=[shipped])
            before = [case.file.old_object] if case.file.old_object else ()
            found = judge.judge([case.file.object], before)
            assert told(found) == told(replace(judge, remembers=False).judge([case.file.object], before))
            assert bool(found) == case.denies, case.where


# --- counts ---------------------------------------------------------------------------------------------


def test_an_object_of_a_known_shape_evaluates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    body, evaluator = runtime()
    mine = fresh(evaluator)
    quiet = [
        one for one in mine.policies if one.policy.name not in {v.policy.name for v in mine.judge([body])}
    ]
    mine = replace(mine, policies=quiet)
    monkeypatch.setattr(silent, "RECHECKED", 10**9)
    mine.judge([body])
    seen = counted(monkeypatch)
    for number in range(50):
        other = copy_object_for_defaulting(body)
        other["metadata"]["name"] = f"another-{number}"
        pods = other["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pods["containers"][0]["command"] = ["train", str(number)]
        assert mine.judge([other]) == []
    assert seen == []


def test_questions_of_all_policies_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The joint tree of some thirty policies asks far less than their own trees, and only it is followed."""
    body, evaluator = runtime()
    mine = fresh(evaluator)
    mine.judge([body] * 2)
    (joint,) = mine._index._joint.values()
    alone = sum(ways.tree.count for one in mine.policies for ways in one.silent.values())
    assert joint.tree.count < alone / 2
    ended: list[QuestionTree] = []
    real = QuestionTree.end

    def spy(self: QuestionTree, *arguments: Any) -> Any:
        ended.append(self)
        return real(self, *arguments)

    monkeypatch.setattr(QuestionTree, "end", spy)
    mine.judge([body])
    assert ended == [joint.tree]


def test_policies_with_many_ways_are_not_joined() -> None:
    """A policy with many ways stays alone: joined, it would multiply the ways of the others."""
    body, evaluator = runtime()
    mine = fresh(evaluator)
    for number in range(3 * MOST_WAYS):
        other = copy_object_for_defaulting(body)
        pods = other["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pods["containers"][0]["env"] = [{"name": "AWS_ENDPOINT_URL_1", "value": "https:"}] * number
        mine.judge([other])
    (joint,) = mine._index._joint.values()
    assert isinstance(joint.tree, JointTree)
    assert joint.tree.alone
    assert joint.hits > MOST_WAYS
    assert joint.tree.ways < 4


def test_matching_is_evaluated_once_per_namespace_and_kind() -> None:
    body, evaluator = runtime()
    mine = fresh(evaluator)
    for number in range(50):
        other = copy_object_for_defaulting(body)
        other["metadata"]["name"] = f"another-{number}"
        mine.judge([other])
    assert mine._index.asked == 1


def test_namespaces_that_policies_treat_alike_share_a_panel() -> None:
    """A thousand teams on a cluster have one list of policies, so what is kept of a namespace is small."""
    body, evaluator = runtime()
    space = evaluator.namespaces[body["metadata"]["namespace"]]
    names = [f"team-{number}" for number in range(20)]
    spaces = {name: {**space, "metadata": {**space["metadata"], "name": name}} for name in names}
    mine = fresh(evaluator, namespaces=spaces)
    for name in names:
        mine.judge([{**body, "metadata": {**body["metadata"], "namespace": name}}])
    assert mine._index.asked == len(mine._index._known) == 1


def test_namespaces_with_their_own_parameters_have_their_own_panel() -> None:
    """A binding without a namespace for its parameters takes those of the object's namespace."""
    body, evaluator = runtime()
    binding = next(one for one in evaluator.bindings if one.policy == "capabilities-added")
    assert binding.params is not None
    space = evaluator.namespaces[body["metadata"]["namespace"]]
    spaces = {name: {**space, "metadata": {**space["metadata"], "name": name}} for name in ("one", "two")}
    own = replace(binding, params=replace(binding.params, namespace="", denies_when_missing=True))
    maps = [one for one in evaluator.params if one["kind"] == "ConfigMap"]
    (params,) = [one for one in maps if one["metadata"]["name"] == own.params.name]
    params = {**params, "metadata": {**params["metadata"], "namespace": "one"}}
    mine = fresh(evaluator, namespaces=spaces, bindings=[own], params=[params])
    missing = []
    for name in ("one", "two", "one", "two"):
        found = mine.judge([{**body, "metadata": {**body["metadata"], "namespace": name}}])
        missing.append([one.message for one in found if one.is_error])
    assert missing[0] == missing[2] == []
    assert missing[1] == missing[3] != []


def test_every_so_many_answers_are_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for the policies' own trees and for the joint one."""
    body, evaluator = runtime()
    mine = fresh(evaluator)
    mine.judge([body])
    asked: list[str] = []
    real = silent.decide_request

    def spy(compiled: CompiledPolicy, *arguments: Any) -> Any:
        asked.append(compiled.policy.name)
        return real(compiled, *arguments)

    monkeypatch.setattr(silent, "decide_request", spy)
    speaking = {one.policy.name for one in mine.judge([body])}
    asked.clear()
    mine.judge([body] * silent.RECHECKED)
    quiet = Counter(name for name in asked if name not in speaking)
    assert len(quiet) > 20
    assert set(quiet.values()) == {1}


def test_clusters_with_the_same_parameters_share_their_memory() -> None:
    body, evaluator = runtime()
    mine = fresh(evaluator)
    mine.judge([body])
    news = sum(ways.news for one in mine.policies for ways in one.silent.values())
    other = replace(mine)
    other.judge([body])
    assert sum(ways.news for one in mine.policies for ways in one.silent.values()) == news


def test_own_policies_are_always_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their costs count, and costs depend on more than the values that were read."""
    body, evaluator = runtime()
    own = [
        CompiledPolicy(replace(one.policy, written=replace(one.policy.written, is_shipped=False)), one.minor)
        for one in evaluator.policies
    ]
    mine = replace(evaluator, policies=own)
    mine.judge([body])
    seen = counted(monkeypatch)
    mine.judge([body])
    assert len(seen) > len(own) / 2
    assert not any(one.silent for one in own)


def test_a_policy_with_a_new_way_each_time_stops_learning() -> None:
    ways = silent.SilentWays(news=silent.MOST_NEW, hits=3)
    assert ways.is_closed
    assert not silent.SilentWays(news=silent.MOST_NEW, hits=silent.MOST_NEW // 2).is_closed


# --- mistakes -------------------------------------------------------------------------------------------


def test_a_wrong_way_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that is silent where the policy has a finding is a bug of gangplan, and is reported as such."""
    body, evaluator = runtime()
    mine = fresh(evaluator)
    mine.judge([body])
    bad = copy_object_for_defaulting(body)
    jobs = bad["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["hostNetwork"] = True
    assert "host-namespaces" in {one.policy.name for one in mine.judge([bad])}
    (policy,) = [one for one in mine.policies if one.policy.name == "host-namespaces"]
    for ways in policy.silent.values():
        ways.tree.first[None] = SILENT
        ways.hits = 0
    mine = replace(mine)  # joins the changed trees again
    with pytest.raises(InternalError, match="policy 'host-namespaces' was judged wrongly"):
        mine.judge([bad] * (silent.RECHECKED + 1))


def test_a_new_way_is_checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body, evaluator = runtime()
    mine = fresh(evaluator)
    monkeypatch.setattr(silent, "_is_silent", lambda *_: True)
    bad = copy_object_for_defaulting(body)
    jobs = bad["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["hostNetwork"] = True
    with pytest.raises(InternalError, match="host-namespaces"):
        mine.judge([bad])


# --- defaults -------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.data())
def test_fillings_equal_their_tables(chance: random.Random, data: st.DataObject) -> None:
    """Even the order of fields is the same, and the object itself is unchanged."""
    bodies, _ = sample()[data.draw(st.sampled_from(sorted(sample())))]
    body = changed(data.draw(st.sampled_from(bodies)), chance)
    before = repr(body)
    wanted = copy_object_for_defaulting(body)
    fill_fields_from_defaults_table(
        wanted, crds.find_crd_defaults(body.get("apiVersion"), body.get("kind"), FULL)
    )
    assert repr(crds.find_crd_filling(body.get("apiVersion"), body.get("kind"), FULL).of(body)) == repr(
        wanted
    )
    if isinstance(body.get("metadata"), dict) and _has_plain_labels(body):
        fill_api_server_defaults(body, FULL)
    assert repr(body) == before
