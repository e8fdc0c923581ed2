"""Pages lead to each other: every link has a target, and docs/README.md leads to every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.workspaces import REPOSITORY

CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
INDEX = REPOSITORY / "docs" / "README.md"
PAGES = sorted(page for pattern in ("*.md", "docs/**/*.md") for page in REPOSITORY.glob(pattern))


def links(page: Path) -> list[str]:
    """Return the links of a page to other pages of the repository, without those in code."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """Return the anchors that forges give to the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = set[str]()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        while name in found:
            name += "-1"
        found.add(name)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_have_targets(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_the_index_leads_to_every_page_in_two_clicks() -> None:
    reached, last = {INDEX}, {INDEX}
    for _ in range(2):
        last = {
            target
            for page in last
            if page.suffix == ".md"
            for link in links(page)
            for place in [(page.parent / link.partition("#")[0]).resolve()]
            for target in (place.glob("*.md") if place.is_dir() else [place])
        } - reached
        reached |= last
    assert sorted(set(PAGES) - reached) == []


def test_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in links(REPOSITORY / "README.md")


def test_the_sizes_of_sample_jobs_are_those_of_their_specs() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| \[[\w-]+\]\(\.\./(specs/[^)]+)\)",
        (INDEX.parent / "sample-jobs.md").read_text(),
        re.M,
    )
    assert {int(workers) for workers, *_ in rows} >= {2, 8, 16, 32}
    for workers, gpus, spec in rows:
        body = yaml.safe_load((REPOSITORY / spec).read_text())
        assert (int(workers), int(gpus)) == (body["workers"], body.get("gpus", 0)), spec
