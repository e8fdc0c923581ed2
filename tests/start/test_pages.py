"""docs/first-ten-minutes.md does what it shows: its commands are run in order, its outputs compared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import REPOSITORY, gangplan

PAGE = REPOSITORY / "docs/first-ten-minutes.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands that show a mistake.
REFUSED = "new job huge"


def shown(line: str) -> str:
    """What a command of the page prints; `cd` moves and prints nothing."""
    program, *arguments = shlex.split(line)
    if program == "cat":
        return Path(arguments[0]).read_text()
    assert program == "gangplan", line
    outcome = gangplan(*arguments)
    assert (outcome.code == Exit.CLEAN) is (REFUSED not in line), outcome.err
    return outcome.out + outcome.err


def test_the_first_ten_minutes(
    is_updating: bool, builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = []
    for block in BLOCK.findall(page):
        text = ""
        for line in block.splitlines():
            if not line.startswith("$ "):
                continue
            text += f"{line}\n"
            if line.startswith("$ cd "):
                monkeypatch.chdir(line.removeprefix("$ cd "))
            else:
                text += shown(line[2:]).replace(builder, "kustomize 5.8.1")
        blocks.append(text)
    found = iter(blocks)
    expected = BLOCK.sub(lambda _: f"```console\n{next(found)}```", page)
    if is_updating:
        PAGE.write_text(expected, encoding="utf-8")
    assert page == expected or is_updating


def test_the_page_is_short_and_leads_on() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) >= 5
    for target in re.findall(
        r"\]\(([^)#]+)\)", page + (PAGE.parent / "install.md").read_text(encoding="utf-8")
    ):
        assert (PAGE.parent / target).is_file(), target
