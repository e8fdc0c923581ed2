"""Both sides of a change: a workspace at a Git revision, and as it is now, both rendered.

Nothing in the work tree or the index is changed: the revision is written to a temporary folder. Results of
one side are used for the other: specs and platforms that are the same have the same results (decision 0021).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path, PurePosixPath

from gangplan.emit import StagingFolder, TreeChange
from gangplan.findings import Finding
from gangplan.incremental.look import digest_folder, look_at_folders
from gangplan.incremental.store import CACHE_FOLDER as CACHE
from gangplan.incremental.store import RecordStore
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.conditions import load_known_results
from gangplan.pipeline.render import (
    find_stale_rendered_files,
    render_into_temporary_folder,
    report_unmanaged_rendered_files,
    save_results,
)
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.seen import look_at_workspace
from gangplan.pipeline.stages import run_pipeline_stages
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass
from gangplan.review.trees import RenderedTree, read_committed_tree, read_rendered_tree_after_change
from gangplan.rules.security import SECRET_LITERAL, SECRET_SUSPECTED
from gangplan.tools.revisions import (
    Listing,
    Revision,
    compute_git_blob_id,
    list_commit_files,
    list_possibly_changed_git_files,
    read_git_blobs_by_id,
)
from gangplan.workspace import OVERLAYS, READ_FOLDERS, RENDERED, SPECS, Workspace, load_workspace

# Kinds of records that are copied for a base, and the prefix of those of earlier bases.
_KEPT = ("clusters", "platform", "runs", "shapes", "worlds")
_HELD = "base-"
_SINGLE = ("clean", "program")
_RUN_FILE = re.compile(r"(.+/runs/[^/]+)/([^/]+)-[0-9a-f]{8}\.yaml")
_ABOUT_SECRETS = (SECRET_LITERAL, SECRET_SUSPECTED)
_HASH_LINE = re.compile(r'^    gangplan\.dev/spec-hash: "?([0-9a-f]+)"?$', re.MULTILINE)
_EMPTY = digest_folder({})

RunKey = tuple[str, str, str]  # cluster, team, job


@dataclass(frozen=True, slots=True)
class Side:
    """A workspace at one time: its findings, its runs by cluster, team and job, and the tree.

    `specs` are the bytes of its specs by path. `is_there`: it was a workspace at that time.
    """

    workspace: Workspace
    findings: list[Finding]
    runs: Mapping[RunKey, RunFacts]
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
def open_review_sides(request: Request, revision: Revision) -> Iterator[Sides]:
    """Return both sides, for as long as the context lasts. Raises UserError and ToolError."""
    listing = list_commit_files(request.root, revision.commit, (*READ_FOLDERS, RENDERED))
    noted: dict[str, TaskResult] = {}
    # The cache must also know which files have new schema facts (second_opinion.py).
    whole = replace(request, clusters=(), teams=(), specs=(), noted=noted, with_facts=True)
    with (
        render_into_temporary_folder(whole, is_whole=False) as (result, folder),
        tempfile.TemporaryDirectory("-base") as top,
    ):
        result.findings = [*result.findings, *report_unmanaged_rendered_files(whole, result, folder)]
        save_results(result)
        stale = find_stale_rendered_files(whole, result, folder)
        texts = {change.path: change for change in result.changes}
        touched = _list_touched_rendered_files(request.root, revision)
        tree = read_rendered_tree_after_change(request.root / RENDERED, folder, texts, touched=touched)
        here = {
            path: _read_regular_file(request.root / path) for path in _list_files_of_review_side(request.root)
        }
        specs = {file.file: here.get(file.file, b"") for file in result.workspace.spec_files}
        facts = {one.key: one for one in result.facts}
        after = Side(result.workspace, result.findings, facts, tree, specs)
        files = _read_files_before_change(request.root, listing, here)
        before = _build_base_revision_side(whole, Path(top).resolve(), listing, files, after, result)
        changed = tuple(path for path in sorted({*files, *here}) if _is_changed(path, files, here))
        yield Sides(revision, before, after, stale, listing.unread, changed)


def _is_changed(path: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Return whether a file differs; hidden ones are settings of other tools."""
    return before.get(path) != after.get(path) and not path.rpartition("/")[2].startswith(".")


