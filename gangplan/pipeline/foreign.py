"""Checks for unmanaged files in rendered/: all of it is applied, so what gangplan did not write is an error.

Reported are files without gangplan's mark, links, hidden files, copies of the mark under a name that gangplan
never writes, and additional objects in its files. Whether each text is current is what `render --check`
compares, byte by byte.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from gangplan.emit import find_conflict_line, is_launch_file, read_header_source
from gangplan.findings import Finding, Location
from gangplan.generators.scripts import SCRIPTS_VOLUME, is_launch_script_config_map, team_source_of
from gangplan.objects import Body, Ref, ref_of
from gangplan.records import dataclass
from gangplan.rules.grants import RENDERED_FOREIGN
from gangplan.rules.merges import MERGE_CONFLICT
from gangplan.source import ManifestError, load_objects
from gangplan.workspace import RENDERED

# Files for people; no engine applies them.
HARMLESS = frozenset({"README.md", ".gitkeep", ".DS_Store"})
_RUN = re.compile(r"(?P<cluster>[^/]+)/runs/(?P<team>[^/]+)/(?P<name>[^/]+-[0-9a-f]{8})\.yaml")
_HELP = "Remove it; put objects that gangplan does not render into another folder."


Homes = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class ExpectedTree:
    """What is rendered now: a folder with the texts, and the namespace of each team by (cluster, team)."""

    folder: Path
    homes: Homes


def check_unmanaged_rendered_files(
    tree: Path,
    today: ExpectedTree | None = None,
    covers: Callable[[str, str], bool] = lambda *_: True,
    settled: Collection[str] = (),
    folders: Collection[str] | None = None,
) -> list[Finding]:
    """Return an error for everything in a rendered tree that gangplan does not write.

    With `today`, marked files for which `covers` (path, source) holds are compared with it as well. `settled`
    are folders (`rendered/...`), and files, that are known to be what is rendered now. `folders` are all
    folders of the tree, if they were listed already.
    """
    if tree.is_symlink():
        return [_build_foreign_finding("", f"{RENDERED}/ is a link", "Make it a folder.")]
    found: list[Finding] = []
    for folder in sorted(set(_list_rendered_folders(tree) if folders is None else folders) - set(settled)):
        inside = folder[len(RENDERED) + 1 :]
        for name in _list_rendered_folder_files(tree / inside):
            path = f"{inside}/{name}" if inside else name
            if f"{RENDERED}/{path}" in settled:
                continue
            found += _check_unmarked_rendered_file(tree, path)
            source = read_header_source(tree / path)
            if today is not None and source is not None and covers(path, source):
                found += _check_marked_rendered_file(tree, today, path, source)
    return found


def _list_rendered_folders(tree: Path) -> list[str]:
    """Return the tree and all folders in it, by their paths from the root of the workspace."""
    return [f"{RENDERED}{parent[len(str(tree)) :]}".replace(os.sep, "/") for parent, _, _ in os.walk(tree)]


def _list_rendered_folder_files(folder: Path) -> list[str]:
    """Return the names of what a folder holds besides folders; empty if it is gone."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _check_unmarked_rendered_file(tree: Path, path: str) -> Iterator[Finding]:
    mode = os.lstat(tree / path).st_mode
    if stat.S_ISLNK(mode):
        yield _build_foreign_finding(path, "this is a link, which gangplan never writes", _HELP)
    elif not stat.S_ISREG(mode):
        yield _build_foreign_finding(path, "this is a pipe, socket or device, not a regular file", _HELP)
    elif read_header_source(tree / path) is not None:
        yield from _check_merge_conflict(path, (tree / path).read_bytes())
    elif path.rpartition("/")[2] not in HARMLESS:
        yield _build_foreign_finding(
            path, "gangplan did not write this file, but it is applied with the others", _HELP
        )


def _check_merge_conflict(path: str, data: bytes) -> Iterator[Finding]:
    if line := find_conflict_line(data):
        message = "an unresolved merge conflict: Git could not merge two renders of this file"
        help = "Settle conflicts in the other files, then run gangplan render, which writes this one again."
        yield Finding(MERGE_CONFLICT, Location(f"{RENDERED}/{path}", line, 1), message, help)


