"""The renders of commands: written, compared, put aside or previewed. Each runs all the stages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gangplan.emit import FileOutcome, StagingFolder, TreeChange, find_conflict_line
from gangplan.emit.lock import lock_state_folder
from gangplan.emit.tree import STATE_FOLDER, is_unfinished, recover_tree
from gangplan.errors import ToolError
from gangplan.findings import Finding
from gangplan.incremental.look import is_surely_before
from gangplan.incremental.store import RecordStore
from gangplan.pipeline.conditions import load_known_results
from gangplan.pipeline.foreign import ExpectedTree, check_unmanaged_rendered_files
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.seen import (
    digest_file,
    look_at_workspace,
    read_sweepless_folders,
    store_sweepless_folders,
)
from gangplan.pipeline.stages import run_pipeline_stages
from gangplan.pipeline.whole import VanishedError
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import RENDERED, Workspace, load_workspace

# If fewer files changed, the next command reads the folders again; otherwise this one does.
_FEW = 1000


def render_tree(request: Request, tree: Path | None = None, check: bool = False) -> Result:
    """Render into `tree` (default: rendered/). With `check`, write nothing; `changes` are then the drift.

    Raises UserError for a tree that holds something else.
    """
    is_elsewhere = tree is not None and tree != request.root / RENDERED
    if tree is not None and is_elsewhere:
        from gangplan.pipeline.output import check_output_folder  # few trees are elsewhere

        check_output_folder(request.root, tree)
    with _open_staging_folder(request.root, tree or request.root / RENDERED, check) as (stage, last):
        if request.looked is not None and not is_surely_before(last, request.looked.began):
            request = replace(request, looked=None)  # another render has ended since
        # Find files with new schema facts here too, so that the next validation need not see the others.
        request = replace(request, uses_cache=request.uses_cache and tree is None, with_facts=True)
        result = _run_render_stages(request, stage)
        if result.has_errors:
            save_results(result)
            return result
        wanted = {change.path for change in result.changes}
        removed = stage.obsolete(
            wanted, result.scope.covers, _list_unsettled_rendered_folders(result, request)
        )
        if is_elsewhere:
            from gangplan.pipeline.output import is_rendered_path

            removed = [path for path in removed if is_rendered_path(path)]
        result.changes += [TreeChange(path, FileOutcome.REMOVED) for path in removed]
        result.changes.sort(key=lambda change: change.path)
        if check:
            _attach_changed_texts(result, stage)
            result.strangers = check_unmanaged_rendered_files(
                stage.tree,
                settled=list_settled_rendered_paths(result, request),
                folders=_list_rendered_folders(result),
            )
        else:
            stage.commit(removed)
            if request.looked is not None:
                changed = len(result.differences)
                request.looked.is_over, request.looked.is_rewritten = 0 < changed < _FEW, changed >= _FEW
        save_results(result)
        return result


def preview_render(request: Request, workspace: Workspace | None = None) -> Result:
    """Render without writing: the runs and the texts stay in memory. Callers that have the workspace pass
    it on."""
    _finish_killed_render(request.root)
    return run_pipeline_stages(request, workspace or load_workspace(request.root), None)


def report_unmanaged_rendered_files(request: Request, result: Result, folder: Path) -> list[Finding]:
    """Report what is in rendered/ and is not gangplan's; `folder` holds what is rendered now."""
    tree = request.root / RENDERED
    settled = {
        *list_settled_rendered_paths(result, request),
        *(f"{RENDERED}/{path}" for path in list_settled_files(result)),
    }
    seen = _list_rendered_folders(result)
    if result.has_errors:  # then the render is not complete
        return check_unmanaged_rendered_files(tree, settled=settled, folders=seen)
    workspace = result.workspace
    homes = {
        (name, team): namespace_of(cluster.spec, team, workspace.teams[team].spec)
        for name, cluster in workspace.clusters.items()
        for team in cluster.spec.teams
        if team in workspace.teams
    }
    return check_unmanaged_rendered_files(
        tree, ExpectedTree(folder, homes), result.scope.covers, settled, seen
    )


