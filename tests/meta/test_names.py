"""Names that modules import from each other have one definition, and those of functions say what they do."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.meta.test_meta import CODE, _is_linked
from tests.workspaces import REPOSITORY

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
# Questions, which read as one in a condition.
ASKS = (
    "is",
    "has",
    "can",
    "may",
    "needs",
    "lacks",
    "fits",
    "matches",
    "applies",
    "runs",
    "wants",
    "should",
    "forgives",
)
# Names that Python programs import from `gangplan` itself, which are models in the command's own code.
PUBLIC = frozenset(("TrainingJob", "Workspace"))
# What a report is printed as: `plan_text`, `sarif_report`.
FORMS = ("_text", "_document", "_report")

Names = dict[str, dict[str, str]]  # module -> top-level name -> kind


def module_of(path: Path) -> str:
    """Return the dotted name of a module by its file."""
    parts = [*path.relative_to(REPOSITORY).with_suffix("").parts]
    parts = parts if parts[0] == "gangplan" else ["gangplan", *parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def defined(tree: ast.Module) -> dict[str, str]:
    """Return the kinds of the top-level names that a module defines."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = "function"
        elif isinstance(node, ast.ClassDef):
            found[node.name] = "class"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
            found |= {one.id: "value" for one in names}
    return found


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Return the modules of the product."""
    files = [path for path in CODE if not _is_linked(path)]
    return {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in files}


@pytest.fixture(scope="module")
def imported(trees: dict[str, ast.Module]) -> set[tuple[str, str]]:
    """Return the names (module, name) that another module imports, where they are defined."""
    names: Names = {module: defined(tree) for module, tree in trees.items()}
    sources: dict[tuple[str, str], tuple[str, str]] = {}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                sources |= {(module, one.asname or one.name): (node.module, one.name) for one in node.names}
    found = set()
    for source in sources.values():
        seen = {source}
        while source[1] not in names.get(source[0], ()) and sources.get(source) not in (None, *seen):
            source = sources[source]
            seen.add(source)
        if source[1] in names.get(source[0], ()):
            found.add(source)
    return found


def test_an_imported_name_has_one_definition(
    trees: dict[str, ast.Module], imported: set[tuple[str, str]]
) -> None:
    """One who reads it in an importing module, or searches for it, finds one thing."""
    places = defaultdict(set)
    for module, tree in trees.items():
        for name in defined(tree):
            places[name].add(module)
    names = {name for _, name in imported} - PUBLIC
    assert {name: sorted(places[name]) for name in names if len(places[name]) > 1} == {}


def test_an_imported_function_begins_with_a_verb(
    trees: dict[str, ast.Module], imported: set[tuple[str, str]]
) -> None:
    """Its name says what a call does: `find_pools`, `is_run_file`; `pods_of` for what is plainly there."""
    odd = [
        f"{module}.{name}"
        for module, name in sorted(imported)
        if defined(trees[module])[name] == "function"
        and name.partition("_")[0] not in (*VERBS, *ASKS)
        and not name.endswith(("_of", *FORMS))
    ]
    assert odd == []
