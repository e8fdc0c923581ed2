"""Only people read messages and helps: code finds what a problem is about in its fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.meta.test_meta import CODE, relative

# These may read sentences: they come from other programs, or a report puts them on a page.
READERS = (
    "gangplan/cel/",
    "gangplan/report/",
    "gangplan/commands/complete.py",  # the help of a flag
    "gangplan/diagnose/",  # what a cluster reports about a run
    "gangplan/live/",
    "gangplan/policy/places.py",  # what any policy says about an object
    "validate/apiserver/crdrules/",  # the messages of a CRD
    "validate/apiserver/policy/",
    "validate/kueue/refused.py",  # what Kueue says
    "gangplan/tools/",
)
WORDS = frozenset(("message", "help", "hint"))
METHODS = frozenset(name for name in dir(str) if not name.startswith("_"))
REGEX = frozenset(("match", "search", "fullmatch", "sub", "subn", "findall", "finditer", "split"))


def are_words(node: ast.AST) -> bool:
    """Return whether a node is a message or a help, by its name."""
    return (isinstance(node, ast.Attribute) and node.attr in WORDS) or (
        isinstance(node, ast.Name) and node.id in WORDS
    )


def readings(module: ast.AST) -> Iterator[str]:
    """Yield where a module reads words: calls of string methods, regular expressions, `in`, slices."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            own, name = node.func.value, node.func.attr
            is_read = (name in METHODS and are_words(own)) or (
                name in REGEX and any(map(are_words, node.args))
            )
        elif isinstance(node, ast.Compare):
            pairs = zip(node.ops, node.comparators, strict=True)
            is_read = any(isinstance(op, ast.In | ast.NotIn) and are_words(right) for op, right in pairs)
        else:
            is_read = isinstance(node, ast.Subscript) and are_words(node.value)
        if is_read:
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_code_reads_the_words_of_a_problem() -> None:
    found = [
        f"{relative(path)}:{one}"
        for path in CODE
        if not relative(path).startswith(READERS)
        for one in readings(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "give the problem a field (gangplan.findings.Clue)"


@pytest.mark.parametrize(
    "line",
    [
        "one.message.startswith('run is')",
        "'image' in finding.message",
        "_UNTIL.search(finding.message)",
        "re.sub('a', 'b', help)",
        "problem.help[:-1]",
    ],
)
def test_code_that_reads_words_is_found(line: str) -> None:
    assert list(readings(ast.parse(line)))


def test_there_are_only_two_problem_types() -> None:
    """One is about an object, a file or a command, the other about a word of a command to correct."""
    found = {
        node.name
        for path in CODE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Problem")
    }
    assert found == {"Problem", "WordProblem"}
