"""Evaluation: the quick one compared with the measured one, budgets, unknowns, variables, memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gangplan.cel
from gangplan.cel import admission
from gangplan.cel.environment import Environment
from gangplan.cel.errors import BudgetError, CompileError, EvalError, UnknownError
from gangplan.cel.program import CelProgram
from gangplan.cel.types import DYN, INT
from gangplan.cel.values import Uint

HERE = Path(__file__).parent
ADMISSION = Environment(minor=34, variables=admission.declare_cel_policy_variables(has_params=True))
GIVEN: dict[str, Any] = json.loads((HERE / "conformance.json").read_text(encoding="utf-8"))
VARIABLES: dict[str, Any] = GIVEN["variables"]


def outcome(evaluate: Any, *arguments: Any) -> str:
    """Return the result of an evaluation, or its error, as text."""
    try:
        return repr(evaluate(*arguments))
    except (EvalError, UnknownError) as problem:
        return f"{type(problem).__name__}: {problem}"


def test_quick_and_measured_evaluation_agree() -> None:
    data = json.loads(gzip.decompress((HERE / "answers.json.gz").read_bytes()))
    programs = 0
    for case in data["cases"]:
        if case["outcome"] == "compile-error":
            continue
        program = ADMISSION.compile(case["expr"])
        measured = outcome(lambda program: program.measure(VARIABLES)[0], program)
        assert outcome(program.evaluate, VARIABLES) == measured, case["expr"]
        programs += 1
    assert programs > 800


@pytest.mark.parametrize(
    "expression",
    [
        # An error on one side does not matter when the other decides.
        "object.nope || true",
        "!(object.nope && false)",
        "[dyn(1), dyn('a')].all(x, x + 1 > 5) || true",
        "[dyn('a'), dyn(1), dyn(9)].exists(x, x > 5)",
        "!['a', 'b'].all(x, x == 'b' && object.nope)",
        "{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)",
        # Nested loops keep their variables apart.
        "[1, 2].map(x, [10, 20].map(y, x * y)) == [[10, 20], [20, 40]]",
        "[1, 2].map(x, [x].map(x, x + 1)) == [[2], [3]]",
        "[[1, 2], [3]].exists(l, l.exists_one(x, x > 2))",
        "optional.of(2).optMap(x, x * 2).value() == 4",
        "['b', 'a'].sortBy(x, x)[0] == 'a'",
        "{'x': 1, 'y': 2}.transformMap(k, v, k == 'x', v * 2) == {'x': 2}",
        "(true ? {'a': 1} : {'b': 2}).a == 1",
        "has(object.metadata.name) && !has(object.metadata.name.x)",
        "object.spec.ports[dyn(1.0)] == 29501",
        "dyn(1) in [1u, 2u] && dyn(1) in [1.0] && !(dyn(true) in [1])",
    ],
)
def test_expressions_hold_in_both_kinds_of_evaluation(expression: str) -> None:
    program = ADMISSION.compile(expression)
    assert program.evaluate(VARIABLES) is True
    assert program.measure(VARIABLES)[0] is True


def test_a_budget_ends_an_evaluation() -> None:
    program = ADMISSION.compile("[1, 2, 3, 4].all(x, x > 0)")
    value, cost = program.measure({})
    assert (value, cost) == (True, 21)
    assert program.measure({}, budget=cost) == (True, cost)
    with pytest.raises(BudgetError, match="actual cost limit exceeded") as caught:
        program.measure({}, budget=cost - 1)
    assert caught.value.cost == cost
    with pytest.raises(BudgetError):
        ADMISSION.compile("object.?spec.?ports.orValue([]).all(x, x > 0)").measure(VARIABLES, budget=3)


@pytest.mark.parametrize(
    "text", ["{object: 1}.size()", "{'a': object}.transformMapEntry(k, v, {v: k})", "{dyn([1]): 1}"]
)
def test_a_map_or_a_list_as_a_key_is_unknown(text: str) -> None:
    for evaluate in (ADMISSION.compile(text).evaluate, ADMISSION.compile(text).measure):
        assert outcome(evaluate, VARIABLES).startswith("UnknownError")
    assert ADMISSION.compile(f"true || {text} == {text}").evaluate(VARIABLES) is True


def test_the_authorizer_s_answer_is_unknown_unless_it_is_irrelevant() -> None:
    check = "authorizer.group('').resource('pods').check('create').allowed()"
    for text in (check, f"{check} && true", f"object.nope || {check}"):
        program = ADMISSION.compile(text)
        assert outcome(program.evaluate, VARIABLES).startswith("UnknownError")
        assert outcome(program.measure, VARIABLES).startswith("UnknownError")
    assert ADMISSION.compile(f"{check} || true").evaluate(VARIABLES) is True
    assert (
        ADMISSION.compile("authorizer.requestResource.check('get').allowed() && false").evaluate({}) is False
    )


def test_a_conversion_that_can_only_fail_does_not_compile() -> None:
    for text in ("int('a')", "bool('x')", "object[null]", "'a'.find('(')"):
        with pytest.raises(CompileError):
            ADMISSION.compile(text)


class Lazy(Mapping[str, Any]):
    """Variables of a policy, computed when they are read."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_ = values
        self.read: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.read.append(key)
        value = self.values_[key]
        if isinstance(value, Exception):
            raise value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def test_variables_are_lazy_and_fail_only_where_they_are_used() -> None:
    types = admission.declare_cel_policy_variables(has_params=False, composed={"a": INT, "b": DYN})
    environment = Environment(minor=34, variables=types)
    variables = Lazy({"a": 2, "b": EvalError("b failed")})
    activation = {"variables": variables, "object": {}}
    assert environment.compile("variables.a == 2").evaluate(activation) is True
    assert variables.read == ["a"]
    program = environment.compile("variables.a == 2 || variables.b == 1")
    assert program.evaluate(activation) is True
    assert program.measure(activation) == (True, 3)
    for program in (environment.compile("variables.b == 1"), environment.compile("has(variables.b) && true")):
        assert "b failed" in outcome(program.evaluate, activation)
        assert "b failed" in outcome(program.measure, activation)


