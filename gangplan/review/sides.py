"""Both sides of a change: a workspace at a Git revision, and as it is now, both rendered.

Nothing in the work tree or the index is changed: the revision is written to a temporary folder. Results of
one side are used for the other: specs and platforms that are the same have the same results (decision 0021).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path

from gangplan.emit import StagingFolder, TreeChange
from gangplan.findings import Finding
from gangplan.incremental.look import digest_folder, look_at_folders
from gangplan.incremental.store import CACHE_FOLDER as CACHE
from gangplan.incremental.store import RecordStore
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.conditions import load_known_results
from gangplan.pipeline.render import (
    find_stale_files,
    render_into_temporary_folder,
    report_unmanaged_files,
    save_results,
)
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.seen import look_at_workspace
from gangplan.pipeline.stages import run_stages
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass
from gangplan.review.trees import RenderedTree, read_committed_tree, read_rendered_tree
from gangplan.tools.revisions import Listing, Revision, list_commit_files, read_blobs
from gangplan.workspace import OVERLAYS, READ_FOLDERS, RENDERED, SPECS, Workspace, load_workspace

# Kinds of records that are copied for a base, and the prefix of those of earlier bases.
_KEPT = ("clusters", "platform", "runs", "shapes", "worlds")
_HELD = "base-"
_SINGLE = ("clean", "program")
_HASH_LINE = re.compile(r'^    gangplan\.dev/spec-hash: "?([0-9a-f]+)"?$', re.MULTILINE)
_EMPTY = digest_folder({})

Key = tuple[str, str, str]  # cluster, team, job


@dataclass(frozen=True, slots=True)
class Side:
    """A workspace at one time: its findings, its runs by cluster, team and job, and the tree.

    `specs` are the bytes of its specs by path. `is_there`: it was a workspace at that time.
    """

    workspace: Workspace
    findings: list[Finding]
    runs: Mapping[Key, RunFacts]
    tree: RenderedTree
    specs: Mapping[str, bytes]
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides, and what separates them.

    `stale` are the files of `rendered/` that are not what is rendered now. `unread` are links and submodules
    at the revision. `changed_files` are the files that people write and that differ.
    """

    revision: Revision
    before: Side
    after: Side
    stale: list[TreeChange] = field(default_factory=list)
    unread: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()


@contextmanager
def open_both_sides(request: Request, revision: Revision) -> Iterator[Sides]:
    """Return both sides, for as long as the context lasts. Raises UserError and ToolError."""
    listing = list_commit_files(request.root, revision.commit, (*READ_FOLDERS, RENDERED))
    noted: dict[str, TaskResult] = {}
    # The cache must also know which files have new schema facts (second_opinion.py).
    whole = replace(request, teams=(), specs=(), noted=noted, with_facts=True)
    with (
        render_into_temporary_folder(whole, is_whole=False) as (result, folder),
        tempfile.TemporaryDirectory("-base") as top,
    ):
        result.findings = [*result.findings, *report_unmanaged_files(whole, result, folder)]
        save_results(result)
        stale = find_stale_files(whole, result, folder)
        texts = {change.path: change for change in result.changes}
        tree = read_rendered_tree(request.root / RENDERED, folder, texts)
        specs = {
            file.file: _read_regular_file(request.root / file.file) for file in result.workspace.spec_files
        }
        facts = {one.key: one for one in result.facts}
        after = Side(result.workspace, result.findings, facts, tree, specs)
        before, files = _build_base_revision_side(whole, Path(top).resolve(), listing, after, result)
        here = {path: _read_regular_file(request.root / path) for path in _list_workspace_files(request.root)}
        changed = tuple(path for path in sorted({*files, *here}) if files.get(path) != here.get(path))
        yield Sides(revision, before, after, stale, listing.unread, changed)


def _build_base_revision_side(
    request: Request, top: Path, listing: Listing, after: Side, result: Result
) -> tuple[Side, dict[str, bytes]]:
    """Return the side of the revision, written below `top`; and its files without those of rendered/."""
    root = request.root
    ids = {path: name for path, name in listing.files.items() if path.split("/")[0] in READ_FOLDERS}
    contents = read_blobs(root, ids.values())
    files = {path: contents[name] for path, name in ids.items() if "/" in path}
    _write_temporary_files(top, files)
    rendered = {
        path.removeprefix(f"{RENDERED}/"): name
        for path, name in listing.files.items()
        if path.startswith(f"{RENDERED}/")
    }
    committed = read_committed_tree(rendered, lambda names: read_blobs(root, names))
    for name in (SPECS, OVERLAYS):
        (top / name).mkdir(exist_ok=True)
    workspace = load_workspace(top)
    specs = {file.file: files[file.file] for file in workspace.spec_files}
    if not any(path.startswith(f"{OVERLAYS}/") for path in files):
        empty = Side(workspace, [], {}, read_committed_tree({}, lambda _: {}), {}, is_there=False)
        return empty, files
    asked = Request(top, engine=request.engine, jobs=request.jobs, with_facts=True)
    stage = StagingFolder(top / RENDERED, top / "stage", is_look=True)
    stage.folder.mkdir()
    is_same = workspace.sweep_marks == result.workspace.sweep_marks and _compute_platform_digests(
        root
    ) == _compute_platform_digests(top)
    if is_same and result.worker is not None:
        taken = _select_reusable_results(request, after, specs)
        teams = {("runs", path.split("/")[1]) for path in specs if path not in taken}
        _write_temporary_files(
            top, committed.below(top / RENDERED, lambda path: (*path.split("/")[1:3],) in teams)
        )
        found = run_stages(replace(asked, taken=taken, like=result.worker), workspace, stage, None)
    else:
        _write_temporary_files(top, committed.below(top / RENDERED, lambda _: True))
        found = _render_base_with_cache(root, asked, workspace, stage)
    runs = {one.key: _apply_committed_run_name(one, committed) for one in found.facts}
    tree = committed
    if not rendered:  # rendered/ is not committed: what would be rendered is compared
        tree = read_rendered_tree(
            top / RENDERED, stage.folder, {one.path: one for one in found.changes}, after.tree
        )
    return Side(workspace, found.findings, runs, tree, specs), files


