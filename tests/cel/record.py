"""Record what the API server's own CEL says: `python -m tests.cel.record PROGRAM`, built from oracle/.

    cd tests/cel/oracle && GOFLAGS=-mod=mod go build -o /tmp/oracle .

Go walks maps in a random order: an answer that is not the same each time is left out.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tests import plain
from tests.cel.calls import Calls
from tests.cel.expressions import expressions

HERE = Path(__file__).parent
REPEATS = 4
REFUSED = ("compile-error", "program-error", "panic")


def ask(program: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the program's answers, in the order of the requests."""
    lines = "\n".join(json.dumps(request) for request in requests)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def steady(program: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers that are the same every time."""
    rounds = [ask(program, requests) for _ in range(REPEATS)]
    return [answers[0] for answers in zip(*rounds, strict=True) if all(a == answers[0] for a in answers)]


def write(name: str, data: Any) -> None:
    """Write a compressed file that is the same for the same data."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    (HERE / name).write_bytes(gzip.compress(text.encode(), mtime=0))


def compiled(program: str) -> None:
    """Fill in the answers of compile.yaml, and keep the order of its cases."""
    cases = plain.load((HERE / "compile.yaml").read_text(encoding="utf-8"))
    requests = [{"expr": case["expr"], "noEval": True, "minor": case.get("minor", 34)} for case in cases]
    lines = ["# Expressions and what the API server says to them: the type, or where it sees what is wrong."]
    for case, answer in zip(cases, ask(program, requests), strict=True):
        found = {key: case[key] for key in ("expr", "minor") if key in case}
        if answer["outcome"] not in REFUSED:
            found["type"] = answer["type"]
        elif answer["outcome"] == "compile-error":
            found["refused"] = [
                [issue["line"], issue["column"], issue["message"]] for issue in answer["issues"]
            ]
        else:
            found["refused"] = []
        lines.append(f"- {json.dumps(found, ensure_ascii=False)}")
    (HERE / "compile.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def trees(program: str) -> None:
    """Record the checked trees of random expressions."""
    requests = [{"expr": text, "noEval": True, "ast": True} for text in expressions(11, 600, wrong=0)]
    found = [[answer["expr"], answer["ast"]] for answer in ask(program, requests) if "ast" in answer]
    write("trees.json.gz", found)


def answers(program: str) -> None:
    """Record values, error messages and costs of random expressions over the variables of
    conformance.json."""
    variables = json.loads((HERE / "conformance.json").read_text(encoding="utf-8"))["variables"]
    texts = [*expressions(7, 1300, wrong=0.01), *expressions(8, 300, wrong=0.2)]
    requests = [{"expr": text, "values": variables} for text in texts]
    keys = ("expr", "outcome", "type", "value", "error", "cost")
    cases = []
    for answer in steady(program, requests):
        case = {key: answer[key] for key in keys if key in answer}
        if case["outcome"] in REFUSED:
            case = {"expr": case["expr"], "outcome": "compile-error"}
        cases.append({"name": f"random {len(cases)}", **case})
    write("answers.json.gz", {"kubernetes": "1.34", "variables": variables, "cases": cases})


def calls(program: str) -> None:
    """Record values, error messages and costs of random calls of the libraries."""
    requests = [{"expr": text} for text in islice(Calls(5), 2500)]
    keys = ("expr", "outcome", "type", "value", "error", "cost")
    cases = []
    for answer in steady(program, requests):
        case = {key: answer[key] for key in keys if key in answer}
        if case["outcome"] in REFUSED:
            case = {"expr": case["expr"], "outcome": "compile-error"}
        cases.append({"name": f"call {len(cases)}", **case})
    write("calls.json.gz", {"kubernetes": "1.34", "variables": {}, "cases": cases})


if __name__ == "__main__":
    calls(sys.argv[1])
    compiled(sys.argv[1])
    trees(sys.argv[1])
    answers(sys.argv[1])