def _list_touched_rendered_files(root: Path, revision: Revision) -> set[str]:
    """Return the files of rendered/, by their paths in it, that may not be as they are at the revision."""
    touched = list_possibly_changed_git_files(root, revision.commit, RENDERED)
    return {path.removeprefix(f"{RENDERED}/") for path in touched}


def _read_files_before_change(root: Path, listing: Listing, here: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that people write at the revision, by path; Git only reads those that are not the
    same `here`."""
    ids = {
        path: name
        for path, name in listing.files.items()
        if "/" in path and path.split("/")[0] in READ_FOLDERS
    }
    same = {
        path for path, name in ids.items() if path in here and compute_git_blob_id(here[path], name) == name
    }
    contents = read_git_blobs_by_id(root, [name for path, name in ids.items() if path not in same])
    return {path: here[path] if path in same else contents[name] for path, name in ids.items()}


def _build_base_revision_side(
    request: Request, top: Path, listing: Listing, files: Mapping[str, bytes], after: Side, result: Result
) -> Side:
    """Return the side of the revision, whose files are written below `top` as far as they are read there."""
    root = request.root
    rendered = {
        path.removeprefix(f"{RENDERED}/"): name
        for path, name in listing.files.items()
        if path.startswith(f"{RENDERED}/")
    }
    committed = read_committed_tree(rendered, lambda names: read_git_blobs_by_id(root, names))
    for name in (SPECS, OVERLAYS):
        (top / name).mkdir(exist_ok=True)
    taken = _select_results_same_on_both_sides(request, after, files) if result.worker is not None else {}
    known = _list_folders_known_to_both_sides(files, taken, after)
    _write_files_before_change(
        top, {path: data for path, data in files.items() if not _is_known(path, known)}
    )
    workspace = load_workspace(top, known, known)
    specs = {file.file: files[file.file] for file in workspace.spec_files}
    if not any(path.startswith(f"{OVERLAYS}/") for path in files):
        return Side(workspace, [], {}, read_committed_tree({}, lambda _: {}), {}, is_there=False)
    asked = Request(top, engine=request.engine, jobs=request.jobs, with_facts=True)
    stage = StagingFolder(top / RENDERED, top / "stage", is_look=True)
    stage.folder.mkdir()
    is_same = workspace.sweep_marks == result.workspace.sweep_marks and _compute_platform_digests_of_side(
        root
    ) == _compute_platform_digests_of_side(top)
    if is_same and result.worker is not None:
        teams = {("runs", path.split("/")[1]) for path in specs if path not in taken}
        _write_files_before_change(
            top, committed.below(top / RENDERED, lambda path: (*path.split("/")[1:3],) in teams)
        )
        found = run_pipeline_stages(replace(asked, taken=taken, like=result.worker), workspace, stage, None)
    else:
        _write_files_before_change(
            top, {path: data for path, data in files.items() if _is_known(path, known)}
        )
        _write_files_before_change(top, committed.below(top / RENDERED, lambda _: True))
        found = _render_side_before_change(root, asked, workspace, stage)
    names = _index_runs_of_base_revision(committed)
    runs = {one.key: _apply_run_name_of_base_revision(one, committed, names) for one in found.facts}
    tree = committed
    if not rendered:  # rendered/ is not committed: what would be rendered is compared
        tree = read_rendered_tree_after_change(
            top / RENDERED, stage.folder, {one.path: one for one in found.changes}, after.tree
        )
    return Side(workspace, found.findings, runs, tree, specs)


def _select_results_same_on_both_sides(
    request: Request, after: Side, files: Mapping[str, bytes]
) -> dict[str, TaskResult]:
    """Return the results of specs and clusters that are the same on both sides."""
    noted = request.noted or {}
    return {
        path: result
        for path, result in noted.items()
        if result.is_lasting
        and (files.get(path) == after.specs.get(path, b"") or path.startswith(f"{OVERLAYS}/"))
    }


def _list_folders_known_to_both_sides(
    files: Mapping[str, bytes], taken: Collection[str], after: Side
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the folders of specs whose results are all `taken`, with their files and folders: nothing in
    them is read again.

    Sweeps are read to list their trials, and files with a secret to report it.
    """
    inside: dict[str, tuple[list[str], list[str]]] = {}
    read = {file.rpartition("/")[0] for file in after.workspace.sweeps}
    read |= {one.where.file.rpartition("/")[0] for one in after.findings if one.rule in _ABOUT_SECRETS}
    for path in files:
        folder, _, name = path.rpartition("/")
        if not path.startswith(f"{SPECS}/"):
            continue
        inside.setdefault(folder, ([], []))[0].append(name)
        if path not in taken and not _is_team_file(path):
            read.add(folder)
        while folder.count("/") > 1:
            parent, _, name = folder.rpartition("/")
            if name not in (names := inside.setdefault(parent, ([], []))[1]):
                names.append(name)
            folder = parent
    return {folder: names for folder, names in inside.items() if folder not in read and folder != SPECS}


def _is_known(path: str, known: Collection[str]) -> bool:
    """Return whether a file need not be there because its folder is known; teams are read in any case."""
    return path.rpartition("/")[0] in known and not _is_team_file(path)


def _is_team_file(path: str) -> bool:
    return path.count("/") == 2 and path.endswith("/team.yaml")


def _render_side_before_change(
    root: Path, asked: Request, workspace: Workspace, stage: StagingFolder
) -> Result:
    """Render the base with what is known of it or of a workspace like it, and keep the results for the
    next time."""
    top, cache = asked.root, RecordStore(str(root))
    own = Path(CACHE)
    for kind in _KEPT if cache.folder else ():
        for place in (kind, f"{_HELD}{kind}"):  # those of earlier bases last
            for path, _, _ in cache.files(place):
                _copy_cache_record_for_base_side(Path(path), top / own / kind)
    for name in _SINGLE if cache.folder else ():
        _copy_cache_record_for_base_side(Path(str(cache.folder)) / name, top / own)
    seen = look_at_workspace(top, RecordStore(str(top)))
    known = (
        load_known_results(top, seen, workspace, "", (), ()) if seen and not workspace.is_refused else None
    )
    found = run_pipeline_stages(asked, workspace, stage, known)
    save_results(found)
    store = RecordStore(str(top))
    for kind in _KEPT if cache.folder else ():
        for path, _, _ in store.files(kind):
            _copy_cache_record_for_base_side(Path(path), Path(str(cache.folder)) / f"{_HELD}{kind}")
    return found


def _copy_cache_record_for_base_side(file: Path, folder: Path) -> None:
    """Copy a record of the cache, if that is possible: it is sealed, so half of one is ignored."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f"{file.name}.{os.getpid()}"
        shutil.copyfile(file, aside, follow_symlinks=False)
        os.replace(aside, folder / file.name)


def _compute_platform_digests_of_side(root: Path) -> dict[str, str]:
    """Return what decides all runs besides their specs, by folder: digests of files of clusters, teams,
    images."""
    found = look_at_folders(str(root), [one for one in READ_FOLDERS if one != SPECS], {}).contents
    files = [*(root / SPECS).glob("*/team.yaml"), *(root / SPECS).glob("*/templates/**/*.yaml")]
    teams = {path: _read_regular_file(path) for path in files}
    return {path: digest for path, digest in found.items() if digest != _EMPTY} | {
        path.relative_to(root).as_posix(): data.decode("latin-1") for path, data in teams.items()
    }


def _list_files_of_review_side(root: Path) -> list[str]:
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


def _write_files_before_change(top: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a temporary folder. Their paths are inside (`list_commit_files`), and no link leads
    out."""
    for path, data in files.items():
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _index_runs_of_base_revision(committed: RenderedTree) -> dict[tuple[str, str], list[str]]:
    """Return the files of runs by folder and job."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in committed.ids:
        if match := _RUN_FILE.fullmatch(path):
            found.setdefault((match[1], match[2]), []).append(path)
    return found


def _apply_run_name_of_base_revision(
    facts: RunFacts, committed: RenderedTree, names: Mapping[tuple[str, str], Sequence[str]]
) -> RunFacts:
    """Return a run under the name that Git has for it, if the platform or gangplan changed since."""
    if facts.path in committed.ids:
        return facts
    for path in names.get((f"{facts.cluster}/runs/{facts.team}", facts.job), ()):
        name = PurePosixPath(path).stem
        if name not in facts.retired:
            found = _HASH_LINE.search(committed.text(path))
            if found and found[1] == facts.spec_hash:
                return replace(facts, name=name)
    return facts