def _select_reusable_results(
    request: Request, after: Side, specs: Mapping[str, bytes]
) -> dict[str, TaskResult]:
    """Return the results of specs and clusters that are the same on both sides."""
    noted = request.noted or {}
    same = {path for path, data in specs.items() if after.specs.get(path) == data}
    return {
        path: result
        for path, result in noted.items()
        if result.is_lasting and (path in same or path.startswith(f"{OVERLAYS}/"))
    }


def _render_base_with_cache(root: Path, asked: Request, workspace: Workspace, stage: StagingFolder) -> Result:
    """Render the base with what is known of it or of a workspace like it, and keep the results for the
    next time."""
    top, cache = asked.root, RecordStore(str(root))
    own = Path(CACHE)
    for kind in _KEPT if cache.folder else ():
        for place in (kind, f"{_HELD}{kind}"):  # those of earlier bases last
            for path, _, _ in cache.files(place):
                _copy_cache_record(Path(path), top / own / kind)
    for name in _SINGLE if cache.folder else ():
        _copy_cache_record(Path(str(cache.folder)) / name, top / own)
    seen = look_at_workspace(top, RecordStore(str(top)))
    known = (
        load_known_results(top, seen, workspace, "", (), ()) if seen and not workspace.is_refused else None
    )
    found = run_stages(asked, workspace, stage, known)
    save_results(found)
    store = RecordStore(str(top))
    for kind in _KEPT if cache.folder else ():
        for path, _, _ in store.files(kind):
            _copy_cache_record(Path(path), Path(str(cache.folder)) / f"{_HELD}{kind}")
    return found


def _copy_cache_record(file: Path, folder: Path) -> None:
    """Copy a record of the cache, if that is possible: it is sealed, so half of one is ignored."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f"{file.name}.{os.getpid()}"
        shutil.copyfile(file, aside, follow_symlinks=False)
        os.replace(aside, folder / file.name)


def _compute_platform_digests(root: Path) -> dict[str, str]:
    """Return what decides all runs besides their specs, by folder: digests of files of clusters, teams,
    images."""
    found = look_at_folders(str(root), [one for one in READ_FOLDERS if one != SPECS], {}).contents
    files = [*(root / SPECS).glob("*/team.yaml"), *(root / SPECS).glob("*/templates/**/*.yaml")]
    teams = {path: _read_regular_file(path) for path in files}
    return {path: digest for path, digest in found.items() if digest != _EMPTY} | {
        path.relative_to(root).as_posix(): data.decode("latin-1") for path, data in teams.items()
    }


def _list_workspace_files(root: Path) -> list[str]:
    """Return the files of a workspace that people write."""
    found = []
    for top in READ_FOLDERS:
        for parent, _, names in os.walk(root / top):
            inside = os.path.relpath(parent, root).replace(os.sep, "/")
            found += [f"{inside}/{name}" for name in names if not name.startswith(".")]
    return found


def _read_regular_file(path: Path) -> bytes:
    """Return the bytes of a regular file; empty for anything else, such as a pipe, which would never end."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _write_temporary_files(top: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a temporary folder. Their paths are inside (`list_commit_files`), and no link leads
    out."""
    for path, data in files.items():
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _apply_committed_run_name(facts: RunFacts, committed: RenderedTree) -> RunFacts:
    """Return a run under the name that Git has for it, if the platform or gangplan changed since."""
    folder = f"{facts.cluster}/runs/{facts.team}"
    if facts.path in committed.paths:
        return facts
    pattern = re.compile(rf"{re.escape(folder)}/({re.escape(facts.job)}-[0-9a-f]{{8}})\.yaml")
    for path in committed.paths:
        match = pattern.fullmatch(path)
        if match and match[1] not in facts.retired:
            found = _HASH_LINE.search(committed.text(path))
            if found and found[1] == facts.spec_hash:
                return replace(facts, name=match[1])
    return facts
