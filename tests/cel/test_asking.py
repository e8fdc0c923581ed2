"""Question trees: what they answer about new objects is always what evaluation gives."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.cel import asking, types
from gangplan.cel.admission import declare_cel_policy_variables
from gangplan.cel.asking import Asker
from gangplan.cel.cost import CrashError
from gangplan.cel.environment import Environment
from gangplan.cel.errors import CompileError, EvalError, UnknownError
from gangplan.cel.program import CelProgram
from gangplan.cel.questions import (
    EVALUATE,
    MOST_KEPT,
    PATH_END,
    QuestionNode,
    QuestionTree,
    UnforeseenPathError,
)
from gangplan.cel.seen import StopError
from tests.cel.expressions import Writer

HERE = Path(__file__).parent
GIVEN: dict[str, Any] = json.loads(gzip.decompress((HERE / "answers.json.gz").read_bytes()))["variables"]
NAMES = ("object", "oldObject", "namespaceObject", "request")
YES, NO = QuestionNode(PATH_END), QuestionNode(PATH_END)
# Values that mutation puts in: other texts, other types, nothing.
OTHERS: tuple[Any, ...] = (
    "",
    "a",
    "nlp",
    "1Gi",
    "a,b",
    0,
    1,
    7,
    1.5,
    -0.0,
    0.0,
    True,
    False,
    None,
    [],
    {},
    ["a"],
)


def compiled(text: str) -> CelProgram:
    """Compile an expression for an admission policy."""
    return Environment(minor=34, variables=declare_cel_policy_variables(has_params=True)).compile(text)


def asked(tree: QuestionTree, program: CelProgram, given: list[Any]) -> QuestionNode:
    """Add a new path to the tree and return its end, as validate/apiserver/policy/silent.py does, for both
    truth values."""
    asker = Asker(tree, given)
    sees = {name: asker.seen(number) for number, name in enumerate(NAMES)}
    try:
        value = asker.truth(asker.evaluate(program, {**sees, "params": GIVEN.get("params")}))
        end = YES if value else NO
    except (StopError, UnforeseenPathError, EvalError, UnknownError, CrashError):
        end = EVALUATE
    asker.finish(end)
    return end


def evaluated(program: CelProgram, given: list[Any]) -> Any:
    """Return what evaluation gives; None for an error."""
    activation = {**dict(zip(NAMES, given, strict=True)), "params": GIVEN.get("params"), "authorizer": {}}
    try:
        return program.evaluate(activation)
    except (EvalError, UnknownError):
        return None


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every entry of a value, as its container and its key or index."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key
        yield from places(inner)


def changed(value: Any, chance: random.Random) -> Any:
    """Return a copy with up to four entries replaced, repeated or removed."""
    result = copy.deepcopy(value)
    for _ in range(chance.randrange(5)):
        found = list(places(result))
        if not found:
            break
        holder, key = chance.choice(found)
        match chance.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case _:
                holder[key] = copy.deepcopy(chance.choice(OTHERS))
    return result


WRITTEN = (
    "object.spec.trainer.env.all(e, e.name.startsWith('N') || has(e.value))",
    "object.spec.trainer.env.filter(e, has(e.value)).map(e, e.name + e.value).exists(t, t.contains('='))",
    "object.metadata.labels.exists(k, object.metadata.labels[k] == 'nlp')",
    "object.metadata.labels.all(k, k in object.metadata.labels)",
    "object.?metadata.?labels[?'a'].orValue('x').split(',').map(p, p.trim()).filter(p, p != '').size() < 2",
    "(object.spec.trainer.args + object.spec.trainer.command).exists_one(w, w.size() > 3)",
    "has(object.spec.suspend) ? object.spec.suspend : object.spec.trainer.numNodes > params.maxNodes",
    "object.spec.ports[0] + 1 in [81, 8081] || object.spec.ports.size() == 0",
    "oldObject == null || object.spec != oldObject.spec",
    "object.spec == object.spec && object.spec.trainer.numNodes == 1.0",
    "request.namespace + '/' + object.metadata.name != 'a/b' && has(namespaceObject.metadata.labels)",
    "[object.spec, object.metadata].map(o, o.?name.orValue('x')).join('-').matches('^x')",
    "dyn(object.metadata).name.lowerAscii() == object.metadata.name",
    "quantity(object.spec.trainer.resourcesPerNode.limits.memory).isGreaterThan(quantity('1Gi'))",
    "object.spec.trainer.numNodes in [1, 2, 4]",
    "{'a': 1}.exists(k, object.metadata.labels.?team.orValue('') == k)",
)


@pytest.mark.parametrize("seed", range(8))
def test_the_tree_agrees_with_evaluation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try random expressions over the whole function table, on objects changed at random."""
    if seed % 2:
        monkeypatch.setattr(asking, "MOST_CONSTANTS", 0)
    writer, chance = Writer(seed, wrong=0.01), random.Random(seed)
    texts = [writer.expression(types.BOOL, chance.randrange(2, 5)) for _ in range(150)]
    told = 0
    for text in (*WRITTEN, *texts):
        try:
            program = compiled(text)
        except CompileError:
            continue
        tree = QuestionTree()
        given = [GIVEN.get(name) for name in NAMES]
        for _ in range(12):
            end = tree.end(given)
            told += end in (YES, NO)
            end = end or asked(tree, program, given)
            assert tree.end(given) is end or end is EVALUATE, text
            if end is not EVALUATE:
                assert evaluated(program, given) is (end is YES), (text, given)
            given = [changed(GIVEN.get(name), chance) for name in NAMES]
    assert told > 300


