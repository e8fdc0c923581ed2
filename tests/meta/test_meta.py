"""Rules about the code, the models, the sample files and the generated pages."""

from __future__ import annotations

import ast
import importlib
import json
import re
import types
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import grimp
import jsonschema
import pytest
from pydantic import BaseModel

from gangplan import generators
from gangplan.errors import Exit
from gangplan.reference.pages import render_docs_pages
from gangplan.reference.schemas import build_editor_schema, build_editor_schema_of_format, list_format_models
from gangplan.rulebook import load_built_in_rules
from gangplan.spec.base import Strict
from tests import plain
from tests.workspaces import REPOSITORY, gangplan

CODE = sorted(
    path
    for top in ("gangplan", "generators", "validate", "templates", "policies")
    for path in (REPOSITORY / top).rglob("*.py")
)
TESTS = sorted((REPOSITORY / "tests").rglob("*.py"))
# Expressions that are a value, and so say nothing as an assertion.
VALUES = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.BinOp)
# The most lines that a module may have; documentation of fields is data, not code.
LONGEST = 400
# The most lines of a function.
SCREEN = 60
DOCUMENTATION = {"gangplan/spec/job.py", "gangplan/spec/cluster.py"}
# `make test` does not run these, so a changed name would break them unnoticed.
RUN_ELSEWHERE = sorted(
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for top in ("tests/e2e", "tests/lab", "benchmarks")
    for path in (REPOSITORY / top).rglob("*.py")
    if path.stem not in ("__main__", "conftest")
)
QUICKSTARTS = sorted(REPOSITORY.glob("specs/*/quickstart*.yaml"))
SAMPLES = {
    "spec": [path for path in REPOSITORY.glob("specs/*/**/*.yaml") if path.name != "team.yaml"],
    "team": list(REPOSITORY.glob("specs/*/team.yaml")),
    "cluster": list(REPOSITORY.glob("overlays/*/cluster.yaml")),
    "catalog": [REPOSITORY / "images/catalog.yaml"],
}
FILES = [(kind, path) for kind, paths in SAMPLES.items() for path in sorted(set(paths))]


def relative(path: Path) -> str:
    """Return a path as people write it."""
    return path.relative_to(REPOSITORY).as_posix()


