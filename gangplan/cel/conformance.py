"""`python -m gangplan.cel.conformance FILE`: compare our engine with recorded answers of an API server.

FILE is JSON: `kubernetes` ("1.34"), `variables` (name to value) and `cases` of `name`, `expr`, `outcome`
(value, runtime-error, compile-error), `type`, `value`, `error`, `cost`; what a case lacks is not compared.
`declare` (name to type) replaces the variables of admission policies. Values that JSON can't hold are tagged,
such as `{"$duration": 3600000000000}`, or written as Go prints them (`<map map[1:a]>`). Exit: 0 all agree or
differ for a known reason · 1 something differs · 2 FILE can't be read.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.cel import admission
from gangplan.cel.declarations import parse_cel_type
from gangplan.cel.environment import Environment
from gangplan.cel.errors import CompileError, EvalError, UnknownError
from gangplan.cel.program import CelProgram
from gangplan.cel.recorded import format_recorded_value, is_recorded_cel_value
from gangplan.cel.types import DYN, Type
from gangplan.records import dataclass

# Outcomes in which a server does not compile an expression: it refuses the policy, or answers 500.
_REFUSED = frozenset(("compile-error", "program-error", "panic"))
# The fields that every case needs.
_NEEDED = ("expr", "outcome")
_MAP_ORDER = "the API server walks maps in no fixed order"
_OFFLINE = "asks the cluster"
_MESSAGES = "gangplan builds no protobuf messages"
_GO_TYPES = "Go has several types of lists and maps"
_LOST = "cel-go loses what an optional holds when a choice gives it"


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """An engine's answer for an expression; `value` is set only if the outcome is a value."""

    outcome: str
    type: str | None = None
    value: object = None
    cost: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A case in which the engine's answer differs from the server's. `reason` is empty if it is unknown."""

    name: str
    expression: str
    text: str
    reason: str


class Runner:
    """The engine as it answers cases, set up like the recorded server."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.variables: dict[str, Any] = data.get("variables", {})
        self.environment = Environment(
            minor=int(str(data["kubernetes"]).split(".")[1]),
            variables=_read_variable_types(data, self.variables),
        )

    def answer(self, expression: str) -> RecordedOutcome:
        """Return our answer."""
        try:
            program = self.environment.compile(expression)
        except CompileError as error:
            return RecordedOutcome("compile-error", error=str(error))
        return _evaluate_cel_program(program, self.variables)

    def difference(self, case: Mapping[str, Any]) -> Difference | None:
        """Return how our answer differs from the recorded one, or None if it does not."""
        expression = case["expr"]
        answer = self.answer(expression)
        text = _describe_cel_conformance_difference(case, answer)
        if not text:
            return None
        reason = self.reason(case, answer)
        return Difference(str(case.get("name", "")), expression, text, reason)

    def reason(self, case: Mapping[str, Any], answer: RecordedOutcome) -> str:
        """Return why the answers differ, if that is known and not a bug of ours; otherwise an
        empty string."""
        if answer.outcome == "unknown":
            return _OFFLINE
        if answer.outcome == "compile-error":
            return _MESSAGES if "gangplan does not build" in answer.error else ""
        if all(text.startswith("invalid qualifier type: ") for text in (case.get("error", ""), answer.error)):
            return _GO_TYPES
        if "$error" in json.dumps(case.get("value")):
            return _LOST
        program = self.environment.compile(case["expr"])
        for variables in _iterate_map_orderings(self.variables):
            if not _describe_cel_conformance_difference(case, _evaluate_cel_program(program, variables)):
                return _MAP_ORDER
        return ""


def _read_variable_types(data: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Type]:
    if "declare" in data:
        return {name: parse_cel_type(text) for name, text in data["declare"].items()}
    return dict.fromkeys(variables, DYN) | admission.declare_cel_policy_variables(has_params=True)


def _evaluate_cel_program(program: CelProgram, variables: Mapping[str, Any]) -> RecordedOutcome:
    type_ = str(program.type)
    try:
        value, cost = program.measure(variables)
    except UnknownError as error:
        return RecordedOutcome("unknown", type_, error=str(error))
    except EvalError as error:
        return RecordedOutcome("runtime-error", type_, cost=getattr(error, "cost", None), error=str(error))
    return RecordedOutcome("value", type_, value, cost)


