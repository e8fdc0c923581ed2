"""The whole engine compared with recorded answers of a real API server, and the runner that compares them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gangplan.cel import conformance

HERE = Path(__file__).parent
GIVEN: dict[str, Any] = json.loads((HERE / "conformance.json").read_text(encoding="utf-8"))


def test_the_given_cases_agree_except_for_the_order_of_maps() -> None:
    differences = conformance.run(GIVEN)
    assert [d for d in differences if not d.reason] == []
    # The cost of a loop over a map that stops early depends on the order in which Go walks it.
    assert [d.name for d in differences] == ["two#33"]


def test_random_expressions_have_the_recorded_values_errors_and_costs() -> None:
    data = json.loads(gzip.decompress((HERE / "answers.json.gz").read_bytes()))
    outcomes = [case["outcome"] for case in data["cases"]]
    assert len(outcomes) >= 1000
    assert min(map(outcomes.count, ("value", "runtime-error", "compile-error"))) >= 200
    assert [d for d in conformance.run(data) if not d.reason] == []


WRONG = [
    ({"expr": "1 + 1", "outcome": "value", "type": "int", "value": 3, "cost": 1}, "wanted 3, got 2"),
    ({"expr": "1 + 1", "outcome": "value", "type": "uint", "value": 2}, "wanted type uint, got int"),
    ({"expr": "1 + 1", "outcome": "value", "value": 2, "cost": 7}, "wanted cost 7, got 1"),
    ({"expr": "1 + 1", "outcome": "compile-error"}, "wanted compile-error, got value"),
    ({"expr": "1 / 0", "outcome": "value", "value": 1}, "wanted value, got runtime-error (division by zero)"),
    (
        {"expr": "1 / 0", "outcome": "runtime-error", "error": "nope"},
        "wanted error 'nope', got 'division by zero'",
    ),
    ({"expr": "nope", "outcome": "value", "value": 1}, "wanted value, got compile-error"),
    ({"expr": "duration('1s')", "outcome": "value", "value": {"$duration": 5}}, "wanted {'$duration': 5}"),
    ({"expr": "true", "outcome": "value", "value": 1}, "wanted 1, got True"),
    ({"expr": "1u", "outcome": "value", "value": {"$uint": "2"}}, "wanted {'$uint': '2'}"),
    ({"expr": "{1: 'a'}", "outcome": "value", "value": "<map map[2:a]>"}, "wanted '<map map[2:a]>'"),
    ({"expr": "[1, 2]", "outcome": "value", "value": [2, 1]}, "wanted [2, 1]"),
]


@pytest.mark.parametrize(("case", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_answer_fails(case: dict[str, Any], text: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"kubernetes": "1.34", "variables": {}, "cases": [{"name": "n", **case}]}))
    assert conformance.run_cel_conformance_cases([str(file)]) == 1
    output = capsys.readouterr().out
    assert output.startswith("0 of 1 passed, 0 deviations, 1 failed\nfailed: n: ")
    assert text in output


def test_the_score_is_printed(capsys: Any) -> None:
    assert conformance.run_cel_conformance_cases([str(HERE / "conformance.json")]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "253 of 254 passed, 1 deviations, 0 failed"
    assert second.startswith("deviation (the API server walks maps in no fixed order): two#33: ")
    assert third == "    wanted cost 30, got 21"


def test_answers_that_only_the_cluster_knows_are_deviations(capsys: Any, tmp_path: Path) -> None:
    cases = [
        {
            "expr": "authorizer.path('/').check('get').allowed()",
            "outcome": "value",
            "type": "bool",
            "value": True,
        },
        {"expr": "google.protobuf.Int64Value{value: 1}", "outcome": "value", "value": 1},
    ]
    file = tmp_path / "cases.json"
    variables = {"authorizer": None}
    file.write_text(json.dumps({"kubernetes": "1.34", "variables": variables, "cases": cases}))
    assert conformance.run_cel_conformance_cases([str(file)]) == 0
    assert "0 of 2 passed, 2 deviations, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"kubernetes": "1.34", "cases": []}', '{"kubernetes": "1.99", "cases": []}']
)
def test_a_file_without_cases_is_an_error(text: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text)
    assert conformance.run_cel_conformance_cases([str(file)]) == 2
    assert str(file) in capsys.readouterr().err


CASE = {"expr": "1", "outcome": "value"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "it holds no JSON object"),
        ({"cases": [CASE]}, 'wanted is "kubernetes": "1.34"'),
        ({"kubernetes": {}, "cases": [CASE]}, "it names no version"),
        ({"kubernetes": "two", "cases": [CASE]}, "it names no version"),
        ({"kubernetes": "1.34"}, "it has no cases"),
        ({"kubernetes": "1.34", "cases": {}}, "it has no cases"),
        ({"kubernetes": "1.34", "cases": [CASE, 1]}, "case 2 lacks expr or outcome"),
        ({"kubernetes": "1.34", "cases": [{"expr": 1, "outcome": "value"}]}, "case 1 lacks"),
        ({"kubernetes": "1.34", "variables": [], "cases": [CASE]}, "variables is not an object"),
        ({"kubernetes": "1.34", "declare": "x", "cases": [CASE]}, "declare is not an object"),
        ({"kubernetes": "1.34", "declare": {"x": "nope("}, "cases": [CASE]}, "not a type: "),
    ],
)
def test_a_file_of_another_shape_is_explained(
    data: Any, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(data))
    assert conformance.run_cel_conformance_cases([str(file)]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"{file}: nothing was checked: ")
    assert says in text
    assert conformance.run_cel_conformance_cases([str(tmp_path / "none.json")]) == 2
    assert "it cannot be read: No such file" in capsys.readouterr().err


def test_a_reader_may_close_the_pipe_early() -> None:
    command = f"'{sys.executable}' -m gangplan.cel.conformance '{HERE}/conformance.json' | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_runner_needs_exactly_one_file(capsys: Any) -> None:
    assert conformance.run_cel_conformance_cases([]) == 2
    assert "usage" in capsys.readouterr().err
