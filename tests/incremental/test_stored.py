"""Kept values, which read back as the same values."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gangplan.findings import Finding, Fix, Location, Waived
from gangplan.pipeline.stored import (
    SharedValues,
    compact_shared_result_values,
    dump_run_demand,
    dump_stored_finding,
    load_run_demand,
    load_stored_finding,
)
from gangplan.pipeline.team_results import TeamResults
from gangplan.pipeline.worker import TaskResult
from gangplan.rulebook import Rulebook
from gangplan.rules.model import Severity
from gangplan.rules.specs import RUN_RENAMED
from gangplan.validate.kueue.contention import RunDemand

NAMES = st.text(max_size=5)
AMOUNTS = st.fractions()
QUOTA = st.none() | st.dictionaries(st.tuples(NAMES, NAMES), AMOUNTS, max_size=3)
PLACES = st.builds(Location, NAMES, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
DEMANDS = st.builds(
    RunDemand,
    st.integers(1, 9),
    st.dictionaries(NAMES, AMOUNTS, max_size=3),
    st.lists(NAMES, max_size=2).map(tuple),
    st.booleans(),
    NAMES,
    st.integers(-9, 9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    QUOTA,
    QUOTA,
)
FINDINGS = st.builds(
    Finding,
    st.sampled_from([RUN_RENAMED, Rulebook().policy("one-of-ours")]),
    PLACES,
    NAMES,
    NAMES,
    NAMES,
    NAMES,
    st.none() | st.builds(Waived, PLACES, NAMES, NAMES, NAMES, st.booleans()),
    st.none() | st.builds(Fix, NAMES, *([st.integers(0, 9)] * 4), NAMES, NAMES),
    st.lists(NAMES, max_size=2).map(tuple),
    st.none() | st.sampled_from(list(Severity)),
)


def _held(value: object) -> object:
    return json.loads(json.dumps(value))


@given(DEMANDS)
def test_demands_read_back_equal(demand: RunDemand) -> None:
    """Every field is kept, amounts to the last digit."""
    assert load_run_demand(_held(dump_run_demand(demand))) == demand
    assert len(dump_run_demand(demand)) == len(fields(RunDemand))


@given(FINDINGS)
def test_findings_read_back_equal(finding: Finding) -> None:
    """Every field is kept, even those that equality leaves out."""
    read = load_stored_finding(_held(dump_stored_finding(finding, Rulebook().policy)), Rulebook().policy)
    assert read == finding
    assert (read.fix, read.clusters, read.where.end) == (finding.fix, finding.clusters, finding.where.end)
    assert type(read.rule) is type(finding.rule)


def test_only_values_in_use_stay() -> None:
    """Values that no result refers to any more are left out, and the numbers are adjusted."""
    shared = SharedValues({})
    assert [shared.number("demands", one) for one in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    for policies in ("x", "y"):
        shared.number("policies", policies)
    for facts in (["old"], ["new"]):
        shared.number("facts", facts)
    told = [[], [], [], {}, [["lab", "job", [], 2]], 1, 1, 1, [["lab", "nlp", "job", "job-1", "", [], 1]]]
    assert compact_shared_result_values([told], shared.values) == {
        "demands": ["c"],
        "policies": ["y"],
        "facts": [["new"]],
    }
    assert (told[4][0][-1], told[8][0][-1]) == (0, 0)
    assert told[7] == 0


def test_fractions_are_exact() -> None:
    """They are not rounded decimals."""
    demand = RunDemand(1, {"cpu": Fraction(1, 3)}, (), True)
    assert load_run_demand(_held(dump_run_demand(demand))).each["cpu"] * 3 == 1


def test_folded_results_come_back() -> None:
    """Results of a team are kept as a few bytes while those of others are made, and more may come."""
    results = TeamResults({}, 0, {"files": {}, "folders": {}, "shared": {}})
    for name in ("a", "b"):
        file = f"specs/nlp/{name}.yaml"
        demand = RunDemand(1, {"cpu": Fraction(1, 3)}, (), True)
        results.note(TaskResult(file, demands=[("lab", name, Location(file, 1, 1), demand)]), {}.get)
        results.fold()
        assert results.has_new
    new, shared = results.new()
    assert sorted(new) == ["specs/nlp/a.yaml", "specs/nlp/b.yaml"]
    assert len(shared.values["demands"]) == 1
    assert json.loads(new["specs/nlp/b.yaml"])[4] == [["lab", "b", ["specs/nlp/b.yaml", 1, 1, 0], 0]]


def test_demands_of_workers_share_their_amounts() -> None:
    """The parent keeps the demands of a hundred thousand runs."""
    demand = RunDemand(
        2, {"cpu": Fraction(1, 3)}, ("a100",), True, "training", 3, usage={("a100", "cpu"): Fraction(2, 3)}
    )
    first, second = (pickle.loads(pickle.dumps(replace(demand, queue=name))) for name in ("one", "two"))
    assert first == replace(demand, queue="one")
    assert (first.each, first.usage, first.most) == (demand.each, demand.usage, None)
    assert first.each is second.each
    assert first.usage is second.usage