def test_a_missing_variable_is_an_error_only_where_it_is_read() -> None:
    program = ADMISSION.compile("object.a == 1 || params.b == 2")
    assert program.evaluate({"object": {"a": 1}}) is True
    assert outcome(program.evaluate, {"object": {"a": 2}}) == "EvalError: no such attribute(s): params"


def test_types_of_numbers_are_kept() -> None:
    program = ADMISSION.compile("[dyn(1), dyn(1u), dyn(1.0), dyn(true)]")
    assert [type(value) for value in program.evaluate({})] == [int, Uint, float, bool]
    assert ADMISSION.compile("dyn(true) == dyn(1)").evaluate({}) is False


def test_repeated_evaluation_holds_no_more_memory() -> None:
    texts = [
        "object.spec.trainer.env.all(e, e.name.startsWith('NCCL_') || e.name == 'MASTER')",
        "quantity(params.data.maxMemory).isGreaterThan(quantity('1Gi'))",
        "object.nope.deep == 1",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    ]
    programs = [ADMISSION.compile(text) for text in texts]
    tracemalloc.start()
    try:
        _evaluate(programs, 200)
        before = _held()
        _evaluate(programs, 2000)
        grown = _held() - before
    finally:
        tracemalloc.stop()
    assert grown < 10_000, f"{grown} bytes for 8 000 evaluations"


def _held() -> int:
    """Return the bytes that code of gangplan.cel holds: other threads of the tests allocate as well."""
    ours = tracemalloc.Filter(True, f"{Path(gangplan.cel.__file__).parent}/*")
    snapshot = tracemalloc.take_snapshot().filter_traces([ours])
    return sum(each.size for each in snapshot.statistics("filename"))


def _evaluate(programs: list[CelProgram], times: int) -> None:
    for _ in range(times):
        for program in programs:
            outcome(program.evaluate, VARIABLES)


def _doubling(step: str, times: int) -> dict[str, object]:
    """Return a value built from its predecessor again and again, as the variables of a policy can be."""
    value: object = [1, 2]
    program = Environment(minor=34, variables={"v": DYN}).compile(step)
    for _ in range(times):
        value = program.evaluate({"v": value})
    return {"v": value}


def test_lists_that_double_are_unknown_before_memory_runs_out() -> None:
    with pytest.raises(UnknownError, match="not followed offline"):
        _doubling("v + v", 40)
    nested = _doubling("[v, v]", 40)
    with pytest.raises(UnknownError, match="not followed offline"):
        Environment(minor=34, variables={"v": DYN}).compile("v.flatten(60)").evaluate(nested)
    with pytest.raises(UnknownError, match="not followed offline"):
        Environment(minor=34, variables={}).compile("lists.range(1000000000)").evaluate({})


@pytest.mark.parametrize("expression", ["v == v", "v in [v]", "[v].indexOf(v) == 0", "{'a': v} == {'a': v}"])
def test_shared_parts_are_compared_once(expression: str) -> None:
    program = Environment(minor=34, variables={"v": DYN}).compile(expression)
    assert program.evaluate(_doubling("[v, v]", 60)) is True
    assert program.measure(_doubling("[v, v]", 60))[0] is True
