"""What commands ask for: a tree rendered, compared, put aside, or previewed. Each runs all the stages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gangplan.emit import Change, FileOutcome, Stage
from gangplan.emit.lock import locked
from gangplan.findings import Finding
from gangplan.pipeline.foreign import Today, foreign
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.stages import run
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import RENDERED, Workspace, load_workspace


def render(request: Request, tree: Path | None = None, check: bool = False) -> Result:
    """Render into `tree` (default: rendered/). With `check`, nothing is written: `changes` tell the drift."""
    with _staged(request.root, tree or request.root / RENDERED) as stage:
        result = run(request, load_workspace(request.root), stage)
        if result.has_errors:
            return result
        wanted = {change.path for change in result.changes}
        removed = stage.obsolete(wanted, result.scope.covers)
        result.changes += [Change(path, FileOutcome.REMOVED) for path in removed]
        result.changes.sort(key=lambda change: change.path)
        if check:
            _attach_texts(result, stage)
            result.strangers = foreign(stage.tree)
        else:
            stage.commit(removed)
        return result


def preview(request: Request, workspace: Workspace | None = None) -> Result:
    """Render without writing: the runs and the texts stay in memory. Who has the workspace hands it on."""
    return run(request, workspace or load_workspace(request.root), None)


def strangers(request: Request, result: Result, folder: Path) -> list[Finding]:
    """What stands in rendered/ and is not gangplan's; `folder` holds what is rendered now."""
    tree = request.root / RENDERED
    if result.has_errors:  # then not all is rendered that would be
        return foreign(tree)
    workspace = result.workspace
    homes = {
        (name, team): namespace_of(cluster.spec, team, workspace.teams[team].spec)
        for name, cluster in workspace.clusters.items()
        for team in cluster.spec.teams
        if team in workspace.teams
    }
    return foreign(tree, Today(folder, homes), result.scope.covers)


@contextmanager
def rendered_aside(request: Request) -> Iterator[tuple[Result, Path]]:
    """Render into a temporary folder for as long as the caller looks at it."""
    with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
        stage = Stage(Path(folder) / "nothing", Path(folder) / "tree")
        stage.folder.mkdir()
        yield run(request, load_workspace(request.root), stage), stage.folder


@contextmanager
def _staged(root: Path, tree: Path) -> Iterator[Stage]:
    """The stage of a tree, under its lock; whatever happens, the stage is gone afterwards."""
    is_default = tree == root / RENDERED
    state = root / ".gangplan" if is_default else tree.parent / f".{tree.name}.gangplan"
    with locked(state):
        stage = Stage.beside(tree, state)
        try:
            yield stage
        finally:
            stage.discard()
            if not is_default:
                (state / "lock").unlink(missing_ok=True)
                state.rmdir()


def _attach_texts(result: Result, stage: Stage) -> None:
    """For --check: the new text of each file that differs, so that the difference can be shown."""
    for change in result.differences:
        if change.outcome is not FileOutcome.REMOVED:
            result.texts[change.path] = (stage.folder / change.path).read_text(encoding="utf-8")
