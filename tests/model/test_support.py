"""What versions decide is in one table: no other code compares versions, and each fact in it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields

import pytest

from gangplan.model.support import (
    JOBSET_LINES,
    KUEUE_LINES,
    TRAINER_LINES,
    JobSetLine,
    KueueLine,
    TrainerLine,
    look_up_jobset_line,
    look_up_kueue_line,
    look_up_trainer_line,
)
from tests.workspaces import REPOSITORY

TABLE = REPOSITORY / "gangplan/model/support.py"
MODULES = sorted(
    path
    for folder in ("gangplan", "generators", "validate")
    for path in (REPOSITORY / folder).rglob("*.py")
    if path != TABLE
    if not any((REPOSITORY / one).is_symlink() for one in path.relative_to(REPOSITORY).parents)
)
COMPONENTS = ("trainer", "kueue", "jobset")
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def test_an_unknown_version_line_is_treated_as_the_one_before() -> None:
    assert look_up_trainer_line("2.2") is TRAINER_LINES["2.2"]
    assert look_up_trainer_line("2.9") is TRAINER_LINES["2.3"]
    assert (
        look_up_trainer_line("1.9")
        is look_up_trainer_line("0.0")
        is look_up_trainer_line(None)
        is TRAINER_LINES["2.1"]
    )
    assert look_up_kueue_line("0.20") is KUEUE_LINES["0.19"]
    assert look_up_kueue_line("0.9") is KUEUE_LINES["0.15"]
    assert look_up_jobset_line("0.9") is JOBSET_LINES["0.10"]


def compared(text: str) -> Iterator[int]:
    """Yield the lines that compare a version of Trainer, Kueue or JobSet with a literal one."""
    for node in ast.walk(ast.parse(text)):
        words = ast.unparse(node).lower() if isinstance(node, ast.Compare | ast.Call) else ""
        if not any(name in words for name in COMPONENTS):
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "at_least"
        ):
            yield node.lineno
        elif isinstance(node, ast.Compare) and any(isinstance(one, _ORDER) for one in node.ops):
            sides = (node.left, *node.comparators)
            if any(_is_version(one) for one in sides):
                yield node.lineno


def _is_version(side: ast.expr) -> bool:
    """Return whether one side of a comparison is a version: numbers, Version(...) or parse_line_key(...)."""
    if isinstance(side, ast.Tuple):
        return all(isinstance(one, ast.Constant) and isinstance(one.value, int) for one in side.elts)
    return (
        isinstance(side, ast.Call)
        and isinstance(side.func, ast.Name)
        and side.func.id in ("Version", "parse_line_key")
    )


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("platform.trainer.at_least(2, 2)", True),
        ("kueue >= (0, 18)", True),
        ("(0, 18) <= self.kueue", True),
        ("parse_line_key(versions.trainer or '0') < SINCE", True),
        ("state.setup.kueue < Version(0, 19)", True),
        ("platform.kubernetes.at_least(1, 34)", False),
        ("parse_line_key(since) <= parse_line_key(minor)", False),
        ("kueue.keeps_progress and len(queues) > 1", False),
        ("platform.kueue is None", False),
    ],
)
def test_a_comparison_is_found(text: str, is_found: bool) -> None:
    assert bool(list(compared(text))) is is_found


def test_only_the_table_compares_versions() -> None:
    assert len(MODULES) > 500
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in MODULES
        for line in compared(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("line", [TrainerLine, KueueLine, JobSetLine])
def test_each_fact_of_a_version_line_is_used(line: type[TrainerLine | KueueLine | JobSetLine]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in MODULES]
    dead = [one.name for one in fields(line) if not any(f".{one.name}" in text for text in texts)]
    assert dead == []


@pytest.mark.parametrize(
    "table", [TRAINER_LINES, KUEUE_LINES, JOBSET_LINES], ids=["trainer", "kueue", "jobset"]
)
def test_each_fact_differs_between_version_lines(table: dict[str, object]) -> None:
    """A field with the same value in all lines is not a fact about a line, except for the API version."""
    lines = list(table.values())
    alike = {
        one.name
        for one in fields(lines[0])  # type: ignore[arg-type]
        if len({getattr(line, one.name) for line in lines}) == 1
    }
    assert alike <= {"api_version"}
