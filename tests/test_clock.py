"""Only one place reads the clock, and all tests have the same day."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gangplan import clock
from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import REPOSITORY, gangplan, gangplan_process

_NAMES = re.compile(r"\b(?:time|datetime|date)\.")
_ASKS = re.compile(r"\b(?:time\.(?:time|time_ns|localtime)|(?:datetime|date)\.(?:now|utcnow|today))$")
_ASKS_WITHOUT_ARGUMENTS = re.compile(r"\btime\.(?:strftime|gmtime|localtime|ctime)$")

WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: gpus-unusual
scope: {team: nlp}
reason: The nodes of this lab have six GPUs each.
approver: ml-platform@example.com
expires: "2026-12-31"
"""


def _looks(path: Path) -> list[int]:
    """Return the lines of a file that read the clock."""
    text = path.read_text(encoding="utf-8")
    return [
        node.lineno
        for node in (ast.walk(ast.parse(text)) if _NAMES.search(text) else ())
        if isinstance(node, ast.Call)
        and (
            _ASKS.search(name := ast.unparse(node.func))
            or (
                _ASKS_WITHOUT_ARGUMENTS.search(name)
                and len(node.args) < 2
                and "mtime" not in ast.unparse(node)
            )
        )
    ]


def test_only_two_modules_read_the_clock() -> None:
    found = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("gangplan", "validate", "generators")
        for path in (REPOSITORY / folder).rglob("*.py")
        if _looks(path)
    }
    # look.py compares the time of a file's change with now: a file that has just changed may change again
    # unseen.
    assert found == {"gangplan/clock.py", "gangplan/incremental/look.py"}


def test_each_way_to_read_the_clock_is_found(tmp_path: Path) -> None:
    """Show that the test above can fail."""
    for text in ("datetime.now(UTC)", "datetime.date.today()", "time.time()", "time.strftime('%Y')"):
        (tmp_path / "one.py").write_text(f"import time, datetime\nprint({text})\n")
        assert _looks(tmp_path / "one.py") == [2], text
    (tmp_path / "one.py").write_text("time.monotonic(); time.strftime('%Y', moment)\n")
    assert _looks(tmp_path / "one.py") == []


def test_every_test_has_the_same_day(root: Path) -> None:
    """Fixing the day, in this process and in others, keeps files that expire from failing a test later."""
    assert clock.read_today() == "2026-07-01"
    workspaces.write(root, {"policies/waivers/gpus.yaml": WAIVER})
    for run in (gangplan, gangplan_process):
        rules = {finding.rule for finding in run("validate", "-C", root, "--format", "json").findings}
        assert not rules & {"waiver-expired", "waiver-ends-soon"}


@pytest.mark.parametrize(
    ("day", "rule"),
    [("2026-11-30", ""), ("2026-12-02", "waiver-ends-soon"), ("2027-01-01", "waiver-expired")],
)
def test_the_variable_sets_the_day(root: Path, day: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_TODAY", day)
    workspaces.write(root, {"policies/waivers/gpus.yaml": WAIVER})
    found = {finding.rule for finding in gangplan("validate", "-C", root).findings}
    assert found & {"waiver-expired", "waiver-ends-soon"} == ({rule} if rule else set())


def test_the_flag_takes_precedence_over_the_variable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_TODAY", "2030-01-01")
    workspaces.write(root, {"policies/waivers/gpus.yaml": WAIVER})
    outcome = gangplan("validate", "-C", root, "--today", "2026-07-01")
    assert "waiver-expired" not in {finding.rule for finding in outcome.findings}


def test_an_invalid_day_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_TODAY", "tomorrow")
    outcome = gangplan("validate", "-C", root)
    assert (outcome.code, outcome.err) == (
        Exit.INPUT,
        "fatal: 'tomorrow' is not a valid date\n  help: Write GANGPLAN_TODAY=2026-12-31.\n",
    )
