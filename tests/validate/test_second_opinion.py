"""kubeconform next to the embedded engine: it has no finding where that has none.

Commands in other tests run without it (tests/conftest.py). It checks all that they render here at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.pipeline.render import render_into_temporary_folder
from gangplan.pipeline.request import Request
from gangplan.pipeline.second_opinion import ask_kubeconform_for_second_opinion
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.tools.kubeconform import Kubeconform
from gangplan.validate.apiserver.schema import SchemaVersions, write_schemas
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests.golden import EXAMPLES, render_example
from tests.rules.test_rules import EXAMPLES as RULES
from tests.rules.worlds import put
from tests.workspaces import gangplan, render, write

pytestmark = pytest.mark.real_tool("kubeconform")
Files = dict[SchemaVersions, dict[bytes, str]]


def _take(found: Files, root: Path, tree: Path, name: str) -> None:
    """Sort the files of a rendered tree by the versions of their cluster, each text once."""
    clusters = load_workspace(root).clusters
    for folder in (path for path in tree.iterdir() if path.is_dir()):
        texts = found.setdefault(
            choose_schema_versions_of(resolve_platform_of_cluster_file(clusters[folder.name])), {}
        )
        for path in sorted(folder.rglob("*.yaml")):
            texts.setdefault(path.read_bytes(), f"{name}: {path.relative_to(tree)}")


def _examples_of_rules(folder: Path) -> Iterator[tuple[Path, Path, str]]:
    """Render and yield the `after` side of every page."""
    for rule, example in RULES.items():
        root = folder / rule
        put(root, example, "after")
        with render_into_temporary_folder(Request(root.resolve(), engine="serial")) as (result, tree):
            assert not result.has_errors, rule
            yield root, tree, rule


def test_kubeconform_accepts_everything_that_passes(
    tmp_path: Path, builder: str, real_kubeconform: Kubeconform
) -> None:
    found: Files = {}
    for example in EXAMPLES:
        _take(found, example / "input", render_example(example.name), example.name)
    for root, tree, name in _examples_of_rules(tmp_path):
        _take(found, root, tree, name)
    wrong, count = [], 0
    for number, (versions, texts) in enumerate(found.items()):
        names = dict(zip((f"{index}.yaml" for index in range(len(texts))), texts, strict=True))
        folder = write(tmp_path / f"files-{number}", names)
        schemas = write_schemas(versions, tmp_path / f"schemas-{number}")
        verdicts = real_kubeconform.check([folder / name for name in names], schemas)
        wrong += [(texts[names[one.file.name]], one) for one in verdicts if one.status != "valid"]
        count += len(verdicts)
    assert not wrong
    assert count > 1000


def test_validate_names_its_validators(root: Path, real_kubeconform: Kubeconform) -> None:
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert f"(embedded validator and {real_kubeconform.label})" in outcome.out + outcome.err


def test_a_finding_of_kubeconform_is_reported_at_the_spec(root: Path, real_kubeconform: Kubeconform) -> None:
    render(root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    text = run.read_text()
    assert "  activeDeadlineSeconds: 86400\n" in text
    run.write_text(text.replace("Seconds: 86400\n", "Seconds: soon\n"))
    label, (finding,) = ask_kubeconform_for_second_opinion(load_workspace(root), root / "rendered")
    assert label == real_kubeconform.label
    assert (finding.rule, finding.where.file, finding.path) == (
        "kubeconform",
        "specs/nlp/filings.yaml",
        "/spec/activeDeadlineSeconds",
    )
    assert finding.object_ref.startswith("TrainJob/filings-")
    assert "got string, want integer" in finding.message