def _describe_cel_conformance_difference(case: Mapping[str, Any], answer: RecordedOutcome) -> str:
    """Return the first difference as `wanted X, got Y`; empty if they agree."""
    wanted = "compile-error" if case["outcome"] in _REFUSED else case["outcome"]
    if wanted != answer.outcome:
        return f"wanted {wanted}, got {answer.outcome}{f' ({answer.error})' if answer.error else ''}"
    if wanted == "compile-error":
        return ""
    if case.get("type") not in (None, answer.type):
        return f"wanted type {case['type']}, got {answer.type}"
    if wanted == "value" and "value" in case and not is_recorded_cel_value(case["value"], answer.value):
        return f"wanted {case['value']!r}, got {format_recorded_value(answer.value)}"
    if case.get("error") not in (None, answer.error) and wanted == "runtime-error":
        return f"wanted error {case['error']!r}, got {answer.error!r}"
    if case.get("cost") is not None and answer.cost is not None and case["cost"] != answer.cost:
        return f"wanted cost {case['cost']}, got {answer.cost}"
    return ""


def _iterate_map_orderings(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the same variables with the entries of maps in other orders."""
    for turn in range(8):
        yield {name: _reorder_map_entries(value, turn) for name, value in variables.items()}


def _reorder_map_entries(value: Any, turn: int) -> Any:
    if isinstance(value, list):
        return [_reorder_map_entries(element, turn) for element in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    if turn % 2:
        keys.reverse()
    start = turn // 2 % max(len(keys), 1)
    return {key: _reorder_map_entries(value[key], turn) for key in (*keys[start:], *keys[:start])}


def run(data: Mapping[str, Any]) -> list[Difference]:
    """Return all differences between our engine and the recorded answers, in the order of the cases."""
    runner = Runner(data)
    found = (runner.difference(case) for case in data["cases"])
    return [difference for difference in found if difference is not None]


def format_cel_conformance_report(count: int, differences: Sequence[Difference]) -> str:
    """Return the score and every difference as text."""
    explained = [difference for difference in differences if difference.reason]
    failed = len(differences) - len(explained)
    lines = [f"{count - len(differences)} of {count} passed, {len(explained)} deviations, {failed} failed"]
    for difference in differences:
        kind = f"deviation ({difference.reason})" if difference.reason else "failed"
        lines.append(f"{kind}: {difference.name}: {difference.expression}\n    {difference.text}")
    return "\n".join(lines)


def run_cel_conformance_cases(arguments: Sequence[str]) -> int:
    """Run the cases of the named file and print the score."""
    if len(arguments) != 1:
        print("usage: python -m gangplan.cel.conformance FILE", file=sys.stderr)
        return 2
    try:
        data = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        wrong = _describe_malformed_cel_conformance_file(data)
        differences = [] if wrong else run(data)
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
    except ValueError as error:
        wrong = f"it is not as the first lines of this module say: {error}"
    if wrong:
        print(f"{arguments[0]}: nothing was checked: {wrong}", file=sys.stderr)
        return 2
    _print_despite_closed_pipe(format_cel_conformance_report(len(data["cases"]), differences))
    return 1 if any(not difference.reason for difference in differences) else 0


def _describe_malformed_cel_conformance_file(data: object) -> str:
    """Return what is wrong with a document of recorded answers; empty if nothing is."""
    if not isinstance(data, dict):
        return "it holds no JSON object; wanted are the keys kubernetes and cases"
    if not re.fullmatch(r"1\.[0-9]+(\..*)?", str(data.get("kubernetes", ""))):
        return 'it names no version; wanted is "kubernetes": "1.34"'
    for key in ("variables", "declare"):
        if not isinstance(data.get(key, {}), dict):
            return f"{key} is not an object of names and {'values' if key == 'variables' else 'types'}"
    cases = data.get("cases")
    if not isinstance(cases, list) or not cases:
        return 'it has no cases; wanted is "cases": [{"expr": "1 + 1", "outcome": "value", "value": 2}]'
    for number, case in enumerate(cases, 1):
        if not isinstance(case, dict) or not all(isinstance(case.get(key), str) for key in _NEEDED):
            return f"case {number} lacks {' or '.join(_NEEDED)}, which are texts"
    return ""


def _print_despite_closed_pipe(text: str) -> None:
    """Print, ignoring a reader that has closed the pipe."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(run_cel_conformance_cases(sys.argv[1:]))
