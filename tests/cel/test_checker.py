"""Which expressions compile, and to which type: our checker compared with recorded answers of the API
server."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.cel import admission, declarations, types
from gangplan.cel.environment import Environment
from gangplan.cel.errors import CompileError
from tests import plain
from tests.cel.trees import dump

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = plain.load((HERE / "compile.yaml").read_text(encoding="utf-8"))
VARIABLES = admission.declare_cel_policy_variables(has_params=True)
ENVIRONMENTS = {minor: Environment(minor=minor, variables=VARIABLES) for minor in range(27, 38)}


def said(minor: int, text: str) -> dict[str, Any]:
    """Return our answer in the form of compile.yaml: the type, or every complaint with its line and
    column."""
    try:
        return {"type": str(ENVIRONMENTS[minor].compile(text).type)}
    except CompileError as error:
        before = [text[: issue.offset] for issue in error.issues]
        places = [(part.count("\n") + 1, len(part) - part.rfind("\n") - 1) for part in before]
        refused = [[*place, issue.message] for place, issue in zip(places, error.issues, strict=True)]
        return {"refused": refused}


@pytest.mark.parametrize("case", CASES, ids=[f"{c['expr'][:60]}-{c.get('minor', 34)}" for c in CASES])
def test_the_checker_answers_as_the_api_server_does(case: dict[str, Any]) -> None:
    answer = said(case.get("minor", 34), case["expr"])
    if "type" in case:
        assert answer == {"type": case["type"]}
        return
    assert answer.get("refused"), f"accepted as {answer.get('type')}"
    is_syntax = any("yntax" in message for _, _, message in case["refused"])
    if case["refused"] and not is_syntax and "google.protobuf" not in case["expr"]:
        # Our parser stops at its first error, cel-go's goes on: our errors are among the server's.
        assert all(issue in case["refused"] for issue in answer["refused"])


def test_enough_cases_of_both_kinds_are_recorded() -> None:
    refused = sum("refused" in case for case in CASES)
    assert refused >= 150
    assert len(CASES) - refused >= 150


def test_trees_types_and_overloads_match_those_of_the_api_server() -> None:
    recorded = json.loads(gzip.decompress((HERE / "trees.json.gz").read_bytes()))
    assert len(recorded) >= 300
    for text, tree in recorded:
        assert dump(ENVIRONMENTS[34].check(text), text) == _tidy(tree), text


def _tidy(tree: Any) -> Any:
    """Return a recorded tree with its overloads in order."""
    if isinstance(tree, list):
        return [_tidy(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    tidied = {key: _tidy(value) for key, value in tree.items()}
    if "overloads" in tidied:
        tidied["overloads"] = sorted(tidied["overloads"])
    if "list" in tidied:
        tidied["optional"] = tidied["optional"] or []
    return tidied


# Kubernetes 1.37 (k8s.io/apiserver v0.37.0 with cel-go v0.29.2) compared with the minor before it.
CHANGED = [
    ("duration(5 + 5)", "google.protobuf.Duration", None),
    ("object.`a-b`.`c/d`", None, "dyn"),
    ("[1].all(x, .x == 1)", "bool", None),
    (
        "[object].map(authorizer, authorizer.requestResource)",
        "list(kubernetes.authorization.ResourceCheck)",
        "list(dyn)",
    ),
]


@pytest.mark.parametrize(("text", "before", "after"), CHANGED, ids=[text for text, _, _ in CHANGED])
def test_changes_of_kubernetes_1_37_are_followed(text: str, before: str | None, after: str | None) -> None:
    assert (said(36, text).get("type"), said(37, text).get("type")) == (before, after)


def test_includes_comes_with_1_37() -> None:
    assert declarations.since("includes") == 37
    assert ENVIRONMENTS[37].check("[1].includes(1)").type == types.BOOL
    with pytest.raises(CompileError, match="undeclared reference to 'includes'"):
        ENVIRONMENTS[36].check("[1].includes(1)")


def test_unknown_versions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Kubernetes 1\.99 is not one"):
        Environment(minor=99, variables={})


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("quantity('1')", "dyn"),
        ("optional.of(1)", "dyn"),
        ("request", "dyn"),
        ("type(1)", "dyn"),
        ("null", "null_type"),
        ("[duration('1s')]", "list(google.protobuf.Duration)"),
        ("[ip('1.1.1.1')]", "list(dyn)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("request.userInfo.extra", "map(string, list(string))"),
    ],
)
def test_a_composed_variable_has_the_type_that_the_api_server_keeps(expression: str, type_: str) -> None:
    composed = {"x": admission.resolve_composed_type(ENVIRONMENTS[34].check(expression).type)}
    environment = Environment(
        minor=34, variables=admission.declare_cel_policy_variables(has_params=True, composed=composed)
    )
    assert str(environment.check("variables.x").type) == type_


def test_params_and_the_authorizer_exist_only_if_the_policy_has_them() -> None:
    environment = Environment(
        minor=34, variables=admission.declare_cel_policy_variables(has_params=False, has_authorizer=False)
    )
    for name in ("params", "authorizer", "authorizer.requestResource"):
        with pytest.raises(CompileError, match="undeclared reference"):
            environment.check(f"{name} == null")


def test_fields_named_like_keywords_may_be_declared_escaped() -> None:
    """CRD schemas declare `namespace` as `__namespace__`; from 1.31 on the plain name finds it."""
    item = types.ObjectType("item", fields={"__namespace__": types.STRING})
    for minor, is_found in ((30, False), (31, True)):
        environment = Environment(minor=minor, variables={"self": item})
        assert environment.check("self.__namespace__").type == types.STRING
        if is_found:
            assert environment.check("self.namespace").type == types.STRING
        else:
            with pytest.raises(CompileError, match="undefined field 'namespace'"):
                environment.check("self.namespace")


def test_every_signature_of_the_table_can_be_read() -> None:
    names = declarations.functions(37)
    assert len(declarations.functions(34)) == 157
    assert sum(len(declarations.find_overloads(name, 34)) for name in declarations.functions(34)) == 345
    assert {"includes", "lists.range", "_+_", "ip.isCanonical"} <= names
    for bad in ("", "list(", "list(int", "int)", "1"):
        with pytest.raises((ValueError, IndexError)):
            declarations.parse_cel_type(bad)
