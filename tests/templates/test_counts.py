"""The cost of a changed template: only the specs that use it are rendered again, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.spec import template_files
from tests.incremental.test_known import made
from tests.templates.files import SPEC, TEMPLATE, WIDE, workspace
from tests.workspaces import render, write

NARROW, CHILD = "jobtemplates/narrow.yaml", "jobtemplates/child.yaml"
EXTENDS = "apiVersion: gangplan.dev/v1\nkind: JobTemplate\nextends: wide\njob: {env: {A: b}}\n"


def users(template: str, count: int) -> dict[str, str]:
    """Return specs that use a template."""
    return {
        f"specs/nlp/{template}-{number}.yaml": SPEC.replace("wide", template).replace(
            "1e-4", f"1e-{number + 1}"
        )
        for number in range(count)
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        NARROW: TEMPLATE.replace("gpus: 2", "gpus: 1"),
        CHILD: EXTENDS,
        "jobtemplates/unused.yaml": TEMPLATE,
    }
    files |= users("narrow", 2) | users("child", 1)
    found = workspace(tmp_path_factory.mktemp("counts"), **files)  # and one of wide
    render(found)
    return found


@pytest.mark.parametrize(
    ("file", "specs"),
    [(NARROW, 2), (WIDE, 2), (CHILD, 1), ("jobtemplates/unused.yaml", 0)],
)
def test_a_changed_template_rerenders_only_the_specs_that_use_it(root: Path, file: str, specs: int) -> None:
    """Specs of a template that extends it use it, too."""
    path = root / file
    text = path.read_text()
    path.write_text(text.replace("cpu: 8", "cpu: 4").replace("A: b", "A: c"))
    try:
        assert made(root, "validate") == (specs, 0)
        render(root)
        assert made(root, "validate") == (0, 0)
    finally:
        path.write_text(text)
        render(root)


@pytest.mark.parametrize("count", [4, 8])
def test_a_template_is_read_once_however_many_specs_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """So the cost of templates grows with templates, and the cost of specs with specs."""
    root = write(workspace(tmp_path), users("wide", count))
    read: list[str] = []
    load = template_files.load_file
    monkeypatch.setattr(
        template_files, "load_file", lambda path, file: (read.append(file), load(path, file))[1]
    )
    assert made(root, "validate", "--no-cache") == (count + 1, 1)
    assert read == [WIDE]