def _check_marked_rendered_file(tree: Path, today: ExpectedTree, path: str, source: str) -> Iterator[Finding]:
    """Check a file with gangplan's mark: it must be rendered now or have been before, without additional
    objects."""
    new = today.folder / path
    run = _RUN.fullmatch(path)
    try:
        if find_conflict_line((tree / path).read_bytes()):
            return  # reported already
        if new.is_file() and (tree / path).read_bytes() == new.read_bytes():
            return
        bodies = load_objects((tree / path).read_bytes())
        refs = Counter(map(ref_of, bodies))
        wanted = Counter(map(ref_of, load_objects(new.read_bytes()))) if new.is_file() else Counter()
    except (OSError, ManifestError):
        yield _build_foreign_finding(path, "it is not YAML as gangplan writes it", "Run gangplan render.")
        return
    if is_launch_file(path):
        yield from _check_rendered_launch_scripts(today, path, source, bodies)
        return
    from gangplan.pipeline.past import (
        is_past_rendered_file,
        is_past_rendered_object,
    )  # most files are as they were rendered

    if new.is_file():
        past = {ref_of(body) for body in bodies if is_past_rendered_object(path, body, wanted)}
        for ref in (one for one in refs - wanted if one not in past or refs[one] > 1):
            help = "Run gangplan render, which removes it: nothing in specs/ and overlays/ asks for it."
            yield _build_foreign_finding(path, f"it holds {ref}, which is not rendered now", help)
    elif run is not None and (home := today.homes.get((run["cluster"], run["team"]))) is not None:
        yield from _check_run_removed_by_next_render(refs, path, run["name"], home)
    elif not is_past_rendered_file(path, source, bodies, _list_team_namespaces(today, path)):
        yield _build_foreign_finding(
            path, "nothing is rendered into this file now", "Run gangplan render, which removes it."
        )


def _check_rendered_launch_scripts(
    today: ExpectedTree, path: str, source: str, bodies: Sequence[Body]
) -> Iterator[Finding]:
    """Check a file of launch scripts: today's or earlier ones, as many runs as may still mount them.

    All pods of the team would run what it holds, so it must be exactly what its name says.
    """
    from gangplan.pipeline.past import is_past_rendered_file

    cluster, _, team, file = path.split("/")
    home = today.homes.get((cluster, team))
    if home is None:  # the team is no more
        is_known = is_past_rendered_file(path, source, bodies, _list_team_namespaces(today, path))
        home = next((ref_of(one).namespace for one in bodies), "")
    else:
        is_known = source == team_source_of(team)
    if not is_known or not is_launch_script_config_map(bodies, home, file.split(".")[1]):
        message = f"it is not {SCRIPTS_VOLUME}-{file.split('.')[1]} as gangplan writes it"
        yield _build_foreign_finding(path, message, "Run gangplan render, which writes or removes it.")


def _list_team_namespaces(today: ExpectedTree, path: str) -> set[str]:
    """Return the namespaces of teams that a cluster has now."""
    return {home for (cluster, _), home in today.homes.items() if cluster == path.partition("/")[0]}


def _check_run_removed_by_next_render(
    refs: Counter[Ref], path: str, name: str, home: str
) -> Iterator[Finding]:
    """Check a run that the next render removes: its objects need its name and its team's namespace."""
    from gangplan.pipeline.past import may_be_part_of_rendered_run

    for ref, count in refs.items():
        if not may_be_part_of_rendered_run(ref, name) or ref.namespace != home or count > 1:
            yield _build_foreign_finding(path, f"it holds {ref}, which is not part of run {name}", _HELP)


def _build_foreign_finding(path: str, message: str, help: str) -> Finding:
    return Finding(
        RENDERED_FOREIGN, Location(f"{RENDERED}/{path}" if path else RENDERED, 1, 1), message, help
    )