# Code


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_modules_are_short_and_documented_and_functions_fit_a_screen(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if relative(path) not in DOCUMENTATION and "rules" not in path.parts:
        assert text.count("\n") <= LONGEST, "split it"
    module = ast.parse(text)
    assert ast.get_docstring(module), "a module says in its first line what it is"
    assert [name for name, node in public(module) if not ast.get_docstring(node)] == []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            assert lines_of(node) - lines_of(constructed(node)) < SCREEN, f"split {node.name}"


def public(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """The functions and classes of a module that others may use, but for a protocol's, which have no code."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if ast.unparse(node.body[0]) != "...":
                yield node.name, node
            if isinstance(node, ast.ClassDef):
                yield from ((f"{node.name}.{name}", one) for name, one in public(node))


def lines_of(node: ast.stmt | None) -> int:
    """Return the number of lines from the first to the last, which does not count."""
    return (node.end_lineno or 0) - node.lineno if node is not None else 0


def constructed(function: ast.FunctionDef) -> ast.Return | None:
    """Return the last statement if it builds a record with all fields by name: that is a table."""
    last = function.body[-1]
    is_record = isinstance(last, ast.Return) and isinstance(last.value, ast.Call) and not last.value.args
    return last if isinstance(last, ast.Return) and is_record else None


def test_resolve_and_plan_return_no_untyped_dictionaries() -> None:
    """mypy cannot check the fields of a dict[str, Any] that is passed as `**fields`."""
    bags = [
        f"{relative(path)}: {node.name}"
        for path in CODE
        if relative(path).startswith(("gangplan/resolve/", "gangplan/plan/"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.returns
        and ast.unparse(node.returns) == "dict[str, Any]"
    ]
    assert not bags


def test_there_are_no_import_cycles() -> None:
    """The layers are contracts in pyproject.toml; this is about single modules."""
    graph = grimp.build_graph("gangplan")
    order = TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules})
    assert len(list(order.static_order())) > 400  # or CycleError


def test_rule_ids_are_kebab_case() -> None:
    for rule in load_built_in_rules():
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule), rule
        assert not re.search(r"(error|warning|[0-9]{2,})", rule), f"{rule}: no severity, no number"


def test_the_architecture_page_names_every_part() -> None:
    """The exceptions are what every program has: entry points, errors, findings, objects."""
    page = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    top = [path for path in (REPOSITORY / "gangplan").iterdir() if not path.name.startswith(("_", "."))]
    names = {f"{path.name}/" if path.is_dir() else path.name for path in top if path.suffix in ("", ".py")}
    usual = {"errors.py", "findings.py", "objects.py"}
    assert {name for name in names - usual if f"{name}`" not in page} == set()
    rows = [place for row in re.findall(r"^\| (`.+?) \|", page, re.M) for place in row.split(", ")]
    assert sorted(set(rows)) == sorted(rows)


def test_every_generator_is_in_a_table() -> None:
    runs = generators.RUN_GENERATORS.values()
    tables = [generators.TENANT_GENERATORS, *generators.PLATFORM_GENERATORS.values(), *runs]
    assert all(generate.__doc__ for table in tables for generate in table.values())
    modules = {path.stem for path in (REPOSITORY / "generators").glob("*.py")} - {
        "__init__",
        "beside",
        "common",
        "launch",
        "scripts",  # one ConfigMap for many runs (gangplan/pipeline/launch_maps.py)
        "steps",
        "after",  # imported only where used, like the next two
        "claims",
        "schedules",  # imported only where used, by functions of the tables
    }
    listed = {generate.__module__.rsplit(".", 1)[1] for table in tables for generate in table.values()}
    assert listed - {"generators"} == modules


def test_every_template_is_used() -> None:
    code = "".join(
        path.read_text(encoding="utf-8") for path in [*CODE, *REPOSITORY.glob("templates/**/*.j2")]
    )
    for path in REPOSITORY.glob("templates/**/*.j2"):
        name = path.relative_to(REPOSITORY / "templates").as_posix()
        assert name in code or path.parent.name == "launch", name


# Models


def blocks(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and every model inside it."""
    yield model
    for field in model.model_fields.values():
        for inner in _inside(field.annotation):
            yield from blocks(inner)


def _inside(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in (
        get_args(annotation) if get_origin(annotation) or isinstance(annotation, types.UnionType) else ()
    ):
        yield from _inside(argument)
    assert get_origin(annotation) is not Union or get_args(annotation)


@pytest.mark.parametrize("kind", list_format_models())
def test_every_field_is_documented(kind: str) -> None:
    for block in dict.fromkeys(blocks(list_format_models()[kind])):
        assert issubclass(block, Strict)
        assert block.__doc__, block
        for name, field in block.model_fields.items():
            place = f"{block.__name__}.{name}"
            assert field.description, f"{place} has no description"
            assert field.description.endswith("."), f"{place}: a sentence ends in a full stop"
            assert field.examples, f"{place} has no example"


@pytest.mark.parametrize("kind", list_format_models())
def test_examples_are_valid(kind: str) -> None:
    schema = build_editor_schema_of_format(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for block in [schema, *schema.get("$defs", {}).values()]:
        for name, field in block.get("properties", {}).items():
            validator = jsonschema.Draft202012Validator({**field, "$defs": schema.get("$defs", {})})
            for example in field["examples"]:
                assert list(validator.iter_errors(example)) == [], f"{name}: {example}"


# Samples


@pytest.mark.parametrize("path", QUICKSTARTS, ids=relative)
def test_quickstarts_are_short(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 10
    assert not re.search(r"replica|pod|claim|namespace|kueue|kube", "\n".join(lines[2:]).lower())


def test_there_are_quickstarts() -> None:
    assert len(QUICKSTARTS) >= 2


@pytest.mark.parametrize(
    ("kind", "path"), FILES, ids=lambda value: value if isinstance(value, str) else relative(value)
)
def test_samples_name_their_schema_and_match_it(kind: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    comment = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert comment, "the first line names the schema for the editor"
    schema = (path.parent / comment[1]).resolve()
    assert schema == REPOSITORY / f"docs/schema/{kind}.json"
    document = json.loads(schema.read_text(encoding="utf-8"))
    assert document == build_editor_schema(kind)
    validator = jsonschema.Draft202012Validator(document)
    assert [error.message for error in validator.iter_errors(plain.load(text))] == []


@pytest.mark.parametrize("kind", list_format_models())
def test_the_printed_schema_refuses_unknown_fields(kind: str) -> None:
    outcome = gangplan("schema", "print", kind)
    assert outcome.code == Exit.CLEAN
    validator = jsonschema.Draft202012Validator(json.loads(outcome.out))
    for _, path in [entry for entry in FILES if entry[0] == kind]:
        assert list(validator.iter_errors({**plain.load(path.read_text()), "worker": 1}))


# Generated


def test_generated_pages_are_fresh() -> None:
    for name, text in render_docs_pages().items():
        assert (REPOSITORY / "docs" / name).read_text(encoding="utf-8") == text, f"run make docs ({name})"
    outcome = gangplan("docs", REPOSITORY / "docs", "--check")
    assert (outcome.code, outcome.out) == (0, "")


def test_the_page_of_fields_has_every_field() -> None:
    page = render_docs_pages()["spec.md"]
    for kind, model in list_format_models().items():
        for block in blocks(model):
            for name, field in block.model_fields.items():
                assert f"| `{field.alias or name}` |" in page, f"{kind}: {name}"


def test_the_rendered_sample_is_fresh(builder: str) -> None:
    outcome = gangplan("render", "-C", REPOSITORY, "--check")
    assert outcome.code == Exit.CLEAN, outcome.out[:2000] + outcome.err


@pytest.mark.parametrize(
    "path", [path for path in CODE if "__all__ = " in path.read_text("utf-8")], ids=relative
)
def test_what_a_module_offers_is_there(path: Path) -> None:
    name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name if name.startswith("gangplan") else f"gangplan.{name}")
    assert [one for one in module.__all__ if not hasattr(module, one)] == []


@pytest.mark.parametrize("module", RUN_ELSEWHERE)
def test_modules_outside_make_test_can_be_imported(module: str) -> None:
    importlib.import_module(module)


def test_decisions_have_unique_numbers() -> None:
    pages = sorted((REPOSITORY / "docs/decisions").glob("0*.md"))
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers), numbers


def _is_linked(path: Path) -> bool:
    """Return whether a file is below a symbolic link of the repository, and so listed twice."""
    return any((REPOSITORY / one).is_symlink() for one in path.relative_to(REPOSITORY).parents)


@pytest.mark.parametrize("literal", ["argocd.argoproj.io", "kustomize.toolkit.fluxcd.io/"])
def test_annotations_of_engines_are_named_in_one_module(literal: str) -> None:
    """The annotations for Argo CD and Flux are all in one module."""
    folders = [REPOSITORY / name for name in ("gangplan", "generators", "validate")]
    paths = {path for folder in folders for path in folder.rglob("*.py") if "__pycache__" not in path.parts}
    found = {
        path.relative_to(REPOSITORY).as_posix()
        for path in paths
        if literal in path.read_text(encoding="utf-8") and not _is_linked(path)
    }
    assert found - {"gangplan/gitops/tekton.py"} == {"gangplan/model/syncing.py"}


# The other modules have the kinds that people write instead of a spec, and read the CRDs of
# releases.
NAMES_KINDS = {
    "gangplan/model/backend.py",
    "gangplan/spec/words.py",
    "validate/apiserver/schemas/build.py",
}


def test_kinds_of_runs_are_named_in_one_module() -> None:
    """All other code uses the table of backends, so that another backend is another row."""
    named = re.compile(r"(Cluster)?(TrainJob|TrainingRuntime)|trainjobs|trainer\.kubeflow\.org/?\S*")
    found = {
        path.relative_to(REPOSITORY).as_posix()
        for name in ("gangplan", "generators", "validate")
        for path in (REPOSITORY / name).rglob("*.py")
        if "__pycache__" not in path.parts and not _is_linked(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value)
    }
    assert found == NAMES_KINDS


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_assertions_compare_in_both_branches_of_a_condition(path: Path) -> None:
    """`assert found == [] if a else [x]` compares only where `a` holds: Python reads it as two values."""
    assert list(list_unconditional_assertions(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("assert a == [] if b else [c]", [1]),
        ("assert a == 1 if b else 2 * c", [1]),
        ("assert a == ([] if b else [c])", []),
        ("assert a == [] if b else a == [c]", []),
        ("assert a == [] if b else True", []),
        ("assert f(a) if b else not a", []),
    ],
)
def test_an_assertion_that_always_holds_is_found(line: str, lines: list[int]) -> None:
    assert list(list_unconditional_assertions(line)) == lines


def list_unconditional_assertions(text: str) -> Iterator[int]:
    """Yield the lines of assertions about a condition, one branch of which is a value and no comparison."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.IfExp):
            branches = (node.test.body, node.test.orelse)
            if any(isinstance(one, VALUES) and ast.unparse(one) != "True" for one in branches):
                yield node.lineno
