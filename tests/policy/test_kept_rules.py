"""Rules of a CRD are not evaluated again for values that are known to pass, with their cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.cel.program import CelProgram
from gangplan.validate.apiserver.crdrules import rules
from gangplan.validate.apiserver.crdrules.builtin import compile_built_in_crd_rules
from gangplan.validate.apiserver.crdrules.rules import CompiledRule, Kept, find_crd_rule_breaches
from gangplan.validate.apiserver.schema import SchemaVersions

GROUP = "trainer.kubeflow.org/v1alpha1"
Body = dict[str, Any]


def of_runtimes() -> list[CompiledRule]:
    """Return the rules of a TrainingRuntime, with no kept values."""
    found = compile_built_in_crd_rules(
        GROUP, "TrainingRuntime", SchemaVersions("1.34", "2.1", "0.19", "0.12")
    )
    return [replace(one, kept=Kept()) for one in found]


def deaf(some: list[CompiledRule]) -> list[CompiledRule]:
    """Return the same rules, evaluated each time."""
    return [replace(one, kept=Kept(luck=0)) for one in some]


counts = st.sampled_from([0, 1, 2, True, "auto", "cpu", "1", None, 1.0])
policies = st.fixed_dictionaries(
    {},
    optional={
        "numNodes": counts,
        "torch": st.fixed_dictionaries(
            {}, optional={"numProcPerNode": counts, "elasticPolicy": st.fixed_dictionaries({})}
        ),
        "mpi": st.fixed_dictionaries({}, optional={"numProcPerNode": counts}),
    },
)
startups = st.fixed_dictionaries(
    {}, optional={"startupPolicyOrder": st.sampled_from(["InOrder", "AnyOrder"])}
)
objects = st.builds(
    lambda policy, startup: {
        "metadata": {"name": "a"},
        "spec": {"mlPolicy": policy, "template": {"spec": startup}},
    },
    policies,
    st.fixed_dictionaries({}, optional={"startupPolicy": startups}),
)


@settings(deadline=None)
@given(st.lists(objects, min_size=1, max_size=5))
def test_kept_results_equal_evaluated_ones(bodies: list[Body]) -> None:
    """Verdicts, messages and paths are the same, also when a budget runs out."""
    known = of_runtimes()
    asked = deaf(known)
    for body in bodies * 2:
        expected = find_crd_rule_breaches(asked, body)
        assert find_crd_rule_breaches(known, body) == expected
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "PER_OBJECT", 20)
            assert find_crd_rule_breaches(known, body) == find_crd_rule_breaches(asked, body)


def test_a_rule_is_evaluated_once_for_what_runs_share(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[CelProgram] = []
    real = CelProgram.measure
    monkeypatch.setattr(CelProgram, "measure", lambda self, *given: calls.append(self) or real(self, *given))
    known = [one for one in of_runtimes() if one.rule.path[:2] == ("spec", "mlPolicy")]
    assert known
    for number in range(300):
        policy = {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}
        find_crd_rule_breaches(known, {"metadata": {"name": f"run-{number}"}, "spec": {"mlPolicy": policy}})
    assert len(calls) <= len(known)


def test_values_that_never_repeat_are_no_longer_kept() -> None:
    known = of_runtimes()
    for number in range(1000):
        find_crd_rule_breaches(known, {"metadata": {"name": "a"}, "spec": {"mlPolicy": {"numNodes": number}}})
    assert all(len(one.kept.costs) <= rules._PATIENCE for one in known)
    assert {one.kept.luck for one in known} & {0}
