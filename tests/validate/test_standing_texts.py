"""Files of `rendered/` that are up to date are not written again or read twice; findings stay the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.pipeline.render import list_settled_files, render_into_temporary_folder
from gangplan.pipeline.request import Request
from gangplan.pipeline.second_opinion import ask_kubeconform_for_second_opinion
from gangplan.tools.kubeconform import Kubeconform
from tests.workspaces import gangplan, render, rendered


def staged(root: Path) -> tuple[set[str], set[str]]:
    """Return the files that are staged, and those that are up to date."""
    with render_into_temporary_folder(Request(root.resolve(), engine="serial"), is_whole=False) as (
        result,
        tree,
    ):
        files = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
        return files, list_settled_files(result)


def test_only_different_files_are_staged(root: Path) -> None:
    everything, standing = staged(root)
    assert everything
    assert not standing
    render(root)
    assert staged(root) == (set(), everything)
    changed, *_ = sorted(everything)
    (root / "rendered" / changed).write_text("something else\n")
    assert staged(root) == ({changed}, everything - {changed})


def test_a_link_to_the_same_text_is_not_up_to_date(root: Path, tmp_path: Path) -> None:
    render(root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    shutil.move(run, tmp_path / "elsewhere.yaml")
    run.symlink_to(tmp_path / "elsewhere.yaml")
    files, standing = staged(root)
    assert files == {f"lab/runs/nlp/{run.name}"}
    assert not files & standing
    assert gangplan("validate", "-C", root).errors() == [
        (f"rendered/lab/runs/nlp/{run.name}:1:1", "rendered-foreign")
    ]


def test_validate_reads_no_up_to_date_file_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render(root)
    files = len(rendered(root))
    opened: list[Path] = []
    for module in ("pipeline.scan", "pipeline.foreign"):
        monkeypatch.setattr(f"gangplan.{module}.read_header_source", opened.append)
    assert gangplan("validate", "-C", root, "--no-cache").code == Exit.CLEAN
    assert files
    assert not opened


@pytest.mark.real_tool("kubeconform")
def test_kubeconform_checks_up_to_date_files(root: Path, real_kubeconform: Kubeconform) -> None:
    render(root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    run.write_text(run.read_text().replace("Seconds: 86400\n", "Seconds: soon\n"))
    standing = {
        path.relative_to(root / "rendered").as_posix() for path in (root / "rendered").rglob("*.yaml")
    }
    with render_into_temporary_folder(Request(root.resolve(), engine="serial"), is_whole=False) as (
        result,
        tree,
    ):
        shutil.rmtree(tree)  # it is inside a temporary folder
        tree.mkdir()
        label, (finding,) = ask_kubeconform_for_second_opinion(result.workspace, tree, None, None, standing)
        assert (label, finding.rule) == (real_kubeconform.label, "kubeconform")
        assert ask_kubeconform_for_second_opinion(
            result.workspace, tree, None, {f"lab/runs/nlp/{run.name}"}, standing
        )[1] == [finding]
        assert (
            ask_kubeconform_for_second_opinion(
                result.workspace, tree, None, {"lab/platform/queues.yaml"}, standing
            )[1]
            == []
        )
