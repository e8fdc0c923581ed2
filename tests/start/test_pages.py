"""The commands of README, docs/first-ten-minutes.md and docs/how-to.md, run in order, print what the pages
show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import REPOSITORY, begin, gangplan

PAGE = REPOSITORY / "docs/first-ten-minutes.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOW_TO = REPOSITORY / "docs/how-to.md"
README = REPOSITORY / "README.md"
# The command that shows a mistake.
REFUSED = "new job huge"


def shown(line: str) -> str:
    """Return what a command of the page prints."""
    program, *arguments = shlex.split(line)
    if program == "cat":
        return Path(arguments[0]).read_text()
    assert program == "gangplan", line
    outcome = gangplan(*arguments)
    assert (outcome.code == Exit.CLEAN) is (REFUSED not in line), outcome.err
    return outcome.out + outcome.err


@pytest.mark.parametrize("page", [README, PAGE], ids=lambda page: page.name)
def test_a_page_works_in_an_empty_folder(
    page: Path, is_updating: bool, builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    does_what_it_shows(page, is_updating, builder, monkeypatch)


def test_the_how_to_page_works_in_a_new_workspace(
    is_updating: bool, builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path / "jobs")
    monkeypatch.chdir(tmp_path / "jobs")
    does_what_it_shows(HOW_TO, is_updating, builder, monkeypatch)


def does_what_it_shows(
    page: Path,
    is_updating: bool,
    builder: str,
    monkeypatch: pytest.MonkeyPatch,
    shown: Callable[[str], str] = shown,
) -> None:
    """Run the commands of a page in the current folder, and compare their outputs with those on the page."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for block in BLOCK.findall(text):
        said = ""
        for line in block.splitlines():
            if not line.startswith("$ "):
                continue
            said += f"{line}\n"
            if line.startswith("$ cd "):
                monkeypatch.chdir(line.removeprefix("$ cd "))
            else:
                said += shown(line[2:]).replace(builder, "kustomize 5.8.1")
        blocks.append(said)
    found = iter(blocks)
    expected = BLOCK.sub(lambda _: f"```console\n{next(found)}```", text)
    if is_updating:
        page.write_text(expected, encoding="utf-8")
    assert text == expected or is_updating


@pytest.mark.parametrize("page", [PAGE, HOW_TO])
def test_the_page_has_examples_and_its_links_work(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 5
    for target in re.findall(r"\]\(([^)#]+)\)", text + (page.parent / "install.md").read_text("utf-8")):
        assert (page.parent / target).is_file(), target
    headings = {re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-") for line in text.splitlines()}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
