"""Conditions of batch scripts that are known before they run have the value that bash finds."""

from __future__ import annotations

import subprocess

import pytest

from gangplan.imports.scripted.conditions import evaluate_shell_condition
from gangplan.imports.scripted.expand import ScriptScope

KNOWN = (
    "[[ a == a || a == a && a == b ]]",
    "[[ a == b && a == b || a == a ]]",
    "[[ a == b && a == a && a == a ]]",
    "[[ ! a == a || a == a ]]",
    "[[ ! a && '' ]]",
    "[ a = a -o a = a -a a = b ]",
    "[ a = b -a a = b -o a = a ]",
    "[ ! a = a -o a = a ]",
    "[ ! a = b -a a = b ]",
    "[ ! '' -a '' ]",
    "[ '' -a x ]",
    "test a = a -o a = a -a a = b",
    '[[ "a && b" == "a && b" ]]',
    '[ "a -o b" = "a -a b" ]',
    "[ x = -a ]",
)
LEFT_TO_BASH = (
    "[[ ( a == b || a == a ) && a == b ]]",
    "[ \\( a = b -a a = a \\) -o a = a ]",
    "[ -n ] || [ a = a ]",
    "[ -a -o ]",
    "[ -a x ]",
    "[ a = a ] && [ a = b ]",
    "test a = a && test a = b",
    "! [ a = a ] || [ a = a ]",
    '[ "a ]',
)


def bash(condition: str) -> bool:
    """Return whether bash finds a condition true."""
    return subprocess.run(["bash", "-c", condition], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("condition", KNOWN)
def test_a_known_condition_is_what_bash_finds(condition: str) -> None:
    assert evaluate_shell_condition(condition, ScriptScope()) is bash(condition)


@pytest.mark.parametrize("condition", LEFT_TO_BASH)
def test_other_conditions_are_left_to_bash(condition: str) -> None:
    assert evaluate_shell_condition(condition, ScriptScope()) in (None, bash(condition))
