"""The rule ids that the code can emit, read from its syntax: constants where a rule is expected."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.workspaces import REPOSITORY

# Functions and classes, and which argument is the rule, from 0. Any function of a module with a parameter
# called `rule` counts there as well.
PLACES = {
    **dict.fromkeys(
        ("error", "warning", "note", "Finding", "_report", "unknown", "too_deep", "Fault", "Trouble"), 0
    ),
    **dict.fromkeys(("Problem", "_Answer"), 3),
}


@cache
def emitted() -> dict[str, str]:
    """Rule id -> a module that can emit it."""
    found: dict[str, str] = {}
    for path, tree in _modules():
        for rule in _rules(tree, _constants(tree)):
            found.setdefault(rule, path)
    return found


@cache
def texts() -> frozenset[str]:
    """Every text that stands in the code."""
    return frozenset(
        node.value
        for _, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def _modules() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(REPOSITORY).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for folder in ("gangplan", "validate")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    ]


def _rules(tree: ast.Module, constants: dict[str, str]) -> Iterator[str]:
    places = {**_takers(tree), **PLACES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            place = places.get(name, -1)
            given = [keyword.value for keyword in node.keywords if keyword.arg == "rule"]
            if 0 <= place < len(node.args):
                given.append(node.args[place])
            for value in given:
                yield from _texts(value, constants)
        elif isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "rule" and node.value:
            yield from _texts(node.value, constants)  # the default of a field
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "rule":
            yield from _texts(node.value, constants)


def _takers(tree: ast.Module) -> dict[str, int]:
    """Functions of a module with a parameter `rule`, and which it is for those who call them."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
            if "rule" in names:
                found[node.name] = names.index("rule")
    return found


def _texts(value: ast.expr, constants: dict[str, str]) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.Name) and value.id in constants:
        yield constants[value.id]
    elif isinstance(value, ast.IfExp):
        yield from _texts(value.body, constants)
        yield from _texts(value.orelse, constants)


@cache
def _exported(path: Path) -> dict[str, str]:
    return _constants(ast.parse(path.read_text(encoding="utf-8")))


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module has names for: its own, and those that it imports from another of ours."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gangplan."):
            there = _own(f"{str(node.module).replace('.', '/')}.py")
            found |= {one.asname or one.name: there[one.name] for one in node.names if one.name in there}
    return found | _assigned(tree)


@cache
def _own(file: str) -> dict[str, str]:
    """The texts that a file gives names."""
    path = REPOSITORY / file
    return _assigned(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _assigned(tree: ast.Module) -> dict[str, str]:
    """`RULE = "x"` and `A, B = "x", "y"`."""
    found: dict[str, str] = {}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            assert isinstance(node, ast.Assign)
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                    found[name.id] = str(value.value)
    return found