@pytest.mark.parametrize("text", WRITTEN)
def test_expressions_of_policies_end_with_an_answer(text: str) -> None:
    """The tree knows the steps of the shipped policies: their paths end with an answer, not with
    evaluation."""
    program, tree = compiled(text), QuestionTree()
    given = [GIVEN.get(name) for name in NAMES]
    assert evaluated(program, given) is not None
    assert asked(tree, program, given) is not EVALUATE


def test_an_unseen_text_adds_no_path() -> None:
    program, tree = compiled("object.name.startsWith('run-') && object.name.size() < 12"), QuestionTree()
    assert asked(tree, program, [{"name": "run-1"}, None, None, None]) is YES
    for number in range(3 * MOST_KEPT):
        assert tree.end([{"name": f"run-{number}"}, None, None, None]) is YES
    assert tree.end([{"name": "job-1"}, None, None, None]) is None
    assert tree.end([{"name": 1}, None, None, None]) is EVALUATE
    assert tree.end(["name", None, None, None]) is EVALUATE
    assert tree._kept <= MOST_KEPT


def test_equal_values_of_different_types_are_distinguished() -> None:
    """1 and true, and 0.0 and -0.0, are equal in Python, not in CEL."""
    program, tree = compiled("string(object.a) == 'true' || 1.0 / double(object.a) > 0.0"), QuestionTree()
    for value in (0.0, -0.0, True, 1, 1.0, False, 0, "1", "-0"):
        for _ in range(2):
            given = [{"a": value}, None, None, None]
            end = tree.end(given) or asked(tree, program, given)
            if end is not EVALUATE:
                assert evaluated(program, given) is (end is YES), value


def test_a_loop_over_many_constants_asks_for_the_value() -> None:
    """Otherwise the tree would grow with the listed teams times the teams of objects."""
    teams = ",".join(f"team-{number}=x" for number in range(200))
    program = compiled(f"'{teams}'.split(',').filter(t, t.startsWith(object.team + '=')).size() == 1")
    tree = QuestionTree()
    for number in range(200):
        assert asked(tree, program, [{"team": f"team-{number}"}, None, None, None]) is YES
    assert tree.count < 450
    assert tree.end([{"team": "team-7"}, None, None, None]) is YES
    assert tree.end([{"team": "team-x"}, None, None, None]) is None
    assert asked(tree, program, [{"team": "team-x"}, None, None, None]) is NO
    assert asked(tree, program, [{"team": 1}, None, None, None]) is EVALUATE
    assert tree.end([{"team": 1}, None, None, None]) is EVALUATE
