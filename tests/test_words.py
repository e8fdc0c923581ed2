"""The words of the project (docs/style.md): what a machine can check of messages, --help and pages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer.main

from gangplan.cli import program
from gangplan.commands.tree import add_all_commands
from gangplan.rulebook import load_built_in_rules
from tests.workspaces import REPOSITORY

# Words that only this project used, and what to write instead.
INSTEAD = {
    r"oust(s|ed|ing)?": "preempt",
    r"hold[- ]?ups?": "block",
    r"mend(s|ed|ing)?": "fix",
    r"(is|are|was|were|be|been|not) told": "is reported",
    r"tells? of": "report",
    r"circles?": "cycle",
    r"for ever": "forever",
    r"anew": "again",
    r"there where": "where",
    "beside": "next to, in addition to, with",
    r"(?<!there )(is|are|was|were) no (?!longer|more|less|fewer|other|later|earlier|greater)\w+": "is not a",
    r"stands? (in(?! front)|at|on|beside|there|behind|before)": "is in, is at, ...",
}
# The same for docstrings, comments and names of tests, which readers of the code meet.
IN_CODE = {
    **INSTEAD,
    "nobody": "no one, or the name of who does not",
    "whoever": "anyone who, those who",
    "says? of": "say about",
    "asks? of": "ask for, request from",
    "hangs? on": "depends on",
    "comes? of": "comes from",
    "of whom": "whose",
    "lest": "so that ... not",
}
HOUSE = re.compile(rf"(?<!-)\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)
CODE_HOUSE = re.compile(rf"(?<!-)\b({'|'.join(IN_CODE)})\b", re.IGNORECASE)
PAGES = sorted(
    path for pattern in ("*.md", "docs/*.md") for path in REPOSITORY.glob(pattern) if path.name != "style.md"
)
CODE = sorted(
    path
    for top in ("gangplan", "generators", "validate")
    for path in (REPOSITORY / top).rglob("*.py")
    if not any(parent.is_symlink() for parent in path.relative_to(REPOSITORY).parents)
)
TESTS = sorted(path for path in (REPOSITORY / "tests").rglob("*.py"))
REPORTS = sorted(REPOSITORY.glob("tests/examples/*/report.txt"))
FINDING = re.compile(r"^\S+: (?:error|warning|note)\[(?P<rule>[a-z0-9-]+)\] (?P<message>.+)$", re.MULTILINE)
HELP = re.compile(r"^  help: (?P<help>.+)$", re.MULTILINE)


def relative(path: Path) -> str:
    """Return a path as people write it."""
    return path.relative_to(REPOSITORY).as_posix()


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield literals of several words, without docstrings: messages, helps, reasons, reports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docs:
            continue
        if " " in node.value.strip():
            yield node.lineno, node.value


def prose(page: str) -> str:
    """Return a page without code blocks and code."""
    return re.sub(r"`[^`\n]*`", "x", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE))


def commands(command: click.Command, name: str = "gangplan") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all commands below it."""
    yield name, command
    if isinstance(command, click.Group):
        for word, one in command.commands.items():
            yield from commands(one, f"{name} {word}")


COMMANDS = dict(commands(typer.main.get_command(add_all_commands(program))))


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_texts_use_the_fields_words(path: Path) -> None:
    found = {line: match[0] for line, text in texts(path) if (match := HOUSE.search(text))}
    assert not found, "see INSTEAD above"


def prose_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings and comments with their lines, without names in back-quotes."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if is_documented and (documented := ast.get_docstring(node)) is not None:
            yield node.body[0].lineno, re.sub(r"`[^`]*`", "x", documented)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.start[0], re.sub(r"`[^`]*`", "x", token.string)


@pytest.mark.parametrize("path", [*CODE, *TESTS], ids=relative)
def test_docstrings_and_comments_use_the_fields_words(path: Path) -> None:
    found = {line: match[0] for line, text in prose_of_code(path) if (match := CODE_HOUSE.search(text))}
    assert not found, "see IN_CODE above"


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_names_of_tests_use_the_fields_words(path: Path) -> None:
    names = re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in names if CODE_HOUSE.search(name.replace("_", " "))] == []


def test_the_makefile_uses_the_fields_words() -> None:
    assert [match[0] for match in HOUSE.finditer((REPOSITORY / "Makefile").read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_pages_use_the_fields_words(path: Path) -> None:
    assert [match[0] for match in HOUSE.finditer(prose(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_pages_have_no_double_spaces(path: Path) -> None:
    for line in prose(path.read_text(encoding="utf-8")).splitlines():
        assert not re.search(r"[a-z,.;:] {2,}[A-Za-z]", line), line


@pytest.mark.parametrize("rule", load_built_in_rules().values(), ids=str)
def test_rules_are_written_in_whole_sentences(rule: str) -> None:
    page = load_built_in_rules()[rule]
    for text in (page.summary, page.why, page.fix):
        assert text[-1] in ".?", text
        assert "  " not in text, text
        assert text.count('"') % 2 == 0, text
        assert text.count("(") == text.count(")"), text


@pytest.mark.parametrize("path", REPORTS, ids=relative)
def test_messages_are_not_sentences_but_helps_are(path: Path) -> None:
    report = path.read_text(encoding="utf-8")
    for match in FINDING.finditer(report):
        message = match["message"]
        assert not re.search(r"(?<!\.)\.$", message), message
        assert not re.search(r"\w  \w", message), message
    for match in HELP.finditer(report):
        assert match["help"][-1] in ".?!", match["help"]


@pytest.mark.parametrize("name", COMMANDS)
def test_helps_are_sentences(name: str) -> None:
    command = COMMANDS[name]
    assert command.help, name
    helps = [command.help, *(getattr(one, "help", None) for one in command.params)]
    for text in filter(None, helps):
        assert text.split(" [")[0].rstrip()[-1] in ".)", f"{name}: {text}"
        assert "  " not in text.replace("\n", " ").replace("     ", " "), f"{name}: {text}"
