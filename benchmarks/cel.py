"""CEL: compile time, evaluations per second, memory growth and conformance: `python -m benchmarks.cel`.

It measures our engine and, if it is installed, the CEL project's own Python binding (`pip install
cel-expr-python`). Seconds are processor time. The binding has none of Kubernetes' functions; its memory is
measured on what it compiles, and once more with `quantity` as a function in Python, as users would add it.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gangplan.cel import admission, conformance
from gangplan.cel.environment import Environment

CASES = Path(__file__).parents[1] / "tests" / "cel" / "conformance.json"
# Like the expressions in policies/: guards, loops, strings, amounts, addresses.
EXPRESSIONS = (
    "has(object.spec.trainer.numNodes) && object.spec.trainer.numNodes <= 16",
    "'team' in object.metadata.labels && object.metadata.labels['team'].matches('^[a-z-]+$')",
    "object.spec.trainer.env.all(e, e.name.startsWith('NCCL_') || e.name == 'MASTER')",
    "object.spec.podTemplateOverrides.all(o, o.spec.volumes.all(v, !has(v.hostPath)))",
    "object.?spec.?trainer.?bogus.orValue('none') == 'none'",
    "object.spec.trainer.image.split('/')[0] in ['registry.example.com', 'registry.example.com:5000']",
    "request.operation == 'CREATE' && request.userInfo.groups.exists(g, g == 'ops')",
    "int(object.spec.trainer.resourcesPerNode.requests['rdma/hca']) * object.spec.trainer.numNodes <= 128",
)
OF_KUBERNETES = (
    "quantity(object.spec.trainer.resourcesPerNode.limits.memory).isLessThan(quantity(params.data.maxMemory))",
    "object.spec.egress.all(e, isCIDR(e.cidr) && cidr(e.cidr).prefixLength() >= 16)",
    "'job %s uses %d nodes'.format([object.metadata.name, object.spec.trainer.numNodes])",
    "!format.dns1123Label().validate(object.metadata.name).hasValue()",
)
Evaluate = Callable[[], Any]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cel", description=__doc__)
    parser.add_argument(
        "--evaluations", type=int, default=1_000_000, help="how many for the memory (1000000)"
    )
    asked = parser.parse_args()
    given = json.loads(CASES.read_text(encoding="utf-8"))
    _ours(given, asked.evaluations)
    if importlib.util.find_spec("cel_expr_python") is None:
        print("cel-expr-python: not installed, not measured")
    else:
        _binding(given, asked.evaluations)
    return 0


# Measuring


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _rate(evaluations: list[Evaluate], count: int = 100_000) -> float:
    """Return the evaluations per second, with each expression evaluated equally often."""
    return count / _seconds(lambda: _repeat(evaluations, count))


def _repeat(evaluations: list[Evaluate], count: int) -> None:
    for _ in range(count // len(evaluations)):
        for evaluate in evaluations:
            evaluate()


def _growth(evaluations: list[Evaluate], count: int) -> float:
    """Return the MiB that so many evaluations add to the process."""
    _repeat(evaluations, 10_000)
    gc.collect()
    before = _resident()
    _repeat(evaluations, count)
    gc.collect()
    return (_resident() - before) / 2**20


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _line(engine: str, what: str, figure: str) -> None:
    print(f"{engine:24} {what:54} {figure}")


# Our engine


def _ours(given: dict[str, Any], count: int) -> None:
    name, variables = "gangplan", given["variables"]
    environment = Environment(minor=34, variables=admission.declare_cel_policy_variables(has_params=True))
    texts = (*EXPRESSIONS, *OF_KUBERNETES)
    for text in texts:
        environment.compile(text)
    per_compile = _seconds(lambda: [environment.compile(text) for _ in range(20) for text in texts])
    _line(name, "compile, type check included", f"{per_compile / 20 / len(texts) * 1e6:.0f} µs")
    for title, chosen in (("", EXPRESSIONS), (", with Kubernetes' functions", OF_KUBERNETES)):
        programs = [environment.compile(text) for text in chosen]
        quick: list[Evaluate] = [lambda program=program: program.evaluate(variables) for program in programs]
        exact: list[Evaluate] = [lambda program=program: program.measure(variables) for program in programs]
        _line(name, f"evaluations per second{title}", f"{_rate(quick):,.0f}")
        _line(name, f"  with the API server's cost{title}", f"{_rate(exact, 30_000):,.0f}")
    programs = [environment.compile(text) for text in texts]
    every: list[Evaluate] = [lambda program=program: program.evaluate(variables) for program in programs]
    _line(name, f"memory growth, {count:,} evaluations", f"{_growth(every, count):.1f} MiB")
    known = [difference for difference in conformance.run(given) if difference.reason]
    failed = [difference for difference in conformance.run(given) if not difference.reason]
    total = len(given["cases"])
    passed = total - len(known) - len(failed)
    _line(name, "conformance: value, type and cost", f"{passed}/{total}, {len(known)} for a known reason")


# The binding


def _binding(given: dict[str, Any], count: int) -> None:
    from cel_expr_python import cel

    name, variables = "cel-expr-python", given["variables"]
    config = cel.NewEnvConfigFromYaml(_EXTENSIONS)
    declared = dict.fromkeys(variables, cel.Type.DYN)
    environment = cel.NewEnv(config=config, variables=declared, functions=_quantities(cel))
    activation = environment.Activation(variables)

    def evaluation(text: str) -> Evaluate:
        expression = environment.compile(text)
        return lambda: expression.eval(activation).plain_value()

    chosen = list(_compilable(environment.compile, EXPRESSIONS))
    per_compile = _seconds(lambda: [environment.compile(text) for _ in range(20) for text in chosen])
    _line(name, "compile, type check included", f"{per_compile / 20 / len(chosen) * 1e6:.0f} µs")
    plain = [evaluation(text) for text in chosen]
    _line(
        name, f"evaluations per second ({len(chosen)} of {len(EXPRESSIONS)} compile)", f"{_rate(plain):,.0f}"
    )
    _line(name, f"memory growth, {count:,} evaluations", f"{_growth(plain, count):.1f} MiB")
    compared = [evaluation("quantity('1Gi').isLessThan(quantity(params.data.maxMemory))")]
    tenth = count // 10
    _line(name, f"  {tenth:,} of quantity() in Python", f"{_growth(compared, tenth):.1f} MiB")
    passed = sum(_agrees(environment, activation, case) for case in given["cases"])
    _line(name, "conformance: value alone, as installed", f"{passed}/{len(given['cases'])}")


_EXTENSIONS = """name: admission
extensions:
- name: optional
- name: strings
  version: 2