def find_stale_rendered_files(request: Request, result: Result, folder: Path) -> list[TreeChange]:
    """Return what a render would change in rendered/; empty if there is no such folder, or if there are
    errors.

    `folder` holds what was rendered aside, all of it or what differs.
    """
    tree = request.root / RENDERED
    if result.has_errors or not tree.is_dir():
        return []
    found = []
    for change in result.differences:
        old, new = tree / change.path, folder / change.path
        is_there = old.is_file() and not old.is_symlink()
        if is_there and find_conflict_line(old.read_bytes()):
            continue  # reported as a conflict
        if not (is_there and old.read_bytes() == new.read_bytes()):
            found.append(TreeChange(change.path, FileOutcome.CHANGED if is_there else FileOutcome.NEW))
    for change in result.changes if request.told is not None else ():  # shards leave out new files, too
        if change.outcome is FileOutcome.SAME and not (tree / change.path).is_file():
            found.append(TreeChange(change.path, FileOutcome.NEW))
    stage = StagingFolder(tree, folder, is_look=True)
    wanted = {change.path for change in result.changes}
    gone = stage.obsolete(wanted, result.scope.covers, _list_unsettled_rendered_folders(result, request))
    found += [
        TreeChange(path, FileOutcome.REMOVED)
        for path in gone
        if not find_conflict_line((tree / path).read_bytes())
    ]
    if all(change.outcome is FileOutcome.NEW for change in found) and len(found) == len(result.changes) + len(
        result.wholes
    ):
        return []  # this workspace does not keep what is rendered
    return sorted(found, key=lambda change: change.path)


@contextmanager
def render_into_temporary_folder(
    request: Request, judge: str = "", is_whole: bool = True
) -> Iterator[tuple[Result, Path]]:
    """Render into a temporary folder, which exists only within the context.

    Known results are not in it but in `rendered/`, except those that the `judge` has not seen. Unless
    `is_whole`, files that `rendered/` has already are not in it either (`list_settled_files`).
    """
    _finish_killed_render(request.root)
    with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
        tree = Path(folder) / "nothing" if is_whole else request.root / RENDERED
        stage = StagingFolder(tree, Path(folder) / "tree", is_look=True)
        stage.folder.mkdir()
        yield _run_render_stages(request, stage, judge), stage.folder


def _finish_killed_render(root: Path) -> None:
    """Finish what a killed render began, before `rendered/` is read; a render that still runs does so
    itself."""
    state = root / STATE_FOLDER
    if is_unfinished(state):
        with suppress(ToolError), lock_state_folder(state):
            recover_tree(root / RENDERED, state)


def list_settled_rendered_paths(result: Result, request: Request) -> Collection[str]:
    """Return the folders and files of `rendered/`, by path from the root, that hold exactly what is
    rendered now."""
    if request.told is not None:
        return request.told.settled
    return result.known.settled if result.known is not None else ()


def _list_unsettled_rendered_folders(result: Result, request: Request) -> list[str] | None:
    """Return the folders of `rendered/`, by their paths in it, that may hold more than what is rendered
    now."""
    folders, settled = _list_rendered_folders(result), list_settled_rendered_paths(result, request)
    if folders is None:
        return None
    return [path[len(RENDERED) + 1 :] for path in folders if path not in settled]


def _list_rendered_folders(result: Result) -> list[str] | None:
    """Return all folders of `rendered/`, if they were listed."""
    if result.known is None:
        return None
    return result.known.rendered()


def list_settled_files(result: Result) -> set[str]:
    """Return the files of `rendered/`, by their paths in it, that were found to hold what is rendered now.

    Files of teams that were taken as a whole are left out (`list_whole_team_files`).
    """
    return {change.path for change in result.changes if change.outcome is FileOutcome.SAME}