- name: lists
- name: sets
- name: two-var-comprehensions
"""


def _quantities(cel: Any) -> list[Any]:
    """Declare `quantity` and its comparison. The binding has no opaque values, so quantities are maps."""
    amount = cel.Type.Map(cel.Type.DYN, cel.Type.DYN)

    def read(text: str) -> dict[str, Any]:
        return {"quantity": text, "value": len(text)}

    def less(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return bool(one["value"] < other["value"])

    reading = cel.Overload("string_to_quantity", cel.Type.DYN, [cel.Type.STRING], False, read)
    comparing = cel.Overload("quantity_is_less_than", cel.Type.BOOL, [amount, amount], True, less)
    return [cel.FunctionDecl("quantity", [reading]), cel.FunctionDecl("isLessThan", [comparing])]


def _compilable(compile: Callable[[str], object], texts: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        try:
            compile(text)
        except Exception:  # noqa: BLE001  the binding has one class of error for everything
            continue
        yield text


def _agrees(environment: Any, activation: Any, case: dict[str, Any]) -> bool:
    """Return whether the binding has the API server's outcome, and its value if there is one."""
    try:
        expression = environment.compile(case["expr"])
    except Exception:  # noqa: BLE001
        return bool(case["outcome"] == "compile-error")
    try:
        value = expression.eval(activation)
    except Exception:  # noqa: BLE001
        return bool(case["outcome"] == "runtime-error")
    if "ERROR" in str(value.type()).upper():
        return bool(case["outcome"] == "runtime-error")
    plain = value.plain_value()
    return case["outcome"] == "value" and (plain == case["value"] or str(plain) == str(case["value"]))


if __name__ == "__main__":
    sys.exit(main())