def list_whole_team_files(result: Result) -> set[str]:
    """Return the files of `rendered/` of teams that were taken as a whole, by their paths in it.

    Raises ToolError.
    """
    if result.known is None:
        return set()
    try:
        wholes = [one for whole in result.wholes for one in result.known.details(whole)]
    except VanishedError:
        raise ToolError("another command changed .gangplan/cache meanwhile", "Try again.") from None
    return {change.path for one in wholes for change in one.changes}


def list_telling_files(result: Result) -> Collection[str]:
    """Return the files that have all schema facts of the others, and those for which that is not known."""
    return result.telling.union(result.unjudged)


def _run_render_stages(request: Request, stage: StagingFolder, judge: str = "") -> Result:
    """Run all stages, with results of earlier commands where these may be used."""
    known = None
    if request.uses_cache and not request.keep_runs:
        root = request.root
        store = RecordStore(str(root))
        seen = request.looked or look_at_workspace(root, store)
        listed = {} if seen is None else seen.plain
        workspace = load_workspace(
            root, read_sweepless_folders(store, seen) if seen is not None else (), listed
        )
        if seen is not None and not workspace.is_refused:
            store_sweepless_folders(store, seen, workspace.sweeps)
            known = load_known_results(root, seen, workspace, judge, request.clusters, request.versions)
    else:
        workspace = load_workspace(request.root)
    try:
        result = run_pipeline_stages(request, workspace, stage, known)
    except VanishedError:  # the known results have changed meanwhile
        return _run_render_stages(replace(request, in_sums=False, looked=None), stage, judge)
    if known is not None:
        result.unjudged = known.opinions.unjudged(lambda: _build_rendered_digest_lookup(result))
    for path in result.unjudged:
        copy = stage.folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(request.root / RENDERED / path, copy)
    return result


def _build_rendered_digest_lookup(result: Result) -> Callable[[str], str]:
    """Return a function from a path in `rendered/` to the file's digest if it holds what is rendered now,
    else ""."""
    own = {change.path: change.digest for change in result.changes if change.outcome is FileOutcome.SAME}
    folders = {folder for whole in result.wholes for folder in whole.settled}

    def holding(path: str) -> str:
        if f"{RENDERED}/{path}".rpartition("/")[0] in folders:
            return digest_file(result.workspace.root / RENDERED / path)
        return own.get(path, "")

    return holding


def save_results(result: Result, judge: str = "") -> None:
    """Keep the results for the next command."""
    if result.known is not None:
        result.known.save(judge, result.telling, result.changes)


@contextmanager
def _open_staging_folder(root: Path, tree: Path, check: bool) -> Iterator[tuple[StagingFolder, int]]:
    """Yield the stage of a tree, under its lock, and when the lock was last released; always remove the
    stage.

    For a `check` where nothing may be written, the stage is elsewhere and needs no lock.
    """
    is_default = tree == root / RENDERED
    state = root / ".gangplan" if is_default else tree.parent / f".{tree.name}.gangplan"
    if check and not _may_write(state):
        with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
            stage = StagingFolder(tree, Path(folder) / "tree")
            stage.folder.mkdir()
            yield stage, 0
        return
    with lock_state_folder(state) as last:
        stage = StagingFolder.beside(tree, state)
        try:
            yield stage, last
        finally:
            stage.discard()
            if not is_default:
                (state / "lock").unlink(missing_ok=True)
                state.rmdir()


def _may_write(state: Path) -> bool:
    """Return whether a stage can be made and its lock taken."""
    ours = [one for one in (state / "lock", state) if one.exists()]
    return all(os.access(one, os.W_OK) for one in ours or [state.parent])


def _attach_changed_texts(result: Result, stage: StagingFolder) -> None:
    """Attach the new text of each file that differs, so that --check can show the difference."""
    for change in result.differences:
        if change.outcome is not FileOutcome.REMOVED:
            result.texts[change.path] = (stage.folder / change.path).read_text(encoding="utf-8")
